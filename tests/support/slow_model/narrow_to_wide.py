"""Slow narrow-to-wide: gathers words into a list, transposes blocks of it, writes rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slow_model.memory import Tile
from slow_model.sync import Watchers, produce
from slow_model.traversal import walk

FLAG = 13


def read_target(fields: Mapping[str, Any]) -> int:
    """Loop that the alternate limit of the read shortens: 1 when transposing."""
    return 1 if fields["transpose"] else 0


def row_sizes(fields: Mapping[str, Any]) -> list[int]:
    """Words of each row: a row closes after 64 words and with each block of ``row_loop``."""
    sizes, words = [], 0
    for element in walk(fields, "narrow_read", target=read_target(fields)):
        words += 1
        if words == 64 or fields["row_loop"] in element.ends:
            sizes.append(words)
            words = 0
    return [*sizes, words] if words else sizes


def run(tile: Tile, fields: Mapping[str, Any], *, shared_side: int = 0) -> bool:
    """Execute one instruction on ``tile``; False if a watcher holds it back, with work left.

    ``shared_side``: side of the double buffer that earlier instructions guarded by flag 16 left.
    """
    reading = Watchers(fields, side=0)
    writing = Watchers(fields, side=1)
    if shared_side:
        fields = {**fields, "wide_write_double_start": 1 - fields["wide_write_double_start"]}
    rows = iter(walk(fields, "wide_write"))
    sizes = iter(row_sizes(fields))
    size = next(sizes)
    words: list[bytes] = []
    for element in walk(fields, "narrow_read", target=read_target(fields)):
        if not reading.passes(tile.flags, element.begins):
            return False
        words.append(tile.narrow_word(element.address))
        if len(words) < size:
            continue
        row = next(rows)
        if not writing.passes(tile.flags, row.begins):
            return False
        tile.write_row(row.address, transposed(words, fields))
        tile.flags[FLAG] += produce(fields, "producer", row.ends)
        words = []
        size = next(sizes, 0)
    return True


def transposed(words: list[bytes], fields: Mapping[str, Any]) -> list[bytes]:
    """Blocks of 4 x 4 bytes, or of 2 x 2 halves of 16 bits, turned on their diagonal."""
    if not fields["transpose"]:
        return words
    block, width = (2, 2) if fields["transpose_16bit"] else (4, 1)
    # A block that is not finished is filled up with zeros.
    words = words + [bytes(4)] * (-len(words) % block)
    out = []
    for first in range(0, len(words), block):
        group = words[first : first + block]
        for i in range(block):
            out.append(b"".join(word[width * i : width * (i + 1)] for word in group))
    return out
