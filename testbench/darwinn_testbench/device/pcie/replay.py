"""A recorded session by PCIe, played without its client: the chip has to answer the same.

The host's part is played: register accesses, and what the chip reads of its memory. Compared are
the values of registers, the bytes that the chip writes, and interrupts. The chip computes at
another pace than the recorded one: what it does is compared by register, by address and by vector,
and not in between.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from darwinn_sim.errors import SimulationError
from darwinn_sim.host.mmu import PAGE_SHIFT
from darwinn_sim.host.registers import register
from darwinn_sim.pcie.function import HostFault, PcieFunction
from numpy.typing import NDArray

from darwinn_testbench.device.pcie.events import (
    Event,
    Interrupt,
    MemoryRead,
    MemoryWrite,
    RegisterRead,
    RegisterWrite,
)

SHOWN_DIFFERENCES = 20
"""Differences that are told one by one; of further ones the number."""

_QUEUE_VECTOR = 0
_COUNTS = register("sc_host_int_count")
_VECTORS = register("sc_host_int_vector")


@dataclass
class Comparison:
    """What was compared (events by kind), and what differs, in words."""

    events: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    count: int = 0

    def differ(self, text: str) -> None:
        """Note a difference."""
        self.count += 1
        if len(self.differences) < SHOWN_DIFFERENCES:
            self.differences.append(text)


class Recording:
    """The host's memory of a recorded session: what the chip read and wrote of it, and when."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._by_page: defaultdict[int, list[int]] = defaultdict(list)
        for number, event in enumerate(events):
            if isinstance(event, MemoryRead | MemoryWrite) and event.data.b:
                last = event.address + len(event.data.b) - 1
                for page in range(event.address >> PAGE_SHIFT, (last >> PAGE_SHIFT) + 1):
                    self._by_page[page].append(number)

    def fill(
        self, address: int, data: NDArray[np.uint8], known: NDArray[np.bool_], now: int
    ) -> None:
        """Fill in those bytes at ``address`` that are not known.

        They are what was first read from event ``now`` on, or else what was there last before.
        """
        first, last = address >> PAGE_SHIFT, (address + data.size - 1) >> PAGE_SHIFT
        for page in range(first, last + 1):
            numbers = self._by_page.get(page, [])
            here = bisect_left(numbers, now)
            later = (n for n in numbers[here:] if isinstance(self._events[n], MemoryRead))
            for number in (*later, *reversed(numbers[:here])):
                start = max(0, (page << PAGE_SHIFT) - address)
                if known[start : ((page + 1) << PAGE_SHIFT) - address].all():
                    break
                self._overlay(address, data, known, number)

    def _overlay(
        self, address: int, data: NDArray[np.uint8], known: NDArray[np.bool_], number: int
    ) -> None:
        event = self._events[number]
        assert isinstance(event, MemoryRead | MemoryWrite)
        overlay(address, data, known, event.address, np.frombuffer(event.data.b, np.uint8))


def overlay(
    address: int,
    data: NDArray[np.uint8],
    known: NDArray[np.bool_],
    other: int,
    found: NDArray[np.uint8],
) -> None:
    """Take over what is not known of ``data`` at ``address`` from ``found`` at ``other``."""
    start, end = max(address, other), min(address + data.size, other + found.size)
    if start >= end:
        return
    target = slice(start - address, end - address)
    missing = ~known[target]
    data[target][missing] = found[start - other : end - other][missing]
    known[target] = True


