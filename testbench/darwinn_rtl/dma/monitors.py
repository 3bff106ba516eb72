"""Passive monitors of the descriptors that the DMA engine begins and completes, and of its
interrupts."""

from __future__ import annotations

from dataclasses import dataclass

from pyuvm import ConfigDB, uvm_analysis_port, uvm_monitor

from darwinn_rtl.bench import Bench
from darwinn_rtl.dma.descriptor_model import Descriptor, Outcome
from darwinn_rtl.environment import EventMonitor


@dataclass(frozen=True)
class Accepted:
    """The engine has taken a descriptor into its queue."""

    cycle: int
    descriptor: Descriptor


@dataclass(frozen=True)
class Started:
    """A descriptor has left the queue: begun, passed or refused."""

    cycle: int
    index: int
    outcome: Outcome


@dataclass(frozen=True)
class Done:
    """A descriptor has been completed; ``event`` is the number of the completion event."""

    cycle: int
    index: int
    event: int


@dataclass(frozen=True)
class Raised:
    """The engine has raised a host interrupt."""

    cycle: int
    number: int


DmaEvent = Accepted | Started | Done | Raised


class DmaMonitor(EventMonitor):
    """Announces the engine's events."""

    def watch(self) -> None:
        """Announce the events of this cycle."""
        dut = self.bench.dut
        if dut.core2dma_descriptor_valid.value and dut.core2dma_descriptor_ready.value:
            self.announce(Accepted(self.bench.cycle, self._descriptor()))
        if dut.dma2monitor_start_valid.value:
            index = int(dut.dma2monitor_start_index.value)
            outcome = Outcome(int(dut.dma2monitor_start_outcome.value))
            self.announce(Started(self.bench.cycle, index, outcome))
        if dut.dma2interrupts_raise_valid.value:
            number = int(dut.dma2interrupts_raise_data.value)
            self.announce(Raised(self.bench.cycle, number))
        done = int(dut.dma2monitor_done_valid.value)
        if done:
            indices = int(dut.dma2monitor_done_index.value)
            for event in range(done.bit_length()):
                if done >> event & 1:
                    index = indices >> 32 * event & 0xFFFF_FFFF
                    self.announce(Done(self.bench.cycle, index, event))

    def _descriptor(self) -> Descriptor:
        dut = self.bench.dut
        return Descriptor(
            int(dut.core2dma_descriptor_tag.value),
            int(dut.core2dma_descriptor_address.value),
            int(dut.core2dma_descriptor_size.value),
            bool(dut.core2dma_descriptor_fence.value),
        )


@dataclass(frozen=True)
class InterruptLevel:
    """The interrupt lines to the host have changed: host 0 to 3, instruction queue, fatal."""

    cycle: int
    lines: int


class InterruptMonitor(uvm_monitor):
    """Announces every change of the interrupt lines on ``levels``."""

    def build_phase(self) -> None:
        """Create the port."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.levels = uvm_analysis_port("levels", self)
        self.lines = 0

    async def run_phase(self) -> None:
        """Wait for changes."""
        signal = self.bench.dut.dma2host_interrupt
        while True:
            await signal.value_change
            lines = int(signal.value)
            if lines != self.lines and not self.bench.in_reset:
                self.bench.note(f"interrupt lines {lines:06b}")
                self.levels.write(InterruptLevel(self.bench.cycle, lines))
            self.lines = lines
