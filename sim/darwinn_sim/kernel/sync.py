"""Sync flags: watchers that wait for them, producers that increment them, fences that load them.

Which flag is which stands in ``isa.codes``. Flags are 16-bit counters that wrap: a watcher is
satisfied when flag - expected, as a signed 16-bit number, is not negative.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.isa.codec import Columns
from darwinn_sim.kernel.compiled import Record, compiled

MAX_WATCHERS = 6

FLAG_MASK = 0xFFFF
"""Flags count in 16 bits."""

WATCHERS = np.dtype(
    [
        ("count", "i8"),
        ("flag", "i8", (MAX_WATCHERS,)),
        ("depth", "i8", (MAX_WATCHERS,)),
        ("expected", "i8", (MAX_WATCHERS,)),
        ("stride", "i8", (MAX_WATCHERS,)),
        ("side", "i8", (MAX_WATCHERS,)),
    ]
)
"""The valid watchers of an instruction, packed to the front. ``side`` is the traversal that waits
(0 the first, 1 the second)."""

PRODUCER = np.dtype([("increment", "i8"), ("depth", "i8")])
"""A producer increments its flag at the end of each block of ``depth``, if ``increment`` is 1."""


def lower_watchers(columns: Columns, rows: int) -> NDArray[np.void]:
    """Watchers of ``rows`` instructions: a structured array of ``WATCHERS``."""
    out = np.zeros(rows, WATCHERS)
    valid = np.atleast_2d(columns["watcher_valid"].T).T.astype(bool)
    count = valid.shape[1]
    # A stable sort brings the valid watchers to the front in their encoded order.
    order = np.argsort(~valid, axis=1, kind="stable")
    out["count"] = valid.sum(axis=1)
    for name in ("flag", "depth", "expected", "stride", "side"):
        column = columns.get("watcher_" + name)
        if column is not None:
            values = column.reshape(rows, count)
            out[name][:, :count] = np.take_along_axis(values, order, axis=1)
    return out


def watching(records: NDArray[np.void], flag: int) -> NDArray[np.bool_]:
    """Which watchers of instructions wait for ``flag``: shape (instructions, MAX_WATCHERS)."""
    watchers = records["watchers"]
    valid = np.arange(MAX_WATCHERS) < watchers["count"][:, None]
    found: NDArray[np.bool_] = valid & (watchers["flag"] == flag)
    return found


def lower_producer(name: str, columns: Columns, rows: int) -> NDArray[np.void]:
    """Producer ``name`` of ``rows`` instructions: a structured array of ``PRODUCER``."""
    out = np.zeros(rows, PRODUCER)
    out["increment"] = columns[name + "_increment"]
    out["depth"] = columns[name + "_depth"]
    return out


@compiled
def reached(flag: int, expected: int) -> bool:
    """True if a 16-bit ``flag`` has reached ``expected``."""
    return (((flag - expected) + 0x8000) & 0xFFFF) >= 0x8000


@compiled
def passes(watchers: Record, waited: NDArray[np.int64], flags: Record, begins: int) -> bool:
    """Test the watchers of the blocks that begin here, on both sides; count the waits that pass.

    ``waited`` holds how often each watcher has passed; it moves only when all of them pass.
    """
    return passes_side(watchers, waited, flags, begins, -1)


@compiled
def passes_side(
    watchers: Record, waited: NDArray[np.int64], flags: Record, begins: int, side: int
) -> bool:
    """Like :func:`passes` for the watchers of one side (-1: of both)."""
    for k in range(watchers.count):
        if side >= 0 and watchers.side[k] != side:
            continue
        if (begins >> watchers.depth[k]) & 1:
            expected = watchers.expected[k] + waited[k] * watchers.stride[k]
            if not reached(flags[watchers.flag[k]], expected):
                return False
    for k in range(watchers.count):
        if side >= 0 and watchers.side[k] != side:
            continue
        if (begins >> watchers.depth[k]) & 1:
            waited[k] += 1
    return True


@compiled
def begins(unit: Record, side: int) -> int:
    """Blocks that begin at the next element of a traversal of a unit, the second or the first."""
    return unit.second.begins if side == 1 else unit.first.begins  # type: ignore[no-any-return]


@compiled
def lets_pass(unit: Record, watchers: Record, flags: Record, side: int) -> bool:
    """Test the watchers of one side of a unit's instruction at its next element."""
    return passes_side(watchers, unit.waited, flags, begins(unit, side), side)


@compiled
def produce(producer: Record, ended: int) -> int:
    """What ``producer`` adds to its flag when the blocks of ``ended`` have ended."""
    return producer.increment & (ended >> producer.depth)  # type: ignore[no-any-return]
