"""Fills the windows around the tiles' own pixels: from neighbours over the mesh, or with padding.

First rows travel north and south, then columns east and west, with the rows that have come before
on them: so corners arrive. An element whose owner is several tiles away takes as many steps.
Pixels outside of the image become zero points.
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
    steps: list[Callable[[Assembler], None]] = []
    vertical = list(_vertical(storage))
    horizontal = list(_horizontal(storage, with_padding=any(vertical)))
    for group in (*vertical, *horizontal):
        if group:
            steps.append(_writer(storage, group))
    padding = _padding(storage)
    if padding:
        fill = _filler(storage, padding)
        if steps:
            # Padding depends on nothing, and nothing else writes there.
            first = steps[0]
            steps[0] = lambda program: (fill(program), first(program))[1]
        else:
            steps.append(fill)
    return steps


_Transfers = dict[tuple[str, int], _Box]
"""What a tile (the receiver) gets over a link."""


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


def _horizontal(storage: Storage, *, with_padding: bool) -> Iterator[_Transfers]:
    """``with_padding``: rows above and below the image travel, too, as far as both sides have them.
    They are the same there, and so tiles share more instructions."""
    for distance in range(1, chip.GRID_COLUMNS):
        found: _Transfers = {}
        for tile in TILES:
            rows = storage.rows.window[row_of(tile)]
            if not with_padding:
                rows = common(rows, (0, storage.rows.size))
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


def _writer(storage: Storage, transfers: _Transfers) -> Callable[[Assembler], None]:
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
            write(program, link, dict(sorted(by_tile.items())))

    return emit


def _walk(storage: Storage, link: str, name: str, tile: int, box: _Box) -> Values:
    words = length(box.columns) * storage.image.pitch // WORD_BYTES
    base = storage.word(tile, box.rows[0], box.columns[0])
    pitch = storage.row_pitch // WORD_BYTES
    return walk(link, name, base, [(words, 1), (length(box.rows), pitch)])


def _padding(storage: Storage) -> dict[tuple[str, int], _Box]:
    """Boxes outside of the image, by the unit that fills them and the tile."""
    found: dict[tuple[str, int], _Box] = {}
    height, width = storage.rows.size, storage.columns.size
    for tile in TILES:
        rows = storage.rows.window[row_of(tile)]
        columns = storage.columns.window[column_of(tile)]
        inside = common(rows, (0, height))
        boxes = {
            _SOUTH: _Box((rows[0], min(rows[1], 0)), columns),
            _NORTH: _Box((max(rows[0], height), rows[1]), columns),
            _EAST: _Box(inside, (columns[0], min(columns[1], 0))),
            _WEST: _Box(inside, (max(columns[0], width), columns[1])),
        }
        found |= {(link, tile): box for link, box in boxes.items() if not box.is_empty}
    return found


def _filler(storage: Storage, padding: dict[tuple[str, int], _Box]) -> Callable[[Assembler], None]:
    constant = int.from_bytes(bytes([storage.outside]) * WORD_BYTES, "little")
    immediate: Values = {"immediate_valid": 1, "immediate": constant}

    def emit(program: Assembler) -> None:
        for link in (_SOUTH, _NORTH, _EAST, _WEST):
            write(
                program,
                link,
                {
                    tile: merged(_walk(storage, link, "narrow_write", tile, box), immediate)
                    for (name, tile), box in padding.items()
                    if name == link
                },
            )

    return emit
