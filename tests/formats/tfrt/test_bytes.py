"""The writer against bytes that were assembled by hand from the description of the format."""

from __future__ import annotations

import pytest
from darwinn_formats import tfrt
from darwinn_formats.tfrt.encoding import SectionId, vbr
from darwinn_formats.tfrt.raising import MISSING_SECTIONS
from hypothesis import given
from hypothesis import strategies as st

TEXT = """
func.func @f(%a: i32) -> i32 {
  %b = "k.id"(%a) {n = 7 : i32} : (i32) -> i32 loc(unknown)
  tfrt.return %b : i32
} loc(unknown)
"""

STRINGS = b"\x00\x1a" + b"f\0" + b"i32\0" + b"k.id\0" + b"n\0"
ATTRIBUTES = "01 08 07000000"
KERNELS = "02 04 01 06"
TYPES = "03 04 01 02"
# One function: asynchronous, at 0, named by string 0, one argument and one result of type 0.
FUNCTION_INDEX = "04 10 01 00 00 00 0100 0100"
# 96 bytes would start at 45: length 96 << 1 | 1, alignment 4, two bytes up to 48.
FUNCTIONS_HEADER = "05 8141 04 CCCC"
# Location 0; two registers of one use; two kernels: the pseudo kernel at 0 without operands,
# the other at 44 with one; both in stream 0. Register 1 is returned. Twelve bytes: no padding.
FUNCTION_TABLE = "00 02 01 01 02 000000 2C0100 01"
# No arguments, attributes, functions; two results with 0 and 1 users: 2 (no register), and 0.
PSEUDO_KERNEL = (
    "ABABABAB CDCDCDCD 00000000 00000000 00000000 02000000"
    "00000000 01000000 02000000 00000000 01000000"
)
# Kernel name 0 at location 1, one argument, attribute and result, no function; no users.
KERNEL = "00000000 01000000 01000000 01000000 00000000 0100000000000000 00000000 00000000 01000000"
LOCATIONS = "06 00 07 04 00 00"
ATTRIBUTE_TYPES = "08 06 01 00 08"
ATTRIBUTE_NAMES = "09 06 01 02 0B"
REGISTER_TYPES = "0A 08 01 02 00 00"

FILE = (
    bytes.fromhex("0BEF00")
    + STRINGS
    + bytes.fromhex(ATTRIBUTES + KERNELS + TYPES + FUNCTION_INDEX)
    + bytes.fromhex(FUNCTIONS_HEADER + FUNCTION_TABLE + PSEUDO_KERNEL + KERNEL)
    + bytes.fromhex(LOCATIONS + ATTRIBUTE_TYPES + ATTRIBUTE_NAMES + REGISTER_TYPES)
)


def test_a_whole_file_is_written_byte_for_byte() -> None:
    assert tfrt.dump(tfrt.from_text(TEXT)) == FILE


WITH_NATIVE = """
func.func private @n() attributes {tfrt.native}
func.func @g(%a: i32) -> i32 {
  %b, %c = "k.two"(%a, %a) {fn = @n} : (i32, i32) -> (i32, i64) loc(unknown)
  "k.use"(%b, %c, %b) : (i32, i64, i32) -> () loc(unknown)
  tfrt.return %b : i32
} loc(unknown)
"""


