"""The pyuvm environment of a tile: random programs, compared transaction by transaction."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_runs import require_toolchain, run


@pytest.mark.nightly
def test_rows_words_and_flags_are_those_of_the_model(tmp_path: Path) -> None:
    require_toolchain()
    from darwinn_rtl.build import Design

    tile = Design("tile")
    run(tile, "tile_tests", "RowsThroughTheTile", tmp_path, seed=1)
