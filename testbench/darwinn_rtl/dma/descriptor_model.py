"""The meaning of descriptors, as briefly as possible: the model that the scoreboard compares with.

It performs one descriptor after another, at once and completely. Bursts, order between streams and
time must not be visible in the bytes. Facts: docs/rtl-dma.md, section "Descriptors".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, TypeVar

from darwinn_sim.isa.codes import DescriptorTag

ADDRESS_BITS = 40
"""Bits of a bus address (``dma_pkg::AddressBits``)."""


READ_TAGS = (DescriptorTag.INSTRUCTIONS, DescriptorTag.INPUT, DescriptorTag.PARAMETERS)
"""Tags whose bytes go into a stream of their own, in the order of the RTL's read streams."""


class Outcome(IntEnum):
    """The outcome of a descriptor; the values are those of ``dma_pkg::outcome_e``."""

    STARTED = 0
    MALFORMED = 1
    LENGTH_0 = 2
    INBOUND_FAULT = 3
    EXTENDED_FAULT = 4


@dataclass(frozen=True)
class Descriptor:
    """An entry that the scalar core gives to the DMA engine; ``address`` is a device address."""

    tag: int = 0
    address: int = 0
    size: int = 0
    fence: bool = False

    @property
    def is_data(self) -> bool:
        """True for tags 0 to 3."""
        return not self.fence and self.tag < DescriptorTag.INTERRUPT_0

    @property
    def is_interrupt(self) -> bool:
        """True for tags 4 to 7."""
        return (
            not self.fence and DescriptorTag.INTERRUPT_0 <= self.tag < DescriptorTag.INTERRUPT_0 + 4
        )

    def __str__(self) -> str:
        """The entry in words."""
        what = "fence" if self.fence else f"tag {self.tag}"
        return f"{what} address {self.address:#x} size {self.size}"


@dataclass(frozen=True)
class Window:
    """The device addresses that the harness can reach: ``size`` bytes from ``base`` on."""

    base: int
    size: int

    def outcome(self, descriptor: Descriptor) -> Outcome:
        """The outcome of ``descriptor``."""
        has_range = descriptor.address or descriptor.size
        if not descriptor.is_data:
            known = not descriptor.tag if descriptor.fence else descriptor.is_interrupt
            return Outcome.STARTED if known and not has_range else Outcome.MALFORMED
        if not descriptor.size:
            return Outcome.LENGTH_0
        offset = descriptor.address - self.base
        if offset >= 0 and offset + descriptor.size <= min(self.size, 1 << ADDRESS_BITS):
            return Outcome.STARTED
        return Outcome.EXTENDED_FAULT if descriptor.address >> 63 else Outcome.INBOUND_FAULT


@dataclass
class Performed:
    """A descriptor with its effect: bytes that go to a stream, or that memory holds afterwards.

    ``response_error`` is True if a bus word that it touches answers with an error.
    """

    index: int
    descriptor: Descriptor
    outcome: Outcome
    data: bytes = b""
    response_error: bool = False


@dataclass
class Pieces:
    """Sparse memory: pieces of bytes by their first address. Every access lies in one piece."""

    pieces: dict[int, bytearray]

    def __getitem__(self, place: slice) -> bytes:
        start, piece = self._piece(place)
        return bytes(piece[place.start - start : place.stop - start])

    def __setitem__(self, place: slice, data: bytes) -> None:
        start, piece = self._piece(place)
        piece[place.start - start : place.stop - start] = data

    def _piece(self, place: slice) -> tuple[int, bytearray]:
        return next(
            (start, piece)
            for start, piece in self.pieces.items()
            if start <= place.start and place.stop <= start + len(piece)
        )


_Memory = TypeVar("_Memory", bytearray, Pieces)