def test_a_file_with_functions_users_and_streams_is_written_byte_for_byte() -> None:
    strings = b"\x00\x30" + b"g\0" + b"i32\0" + b"i64\0" + b"k.two\0" + b"k.use\0" + b"n\0"
    tables = bytes.fromhex(
        # No attributes: the only one refers to a function. Two kernels, two types.
        "01 00  02 06 02 0A10  03 06 02 0206"
        # Two functions: native, nowhere, named by string 22, nothing in or out; then g, as above.
        "04 1A 02  01 00 16 00 00  00 00 00 0100 0100"
    )
    functions = bytes.fromhex(
        # 164 bytes would start at 59: a byte with the alignment leads to 60.
        "05 8249 04"
        # Three registers of 2, 3 (the return counts) and 1 uses; three kernels. The return opens
        # stream 0, which its parent joins; k.use opens stream 1. Register 1 is returned.
        "00 03 020301 03 000000 300200 700301 01"
        # Nothing is without operands; register 0 is used twice by kernel 1. Two results: 3, and 0.
        "ABABABAB CDCDCDCD 00000000 00000000 00000000 02000000"
        "00000000 02000000 03000000 00000000 01000000 01000000"
        # Kernel 0 at location 1: two arguments, no attribute, one function, two results with two
        # users and one; registers 0 and 0, function 0, registers 1 and 2, users 2, 2 and 2.
        "00000000 01000000 02000000 00000000 01000000 02000000 02000000 01000000"
        "00000000 00000000 00000000 01000000 02000000 02000000 02000000 02000000"
        # Kernel 1 at location 2: registers 1, 2 and 1.
        "01000000 02000000 03000000 00000000 00000000 00000000 01000000 02000000 01000000"
    )
    rest = bytes.fromhex(
        # Three unknown locations; no types of attributes. Of names and registers the native
        # function has nothing; g has three kernels without names, and registers of types 0, 0, 1.
        "06 00  07 06 000000  08 02 00  09 04 02 03  0A 0A 02 03 000001"
    )
    data = bytes.fromhex("0BEF00") + strings + tables + functions + rest
    assert tfrt.dump(tfrt.from_text(WITH_NATIVE)) == data
    assert tfrt.dump(tfrt.load(data)) == data


def test_a_file_assembled_by_hand_says_what_was_put_in() -> None:
    file = tfrt.load(FILE)
    (function,) = file.functions
    assert (function.name, function.kind) == ("f", tfrt.FunctionKind.ASYNC)
    assert (function.argument_types, function.result_types) == (("i32",), ("i32",))
    assert function.body is not None
    assert function.body.registers == (tfrt.Register(1, "i32"), tfrt.Register(1, "i32"))
    assert function.body.entry_used_by == ((), (1,))
    assert function.body.results == (1,)
    (kernel,) = function.body.kernels
    assert (kernel.name, kernel.arguments, kernel.results) == ("k.id", (0,), (1,))
    assert (kernel.attribute_names, kernel.location_offset) == (("n",), 1)
    assert file.attributes == (tfrt.Scalar(tfrt.DType.I32, b"\7\0\0\0"),)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (127, "7F"),
        (128, "8100"),
        (300, "822C"),
        (16384, "818000"),
        (2**32, "9080808000"),
    ],
)
def test_the_most_significant_group_of_an_integer_comes_first(value: int, encoded: str) -> None:
    assert vbr(value) == bytes.fromhex(encoded)


@given(st.integers(0, 2**64 - 1))
def test_integers_decode_as_they_were_encoded(value: int) -> None:
    decoded = 0
    for byte in vbr(value):
        decoded = decoded << 7 | byte & 0x7F
    assert decoded == value
    assert [byte >> 7 for byte in vbr(value)] == [1] * (len(vbr(value)) - 1) + [0]


def sections(data: bytes) -> dict[int, tuple[int, bytes]]:
    """Start and contents of each section, read by nothing but the description."""
    position, found = 3, {}
    while position < len(data):
        number, position = data[position], position + 1
        word = 0
        while True:
            byte, position = data[position], position + 1
            word = word << 7 | byte & 0x7F
            if byte < 128:
                break
        if word & 1:
            alignment, position = data[position], position + 1
            assert set(data[position : position + -position % alignment]) <= {0xCC}
            position += -position % alignment
        found[number] = position, data[position : position + (word >> 1)]
        position += word >> 1
    return found


