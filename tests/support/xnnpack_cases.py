"""Random graphs of one node of the XNNPACK delegate, with inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from darwinn_formats.executorch.xnnpack import schema
from darwinn_formats.executorch.xnnpack.schema import NO_VALUE, Datatype
from numpy.random import Generator
from numpy.typing import NDArray
from xnnpack_graphs import DTYPES, GraphBuilder

Array = NDArray[Any]

FP32, FP16, QINT8, QUINT8 = Datatype.FP32, Datatype.FP16, Datatype.QINT8, Datatype.QUINT8
_RANGES = {QINT8: (-128, 128), QUINT8: (0, 256)}


@dataclass(frozen=True)
class Case:
    """A program, and what it is called with."""

    name: str
    program: bytes
    inputs: list[Array]


class Draw:
    """A graph with random inputs."""

    def __init__(self, random: Generator, kind: Datatype) -> None:
        self.random = random
        self.kind = kind
        self.graph = GraphBuilder()
        self.inputs: list[Array] = []

    def size(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def shape(self, rank: int, greatest: int = 5) -> tuple[int, ...]:
        return tuple(self.size(1, greatest) for _ in range(rank))

    def quantisation(self, kind: Datatype | None = None) -> tuple[float, int] | None:
        kind = self.kind if kind is None else kind
        if kind not in _RANGES:
            return None
        zero_point = int(self.random.integers(*_RANGES[kind]))
        exponent = self.random.uniform(-8, -1)
        # Powers of two bring what lies halfway between two numbers.
        exponent = exponent if self.size(0, 1) else round(exponent)
        return float(np.float32(2**exponent)), zero_point

    def numbers(self, shape: tuple[int, ...], kind: Datatype | None = None) -> Array:
        kind = self.kind if kind is None else kind
        if kind in _RANGES:
            return self.random.integers(*_RANGES[kind], shape).astype(DTYPES[kind])
        return (self.random.standard_normal(shape) * 3).astype(DTYPES[kind])

    def input(self, shape: tuple[int, ...], quantisation: Any = ()) -> int:
        given = self.quantisation() if quantisation == () else quantisation
        self.inputs.append(self.numbers(shape))
        return self.graph.input(self.kind, shape, given)

    def limits(self) -> tuple[float, float] | None:
        choice = self.size(0, 3)
        return [None, (0.0, np.inf), (0.0, 6.0), (-1.0, 1.0)][choice]

    def case(self, name: str) -> Case:
        return Case(f"{name} {self.kind.name.lower()}", self.graph.program(), self.inputs)


_POSITIVE = (schema.Log, schema.SquareRoot, schema.ReciprocalSquareRoot)


def unary(node: type[Any]) -> Callable[[Draw], None]:
    def draw(d: Draw) -> None:
        shape, quantisation = d.shape(d.size(1, 4)), d.quantisation()
        x = d.input(shape, quantisation)
        if node in _POSITIVE and d.kind in (FP32, FP16):
            d.inputs[-1] = np.abs(d.inputs[-1]) + d.inputs[-1].dtype.type(0.01)
        same = node is schema.Copy
        y = d.graph.output(d.kind, shape, quantisation if same else d.quantisation())
        options = {schema.ELU: {"alpha": 0.75}, schema.LeakyReLU: {"negative_slope": 0.125}}
        limits = (-0.5, 1.5) if node is schema.Clamp else None
        d.graph.node(node(input_id=x, output_id=y, **options.get(node, {})), limits)

    return draw


def binary(node: type[Any]) -> Callable[[Draw], None]:
    def draw(d: Draw) -> None:
        shape = d.shape(d.size(1, 4))
        other = tuple(size if d.size(0, 2) else 1 for size in shape)
        x, y = d.input(shape), d.input(other)
        z = d.graph.output(d.kind, shape, d.quantisation())
        limited = node in (schema.Add, schema.Subtract, schema.Multiply, schema.Div)
        d.graph.node(node(x, y, z), d.limits() if limited else None)

    return draw


def convert(d: Draw) -> None:
    shape = d.shape(d.size(1, 4))
    x = d.input(shape)
    targets = {FP32: [QINT8, QUINT8], FP16: [FP32, FP32]}.get(d.kind, [FP32, d.kind])
    kind = targets[d.size(0, 1)]
    y = d.graph.output(kind, shape, d.quantisation(kind))
    d.graph.node(schema.Convert(x, y))


def _weights(d: Draw, shape: tuple[int, ...], channel: int, scale: float) -> tuple[int, int]:
    """Filter and bias of a kind that goes with the input; ``scale`` is the input's."""
    outputs = shape[channel]
    has_bias = d.size(0, 3) > 0
    if d.kind in (FP32, FP16):
        # An exporter keeps the constants of half precision, or leaves them single.
        kind = FP16 if d.kind is FP16 and d.size(0, 1) else FP32
        filters = d.graph.value(kind, shape, data=d.numbers(shape, kind))
        if not has_bias:
            return filters, NO_VALUE
        return filters, d.graph.value(kind, (outputs,), data=d.numbers((outputs,), kind))
    numbers = d.random.integers(-500, 500, outputs).astype(np.int32)
    if d.kind is QINT8 and d.size(0, 1):
        scales = np.exp(d.random.uniform(-7, -3, outputs)).astype(np.float32)
        filters = d.graph.value(
            Datatype.QCINT8,
            shape,
            schema.PerChannelQuant(tuple(map(float, scales)), channel),
            data=d.random.integers(-127, 128, shape).astype(np.int8),
        )
        products = tuple(map(float, scales * np.float32(scale)))
        if not has_bias:
            return filters, NO_VALUE
        return filters, d.graph.value(
            Datatype.QCINT32, (outputs,), schema.PerChannelQuant(products, 0), data=numbers
        )
    quantisation = d.quantisation()
    assert quantisation is not None
    one = float(np.float32(quantisation[0] / 10))
    quantisation = (one, 0 if d.kind is QINT8 else quantisation[1])
    filters = d.graph.value(d.kind, shape, quantisation, data=d.numbers(shape))
    product = float(np.float32(one) * np.float32(scale))
    if not has_bias:
        return filters, NO_VALUE
    return filters, d.graph.value(Datatype.QINT32, (outputs,), (product, 0), data=numbers)


