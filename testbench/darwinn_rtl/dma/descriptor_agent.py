"""Agent of the descriptor port: it stands in for the scalar core."""

from __future__ import annotations

from cocotb.triggers import RisingEdge
from pyuvm import ConfigDB, uvm_driver, uvm_sequence_item

from darwinn_rtl.bench import Bench
from darwinn_rtl.dma.descriptor_model import Descriptor
from darwinn_rtl.environment import SequencedAgent


class DescriptorItem(uvm_sequence_item):
    """A descriptor to issue, ``gap`` cycles after the one before."""

    def __init__(self, descriptor: Descriptor, gap: int = 0) -> None:
        super().__init__("descriptor")
        self.descriptor = descriptor
        self.gap = gap


class DescriptorDriver(uvm_driver):
    """Offers one descriptor after another; a reset withdraws the one on offer."""

    def build_phase(self) -> None:
        """Nothing is on offer."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.bench.dut.core2dma_descriptor_valid.value = 0
        self.bench.dut.core2queue_chunk_valid.value = 0

    async def run_phase(self) -> None:
        """Take items from the sequencer for ever."""
        while True:
            item = await self.seq_item_port.get_next_item()
            await self.bench.cycles(item.gap)
            await self._offer(item.descriptor)
            self.seq_item_port.item_done()

    async def _offer(self, descriptor: Descriptor) -> None:
        dut = self.bench.dut
        edge = RisingEdge(dut.clk)
        dut.core2dma_descriptor_fence.value = int(descriptor.fence)
        dut.core2dma_descriptor_tag.value = descriptor.tag
        dut.core2dma_descriptor_size.value = descriptor.size
        dut.core2dma_descriptor_address.value = descriptor.address
        dut.core2dma_descriptor_valid.value = int(not self.bench.in_reset)
        while not self.bench.in_reset:
            await edge
            if int(dut.core2dma_descriptor_ready.value):
                break
        dut.core2dma_descriptor_valid.value = 0


class DescriptorAgent(SequencedAgent):
    """Sequencer and driver of the descriptor port."""

    driver_class = DescriptorDriver
