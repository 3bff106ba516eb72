"""Single instructions on the RTL's tile, beside the slow model's tile that must become the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from darwinn_rtl.line_coverage import COVERAGE_VARIABLE
from darwinn_sim import chip
from darwinn_sim.isa.builder import Values, build
from darwinn_sim.isa.codes import TileUnit
from functional_coverage import ROUNDS, Coverage
from hypothesis import strategies as st
from nightly import CASES, check_cases
from numpy.typing import NDArray
from slow_model.memory import Tile
from stimulus import KINDS
from tile_runs import rtl_tile
from traversal_coverage import bins

LIMIT = 3000
"""Cycles within which an instruction ends, if it ends at all and nothing holds it back."""


def limit_of(transfers: int, share: int) -> int:
    """As ``LIMIT``, where each of so many transfers has to wait in ``share`` of 256 cycles: twice
    what that takes on the mean."""
    return LIMIT + 2 * transfers * 256 // (256 - share)


@cache
def _memories() -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(2026)
    words = {
        "narrow": chip.NARROW_ADDRESS_BYTES // 4,
        "wide": chip.WIDE_ROWS * chip.ROW_WORDS,
        "scale_bias": chip.SCALE_BIAS_WORDS,
    }
    return {name: random.integers(0, 1 << 32, n, np.uint32) for name, n in words.items()}


class TileAndModel:
    """The RTL's tile and a slow one, with the same random memories and the same flags.

    With a ``memory_clock_ratio`` of more than 1 the memories of the RTL's are block RAM; ``rtl`` is
    a tile of one's own in its place.
    """

    def __init__(
        self, flags: Mapping[int, int], memory_clock_ratio: int | None = None, rtl: Any = None
    ) -> None:
        memories = _memories()
        self.rtl = rtl or rtl_tile(*filter(None, [memory_clock_ratio]))
        self.rtl.reset()
        self.rtl.narrow[:] = memories["narrow"].view(np.uint8)[: chip.NARROW_BYTES]
        self.rtl.wide[:] = memories["wide"]
        self.rtl.scale_bias[:] = memories["scale_bias"]
        values = np.array([flags.get(flag, 0) for flag in range(chip.TILE_FLAGS)])
        self.rtl.flags[:] = values & 0xFFFF
        empty = {"number": 0, "flags": values, "coefficient": (), "lower_bound": ()}
        self.slow = Tile({**empty, **memories})

    def give(self, name: str, fields: Values, base: int | None = None) -> None:
        """Put an instruction into the RTL's queue; ``base`` stands in the base register."""
        self.rtl.give(build([(name, {**fields, "tiles": 1})]), base)

    def load_flag(self, flag: int | None, value: int) -> None:
        """A fence behind all units, which loads a flag, if there is one, that no unit counts."""
        loads = {} if flag is None else {"reset_flags": 1 << flag, "reset_value": value}
        self.give("TileFence", {"wait_idle": 0x3FF, **loads})
        if flag is not None:
            self.slow.flags[flag] = value

    def let_a_fence_wait(self, name: str, fields: Values, flag: int) -> None:
        """Two instructions of a unit, then a fence that waits until both have ended and a neighbour
        has sent a word. It loads ``flag`` with 0, and the instruction comes once more."""
        write: Values = {"narrow_write_base": 20, "narrow_write_stride": [1, 0, 0, 0]}
        self.give("MeshSouth", write)
        for _ in range(2):
            self.give(name, fields)
        loads = {"reset_flags": 1 << flag, "reset_value": 0}
        self.give("TileFence", {"wait_idle": 1 << int(TileUnit.MESH_SOUTH), **loads})
        self.give(name, fields)
        self.rtl.run(LIMIT)
        assert not self.rtl.idle, "the fence waits"
        self.rtl.send_word(0, 7)
        self.slow.write_narrow_word(20, bytes([7, 0, 0, 0]))
        self.slow.flags[flag] = 0
        self.run()
        assert self.rtl.idle

    def run(self, limit: int = LIMIT) -> int:
        """Run the RTL and compare memories and flags; the cycles that it took."""
        cycles: int = self.rtl.run(limit)
        for memory in ("narrow", "wide", "scale_bias"):
            actual = getattr(self.rtl, memory).view(np.uint8)
            expected = np.frombuffer(bytes(getattr(self.slow, memory)), np.uint8)[: len(actual)]
            wrong = np.flatnonzero(actual != expected)
            shown = [(hex(i), int(actual[i]), int(expected[i])) for i in wrong[:6].tolist()]
            assert not len(wrong), (
                f"{memory}: {len(wrong)} bytes differ, (address, RTL, model): {shown}"
            )
        flags = [flag % 65536 for flag in self.slow.flags]
        assert [int(flag) for flag in self.rtl.flags] == flags, "flags"
        return cycles


def check_unit(
    coverage: Coverage,
    traversals: tuple[str, ...],
    cases: Callable[..., st.SearchStrategy[Any]],
    check: Callable[[Any], None],
    *,
    nightly: bool,
    instructions: int = 1,
) -> None:
    """Check random cases of each kind of each traversal, so that the cross of kinds is complete.

    ``coverage`` declares the bins of the cross, and those of the unit: nightly, and where coverage
    is asked for, cases without any aim go on until these have been hit as well. ``instructions``
    is how many share the cases.
    """
    nightly = nightly or COVERAGE_VARIABLE in os.environ
    for number, (name, kind) in enumerate(product(traversals, KINDS)):
        check_cases(
            f"{coverage.unit}, {name}",
            cases(aims={name: kind}),
            check,
            AIMED,
            nightly=nightly,
            nightly_examples=AIMED_NIGHTLY,
            added=number,
        )
    for added in range(ROUNDS if nightly else 1):
        check_cases(
            coverage.unit,
            cases(),
            check,
            FREE,
            nightly=nightly,
            nightly_examples=CASES * instructions,
            added=added,
        )
        if not coverage.missed():
            break
    if nightly:
        coverage.finish()
    missed = [name for name in bins(*traversals) if not coverage.hits[name]]
    assert not missed, f"{coverage.unit}: bins never hit: {missed}"
    print(f"{coverage.unit}: {coverage.hits.total()} hits of {len(coverage.bins)} bins")


AIMED, AIMED_NIGHTLY = 2, 20
"""Cases of each of the 26 kinds of a traversal: 1,040 for the two of an instruction, nightly."""

FREE = 50
"""Cases without an aim; ``CASES`` nightly."""