def convolution(node: type[Any]) -> Callable[[Draw], None]:
    def draw(d: Draw) -> None:
        is_depthwise = node is schema.DepthwiseConv2d
        groups = d.size(1, 9) if is_depthwise else d.size(1, 2)
        inputs, outputs = (1 if is_depthwise else d.size(1, 9)), d.size(1, 1 if is_depthwise else 9)
        kernel, step, gap = ((d.size(1, 3), d.size(1, 3)) for _ in range(3))
        step, gap = (d.size(1, 2), d.size(1, 2)), (d.size(1, 2), d.size(1, 2))
        top, right, bottom, left = (d.size(0, 2) for _ in range(4))
        height, width = d.size(5, 9), d.size(5, 9)
        quantisation = d.quantisation()
        x = d.input((d.size(1, 2), height, width, groups * inputs), quantisation)
        shape = (
            (1, *kernel, groups * outputs) if is_depthwise else (groups * outputs, *kernel, inputs)
        )
        scale = quantisation[0] if quantisation else 1.0
        filters, bias = _weights(d, shape, 3 if is_depthwise else 0, scale)
        spans = [(k - 1) * g + 1 for k, g in zip(kernel, gap, strict=True)]
        extra = (0, 0)
        margins = (top + bottom, left + right)
        if node is schema.ConvTranspose2d:
            extra = (d.size(0, step[0] - 1), d.size(0, step[1] - 1))
            top, right, bottom, left = (min(entry, 1) for entry in (top, right, bottom, left))
            margins = (top + bottom, left + right)
            sizes = [
                (n - 1) * s + k + e - m
                for n, s, k, e, m in zip((height, width), step, spans, extra, margins, strict=True)
            ]
        else:
            sizes = [
                (n + m - k) // s + 1
                for n, m, k, s in zip((height, width), margins, spans, step, strict=True)
            ]
        batch = d.inputs[-1].shape[0]
        y = d.graph.output(d.kind, (batch, *sizes, groups * outputs), d.quantisation())
        d.graph.node(
            node(
                *(top, right, bottom, left, *kernel, *step, *gap, inputs, outputs, groups, *extra),
                *(x, filters, bias, y),
            ),
            d.limits(),
        )

    return draw


