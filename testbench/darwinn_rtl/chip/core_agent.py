"""Agent of the scalar core's side of a chip: the core's requests to the RTL, one item after
another.

An item takes only the cycles that the RTL lets it wait. The next item is offered in the cycle after
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cocotb.triggers import RisingEdge
from pyuvm import ConfigDB, uvm_driver, uvm_sequence, uvm_sequence_item

from darwinn_rtl.bench import Bench, WaitTimeout
from darwinn_rtl.environment import SequencedAgent

LONGEST_WAIT = 1 << 19
"""Bound of a wait, in cycles: a layer of parameters may take most of it."""

_OUTPUT_DONE = 3  # completion event of outputs and interrupts
_INTERRUPT_0 = 3
"""Descriptors from this tag on complete as outputs do."""


class ChipReset(Exception):
    """The chip was reset while something waited for it."""


class CoreItem(uvm_sequence_item):
    """An action of the scalar core; ``error`` says why it did not end."""

    def __init__(self, what: str) -> None:
        super().__init__("core_item")
        self.what = what
        self.error: Exception | None = None

    async def perform(self, driver: CoreDriver) -> None:
        """Do it; raises ``ChipReset`` and ``WaitTimeout``."""
        raise NotImplementedError


class Offer(CoreItem):
    """Offer ``payload`` on a channel (the common part of its signals' names) until it is taken.

    ``answer`` is the value of the signal of that name at that moment.
    """

    def __init__(
        self, what: str, channel: str, payload: Mapping[str, int], answer: str = ""
    ) -> None:
        super().__init__(what)
        self._channel, self._payload, self._answer = channel, payload, answer
        self.answer = 0

    async def perform(self, driver: CoreDriver) -> None:
        """Offer it."""
        signals, dut = self._channel, driver.bench.dut
        for name, value in self._payload.items():
            getattr(dut, f"{signals}_{name}").value = value
        valid, ready = getattr(dut, f"{signals}_valid"), getattr(dut, f"{signals}_ready")
        valid.value = 1
        try:
            await driver.until(lambda: bool(ready.value), self.what)
            if self._answer:
                self.answer = int(getattr(dut, self._answer).value)
        finally:
            valid.value = 0


class Descriptor(Offer):
    """Give a descriptor, or a fence, to the DMA engine."""

    def __init__(self, tag: int, address: int, size: int, *, fence: bool) -> None:
        what = "a fence" if fence else f"a descriptor of tag {tag}"
        fields = {"fence": int(fence), "tag": tag, "size": size, "address": address}
        super().__init__(f"{what} to be taken", "core2dma_descriptor", fields)
        self._leaves = not fence and tag >= _INTERRUPT_0

    async def perform(self, driver: CoreDriver) -> None:
        """Offer it; count it if it leaves the chip."""
        driver.outputs_issued += self._leaves
        await super().perform(driver)


class Fetch(CoreItem):
    """Take so many bytes of the instruction stream, into ``data``."""

    def __init__(self, size: int) -> None:
        super().__init__(f"{size} bytes of instructions")
        self._size = size
        self.data = b""

    async def perform(self, driver: CoreDriver) -> None:
        """Wait for them."""
        await driver.until(lambda: len(driver.instructions) >= self._size, self.what)
        self.data = bytes(driver.instructions[: self._size])
        del driver.instructions[: self._size]


class Settle(CoreItem):
    """Wait until all units are idle, and outputs and interrupts have left."""

    def __init__(self) -> None:
        super().__init__("units, tiles and outputs to be done")

    async def perform(self, driver: CoreDriver) -> None:
        """Wait for it."""
        dut = driver.bench.dut
        await driver.until(
            lambda: (
                driver.outputs_issued == driver.outputs_done
                and bool(dut.units2monitor_all_idle.value)
                and bool(dut.queue2monitor_idle.value)
            ),
            self.what,
        )


class CoreDriver(uvm_driver):
    """Performs items, and sees every cycle that passes meanwhile.

    ``instructions`` are the bytes of the instruction stream that no item has taken.
    """

    def build_phase(self) -> None:
        """Nothing is on offer."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        for channel in (
            "core2queue_chunk",
            "core2units_instruction",
            "core2dma_descriptor",
            "core2output_word",
        ):
            getattr(self.bench.dut, f"{channel}_valid").value = 0
        self.forget()

    def forget(self) -> None:
        """As after a reset."""
        self.instructions = bytearray()
        self.outputs_issued = self.outputs_done = 0

    async def run_phase(self) -> None:
        """Take items from the sequencer for ever."""
        while True:
            item: CoreItem = await self.seq_item_port.get_next_item()
            try:
                await item.perform(self)
            except (ChipReset, WaitTimeout) as error:
                item.error = error
            self.seq_item_port.item_done()

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Continue to the end of the first cycle in which ``condition()`` is true.

        Raises ``ChipReset``, and ``WaitTimeout`` after ``LONGEST_WAIT`` cycles.
        """
        edge = RisingEdge(self.bench.clk)
        for _ in range(LONGEST_WAIT):
            await edge
            if self.bench.in_reset:
                raise ChipReset
            self._see()
            if condition():
                return
        latest = "\n  ".join(self.bench.events)
        raise WaitTimeout(
            f"waited {LONGEST_WAIT} cycles for {what} (seed {self.bench.seed}); last events:\n"
            f"  {latest}"
        )

    def _see(self) -> None:
        dut = self.bench.dut
        if dut.dma2core_instruction_valid.value:
            data = int(dut.dma2core_instruction_data.value)
            word = data.to_bytes(len(dut.dma2core_instruction_data) // 8, "little")
            self.instructions += word[: int(dut.dma2core_instruction_count.value)]
        self.outputs_done += int(dut.dma2monitor_done_valid.value) >> _OUTPUT_DONE & 1


class OneItem(uvm_sequence):
    """A sequence of a single item."""

    def __init__(self, item: uvm_sequence_item) -> None:
        super().__init__("one_item")
        self._item = item

    async def body(self) -> None:
        """Do it."""
        await self.start_item(self._item)
        await self.finish_item(self._item)


class CoreAgent(SequencedAgent):
    """Sequencer and driver of the scalar core's side."""

    driver_class = CoreDriver

    async def perform(self, item: CoreItem) -> None:
        """Perform an item; raise the error that kept it from its end."""
        await OneItem(item).start(self.sequencer)
        if item.error is not None:
            raise item.error
