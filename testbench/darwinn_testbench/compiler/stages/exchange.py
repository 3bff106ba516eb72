"""Fills the windows around the tiles' own pixels: from neighbours over the mesh, or with padding.

First rows travel north and south, then columns east and west, with the rows that have come before
on them: so corners arrive. An element whose owner is several tiles away takes as many steps.
Pixels outside of the image become zero points. A link to a tile at the edge of the image fills them
while it sends what the tile's neighbour needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.isa.builder import Values

from darwinn_testbench.compiler.assembler import Assembler, walk
from darwinn_testbench.compiler.stages.storage import (
    TILES,
    Interval,
    Spread,
    Storage,
    column_of,
    common,
    length,
    row_of,
)
from darwinn_testbench.compiler.stages.writer import merged, write

_NORTH, _SOUTH, _WEST, _EAST = "MeshNorth", "MeshSouth", "MeshWest", "MeshEast"


@dataclass(frozen=True)
class _Box:
    """Rows and columns of an image."""

    rows: Interval
    columns: Interval

    @property
    def is_empty(self) -> bool:
        return not (length(self.rows) and length(self.columns))


def exchanges(storage: Storage) -> list[Callable[[Assembler], None]]:
    """The steps that fill the windows of an image, each to end before the next begins."""
    vertical, horizontal = list(_vertical(storage)), list(_horizontal(storage))
    above, beside = _padding(storage)
    groups = [(vertical[0], above), *((each, {}) for each in vertical[1:])]
    groups += [(horizontal[0], beside), *((each, {}) for each in horizontal[1:])]
    return [_writer(storage, *each) for each in groups if any(each)]


_Transfers = dict[tuple[str, int], _Box]
"""The box that a tile (the receiver) gets over a link, or that becomes zero points there."""


def _vertical(storage: Storage) -> Iterator[_Transfers]:
    for distance in range(1, chip.GRID_ROWS):
        found: _Transfers = {}
        for tile in TILES:
            columns = storage.own(tile)[1]
            place = row_of(tile)
            for link, owner in ((_SOUTH, place - distance), (_NORTH, place + distance)):
                rows = _needed(storage.rows, place, owner)
                if length(rows) and length(columns):
                    found[link, tile] = _Box(rows, columns)
        yield found


def _horizontal(storage: Storage) -> Iterator[_Transfers]:
    """Rows above and below the image travel, too: so tiles share more instructions."""
    for distance in range(1, chip.GRID_COLUMNS):
        found: _Transfers = {}
        for tile in TILES:
            rows = storage.rows.window[row_of(tile)]
            place = column_of(tile)
            for link, owner in ((_EAST, place - distance), (_WEST, place + distance)):
                columns = _needed(storage.columns, place, owner)
                if length(rows) and length(columns):
                    found[link, tile] = _Box(rows, columns)
        yield found


def _needed(spread: Spread, place: int, owner: int) -> Interval:
    """Elements that a place needs of an owner: of a band, each place has computed all itself."""
    if not 0 <= owner < len(spread.own) or spread.is_local:
        return 0, 0
    return common(spread.window[place], spread.own[owner])


def _sender(link: str, tile: int) -> int:
    """The tile from which a link leads to ``tile``."""
    return {
        _SOUTH: tile - chip.GRID_COLUMNS,
        _NORTH: tile + chip.GRID_COLUMNS,
        _EAST: tile - 1,
        _WEST: tile + 1,
    }[link]


def _writer(
    storage: Storage, transfers: _Transfers, padding: _Transfers
) -> Callable[[Assembler], None]:
    def emit(program: Assembler) -> None:
        for link in (_SOUTH, _NORTH, _EAST, _WEST):
            by_tile: dict[int, Values] = {}
            for (name, tile), box in transfers.items():
                if name != link:
                    continue
                sender = _sender(link, tile)
                sent = _walk(storage, link, "narrow_read", sender, box)
                received = _walk(storage, link, "narrow_write", tile, box)
                by_tile[sender] = merged(by_tile.get(sender, {}), sent)
                by_tile[tile] = merged(by_tile.get(tile, {}), received)
            alone: dict[int, Values] = {}
            for (name, tile), box in padding.items():
                if name == link:
                    chosen = alone if (link, tile) in transfers else by_tile
                    chosen[tile] = merged(chosen.get(tile, {}), _filled(storage, link, tile, box))
            write(program, link, alone)
            write(program, link, dict(sorted(by_tile.items())))

    return emit


def _walk(storage: Storage, link: str, name: str, tile: int, box: _Box) -> Values:
    words = length(box.columns) * storage.image.pitch // WORD_BYTES
    base = storage.word(tile, box.rows[0], box.columns[0])
    pitch = storage.row_pitch // WORD_BYTES
    return walk(link, name, base, [(words, 1), (length(box.rows), pitch)])


def _padding(storage: Storage) -> tuple[_Transfers, _Transfers]:
    """Boxes above and below the image, and beside it, by the link that fills them and the tile."""
    above, beside = {}, {}
    height, width = storage.rows.size, storage.columns.size
    for tile in TILES:
        rows = storage.rows.window[row_of(tile)]
        columns = storage.columns.window[column_of(tile)]
        above[_SOUTH, tile] = _Box((rows[0], min(rows[1], 0)), columns)
        above[_NORTH, tile] = _Box((max(rows[0], height), rows[1]), columns)
        beside[_EAST, tile] = _Box(rows, (columns[0], min(columns[1], 0)))
        beside[_WEST, tile] = _Box(rows, (max(columns[0], width), columns[1]))
    return _not_empty(above), _not_empty(beside)


def _not_empty(boxes: _Transfers) -> _Transfers:
    return {key: box for key, box in boxes.items() if not box.is_empty}


def _filled(storage: Storage, link: str, tile: int, box: _Box) -> Values:
    constant = int.from_bytes(bytes([storage.outside]) * WORD_BYTES, "little")
    immediate: Values = {"immediate_valid": 1, "immediate": constant}
    return merged(_walk(storage, link, "narrow_write", tile, box), immediate)
