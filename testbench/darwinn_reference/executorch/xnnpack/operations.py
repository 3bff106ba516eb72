"""The table of nodes: which kernel computes each, and for which types of its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darwinn_formats.executorch.xnnpack import schema
from darwinn_formats.executorch.xnnpack.schema import Datatype

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.xnnpack import (
    elementwise,
    images,
    movement,
    products,
)
from darwinn_reference.executorch.xnnpack.operands import Operand, Target

Kernel = Callable[[Any, Sequence[Operand], Target], AnyArray | tuple[AnyArray, ...]]
Types = tuple[Datatype, ...]
"""Types of the inputs of a node, without a bias that is not there, then of its first output."""

_FP32, _FP16, _INT8, _UINT8 = Datatype.FP32, Datatype.FP16, Datatype.QINT8, Datatype.QUINT8
_DYNAMIC, _BY_CHANNEL = Datatype.QDINT8, Datatype.QCINT8
_FLOATS = (_FP32, _FP16)
_REALS = (*_FLOATS, _INT8, _UINT8)


@dataclass(frozen=True, slots=True)
class Entry:
    """A node that can be executed.

    ``limited``: the limits of the node hold for what it writes. ``moves``: stored numbers are not
    computed with, so that inputs and output have to be quantised alike.
    """

    kernel: Kernel
    types: frozenset[Types]
    limited: bool = False
    moves: bool = False


def _alike(count: int, types: Sequence[Datatype] = _REALS) -> frozenset[Types]:
    """So many inputs and an output, all of one type."""
    return frozenset((entry,) * (count + 1) for entry in types)


def _with_bias(left: Datatype, right: Datatype, bias: Datatype, output: Datatype) -> set[Types]:
    return {(left, right, bias, output), (left, right, output)}


_STATIC = {
    *_with_bias(_FP32, _FP32, _FP32, _FP32),
    *_with_bias(_FP16, _FP16, _FP16, _FP16),
    *_with_bias(_FP16, _FP32, _FP32, _FP16),
    *_with_bias(_INT8, _INT8, Datatype.QINT32, _INT8),
    *_with_bias(_INT8, _BY_CHANNEL, Datatype.QCINT32, _INT8),
    *_with_bias(_UINT8, _UINT8, Datatype.QINT32, _UINT8),
}
_BY_ROW = {*_with_bias(_DYNAMIC, _BY_CHANNEL, _FP32, _FP32)}
_CONVOLUTION = frozenset(_STATIC | _BY_ROW)
_MATRIX = frozenset(
    {
        *_STATIC,
        *_BY_ROW,
        *_with_bias(_DYNAMIC, Datatype.QCINT4, _FP32, _FP32),
        *_with_bias(_DYNAMIC, Datatype.QBINT4, _FP32, _FP32),
        *_with_bias(_FP32, _BY_CHANNEL, _FP32, _FP32),
        *_with_bias(_FP32, Datatype.QCINT4, _FP32, _FP32),
    }
)
_CONVERSIONS = frozenset(
    {
        *((_FP32, entry) for entry in (_FP16, _INT8, _UINT8, _DYNAMIC)),
        (_FP16, _FP32),
        *((entry, _FP32) for entry in (_INT8, _UINT8)),
        (_INT8, _INT8),
        (_UINT8, _UINT8),
    }
)

_LIMITED_BINARY = (schema.Add, schema.Subtract, schema.Multiply, schema.Div)
_CONCATENATIONS: Mapping[type[Any], int] = {
    schema.Concatenate2: 2,
    schema.Concatenate3: 3,
    schema.Concatenate4: 4,
    schema.Concatenate5: 5,
}

OPERATIONS: Mapping[type[Any], Entry] = {
    **{name: Entry(elementwise.unary, _alike(1)) for name in elementwise.UNARY},
    **{
        name: Entry(elementwise.binary, _alike(2), name in _LIMITED_BINARY)
        for name in elementwise.BINARY
    },
    **{
        name: Entry(movement.concatenate, _alike(n), moves=True)
        for name, n in _CONCATENATIONS.items()
    },
    schema.Clamp: Entry(elementwise.unary, _alike(1), limited=True),
    schema.Softmax: Entry(elementwise.softmax, _alike(1, _FLOATS)),
    schema.Convert: Entry(elementwise.convert, _CONVERSIONS),
    schema.Conv2d: Entry(products.convolution, _CONVOLUTION, limited=True),
    schema.DepthwiseConv2d: Entry(products.convolution, frozenset(_STATIC), limited=True),
    schema.ConvTranspose2d: Entry(products.transposed_convolution, _CONVOLUTION, limited=True),
    schema.FullyConnected: Entry(products.fully_connected, _MATRIX, limited=True),
    schema.BatchMatrixMultiply: Entry(products.batch_product, _alike(2, _FLOATS)),
    schema.AvgPooling2d: Entry(images.average_pooling, _alike(1, _FLOATS), limited=True),
    schema.MaxPooling2d: Entry(images.max_pooling, _alike(1), limited=True, moves=True),
    schema.ArgMaxPooling2d: Entry(images.argmax_pooling, _alike(1, (_FP32,))),
    schema.GlobalAvgPooling2d: Entry(images.global_average, _alike(1), limited=True),
    schema.StaticResizeBilinear2D: Entry(images.resize, _alike(1), moves=True),
    schema.Copy: Entry(movement.copy, _alike(1), moves=True),
    schema.StaticTranspose: Entry(movement.transpose, _alike(1), moves=True),
    schema.StaticReshape: Entry(movement.reshape, _alike(1), moves=True),
    schema.StaticSlice: Entry(movement.cut, _alike(1), moves=True),
    schema.StaticConstantPad: Entry(movement.pad, _alike(1), moves=True),
}
"""Every node that can be executed; the others are refused by name."""
