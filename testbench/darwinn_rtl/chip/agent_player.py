"""A player of the chip made of an environment's agents: they do the work of the fast player.

Its methods run in threads (``cocotb.task.bridge``); the simulation continues until each is done. So
the model's driver and scalar core, which do not know cocotb, work on it.
"""

from __future__ import annotations

import atexit
import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from cocotb.task import resume
from cocotb.utils import get_sim_time
from darwinn_sim import chip
from numpy.typing import NDArray
from pyuvm import uvm_agent

from darwinn_rtl.bench import PERIOD_NS, Bench
from darwinn_rtl.chip.core_agent import (
    CoreAgent,
    CoreItem,
    Descriptor,
    Fetch,
    Offer,
    Settle,
)
from darwinn_rtl.dma.register_agent import RegisterAgent
from darwinn_rtl.player import MEMORY, declare


class MemoryAgent(uvm_agent):
    """Host memory behind the chip's AXI port: bytes of this process, in place.

    A word of which no byte is mapped answers with an error.
    """

    def build_phase(self) -> None:
        """Nothing is mapped.

        At the latest when Python ends it is so again: the RTL runs on for the rest of that time
        step, and would work in arrays that are gone.
        """
        self._library = declare(ctypes.CDLL(None), MEMORY)
        self.unmap_all()
        atexit.register(self.unmap_all)

    def unmap_all(self) -> None:
        """Forget all host memory."""
        self._library.host_memory_forget()

    def map(self, address: int, place: int, size: int) -> None:
        """Let ``size`` bytes at ``place`` be those from a bus address on; they must stay there."""
        self._library.host_memory_map(address, size, place)


class AgentPlayer:
    """``chip.host.Player`` by agents.

    ``on_reset`` is called when the chip is reset; ``events`` are what :meth:`take_events` returns,
    ``rows`` the rows that the ring has carried, which monitors enter.
    """

    def __init__(
        self, bench: Bench, registers: RegisterAgent, memory: MemoryAgent, core: CoreAgent
    ) -> None:
        self._bench, self._registers, self._memory, self._core = bench, registers, memory, core
        self.on_reset: Callable[[], None] = lambda: None
        self.events: list[tuple[int, int]] = []
        self.rows = self.quiet = 0
        words = ctypes.CDLL(None).simulation_scalar_memory
        words.restype = ctypes.POINTER(ctypes.c_uint32)
        self.scalar_memory: NDArray[np.uint32] = np.ctypeslib.as_array(
            words(), (chip.SCALAR_MEMORY_WORDS,)
        )

    def reset(self) -> None:
        """Reset the chip; memories keep their contents."""
        resume(self._reset)()

    async def _reset(self) -> None:
        self.events.clear()
        self._core.driver.forget()
        await self._bench.reset()
        self._registers.model.reset()
        self.on_reset()

    def write_register(self, offset: int, value: int) -> None:
        """Write a register; raises ``AssertionError`` if the bus refuses."""
        resume(self._registers.write_offset)(offset, value)

    def read_register(self, offset: int) -> int:
        """Read a register; raises ``AssertionError`` if the bus refuses."""
        read: Callable[[int], int] = resume(self._registers.read_offset)
        return read(offset)

    def unmap_all(self) -> None:
        """Forget all host memory."""
        self._memory.unmap_all()

    def map(self, address: int, place: int, size: int) -> None:
        """Map host memory."""
        self._memory.map(address, place, size)

    def take_chunk(self) -> int:
        """Request the next chunk of the instruction queue; return its size in bytes."""
        offer = Offer("a chunk", "core2queue_chunk", {}, "queue2core_chunk_size")
        self._perform(offer)
        return offer.answer

    def fetch(self, size: int) -> bytes:
        """The next ``size`` bytes of the instruction stream."""
        fetch = Fetch(size)
        self._perform(fetch)
        return fetch.data

    def hand_over(self, name: str, bits: bytes, tiles: int = 0, base: int | None = None) -> None:
        """Give an instruction to its unit, or to the set ``tiles``."""
        fields = {
            "bits": int.from_bytes(bits, "little"),
            "tiles": tiles,
            "base_valid": int(base is not None),
            "base": base or 0,
        }
        self._bench.note(name)
        self._perform(Offer(f"{name} to be taken", "core2units_instruction", fields))

    def descriptor(self, tag: int, address: int, size: int, *, fence: bool = False) -> None:
        """Give a descriptor, or a fence, to the DMA engine."""
        self._perform(Descriptor(tag, address, size, fence=fence))

    def push(self, word: int) -> None:
        """Send a word of the scalar core to the host."""
        self._perform(Offer("the output stream", "core2output_word", {"data": word}))

    def settle(self) -> None:
        """Wait until the whole chip is idle."""
        self._perform(Settle())

    def _perform(self, item: CoreItem) -> None:
        perform: Any = resume(self._core.perform)
        perform(item)

    def take_events(self) -> list[tuple[int, int]]:
        """(kind, index) of the events since the last call."""
        taken, self.events = self.events, []
        return taken

    @property
    def cycle(self) -> int:
        """Cycles since the simulation began."""
        nanoseconds: float = get_sim_time("ns")
        return round(nanoseconds) // PERIOD_NS
