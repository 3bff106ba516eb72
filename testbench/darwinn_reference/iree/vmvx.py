"""The ``vmvx`` module: kernels on two-dimensional strided buffers, and tiled matrix products.

Offsets and strides count elements. A program that was compiled without microkernels, which is
the default, imports none of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.limits import MEMORY, limits
from numpy.lib.stride_tricks import as_strided

from darwinn_reference.arrays import AnyArray
from darwinn_reference.errors import Unsupported
from darwinn_reference.iree.imports import ImportTable, expect
from darwinn_reference.iree.memory import Buffer

VMVX = ImportTable("vmvx", {})

MMT4D_TYPES: Mapping[int, tuple[str, str]] = {1: ("f32", "f32"), 2: ("i8", "i32")}
"""Element types of operands and result of a tiled product, by the low byte of its flags."""
MMT4D_ACCUMULATE = 0x100
MMT4D_PREFER_INTRINSICS = 0x200
MMT4D_SKIP_INTERMEDIATE_ROUNDINGS = 0x400
"""Flags that change no sum of float32 or int32."""

_MMT4D_FLAGS = 0xFF | MMT4D_ACCUMULATE | MMT4D_PREFER_INTRINSICS | MMT4D_SKIP_INTERMEDIATE_ROUNDINGS

_DTYPES = {"f32": "<f4", "i32": "<i4", "u32": "<u4", "i8": "<i1", "i16": "<i2", "i64": "<i8"}
_UNARY = "0rIIIrIIIII_v"
_BINARY = "0rIIIrIIIrIIIII_v"


def operand_view(
    value: Any, element: str, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> AnyArray:
    """A strided view of a buffer; ExecutionError if it leaves the buffer."""
    buffer = expect(value, Buffer, "an operand")
    dtype = np.dtype(_DTYPES[element])
    if min(offset, *shape, *strides) < 0:
        raise ExecutionError(f"offset {offset}, sizes {shape} or strides {strides} are negative")
    # Strides of 0 make any number of elements out of one.
    needed, allowed = math.prod(max(size, 1) for size in shape) * dtype.itemsize, limits().memory
    if needed > allowed:
        raise ExecutionError(f"an operand of {needed} bytes, of {allowed} allowed ({MEMORY})")
    flat = np.frombuffer(buffer.memory, dtype, len(buffer) // dtype.itemsize)
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if 0 in shape:
        return np.empty(shape, dtype)
    if last >= flat.size:
        raise ExecutionError(f"element {last} of {flat.size} elements of type {element}")
    return as_strided(flat[offset:], shape, tuple(stride * dtype.itemsize for stride in strides))


def result_view(
    value: Any, element: str, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> AnyArray:
    """A strided view of a buffer that a kernel writes; ExecutionError as for an operand."""
    view = operand_view(value, element, offset, shape, strides)
    stored = {"u32": "i32"}.get(element, element)
    # What is stored is marked by its type, and read-only data refused.
    _ = value.stores[stored]
    return view


def _kernel(function: Callable[..., AnyArray], element: str) -> Callable[..., None]:
    """An import that takes buffer, offset and strides of operands and result, then both sizes."""

    def kernel(*values: Any) -> None:
        *operands, target = (values[at : at + 4] for at in range(0, len(values) - 2, 4))

        def view(make: Callable[..., AnyArray], value: Any, offset: int, *strides: int) -> AnyArray:
            return make(value, element, offset, values[-2:], strides)

        result = function(*(view(operand_view, *operand) for operand in operands))
        view(result_view, *target)[...] = result

    return kernel


def _count_leading_zeros(values: AnyArray) -> AnyArray:
    _, exponent = np.frexp(values.astype(np.float64))
    zeros: AnyArray = 32 - exponent
    return zeros


def _divide(function: Callable[[AnyArray, AnyArray], AnyArray]) -> Any:
    def divide(left: AnyArray, right: AnyArray) -> AnyArray:
        if not right.all():
            raise ExecutionError("a division of an integer by zero")
        return function(left, right)

    return divide


def _truncated(left: AnyArray, right: AnyArray) -> AnyArray:
    wide, divisor = left.astype(np.int64), right.astype(np.int64)
    quotient: AnyArray = np.sign(wide) * np.sign(divisor) * (abs(wide) // abs(divisor))
    return quotient


UNARY_KERNELS: Mapping[str, tuple[Callable[[AnyArray], AnyArray], str]] = {
    "abs.2d.f32": (np.abs, "f32"),
    "ceil.2d.f32": (np.ceil, "f32"),
    "exp.2d.f32": (np.exp, "f32"),
    "floor.2d.f32": (np.floor, "f32"),
    "log.2d.f32": (np.log, "f32"),
    "neg.2d.f32": (np.negative, "f32"),
    "rsqrt.2d.f32": (lambda values: np.float32(1) / np.sqrt(values), "f32"),
    "ctlz.2d.i32": (_count_leading_zeros, "u32"),
    "copy.2d.x8": (np.positive, "i8"),
    "copy.2d.x16": (np.positive, "i16"),
    "copy.2d.x32": (np.positive, "i32"),
    "copy.2d.x64": (np.positive, "i64"),
}
"""Kernels of one operand: their function and element type."""

BINARY_KERNELS: Mapping[str, tuple[Callable[[AnyArray, AnyArray], AnyArray], str]] = {
    "add.2d.f32": (np.add, "f32"),
    "sub.2d.f32": (np.subtract, "f32"),
    "mul.2d.f32": (np.multiply, "f32"),
    "div.2d.f32": (np.divide, "f32"),
    "add.2d.i32": (np.add, "i32"),
    "sub.2d.i32": (np.subtract, "i32"),
    "mul.2d.i32": (np.multiply, "i32"),
    "and.2d.i32": (np.bitwise_and, "i32"),
    "or.2d.i32": (np.bitwise_or, "i32"),
    "xor.2d.i32": (np.bitwise_xor, "i32"),
    "divs.2d.i32": (_divide(_truncated), "i32"),
    "divu.2d.i32": (_divide(np.floor_divide), "u32"),
    "shl.2d.i32": (lambda left, right: left << (right & 31), "i32"),
    "shrs.2d.i32": (lambda left, right: left >> (right & 31), "i32"),
    "shru.2d.i32": (lambda left, right: left >> (right & 31), "u32"),
}
"""Kernels of two operands: their function and element type."""

for _name, (_function, _element) in UNARY_KERNELS.items():
    VMVX.add(_name, _UNARY)(_kernel(_function, _element))
for _name, (_pair, _element) in BINARY_KERNELS.items():
    VMVX.add(_name, _BINARY)(_kernel(_pair, _element))


@VMVX.add("fill.2d.x32", "0irIIII_v")
def fill(value: int, target: Any, offset: int, stride: int, size0: int, size1: int) -> None:
    """Fill rows of words; their elements are contiguous."""
    result_view(target, "i32", offset, (size0, size1), (stride, 1))[...] = value


@VMVX.add("mmt4d", "0rIIrIIrIIIIIiiii_v")
def tiled_product(
    left: Any,
    left_offset: int,
    left_stride: int,
    right: Any,
    right_offset: int,
    right_stride: int,
    target: Any,
    target_offset: int,
    target_stride: int,
    m: int,
    n: int,
    k: int,
    m0: int,
    n0: int,
    k0: int,
    flags: int,
) -> None:
    """Product of a matrix of tiles with a transposed one; only outer strides are free."""
    types = MMT4D_TYPES.get(flags & 0xFF)
    if types is None or flags & ~_MMT4D_FLAGS:
        raise Unsupported("flags of vmvx.mmt4d", [f"{flags:#x}"])
    operand, result = types
    rows = _tiles(operand_view, left, operand, left_offset, (m, k, m0, k0), left_stride)
    columns = _tiles(operand_view, right, operand, right_offset, (n, k, n0, k0), right_stride)
    tiles = _tiles(result_view, target, result, target_offset, (m, n, m0, n0), target_stride)
    wide = np.dtype(_DTYPES[result])
    product = np.einsum("mkac,nkbc->mnab", rows.astype(wide), columns.astype(wide))
    tiles[...] = tiles + product if flags & MMT4D_ACCUMULATE else product


def _tiles(
    make: Callable[..., AnyArray],
    value: Any,
    element: str,
    offset: int,
    shape: tuple[int, int, int, int],
    stride: int,
) -> AnyArray:
    tile = shape[2] * shape[3]
    return make(value, element, offset, shape, (stride, tile, shape[3], 1))
