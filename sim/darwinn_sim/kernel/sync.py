"""Sync flags: watchers that wait for them, producers that increment them, fences that load them.

Which flag is which stands in ``isa.codes``. Flags are 16-bit counters that wrap: a watcher is
satisfied when flag - expected, as a signed 16-bit number, is not negative.
"""

from __future__ import annotations

from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.isa.codec import Columns
from darwinn_sim.kernel import traversal
from darwinn_sim.kernel.compiled import compiled
from darwinn_sim.kernel.structure import Numbers, Record, Records

MAX_WATCHERS = 6

_FLAG_BITS = 16

FLAG_MASK = (1 << _FLAG_BITS) - 1
"""Flags count in 16 bits."""

_PLACE_BITS = 5
"""An obstacle has the number of its flag, and 1, in so many bits: there are 19. None is 0."""


class Watchers(Record):
    """The valid watchers of an instruction, packed to the front. ``side`` is the traversal that
    waits (0 the first, 1 the second).
    """

    count: int
    flag: Annotated[Numbers, MAX_WATCHERS]
    depth: Annotated[Numbers, MAX_WATCHERS]
    expected: Annotated[Numbers, MAX_WATCHERS]
    stride: Annotated[Numbers, MAX_WATCHERS]
    side: Annotated[Numbers, MAX_WATCHERS]


class Producer(Record):
    """A producer adds to its flag at the end of each block of ``depth``, if ``increment`` is 1."""

    increment: int
    depth: int


class Walker(Protocol):
    """A unit that walks a traversal, or its station in the event model: both go by the same steps.

    ``position`` and ``words`` are places in the row that it takes apart or gathers.
    """

    first: traversal.State
    waited: Numbers
    position: int
    words: int


class TwoSided(Walker, Protocol):
    """The same of a tile, where an instruction may have two traversals.

    ``base``: where the first one begins, if that is not negative; ``ready``: the watchers of the
    next element have passed; ``row_closed``: no more words join the row.
    """

    second: traversal.State
    base: int
    ready: int
    row_closed: int


class DoubleBuffered(Protocol):
    """A tile, of either model: the sides of the double buffer between two of its units."""

    wide_write_second: int
    ring_read_second: int


def lower_watchers(columns: Columns, rows: int) -> Records[Watchers]:
    """Watchers of ``rows`` instructions."""
    out = Watchers.zeros(rows)
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


def lower_producer(name: str, columns: Columns, rows: int) -> Records[Producer]:
    """Producer ``name`` of ``rows`` instructions."""
    out = Producer.zeros(rows)
    out["increment"] = columns[name + "_increment"]
    out["depth"] = columns[name + "_depth"]
    return out


@compiled
def reached(flag: int, expected: int) -> bool:
    """True if a 16-bit ``flag`` has reached ``expected``."""
    return ((flag - expected) & FLAG_MASK) <= FLAG_MASK >> 1


@compiled
def passes(
    watchers: Watchers, waited: NDArray[np.int64], flags: NDArray[np.int64], begins: int
) -> bool:
    """Test the watchers of both sides, as :func:`obstacle` does: nothing stands in the way."""
    return obstacle(watchers, waited, flags, begins, -1) == 0


@compiled
def obstacle(
    watchers: Watchers, waited: NDArray[np.int64], flags: NDArray[np.int64], begins: int, side: int
) -> int:
    """Test the watchers of the blocks that begin here, of one side (-1: of both).

    Gives the first flag that has not reached its count, with that count, in one number
    (:func:`flag_of`, :func:`count_of`). If there is none all pass, and that is 0: only then
    ``waited`` moves, which holds how often each watcher has passed.
    """
    for k in range(watchers.count):
        if side >= 0 and watchers.side[k] != side:
            continue
        if (begins >> watchers.depth[k]) & 1:
            expected = watchers.expected[k] + waited[k] * watchers.stride[k]
            if not reached(flags[watchers.flag[k]], expected):
                return int(expected << _PLACE_BITS | (watchers.flag[k] + 1))
    for k in range(watchers.count):
        if side >= 0 and watchers.side[k] != side:
            continue
        if (begins >> watchers.depth[k]) & 1:
            waited[k] += 1
    return 0


@compiled
def flag_of(obstacle: int) -> int:
    """The flag that has not reached its count."""
    return (obstacle & ((1 << _PLACE_BITS) - 1)) - 1


@compiled
def count_of(obstacle: int) -> int:
    """The count that the flag has not reached."""
    return obstacle >> _PLACE_BITS


@compiled
def is_overcome(obstacle: int, flags: NDArray[np.int64]) -> bool:
    """The flag of an obstacle has reached its count by now."""
    return reached(flags[flag_of(obstacle)], count_of(obstacle))


@compiled
def begins(unit: TwoSided, side: int) -> int:
    """Blocks that begin at the next element of a traversal of a unit, the second or the first."""
    return unit.second.begins if side == 1 else unit.first.begins


@compiled
def obstacle_of(unit: TwoSided, watchers: Watchers, flags: NDArray[np.int64], side: int) -> int:
    """Test the watchers of one side of a unit's instruction at its next element: an obstacle."""
    return obstacle(watchers, unit.waited, flags, begins(unit, side), side)


@compiled
def produce(producer: Producer, ended: int) -> int:
    """What ``producer`` adds to its flag when the blocks of ``ended`` have ended."""
    return producer.increment & (ended >> producer.depth)
