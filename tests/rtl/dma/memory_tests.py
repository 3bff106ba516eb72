"""A host memory of the bench whose port is driven cycle by cycle: see ``test_memories``."""

from __future__ import annotations

import ctypes
import os
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import cocotb
import numpy as np
from cocotb.handle import Immediate
from cocotb.triggers import Timer
from darwinn_rtl.player import MEMORY, declare
from host_memory_model import (
    BYTES,
    CYCLES,
    KINDS,
    OKAY,
    READ,
    REGIONS,
    WRITTEN,
    HostMemory,
    Kind,
    Region,
    drawn,
)

KIND = "DARWINN_MEMORY_KIND"
"""Environment variable: the number of the memory in ``KINDS``."""

_UNMAPPED = f"{0xBD:08b}"
"""What a byte beside the regions reads as."""


class Port:
    """The port of a memory whose bytes are those of an array."""

    def __init__(self, dut: Any, kind: Kind, data: np.ndarray[Any, Any]) -> None:
        self._dut, self._kind = dut, kind
        self._library = declare(ctypes.CDLL(None), MEMORY)
        self._seen = self._library.memory_seen_of
        self._library.host_memory_forget()
        for region in REGIONS:
            place = data.ctypes.data + region.place
            self._library.host_memory_map(region.start, region.size, place)
        # At once: a clock that happens to start at 1 would be an edge at time 0, before reset.
        dut.clk.value = Immediate(0)
        dut.rst_n.value = Immediate(0)

    async def gives(self, given: Mapping[str, int]) -> dict[str, str]:
        """Bits of the outputs in a cycle with these inputs."""
        for name, value in given.items():
            getattr(self._dut, name).value = value
        await Timer(1, "ns")
        return {name: str(getattr(self._dut, name).value) for name in self._kind.outputs}

    async def edge(self) -> None:
        """The end of the cycle."""
        self._dut.clk.value = 1
        await Timer(1, "ns")
        self._dut.clk.value = 0

    def seen(self, what: int) -> int:
        """How often an unruly memory did so."""
        self._seen.restype = ctypes.c_uint64
        return int(self._seen(ctypes.c_uint32(what)))

    def close(self) -> None:
        """Forget the array."""
        self._library.host_memory_forget()


@cocotb.test()
async def in_order(dut: Any) -> None:
    """Each output in each cycle, and all bytes at the end, are those of the model."""
    kind, random = KINDS[int(os.environ[KIND])], Random("host memory")
    data = np.frombuffer(random.randbytes(BYTES), np.uint8).copy()
    model = HostMemory(kind, [*map(int, data)], [*REGIONS])
    port = Port(dut, kind, data)
    for cycle in range(CYCLES):
        given = drawn(random, kind, cycle)
        stall = sum(1 << channel for channel in range(5) if random.random() < 0.2)
        found = await port.gives({**given, "stall": stall})
        for name, wanted in model.outputs(stall).items():
            # Until the first reset has taken effect nothing is known.
            if cycle > 0 and wanted is not None:
                known = wanted.replace("x" * 8, _UNMAPPED)
                assert found[name] == known, f"cycle {cycle}: {name}"
        await port.edge()
        model = model.after(given, stall)
    assert [*map(int, data)] == model.bytes
    port.close()


class Burst:
    """Words of a read or a write from a bus address on; ``come`` of them have come."""

    def __init__(self, random: Random, regions: Sequence[Region], size: int) -> None:
        region = random.choice(regions)
        end = random.choice((region.start, region.start + region.size))
        self.id = random.randrange(4)
        self.address = end + random.randrange(-3 * size, 2 * size)
        self.words = random.choice((1, 1, 2, 5, 20))
        self.come = 0
        self.failed = False


