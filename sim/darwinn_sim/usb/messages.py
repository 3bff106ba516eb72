"""What the host's byte streams are made of; they are cut into transfers wherever the host likes.

With one endpoint for everything, a stream of messages: a header of 8 bytes (u32 bytes of payload,
u8 whose low 4 bits are the tag, 3 bytes that are 0) and the payload. With an endpoint for each
kind of data, instruction chunks, which say their length themselves, inputs, and parameters.
"""

from __future__ import annotations

import struct
from typing import Protocol

from darwinn_sim.host.descriptors import STREAMS
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.isa.fields import BUNDLE_BYTES
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.usb.errors import ProtocolFault

HELD_BYTES = 1 << 16
"""Bytes of inputs and parameters that the chip takes ahead of its descriptors; further ones wait on
the cable. The depth of its buffers is not public: sticks fail where it would have to be 102,400
(docs/field-failure.md), so that it is less."""

HELD_CHUNK_BYTES = 64 << 20
"""The same of instruction chunks, which are taken whole."""

MAX_CHUNK_BYTES = 1 << 24
"""The longest instruction chunk that is taken: 64 times the longest that compilers write."""

LOAD_PROGRAM = BY_NAME["LoadProgram"]
_LOAD = tuple(field for field in LOAD_PROGRAM.fields if field.name in ("opcode", "bundles"))
_BUNDLES_AROUND = 2
"""The first bundle of a chunk and the last are not among those that it counts."""

_HEADER = struct.Struct("<IB3s")
_TAG_BITS = 0xF


class Receiver(Protocol):
    """Who takes what has come.

    ``held_chunks``: bytes of chunks that the chip has not taken.
    """

    held_chunks: int

    def push_chunk(self, chunk: bytes) -> None:
        """A whole instruction chunk."""

    def push_data(self, tag: DescriptorTag, data: bytes | memoryview) -> None:
        """A part of inputs or parameters."""

    def held_data(self, tag: DescriptorTag) -> int:
        """Bytes of inputs or parameters that the chip has not taken."""


class Stream(Protocol):
    """What takes the bytes of an endpoint."""

    @property
    def held(self) -> int:
        """Bytes that the chip has not taken."""

    @property
    def room(self) -> int:
        """Bytes that may come now."""

    def where(self) -> str:
        """What of the host's data has come last, for messages."""

    def feed(self, piece: bytes | bytearray) -> None:
        """Take further bytes; raises ``ProtocolFault`` where they make no sense."""