class PlayedHost:
    """Answers for the host's memory, and notes what the chip does to it."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._recording = Recording(events)
        self.now = 0
        """Number of the event that the session has come to."""
        self.written: list[tuple[int, bytes]] = []
        self._own: list[tuple[int, NDArray[np.uint8]]] = []
        self.interrupts: Counter[int] = Counter()
        self._recorded: defaultdict[int, list[int]] = defaultdict(list)
        for number, event in enumerate(events):
            if isinstance(event, Interrupt):
                self._recorded[event.vector].append(number)
        self.interrupted: Callable[[int], None] = lambda _: None
        """Called after an interrupt, with its vector."""

    def read(self, address: int, size: int) -> bytes:
        """What the chip has written since its last interrupt, or else what it read then."""
        data = np.zeros(size, np.uint8)
        known = np.zeros(size, np.bool_)
        for other, found in reversed(self._own):
            overlay(address, data, known, other, found)
        if not known.all():
            self._recording.fill(address, data, known, self.now)
        if not known.all():
            raise HostFault(
                f"the recording has no read of bus address {address + int(known.argmin()):#x}"
            )
        return data.tobytes()

    def write(self, address: int, data: bytes) -> None:
        """Note what the chip writes."""
        self.written.append((address, data))
        self._own.append((address, np.frombuffer(data, np.uint8)))

    def interrupt(self, vector: int) -> None:
        """The host may change its memory: the session has come to that interrupt."""
        numbers = self._recorded[vector]
        if self.interrupts[vector] < len(numbers):
            self.now = max(self.now, numbers[self.interrupts[vector]])
        self.interrupts[vector] += 1
        if vector != _QUEUE_VECTOR:
            self._own.clear()
        self.interrupted(vector)


class _Counts:
    """Bounds of the interrupt counters, which may be read at another moment than then."""

    def __init__(self, function: PcieFunction, host: PlayedHost) -> None:
        self._function = function
        self._host = host
        self._after: dict[tuple[int, int], int] = {}
        host.interrupted = self._note

    def _vector(self, number: int) -> int:
        packed = self._function.core.read(_VECTORS.offset, _VECTORS.width)
        return _VECTORS.fields[number].extract(packed)

    def _values(self) -> list[int]:
        packed = self._function.core.read(_COUNTS.offset, _COUNTS.width)
        return [each.extract(packed) for each in _COUNTS.fields]

    def _note(self, vector: int) -> None:
        for number, value in enumerate(self._values()):
            if self._vector(number) == vector:
                self._after[number, self._host.interrupts[vector]] = value

    def possible(self, value: int, recorded: Counter[int]) -> bool:
        """Whether the counters can have been read as ``value``.

        Each is at least what it was after the interrupts that had been ``recorded`` by vector, and
        at most what it is now.
        """
        values = [each.extract(value) for each in _COUNTS.fields]
        for number, now in enumerate(self._values()):
            seen = recorded[self._vector(number)]
            least = self._after.get((number, seen), 0 if not seen else now)
            modulus = 1 << _COUNTS.fields[number].width
            if (values[number] - least) % modulus > (now - least) % modulus:
                return False
        return True

    def restart(self) -> None:
        """The counters were reset."""
        for number, value in enumerate(self._values()):
            self._after[number, self._host.interrupts[self._vector(number)]] = value


def replay(function: PcieFunction, events: Sequence[Event]) -> Comparison:
    """Play a session on a device after power-up; ``ValueError`` for accesses that cannot be."""
    return _Replay(function, events).play()


class _Replay:
    def __init__(self, function: PcieFunction, events: Sequence[Event]) -> None:
        self._events = events
        self._host = PlayedHost(events)
        self._counts = _Counts(function, self._host)
        self._function = function
        self._recorded: Counter[int] = Counter()
        self._written: list[tuple[int, bytes]] = []
        self._awake = False
        self.comparison = Comparison()
        function.wake = self._wake
        function.failed = self._failed

    def _wake(self) -> None:
        self._awake = True

    def _failed(self, error: SimulationError) -> None:
        self.comparison.differ(f"event {self._host.now + 1}: {error}")

    def play(self) -> Comparison:
        self._function.attach(self._host)
        for number, event in enumerate(self._events):
            self._host.now = max(self._host.now, number)
            self.comparison.events[str(type(event).__struct_config__.tag)] += 1
            match event:
                case RegisterRead():
                    self._read(number, event)
                case RegisterWrite():
                    self._write(event)
                case _:
                    self._let_chip_go_on()
                    self._note(event)
        self._let_chip_go_on()
        self._compare_interrupts()
        self._compare_bytes()
        return self.comparison

    def _let_chip_go_on(self) -> None:
        if self._awake:
            self._awake = False
            while self._function.work():
                pass

    def _note(self, event: Event) -> None:
        if isinstance(event, Interrupt):
            self._recorded[event.vector] += 1
        elif isinstance(event, MemoryWrite):
            self._written.append((event.address, event.data.b))

    def _write(self, event: RegisterWrite) -> None:
        before = self._function.core.read(_COUNTS.offset, _COUNTS.width)
        self._function.write(event.offset, event.value, event.size)
        if before and not self._function.core.read(_COUNTS.offset, _COUNTS.width):
            self._counts.restart()

    def _read(self, number: int, event: RegisterRead) -> None:
        value = self._function.read(event.offset, event.size)
        if event.offset == _COUNTS.offset:
            same = self._counts.possible(event.value, self._recorded)
        else:
            same = value == event.value
        if not same:
            self.comparison.differ(
                f"event {number + 1}: register {event.offset:05X} is {value:#x}, "
                f"recorded {event.value:#x}"
            )

    def _compare_interrupts(self) -> None:
        for vector in sorted(self._recorded | self._host.interrupts):
            found, recorded = self._host.interrupts[vector], self._recorded[vector]
            if found != recorded:
                self.comparison.differ(f"vector {vector}: {found} interrupts, recorded {recorded}")

    def _compare_bytes(self) -> None:
        """Bytes of an address are compared in their order, those of different ones are not."""
        found, recorded = _by_address(self._host.written), _by_address(self._written)
        size = min(found.size, recorded.size)
        differs = found[:size] != recorded[:size]
        if found.size == recorded.size and not differs.any():
            return
        wrong = recorded if recorded.size >= found.size else found
        at = int(differs.argmax()) if differs.any() else size
        self.comparison.differ(
            f"bytes written at bus address {int(wrong['address'][at]):#x}: "
            f"{_shown(found, at)}, recorded {_shown(recorded, at)}"
        )


_BYTE = np.dtype([("address", "<u8"), ("value", "u1")])


def _by_address(writes: Iterable[tuple[int, bytes]]) -> NDArray[np.void]:
    """Every byte that was written, with its address, by address."""
    parts = []
    for address, data in writes:
        part = np.empty(len(data), _BYTE)
        part["address"] = np.uint64(address) + np.arange(len(data), dtype=np.uint64)
        part["value"] = np.frombuffer(data, np.uint8)
        parts.append(part)
    if not parts:
        return np.empty(0, _BYTE)
    whole = np.concatenate(parts)
    return whole[np.argsort(whole["address"], kind="stable")]


def _shown(octets: NDArray[np.void], at: int) -> str:
    if at >= octets.size:
        return "nothing"
    return f"{int(octets['value'][at]):02x} at {int(octets['address'][at]):#x}"
