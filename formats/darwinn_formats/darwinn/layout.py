"""Between tensors and the bytes that the chip moves: order of the tiles, padding, sign.

The chip sends an output in the order of its tiles; ``OutputLayout`` or ``OutputShapeInfo`` say
where each element is. It computes with unsigned numbers, so that the sign bit of signed fixed
point elements is inverted on the way in and out. See docs/formats-darwinn.md, "Layouts".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from numpy.typing import NDArray

from darwinn_formats.darwinn.schema import (
    DataType,
    Layer,
    OutputLayer,
    OutputLayout,
    OutputShapeInfo,
    TensorShape,
)
from darwinn_formats.errors import FormatError
from darwinn_formats.limits import refuse_size

Bytes = NDArray[np.uint8]

DTYPES: dict[DataType, np.dtype[Any]] = {
    DataType.FIXED_POINT8: np.dtype("u1"),
    DataType.FIXED_POINT16: np.dtype("<u2"),
    DataType.SIGNED_FIXED_POINT32: np.dtype("<i4"),
    DataType.HALF: np.dtype("<f2"),
    DataType.SINGLE: np.dtype("<f4"),
    DataType.SIGNED_FIXED_POINT8: np.dtype("i1"),
    DataType.SIGNED_FIXED_POINT16: np.dtype("<i2"),
}
"""NumPy types of the elements; BFLOAT has none and is refused."""
NO_ARITHMETIC = "not supported"
"""How elements without a type are refused."""

_SIGN_BITS: dict[DataType, tuple[str, int]] = {
    DataType.SIGNED_FIXED_POINT8: ("u1", 0x80),
    DataType.SIGNED_FIXED_POINT16: ("<u2", 0x8000),
}
"""Unsigned type and sign bit of the types whose sign bit is inverted. The runtime leaves
SIGNED_FIXED_POINT32 as it is."""


def dtype_of(layer: Layer) -> np.dtype[Any]:
    """NumPy type of the elements of a layer; FormatError if there is none."""
    dtype = DTYPES.get(layer.data_type)
    if dtype is None:
        raise _fault(
            layer, "data_type", f"elements of type {layer.data_type.name}: {NO_ARITHMETIC}"
        )
    return dtype


def to_tensor(layer: Layer, data: bytes | bytearray | memoryview | Bytes) -> NDArray[Any]:
    """Tensor of the bytes that the chip sent for a layer.

    Args:
        layer: an output layer (or an input layer, whose elements are in order).
        data: ``size_bytes`` bytes for each execution, in the order of the chip.

    Returns:
        Array of shape (y, x, z) of the layer's type, with a leading axis for the executions if
        there are several, and one for the batch if the layer's shape has one. It may be a view
        of the data.

    Raises:
        FormatError: when the data has another size, or the layout does not fit the layer.
    """
    executions = _executions(layer)
    received = np.frombuffer(data, np.uint8)
    if len(received) != executions * layer.size_bytes:
        expected = f"{executions} * {layer.size_bytes}"
        raise _fault(layer, "size_bytes", f"{len(received)} bytes are given, not {expected}")
    parts = received.reshape(executions, layer.size_bytes)
    tensors = [_with_sign(layer, _reorder(layer, part)) for part in parts]
    return tensors[0] if executions == 1 else np.stack(tensors)


def to_device_input(layer: Layer, tensor: NDArray[Any]) -> bytes:
    """Bytes that the chip takes for an input tensor.

    Args:
        layer: an input layer.
        tensor: elements of the layer's type in the order y, x, z, for all executions; any shape
            with as many elements.

    Returns:
        ``size_bytes`` bytes for each execution, padded with zeros.

    Raises:
        FormatError: when type or number of elements are not those of the layer.
    """
    dtype, executions = dtype_of(layer), _executions(layer)
    if tensor.dtype != dtype:
        raise _fault(layer, "data_type", f"elements of type {tensor.dtype} are given, not {dtype}")
    count = layer.y_dim * layer.x_dim * layer.z_dim
    if tensor.size != executions * count:
        reason = f"{tensor.size} elements are given, not {executions} * {count}"
        raise _fault(layer, "y_dim, x_dim, z_dim", reason)
    if count * dtype.itemsize > layer.size_bytes:
        reason = f"{count} elements of {dtype} take more than {layer.size_bytes} bytes"
        raise _fault(layer, "size_bytes", reason)
    padded = np.zeros((executions, layer.size_bytes), np.uint8)
    elements = np.ascontiguousarray(tensor).reshape(executions, count)
    padded[:, : count * dtype.itemsize] = _with_sign(layer, elements).view(np.uint8)
    return padded.tobytes()


def check_size(layer: Layer, batch: int = 1, limit: int = 1 << 28) -> None:
    """Hold what a layer says of its size to itself, before anything of that size is made.

    Raises:
        FormatError: a size that is not positive, more elements than fit into ``size_bytes``, or
            more than ``limit`` bytes for ``batch`` inferences.
    """
    executions = _executions(layer)
    needed = math.prod(_dimensions(layer)) * dtype_of(layer).itemsize
    if needed > layer.size_bytes:
        raise _fault(layer, "size_bytes", f"{needed} bytes of elements are in {layer.size_bytes}")
    total = layer.size_bytes * executions * max(1, batch)
    refuse_size(total, f"layer {layer.name!r}.size_bytes")
    if total > limit:
        raise _fault(layer, "size_bytes", f"{total} bytes in a run are more than {limit}")


def _fault(layer: Layer, field: str, reason: str) -> FormatError:
    return FormatError(f'Layer["{layer.name}"].{field}', reason, offset=layer.file_offset)


def _executions(layer: Layer) -> int:
    executions = layer.execution_count_per_inference
    if executions < 1 or layer.size_bytes < 1 or min(_dimensions(layer)) < 1:
        raise _fault(layer, "size_bytes", "sizes, dimensions and executions must be positive")
    return executions


def _dimensions(layer: Layer) -> tuple[int, int, int]:
    return layer.y_dim, layer.x_dim, layer.z_dim


def _with_sign(layer: Layer, elements: NDArray[Any]) -> NDArray[Any]:
    """Elements with their sign bit inverted, if the chip holds them without a sign."""
    if layer.data_type not in _SIGN_BITS:
        return elements
    unsigned, bit = _SIGN_BITS[layer.data_type]
    flipped: NDArray[Any] = elements.view(unsigned) ^ np.dtype(unsigned).type(bit)
    return flipped.view(elements.dtype)


def _reorder(layer: Layer, data: Bytes) -> NDArray[Any]:
    output = layer.any_layer
    if isinstance(output, OutputLayer):
        if output.shape_info is not None:
            return _from_slices(layer, output.shape_info, data)
        if (layer.y_dim, layer.x_dim) != (1, 1):
            if output.layout is None:
                raise _fault(layer, "any_layer.layout", "a layout is needed and absent")
            return _from_tiles(layer, output.layout, data)
    dtype, count = dtype_of(layer), layer.y_dim * layer.x_dim * layer.z_dim
    if count * dtype.itemsize > len(data):
        reason = f"{count} elements of {dtype} take more than {len(data)} bytes"
        raise _fault(layer, "size_bytes", reason)
    return data[: count * dtype.itemsize].view(dtype).reshape(_dimensions(layer))


def _from_tiles(layer: Layer, layout: OutputLayout, data: Bytes) -> NDArray[Any]:
    """Gather one run of z elements for each y and x.

    The offsets of the layout count elements: the runtime multiplies them by the element size.
    """

    def table(name: str, length: int) -> NDArray[np.int64]:
        values = getattr(layout, name)
        if len(values) < length:
            reason = f"{len(values)} entries are too few for {length}"
            raise _fault(layer, f"any_layer.layout.{name}", reason)
        return np.array(values[:length], np.int64)

    dtype = dtype_of(layer)
    tiles = table("linearized_tile_byte_offset", len(layout.linearized_tile_byte_offset))
    tile = table("y_coordinate_to_linear_tile_id_map", layer.y_dim)[:, None] + table(
        "x_coordinate_to_linear_tile_id_map", layer.x_dim
    )
    if tile.min() < 0 or tile.max() >= len(tiles):
        reason = f"tile {tile.max()} is not below {len(tiles)}"
        raise _fault(layer, "any_layer.layout", reason)
    rows = table("y_coordinate_to_local_y_offset", layer.y_dim)[:, None]
    start = tiles[tile] + rows * table("x_coordinate_to_local_y_row_size", layer.x_dim)
    start = (start + table("x_coordinate_to_local_byte_offset", layer.x_dim)) * dtype.itemsize
    run = layer.z_dim * dtype.itemsize
    if start.min() < 0 or start.max() + run > len(data):
        reason = f"elements lie between {start.min()} and {start.max() + run} of {len(data)} bytes"
        raise _fault(layer, "any_layer.layout", reason)
    runs: Bytes = sliding_window_view(data, run)[start]
    return runs.view(dtype)


def _from_slices(layer: Layer, info: OutputShapeInfo, data: Bytes) -> NDArray[Any]:
    """Copy each slice to its place; the slices must cover the tensor."""
    dtype, path = dtype_of(layer), "any_layer.shape_info"
    origin, extent = _box(layer, "shape", layer.shape)
    count = int(np.prod(extent, dtype=object))
    if count * dtype.itemsize > len(data):
        reason = f"{count} elements of {dtype} take more than {len(data)} bytes"
        raise _fault(layer, "shape", reason)
    y, x, z = _dimensions(layer)
    if count % (y * x * z):
        reason = f"{count} elements are not a multiple of {y} * {x} * {z}"
        raise _fault(layer, "shape", reason)
    if len(info.slice_layout) != len(info.slice_offset):
        reason = f"{len(info.slice_offset)} offsets for {len(info.slice_layout)} slices"
        raise _fault(layer, f"{path}.slice_offset", reason)
    tensor = np.empty(extent, dtype)
    covered = np.zeros(extent, np.bool_)
    for index, (entry, offset) in enumerate(zip(info.slice_layout, info.slice_offset, strict=True)):
        place = f"{path}.slice_layout[{index}]"
        first, shape = _box(layer, f"{place}.shape", entry.shape)
        low = tuple(a - b for a, b in zip(first, origin, strict=False))
        inside = len(shape) == len(extent) and all(
            a >= 0 and a + b <= c for a, b, c in zip(low, shape, extent, strict=True)
        )
        if not inside:
            raise _fault(layer, f"{place}.shape", f"{shape} at {low} is not within {extent}")
        box = tuple(slice(a, a + b) for a, b in zip(low, shape, strict=True))
        strides = tuple(step * dtype.itemsize for step in entry.stride)
        if len(strides) != len(shape) or min(strides) < 0:
            raise _fault(layer, f"{place}.stride", f"{entry.stride} does not fit {shape}")
        end = offset + dtype.itemsize
        end += sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
        if offset < 0 or offset % dtype.itemsize or end > len(data):
            reason = f"slice from {offset} to {end} of {len(data)} bytes"
            raise _fault(layer, f"{path}.slice_offset[{index}]", reason)
        elements = data[offset : offset + (len(data) - offset) // dtype.itemsize * dtype.itemsize]
        tensor[box] = as_strided(elements.view(dtype), shape, strides)
        covered[box] = True
    if not covered.all():
        raise _fault(layer, path, f"{int((~covered).sum())} elements are in no slice")
    tensors = tensor.reshape(-1, y, x, z)
    return tensors[0] if len(tensors) == 1 else tensors


def _box(
    layer: Layer, path: str, shape: TensorShape | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Origin and extent of a shape."""
    if shape is None or not shape.dimension:
        raise _fault(layer, path, "a shape is needed and absent")
    extent = tuple(entry.end - entry.start + 1 for entry in shape.dimension)
    if min(extent) < 1:
        raise _fault(layer, path, f"the shape {extent} is empty")
    return tuple(entry.start for entry in shape.dimension), extent
