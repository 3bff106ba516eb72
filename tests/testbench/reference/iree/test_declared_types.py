"""Tensors and numbers of every declared type: the program's own check of them, and their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError
from darwinn_reference.bfloat16 import to_bfloat16
from darwinn_reference.iree import IreeReference
from darwinn_reference.protocol import Port
from iree_modules import FunctionSource, Source, imports, module, ref, rodata

CASES = [
    ("i8", "ui8", np.uint8, 0x12000008),
    ("i16", "ui16", np.uint16, 0x12000010),
    ("i32", "ui32", np.uint32, 0x12000020),
    ("i64", "ui64", np.uint64, 0x12000040),
    ("i8", "si8", np.int8, 0x11000008),
    ("i8", "", np.int8, 0x10000008),
    ("bf16", "", np.float32, 0x22000010),
    ("f16", "", np.float16, 0x21000010),
]
VALUES = [-2.5, 1.0, 100.3]


def checking(declaration: str, element_type: int) -> bytes:
    """A module whose function checks the type of its argument, 3 elements, and returns it."""
    source: list[Source] = [
        "start",
        ("const.ref.rodata", [0, ref(1)]),
        ("const.i32", [element_type, 0]),
        ("const.i32", [1, 1]),
        ("const.i64", [3, 2]),
        ("call.variadic", [0x8000_0000, [0xFFFF] * 4 + [1], [ref(0), ref(1), 0, 1, 2], []]),
        ("return", [[ref(0)]]),
    ]
    function = FunctionSource(
        "main", "0r_r", source, attributes={"iree.abi.declaration": declaration}
    )
    return module(
        [function],
        rodata_segments=rodata(b"input 0"),
        imported_functions=imports(("hal.buffer_view.assert", "0rriiCID_v")),
    )


def declared(stored: str, encoding: str) -> str:
    """The declaration of a function that takes and gives a tensor of such elements."""
    note = f" {{iree.abi.encoding = tensor<3x{encoding}>}}" if encoding else ""
    value = f"tensor<3x{stored}>{note}"
    return f"sync func @main(%x: {value}) -> (%y: {value})"


@pytest.mark.parametrize(("stored", "encoding", "dtype", "element_type"), CASES)
def test_a_program_takes_tensors_of_the_type_that_it_declares(
    stored: str, encoding: str, dtype: Any, element_type: int
) -> None:
    reference = IreeReference(checking(declared(stored, encoding), element_type))
    assert reference.inputs() == (Port("x", np.dtype(dtype), (3,)),)
    assert reference.outputs() == (Port("y", np.dtype(dtype), (3,)),)
    given = np.array(VALUES).astype(np.int64).astype(dtype)
    (output,) = reference.run([given])
    assert isinstance(output.data, np.ndarray)
    assert output.data.dtype == dtype
    np.testing.assert_array_equal(output.data, given)


@pytest.mark.parametrize(("stored", "encoding", "dtype", "element_type"), CASES)
def test_a_program_refuses_tensors_of_the_type_beside_it(
    stored: str, encoding: str, dtype: Any, element_type: int
) -> None:
    reference = IreeReference(checking(declared(stored, encoding), element_type ^ 0x0F000000))
    with pytest.raises(ExecutionError, match=f"input 0: element type {element_type:#x}, not"):
        reference.run([np.zeros(3, dtype)])


def test_values_are_rounded_to_bfloat16() -> None:
    reference = IreeReference(checking(declared("bf16", ""), 0x22000010))
    given = np.array([1.00390625, np.inf, -7.1], np.float32)
    (output,) = reference.run([given])
    # 1 + 2^-8 lies between 1 and 1 + 2^-7, and 1 is even; -7.1 is nearest to -7.09375.
    assert np.asarray(output.data).tolist() == [1.0, np.inf, -7.09375]


def test_numbers_of_16_bits_are_bits_of_an_integer() -> None:
    source: list[Source] = ["start", ("return", [[0, 1]])]
    declaration = "sync func @main(%a: bf16, %b: f16) -> (%c: f16, %d: bf16)"
    function = FunctionSource(
        "main", "0ii_ii", source, attributes={"iree.abi.declaration": declaration}
    )
    given = np.float32(1.5), np.float16(-2.25)
    outputs = IreeReference(module([function])).run(given)
    # The function gives each number's bits as a number of the other type.
    as_half = to_bfloat16(np.array(given[0])).view(np.float16)
    as_bfloat16 = np.array(np.array(given[1]).view(np.uint16).astype(np.uint32) << 16)
    expected = [as_half, as_bfloat16.view(np.float32)]
    for output, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(output.data, wanted, strict=True)
