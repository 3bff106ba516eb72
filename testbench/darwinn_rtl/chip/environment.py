"""The pyuvm environment of the whole chip, from its registers to its tiles.

Every part is made by the factory: a test replaces a sequence, a checker or a monitor by
``uvm_factory().set_type_override_by_type`` before it is built (docs/rtl-own-test.md, "With pyuvm").
"""

from __future__ import annotations

from typing import Any, Final

from darwinn_sim import chip
from pyuvm import ConfigDB, uvm_env

from darwinn_rtl.bench import Bench
from darwinn_rtl.build import Design
from darwinn_rtl.chip.host_agent import HostAgent, HostSequence, perform
from darwinn_rtl.chip.monitors import (
    FailureMonitor,
    RingMonitor,
    RowCarried,
    TileMonitors,
)
from darwinn_rtl.chip.player import MEMORY_ERROR, REFUSED, TILE_MODELS
from darwinn_rtl.chip.scoreboard import ChipScoreboard, InterruptScoreboard
from darwinn_rtl.dma.descriptor_model import Outcome
from darwinn_rtl.dma.monitors import DmaEvent, DmaMonitor, InterruptMonitor, Started
from darwinn_rtl.environment import EnvironmentTest, Subscriber

DESIGN: Final = Design(
    "chip_player",
    {"Tiles": chip.TILES},
    registers=True,
    c_sources=("host_memory.cpp", "chip_memory.cpp", "tile_models.cpp"),
    blocks=("tile",),
    defines=(TILE_MODELS,),
    seen=(("ring_bus", "row"),),
)
"""The whole chip as the fast player has it, to be driven by cocotb."""


class ChipEnvironment(uvm_env):
    """Everything around the chip: host, scalar core, memory, monitors, scoreboards."""

    def build_phase(self) -> None:
        """Create the parts."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.host = HostAgent.create("host", self)
        self.dma = DmaMonitor.create("dma", self)
        self.interrupts = InterruptMonitor.create("interrupts", self)
        self.ring = RingMonitor.create("ring", self)
        self.tiles = TileMonitors.create("tiles", self)
        self.failures = FailureMonitor.create("failures", self)
        self.scoreboard = ChipScoreboard.create("scoreboard", self)
        self.lines = InterruptScoreboard.create("lines", self)
        self._dma_events = Subscriber("dma_events", self, self._dma_event)
        self._rows = Subscriber("rows", self, self._row)

    def connect_phase(self) -> None:
        """Connect the monitors to their listeners."""
        host, board = self.host, self.scoreboard
        host.submitted.connect(board.submitted.analysis_export)
        host.done.connect(board.done.analysis_export)
        host.resets.connect(board.resets.analysis_export)
        host.resets.connect(self.lines.resets.analysis_export)
        host.registers.driver.accesses.connect(self.lines.accesses.analysis_export)
        self.dma.events.connect(self.lines.events.analysis_export)
        self.dma.events.connect(self._dma_events.analysis_export)
        self.interrupts.levels.connect(self.lines.levels.analysis_export)
        self.ring.rows.connect(board.carried.analysis_export)
        self.ring.rows.connect(self._rows.analysis_export)
        for monitor in self.tiles.tiles:
            monitor.work.connect(board.work.analysis_export)
        self.failures.told = lambda: self.host.player.events.append((MEMORY_ERROR, 0))

    def _dma_event(self, event: DmaEvent) -> None:
        if isinstance(event, Started) and event.outcome is not Outcome.STARTED:
            self.host.player.events.append((REFUSED, event.index))

    def _row(self, _: RowCarried) -> None:
        self.host.player.rows += 1

    async def do(self, kind: type[HostSequence], **settings: Any) -> Any:
        """Run a sequence of the host, made by the factory, with these settings; return it when it
        is done."""
        return await perform(self.host, kind, **settings)


class ChipTest(EnvironmentTest):
    """A test of the whole chip; ``scenario`` says what its host does."""

    environment_class = ChipEnvironment
