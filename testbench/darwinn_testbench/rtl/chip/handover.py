"""The scalar core alone: it runs up to each instruction that something else has to execute.

The units may then be another implementation, such as the RTL. The core's own instructions are
executed by the same kernels as ever.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from darwinn_sim import chip
from darwinn_sim.isa.codes import ScalarUnit
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.kernel import state
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.units import scalar_core
from darwinn_sim.units.tables import Tables
from numpy.typing import NDArray

_POP = BY_NAME["PopInput"].opcode
_FENCE = BY_NAME["ScalarFence"].opcode
_FOR_OTHERS = tuple(
    BY_NAME[name].opcode
    for name in ("PopInput", "RingInfeed", "RingOutfeed", "ScalarFence", "TileFence")
)


@dataclass(frozen=True)
class Handover:
    """An instruction that the scalar core does not execute itself.

    ``tiles`` has a bit for each tile that takes it (0: it is none of theirs), ``base`` is what
    replaces a base address, None: nothing does. It stands at bundles ``begin`` to ``end`` of its
    chunk.
    """

    opcode: int
    chunk: int
    begin: int
    end: int
    tiles: int
    base: int | None
    dma_fence: bool


class Core:
    """The scalar core of ``core`` (a record of ``state.CORE``) on the tables of ``program``."""

    def __init__(self, core: NDArray[np.void], program: LoweredProgram) -> None:
        self._core = core
        self._program = program
        self._tiles = state.new_tiles()
        tables = program.tables
        others = np.isin(tables.opcode, _FOR_OTHERS) | (tables.unit >= 0)
        # To the kernel such an instruction is a PopInput whose queue is full: it stops before it.
        self._tables: Tables = tables._replace(
            opcode=np.where(others, _POP, tables.opcode), row=np.where(others, 0, tables.row)
        )
        self._for_others = others
        core["units"]["queue_length"][[ScalarUnit.PARAMETER_POP, ScalarUnit.AV_POP]] = (
            chip.UNIT_QUEUE
        )

    def run(self) -> int:
        """Execute until something stops the core; a reason of ``scalar_core``."""
        return scalar_core.run(self._core, self._tiles, self._tables)

    def next(self) -> Handover | None:
        """The instruction before which the core stands, if it is for others to execute."""
        tables, pc = self._program.tables, int(self._core["pc"])
        instruction = int(tables.at[pc])
        if not self._for_others[instruction]:
            return None
        chunk, begin = self._program.locate(pc)
        opcode, row = int(tables.opcode[instruction]), int(tables.row[instruction])
        where = tables.dispatch[instruction]
        registers = self._core["registers"]
        tiles = int(where["tiles"])
        if where["tiles_override"]:
            tiles = int(registers[where["tiles_register"]]) & 0xFFFF
        return Handover(
            opcode=opcode,
            chunk=chunk,
            begin=begin,
            end=begin + self._following() - pc,
            tiles=tiles,
            base=int(registers[where["base_register"]]) if where["base_override"] else None,
            dma_fence=opcode == _FENCE and scalar_core._is_dma_fence(tables.scalar_fence[row]),
        )

    def skip(self) -> None:
        """Go on behind the instruction that was handed over."""
        scalar_core._advance(self._core, self._following())
        self._core["steps"] += 1
        self._core["work"] += 1

    def _following(self) -> int:
        return scalar_core.following(self._program.tables, int(self._core["pc"]))