def fully_connected(d: Draw) -> None:
    rows = d.shape(d.size(1, 3))
    inputs, outputs = d.size(1, 40), d.size(1, 12)
    quantisation = d.quantisation()
    x = d.input((*rows, inputs), quantisation)
    filters, bias = _weights(d, (outputs, inputs), 0, quantisation[0] if quantisation else 1.0)
    y = d.graph.output(d.kind, (*rows, outputs), d.quantisation())
    d.graph.node(schema.FullyConnected(x, filters, bias, y), d.limits())


def by_row(d: Draw) -> None:
    """Rows quantised at run time, weights of 8 or 4 bits."""
    rows, inputs, outputs = d.shape(d.size(1, 2)), 32 * d.size(1, 3), d.size(1, 12)
    x = d.input((*rows, inputs))
    q = d.graph.value(Datatype.QDINT8, (*rows, inputs), schema.PerTokenDynamicQuant(1))
    kind = [Datatype.QCINT8, Datatype.QCINT4, Datatype.QBINT4][d.size(0, 2)]
    if kind is Datatype.QBINT4:
        scales = np.exp(d.random.uniform(-7, -3, outputs * inputs // 32)).astype(np.float32)
        stored = d.graph.constant((scales.view(np.uint32) >> 16).astype(np.uint16))
        quantisation: Any = schema.PerChannelGroupQuant(
            channel_dim=0, group_size=32, scale_buffer_idx=stored, num_scales=len(scales)
        )
    else:
        scales = np.exp(d.random.uniform(-7, -3, outputs)).astype(np.float32)
        quantisation = schema.PerChannelQuant(tuple(map(float, scales)), 0)
    data = (
        d.random.integers(-127, 128, (outputs, inputs)).astype(np.int8)
        if kind is Datatype.QCINT8
        else d.random.integers(0, 256, (outputs, inputs // 2)).astype(np.uint8)
    )
    filters = d.graph.value(kind, (outputs, inputs), quantisation, data=data)
    bias = NO_VALUE
    if d.size(0, 1):
        bias = d.graph.value(FP32, (outputs,), data=d.numbers((outputs,)))
    y = d.graph.output(FP32, (*rows, outputs))
    d.graph.node(schema.Convert(x, q))
    d.graph.node(schema.FullyConnected(q, filters, bias, y), d.limits())


def by_image(node: type[Any]) -> Callable[[Draw], None]:
    """Images quantised at run time, convolved with weights of 8 bits."""

    def draw(d: Draw) -> None:
        batch, height, width = d.size(1, 2), d.size(3, 7), d.size(3, 7)
        groups, inputs, outputs = d.size(1, 2), d.size(1, 9), d.size(1, 9)
        kernel, margin, step = d.size(1, 3), d.size(0, 1), d.size(1, 2)
        x = d.input((batch, height, width, groups * inputs))
        q = d.graph.value(Datatype.QDINT8, d.inputs[0].shape, schema.PerTokenDynamicQuant(3))
        scales = np.exp(d.random.uniform(-7, -3, groups * outputs)).astype(np.float32)
        shape = (groups * outputs, kernel, kernel, inputs)
        filters = d.graph.value(
            Datatype.QCINT8,
            shape,
            schema.PerChannelQuant(tuple(map(float, scales)), 0),
            data=d.random.integers(-127, 128, shape).astype(np.int8),
        )
        bias = d.graph.value(FP32, (groups * outputs,), data=d.numbers((groups * outputs,)))
        margin = min(margin, kernel - 1) if node is schema.ConvTranspose2d else margin
        sizes = [
            (size - 1) * step + kernel - 2 * margin
            if node is schema.ConvTranspose2d
            else (size + 2 * margin - kernel) // step + 1
            for size in (height, width)
        ]
        y = d.graph.output(FP32, (batch, *sizes, groups * outputs))
        d.graph.node(schema.Convert(x, q))
        d.graph.node(
            node(
                *(margin, margin, margin, margin, kernel, kernel, step, step, 1, 1),
                *(inputs, outputs, groups, 0, 0, q, filters, bias, y),
            ),
            d.limits(),
        )

    return draw


def batch_product(d: Draw) -> None:
    batch = d.shape(d.size(1, 2))
    m, k, n = d.shape(3, 8)
    x = d.input((*batch, m, k))
    turned = d.size(0, 1)
    y = d.input((*batch, n, k) if turned else (*batch, k, n))
    z = d.graph.output(d.kind, (*batch, m, n))
    d.graph.node(schema.BatchMatrixMultiply(x, y, z, turned))


def pooling(node: type[Any]) -> Callable[[Draw], None]:
    def draw(d: Draw) -> None:
        kernel = (d.size(2, 3), d.size(1, 3))
        is_max = node is schema.MaxPooling2d
        margins = (d.size(0, 1), 0, d.size(0, 1), 0)
        step = (d.size(1, 2), d.size(1, 2))
        gap = (d.size(1, 2), d.size(1, 2)) if is_max else (1, 1)
        height, width, channels = d.size(5, 9), d.size(5, 9), d.size(1, 20)
        spans = [(k - 1) * g + 1 for k, g in zip(kernel, gap, strict=True)]
        sizes = (
            (height + margins[0] + margins[2] - spans[0]) // step[0] + 1,
            (width + margins[1] + margins[3] - spans[1]) // step[1] + 1,
        )
        quantisation = d.quantisation()
        x = d.input((d.size(1, 2), height, width, channels), quantisation)
        y = d.graph.output(d.kind, (len(d.inputs[-1]), *sizes, channels), quantisation)
        d.graph.node(node(*margins, *kernel, *step, *gap, x, y), d.limits())

    return draw


def argmax_pooling(d: Draw) -> None:
    kernel = (d.size(2, 3), d.size(1, 3))
    rows, columns, channels = d.size(1, 3), d.size(1, 3), d.size(1, 20)
    x = d.input((d.size(1, 2), rows * kernel[0], columns * kernel[1], channels))
    shape = (len(d.inputs[-1]), rows, columns, channels)
    y, places = d.graph.output(FP32, shape), d.graph.output(Datatype.INT32, shape)
    d.graph.node(schema.ArgMaxPooling2d(0, 0, 0, 0, *kernel, x, y, places))


def global_average(d: Draw) -> None:
    shape = (d.size(1, 2), d.size(1, 9), d.size(1, 9), d.size(1, 20))
    quantisation = d.quantisation()
    x = d.input(shape, quantisation)
    other = d.quantisation() if d.size(0, 1) else quantisation
    y = d.graph.output(d.kind, (shape[0], 1, 1, shape[3]), other)
    d.graph.node(schema.GlobalAvgPooling2d(x, y, schema.KEEP_DIMS), d.limits())


def resize(d: Draw) -> None:
    quantisation = d.quantisation()
    x = d.input((d.size(1, 2), d.size(2, 7), d.size(2, 7), d.size(1, 9)), quantisation)
    height, width = d.size(2, 11), d.size(2, 11)
    shape = (d.inputs[-1].shape[0], height, width, d.inputs[-1].shape[3])
    y = d.graph.output(d.kind, shape, quantisation)
    flags = schema.ALIGN_CORNERS * d.size(0, 1)
    d.graph.node(schema.StaticResizeBilinear2D(height, width, x, y, flags))


def softmax(d: Draw) -> None:
    shape = d.shape(d.size(1, 4), 20)[:4]
    x = d.input(shape)
    d.graph.node(schema.Softmax(x, d.graph.output(d.kind, shape)))


def transpose(d: Draw) -> None:
    shape = d.shape(d.size(1, 5))
    order = tuple(map(int, d.random.permutation(len(shape))))
    quantisation = d.quantisation()
    x = d.input(shape, quantisation)
    y = d.graph.output(d.kind, tuple(shape[at] for at in order), quantisation)
    d.graph.node(schema.StaticTranspose(len(shape), order, x, y))


def reshape(d: Draw) -> None:
    a, b, c = d.shape(3)
    quantisation = d.quantisation()
    x = d.input((a, b, c), quantisation)
    shape = [(a * b, c), (c, b, a), (a * b * c,), (0, c)][d.size(0, 3)]
    sizes = tuple(size or a * b for size in shape)
    y = d.graph.output(d.kind, sizes, quantisation)
    d.graph.node(schema.StaticReshape(len(shape), shape, x, y))


def cut(d: Draw) -> None:
    shape = d.shape(d.size(1, 4), 7)
    starts = tuple(d.size(0, size - 1) for size in shape)
    sizes = tuple(d.size(1, size - start) for size, start in zip(shape, starts, strict=True))
    quantisation = d.quantisation()
    x = d.input(shape, quantisation)
    y = d.graph.output(d.kind, sizes, quantisation)
    d.graph.node(schema.StaticSlice(len(shape), starts, sizes, x, y))


def pad(d: Draw) -> None:
    shape = d.shape(d.size(1, 4))
    before, behind = (tuple(d.size(0, 2) for _ in shape) for _ in range(2))
    sizes = tuple(sum(entry) for entry in zip(shape, before, behind, strict=True))
    quantisation = d.quantisation()
    x = d.input(shape, quantisation)
    y = d.graph.output(d.kind, sizes, quantisation)
    d.graph.node(schema.StaticConstantPad(before, behind, 0.25, x, y))


def concatenate(count: int) -> Callable[[Draw], None]:
    def draw(d: Draw) -> None:
        shape = d.shape(d.size(1, 4))
        axis = d.size(0, len(shape) - 1)
        quantisation = d.quantisation()
        parts = [(*shape[:axis], d.size(1, 4), *shape[axis + 1 :]) for _ in range(count)]
        ids = [d.input(part, quantisation) for part in parts]
        total = sum(part[axis] for part in parts)
        y = d.graph.output(d.kind, (*shape[:axis], total, *shape[axis + 1 :]), quantisation)
        padded = [*ids, *[NO_VALUE] * (5 - count)]
        node = getattr(schema, f"Concatenate{count}")
        d.graph.node(node(axis, *padded[:4], y, 0, padded[4]))

    return draw


_REALS = (FP32, QINT8, QUINT8)
_FLOATS = (FP32,)

NODES: dict[str, tuple[Callable[[Draw], None], tuple[Datatype, ...]]] = {
    **{
        name: (unary(getattr(schema, name)), _REALS)
        for name in (
            *("Abs", "Ceiling", "Clamp", "Copy", "Cos", "ELU", "Exp", "Floor", "Gelu"),
            *("Hardswish", "LeakyReLU", "Log", "Negate", "ReciprocalSquareRoot", "Sigmoid"),
            *("Sin", "Square", "SquareRoot", "Tanh"),
        )
    },
    **{
        name: (binary(getattr(schema, name)), _REALS)
        for name in ("Add", "Subtract", "Multiply", "Div", "Maximum", "Minimum", "PReLU")
    },
    **{
        name: (convolution(getattr(schema, name)), _REALS)
        for name in ("Conv2d", "DepthwiseConv2d", "ConvTranspose2d")
    },
    "AvgPooling2d": (pooling(schema.AvgPooling2d), _FLOATS),
    "MaxPooling2d": (pooling(schema.MaxPooling2d), _REALS),
    "ArgMaxPooling2d": (argmax_pooling, _FLOATS),
    "BatchMatrixMultiply": (batch_product, _FLOATS),
    "Convert": (convert, _REALS),
    "FullyConnected": (fully_connected, _REALS),
    "FullyConnected by row": (by_row, _FLOATS),
    "Conv2d by image": (by_image(schema.Conv2d), _FLOATS),
    "ConvTranspose2d by image": (by_image(schema.ConvTranspose2d), _FLOATS),
    "GlobalAvgPooling2d": (global_average, _REALS),
    "Softmax": (softmax, _FLOATS),
    "StaticConstantPad": (pad, _REALS),
    "StaticReshape": (reshape, _REALS),
    "StaticResizeBilinear2D": (resize, _REALS),
    "StaticSlice": (cut, _REALS),
    "StaticTranspose": (transpose, _REALS),
    **{f"Concatenate{count}": (concatenate(count), _REALS) for count in (2, 3, 4, 5)},
}
"""How a graph of each node is drawn, and for which types."""


NOT_HALF = frozenset(
    {"ArgMaxPooling2d", "Conv2d by image", "ConvTranspose2d by image", "FullyConnected by row"}
)
"""Nodes that are not computed in half precision."""


def cases(seed: int, count: int, halves: bool = False) -> Iterator[Case]:
    """Graphs of each node and type in turn; with ``halves`` those of half precision."""
    random = np.random.default_rng(seed)
    kinds = [
        (name, draw, kind)
        for name, (draw, types) in NODES.items()
        for kind in ((FP16,) if halves else types)
        if not halves or name not in NOT_HALF
    ]
    for number in range(count):
        name, draw, kind = kinds[number % len(kinds)]
        drawn = Draw(random, kind)
        draw(drawn)
        yield drawn.case(name)
