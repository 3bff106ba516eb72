"""Kernels of the ``vmvx`` module that lay matrices out in tiles, and back.

Offsets and strides count elements. Tiles lie one after the other; only the outer stride is free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError

from darwinn_reference.arrays import AnyArray
from darwinn_reference.errors import Unsupported
from darwinn_reference.iree.imports import ImportTable
from darwinn_reference.iree.vmvx import operand_view, result_view

PACKING = ImportTable("vmvx", {})

PACKED_TYPES: Mapping[int, str] = {1: "f32", 2: "i8", 3: "i32"}
"""Element types of packed matrices, by the low byte of the flags."""
TRANSPOSE_INNER, TRANSPOSE_OUTER = 0x100, 0x200

TILES: Mapping[int, tuple[int, int]] = {1: (8, 4), 2: (8, 4), 3: (8, 8)}
"""Sizes of the tiles of a product by the role of the matrix: left, right, result.

Every processor has its own; these are the original's where it knows nothing of the processor.
"""
_ROLE = 0xFF

_SIZES = "size0 size1 size2 size3"
_SOURCE, _TARGET = "source source_offset source_stride", "target target_offset target_stride"
_PACK = "rows columns " + _SIZES + " padding flags"
_UNPACK = _SIZES + " rows columns flags"


@dataclass(frozen=True)
class _Tiles:
    """How the tiles of a matrix lie: numbers of tiles, sizes of each, and what is exchanged."""

    shape: tuple[int, int, int, int]
    transposes_outer: bool
    transposes_inner: bool

    def logical(self, tiles: AnyArray) -> AnyArray:
        """Tiles by their row, column, and row and column within."""
        outer = (1, 0) if self.transposes_outer else (0, 1)
        inner = (3, 2) if self.transposes_inner else (2, 3)
        return tiles.transpose(*outer, *inner)


def _tiles(what: str, flags: int, shape: tuple[int, int, int, int]) -> tuple[str, _Tiles]:
    element = PACKED_TYPES.get(flags & 0xFF)
    if element is None or flags & ~(0xFF | TRANSPOSE_INNER | TRANSPOSE_OUTER):
        raise Unsupported(f"flags of vmvx.{what}", [f"{flags:#x}"])
    return element, _Tiles(shape, bool(flags & TRANSPOSE_OUTER), bool(flags & TRANSPOSE_INNER))


def _tile_view(
    make: Callable[..., AnyArray], value: Any, element: str, offset: int, stride: int, tiles: _Tiles
) -> AnyArray:
    """The tiles of a buffer in their logical order."""
    _, _, height, width = tiles.shape
    strides = (stride, height * width, width, 1)
    return tiles.logical(make(value, element, offset, tiles.shape, strides))


def _refuse_outside(rows: int, columns: int, tiles: AnyArray) -> None:
    down, right, height, width = tiles.shape
    if rows > down * height or columns > right * width:
        raise ExecutionError(f"tiles of {tiles.shape} do not hold {rows} x {columns} elements")


@PACKING.add("pack", "0rIIrIIIIIIIIIi_v", f"{_SOURCE} {_TARGET} {_PACK}")
@PACKING.add("pack", "0rIIIrIIIIIIIIIIi_v", f"{_SOURCE} source_step {_TARGET} target_step {_PACK}")
def pack(
    source: Any,
    source_offset: int,
    source_stride: int,
    target: Any,
    target_offset: int,
    target_stride: int,
    rows: int,
    columns: int,
    size0: int,
    size1: int,
    size2: int,
    size3: int,
    padding: int,
    flags: int,
    source_step: int = 1,
) -> None:
    """Lay a matrix out in tiles, and fill what is left of them with the padding's low bytes."""
    element, layout = _tiles("pack", flags, (size0, size1, size2, size3))
    matrix = operand_view(
        source, element, source_offset, (rows, columns), (source_stride, source_step)
    )
    tiles = _tile_view(result_view, target, element, target_offset, target_stride, layout)
    _refuse_outside(rows, columns, tiles)
    down, right, height, width = tiles.shape
    filling = (padding % 2**64).to_bytes(8, "little")[: matrix.itemsize]
    whole = np.full((down * height, right * width), np.frombuffer(filling, matrix.dtype)[0])
    whole[:rows, :columns] = matrix
    tiles[...] = whole.reshape(down, height, right, width).transpose(0, 2, 1, 3)


@PACKING.add("unpack", "0rIIrIIIIIIIIi_v", f"{_SOURCE} {_TARGET} {_UNPACK}")
@PACKING.add(
    "unpack", "0rIIIrIIIIIIIIIi_v", f"{_SOURCE} source_step {_TARGET} target_step {_UNPACK}"
)
def unpack(
    source: Any,
    source_offset: int,
    source_stride: int,
    target: Any,
    target_offset: int,
    target_stride: int,
    size0: int,
    size1: int,
    size2: int,
    size3: int,
    rows: int,
    columns: int,
    flags: int,
    target_step: int = 1,
) -> None:
    """Take a matrix out of its tiles."""
    element, layout = _tiles("unpack", flags, (size0, size1, size2, size3))
    tiles = _tile_view(operand_view, source, element, source_offset, source_stride, layout)
    _refuse_outside(rows, columns, tiles)
    down, right, height, width = tiles.shape
    whole = tiles.transpose(0, 2, 1, 3).reshape(down * height, right * width)
    shape, strides = (rows, columns), (target_stride, target_step)
    matrix = result_view(target, element, target_offset, shape, strides)
    matrix[...] = whole[:rows, :columns]


@PACKING.add("query_tile_sizes.2d", "0IIi_II", "rows columns flags")
def tile_sizes(flags: int) -> tuple[int, int]:
    """Height and width of the tiles that a matrix of a product is to be packed in."""
    role = flags & _ROLE
    if role not in TILES:
        raise Unsupported("flags of vmvx.query_tile_sizes.2d", [f"{flags:#x}"])
    return TILES[role]
