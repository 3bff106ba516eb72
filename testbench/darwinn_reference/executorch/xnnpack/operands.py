"""Values of a graph while it runs, and how real numbers become quantised ones and back.

XNNPACK computes scales in float32 and rounds to the nearest, ties to even; so does all here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.executorch.xnnpack import XnnpackGraph, schema
from darwinn_formats.executorch.xnnpack.schema import Datatype
from numpy.typing import NDArray

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.halves import from_halves
from darwinn_reference.executorch.values import refuse_more

DTYPES: dict[Datatype, type[np.generic]] = {
    Datatype.FP32: np.float32,
    Datatype.FP16: np.float16,
    Datatype.QINT8: np.int8,
    Datatype.QUINT8: np.uint8,
    Datatype.QINT32: np.int32,
    Datatype.QCINT8: np.int8,
    Datatype.QCINT32: np.int32,
    Datatype.QCINT4: np.int8,
    Datatype.QDINT8: np.int8,
    Datatype.QBINT4: np.int8,
    Datatype.INT32: np.int32,
}
"""NumPy types of the elements of values that can be computed with."""

FLOATS = frozenset({Datatype.FP32, Datatype.FP16})
"""Types whose numbers are what they stand for."""

LIMITS = {Datatype.QINT8: (-128, 127), Datatype.QUINT8: (0, 255)}
"""Least and greatest element of the types that results are quantised to."""

_HALF_BYTES = (Datatype.QCINT4, Datatype.QBINT4)
_HALF_BYTE_ZERO = 8

Float = NDArray[np.float32]

_ONE = np.float32(1)


@dataclass(frozen=True, slots=True)
class Operand:
    """A value: its type, its numbers as stored, and what they stand for.

    Attributes:
        datatype: type of the elements.
        array: the stored numbers; those of half bytes with their zero point taken away.
        scale: float32, one, or one for each channel (of 1 dimension), row (rank of the array) or
            group of a row (outputs by groups).
        zero_point: of all, or for each row.
        channel: the dimension of the scales by channel.
    """

    datatype: Datatype
    array: AnyArray
    scale: Any = _ONE
    zero_point: Any = 0
    channel: int = 0

    @property
    def is_float(self) -> bool:
        """Whether the numbers are what they stand for."""
        return self.datatype in FLOATS

    def real(self) -> Float:
        """The real numbers, of a value with one scale."""
        if self.datatype is Datatype.FP16:
            return from_halves(self.array)
        if self.is_float:
            return self.array.astype(np.float32, copy=False)
        centred = self.array.astype(np.int32) - self.zero_point
        real: Float = centred.astype(np.float32) * self.scale
        return real


@dataclass(frozen=True, slots=True)
class Target:
    """What a node writes: type, scale and zero point of its output, and the limits of the node."""

    datatype: Datatype
    scale: np.float32
    zero_point: int
    low: float
    high: float

    @property
    def is_float(self) -> bool:
        """Whether real numbers are stored as they are, or rounded to half precision."""
        return self.datatype in FLOATS

    @property
    def bounds(self) -> tuple[int, int]:
        """Least and greatest stored number, by the type and by the limits of the node."""
        least, greatest = LIMITS[self.datatype]
        low, high = (
            int(np.clip(self._nearest(np.float32(limit)), least, greatest))
            for limit in (self.low, self.high)
        )
        return low, high

    def _nearest(self, number: np.float32) -> float:
        return float(np.rint(number / self.scale + np.float32(self.zero_point)))

    def quantise(self, numbers: Float) -> AnyArray:
        """Real numbers as stored ones; what is no number is stored as 0."""
        stored = self.whole(numbers * (np.float32(1) / self.scale))
        return np.where(np.isnan(numbers), stored.dtype.type(0), stored)

    def whole(self, scaled: Float) -> AnyArray:
        """Stored numbers of real ones in units of the scale: zero point and all rounded."""
        return self._kept(np.rint(scaled + np.float32(self.zero_point)))

    def stored(self, scaled: Float) -> AnyArray:
        """Stored numbers of real ones in units of the scale: rounded before the zero point."""
        return self._kept(np.rint(scaled) + np.float32(self.zero_point))

    def _kept(self, whole: Float) -> AnyArray:
        return np.fmin(np.fmax(whole, self.bounds[0]), self.bounds[1]).astype(DTYPES[self.datatype])

    def clamp(self, numbers: Float) -> None:
        """Bring real numbers within the limits of the node, where they are."""
        if self.low != -np.inf or self.high != np.inf:
            np.clip(numbers, np.float32(self.low), np.float32(self.high), out=numbers)

    def clamped(self, numbers: Float) -> AnyArray:
        """Real numbers within the limits of the node, rounded to the type where that is a float."""
        if self.low != -np.inf or self.high != np.inf:
            numbers = np.clip(numbers, np.float32(self.low), np.float32(self.high))
        return numbers.astype(DTYPES[self.datatype], copy=False)

    def of_real(self, numbers: Float) -> AnyArray:
        """What is stored for real numbers, limits applied."""
        if self.is_float:
            return self.clamped(numbers.astype(np.float32, copy=False))
        return self.quantise(numbers.astype(np.float32, copy=False))


def padded_by(image: AnyArray, margins: Sequence[tuple[int, int]], number: float) -> AnyArray:
    """Images with rows and columns of a number before and behind.

    Raises:
        ExecutionError: that is more than is allowed.
    """
    sizes = [size + sum(each) for size, each in zip(image.shape[1:3], margins, strict=True)]
    refuse_more(math.prod((len(image), *sizes, image.shape[-1])) * image.itemsize, "a margin")
    (top, bottom), (left, right) = margins
    if not top + bottom + left + right:
        return image
    padded = np.empty((len(image), *sizes, image.shape[-1]), image.dtype)
    inside = slice(top, sizes[0] - bottom)
    padded[:, :top] = padded[:, sizes[0] - bottom :] = number
    padded[:, inside, :left] = padded[:, inside, sizes[1] - right :] = number
    padded[:, inside, left : sizes[1] - right] = image
    return padded


def constant_of(graph: XnnpackGraph, value: schema.Value) -> Operand:
    """A value that is constant, read.

    Raises:
        ExecutionError: the data does not fit the sizes.
    """
    data = graph.data(value)
    assert data is not None
    tensor = value.tensor
    stored = _elements(np.frombuffer(data, np.uint8), tensor)
    scale, zero_point, channel = _quantisation(graph, value)
    return Operand(tensor.datatype, stored, scale, zero_point, channel)


def described(value: schema.Value, array: AnyArray) -> Operand:
    """An array as a value that is not constant."""
    scale, zero_point = scale_of(value)
    return Operand(value.tensor.datatype, array, scale, zero_point)


def scale_of(value: schema.Value) -> tuple[np.float32, int]:
    """Scale and zero point of a value with one of each; 1 and 0 where there are none."""
    quantisation = value.quantisation
    if isinstance(quantisation, schema.PerTensorQuant):
        return np.float32(quantisation.scale), quantisation.zero_point
    return np.float32(1), 0


def _elements(data: NDArray[np.uint8], tensor: schema.TensorValue) -> AnyArray:
    sizes = tensor.dims
    if tensor.datatype in _HALF_BYTES:
        *rows, row = sizes
        width = -(-row // 2)
        pairs = data[: int(np.prod(rows)) * width].reshape(*rows, width)
        halves = np.stack([pairs & 15, pairs >> 4], -1).reshape(*rows, 2 * width)[..., :row]
        return halves.astype(np.int8) - _HALF_BYTE_ZERO
    dtype = np.dtype(DTYPES[tensor.datatype])
    count = int(np.prod(sizes, dtype=np.int64))
    if count * dtype.itemsize > len(data):
        raise ExecutionError(f"a constant of {len(data)} bytes, {count * dtype.itemsize} needed")
    return np.frombuffer(data, dtype, count).reshape(sizes)


def _quantisation(graph: XnnpackGraph, value: schema.Value) -> tuple[Any, int, int]:
    match value.quantisation:
        case schema.PerTensorQuant(scale, zero_point):
            return np.float32(scale), zero_point, 0
        case schema.PerChannelQuant(scale=scales, channel_dim=channel, scale_buffer_idx=index):
            if index:
                count = value.tensor.dims[channel]
                return np.frombuffer(graph.constants[index], np.float32, count), 0, channel
            return np.array(scales, np.float32), 0, channel
        case schema.PerChannelGroupQuant() as groups:
            return _group_scales(graph, groups, value.tensor.dims), 0, 0
    return np.float32(1), 0, 0


def _group_scales(
    graph: XnnpackGraph, groups: schema.PerChannelGroupQuant, dims: tuple[int, ...]
) -> Float:
    outputs, count = dims[0], dims[1] // groups.group_size
    if groups.scale_buffer_idx:
        bits = np.frombuffer(graph.constants[groups.scale_buffer_idx], "<u2", outputs * count)
    elif groups.scale_bf16:
        bits = np.array(groups.scale_bf16, np.uint16)
    else:
        # As the runtime makes bfloat16 of them: scaled so that cutting off rounds.
        adjusted = np.array(groups.scale, np.float32) * np.float32(1.00389105)
        bits = (adjusted.view(np.uint32) >> 16).astype(np.uint16)
    wide: Float = (bits.astype(np.uint32) << 16).view(np.float32)
    return wide.reshape(outputs, count)
