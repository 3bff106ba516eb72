"""What the event model counts of a program whose traffic is known."""

from __future__ import annotations

import averaging_program as sample
from darwinn_sim import timing

ROW_WORDS = 64


def test_rows_and_words_on_the_ring() -> None:
    """A row of inputs to the tile, and a row of outputs from it."""
    result = timing.simulate(sample.executable())
    assert (result.ring_rows, result.ring_words) == (2, 2 * ROW_WORDS)
