"""Which parameters stay on the chip, and on which tile.

A tile keeps the parameters that only it needs. One tile keeps those that all tiles need, and
broadcasts them when they are used. Pieces fill up tile after tile; one may go on on the next tile.
Where not all of them have room, those whose rows are short come from the host each time: a row of
wide memory is taken by each row, however short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from darwinn_sim import chip

from darwinn_testbench.compiler.parameters import Block
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece, Segment
from darwinn_testbench.compiler.stages.rows import Rows


@dataclass(eq=False)
class Cache:
    """What stays on the chip.

    ``segments`` has those of each broadcast piece that is kept, by its bytes: the same ones may be
    needed several times. ``blocks`` are all rows, by tile and row, as the parameter-caching
    executable loads them.
    """

    segments: dict[bytes, tuple[Segment, ...]] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing stays."""
        return not self.blocks

    def segments_of(self, piece: Piece) -> tuple[Segment, ...] | None:
        """Where a piece is kept; None if the host sends it."""
        return self.segments.get(piece.key)

    @property
    def bytes(self) -> int:
        """Bytes of all rows that stay."""
        return sum(block.rows.size for block in self.blocks)


def rows_to_keep(phases: Sequence[Phase], areas: Areas, most: int) -> int:
    """Rows of each tile that all parameters would take, of ``most`` that there are.

    Those that are to stay where they are used have the same rows on all tiles, of which some may
    hold less: layer after layer that has room.
    """
    broadcast = sum(len(piece.rows) for piece in _pieces(phases).values())
    resident = sum(len(piece.rows) for _, piece in areas.residents)
    side_by_side = 0
    for rows in areas.to_settle:
        side_by_side += rows if side_by_side + rows <= most else 0
    return max(-(-(broadcast + resident) // chip.TILES), side_by_side)


def cache(phases: Sequence[Phase], areas: Areas) -> Cache:
    """Decide what stays, in the rows ``areas.own`` of each tile."""
    found = Cache()
    free = _Free(*areas.own)
    for row, piece in areas.residents:
        tile = piece.tiles.bit_length() - 1
        found.blocks.append(_block(tile, row, piece))
        free.occupy(tile, row, len(piece.rows))
    pieces = _pieces(phases)
    # What inputs need first: the host cannot send it while it sends them.
    order = sorted(pieces, key=lambda key: (pieces[key].operation >= 0, -pieces[key].rows.shape[1]))
    for key in order:
        rows = pieces[key].rows
        segments = free.take(len(rows))
        if segments is None:
            continue
        found.segments[key] = segments
        for segment in segments:
            part = rows[segment.first : segment.first + segment.count]
            found.blocks.append(Block(segment.tile, segment.row, chip.LANES, part))
    return found


@dataclass(frozen=True, eq=False)
class _Wanted:
    """Rows that an operation needs, -1 of what belongs to none."""

    operation: int
    rows: Rows


def _pieces(phases: Sequence[Phase]) -> dict[bytes, _Wanted]:
    """What is broadcast, each once, for who needs it first."""
    found: dict[bytes, _Wanted] = {}
    for phase in phases:
        for piece in phase.load:
            found.setdefault(piece.key, _Wanted(phase.operation, piece.rows))
    return found


def _block(tile: int, row: int, piece: Piece) -> Block:
    return Block(tile, row, chip.LANES, piece.rows)


class _Free:
    """Rows of each tile that nothing has yet."""

    def __init__(self, first: int, behind: int) -> None:
        self._gaps = {
            tile: [(first, behind)] if behind > first else [] for tile in range(chip.TILES)
        }

    def occupy(self, tile: int, first: int, count: int) -> None:
        """Take certain rows."""
        gaps = []
        for low, high in self._gaps[tile]:
            gaps += [(low, min(high, first)), (max(low, first + count), high)]
        self._gaps[tile] = [(low, high) for low, high in gaps if high > low]

    def take(self, rows: int) -> tuple[Segment, ...] | None:
        """Take any rows; None if there are not as many."""
        if sum(high - low for gaps in self._gaps.values() for low, high in gaps) < rows:
            return None
        segments = []
        done = 0
        while done < rows:
            tile = next(tile for tile, gaps in self._gaps.items() if gaps)
            low, high = self._gaps[tile][0]
            count = min(high - low, rows - done)
            segments.append(Segment(tile, low, done, count))
            self.occupy(tile, low, count)
            done += count
        return tuple(segments)
