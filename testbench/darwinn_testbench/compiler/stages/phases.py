"""Phases: what the chip does from one barrier to the next, and the parameters that it needs for it.

Parameters go to areas of wide memory. Two areas take turns, so that those of the next phase can
come in while the tensor unit works with those of this one; a phase that needs more has all of it
to itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from darwinn_testbench.compiler.assembler import Assembler
from darwinn_testbench.compiler.program import PACKED_ROW
from darwinn_testbench.compiler.stages.rows import Rows


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of parameters for all tiles in the set ``tiles``, from row ``row`` of wide memory."""

    tiles: int
    row: int
    rows: Rows

    @cached_property
    def key(self) -> bytes:
        """What tells its bytes from others."""
        return hashlib.sha256(repr(self.rows.shape).encode() + self.rows.tobytes()).digest()


@dataclass(frozen=True)
class Segment:
    """Rows of a piece that a tile keeps: ``count`` of them, from ``first`` of the piece on."""

    tile: int
    row: int
    first: int
    count: int


@dataclass(frozen=True, eq=False)
class Phase:
    """What happens from one barrier to the next.

    Attributes:
        operation: number of the operator in the network; -1 of what belongs to none.
        what: in a word.
        emit: writes the instructions.
        load: parameters that must be there.
        uses_ring: rows travel on channel A, on which parameters come in, too.
        alone: it uses all of wide memory.
        receives: it takes what the host sends of an input.
        early: it needs nothing but its parameters, and no link of the mesh.
        on_mesh: it uses links of the mesh alone.
        cycles: how long it takes, about; 0 if that is not known.
    """

    operation: int
    what: str
    emit: Callable[[Assembler], None]
    load: Sequence[Piece] = ()
    uses_ring: bool = False
    alone: bool = False
    receives: bool = False
    early: bool = False
    on_mesh: bool = False
    cycles: int = 0


class Areas:
    """Areas of wide memory: for parameters that stay, and for those that come and go.

    Below row ``kept`` is what stays. Above it are two halves, given out in turn. A phase without
    parameters of its own may use the half that was given out last, whose phase is over. Where
    several programs share the memory, ``own`` are the first row and the row behind the last one of
    what stays of this program.
    """

    def __init__(self, kept: int = 0, own: tuple[int, int] | None = None) -> None:
        self.kept = kept
        self.own = (0, kept) if own is None else own
        self.rows = PACKED_ROW - kept
        self.half_rows = self.rows // 2
        self.least = 0
        """The most rows that a phase asked for at least."""
        self.residents: list[tuple[int, Piece]] = []
        """What stays where it is used: the row, and the piece."""
        self.to_settle: list[int] = []
        """Rows of a tile that were asked for to stay where they are used, by layer."""
        self._turn = 0
        self._resident_rows = 0

    def take(self, rows: int, least: int = 0) -> tuple[int, bool]:
        """First row of an area for ``rows`` rows, and whether it is all of them.

        Raises:
            ValueError: there is no such area.
        """
        self.least = max(self.least, least or rows)
        if rows > self.rows:
            raise ValueError(f"{rows} rows of parameters, of {self.rows}")
        if rows > self.half_rows:
            return self.kept, True
        self._turn ^= 1
        return self._half(), False

    def reuse(self, rows: int) -> tuple[int, bool]:
        """The same for a phase without parameters of its own.

        Raises:
            ValueError: there is no such area.
        """
        if rows > self.rows:
            raise ValueError(f"{rows} rows from other tiles, of {self.rows}")
        return (self.kept, True) if rows > self.half_rows else (self._half(), False)

    def _half(self) -> int:
        return self.kept + self._turn * self.half_rows

    def settle(self, rows: int) -> int | None:
        """First of ``rows`` rows, the same on all tiles, that stay; None if there is no room."""
        self.to_settle.append(rows)
        if not self.has_room(rows):
            return None
        self._resident_rows += rows
        return self.own[0] + self._resident_rows - rows

    def has_room(self, rows: int) -> bool:
        """Whether so many rows may stay where they are used."""
        return self.own[0] + self._resident_rows + rows <= self.own[1]

    def reside(self, pieces: Sequence[Piece]) -> None:
        """Note pieces that stay where they are used."""
        self.residents += [(piece.row, piece) for piece in pieces]