class Master:
    """Asks for whatever AXI4 allows, and looks at whatever comes.

    ``counted`` has how often each event was seen; how often one may have been at most, if the pins
    do not say more.
    """

    def __init__(self, kind: Kind, data: np.ndarray[Any, Any]) -> None:
        self._random, self._size, self._data = Random("unruly memory"), kind.data_bytes, data
        self._memory = HostMemory(kind, [*map(int, data)], [*REGIONS])
        self.counted: Counter[str] = Counter()
        self._forget()

    def resets(self, found: Mapping[str, str]) -> None:
        """The first cycle of a reset: memory has turned to the word that it gives now."""
        if self._is_new("r", 0, found):
            self._turns_to(self._reads[int(found["rid"], 2)][0])
        self._forget()

    def _forget(self) -> None:
        """A reset: nothing is under way, and what was written is what is there."""
        self._memory.bytes[:] = map(int, self._data)
        self._offered: dict[str, int] = {}
        self._reads: dict[int, deque[Burst]] = defaultdict(deque)
        self._unasked: Burst | None = None
        self._unaddressed: deque[Burst] = deque()
        self._unsent: deque[Burst] = deque()
        self._unanswered: dict[int, deque[Burst]] = defaultdict(deque)
        self._reading: Burst | None = None
        self._held: dict[str, dict[str, str]] = {}

    @property
    def bytes(self) -> list[int | None]:
        """What memory has to hold."""
        return self._memory.bytes

    @property
    def rests(self) -> bool:
        """Whether everything has its answer."""
        waiting = [*self._reads.values(), *self._unanswered.values(), self._unsent]
        return not any(waiting) and not self._unasked and not self._unaddressed

    def asks(self, *, busy: bool) -> dict[str, int]:
        """Inputs of a cycle: what is offered stays until it is taken."""
        random, size = self._random, self._size
        if busy and self._unasked is None and random.random() < 0.4:
            self._unasked = Burst(random, READ, size)
        if busy and len(self._unaddressed) < 3 and random.random() < 0.3:
            burst = Burst(random, WRITTEN, size)
            self._unaddressed.append(burst)
            self._unsent.append(burst)
        offered = self._offered
        if self._unasked is not None and random.random() < 0.5:
            read = self._unasked
            offered |= {"arvalid": 1, "arid": read.id, "araddr": read.address}
            offered |= {"arlen": read.words - 1}
        if self._unaddressed and random.random() < 0.3:
            first = self._unaddressed[0]
            offered |= {"awvalid": 1, "awid": first.id, "awaddr": first.address}
        if self._unsent and not offered.get("wvalid") and random.random() < 0.7:
            last = self._unsent[0].come == self._unsent[0].words - 1
            offered |= {"wvalid": 1, "wdata": random.getrandbits(8 * size), "wlast": int(last)}
            offered |= {"wstrb": random.choice(((1 << size) - 1, random.getrandbits(size)))}
        idle = {"arvalid": 0, "awvalid": 0, "wvalid": 0, "rst_n": 1, "stall": 0}
        takes = {name: int(random.random() < 0.6) for name in ("rready", "bready")}
        return idle | offered | takes

    def sees(self, given: Mapping[str, int], found: Mapping[str, str]) -> None:
        """The outputs of a cycle with these inputs."""
        self._may_have_seen(given, found)
        self._word(given, found)
        self._answer(given, found)
        if given["arvalid"] and found["arready"] == "1":
            assert self._unasked is not None
            self._reads[self._unasked.id].append(self._unasked)
            self._unasked = None
            self._offered["arvalid"] = 0
        if given["awvalid"] and found["awready"] == "1":
            first = self._unaddressed.popleft()
            self._unanswered[first.id].append(first)
            self._offered["awvalid"] = 0
        if given["wvalid"] and found["wready"] == "1":
            self._written(given)
            self._offered["wvalid"] = 0

    def _written(self, given: Mapping[str, int]) -> None:
        burst = self._unsent[0]
        for lane in range(self._size):
            if given["wstrb"] >> lane & 1:
                place = self._memory.place_of(burst.address + self._size * burst.come + lane)
                burst.failed |= place is None
                if place is not None:
                    self._memory.bytes[place] = given["wdata"] >> 8 * lane & 0xFF
        burst.come += 1
        if given["wlast"]:
            self._unsent.popleft()

    def _is_new(self, channel: str, ready: int, found: Mapping[str, str]) -> bool:
        """Whether a payload is another one than in the cycle before; one that waits stays."""
        now = {name: value for name, value in found.items() if name.startswith(channel)}
        if found[f"{channel}valid"] != "1":
            assert channel not in self._held, f"{channel} is taken away"
            return False
        held = self._held.pop(channel, None)
        assert held in (None, now), f"{channel} changes while it waits"
        if not ready:
            self._held[channel] = now
        return held is None

    def _word(self, given: Mapping[str, int], found: Mapping[str, str]) -> None:
        self._error("read", found["rvalid"], found["rresp"])
        if not self._is_new("r", given["rready"], found):
            return
        burst = self._reads[int(found["rid"], 2)][0]
        self._turns_to(burst)
        begin = burst.address + self._size * burst.come
        places = [self._memory.place_of(begin + lane) for lane in range(self._size)]
        bits = "".join(self._memory.bits_at(place) for place in reversed(places))
        assert found["rdata"] == bits.replace("x" * 8, _UNMAPPED)
        failed = all(place is None for place in places)
        assert (int(found["rresp"], 2) != OKAY) == failed
        burst.come += 1
        assert (found["rlast"] == "1") == (burst.come == burst.words)
        if burst.come == burst.words:
            self._reads[burst.id].popleft()

    def _turns_to(self, burst: Burst) -> None:
        before, self._reading = self._reading, burst
        if before is not None and before.id != burst.id and before.come < before.words:
            self.counted["words in turn"] += 1

    def _answer(self, given: Mapping[str, int], found: Mapping[str, str]) -> None:
        self._error("write", found["bvalid"], found["bresp"])
        if self._is_new("b", given["bready"], found):
            burst = self._unanswered[int(found["bid"], 2)].popleft()
            assert burst.come == burst.words, "a write is answered that has not come"
            assert (int(found["bresp"], 2) != OKAY) == burst.failed

    def _error(self, what: str, valid: str, response: str) -> None:
        assert valid != "1" or response != "01", "there is no exclusive access"
        if valid == "1" and response != "00":
            self.counted[f"{what} {'slave' if response == '10' else 'decode'} error"] += 1

    def _may_have_seen(self, given: Mapping[str, int], found: Mapping[str, str]) -> None:
        """Count what may be seen in a cycle in which it begins."""
        waits = {
            "early word": any(burst.come for burst in self._unaddressed),
            "pause of R": any(self._reads.values()) and (found["rvalid"] == "0" or given["rready"]),
            "pause of B": any(self._unanswered.values())
            and (found["bvalid"] == "0" or given["bready"]),
        }
        for channel in ("ar", "aw", "w"):
            held = given[f"{channel}valid"] and found[f"{channel}ready"] == "0"
            waits[f"pause of {channel.upper()}"] = bool(held)
        self.counted.update(what for what, is_so in waits.items() if is_so)


