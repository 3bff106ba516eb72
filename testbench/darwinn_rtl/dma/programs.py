"""Random descriptor programs: requests that the scalar core might make, good and bad, in any
mixture.

A descriptor never reads or overwrites bytes that an earlier unfinished one writes or reads, unless
a fence stands between them: with a race the outcome would be undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random

from darwinn_sim.isa.codes import DescriptorTag

from darwinn_rtl.dma.descriptor_model import READ_TAGS, Descriptor, Outcome, Window
from darwinn_rtl.harness import HarnessDescription

BOUNDARY = HarnessDescription().boundary
"""Bytes that no burst may cross a multiple of."""

STATUS_REGISTERS = (
    "hib_error_status",
    "hib_first_error_status",
    "page_fault_address",
    "harness_dma_error",
    "harness_dma_completed",
    "fatal_err_int_status",
    "sc_host_int_status",
    "sc_host_int_count",
    "instruction_queue_int_status",
)
"""Registers that are compared with the model when a program is done."""

CYCLES_PER_DESCRIPTOR = 6000
"""Bound of the wait for a program: the longest transfer under the heaviest pressure, and more."""

MEMORY_BYTES = 1 << 16
"""Host memory of a program; its window covers all of it but a guard at the end."""

GUARD_BYTES = 256
"""Bytes after the window that nothing may touch."""

WINDOW_BASES = (0, 0x0100_0000, 1 << 63, (1 << 63) + 0x1_2340_0000)
"""First device addresses: simple and extended ones."""

BURST_LIMITS = (0, 0, 0, 1, 3, 4, 10, 16, 1000)
"""Values of ``dma_burst_limiter`` that cover each of its bits; 0 means no limit."""


class SizeClass(Enum):
    """Size of a transfer relative to a bus word and to the longest burst."""

    BYTE = "one byte"
    BELOW_WORD = "below a word"
    WORD = "a word"
    WITHIN_BURST = "within a burst"
    SEVERAL_BURSTS = "several bursts"


class Alignment(Enum):
    """Where a transfer begins."""

    ALIGNED = "at a word"
    UNALIGNED = "within a word"
    ACROSS_BOUNDARY = "unaligned, across a 4 KiB boundary"


@dataclass(frozen=True)
class Pressure:
    """Share of cycles (0 to 1) in which each side is held back."""

    bus: float = 0.0
    sinks: float = 0.0
    source: float = 0.0
    descriptors: float = 0.0

    def __bool__(self) -> bool:
        """True if any side is ever held back."""
        return any((self.bus, self.sinks, self.source, self.descriptors))


@dataclass
class DescriptorProgram:
    """Descriptors with all conditions that decide the outcome."""

    descriptors: list[Descriptor]
    window: Window
    memory: bytes
    output: bytes
    bad_words: frozenset[int] = frozenset()
    pressure: Pressure = field(default_factory=Pressure)
    burst_limit: int = 0
    decode_errors: bool = False
    """Whether bad words answer DECERR, if the memory can."""

    def output_of(self) -> list[bytes]:
        """For each descriptor, the bytes of the output stream that it writes."""
        parts, place = [], 0
        for descriptor in self.descriptors:
            writes = (
                descriptor.is_data
                and descriptor.tag == DescriptorTag.OUTPUT
                and self.window.outcome(descriptor) is Outcome.STARTED
            )
            size = descriptor.size if writes else 0
            parts.append(self.output[place : place + size])
            place += size
        return parts


def size_class(size: int, data_bytes: int, burst_words: int) -> SizeClass:
    """The class of a transfer of ``size`` bytes."""
    if size == 1:
        return SizeClass.BYTE
    if size < data_bytes:
        return SizeClass.BELOW_WORD
    if size == data_bytes:
        return SizeClass.WORD
    within = size <= data_bytes * burst_words
    return SizeClass.WITHIN_BURST if within else SizeClass.SEVERAL_BURSTS


def alignment(address: int, size: int, data_bytes: int) -> Alignment:
    """The class of a transfer of ``size`` bytes at ``address``."""
    if not address % data_bytes:
        return Alignment.ALIGNED
    if address // BOUNDARY != (address + size - 1) // BOUNDARY:
        return Alignment.ACROSS_BOUNDARY
    return Alignment.UNALIGNED


@dataclass(frozen=True)
class TransferSample:
    """The properties of a transfer that functional coverage crosses."""

    size: SizeClass
    alignment: Alignment
    write: bool
    behind_fence: bool
    back_pressure: bool
    response_error: bool


class ProgramGenerator:
    """Makes random programs for a bus of ``data_bytes`` with bursts of ``burst_words``."""

    def __init__(self, random: Random, data_bytes: int, burst_words: int) -> None:
        self._random = random
        self._data_bytes = data_bytes
        self._burst_words = burst_words
        self._reads: list[range] = []
        self._writes: list[range] = []
        self._written_before: list[range] = []

    def program(self, *, longest: int = 12, pressure: Pressure | None = None) -> DescriptorProgram:
        """A program of 1 to ``longest`` descriptors and the fences that keep it free of races."""
        random = self._random
        window = self._begin()
        descriptors: list[Descriptor] = []
        length = random.randint(1, longest)
        while len(descriptors) < length:
            self._append(descriptors, window)
        started = [d for d in descriptors if window.outcome(d) is Outcome.STARTED and d.is_data]
        bad_words = self._bad_words(started, window) if random.random() < 0.4 else frozenset()
        return self._surround(
            descriptors, window, bad_words, self._pressure() if pressure is None else pressure
        )

    def directed(self, samples: Sequence[TransferSample]) -> DescriptorProgram:
        """A program with one transfer for each of ``samples``, which agree in back-pressure."""
        window = self._begin()
        descriptors: list[Descriptor] = []
        good_words: set[int] = set()
        bad_words: set[int] = set()
        for sample in samples:
            while True:
                transfer = self._transfer_of(window, sample.size, sample.alignment, sample.write)
                words = set(self._words(transfer, window))
                place = alignment(transfer.address - window.base, transfer.size, self._data_bytes)
                free = words - good_words if sample.response_error else not words & bad_words
                if place is sample.alignment and free and not self._races(transfer, window):
                    break
            if sample.response_error:
                bad_words.add(min(words - good_words))
            else:
                good_words |= words
            if sample.behind_fence:
                descriptors.append(Descriptor(fence=True))
            descriptors.append(transfer)
            self._note(transfer, window)
        pressure = Pressure(0.3, 0.3, 0.3, 0.3) if samples[0].back_pressure else Pressure()
        return self._surround(descriptors, window, frozenset(bad_words), pressure)

    def refused(self, count: int) -> DescriptorProgram:
        """A program of ``count`` descriptors that must all be refused."""
        window = self._begin()
        descriptors = [self.bad(window) for _ in range(count)]
        return self._surround(descriptors, window, frozenset(), Pressure())

    def _begin(self) -> Window:
        self._reads, self._writes, self._written_before = [], [], []
        return Window(self._random.choice(WINDOW_BASES), MEMORY_BYTES - GUARD_BYTES)

    def _surround(
        self,
        descriptors: list[Descriptor],
        window: Window,
        bad_words: frozenset[int],
        pressure: Pressure,
    ) -> DescriptorProgram:
        """The program of ``descriptors``, with memory and output bytes."""
        random = self._random
        output_bytes = sum(
            d.size
            for d in descriptors
            if d.is_data and d.tag == DescriptorTag.OUTPUT and window.outcome(d) is Outcome.STARTED
        )
        return DescriptorProgram(
            descriptors,
            window,
            random.randbytes(MEMORY_BYTES),
            random.randbytes(output_bytes),
            bad_words,
            pressure,
            random.choice(BURST_LIMITS),
            random.random() < 0.5,
        )

    def _append(self, descriptors: list[Descriptor], window: Window) -> None:
        kinds: list[tuple[float, Callable[[Window], Descriptor]]] = [
            (0.08, lambda _: Descriptor(fence=True)),
            (0.08, lambda _: Descriptor(DescriptorTag.INTERRUPT_0 + self._random.randrange(4))),
            (0.10, self.bad),
        ]
        chosen = self._random.random()
        for share, make in kinds:
            if chosen < share:
                descriptor = make(window)
                descriptors.append(descriptor)
                if descriptor.fence and window.outcome(descriptor) is Outcome.STARTED:
                    self._pass_fence()
                return
            chosen -= share
        descriptor = self._transfer(window)
        if self._races(descriptor, window):
            descriptors.append(Descriptor(fence=True))
            self._pass_fence()
        self._note(descriptor, window)
        descriptors.append(descriptor)

    def _pass_fence(self) -> None:
        self._written_before += self._writes
        self._reads, self._writes = [], []

    def bad(self, window: Window) -> Descriptor:
        """A descriptor that must be refused."""
        random = self._random
        end = window.base + window.size
        data, any_interrupt = random.randrange(4), DescriptorTag.INTERRUPT_0 + random.randrange(4)
        unknown = random.randrange(8, 16)
        return random.choice(
            (
                Descriptor(data, window.base, 0),
                Descriptor(unknown, window.base, 8),
                Descriptor(unknown),
                Descriptor(any_interrupt, random.getrandbits(20) + 1),
                Descriptor(any_interrupt, 0, random.randint(1, 99)),
                Descriptor(0, 0, 1 + random.getrandbits(8), fence=True),
                Descriptor(random.randint(1, 15), fence=True),
                Descriptor(data, end, 1),
                Descriptor(data, end - 8, random.randint(9, 5000)),
                Descriptor(data, (1 << 64) - 4, random.randint(1, 8)),
                Descriptor(data, window.base, (1 << 32) - 1),
                Descriptor(data, window.base ^ 1 << 63, 64),
            )
        )

    def _transfer(self, window: Window) -> Descriptor:
        random = self._random
        transfer = self._transfer_of(
            window,
            random.choice(list(SizeClass)),
            random.choice(list(Alignment)),
            random.random() < 0.5,
        )
        if transfer.tag != DescriptorTag.OUTPUT and self._written_before and random.random() < 0.5:
            earlier = random.choice(self._written_before)
            size = min(transfer.size, len(earlier))
            return Descriptor(transfer.tag, window.base + earlier.start, size)
        return transfer

    def _transfer_of(
        self, window: Window, wanted: SizeClass, place: Alignment, write: bool
    ) -> Descriptor:
        random, word = self._random, self._data_bytes
        burst = word * self._burst_words
        limits = {
            SizeClass.BYTE: (1, 1),
            SizeClass.BELOW_WORD: (2, word - 1),
            SizeClass.WORD: (word, word),
            SizeClass.WITHIN_BURST: (word + 1, burst),
            SizeClass.SEVERAL_BURSTS: (burst + 1, 8 * burst),
        }
        size = random.randint(*limits[wanted])
        if place is Alignment.ACROSS_BOUNDARY and size > 1:
            boundary = BOUNDARY * random.randint(1, MEMORY_BYTES // BOUNDARY - 2)
            before = random.randint(1, min(size - 1, burst))
            offset = boundary - before + (before % word == 0)
        else:
            offset = random.randrange(window.size - size - word) // word * word
            offset += random.randint(1, word - 1) if place is Alignment.UNALIGNED else 0
        tag = DescriptorTag.OUTPUT if write else random.choice(READ_TAGS)
        return Descriptor(tag, window.base + offset, size)

    def _range(self, descriptor: Descriptor, window: Window) -> range:
        start = descriptor.address - window.base
        return range(start, start + descriptor.size)

    def _words(self, descriptor: Descriptor, window: Window) -> range:
        """Bus words that the transfer touches."""
        own = self._range(descriptor, window)
        return range(own.start // self._data_bytes, (own.stop - 1) // self._data_bytes + 1)

    def _races(self, descriptor: Descriptor, window: Window) -> bool:
        """Bus words, not bytes, must be apart: a word is read whole."""
        own = self._range(descriptor, window)
        others = self._reads if descriptor.tag == DescriptorTag.OUTPUT else self._writes
        word = self._data_bytes
        return any(
            own.start < other.stop + word and other.start < own.stop + word for other in others
        )

    def _note(self, descriptor: Descriptor, window: Window) -> None:
        ranges = self._writes if descriptor.tag == DescriptorTag.OUTPUT else self._reads
        ranges.append(self._range(descriptor, window))

    def _bad_words(self, started: list[Descriptor], window: Window) -> frozenset[int]:
        """Some words of some transfers, often the first or the last."""
        words = set()
        for descriptor in started:
            if self._random.random() < 0.5:
                own = self._range(descriptor, window)
                place = self._random.choice((own.start, own.stop - 1, self._random.choice(own)))
                words.add(place // self._data_bytes)
        return frozenset(words)

    def _pressure(self) -> Pressure:
        random = self._random
        if random.random() < 0.3:
            return Pressure()
        levels = (0.0, 0.1, 0.5, 0.8)
        return Pressure(*(random.choice(levels) for _ in range(4)))
