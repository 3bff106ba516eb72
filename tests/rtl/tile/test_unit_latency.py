"""Cycles that an instruction takes in the RTL's tile, as docs/rtl-tile.md gives them."""

from __future__ import annotations

from typing import Any

import pytest
from darwinn_rtl.tile.bench import RingRow
from darwinn_sim.isa.builder import build
from darwinn_sim.isa.table import BY_NAME
from stimulus import Walk
from tile_runs import rtl_tile

QUEUES = 2
"""Cycles from the tile's input through its queue into that of the unit."""

ON_WAY = 2
"""Cycles in which the unit takes the instruction and loads its traversals."""


def in_order(name: str, traversal: str, count: int) -> dict[str, Any]:
    """A traversal of ``count`` addresses one after another."""
    loops = BY_NAME[name].field(f"{traversal}_limit").count
    return Walk((count, *[1] * (loops - 1)), (1, *[0] * (loops - 1))).fields(name, traversal)


@pytest.mark.parametrize("words", [1, 64, 65, 130])
@pytest.mark.parametrize(
    ("name", "by_word", "by_row", "behind"),
    [
        ("NarrowToWide", "narrow_read", "wide_write", 1),
        ("WideToNarrow", "narrow_write", "wide_read", 0),
        ("MeshSouth", "narrow_read", None, 0),
        ("MeshEast", "narrow_write", None, 0),
        ("RingProducer", "wide_read", None, 0),
        ("RingConsumerB", "wide_write", None, 0),
    ],
)
def test_a_unit_moves_an_element_in_each_cycle(
    name: str, by_word: str, by_row: str | None, behind: int, words: int
) -> None:
    """Rows begin and end without a gap; ``behind``: cycles from the last word to its row."""
    fields: dict[str, Any] = in_order(name, by_word, words)
    if by_row:
        fields |= in_order(name, by_row, -(-words // 64)) | {"row_loop": 6}
    tile = rtl_tile()
    tile.reset()
    # Another test of this process may have let the ring and the mesh wait.
    tile.stall(seed=0, share=0)
    for number in range(words):
        tile.send_word(3, number)
        tile.send_row(RingRow((number,), channel=1))
    tile.give(build([(name, fields | {"tiles": 1})]))
    assert tile.run(1000) == QUEUES + ON_WAY + words + behind
    assert tile.idle
