"""Passive monitors of a chip in RTL: rows on the ring, work of the tiles, failed transfers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cocotb.triggers import RisingEdge
from darwinn_sim import chip
from pyuvm import ConfigDB, uvm_analysis_port, uvm_component, uvm_monitor

from darwinn_rtl.bench import Bench
from darwinn_rtl.tile.bench import RingRow
from darwinn_rtl.tile.environment import ring_row


@dataclass(frozen=True)
class RowCarried:
    """The ring has carried a row to all its targets."""

    cycle: int
    row: RingRow


class RingMonitor(uvm_monitor):
    """Announces on ``rows`` every row that arrives."""

    def build_phase(self) -> None:
        """Create the port."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.rows = uvm_analysis_port("rows", self)

    async def run_phase(self) -> None:
        """Wait for rows."""
        dut = self.bench.dut
        arrives = RisingEdge(dut.ring2monitor_row_valid)
        row = dut.chip.ring.row
        while True:
            await arrives
            if not self.bench.in_reset:
                carried = RowCarried(self.bench.cycle, ring_row(int(row.value)))
                self.bench.note(
                    f"row of {len(carried.row.words)} words to {carried.row.targets:#x}"
                )
                self.rows.write(carried)


@dataclass(frozen=True)
class UnitWorked:
    """A unit of a tile (numbered as in ``TileFence.wait_idle``) worked from one cycle to
    another."""

    tile: int
    unit: int
    since: int
    cycle: int


class TileMonitor(uvm_monitor):
    """Announces on ``work`` when the units of tile ``number`` work."""

    number = 0

    def build_phase(self) -> None:
        """Nothing works."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.work = uvm_analysis_port("work", self)
        self._busy: dict[int, int] = {}

    def changed(self, idle: int) -> None:
        """The idle bits of the tile's units have changed."""
        for unit in range(chip.TILE_UNITS):
            if not idle >> unit & 1:
                self._busy.setdefault(unit, self.bench.cycle)
            elif unit in self._busy:
                since = self._busy.pop(unit)
                self.work.write(UnitWorked(self.number, unit, since, self.bench.cycle))


class TileMonitors(uvm_component):
    """A monitor for each tile; it wakes when something changes in the tile."""

    def build_phase(self) -> None:
        """Create them."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.tiles: list[TileMonitor] = []
        for number in range(chip.TILES):
            monitor = TileMonitor.create(f"tile_{number}", self)
            monitor.number = number
            self.tiles.append(monitor)

    async def run_phase(self) -> None:
        """Wait for changes."""
        signal = self.bench.dut.tiles2monitor_units
        every = (1 << chip.TILE_UNITS) - 1
        before = [every] * chip.TILES
        while True:
            await signal.value_change
            packed = int(signal.value)
            for number, monitor in enumerate(self.tiles):
                idle = every if self.bench.in_reset else packed >> chip.TILE_UNITS * number & every
                if idle != before[number]:
                    before[number] = idle
                    monitor.changed(idle)


class FailureMonitor(uvm_monitor):
    """Reports to ``told`` every access of the chip that host memory answers with an error."""

    def build_phase(self) -> None:
        """Nobody is told."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.told: Callable[[], Any] = lambda: None

    async def run_phase(self) -> None:
        """Wait for errors."""
        failed = RisingEdge(self.bench.dut.memory2monitor_error_valid)
        while True:
            await failed
            if not self.bench.in_reset:
                self.told()
