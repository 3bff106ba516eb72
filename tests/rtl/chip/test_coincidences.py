"""Conditions and handshakes of the scalar core's units and of the ring that come together: programs
are drawn towards the pairs that are missing, on a chip with short queues, held back at random.
"""

from __future__ import annotations

from random import Random

import pytest
from coincidences import Seen
from core_coincidences import CORE, EVERY, CoreProgram, fill, small_chip
from darwinn_sim import chip
from darwinn_sim.isa.builder import build
from harness_runs import require_toolchain
from nightly import nightly_seed, note

GATE, NIGHT = 100, 1200
"""Programs of a run."""


def run_towards(least: float, programs: int, seed: int) -> None:
    require_toolchain()
    from darwinn_rtl.build import library
    from darwinn_rtl.chip.player import ChipPlayer
    from darwinn_rtl.coverage_report import keep_bins

    design, random, seen = small_chip(), Random(seed), Seen(CORE, set())
    rtl = ChipPlayer(seed, design, stall_seed=seed)
    fill(rtl)
    for number in range(programs):
        knobs = CORE.drawn(random, seen.missing)
        print(f"program {number} of seed {seed}: {knobs}")
        CoreProgram(rtl, knobs, random).play()
        seen.take(CORE.told(library(design)))
    rtl.close()
    keep_bins("coincidences in the scalar core and on the ring", {"pair": seen.bins})
    print(seen.come(least))


def test_whatever_comes_together_loses_no_row() -> None:
    run_towards(0.9, GATE, 1)


def test_no_cycle_passes_in_a_run_of_none() -> None:
    """Behind a reset it waited for ever."""
    require_toolchain()
    from darwinn_rtl.chip.player import ChipPlayer

    rtl = ChipPlayer(1, small_chip(), stall_seed=1)
    rtl.reset()
    for _ in range(2):
        before = rtl.cycle
        rtl.run(0)
        assert rtl.cycle == before
        rtl.run(3)
    rtl.close()


def test_a_fence_does_not_wait_for_tiles_that_a_build_lacks() -> None:
    """It passes when the tiles that are there have passed theirs."""
    require_toolchain()
    from darwinn_rtl.chip.player import ChipPlayer

    rtl = ChipPlayer(1, small_chip(), stall_seed=1)
    named = {"tile_fence_valid": (1 << chip.TILES) - 1, "tile_fence_count": 1}
    rtl.hand_over("TileFence", build([("TileFence", {"tiles": EVERY, "increment": 1})]), EVERY)
    rtl.hand_over("ScalarFence", build([("ScalarFence", named)]))
    rtl.close()


@pytest.mark.nightly
def test_everything_that_may_come_together_has_come_together() -> None:
    chosen = nightly_seed()
    run_towards(0.99, NIGHT, chosen)
    note("programs towards conditions and handshakes of the scalar core", NIGHT, chosen)
