"""Slow wide-to-narrow: one word after another, as docs/chip-facts.md tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slow_model.memory import Tile
from slow_model.narrow_to_wide import transposed
from slow_model.sync import Watchers, produce
from slow_model.traversal import walk

NARROW_FLAG, SCALE_FLAG = 11, 12


def rows_needed(fields: Mapping[str, Any]) -> int:
    """Rows that the write traversal uses up: after 64 words, or after a block, comes a new one."""
    rows, left = 0, 0
    per_step = 2 if fields["scale_bias"] else 1
    for element in walk(fields, "narrow_write", target=fields.get("transpose", 0)):
        if left == 0:
            rows, left = rows + 1, 64
        left -= per_step
        if not element.prologue and fields["row_loop"] in element.ends:
            left = 0
    return rows


def run(tile: Tile, fields: Mapping[str, Any]) -> bool:
    """Execute one instruction on ``tile``; False if a watcher holds it back, with work left."""
    reading = Watchers(fields, side=0)
    writing = Watchers(fields, side=1)
    rows = iter(walk(fields, "wide_read"))
    flag = SCALE_FLAG if fields["scale_bias"] else NARROW_FLAG
    if fields["scale_bias"]:
        # The half of the buffer continues from the blocks that flag 12 has counted.
        fields = {**fields, "narrow_write_double_start": tile.flags[SCALE_FLAG] & 1}
    words: list[bytes] = []
    for element in walk(fields, "narrow_write", target=fields.get("transpose", 0)):
        if not writing.passes(tile.flags, element.begins):
            return False
        if not words:
            read = next(rows)
            if not reading.passes(tile.flags, read.begins):
                return False
            words = tile.row(read.address)
            if fields.get("transpose"):
                words = transposed(words, {"transpose": 1, "transpose_16bit": 0})
        if fields["scale_bias"]:
            step = 8 * element.address
            tile.scale_bias[step : step + 8] = words[0] + words[1]
            words = words[2:]
        else:
            tile.write_narrow_word(element.address, words[0])
            words = words[1:]
        if element.prologue:
            continue
        tile.flags[flag] += produce(fields, "producer", element.ends)
        if fields["row_loop"] in element.ends:
            words = []
    return True
