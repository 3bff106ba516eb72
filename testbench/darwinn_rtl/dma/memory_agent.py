"""Agent of host memory for protocol tests: an AXI memory with errors, pauses and guards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import Event
from cocotbext.axi import AxiBus, AxiRamWrite, AxiResp, AxiSlaveRead
from pyuvm import ConfigDB, uvm_agent

from darwinn_rtl.bench import Bench, quiet
from darwinn_rtl.dma.programs import MEMORY_BYTES


class BadWord(Exception):
    """An access to a word that answers with an error; the memory model turns it into SLVERR."""


@dataclass
class _Burst:
    """Words that a read still has to give."""

    of: int
    address: int
    words: int


class _Reads(AxiSlaveRead):
    """The memory model's side of reads, with words from ``give`` in place of its own process, which
    gives one burst after another."""

    def __init__(
        self, give: Callable[[], Awaitable[None]], *arguments: Any, **options: Any
    ) -> None:
        self._give = give
        super().__init__(*arguments, **options)

    async def _process_read(self) -> None:
        await self._give()


class _Writes(AxiRamWrite):
    """The memory model's side of writes; ``answer`` runs beside it, from reset to reset."""

    def __init__(
        self, answer: Callable[[], Coroutine[Any, Any, None]], *arguments: Any, **options: Any
    ) -> None:
        self._answer = answer
        self._answering: Any = None
        super().__init__(*arguments, **options)

    def _handle_reset(self, state: bool) -> None:
        if self._answering is not None:
            self._answering.cancel()
        self._answering = None if state else cocotb.start_soon(self._answer())
        super()._handle_reset(state)


def pauses(random: Random, share: float) -> Iterator[bool]:
    """An endless pattern that begins a pause in a ``share`` of the cycles: one cycle, a few, rarely
    many."""
    while True:
        pause = random.random() < share
        length = random.choices((1, 2, 5, 60), (50, 25, 24, 1))[0] if pause else 1
        yield from (pause for _ in range(length))


class MemoryAgent(uvm_agent):
    """Host memory of ``MEMORY_BYTES`` behind the AXI4 port.

    ``bad_words`` are bus words (address / bytes of a word) that answer with an error: SLVERR, or
    DECERR with ``decode_errors``. With ``reorders`` memory reads bursts of different identifiers in
    any order, interleaves their words, and answers writes of different identifiers in any order.
    ``overtaken`` counts the answers that came before the answer to an earlier write.
    """

    def build_phase(self) -> None:
        """Attach the bus."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        dut = self.bench.dut
        self.data = bytearray(MEMORY_BYTES)
        self.word_bytes = len(dut.m_axi_wstrb)
        self.bad_words: frozenset[int] = frozenset()
        self.decode_errors = False
        self.reorders = False
        self.overtaken = 0
        self._answers: list[Any] = []
        self._answered = Event()
        bus = AxiBus.from_prefix(dut, "m_axi")
        clocked = (dut.clk, dut.rst_n)
        writes = _Writes(
            self._give_answers, bus.write, *clocked, reset_active_level=False, mem=self.data
        )
        reads = _Reads(self._give_words, bus.read, *clocked, reset_active_level=False)
        quiet(writes.log, reads.log)
        self._channels: tuple[Any, ...] = (
            writes.aw_channel,
            writes.w_channel,
            writes.b_channel,
            reads.ar_channel,
            reads.r_channel,
        )
        writes._write = self._write
        self._answer_as_asked(reads.r_channel, "rresp")
        self._answer_as_asked(writes.b_channel, "bresp")
        self._send_answer = writes.b_channel.send
        writes.b_channel.send = self._keep_answer

    def _answer_as_asked(self, channel: Any, field: str) -> None:
        """The memory model gives SLVERR only."""
        send = channel.send

        async def answer(transaction: Any) -> None:
            if self.decode_errors and getattr(transaction, field) == AxiResp.SLVERR:
                setattr(transaction, field, AxiResp.DECERR)
            await send(transaction)

        channel.send = answer

    async def _keep_answer(self, answer: Any) -> None:
        """In place of sending it."""
        if not self.reorders and not self._answers:
            await self._send_answer(answer)
        else:
            self._answers.append(answer)
            self._answered.set()

    async def _give_answers(self) -> None:
        """Give the answers that are kept; begins anew with every reset."""
        self._answers.clear()
        random, waiting = self.bench.random, self._answers
        while True:
            self._answered.clear()
            if not waiting:
                await self._answered.wait()
            if self.reorders:
                await self.bench.cycles(random.choice((1, 5, 40, 100)))
            first_of = {int(each.bid): place for place, each in reversed([*enumerate(waiting)])}
            place = random.choice([*first_of.values()]) if self.reorders else 0
            self.overtaken += place > 0
            await self._send_answer(waiting.pop(place))

    async def _write(self, address: int, data: bytes) -> None:
        self._check(address)
        self.data[address : address + len(data)] = data

    async def _give_words(self) -> None:
        """Give the words of the requested bursts; begins anew with every reset."""
        *_, requests, words = self._channels
        waiting: list[_Burst] = []
        while True:
            while not waiting or not requests.empty():
                asked = await requests.recv()
                start = int(asked.araddr) // self.word_bytes * self.word_bytes
                waiting.append(_Burst(int(asked.arid), start, int(asked.arlen) + 1))
            first_of = {burst.of: burst for burst in reversed(waiting)}
            burst = self.bench.random.choice([*first_of.values()]) if self.reorders else waiting[0]
            await words.send(self._word(burst, words._transaction_obj()))
            if not burst.words:
                waiting.remove(burst)

    def _word(self, burst: _Burst, word: Any) -> Any:
        """The next word of ``burst``."""
        word.rid, word.rresp, word.rdata = burst.of, AxiResp.OKAY, 0
        try:
            self._check(burst.address)
            data = self.data[burst.address : burst.address + self.word_bytes]
            word.rdata = int.from_bytes(data, "little")
        except BadWord:
            word.rresp = AxiResp.SLVERR
        burst.address += self.word_bytes
        burst.words -= 1
        word.rlast = not burst.words
        return word

    def _check(self, address: int) -> None:
        assert address < MEMORY_BYTES, f"bus address {address:#x} is beyond the memory"
        if address // self.word_bytes in self.bad_words:
            raise BadWord(address)

    def hold_answers(self, held: bool) -> None:
        """Give no answers to writes as long as they are ``held``."""
        self._hold(2, held)

    def hold_addresses(self, held: bool) -> None:
        """Take no addresses of writes as long as they are ``held``."""
        self._hold(0, held)

    def hold_words(self, held: bool) -> None:
        """Take no words of writes as long as they are ``held``."""
        self._hold(1, held)

    def hold_reads(self, held: bool) -> None:
        """Give no words that are read as long as they are ``held``."""
        self._hold(4, held)

    def _hold(self, number: int, held: bool) -> None:
        self._channels[number].clear_pause_generator()
        self._channels[number].pause = held

    def set_pressure(self, share: float) -> None:
        """Pause every channel in a ``share`` of the cycles, each in its own pattern, and reorder
        words where there are pauses."""
        self.reorders = share > 0
        for channel in self._channels:
            if share:
                channel.set_pause_generator(pauses(Random(self.bench.random.random()), share))
            else:
                channel.clear_pause_generator()
                channel.pause = False
