"""Agent of host memory for protocol tests: an AXI memory with errors, pauses and guards."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from cocotbext.axi import AxiBus, AxiRam, AxiResp
from pyuvm import ConfigDB, uvm_agent

from darwinn_testbench.rtl.bench import Bench, quiet
from darwinn_testbench.rtl.dma.programs import MEMORY_BYTES


class BadWord(Exception):
    """An access to a word that answers with an error; the memory model turns it into SLVERR."""


def pauses(random: Random, share: float) -> Iterator[bool]:
    """An endless pattern that is True in a ``share`` of the cycles, alone and in rows."""
    while True:
        pause = random.random() < share
        length = random.choice((1, 1, 2, 5)) if pause else 1
        yield from (pause for _ in range(length))


class MemoryAgent(uvm_agent):
    """Host memory of ``MEMORY_BYTES`` behind the AXI4 port.

    ``bad_words`` are bus words (address / bytes of a word) that answer with an error: that of a
    slave, or with ``decode_errors`` that of a bus which finds nobody at the address.
    """

    def build_phase(self) -> None:
        """Attach the bus."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        dut = self.bench.dut
        self.data = bytearray(MEMORY_BYTES)
        self.word_bytes = len(dut.m_axi_wstrb)
        self.bad_words: frozenset[int] = frozenset()
        self.decode_errors = False
        ram = AxiRam(
            AxiBus.from_prefix(dut, "m_axi"),
            dut.clk,
            dut.rst_n,
            reset_active_level=False,
            mem=self.data,
        )
        quiet(ram.write_if.log, ram.read_if.log)
        self._channels: tuple[Any, ...] = (
            ram.write_if.aw_channel,
            ram.write_if.w_channel,
            ram.write_if.b_channel,
            ram.read_if.ar_channel,
            ram.read_if.r_channel,
        )
        ram.write_if._write = self._write
        ram.read_if._read = self._read
        self._answer_as_asked(ram.read_if.r_channel, "rresp")
        self._answer_as_asked(ram.write_if.b_channel, "bresp")

    def _answer_as_asked(self, channel: Any, field: str) -> None:
        """The memory model knows errors of a slave alone."""
        send = channel.send

        async def answer(transaction: Any) -> None:
            if self.decode_errors and getattr(transaction, field) == AxiResp.SLVERR:
                setattr(transaction, field, AxiResp.DECERR)
            await send(transaction)

        channel.send = answer

    async def _write(self, address: int, data: bytes) -> None:
        self._check(address)
        self.data[address : address + len(data)] = data

    async def _read(self, address: int, length: int) -> bytes:
        self._check(address)
        return bytes(self.data[address : address + length])

    def _check(self, address: int) -> None:
        assert address < MEMORY_BYTES, f"bus address {address:#x} is beyond the memory"
        if address // self.word_bytes in self.bad_words:
            raise BadWord(address)

    def hold_answers(self, held: bool) -> None:
        """Give no answers to writes as long as they are ``held``."""
        self._channels[2].clear_pause_generator()
        self._channels[2].pause = held

    def set_pressure(self, share: float) -> None:
        """Pause every channel in a ``share`` of the cycles, each in its own pattern."""
        for channel in self._channels:
            if share:
                channel.set_pause_generator(pauses(Random(self.bench.random.random()), share))
            else:
                channel.clear_pause_generator()
                channel.pause = False