_IDLE = 300
"""Cycles in which nothing is asked."""
_EVENTS = 16
_EXACT = {
    0: "words in turn",
    2: "read slave error",
    3: "read decode error",
    4: "write slave error",
    5: "write decode error",
}
_AT_MOST = {(1,): "early word"} | {
    (6 + k, 11 + k): f"pause of {name}" for k, name in enumerate(("AR", "R", "AW", "W", "B"))
}
"""What ``unruly_memory.sv`` counts, by its numbers."""


@cocotb.test()
async def unruly(dut: Any) -> None:
    """Whatever the memory draws, each word and answer is right, stays until it is taken, and counts
    as what it is; an idle memory counts nothing."""
    kind, random = KINDS[int(os.environ[KIND])], Random("unruly bytes")
    data = np.frombuffer(random.randbytes(BYTES), np.uint8).copy()
    port, master = Port(dut, kind, data), Master(kind, data)
    for begin in range(3):
        for cycle in range(2):
            found = await port.gives({**master.asks(busy=False), "rst_n": 0})
            if begin > 0 and cycle == 0:
                master.resets(found)
            await port.edge()
        for cycle in range(CYCLES):
            if begin == 0 and cycle == _IDLE:
                assert not any(map(port.seen, range(_EVENTS))), "an idle memory counts something"
            given = master.asks(busy=cycle > _IDLE and (begin < 2 or cycle < CYCLES // 2))
            master.sees(given, await port.gives(given))
            await port.edge()
    assert master.rests, "something has no answer"
    assert [*map(int, data)] == master.bytes
    for number, what in _EXACT.items():
        assert port.seen(number) == master.counted[what] > 0, what
    for numbers, what in _AT_MOST.items():
        counts = [port.seen(number) for number in numbers]
        assert all(counts) and sum(counts) <= master.counted[what], what
    port.close()