class Messages:
    """Hands data on as it comes, and chunks when they are complete."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._begun = bytearray()
        self._tag: DescriptorTag | None = None
        self._left = 0
        self._position = self._begin_at = 0
        self._after_chunk = 0
        """Messages of data since the last chunk."""
        self._length = 0

    @property
    def held(self) -> int:
        """As :class:`Stream`."""
        data = sum(map(self._receiver.held_data, STREAMS))
        return len(self._begun) + self._receiver.held_chunks + data

    @property
    def room(self) -> int:
        """As :class:`Stream`."""
        if len(self._begun) + self._receiver.held_chunks > HELD_CHUNK_BYTES:
            return 0
        is_chunk = self._tag == DescriptorTag.INSTRUCTIONS
        ahead = HELD_BYTES - sum(map(self._receiver.held_data, STREAMS))
        return max(ahead, 0) + (self._left if is_chunk else 0)

    def where(self) -> str:
        """As :class:`Stream`."""
        if self._tag is None:
            return f"{self._after_chunk} messages after an instruction chunk"
        return (
            f"message {self._after_chunk} after an instruction chunk ({self._length:,} bytes of "
            f"tag {int(self._tag)})"
        )

    def feed(self, piece: bytes | bytearray) -> None:
        """As :class:`Stream`."""
        rest = memoryview(piece)
        while rest:
            taken = self._header(rest) if self._tag is None else self._payload(rest, self._tag)
            self._position += taken
            rest = rest[taken:]

    def _header(self, rest: memoryview) -> int:
        if not self._begun:
            self._begin_at = self._position
        taken = min(_HEADER.size - len(self._begun), len(rest))
        self._begun += rest[:taken]
        if len(self._begun) == _HEADER.size:
            length, tag, zero = _HEADER.unpack(self._begun)
            self._begun.clear()
            self._begin(length, tag & _TAG_BITS, zero)
        return taken

    def _begin(self, length: int, tag: int, zero: bytes) -> None:
        at = f"message at byte {self._begin_at} of endpoint 1"
        if any(zero):
            raise ProtocolFault(f"{at}: bytes 5 to 7 of its header are {zero.hex(' ')}, not 0")
        if tag not in (DescriptorTag.INSTRUCTIONS, *STREAMS):
            raise ProtocolFault(f"{at}: tag {tag} is none that a host sends")
        if not length:
            raise ProtocolFault(f"{at}: tag {tag} without payload")
        if tag == DescriptorTag.INSTRUCTIONS and length > MAX_CHUNK_BYTES:
            raise ProtocolFault(
                f"{at}: an instruction chunk of {length} bytes; {MAX_CHUNK_BYTES} are taken at most"
            )
        self._tag, self._left = DescriptorTag(tag), length
        self._length = length
        self._after_chunk = 0 if tag == DescriptorTag.INSTRUCTIONS else self._after_chunk + 1

    def _payload(self, rest: memoryview, tag: DescriptorTag) -> int:
        taken = min(self._left, len(rest))
        self._left -= taken
        if tag in STREAMS:
            self._receiver.push_data(tag, rest[:taken])
        else:
            self._begun += rest[:taken]
            if not self._left:
                self._receiver.push_chunk(bytes(self._begun))
                self._begun.clear()
        if not self._left:
            self._tag = None
        return taken


class Chunks:
    """Instruction chunks one after another; the first bundle of each says how long it is."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._begun = bytearray()

    @property
    def held(self) -> int:
        """As :class:`Stream`."""
        return len(self._begun) + self._receiver.held_chunks

    @property
    def room(self) -> int:
        """As :class:`Stream`."""
        return HELD_CHUNK_BYTES - self.held

    def where(self) -> str:
        """As :class:`Stream`."""
        return "an instruction chunk"

    def feed(self, piece: bytes | bytearray) -> None:
        """As :class:`Stream`."""
        self._begun += piece
        at = 0
        while (size := self._chunk_bytes(at)) and len(self._begun) - at >= size:
            self._receiver.push_chunk(bytes(memoryview(self._begun)[at : at + size]))
            at += size
        del self._begun[:at]

    def _chunk_bytes(self, at: int) -> int:
        """Bytes of the chunk that begins at a byte of what has come; 0: it does not say yet."""
        if len(self._begun) - at < BUNDLE_BYTES:
            return 0
        bundle = int.from_bytes(self._begun[at : at + BUNDLE_BYTES], "little")
        fields = {field.name: bundle >> field.offset & (1 << field.width) - 1 for field in _LOAD}
        if fields["opcode"] != LOAD_PROGRAM.opcode:
            raise ProtocolFault(
                f"endpoint 1: opcode {fields['opcode']} where a chunk begins, which is not "
                f"{LOAD_PROGRAM.name}"
            )
        return BUNDLE_BYTES * (fields["bundles"] + _BUNDLES_AROUND)


class Data:
    """Inputs or parameters."""

    def __init__(self, receiver: Receiver, tag: DescriptorTag) -> None:
        self._receiver = receiver
        self._tag = tag

    @property
    def held(self) -> int:
        """As :class:`Stream`."""
        return self._receiver.held_data(self._tag)

    @property
    def room(self) -> int:
        """As :class:`Stream`."""
        return HELD_BYTES - self.held

    def where(self) -> str:
        """As :class:`Stream`."""
        return f"bytes of tag {int(self._tag)}"

    def feed(self, piece: bytes | bytearray) -> None:
        """As :class:`Stream`."""
        self._receiver.push_data(self._tag, memoryview(piece))
