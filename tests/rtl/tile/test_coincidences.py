"""Conditions and handshakes of a tile's units that come together: programs are drawn towards the
pairs that are missing, on a tile with small queues.
"""

from __future__ import annotations

from random import Random

import pytest
from coincidences import Seen
from harness_runs import require_toolchain
from nightly import nightly_seed, note

GATE, NIGHT = 60, 3000
"""Programs of a run."""


def run_towards(least: float, programs: int, seed: int) -> None:
    require_toolchain()
    from darwinn_rtl.build import library
    from darwinn_rtl.coverage_report import keep_bins
    from darwinn_rtl.tile.bench import TileBench
    from tile_coincidences import TILE, TileProgram, small_tile
    from tile_units import TileAndModel

    design, random = small_tile(), Random(seed)
    rtl, seen = TileBench(seed=seed, chosen=design), Seen(TILE, set())
    for number in range(programs):
        knobs = TILE.drawn(random, seen.missing)
        print(f"program {number} of seed {seed}: {knobs}")
        rtl.stall(number, knobs.stalls)
        TileProgram(TileAndModel({}, rtl=rtl), knobs, random).play()
        seen.take(TILE.told(library(design)))
    rtl.close()
    keep_bins("coincidences in a tile", {"pair": seen.bins})
    print(seen.come(least))


def test_whatever_comes_together_changes_nothing() -> None:
    run_towards(0.9, GATE, 1)


@pytest.mark.nightly
def test_everything_that_may_come_together_has_come_together() -> None:
    chosen = nightly_seed()
    run_towards(0.99, NIGHT, chosen)
    note("programs towards conditions and handshakes of a tile", NIGHT, chosen)
