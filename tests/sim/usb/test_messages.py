"""The byte stream of endpoint 1: its messages do not depend on how it is cut."""

from __future__ import annotations

import struct

import pytest
from darwinn_sim.isa.builder import frame
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.usb.errors import ProtocolFault
from darwinn_sim.usb.messages import MAX_CHUNK_BYTES, Chunks, Messages, Stream
from hypothesis import given
from hypothesis import strategies as st

LOAD_PROGRAM = BY_NAME["LoadProgram"]


class Collector:
    held_chunks = 0

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.data = {DescriptorTag.INPUT: b"", DescriptorTag.PARAMETERS: b""}

    def push_chunk(self, chunk: bytes) -> None:
        self.chunks.append(chunk)

    def push_data(self, tag: DescriptorTag, data: bytes | memoryview) -> None:
        self.data[tag] += bytes(data)

    def held_data(self, tag: DescriptorTag) -> int:
        return 0


def message(tag: int, payload: bytes) -> bytes:
    return struct.pack("<II", len(payload), tag) + payload


def feed_in_pieces(parser: Stream, stream: bytes, data: st.DataObject) -> None:
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        parser.feed(stream[:size])
        stream = stream[size:]


MESSAGES = st.lists(st.tuples(st.integers(0, 2), st.binary(min_size=1, max_size=40)), max_size=8)


@given(messages=MESSAGES, data=st.data())
def test_messages_are_the_same_however_the_stream_is_cut(
    messages: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    stream = b"".join(message(*each) for each in messages)
    collector = Collector()
    parser = Messages(collector)
    feed_in_pieces(parser, stream, data)
    assert collector.chunks == [payload for tag, payload in messages if tag == 0]
    for wanted in (1, 2):
        expected = b"".join(payload for tag, payload in messages if tag == wanted)
        assert collector.data[DescriptorTag(wanted)] == expected
    assert parser.held == 0


def test_data_is_handed_on_before_its_message_is_complete() -> None:
    collector = Collector()
    parser = Messages(collector)
    parser.feed(message(1, b"0123456789")[:12])
    assert collector.data[DescriptorTag.INPUT] == b"0123"
    parser.feed(message(0, b"0123456789")[:3])
    assert parser.held == 0


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (message(1, b"x") + message(3, b"y"), "byte 9 .* tag 3 is none that a host sends"),
        (message(15, b"y"), "tag 15 is none"),
        (message(0, b""), "tag 0 without payload"),
        (struct.pack("<II", MAX_CHUNK_BYTES + 1, 0), "chunk of 16777217 bytes; 16777216 are"),
        (struct.pack("<II", 5, 0x100), "bytes 5 to 7 of its header are 01 00 00, not 0"),
    ],
)
def test_what_is_no_message_is_named(stream: bytes, reason: str) -> None:
    parser = Messages(Collector())
    with pytest.raises(ProtocolFault, match=reason):
        parser.feed(stream)


@given(bodies=st.lists(st.integers(0, 3), max_size=5), data=st.data())
def test_chunks_say_their_length(bodies: list[int], data: st.DataObject) -> None:
    chunks = [frame(bytes(16 * bundles)) for bundles in bodies]
    stream = b"".join(chunks)
    collector = Collector()
    parser = Chunks(collector)
    feed_in_pieces(parser, stream, data)
    assert collector.chunks == chunks
    assert parser.held == 0


def test_what_is_no_chunk_is_named() -> None:
    parser = Chunks(Collector())
    parser.feed(bytes(15))
    with pytest.raises(ProtocolFault, match="opcode 0 where a chunk begins"):
        parser.feed(bytes(1))


@given(st.integers(0, 20), st.integers(0, 2**128 - 1))
def test_how_long_a_chunk_is_stands_in_one_field_of_its_first_bundle(
    bundles: int, others: int
) -> None:
    """Its other bits, those beside the opcode and the count among them, say nothing of that."""
    fields = {"opcode": LOAD_PROGRAM.opcode, "bundles": bundles}
    first = others
    for name, value in fields.items():
        field = LOAD_PROGRAM.field(name)
        mask = (1 << field.width) - 1
        first = first & ~(mask << field.offset) | value << field.offset
    chunk = first.to_bytes(16, "little") + bytes(16 * (bundles + 1))
    collector = Collector()
    parser = Chunks(collector)
    parser.feed(chunk[:-1])
    assert (collector.chunks, parser.held) == ([], len(chunk) - 1)
    parser.feed(chunk[-1:])
    assert (collector.chunks, parser.held) == ([chunk], 0)
