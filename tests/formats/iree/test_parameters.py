"""Files of parameters (.irpa): what they hold, and that a damaged one is one clear error."""

from __future__ import annotations

import struct

import pytest
from darwinn_formats.errors import FormatError
from darwinn_formats.iree import describe_parameters, load_parameters
from darwinn_formats.iree.parameters import EntryKind
from hypothesis import given
from hypothesis import strategies as st
from iree_parameters import HEADER_BYTES, Entry, archive

ENTRIES = [
    Entry("weight", bytes(range(64))),
    Entry("bias", b"\0\0\0\x3f", splat=16),
    Entry("gone", b"abc", skip=True),
    Entry("far", path="other.bin"),
]
WHOLE = archive(ENTRIES)


def test_entries_are_read() -> None:
    file = load_parameters(WHOLE)
    found = {name: (entry.kind, entry.size) for name, entry in file.parameters.items()}
    assert found == {
        "weight": (EntryKind.DATA, 64),
        "bias": (EntryKind.SPLAT, 16),
        "far": (EntryKind.EXTERNAL, 64),
    }
    assert bytes(file.parameters["weight"].data) == bytes(range(64))
    assert bytes(file.parameters["bias"].data) == b"\0\0\0\x3f"
    described = describe_parameters(file)["parameters"]
    assert described[2] == {"name": "far", "kind": "external", "bytes": 64, "path": "other.bin"}


def test_archives_are_linked() -> None:
    first = archive([Entry("a", b"1")], following=208)
    data = first.ljust(208, b"\0") + archive([Entry("b", b"22")])
    assert {name: entry.size for name, entry in load_parameters(data).parameters.items()} == {
        "a": 1,
        "b": 2,
    }


def put(offset: int, layout: str, value: int) -> bytes:
    """The archive with another number at a place."""
    changed = bytearray(WHOLE)
    struct.pack_into(layout, changed, offset, value)
    return bytes(changed)


TABLE = HEADER_BYTES + 8


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "32 bytes are needed, 0 left"),
        (b"IRPB" + WHOLE[4:], "does not start with IRPA"),
        (archive([], version=(1, 0)), "version 1.0 is not 0.0"),
        (put(8, "<Q", 40), "header.header_size: 40 bytes"),
        (put(16, "<Q", 8), "next_header_offset: leads back"),
        (put(16, "<Q", 1 << 40), "bytes are needed"),
        (put(32, "<Q", 1 << 40), r"entries\[4\]: is not in the table"),
        (put(48, "<Q", 1 << 40), "entry_segment: ends at byte"),
        (put(64, "<Q", 1 << 40), "metadata_segment: ends at byte"),
        (put(80, "<Q", 1 << 40), "storage_segment: ends at byte"),
        (put(TABLE, "<Q", 8), r"entries\[0\].entry_size: 8 bytes"),
        (put(TABLE + 8, "<I", 9), r"entries\[0\].type: 9"),
        (put(TABLE + 28, "<Q", 999), r"entries\[0\].name: bytes 0 to 999 are not in the"),
        (put(TABLE + 68, "<Q", 999), r"entries\[0\].storage: bytes 0 to 999"),
        (put(TABLE + 80 + 84, "<B", 3), r"entries\[1\].pattern_length: a pattern of 3 bytes"),
        (archive([Entry("a"), Entry("a")]), "a is there twice"),
    ],
)
def test_a_damaged_file_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        load_parameters(data)


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255), st.integers(0, len(WHOLE)))
def test_any_damage_is_a_format_error(place: int, value: int, length: int) -> None:
    changed = bytearray(WHOLE)
    changed[place] = value
    for data in (bytes(changed), WHOLE[:length]):
        try:
            file = load_parameters(data)
        except FormatError:
            continue
        assert all(len(entry.data) <= entry.size for entry in file.parameters.values())