@dataclass
class DescriptorModel(Generic[_Memory]):
    """Host memory after the descriptors so far.

    Args:
        memory: host memory from bus address 0 on, changed in place.
        window: the device addresses that memory stands for.
        data_bytes: bytes of a bus word.
        bad_words: bus words (address / ``data_bytes``) that answer with an error: reads give
            zeros, writes do nothing.
    """

    memory: _Memory
    window: Window
    data_bytes: int
    bad_words: frozenset[int] = frozenset()
    performed: list[Performed] = field(default_factory=list)
    streams: dict[DescriptorTag, bytearray] = field(
        default_factory=lambda: {tag: bytearray() for tag in READ_TAGS}
    )

    def perform(self, descriptor: Descriptor, output: bytes = b"") -> Performed:
        """Carry out ``descriptor``; ``output`` holds the bytes of a descriptor of tag 3."""
        done = Performed(len(self.performed), descriptor, self.window.outcome(descriptor))
        self.performed.append(done)
        if done.outcome is Outcome.STARTED and descriptor.is_data:
            done.response_error = self._touches_bad_word(descriptor)
            if descriptor.tag == DescriptorTag.OUTPUT:
                self._write(descriptor, output)
                done.data = output
            else:
                done.data = self._read(descriptor)
                self.streams[DescriptorTag(descriptor.tag)] += done.data
        return done

    def _touches_bad_word(self, descriptor: Descriptor) -> bool:
        start = descriptor.address - self.window.base
        first, last = start // self.data_bytes, (start + descriptor.size - 1) // self.data_bytes
        return any(first <= word <= last for word in self.bad_words)

    def _read(self, descriptor: Descriptor) -> bytes:
        start = descriptor.address - self.window.base
        data = bytearray(self.memory[start : start + descriptor.size])
        for place, _ in self._bad_bytes(descriptor):
            data[place] = 0
        return bytes(data)

    def _write(self, descriptor: Descriptor, output: bytes) -> None:
        start = descriptor.address - self.window.base
        kept = [(place, self.memory[at : at + 1]) for place, at in self._bad_bytes(descriptor)]
        self.memory[start : start + descriptor.size] = output
        for place, value in kept:
            self.memory[start + place : start + place + 1] = value

    def _bad_bytes(self, descriptor: Descriptor) -> Iterable[tuple[int, int]]:
        """Place in the descriptor, and bus address, of each byte in a bad word."""
        if not self.bad_words:
            return ()
        start = descriptor.address - self.window.base
        return (
            (place, start + place)
            for place in range(descriptor.size)
            if (start + place) // self.data_bytes in self.bad_words
        )

    def status(self) -> dict[str, int]:
        """Values that the error and count registers must have, by register name.

        Valid when every descriptor has been completed, and the status registers were 0 before.
        """
        outcomes = [done.outcome for done in self.performed]
        bits = {Outcome.INBOUND_FAULT: 1, Outcome.EXTENDED_FAULT: 2, Outcome.LENGTH_0: 1 << 13}
        hib = [bits[outcome] for outcome in outcomes if outcome in bits]
        started = [done for done in self.performed if done.outcome is Outcome.STARTED]
        raised = [done.descriptor.tag - 4 for done in started if done.descriptor.is_interrupt]
        faults = [
            done.descriptor.address
            for done in self.performed
            if done.outcome in (Outcome.INBOUND_FAULT, Outcome.EXTENDED_FAULT)
        ]
        engine = int(Outcome.MALFORMED in outcomes)
        for done in started:
            if done.response_error:
                engine |= 4 if done.descriptor.tag == DescriptorTag.OUTPUT else 2
        return {
            "hib_error_status": _union(hib),
            "hib_first_error_status": hib[0] if hib else 0,
            "page_fault_address": faults[-1] if faults else 0,
            "harness_dma_error": engine,
            "harness_dma_completed": len(started),
            "fatal_err_int_status": int(bool(hib or engine)),
            "sc_host_int_status": _union(1 << number for number in raised),
            "sc_host_int_count": sum(
                (raised.count(number) & 0xFFFF) << 16 * number for number in range(4)
            ),
            "instruction_queue_int_status": int(
                any(
                    d.descriptor.is_data and d.descriptor.tag == DescriptorTag.INSTRUCTIONS
                    for d in started
                )
            ),
        }

    def error_descriptor(self) -> dict[str, int]:
        """Value of the register with the number of the last bad descriptor since reset; empty if
        several were bad, because their order in time decides."""
        failed = [
            done.index
            for done in self.performed
            if done.outcome is not Outcome.STARTED or done.response_error
        ]
        return {"harness_dma_error_descriptor": sum(failed)} if len(failed) < 2 else {}


def _union(bits: Iterable[int]) -> int:
    union = 0
    for bit in bits:
        union |= bit
    return union
