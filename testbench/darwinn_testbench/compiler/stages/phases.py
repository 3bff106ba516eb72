"""Phases: what the chip does from one barrier to the next, and the parameters that it needs for it.

Parameters go to areas of wide memory. Two areas take turns, so that those of the next phase can
come in while the tensor unit works with those of this one; a phase that needs more has all of it
to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from darwinn_sim import chip

from darwinn_testbench.compiler.assembler import Assembler
from darwinn_testbench.compiler.program import PACKED_ROW
from darwinn_testbench.compiler.stages.rows import Rows


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of parameters for all tiles in the set ``tiles``, from row ``row`` of wide memory."""

    tiles: int
    row: int
    rows: Rows


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
    """

    operation: int
    what: str
    emit: Callable[[Assembler], None]
    load: Sequence[Piece] = ()
    uses_ring: bool = False
    alone: bool = False


class Areas:
    """Areas of wide memory for parameters, given out in turn.

    ``spread`` is the first row of a third area, of ``spread_rows``, into which a phase unpacks
    parameters and in which rows from other tiles arrive.
    """

    def __init__(self, rows: int = PACKED_ROW) -> None:
        self.rows = rows
        self.area_rows = rows * 3 // 10
        self.spread = 2 * self.area_rows
        self.spread_rows = rows - self.spread
        self._turn = 0

    def take(self, rows: int) -> tuple[int, bool]:
        """First row of an area for ``rows`` rows, and whether it is all of them.

        Raises:
            ValueError: there is no such area.
        """
        if rows > self.rows:
            raise ValueError(f"{rows} rows of parameters, of {self.rows}")
        if rows > self.area_rows:
            return 0, True
        self._turn ^= 1
        return self._turn * self.area_rows, False


MOST_ROWS = PACKED_ROW
"""Rows that an area has at most."""
ALL_TILES = range(chip.TILES)
