"""Slow mesh: all tiles of one instruction, words handed from list to list (docs/chip-facts.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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

LINK_WORDS = 4
"""Words that wait in a link."""


def neighbour(tile: int, name: str) -> int:
    """The tile that ``tile`` sends to: the next one of the 4 x 4 torus."""
    (down, right), _, _ = DIRECTIONS[name]
    row, column = divmod(tile, 4)
    return (row + down) % 4 * 4 + (column + right) % 4


def off(fields: Mapping[str, Any], name: str) -> bool:
    """A side whose first stride and limits are all 0 is off."""
    return fields[f"{name}_stride"][0] == 0 and not any(fields[f"{name}_limit"])


def sending(
    tile: Tile, name: str, fields: Mapping[str, Any], link: list[bytes], room: int | None
) -> Iterator[bool]:
    """Put words on a link that holds ``room`` of them (None: any number).

    Each step tells whether a word went; the last one has been when the steps end.
    """
    if off(fields, "narrow_read"):
        return
    watchers = Watchers(fields, side=0)
    for element in walk(fields, "narrow_read"):
        while len(link) == room or not watchers.passes(tile.flags, element.begins):
            yield False
        link.append(tile.narrow_word(element.address))
        tile.flags[DIRECTIONS[name][1]] += produce(fields, "read_producer", element.ends)
        yield True


def receiving(
    tile: Tile, name: str, fields: Mapping[str, Any], link: list[bytes]
) -> Iterator[bool]:
    """Write the words of a link, or the constant; steps as those of :func:`sending`."""
    constant = fields["immediate_valid"]
    if off(fields, "narrow_write") and not constant:
        return
    watchers = Watchers(fields, side=1)
    for element in walk(fields, "narrow_write"):
        while not (constant or link) or not watchers.passes(tile.flags, element.begins):
            yield False
        word = fields["immediate"].to_bytes(4, "little") if constant else link.pop(0)
        tile.write_narrow_word(element.address, word)
        tile.flags[DIRECTIONS[name][2]] += produce(fields, "write_producer", element.ends)
        yield True


def send(tile: Tile, name: str, fields: Mapping[str, Any]) -> tuple[list[bytes], bool]:
    """Words that a tile sends where all are taken, and whether its sending side ends."""
    words: list[bytes] = []
    return words, all(sending(tile, name, fields, words, None))


def receive(tile: Tile, name: str, fields: Mapping[str, Any], words: Iterable[bytes]) -> bool:
    """Write the words that arrive at a tile, or the constant; whether its writing side ends."""
    return all(receiving(tile, name, fields, list(words)))


def run(tiles: Mapping[int, Tile], name: str, fields: Mapping[str, Any]) -> set[int]:
    """Execute one instruction on ``tiles``, step by step; return those that are held back by a
    watcher, by silence, or by a link that nobody empties.
    """
    links: dict[int, list[bytes]] = {number: [] for number in range(16)}
    sides = []
    for number, tile in tiles.items():
        link = links[neighbour(number, name)]
        sides.append((number, sending(tile, name, fields, link, LINK_WORDS)))
        sides.append((number, receiving(tile, name, fields, links[number])))
    moved = True
    while moved:
        steps = [(number, side, next(side, None)) for number, side in sides]
        sides = [(number, side) for number, side, step in steps if step is not None]
        moved = any(step for _, _, step in steps)
    return {number for number, _ in sides}
