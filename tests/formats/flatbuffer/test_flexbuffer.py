"""FlexBuffers: what the runtime's builder writes is read, and faults are refused in place."""

from __future__ import annotations

import math
from typing import Any

import pytest
from darwinn_formats.errors import FormatError
from darwinn_formats.flatbuffer import Span, flexbuffer
from flatbuffers import flexbuffers
from hypothesis import given
from hypothesis import strategies as st

KEYS = st.text(st.characters(min_codepoint=1, max_codepoint=126), min_size=1, max_size=4)
SCALARS = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    # The builder cannot write a float that is too large for 32 bits.
    | st.floats(width=32, allow_nan=False)
    | st.binary(max_size=300)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def add(builder: flexbuffers.Builder, value: Any) -> None:
    match value:
        case bool():
            builder.Bool(value)
        case int():
            builder.Int(value)
        case float():
            builder.Float(value)
        case bytes():
            builder.Blob(value)
        case list():
            with builder.Vector():
                for entry in value:
                    add(builder, entry)
        case dict():
            with builder.Map():
                for key, entry in value.items():
                    builder.Key(key)
                    add(builder, entry)


def written(value: Any) -> bytes:
    builder = flexbuffers.Builder()
    add(builder, value)
    return bytes(builder.Finish())


def plain(value: flexbuffer.Value) -> Any:
    match value:
        case Span():
            return bytes(value.data)
        case tuple():
            return [plain(entry) for entry in value]
        case dict():
            return {key: plain(entry) for key, entry in value.items()}
    return value


@given(VALUES)
def test_what_the_builder_writes_is_read(value: Any) -> None:
    assert plain(flexbuffer.read(memoryview(written(value)))) == value


def test_typed_vectors_indirect_numbers_keys_and_strings() -> None:
    builder = flexbuffers.Builder()
    with builder.Vector():
        builder.TypedVectorFromElements([1, -2, 300])
        builder.TypedVectorFromElements([0.5, math.inf])
        builder.IndirectInt(-5)
        builder.IndirectUInt(2**63)
        builder.IndirectFloat(0.25)
        builder.UInt(255)
        builder.Null()
        builder.String("text")
        builder.Key("key")
    data = memoryview(bytes(builder.Finish()))
    assert plain(flexbuffer.read(data)) == [
        [1, -2, 300],
        [0.5, math.inf],
        -5,
        2**63,
        0.25,
        255,
        None,
        b"text",
        "key",
    ]


def test_bytes_know_their_place_in_the_file() -> None:
    data = written([b"some", b"bytes"])
    values = flexbuffer.read(memoryview(data), base=100)
    assert isinstance(values, tuple)
    for value in values:
        assert isinstance(value, Span)
        start = value.offset - 100
        assert data[start : start + len(value)] == value.data


@given(VALUES, st.data())
def test_any_change_is_refused_or_read(value: Any, data: st.DataObject) -> None:
    changed = bytearray(written(value))
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(changed)))
    for candidate in (bytes(changed), bytes(changed[:end])):
        try:
            flexbuffer.read(memoryview(candidate), base=7)
        except FormatError as error:
            assert error.offset is not None
            assert 7 <= error.offset <= 7 + len(candidate)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes are fewer"),
        (b"\0\0\3", "width of 3 bytes"),
        (b"\1\0\x08", "width of 8 bytes"),
        (bytes([1, 9 << 2, 1]), "leads back to before the data|outside the data"),
        (bytes([0, 99 << 2 & 0xFF, 1]), "type .* is not supported"),
        (bytes([9, 5 << 2, 1]), "leads back to before the data"),
        (bytes([9, 65, 0, 2, 5 << 2, 1]), "9 bytes end after the data"),
        (bytes([1, 65, 66, 2, 5 << 2, 1]), "string does not end with a zero byte"),
        (bytes([65, 66, 2, 4 << 2, 1]), None),
        (bytes([9, 0, 1, 10 << 2, 1]), "vector of 9 elements ends after the data"),
    ],
)
def test_faults_are_refused(data: bytes, reason: str | None) -> None:
    if reason is None:
        assert flexbuffer.read(memoryview(b"\0AB\0\4\x10\1")) == ""
        return
    with pytest.raises(FormatError, match=reason):
        flexbuffer.read(memoryview(data))


def test_keys_must_be_in_order() -> None:
    data = bytearray(written({"a": 1, "b": 2}))
    first = data.index(b"a\0")
    data[first] = ord("c")
    with pytest.raises(FormatError, match="keys are not in order at 'b'"):
        flexbuffer.read(memoryview(bytes(data)))
