"""No input makes the reader fail otherwise than with a FormatError, slowly, or by memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import damaged_files
import pytest
from damaged_files import MEGABYTES_64, changes, peak_memory
from darwinn_formats import tfrt
from darwinn_formats.signatures import is_bef
from darwinn_formats.tfrt.encoding import PSEUDO_KERNEL_CODE, vbr

TEXT = """
func.func private @native(%x: i32) -> i32 attributes {tfrt.native}
func.func @sync() -> i32 attributes {tfrt.sync} {
  %a = tfrt.constant.i32 1
  tfrt.return %a : i32
}
func.func @main(%x: i32, %c: i1) -> (i32, !tfrt.chain) {
  %ch = tfrt.new.chain loc(fused["a", callsite("b" at "f":1:300), unknown])
  %r = tfrt.if %c, %x : (i32) -> i32 { tfrt.return %x : i32 } else {
    %y = tfrt.call @native(%x) : (i32) -> i32
    tfrt.return %y : i32
  }
  "k"(%r, %r) {a = [["s", [1 : i32]], [1.5 : f32]], b = dense<[1, 2]> : tensor<2xi32>, c = f32,
    d = #corert.shape<1x?>, e = #corert.shape<*>, f = [1, 2], g = "text", h = true,
    i = #bef.func<"f">, j = #bef.symbol<1, ["a", "b"], "unit">, k = [i1, f64], l = 2.5 : f64
  } : (i32, i32) -> ()
  tfrt.return %r, %ch : i32, !tfrt.chain
}
"""


def own_file() -> bytes:
    data = tfrt.dump(tfrt.from_text(TEXT)) + bytes.fromhex("2A 0A") + b"other"
    assert len(data) < 2048
    return data


def check(data: bytes) -> tfrt.BefFile | None:
    return damaged_files.check(tfrt.load, data)


def test_the_own_file_is_valid() -> None:
    file = check(own_file())
    assert file is not None
    assert tfrt.dump(file) == own_file()
    assert is_bef(own_file())
    assert not is_bef(b"TFL3")


def test_every_truncation_is_refused() -> None:
    data = own_file()
    # A file is complete after its functions, and after each of the sections that may follow.
    ends = {end for end in range(len(data)) if check(data[:end]) is not None}
    assert len(ends) == 6
    assert min(ends) > len(data) // 2


def test_every_byte_may_be_changed() -> None:
    results = [check(changed) is not None for changed in changes(own_file(), 5)]
    assert any(results)
    assert not all(results)


def test_what_loads_can_be_written_listed_and_converted() -> None:
    for changed in changes(own_file(), 2):
        file = check(changed)
        if file is None:
            continue
        assert tfrt.load(tfrt.dump(file)) == file
        assert list(tfrt.disassemble(file))
        assert tfrt.describe(file)["kind"] == "bef"
        try:
            text = tfrt.to_text(file, exact=True)
        except tfrt.FormatError:
            continue
        # A change may be of a type that an operation cannot have.
        tfrt.dump(tfrt.from_text(text, verified=False))


def section(number: int, contents: bytes) -> bytes:
    return bytes([number]) + vbr(len(contents) << 1) + contents


def sections_of(**contents: bytes) -> bytes:
    """A file with these contents of sections; those that it needs are empty tables otherwise."""
    numbers = {"strings": 0, "attributes": 1, "kernels": 2, "types": 3, "index": 4, "functions": 5}
    numbers |= {"location_strings": 6, "locations": 7, "attribute_types": 8}
    empty = {"strings": b"", "attributes": b"", "kernels": b"\0", "types": b"\0", "index": b"\0"}
    data = b"\x0b\xef\0"
    for name, number in numbers.items():
        held = contents.get(name, empty.get(name, b"" if number <= 5 else None))
        if held is not None:
            data += section(number, held)
    return data


def test_attributes_that_overlap_do_not_make_a_small_file_large() -> None:
    """A type table can name one place any number of times, or places inside each other."""
    text = 2**16
    strings = b"".join(vbr(4 * n) + b"\x10" for n in range(text // 8))
    # Each word of the section is the count of a string that reaches to the end.
    words = b"".join((text - 4 * n - 4).to_bytes(4, "little") for n in range(text // 4))
    data = sections_of(attributes=words, attribute_types=vbr(text // 8) + strings)
    # The section starts unaligned: move it with a longer string table.
    for padding in range(4):
        moved = sections_of(
            strings=b"x" * padding + b"\0",
            attributes=words,
            attribute_types=vbr(text // 8) + strings,
        )
        assert check(moved) is None
        assert peak_memory(tfrt.load, moved) < MEGABYTES_64 + 2 * len(moved)
    assert check(data) is None


def test_locations_and_aggregates_are_not_nested_without_end() -> None:
    body = tfrt.Body(_nested(2000), (), 0, ((),), (), ())
    function = tfrt.Function(tfrt.FunctionKind.ASYNC, "f", (), (), body)
    with pytest.raises(tfrt.FormatError, match="nested more than 64 deep"):
        tfrt.load(_deep(function))


def _nested(depth: int) -> tfrt.Location:
    location: tfrt.Location = tfrt.UnknownLocation()
    for _ in range(100 if depth > 100 else depth):
        location = tfrt.NameLocation("n", location)
    return location


def _deep(function: tfrt.Function) -> bytes:
    return tfrt.dump(tfrt.BefFile((function,), (), (), (), ("f",)))


def test_aggregates_are_not_nested_without_end() -> None:
    attribute: tfrt.Attribute = tfrt.String(b"x")
    for _ in range(100):
        attribute = tfrt.Aggregate((attribute,))
    with pytest.raises(tfrt.FormatError, match="nested more than 64 deep"):
        tfrt.load(tfrt.dump(tfrt.BefFile((), (attribute,), (), (), ())))


REFUSED = [
    (b"", "magic", "does not start with 0B EF"),
    (b"\x0b\xef\x01", "version", "version 1 is not known"),
    (b"\x0b\xef\0", "section STRINGS", "is missing"),
    (b"\x0b\xef\0\0\x03\x03", "section alignment", "3 is not a power of two"),
    (b"\x0b\xef\0\0\x40", "section length", "32 bytes are needed, 0 are there"),
    (b"\x0b\xef\0\0\0\0\0", "section STRINGS", "is there twice"),
    (b"\x0b\xef\0\0" + b"\x80" * 10 + b"\0", "section length", "longer than ten bytes"),
    (b"\x0b\xef\0\0" + b"\xff" * 9 + b"\x7f", "section length", "more than 64 bits"),
    (sections_of(strings=b"a"), "STRINGS", "does not end with a zero byte"),
    (sections_of(kernels=b"\x05"), "KERNELS.count", "5 entries do not fit"),
    (sections_of(strings=b"ab\0", kernels=b"\x01\x01"), "KERNELS", "no string starts at offset 1"),
    (sections_of(kernels=b"\0\0"), "KERNELS.count", "1 bytes follow the last entry"),
    (sections_of(attribute_types=b"\1\0\5"), "ATTRIBUTES", "offset 0 is beyond the 0 bytes"),
    (sections_of(attributes=b"\2", attribute_types=b"\1\0\5"), "attribute 0", "i1 of value 2"),
    (
        sections_of(attributes=b"\0", attribute_types=b"\1\0\x1e"),
        "attribute 0",
        "attribute type 30 is not known",
    ),
    (
        sections_of(attributes=b"\0", attribute_types=b"\2\0\5\0\5"),
        "ATTRIBUTE_TYPES",
        "0 is there twice",
    ),
    (sections_of(strings=b"\0", index=b"\1\3\0\0\0\0"), "[0].kind", "kind 3 is not known"),
    (sections_of(strings=b"\0", index=b"\1\0\0\0\0\0"), "[0].offset", "beyond the functions"),
    (sections_of(strings=b"\0", index=b"\1\1\0\0\1\0\0"), "arguments", "type 0 of 0"),
]


@pytest.mark.parametrize(("data", "field", "reason"), REFUSED)
def test_broken_files_are_refused_by_field(data: bytes, field: str, reason: str) -> None:
    with pytest.raises(tfrt.FormatError) as caught:
        tfrt.load(data)
    assert field in caught.value.field
    assert reason in caught.value.reason
    assert caught.value.offset is not None


def _main(change: Callable[[tfrt.Body], tfrt.Body]) -> bytes:
    file = tfrt.load(own_file())
    functions = tuple(
        replace(function, body=change(function.body))
        if function.name == "main" and function.body is not None
        else function
        for function in file.functions
    )
    return tfrt.dump(replace(file, functions=functions))


def _kernel(number: int, **fields: Any) -> Callable[[tfrt.Body], tfrt.Body]:
    def change(body: tfrt.Body) -> tfrt.Body:
        kernels = list(body.kernels)
        kernels[number] = replace(kernels[number], **fields)
        return replace(body, kernels=tuple(kernels))

    return change


INCONSISTENT = [
    (lambda body: replace(body, results=(9, 0)), "register 9 of 4 does not exist"),
    (lambda body: replace(body, entry_used_by=((), (2,), (2,))), "kernels without operands"),
    (lambda body: replace(body, entry_used_by=((1,), (), (2,))), "users of register 0"),
    (lambda body: replace(body, entry_used_by=((1,), (4,), (2,))), "kernel 4 of 4 does not exist"),
    (_kernel(2, arguments=(7, 7)), "register 7 of 4 does not exist"),
    (_kernel(2, ready_count=1), "1 operands, but 2 arguments"),
    (_kernel(2, functions=(9,)), "function 9 of 5 does not exist"),
    (_kernel(0, results=(3,)), "register 3 is written twice"),
    (_kernel(1, arguments=(1, 3)), "register 3 is read too early"),
    (_kernel(1, used_by=((3,),)), "users of register 3"),
    (
        lambda body: replace(body, registers=(tfrt.Register(9, "i32"), *body.registers[1:])),
        "register 0 has 9 uses, not 1",
    ),
]


@pytest.mark.parametrize(("change", "reason"), INCONSISTENT)
def test_functions_that_contradict_themselves_are_refused(
    change: Callable[[tfrt.Body], tfrt.Body], reason: str
) -> None:
    with pytest.raises(tfrt.FormatError) as caught:
        tfrt.load(_main(change))
    assert reason in caught.value.reason


def test_the_pseudo_kernel_has_to_be_there() -> None:
    data = own_file()
    code = PSEUDO_KERNEL_CODE.to_bytes(4, "little")
    assert code in data
    with pytest.raises(tfrt.FormatError, match="is no pseudo kernel"):
        tfrt.load(data.replace(code, bytes(4), 1))


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "broken.bef"
    path.write_bytes(own_file()[:100])
    with pytest.raises(tfrt.FormatError) as caught:
        tfrt.load(path)
    assert str(path) in str(caught.value)
    path.write_bytes(own_file())
    file = tfrt.load(path)
    assert file.file == str(path)
    assert any("tfrt.if" in line for line in tfrt.disassemble(file))


def test_a_function_has_a_register_for_each_argument() -> None:
    file = tfrt.from_text("func.func @f(%x: i32) -> () { tfrt.return }")
    (function,) = file.functions
    assert function.body is not None
    without = replace(function, body=replace(function.body, registers=()))
    with pytest.raises(tfrt.FormatError, match="0 registers for 1 arguments"):
        tfrt.load(tfrt.dump(replace(file, functions=(without,))))
