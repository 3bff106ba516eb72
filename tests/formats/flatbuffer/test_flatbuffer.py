"""The flatbuffer engine refuses each kind of fault, at the byte and the field where it is."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, cast

import flatbuffers
import pytest
from darwinn_formats import flatbuffer as fb
from darwinn_formats.errors import FormatError
from darwinn_formats.remarks import listening, remarks_name


class Colour(IntEnum):
    RED = 0
    BLUE = 2


@dataclass(frozen=True, slots=True)
class Point:
    tag: int = fb.uint8()
    x: int = fb.int32()
    y: float = fb.float64()


@dataclass(frozen=True, slots=True)
class Leaf:
    number: int = fb.int32(5)
    place: int = fb.file_offset()


@dataclass(frozen=True, slots=True)
class Wide:
    value: int = fb.int64()


@fb.file_identifier(b"TEST")
@dataclass(frozen=True, slots=True)
class Root:
    number: int = fb.int32(7)
    colour: Colour = fb.enumeration(Colour.RED, fb.INT8)
    wide: int = fb.uint64()
    name: str | None = fb.string(optional=True)
    data: bytes = fb.byte_vector()
    numbers: tuple[int, ...] = fb.vector(fb.INT64)
    points: tuple[Point, ...] = fb.struct_vector(Point)
    leaf: Leaf | None = fb.table(Leaf)
    leaves: tuple[Leaf, ...] = fb.table_vector(Leaf)
    names: tuple[str, ...] = fb.string_vector()
    choice: Leaf | Wide | fb.OpaqueTable | None = fb.union({1: Leaf, 2: Wide}, other={3: "Other"})
    inner: Leaf | None = fb.nested(lambda: Leaf)


@dataclass(frozen=True, slots=True)
class Shade:
    colour: Colour = fb.enumeration(Colour.RED, fb.INT8)


@dataclass(frozen=True, slots=True)
class Growing:
    text: str = fb.string()
    choice: Shade | fb.OpaqueTable | None = fb.union(
        {1: Shade}, other={2: "Numbers", 3: "Texts"}, numbers={2}, growing=True
    )
    more: str = fb.string()


@fb.open_table
@dataclass(frozen=True, slots=True)
class Part:
    """A subset of Root: only what is in slots 3 and 9."""

    name: str = fb.string(slot=3)
    names: tuple[str, ...] = fb.string_vector(slot=9)


FULL = Root(
    number=-1,
    colour=Colour.BLUE,
    wide=2**64 - 1,
    name="größer",
    data=b"\0\1",
    numbers=(-(2**63), 2**63 - 1),
    points=(Point(1, 2, 0.5), Point(255, -2, float("inf"))),
    leaf=Leaf(6),
    leaves=(Leaf(), Leaf(8)),
    names=("", "b"),
    choice=Wide(9),
    inner=Leaf(10),
)


def test_everything_survives_and_defaults_take_no_place() -> None:
    assert fb.read(fb.write(FULL), Root) == FULL
    assert fb.read(fb.write(Root()), Root) == Root()
    assert len(fb.write(Root())) < len(fb.write(Root(number=1)))
    assert fb.read(fb.write(Root(name="")), Root).name == ""


def test_the_runtime_reads_what_the_engine_writes() -> None:
    """An independent reader: the table accessors of the flatbuffers package."""
    data = bytearray(fb.write(FULL))
    root = struct.unpack_from("<I", data)[0]
    table = flatbuffers.table.Table(data, root)

    def field(slot: int) -> int:
        return int(table.Offset(4 + 2 * slot))

    types = flatbuffers.number_types
    assert table.Get(types.Int32Flags, root + field(0)) == -1
    assert table.Get(types.Int8Flags, root + field(1)) == 2
    assert table.Get(types.Uint64Flags, root + field(2)) == 2**64 - 1
    assert table.String(root + field(3)).decode() == "größer"
    assert table.VectorLen(field(4)) == 2
    assert table.VectorLen(field(6)) == 2
    points = table.Vector(field(6))
    assert struct.unpack_from("<BxxxidB", data, points) == (1, 2, 0.5, 255)
    # The union takes two slots, so that the nested buffer is in slot 12.
    assert table.Get(types.Uint8Flags, root + field(10)) == 2
    assert table.VectorLen(field(12)) == len(fb.write(Leaf(10)))


def test_a_subset_passes_over_what_it_does_not_declare() -> None:
    builder = flatbuffers.Builder()
    text = builder.CreateString("text")
    builder.StartObject(20)
    builder.PrependInt32Slot(19, 1, 0)
    builder.PrependUOffsetTRelativeSlot(3, text, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"TEST")
    data = bytes(builder.Output())
    assert fb.read(data, Part) == Part(name="text")
    with pytest.raises(FormatError, match="Root has no field after slot 12"):
        fb.read(data, Root)


def test_a_member_that_is_not_declared_reads_as_its_name() -> None:
    builder = flatbuffers.Builder()
    builder.StartObject(0)
    other = builder.EndObject()
    builder.StartObject(12)
    builder.PrependUint8Slot(10, 3, 0)
    builder.PrependUOffsetTRelativeSlot(11, other, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"TEST")
    assert fb.read(bytes(builder.Output()), Root).choice == fb.OpaqueTable(3, "Other")


@dataclass(frozen=True, slots=True)
class Darker:
    colour: int = fb.int8()
    names: tuple[str, ...] = fb.string_vector()


@dataclass(frozen=True, slots=True)
class Numbers:
    small: int = fb.int8()
    large: int = fb.int64()


@dataclass(frozen=True, slots=True)
class Later:
    """``Growing`` as a newer schema has it."""

    text: str = fb.string()
    choice: Darker | Numbers | Leaf | None = fb.union({1: Darker, 2: Numbers, 3: Darker, 9: Leaf})
    more: str = fb.string()


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        (Darker(0, ("a", "bc")), "Shade of a newer schema"),
        (Darker(1), "Shade of a newer schema"),
        (Numbers(3, -(2**40)), "Numbers"),
        (Leaf(4), "number 9 of a newer schema"),
    ],
)
def test_a_table_of_a_newer_schema_is_written_as_it_was_read(
    choice: Darker | Numbers | Leaf, name: str
) -> None:
    known = fb.read(fb.write(Later("x", choice, "y" * 100)), Growing)
    assert isinstance(known.choice, fb.OpaqueTable) and known.choice.name == name
    again = fb.write(Growing("longer than before", known.choice, "y" * 100))
    found = fb.read(again, Later)
    assert found.text == "longer than before" and found.more == known.more
    assert found.choice == choice
    assert len(again) < 500
    assert fb.read(again, Growing).choice == known.choice


def test_a_table_that_is_broken_is_no_newer_one() -> None:
    data = bytearray(fb.write(Later("x", Darker(1, ("a",)))))
    view = fb.verify(bytes(data), Growing).read().choice
    assert isinstance(view, fb.OpaqueTable) and view.data is not None
    place = len(data) - len(view.data) + view.place
    data[place : place + 4] = struct.pack("<i", 2**30)
    with pytest.raises(FormatError, match=r"choice: vtable at .* outside the data"):
        fb.read(bytes(data), Growing)


def test_tables_know_their_place_in_the_file() -> None:
    data = fb.write(Root(leaf=Leaf(6), inner=Leaf(10)))
    root = fb.verify(data, Root, base=6).read()
    assert root.leaf is not None
    assert root.inner is not None
    for leaf in (root.leaf, root.inner):
        place = leaf.place - 6
        vtable = place - struct.unpack_from("<i", data, place)[0]
        offset = struct.unpack_from("<H", data, vtable + 4)[0]
        assert struct.unpack_from("<i", data, place + offset)[0] == leaf.number


Change = Callable[[bytearray, dict[str, int]], None]


def put(code: str, place: str, value: Any, shift: int = 0) -> Change:
    """Change of a number at a named place."""

    def change(data: bytearray, places: dict[str, int]) -> None:
        struct.pack_into(f"<{code}", data, places[place] + shift, value)

    return change


def places_of(data: bytes) -> dict[str, int]:
    """Root table, its vtable, the fields in it by slot, and what these lead to."""
    root = struct.unpack_from("<I", data)[0]
    vtable = root - struct.unpack_from("<i", data, root)[0]
    places = {"root": root, "vtable": vtable, "start": 0}
    count = struct.unpack_from("<H", data, vtable)[0] // 2 - 2
    for slot, offset in enumerate(struct.unpack_from(f"<{count}H", data, vtable + 4)):
        places[f"entry {slot}"] = vtable + 4 + 2 * slot
        if offset:
            places[f"field {slot}"] = root + offset
            if slot not in (0, 1, 2, 10):
                relative = struct.unpack_from("<I", data, root + offset)[0]
                places[f"target {slot}"] = root + offset + relative
    return places


FAULTS: list[tuple[Change, str, str, str]] = [
    (put("I", "start", 0), "start", "Root", "offset 0 leads out"),
    (put("I", "start", 2**31), "start", "Root", "leads out"),
    (put("I", "start", 2), "", "Root", "not aligned to 4 bytes"),
    (put("4s", "start", b"ELSE", 4), "", "Root", "file identifier b'ELSE' is not b'TEST'"),
    (put("i", "root", -(2**31)), "root", "Root", "is outside the data"),
    (put("i", "root", 2**31 - 1), "root", "Root", "outside the data|not aligned"),
    (put("H", "vtable", 3), "vtable", "Root", "vtable has the impossible size 3"),
    (put("H", "vtable", 2), "vtable", "Root", "vtable has the impossible size 2"),
    (put("H", "vtable", 0xFFFE), "vtable", "Root", "vtable has the impossible size"),
    (put("H", "vtable", 2, 2), "vtable", "Root", "tables the impossible size 2"),
    (put("H", "vtable", 0xFFFE, 2), "root", "Root", "table of 65534 bytes ends after"),
    (put("H", "entry 0", 2), "vtable", "Root", "field number at 2 overlaps"),
    (put("H", "entry 0", 0xFFF0), "root", "Root", "table of 65524 bytes ends after"),
    (put("b", "field 1", 1), "field 1", "Root.colour", "no member has the number 1"),
    (put("I", "field 3", 2**30), "field 3", "Root.name", "leads out"),
    (put("I", "target 3", 2**32 - 1), "target 3", "Root.name", "ends after the data"),
    (put("I", "target 3", 3), "target 3", "Root.name", "does not end with a zero byte"),
    (put("B", "target 3", 0xFF, 4), "", "Root.name", "text is not UTF-8"),
    (put("I", "target 4", 2**31), "target 4", "Root.data", "ends after the data"),
    (put("I", "target 5", 2**29), "target 5", "Root.numbers", "of 8 bytes ends after data"),
    (put("I", "target 6", 2**28), "target 6", "Root.points", "of 16 bytes ends after data"),
    (put("i", "target 7", 2**30), "target 7", "Root.leaf", "outside the data|not aligned"),
    (put("I", "target 8", 2**29), "target 8", "Root.leaves", "of 4 bytes ends after data"),
    (put("I", "target 8", 1, 4), "", r"Root.leaves\[0\]", "not aligned to 4 bytes"),
    (put("I", "target 9", 2**30, 8), "", r"Root.names\[1\]", "leads out"),
    (put("B", "field 10", 9), "field 10", "Root.choice", "no member of the union has the tag 9"),
    (put("B", "field 10", 0), "field 11", "Root.choice", "has a value but no tag"),
    (put("H", "entry 11", 0), "field 10", "Root.choice", "union of tag 2 has no value"),
    (put("I", "target 12", 2**20), "target 12", "Root.inner", "ends after the data"),
    (put("I", "target 12", 2), "", "Root.inner", "2 bytes are fewer than the header of 4"),
    (put("I", "target 12", 2**20, 4), "", "Root.inner", "leads out"),
]


@pytest.mark.parametrize(("change", "place", "field", "reason"), FAULTS)
def test_each_fault_is_refused_where_it_is(
    change: Change, place: str, field: str, reason: str
) -> None:
    data = bytearray(fb.write(FULL))
    places = places_of(bytes(data))
    change(data, places)
    with pytest.raises(FormatError, match=reason) as caught:
        fb.read(bytes(data), Root)
    if place:
        assert caught.value.offset == places[place]
    assert caught.value.offset is not None
    assert caught.value.field.replace("[", r"\[").replace("]", r"\]") == field


def test_misaligned_fields_are_refused() -> None:
    data = fb.write(Root(wide=1))
    places = places_of(data)
    # A table with an 8-byte field, moved by 4 bytes together with the data around it.
    moved = bytearray(b"\0\0\0\0" + data)
    struct.pack_into("<I4s", moved, 0, places["root"] + 4, b"TEST")
    with pytest.raises(FormatError, match=r"Root\.wide: field is not aligned to 8 bytes"):
        fb.read(bytes(moved), Root)


def test_elements_that_are_aligned_to_4_only_are_remarked_upon_or_refused() -> None:
    data = fb.write(Root(numbers=(1, 2)))
    places = places_of(data)
    moved = bytearray(b"\0\0\0\0" + data)
    struct.pack_into("<I4s", moved, 0, places["root"] + 4, b"TEST")
    with listening() as remarks, remarks_name("moved"):
        assert fb.read(bytes(moved), Root) == Root(numbers=(1, 2))
        assert fb.read(bytes(moved), Root) == Root(numbers=(1, 2))
    assert remarks == [
        "moved: 8-byte elements are aligned to 4 bytes only, in 1 vector of Root: accepted, as its "
        "runtime does"
    ]
    with listening() as remarks:
        fb.read(data, Root)
    assert not remarks
    with pytest.raises(FormatError, match=r"Root\.numbers: elements are not aligned to 8 bytes"):
        fb.verify(bytes(moved), Root, is_aligned=True)


def test_required_tables() -> None:
    @dataclass(frozen=True, slots=True)
    class Needy:
        leaf: Leaf = fb.table(Leaf, required=True)

    assert fb.read(fb.write(Needy(Leaf(1))), Needy) == Needy(Leaf(1))
    with pytest.raises(FormatError, match=r"Needy\.leaf: a value is required"):
        fb.write(Needy(cast(Any, None)))
    with pytest.raises(FormatError, match="the required field leaf is absent"):
        fb.read(fb.write(Leaf()), Needy)


def test_required_vectors_and_texts_may_be_empty_but_not_absent() -> None:
    @dataclass(frozen=True, slots=True)
    class Needy:
        name: str = fb.string(required=True)
        numbers: tuple[int, ...] = fb.vector(fb.INT32, required=True)
        leaves: tuple[Leaf, ...] = fb.table_vector(Leaf, required=True)

    @dataclass(frozen=True, slots=True)
    class Less:
        name: str = fb.string(required=True)
        numbers: tuple[int, ...] = fb.vector(fb.INT32, required=True)

    assert fb.read(fb.write(Needy()), Needy) == Needy()
    with pytest.raises(FormatError, match="the required field leaves is absent"):
        fb.read(fb.write(Less()), Needy)


def test_a_bare_tag_needs_no_table() -> None:
    @dataclass(frozen=True, slots=True)
    class Empty:
        pass

    @dataclass(frozen=True, slots=True)
    class Holder:
        choice: Leaf | Empty | None = fb.union({1: Leaf, 2: Empty}, bare=frozenset({2}))

    for choice in (None, Leaf(1), Empty()):
        assert fb.read(fb.write(Holder(choice)), Holder) == Holder(choice)
    for tag, expected in ((2, Empty()), (1, None)):
        builder = flatbuffers.Builder()
        builder.StartObject(2)
        builder.PrependUint8Slot(0, tag, 0)
        builder.Finish(builder.EndObject())
        if expected:
            assert fb.read(bytes(builder.Output()), Holder) == Holder(expected)
        else:
            with pytest.raises(FormatError, match="union of tag 1 has no value"):
                fb.read(bytes(builder.Output()), Holder)


def test_tables_of_different_sizes_may_share_a_vtable() -> None:
    """The Python builder compares offsets only: Leaf and Wide have both one field at 4."""

    @dataclass(frozen=True, slots=True)
    class Pair:
        leaf: Leaf | None = fb.table(Leaf)
        wide: Wide | None = fb.table(Wide)

    for number in range(3):
        pair = Pair(Leaf(1), Wide(2**40 + number))
        assert fb.read(fb.write(pair), Pair) == pair


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (Root(number=2**31), r"Root\.number: not of type int"),
        (Root(colour=Colour.RED, wide=-1), r"Root\.wide: not of type ulong"),
        (Root(numbers=(0, 2**63)), r"Root\.numbers: not of type long"),
        (Root(points=(Point(256),)), r"Root\.points: not of type Point"),
        (Root(choice=cast(Any, "text")), r"Root\.choice: 'text' is not a member of the union"),
        (Root(leaves=(Leaf(), cast(Any, None))), r"Root\.leaves\[1\]: None is not a Leaf"),
        (Root(inner=cast(Any, Wide())), r"Root\.inner: .* is not a Leaf"),
    ],
)
def test_values_that_do_not_fit_are_refused_with_their_field(value: Root, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        fb.write(value)


def test_an_error_names_the_file_on_one_line() -> None:
    error = FormatError("Root.leaf", "it is wrong", offset=12).with_file("model.tflite")
    assert str(error) == "model.tflite: byte 12: Root.leaf: it is wrong"
    assert (error.file, error.offset, error.field) == ("model.tflite", 12, "Root.leaf")


@dataclass(frozen=True, slots=True)
class Choices:
    """A vector of unions between two other fields."""

    before: int = fb.int16()
    choices: tuple[Leaf | Wide | None, ...] = fb.union_vector({1: Leaf, 2: Wide})
    after: int = fb.int32()


CHOICES = Choices(-3, (Leaf(6), None, Wide(9), Leaf()), 4)


def test_a_vector_of_unions_is_written_and_read() -> None:
    assert fb.read(fb.write(CHOICES), Choices) == CHOICES
    assert fb.read(fb.write(Choices(1, (), 2)), Choices) == Choices(1, (), 2)


def test_a_vector_of_unions_holds_only_members() -> None:
    with pytest.raises(FormatError, match=r"choices\[1\]: .* is not a member of the union"):
        fb.write(Choices(choices=(Leaf(), FULL)))  # type: ignore[arg-type]


def union_vector_places(data: bytes) -> tuple[int, int]:
    """Byte positions of the tags and of the offsets, of which the first are their counts."""
    table = int.from_bytes(data[:4], "little")
    vtable = table - struct.unpack_from("<i", data, table)[0]
    fields = [table + struct.unpack_from("<H", data, vtable + 6 + 2 * i)[0] for i in (0, 1)]
    tags, values = (place + struct.unpack_from("<I", data, place)[0] for place in fields)
    return tags, values


@pytest.mark.parametrize(
    ("vector", "offset", "value", "reason"),
    [
        (0, 4, 3, r"choices\[0\]: no member of the union has the tag 3"),
        (0, 4, 0, r"choices\[0\]: union has a value but no tag"),
        (0, 5, 1, r"choices\[1\]: offset 0 leads out"),
        (0, 0, 3, r"vector of unions has another length than its 3 tags"),
        (1, 4, 255, r"choices\[0\]: offset 255 leads out"),
    ],
)
def test_faults_in_a_vector_of_unions_are_refused(
    vector: int, offset: int, value: int, reason: str
) -> None:
    data = bytearray(fb.write(CHOICES))
    data[union_vector_places(bytes(data))[vector] + offset] = value
    with pytest.raises(FormatError, match=reason):
        fb.read(bytes(data), Choices)


@pytest.mark.parametrize("slot", [1, 2])
def test_a_vector_of_unions_needs_tags_and_tables(slot: int) -> None:
    data = bytearray(fb.write(CHOICES))
    table = int.from_bytes(data[:4], "little")
    vtable = table - struct.unpack_from("<i", data, table)[0]
    data[vtable + 4 + 2 * slot : vtable + 6 + 2 * slot] = bytes(2)
    with pytest.raises(FormatError, match="has tags or tables, but not both"):
        fb.read(bytes(data), Choices)


def test_alignment_counts_from_a_size_prefix() -> None:
    builder = flatbuffers.Builder(64)
    builder.StartObject(1)
    builder.PrependInt64Slot(0, 9, 0)
    builder.FinishSizePrefixed(builder.EndObject())
    prefixed = bytes(builder.Output())
    assert fb.verify(prefixed[4:], Wide, prefix=4).read() == Wide(9)
    with pytest.raises(FormatError, match="not aligned to 8 bytes"):
        fb.verify(prefixed[4:], Wide)
