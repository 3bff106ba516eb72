"""Slow mesh: all tiles of one instruction, words handed from list to list (docs/chip-facts.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from slow_model.memory import Tile
from slow_model.sync import Watchers, produce
from slow_model.traversal import walk

DIRECTIONS = {
    "MeshSouth": ((1, 0), 9, 3),
    "MeshWest": ((0, -1), 10, 4),
    "MeshNorth": ((-1, 0), 7, 5),
    "MeshEast": ((0, 1), 8, 6),
}
"""Where words go (rows, columns), the flag of words read, and the flag of words written."""


def neighbour(tile: int, name: str) -> int:
    """The tile that ``tile`` sends to: the next one of the 4 x 4 torus."""
    (down, right), _, _ = DIRECTIONS[name]
    row, column = divmod(tile, 4)
    return (row + down) % 4 * 4 + (column + right) % 4


def off(fields: Mapping[str, Any], name: str) -> bool:
    """A side whose first stride and limits are all 0 is off."""
    return fields[f"{name}_stride"][0] == 0 and not any(fields[f"{name}_limit"])


def send(tile: Tile, name: str, fields: Mapping[str, Any]) -> tuple[list[bytes], bool]:
    """Words that a tile sends, and whether its sending side ends."""
    words: list[bytes] = []
    if off(fields, "narrow_read"):
        return words, True
    watchers = Watchers(fields, side=0)
    for element in walk(fields, "narrow_read"):
        if not watchers.passes(tile.flags, element.begins):
            return words, False
        words.append(tile.narrow_word(element.address))
        tile.flags[DIRECTIONS[name][1]] += produce(fields, "read_producer", element.ends)
    return words, True


def receive(tile: Tile, name: str, fields: Mapping[str, Any], words: Iterable[bytes]) -> bool:
    """Write the words that arrive at a tile, or the constant; whether its writing side ends."""
    constant = fields["immediate_valid"]
    if off(fields, "narrow_write") and not constant:
        return True
    watchers = Watchers(fields, side=1)
    arriving = iter(words)
    for element in walk(fields, "narrow_write"):
        word = fields["immediate"].to_bytes(4, "little") if constant else next(arriving, None)
        if word is None or not watchers.passes(tile.flags, element.begins):
            return False
        tile.write_narrow_word(element.address, word)
        tile.flags[DIRECTIONS[name][2]] += produce(fields, "write_producer", element.ends)
    return True


def run(tiles: Mapping[int, Tile], name: str, fields: Mapping[str, Any]) -> set[int]:
    """Execute one instruction on ``tiles``; return those that a watcher or silence holds back."""
    arriving: dict[int, list[bytes]] = {number: [] for number in range(16)}
    held = set()
    for number, tile in tiles.items():
        words, done = send(tile, name, fields)
        arriving[neighbour(number, name)] += words
        if not done:
            held.add(number)
    for number, tile in tiles.items():
        if not receive(tile, name, fields, arriving[number]):
            held.add(number)
    return held
