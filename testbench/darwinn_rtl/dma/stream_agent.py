"""Agents of the byte streams: sinks that stand in for the units, and the source of output bytes."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from cocotb.triggers import RisingEdge
from darwinn_sim.isa.codes import DescriptorTag
from pyuvm import ConfigDB, uvm_analysis_port, uvm_component

from darwinn_rtl.bench import Bench
from darwinn_rtl.dma.descriptor_model import READ_TAGS
from darwinn_rtl.dma.memory_agent import pauses

STREAM_PORTS = {
    DescriptorTag.INSTRUCTIONS: "dma2core_instruction",
    DescriptorTag.INPUT: "dma2input_activation",
    DescriptorTag.PARAMETERS: "dma2input_parameter",
}
"""Prefix of the ports of each read stream."""


@dataclass(frozen=True)
class Beat:
    """Bytes that a stream delivered in one cycle."""

    tag: DescriptorTag
    data: bytes


class StreamSinks(uvm_component):
    """Takes the bytes of all read streams; ``beats`` announces them."""

    def build_phase(self) -> None:
        """Find the ports; nothing is taken before the pressure is set."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.beats = uvm_analysis_port("beats", self)
        self._ports = [(tag, *self._handles(STREAM_PORTS[tag])) for tag in READ_TAGS]
        self.set_pressure(0.0)

    def _handles(self, prefix: str) -> tuple[Any, ...]:
        names = ("valid", "ready", "data", "count")
        return tuple(getattr(self.bench.dut, f"{prefix}_{name}") for name in names)

    def set_pressure(self, share: float) -> None:
        """Do not take in a ``share`` of the cycles, each stream in its own pattern."""
        self._free = not share
        seeds = self.bench.random
        self._patterns = [pauses(Random(seeds.random()), share) for _ in READ_TAGS]
        for _, _, ready, _, _ in self._ports:
            ready.value = 1

    async def run_phase(self) -> None:
        """Take the beats that are there."""
        edge = RisingEdge(self.bench.clk)
        while True:
            await edge
            if self.bench.in_reset:
                continue
            for place, (tag, valid, ready, data, count) in enumerate(self._ports):
                if valid.value and ready.value:
                    size = int(count.value)
                    word = int(data.value)
                    whole = word.to_bytes(len(data) // 8, "little")
                    assert size, f"{tag.name}: a beat without bytes"
                    assert not any(whole[size:]), f"{tag.name}: bytes behind the count are not 0"
                    self.beats.write(Beat(tag, whole[:size]))
                if not self._free:
                    ready.value = int(not next(self._patterns[place]))


class OutputSource(uvm_component):
    """Gives output bytes in beats of random length; the unit's place in the output stream."""

    def build_phase(self) -> None:
        """Nothing is on offer."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.bench.dut.outfeed2dma_output_valid.value = 0
        self.pending = bytearray()
        self.set_pressure(0.0)

    def set_pressure(self, share: float) -> None:
        """Offer nothing in a ``share`` of the cycles; without, whole words are offered."""
        self._whole = not share
        self._pattern = pauses(Random(self.bench.random.random()), share)

    async def run_phase(self) -> None:
        """Offer what is pending."""
        dut = self.bench.dut
        edge = RisingEdge(dut.clk)
        word = len(dut.outfeed2dma_output_data) // 8
        offered = 0
        while True:
            await edge
            if self.bench.in_reset:
                offered = 0
                dut.outfeed2dma_output_valid.value = 0
                continue
            if offered and int(dut.outfeed2dma_output_ready.value):
                del self.pending[:offered]
                offered = 0
            if offered:
                continue
            if self.pending and not next(self._pattern):
                most = min(word, len(self.pending))
                offered = most if self._whole else self.bench.random.randint(1, most)
                data = int.from_bytes(self.pending[:offered], "little")
                dut.outfeed2dma_output_data.value = data
                dut.outfeed2dma_output_count.value = offered
            dut.outfeed2dma_output_valid.value = int(bool(offered))
