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

import numpy as np
from darwinn_sim.host.mmu import PAGE_SHIFT
from darwinn_sim.host.registers import register
from darwinn_sim.pcie.function import HostFault, PcieFunction, Watcher
from numpy.typing import NDArray

from darwinn_testbench.device.answers import Answers, Faults, Place, report
from darwinn_testbench.device.pcie.events import (
    DECODER,
    Event,
    Interrupt,
    MemoryRead,
    MemoryWrite,
    RegisterRead,
    RegisterWrite,
)
from darwinn_testbench.device.shown import named
from darwinn_testbench.device.trace import Fault, RecordedSession
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Report

_QUEUE_VECTOR = 0
_COUNTS = register("sc_host_int_count")
_VECTORS = register("sc_host_int_vector")


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
        packed = self._function.chip.read(_VECTORS.offset, _VECTORS.width)
        return _VECTORS.fields[number].extract(packed)

    def _values(self) -> list[int]:
        packed = self._function.chip.read(_COUNTS.offset, _COUNTS.width)
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


class Player:
    """Plays a session on a device after power-up, and compares what it answers."""

    def __init__(
        self, function: PcieFunction, events: Sequence[Event], *, is_cut_short: bool = False
    ) -> None:
        self.played = 0
        """Events that were played."""
        self.faults = Faults(events)
        self._events = events
        self._is_cut_short = is_cut_short
        self._host = PlayedHost(events)
        self._counts = _Counts(function, self._host)
        self._function = function
        self._recorded: Counter[int] = Counter()
        self._written: list[tuple[int, bytes]] = []
        self._awake = False
        self._registers: dict[int, Place] = {}
        self._vectors: dict[int, Place] = {}
        self._reads, self._writes = Place("memory read"), Place("memory written")
        function.wake = self._wake
        function.attach(self._host)

    @property
    def places(self) -> tuple[Place, ...]:
        """Where answers came from, and what was found."""
        by_number = (each for _, each in sorted(self._registers.items()))
        vectors = (each for _, each in sorted(self._vectors.items()))
        return (*by_number, self._reads, self._writes, *vectors)

    def play(self) -> None:
        """Play all events, or up to a fault of the chip that the session does not have.

        Raises:
            ValueError: an access that no host can make; ``played`` counts the ones before it.
        """
        for event in self._events:
            self._host.now = max(self._host.now, self.played)
            self._play(event)
            self.played += 1
            self._look()
            if self.faults.unexpected is not None or self._lacks_bytes:
                break
        self._let_chip_go_on()
        self._look()
        if self._lacks_bytes and not self._is_cut_short:
            self._reads.differ(str(self._function.chip.fault))
        self._compare_interrupts()
        self._compare_bytes()

    @property
    def _lacks_bytes(self) -> bool:
        """Whether the chip has come to bytes of the host that the recording does not have."""
        return isinstance(self._function.chip.fault, HostFault)

    def _look(self) -> None:
        """See whether there is a fault; too few bytes in the recording are none of the chip."""
        self.faults.look(self.played, None if self._lacks_bytes else self._function.chip.fault)

    def _play(self, event: Event) -> None:
        match event:
            case RegisterRead():
                self._read(event)
            case RegisterWrite():
                self._write(event)
            case MemoryRead():
                self._let_chip_go_on()
                self._reads.count(len(event.data.b))
            case MemoryWrite():
                self._let_chip_go_on()
                self._writes.count(len(event.data.b))
                self._written.append((event.address, event.data.b))
            case Interrupt():
                self._let_chip_go_on()
                self._recorded[event.vector] += 1
                self._vector(event.vector).count(0)
            case Fault():
                self._let_chip_go_on()

    def _wake(self) -> None:
        self._awake = True

    def _let_chip_go_on(self) -> None:
        if self._awake:
            self._awake = False
            while self._function.work():
                pass

    def _write(self, event: RegisterWrite) -> None:
        before = self._function.chip.read(_COUNTS.offset, _COUNTS.width)
        self._function.write(event.offset, event.value, event.size)
        if before and not self._function.chip.read(_COUNTS.offset, _COUNTS.width):
            self._counts.restart()

    def _read(self, event: RegisterRead) -> None:
        place = self._registers.setdefault(event.offset, Place(f"register {named(event.offset)}"))
        place.count(event.size)
        value = self._function.read(event.offset, event.size)
        if event.offset == _COUNTS.offset:
            same = self._counts.possible(event.value, self._recorded)
        else:
            same = value == event.value
        if not same:
            place.differ(f"event {self.played + 1}: {value:#x}, recorded {event.value:#x}")

    def _vector(self, number: int) -> Place:
        return self._vectors.setdefault(number, Place(f"interrupt vector {number}"))

    def _compare_interrupts(self) -> None:
        for vector in sorted(self._recorded | self._host.interrupts):
            found, recorded = self._host.interrupts[vector], self._recorded[vector]
            if found != recorded and not self._is_beyond_its_end(found - recorded):
                self._vector(vector).differ(f"{found} interrupts, recorded {recorded}")

    def _is_beyond_its_end(self, more: int) -> bool:
        """Whether that many answers more than recorded are what comes after the recording's end."""
        return self._is_cut_short and (more > 0 or self._lacks_bytes)

    def _compare_bytes(self) -> None:
        """Bytes of an address are compared in their order, those of different ones are not."""
        found, recorded = _by_address(self._host.written), _by_address(self._written)
        if self._is_cut_short:
            found = _as_many(found, recorded)
            recorded = _as_many(recorded, found) if self._lacks_bytes else recorded
        size = min(found.size, recorded.size)
        differs = found[:size] != recorded[:size]
        if found.size == recorded.size and not differs.any():
            return
        at = int(differs.argmax()) if differs.any() else size
        self._writes.differ(f"{_shown(found, at)}, recorded {_shown(recorded, at)}")


def replay(
    session: RecordedSession,
    new_function: Callable[[tuple[Watcher, ...]], PcieFunction],
    watchers: tuple[Watcher, ...] = (),
) -> Report[Answers]:
    """Play ``session``; a row for each place that answers come from.

    Args:
        session: what was recorded.
        new_function: makes a device after power-up, which watchers see.
        watchers: these.

    Raises:
        InputError: it is no recorded session.
        OSError: it cannot be read.
    """
    events = list(session.events(DECODER))
    player = Player(new_function(watchers), events, is_cut_short=session.is_cut_short)
    try:
        player.play()
    except ValueError as error:
        raise InputError(f"{session.path}: line {player.played + 1}: {error}") from None
    return report(session, player.played, len(events), player.places, player.faults)


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


def _as_many(octets: NDArray[np.void], others: NDArray[np.void]) -> NDArray[np.void]:
    """The first of each address, as many as there are of it in ``others``; both by address."""
    addresses, limits = octets["address"], others["address"]
    rank = np.arange(octets.size) - np.searchsorted(addresses, addresses)
    counts = np.searchsorted(limits, addresses, "right") - np.searchsorted(limits, addresses)
    return octets[rank < counts]


def _shown(octets: NDArray[np.void], at: int) -> str:
    if at >= octets.size:
        return "nothing"
    return f"{int(octets['value'][at]):02X} at {int(octets['address'][at]):#x}"