I8, I32, I64, BF16 = tfrt.DType.I8, tfrt.DType.I32, tfrt.DType.I64, tfrt.DType.BF16
ATTRIBUTE_BYTES = [
    (tfrt.Scalar.of(tfrt.DType.I1, True), "01"),
    (tfrt.Scalar.of(I64, -2), "FEFFFFFFFFFFFFFF"),
    (tfrt.Scalar.of(tfrt.DType.F32, 1.5), "0000C03F"),
    (tfrt.Scalar.of(BF16, 1.5), "C03F"),
    (tfrt.String(b"ab"), "02000000 6162"),
    (tfrt.FunctionName(b"f"), "01000000 66"),
    (tfrt.Type(tfrt.DType.F64), "0B"),
    # The elements, not their count, are aligned to eight bytes.
    (tfrt.Array(I64, (1).to_bytes(8, "little")), "CCCCCCCC 01000000 0100000000000000"),
    (tfrt.Array(I32, b""), "00000000"),
    (tfrt.Array(tfrt.Kind.TYPE, b"\x08\x09"), "02000000 0809"),
    (tfrt.Shape(None), "00000000"),
    (tfrt.Shape(()), "04000000 0C000000 00000000"),
    (tfrt.Shape((3,)), "CCCCCCCC 08000C00 14000000 01000000 0300000000000000"),
    (
        # Element offset 28: with four bytes before it, the elements are aligned to eight bytes.
        tfrt.Dense(I8, (2,), b"\1\2"),
        "CCCCCCCC 08061C00 1E000000 1C000000 02000000 01000000 0200000000000000 0102",
    ),
    (
        # Elements at 24 and 32; the byte before each is its type.
        tfrt.Aggregate((tfrt.String(b"a"), tfrt.Scalar.of(I32, 1))),
        "04001400 24000000 02000000 18000000 20000000 CCCCCC10 01000000 61 CCCC08 01000000",
    ),
    (tfrt.Symbol(1, b"a", (b"b",), b"xyz"), "01 01 01 01 03 61 62 78797A 00"),
]


@pytest.mark.parametrize(("attribute", "encoded"), ATTRIBUTE_BYTES)
def test_each_kind_of_attribute_is_written_as_described(
    attribute: tfrt.Attribute, encoded: str
) -> None:
    file = tfrt.BefFile((), (attribute,), (), (), ())
    data = tfrt.dump(file)
    start, contents = sections(data)[SectionId.ATTRIBUTES]
    assert contents == bytes.fromhex(encoded)
    assert start % 8 == 0 or not contents.startswith(b"\xcc" * 4)
    assert tfrt.load(data) == file


LOCATION_BYTES = [
    (tfrt.UnknownLocation(), "00", b""),
    (tfrt.FileLineColumn("f", 1, 300), "01 00 01 822C", b"f\0"),
    (tfrt.NameLocation("n"), "02 00 00", b"n\0"),
    (
        tfrt.CallSite(tfrt.NameLocation("n"), tfrt.FileLineColumn("f", 2, 3)),
        "03 02 00 00 01 02 02 03",
        b"n\0f\0",
    ),
    (
        tfrt.Fused((tfrt.NameLocation("n"), tfrt.NameLocation("n"))),
        "04 02 02 00 00 02 00 00",
        b"n\0",
    ),
]


@pytest.mark.parametrize(("location", "encoded", "strings"), LOCATION_BYTES)
def test_each_kind_of_location_is_written_as_described(
    location: tfrt.Location, encoded: str, strings: bytes
) -> None:
    body = tfrt.Body(location, (), 0, ((),), (), ())
    function = tfrt.Function(tfrt.FunctionKind.ASYNC, "f", (), (), body)
    file = tfrt.BefFile((function,), (), (), (), ("f",))
    data = tfrt.dump(file)
    assert sections(data)[SectionId.LOCATIONS][1] == bytes.fromhex(encoded)
    assert sections(data)[SectionId.LOCATION_STRINGS][1] == strings
    assert tfrt.load(data) == file


def test_unknown_sections_are_kept() -> None:
    unknown = bytes.fromhex("2A 0A") + b"hello"
    aligned = bytes.fromhex("2B 05 08")
    data = FILE + unknown + aligned
    data += b"\xcc" * (-len(data) % 8) + b"hi"
    file = tfrt.load(data)
    assert [(s.id, s.alignment, s.data) for s in file.unknown_sections] == [
        (0x2A, 1, b"hello"),
        (0x2B, 8, b"hi"),
    ]
    assert tfrt.dump(file) == data


