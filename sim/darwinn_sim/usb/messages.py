"""The byte stream of endpoint 1: messages, cut into transfers wherever the host likes.

A message is a header of 8 bytes (u32 bytes of payload, u8 whose low 4 bits are the tag, 3 bytes
that are 0) and the payload.
"""

from __future__ import annotations

import struct
from typing import Protocol

from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.usb.errors import ProtocolFault

MAX_CHUNK_BYTES = 1 << 24
"""The longest instruction chunk that is taken: 64 times the longest that compilers write."""

_HEADER = struct.Struct("<IB3s")
_TAG_BITS = 0xF
_DATA = (DescriptorTag.INPUT, DescriptorTag.PARAMETERS)


class Receiver(Protocol):
    """Who takes the messages."""

    def push_chunk(self, chunk: bytes) -> None:
        """A whole instruction chunk."""

    def push_data(self, tag: DescriptorTag, data: bytes | memoryview) -> None:
        """A part of a message of inputs or parameters."""


class MessageParser:
    """Takes pieces of the stream; hands data on as it comes, and chunks when they are complete."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self.clear()

    def clear(self) -> None:
        """The next byte begins a message."""
        self._begun = bytearray()
        self._tag: DescriptorTag | None = None
        self._left = 0
        self._position = self._begin_at = 0

    @property
    def held(self) -> int:
        """Bytes of a header or a chunk that is not complete."""
        return len(self._begun)

    def feed(self, piece: bytes) -> None:
        """Take further bytes; raises ``ProtocolFault`` where they are no message."""
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
        if tag not in (DescriptorTag.INSTRUCTIONS, *_DATA):
            raise ProtocolFault(f"{at}: tag {tag} is none that a host sends")
        if not length:
            raise ProtocolFault(f"{at}: tag {tag} without payload")
        if tag == DescriptorTag.INSTRUCTIONS and length > MAX_CHUNK_BYTES:
            raise ProtocolFault(
                f"{at}: an instruction chunk of {length} bytes; {MAX_CHUNK_BYTES} are taken at most"
            )
        self._tag, self._left = DescriptorTag(tag), length

    def _payload(self, rest: memoryview, tag: DescriptorTag) -> int:
        taken = min(self._left, len(rest))
        self._left -= taken
        if tag in _DATA:
            self._receiver.push_data(tag, rest[:taken])
        else:
            self._begun += rest[:taken]
            if not self._left:
                self._receiver.push_chunk(bytes(self._begun))
                self._begun.clear()
        if not self._left:
            self._tag = None
        return taken