def test_every_function_kind_is_kept() -> None:
    file = tfrt.from_text(
        "func.func private @n(i32) -> i32 attributes {tfrt.native}\n"
        "func.func @s() attributes {tfrt.sync} { tfrt.return }\n"
        "func.func @a() { tfrt.return }"
    )
    again = tfrt.load(tfrt.dump(file))
    assert [function.kind.name for function in again.functions] == ["NATIVE", "SYNC", "ASYNC"]
    # A native function has a place in the index and nothing in the other sections.
    found = sections(tfrt.dump(file))
    assert found[SectionId.REGISTER_TYPES][1] == bytes([3, 0, 0])
    assert found[SectionId.ATTRIBUTE_NAMES][1] == bytes([3, 1, 1])


@pytest.mark.parametrize("section", ["names", "types", "attributes"])
def test_optional_sections_may_be_absent(section: str) -> None:
    """Each of the three that execution does not need."""
    number = {"names": 9, "types": 10, "attributes": 8}[section]
    found = sections(FILE)
    start, contents = found[number]
    data = FILE[: start - 2] + FILE[start + len(contents) :]
    file = tfrt.load(data)
    assert file.has_attribute_names == (section != "names")
    assert file.has_register_types == (section != "types")
    if section == "attributes":
        assert file.attributes == (tfrt.Untyped(0),)
        assert file.attribute_data == b"\7\0\0\0"
    again = tfrt.load(tfrt.dump(file))
    assert again == file
    with pytest.raises(tfrt.FormatError, match="has no text form without the section"):
        tfrt.to_text(file, exact=True)
    # The original prints such a file all the same, and warns.
    first, *lines = tfrt.to_text(file).splitlines()
    assert first == f"// warning: {MISSING_SECTIONS}"
    text = " ".join(lines)
    assert ("attr0 = " in text) == (section == "names")
    assert (": (none)" in text or "-> none" in text) == (section == "types")
    assert ("-559038737 : i32" in text) == (section == "attributes")


def test_locations_may_be_absent() -> None:
    start, contents = sections(FILE)[SectionId.LOCATIONS]
    data = FILE[: start - 4] + FILE[start + len(contents) :]
    file = tfrt.load(data)
    (function,) = file.functions
    assert function.body is not None
    assert function.body.location is None
    assert [k.location_offset for k in function.body.kernels] == [1]
    assert tfrt.dump(file) == data


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (tfrt.BefFile((), (tfrt.Scalar(I32, b"\0"),), (), (), ()), "not a value of type i32"),
        (tfrt.BefFile((), (tfrt.Dense(I8, (3,), b""),), (), (), ()), "not the data of 3"),
        (tfrt.BefFile((), (tfrt.Aggregate(()),), (), (), ()), "at least one element"),
        (tfrt.BefFile((), (tfrt.Untyped(0),), (), (), ()), "without a type"),
        (tfrt.BefFile((), (), ("k",), (), ()), "'k' is not one of the strings"),
        (tfrt.BefFile((), (), (), (), ("a\0",)), "cannot hold a zero byte"),
        (
            tfrt.BefFile(
                (tfrt.Function(tfrt.FunctionKind.ASYNC, "", (), (), None),), (), (), (), ("",)
            ),
            "a native function has none",
        ),
    ],
)
def test_what_cannot_be_written_is_refused_by_name(file: tfrt.BefFile, message: str) -> None:
    with pytest.raises(tfrt.FormatError, match=message):
        tfrt.dump(file)


@given(st.integers(max_value=-1))
def test_a_negative_integer_has_no_groups(value: int) -> None:
    """Shifted for ever, it stays negative: writing went on until the memory was full."""
    with pytest.raises(tfrt.FormatError, match="is negative"):
        vbr(value)
