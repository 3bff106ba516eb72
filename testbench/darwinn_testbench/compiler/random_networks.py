"""Networks by chance, to try compilers and everything behind them on.

A seed determines a network: shapes, windows, strides, scales, branches. Each step takes an operator
that fits what there is; what nobody has read at the end is an output. ``recipes`` describes such
networks by their steps, with several inputs, so that they can be made smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from darwinn_formats import flatbuffer, tflite
from darwinn_formats.tflite import (
    ActivationFunctionType,
    BuiltinOperator,
    Padding,
    QuantizationParameters,
    TensorType,
)
from darwinn_formats.tflite import options as o
from darwinn_reference.tflite.layers import window_axes
from numpy.typing import NDArray

_SPREAD = 40.0
"""Steps of a standard deviation of a result: so much that some values saturate."""
_BYTE_DEVIATION = 74.0
_EDGES = (1, 1, 1, 1, 1, 1, 1, 1, 1 / 32, 1 / 4, 4, 64)
"""What scales of results are multiplied by: mostly nothing, else so that many values are equal."""
_ACTIVATIONS = (
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU6,
)
_REQUANTISING = (
    BuiltinOperator.QUANTIZE,
    BuiltinOperator.RELU,
    BuiltinOperator.RELU6,
    BuiltinOperator.RELU_N1_TO_1,
)


@dataclass(frozen=True)
class _Value:
    """A tensor that is computed: its index, shape, scale and zero point."""

    index: int
    shape: tuple[int, ...]
    scale: float
    zero_point: int

    @property
    def is_image(self) -> bool:
        return len(self.shape) == 4

    @property
    def sides(self) -> tuple[int, int]:
        return self.shape[1], self.shape[2]

    @property
    def channels(self) -> int:
        return self.shape[-1]

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


class RandomNetwork:
    """A network that grows operator by operator.

    Args:
        seed: determines it.
        signed: int8 with a scale for each channel, else uint8 with one.
        shape: of the input, (1, height, width, channels).
    """

    def __init__(self, seed: int, shape: Sequence[int], *, signed: bool) -> None:
        self.random = np.random.default_rng(seed)
        self.signed = signed
        self.kinds: list[str] = []
        self._buffers = [tflite.Buffer(memoryview(b""))]
        self._tensors: list[tflite.Tensor] = []
        self._operators: list[tflite.Operator] = []
        self._codes: list[BuiltinOperator] = []
        self.values: list[_Value] = []
        self._inputs: list[_Value] = []
        self._read: set[int] = set()
        self._shown: set[int] = set()
        self._edge = 1.0
        self.add_input(shape)

    def add_input(self, shape: Sequence[int], scale: float = 1 / 128) -> _Value:
        """A further input of the network; (1, height, width, channels)."""
        added = self._value(tuple(shape), scale, self._zero_point())
        self.values.append(added)
        self._inputs.append(added)
        return added

    def draw_again(self, seed: Sequence[int]) -> None:
        """Draw what follows from another seed, with results at an edge of the range now and then.

        A scale far above or below the spread of a result makes it constant or saturated.
        """
        self.random = np.random.default_rng(seed)
        self._edge = float(self.random.choice(_EDGES))

    def show(self, value: _Value) -> None:
        """Make a value an output, whatever reads it."""
        self._shown.add(value.index)

    # --- tensors --------------------------------------------------------------------------------

    @property
    def _type(self) -> TensorType:
        return TensorType.INT8 if self.signed else TensorType.UINT8

    def _zero_point(self) -> int:
        """At an end of the range, or anywhere."""
        low, high = (-128, 127) if self.signed else (0, 255)
        return int(self.random.choice([low, high, int(self.random.integers(low, high + 1))]))

    def _value(
        self,
        shape: tuple[int, ...],
        scale: float,
        zero_point: int,
        kind: TensorType | None = None,
        *,
        keeps: bool = False,
    ) -> _Value:
        """A tensor of the network's type, if no ``kind`` is given; a variable if it ``keeps``."""
        kind = kind or self._type
        parameters = QuantizationParameters(
            scale=(float(np.float32(scale)),), zero_point=(zero_point,)
        )
        name = f"t{len(self._tensors)}"
        index = self._add(tflite.Tensor(shape, kind, 0, name, parameters, is_variable=keeps))
        return _Value(index, shape, float(np.float32(scale)), zero_point)

    def _add(self, tensor: tflite.Tensor) -> int:
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def _constant(
        self,
        values: NDArray[Any],
        scale: Sequence[float] = (),
        zero_point: int = 0,
        axis: int = 0,
    ) -> int:
        kinds = {"i1": TensorType.INT8, "u1": TensorType.UINT8, "i4": TensorType.INT32}
        self._buffers.append(tflite.Buffer(memoryview(values.tobytes())))
        parameters = QuantizationParameters(
            scale=tuple(float(np.float32(each)) for each in scale),
            zero_point=(zero_point,) * len(scale),
            quantized_dimension=axis,
        )
        return self._add(
            tflite.Tensor(
                values.shape,
                kinds[values.dtype.str[1:]],
                len(self._buffers) - 1,
                f"c{len(self._tensors)}",
                parameters if scale else None,
            )
        )

    def _operate(
        self,
        kind: BuiltinOperator,
        inputs: Sequence[int],
        result: _Value,
        options: Any = None,
        others: Sequence[_Value] = (),
    ) -> _Value:
        """Add an operator: its results are ``others`` and, as the last one, ``result``."""
        if kind not in self._codes:
            self._codes.append(kind)
        code = self._codes.index(kind)
        results = (*others, result)
        outputs = tuple(each.index for each in results)
        self._operators.append(tflite.Operator(code, tuple(inputs), outputs, options))
        self._read.update(inputs)
        # Of another type is only what an LSTM is between: its neighbours read it, and no others.
        self.values += [each for each in results if self._tensors[each.index].type == self._type]
        self.kinds.append(kind.name)
        return result

    # --- operators ------------------------------------------------------------------------------

    def _weights(
        self, shape: tuple[int, ...], terms: int, source: _Value, axis: int
    ) -> tuple[int, int, float, int]:
        """Weights, biases, and scale and zero point of a result that they spread."""
        channels = shape[axis]
        if self.signed:
            values = self.random.integers(-127, 128, shape, np.int8)
            scales = self.random.uniform(0.002, 0.02, channels)
            zero_point = 0
        else:
            values = self.random.integers(0, 256, shape, np.uint8)
            scales = self.random.uniform(0.002, 0.02, 1)
            zero_point = int(self.random.integers(100, 156))
        deviation = math.sqrt(terms) * _BYTE_DEVIATION**2
        bias = self.random.integers(-int(deviation), int(deviation) + 1, channels, np.int32)
        weights = self._constant(values, scales.tolist(), zero_point, axis)
        biases = self._constant(bias, (scales * source.scale).tolist())
        scale = deviation * source.scale * float(scales.mean()) / _SPREAD * self._edge
        return weights, biases, scale, self._zero_point()

    def _window(self, source: _Value) -> dict[str, Any]:
        """Kernel, stride and padding that fit an image."""
        kernel = [int(self.random.integers(1, min(6, side + 1))) for side in source.sides]
        stride = [int(self.random.integers(1, 4)) for _ in range(2)]
        padding = Padding.SAME if self.random.integers(2) else Padding.VALID
        return {"kernel": kernel, "stride": stride, "padding": padding}

    @staticmethod
    def _result_sides(source: _Value, window: Mapping[str, Any]) -> tuple[int, int]:
        options = {
            "stride_h": window["stride"][0],
            "stride_w": window["stride"][1],
            "padding": window["padding"].name,
        }
        rows, columns = window_axes(options, source.sides, tuple(window["kernel"]))
        return rows.outputs, columns.outputs

    def _activation(self) -> ActivationFunctionType:
        return _ACTIVATIONS[int(self.random.integers(len(_ACTIVATIONS)))]

    def convolution(self, source: _Value) -> _Value:
        """CONV_2D of any window."""
        window = self._window(source)
        return self._convolution(
            source, window, int(self.random.choice([1, 3, 8, 20, 64, 65, 100]))
        )

    def window(
        self, source: _Value, outputs: int, kernel: int, stride: Sequence[int] = (1, 1)
    ) -> _Value:
        """CONV_2D within the image."""
        window = {"kernel": [kernel, kernel], "stride": [*stride], "padding": Padding.VALID}
        return self._convolution(source, window, outputs)

    def layer(self, source: _Value, outputs: int, kernel: int) -> _Value:
        """CONV_2D that keeps the size of the image."""
        window = {"kernel": [kernel, kernel], "stride": [1, 1], "padding": Padding.SAME}
        return self._convolution(source, window, outputs)

    def _convolution(self, source: _Value, window: dict[str, Any], outputs: int) -> _Value:
        shape = (outputs, *window["kernel"], source.channels)
        weights, bias, scale, zero_point = self._weights(shape, math.prod(shape[1:]), source, 0)
        sides = self._result_sides(source, window)
        result = self._value((source.shape[0], *sides, outputs), scale, zero_point)
        options = o.Conv2DOptions(
            window["padding"], window["stride"][1], window["stride"][0], self._activation()
        )
        inputs = (source.index, weights, bias)
        return self._operate(BuiltinOperator.CONV_2D, inputs, result, options)

    def depthwise(self, source: _Value) -> _Value:
        """DEPTHWISE_CONV_2D, mostly with a multiplier of 1."""
        window = self._window(source)
        multiplier = 1 if source.channels > 8 else int(self.random.choice([1, 1, 2, 5]))
        return self._depthwise(source, window, multiplier)

    def _depthwise(self, source: _Value, window: dict[str, Any], multiplier: int) -> _Value:
        outputs = multiplier * source.channels
        shape = (1, *window["kernel"], outputs)
        weights, bias, scale, zero_point = self._weights(
            shape, math.prod(window["kernel"]), source, 3
        )
        sides = self._result_sides(source, window)
        result = self._value((source.shape[0], *sides, outputs), scale, zero_point)
        options = o.DepthwiseConv2DOptions(
            window["padding"],
            window["stride"][1],
            window["stride"][0],
            multiplier,
            self._activation(),
        )
        inputs = (source.index, weights, bias)
        return self._operate(BuiltinOperator.DEPTHWISE_CONV_2D, inputs, result, options)

    def dense(self, source: _Value, choices: Sequence[int] = (1, 10, 64, 130)) -> _Value:
        """FULLY_CONNECTED of all elements, with one of some numbers of outputs."""
        depth = math.prod(source.shape)
        outputs = int(self.random.choice(choices))
        weights, bias, scale, zero_point = self._weights((outputs, depth), depth, source, 0)
        result = self._value((1, outputs), scale, zero_point)
        options = o.FullyConnectedOptions(self._activation())
        inputs = (source.index, weights, bias)
        return self._operate(BuiltinOperator.FULLY_CONNECTED, inputs, result, options)

    def pool(self, source: _Value, kind: BuiltinOperator) -> _Value:
        """AVERAGE_POOL_2D or MAX_POOL_2D."""
        window = self._window(source)
        sides = self._result_sides(source, window)
        result = self._value((1, *sides, source.channels), source.scale, source.zero_point)
        options = o.Pool2DOptions(
            window["padding"],
            window["stride"][1],
            window["stride"][0],
            window["kernel"][1],
            window["kernel"][0],
        )
        return self._operate(kind, (source.index,), result, options)

    def mean(self, source: _Value) -> _Value:
        """MEAN over rows and columns, or one axis."""
        axes = ([1, 2], [1, 2], [1], [2], [3])[int(self.random.integers(5))]
        shape = [*source.shape]
        for axis in axes:
            shape[axis] = 1
        kept = len(axes) == 1
        place = self._constant(np.array(axes, np.int32))
        result = self._value(
            tuple(shape) if kept else (1, source.channels), source.scale * 0.7, self._zero_point()
        )
        options = o.ReducerOptions(kept)
        return self._operate(BuiltinOperator.MEAN, (source.index, place), result, options)

    def pad(self, source: _Value) -> _Value:
        """PAD of rows and columns, and sometimes of channels."""
        amounts = np.zeros((4, 2), np.int32)
        last = 4 if self.random.integers(3) == 0 else 3
        amounts[1:last] = self.random.integers(0, 4, (last - 1, 2))
        shape = tuple(
            size + int(pair.sum()) for size, pair in zip(source.shape, amounts, strict=True)
        )
        result = self._value(shape, source.scale, source.zero_point)
        return self._operate(BuiltinOperator.PAD, (source.index, self._constant(amounts)), result)

    def binary(self, source: _Value, kind: BuiltinOperator) -> _Value:
        """ADD, SUB or MUL with another tensor of the same shape: itself, if there is none. SUB
        takes a function of it instead."""
        alike = [each for each in self.values if each.shape == source.shape]
        other = alike[int(self.random.integers(len(alike)))]
        if kind is BuiltinOperator.SUB and other is source:
            other = self.function(source)
        if kind is BuiltinOperator.ADD:
            scale = source.scale + other.scale
            options: Any = o.AddOptions(self._activation())
        elif kind is BuiltinOperator.SUB:
            scale = source.scale + other.scale
            options = o.SubOptions(self._activation())
        else:
            scale = source.scale * other.scale * _SPREAD * self.random.uniform(0.5, 2)
            options = o.MulOptions(self._activation())
        result = self._value(source.shape, scale * self._edge, self._zero_point())
        return self._operate(kind, (source.index, other.index), result, options)

    def with_constant(
        self, source: _Value, kind: BuiltinOperator, shape: tuple[int, ...]
    ) -> _Value:
        """ADD, SUB or MUL of a value and a constant, whose shape is repeated to the other's."""
        kind_of_values = np.int8 if self.signed else np.uint8
        limits = np.iinfo(kind_of_values)
        values = self.random.integers(limits.min, limits.max + 1, shape).astype(kind_of_values)
        constant = self._constant(values, (0.01,), self._zero_point())
        product = kind is BuiltinOperator.MUL
        scale = source.scale * 0.01 * _SPREAD if product else source.scale + 0.01
        options = {
            BuiltinOperator.ADD: o.AddOptions,
            BuiltinOperator.SUB: o.SubOptions,
            BuiltinOperator.MUL: o.MulOptions,
        }[kind]()
        result = self._value(source.shape, scale, self._zero_point())
        return self._operate(kind, (constant, source.index), result, options)

    def term(self, source: _Value) -> _Value:
        """ADD, SUB or MUL with a constant that has values for pixels."""
        kinds = [BuiltinOperator.ADD, BuiltinOperator.SUB, BuiltinOperator.MUL]
        kind = kinds[int(self.random.integers(len(kinds)))]
        axis = int(self.random.integers(1, 4))
        shape = [*source.shape]
        shape[axis] = 1
        return self.with_constant(source, kind, tuple(shape))

    def join(self, source: _Value) -> _Value:
        """CONCATENATION of channels with another image of the same size, or with itself."""
        alike = [each for each in self.values if each.shape[:-1] == source.shape[:-1]]
        return self.joined(source, alike[int(self.random.integers(len(alike)))])

    def joined(self, source: _Value, other: _Value) -> _Value:
        """CONCATENATION of the channels of two images."""
        channels = source.channels + other.channels
        result = self._value(
            (*source.shape[:-1], channels), max(source.scale, other.scale), self._zero_point()
        )
        options = o.ConcatenationOptions(len(source.shape) - 1)
        inputs = (source.index, other.index)
        return self._operate(BuiltinOperator.CONCATENATION, inputs, result, options)

    def reshape(self, source: _Value) -> _Value:
        """RESHAPE: a vector, or other pixels."""
        elements = math.prod(source.shape)
        sizes = [size for size in range(1, 65) if elements % size == 0]
        channels = int(self.random.choice([*sizes, elements]))
        pixels = elements // channels
        height = int(self.random.choice([k for k in range(1, pixels + 1) if pixels % k == 0]))
        return self.reshaped(source, (1, height, pixels // height, channels))

    def reshaped(self, source: _Value, shape: tuple[int, ...]) -> _Value:
        """RESHAPE to a shape, and QUANTIZE, which needs its pixels."""
        return self._coarser(self.in_shape(source, shape))

    def in_shape(self, source: _Value, shape: tuple[int, ...]) -> _Value:
        """RESHAPE to a shape."""
        result = self._value(shape, source.scale, source.zero_point)
        sizes = self._constant(np.array(shape, np.int32))
        options = o.ReshapeOptions(shape)
        return self._operate(BuiltinOperator.RESHAPE, (source.index, sizes), result, options)

    def stack(self, source: _Value) -> _Value:
        """CONCATENATION of rows or columns with another image, or with itself."""
        axis = int(self.random.choice([1, 2]))
        alike = [
            each
            for each in self.values
            if each.is_image
            and all(
                a == b
                for k, (a, b) in enumerate(zip(each.shape, source.shape, strict=True))
                if k != axis
            )
        ]
        other = alike[int(self.random.integers(len(alike)))]
        shape = [*source.shape]
        shape[axis] += other.shape[axis]
        scale = max(source.scale, other.scale)
        result = self._value(tuple(shape), scale, self._zero_point())
        options = o.ConcatenationOptions(axis)
        inputs = (source.index, other.index)
        return self._operate(BuiltinOperator.CONCATENATION, inputs, result, options)

    def split(self, source: _Value) -> _Value:
        """SPLIT of rows, columns or channels in two or three."""
        axes = [axis for axis in (1, 2, 3) if source.shape[axis] > 1]
        axis = int(self.random.choice(axes))
        size = source.shape[axis]
        count = next(k for k in (2, 3, size) if size % k == 0)
        shape = [*source.shape]
        shape[axis] //= count
        place = self._constant(np.array(axis, np.int32))
        parts = [self._value(tuple(shape), source.scale, source.zero_point) for _ in range(count)]
        inputs = (place, source.index)
        return self._operate(
            BuiltinOperator.SPLIT, inputs, parts[-1], o.SplitOptions(count), parts[:-1]
        )

    def cut(self, source: _Value) -> _Value:
        """STRIDED_SLICE of some rows and columns, or of some channels."""
        shape = [*source.shape]
        begin, strides = [0] * 4, [1] * 4
        for axis in (1, 2) if self.random.integers(2) else (3,):
            begin[axis] = int(self.random.integers(shape[axis]))
            strides[axis] = int(self.random.integers(1, 3)) if axis < 3 else 1
            shape[axis] = -(-(shape[axis] - begin[axis]) // strides[axis])
        result = self._value(tuple(shape), source.scale, source.zero_point)
        numbers = (begin, source.shape, strides)
        inputs = [self._constant(np.array(each, np.int32)) for each in numbers]
        return self._operate(
            BuiltinOperator.STRIDED_SLICE,
            (source.index, *inputs),
            result,
            o.StridedSliceOptions(),
        )

    def transposed(self, source: _Value) -> _Value:
        """TRANSPOSE of rows, columns and channels."""
        order = [0, *(1 + self.random.permutation(3)).tolist()]
        shape = tuple(source.shape[axis] for axis in order)
        result = self._value(shape, source.scale, source.zero_point)
        inputs = (source.index, self._constant(np.array(order, np.int32)))
        return self._operate(BuiltinOperator.TRANSPOSE, inputs, result)

    def transposed_convolution(self, source: _Value) -> _Value:
        """TRANSPOSE_CONV of any window and stride."""
        kernel = [int(each) for each in self.random.integers(1, 5, 2)]
        stride = [int(each) for each in self.random.integers(1, 4, 2)]
        same = bool(self.random.integers(2))
        sides = [
            side * step if same else (side - 1) * step + size
            for side, step, size in zip(source.sides, stride, kernel, strict=True)
        ]
        outputs = int(self.random.choice([1, 3, 8, 65]))
        shape = (outputs, *kernel, source.channels)
        terms = max(1, math.prod(shape[1:]) // math.prod(stride))
        weights, bias, scale, zero_point = self._weights(shape, terms, source, 0)
        result = self._value((1, *sides, outputs), scale, zero_point)
        options = o.TransposeConvOptions(
            Padding.SAME if same else Padding.VALID, stride[1], stride[0]
        )
        size = self._constant(np.array(result.shape, np.int32))
        inputs = (size, weights, source.index, bias)
        return self._operate(BuiltinOperator.TRANSPOSE_CONV, inputs, result, options)

    def resize(self, source: _Value, kind: BuiltinOperator) -> _Value:
        """RESIZE_BILINEAR or RESIZE_NEAREST_NEIGHBOR to twice or four times the size."""
        times = int(self.random.choice([2, 2, 4]))
        sides = [side * times for side in source.sides]
        sizes = self._constant(np.array(sides, np.int32))
        result = self._value((1, *sides, source.channels), source.scale, source.zero_point)
        half = bool(self.random.integers(2))
        if kind is BuiltinOperator.RESIZE_BILINEAR:
            options: Any = o.ResizeBilinearOptions(half_pixel_centers=half)
        else:
            options = o.ResizeNearestNeighborOptions(half_pixel_centers=half)
        return self._operate(kind, (source.index, sizes), result, options)

    def function(self, source: _Value) -> _Value:
        """LOGISTIC."""
        zero_point = -128 if self.signed else 0
        result = self._value(source.shape, 1 / 256, zero_point)
        return self._operate(BuiltinOperator.LOGISTIC, (source.index,), result)

    def root(self, source: _Value) -> _Value:
        """RSQRT; the results of few steps above the zero point differ by several."""
        zero_point = self._zero_point() if self.random.integers(2) else -128 * self.signed
        scale = 1 / np.sqrt(source.scale) / float(self.random.choice([40, 255, 700]))
        result = self._value(source.shape, scale, zero_point)
        return self._operate(BuiltinOperator.RSQRT, (source.index,), result)

    def requantised(self, source: _Value) -> _Value:
        """QUANTIZE or an activation of its own, of which some change no byte."""
        kind = _REQUANTISING[int(self.random.integers(len(_REQUANTISING)))]
        if self.random.integers(4):
            result = self._value(source.shape, source.scale * 0.8 * self._edge, self._zero_point())
        else:
            result = self._value(source.shape, source.scale, source.zero_point)
        return self._operate(kind, (source.index,), result)

    def squared_difference(self, source: _Value, coarse: float | None = None) -> _Value:
        """SQUARED_DIFFERENCE to another tensor of the same shape, or to the mean of channels."""
        if source.channels > 1 and self.random.integers(2):
            place = self._constant(np.array([len(source.shape) - 1], np.int32))
            other = self._value((*source.shape[:-1], 1), source.scale / 2, self._zero_point())
            inputs = (source.index, place)
            self._operate(BuiltinOperator.MEAN, inputs, other, o.ReducerOptions(True))
        else:
            other = self._another(source)
        scale = (source.scale + other.scale) ** 2 * _SPREAD * (coarse or self._edge)
        result = self._value(source.shape, scale, -128 if self.signed else 0)
        options = o.SquaredDifferenceOptions()
        inputs = (source.index, other.index)
        return self._operate(BuiltinOperator.SQUARED_DIFFERENCE, inputs, result, options)

    def leaky(self, source: _Value) -> _Value:
        """LEAKY_RELU."""
        result = self._value(source.shape, source.scale * 1.1, self._zero_point())
        options = o.LeakyReluOptions(float(self.random.uniform(0, 1)))
        return self._operate(BuiltinOperator.LEAKY_RELU, (source.index,), result, options)

    def prelu(self, source: _Value) -> _Value:
        """PRELU with a slope for each channel, or one for all, of any sign."""
        channels = int(self.random.choice([1, source.channels]))
        kind = np.int8 if self.signed else np.uint8
        limits = np.iinfo(kind)
        slopes = self.random.integers(limits.min, limits.max + 1, (1, 1, channels)).astype(kind)
        constant = self._constant(slopes, (0.01,), self._zero_point())
        result = self._value(source.shape, source.scale * 1.1 * self._edge, self._zero_point())
        return self._operate(BuiltinOperator.PRELU, (source.index, constant), result)

    def extreme(self, source: _Value, kind: BuiltinOperator, *, number: bool = False) -> _Value:
        """MAXIMUM or MINIMUM with another tensor of the same shape, or with a ``number``.

        The result has the quantisation of the operands, if they have the same, or another one.
        """
        options = o.MaximumMinimumOptions()
        if number:
            kept = np.int8 if self.signed else np.uint8
            level = self._zero_point() // 2
            inputs = self._constant(np.array(level, kept), (source.scale,), level), source.index
        else:
            other = self._another(source)
            inputs = other.index, source.index
        if self.random.integers(2):
            result = self._value(source.shape, source.scale, source.zero_point)
        else:
            result = self._value(source.shape, source.scale * 1.3, self._zero_point())
        return self._operate(kind, inputs, result, options)

    def _another(self, source: _Value) -> _Value:
        """Another tensor of the same shape: sometimes one of the same quantisation."""
        alike = [each for each in self.values if each.shape == source.shape and each is not source]
        if alike and self.random.integers(2):
            return alike[int(self.random.integers(len(alike)))]
        result = self._value(source.shape, source.scale, source.zero_point)
        options = o.LeakyReluOptions(float(self.random.uniform(0, 1)))
        return self._operate(BuiltinOperator.LEAKY_RELU, (source.index,), result, options)

    def pack(self, source: _Value) -> _Value:
        """RESHAPE to rows and columns, or to channels alone; then PACK with a function of it."""
        shape: tuple[int, ...] = (source.elements,)
        if source.is_image and source.channels == 1:
            shape = source.sides
        flat = self._value(shape, source.scale, source.zero_point)
        sizes = self._constant(np.array(shape, np.int32))
        options = o.ReshapeOptions(shape)
        self._operate(BuiltinOperator.RESHAPE, (source.index, sizes), flat, options)
        other = self._value(shape, source.scale, source.zero_point)
        slope = o.LeakyReluOptions(0.5)
        self._operate(BuiltinOperator.LEAKY_RELU, (flat.index,), other, slope)
        count = int(self.random.integers(2, 4))
        axis = int(self.random.integers(len(shape) + 1))
        inputs = [(flat, other)[int(self.random.integers(2))].index for _ in range(count)]
        extents = (*shape[:axis], count, *shape[axis:])
        packed = self._value(extents, source.scale, source.zero_point)
        self._operate(BuiltinOperator.PACK, inputs, packed, o.PackOptions(count, axis))
        return self._coarser(packed)

    def _coarser(self, source: _Value) -> _Value:
        """QUANTIZE, which needs the pixels of a shape."""
        result = self._value(source.shape, source.scale * 1.5, self._zero_point())
        return self._operate(BuiltinOperator.QUANTIZE, (source.index,), result)

    def unpack(self, source: _Value) -> _Value:
        """UNPACK of rows, columns or channels, if there are few."""
        axes = [axis for axis in (1, 2, 3) if source.shape[axis] <= _MOST_PARTS]
        axis = int(self.random.choice(axes))
        shape = (*source.shape[:axis], *source.shape[axis + 1 :])
        count = source.shape[axis]
        parts = [self._value(shape, source.scale, source.zero_point) for _ in range(count)]
        options = o.UnpackOptions(count, axis)
        kind = BuiltinOperator.UNPACK
        self._operate(kind, (source.index,), parts[-1], options, parts[:-1])
        return self._coarser(parts[int(self.random.integers(count))])

    def tiled(self, source: _Value) -> _Value:
        """TILE of rows, columns and channels."""
        times = [1, *self.random.integers(1, 4, 3).tolist()]
        shape = tuple(size * count for size, count in zip(source.shape, times, strict=True))
        result = self._value(shape, source.scale, source.zero_point)
        inputs = source.index, self._constant(np.array(times, np.int32))
        return self._operate(BuiltinOperator.TILE, inputs, result)

    def deeper(self, source: _Value) -> _Value:
        """SPACE_TO_DEPTH, of as many whole blocks as there are."""
        block = min(int(self.random.integers(2, 4)), *source.sides)
        sides = [side // block for side in source.sides]
        whole = self._value(
            (1, *(side * block for side in sides), source.channels),
            source.scale,
            source.zero_point,
        )
        numbers = [0] * 4, list(whole.shape)
        cut = [self._constant(np.array(each, np.int32)) for each in numbers]
        inputs = (source.index, *cut)
        source = self._operate(BuiltinOperator.SLICE, inputs, whole, o.SliceOptions())
        shape = (1, *sides, source.channels * block * block)
        result = self._value(shape, source.scale, source.zero_point)
        options = o.SpaceToDepthOptions(block)
        return self._operate(BuiltinOperator.SPACE_TO_DEPTH, (source.index,), result, options)

    def dilated(self, source: _Value) -> _Value:
        """A convolution between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND, of any amounts."""
        block = [int(each) for each in self.random.integers(1, 4, 2)]
        pads = self.random.integers(0, 5, (2, 2))
        for axis in range(2):
            extent = source.sides[axis] + int(pads[axis].sum())
            pads[axis, 1] += -extent % block[axis]
        sides = [
            (size + int(both.sum())) // step
            for size, both, step in zip(source.sides, pads, block, strict=True)
        ]
        count = block[0] * block[1]
        batches = self._value((count, *sides, source.channels), source.scale, source.zero_point)
        sizes = self._constant(np.array(block, np.int32))
        inputs = (source.index, sizes, self._constant(pads.astype(np.int32)))
        self._operate(BuiltinOperator.SPACE_TO_BATCH_ND, inputs, batches)
        layer = self._in_batches(batches)
        whole = [side * step for side, step in zip(layer.sides, block, strict=True)]
        crops = np.array([self.random.integers(0, [side, 3], 2) for side in whole])
        crops = np.minimum(crops, np.array([[side - 1, 0] for side in whole]))
        shape = (1, *(s - int(both.sum()) for s, both in zip(whole, crops, strict=True)))
        result = self._value((*shape, layer.channels), layer.scale, layer.zero_point)
        inputs = (layer.index, sizes, self._constant(crops.astype(np.int32)))
        return self._operate(BuiltinOperator.BATCH_TO_SPACE_ND, inputs, result)

    def _in_batches(self, source: _Value) -> _Value:
        """CONV_2D or DEPTHWISE_CONV_2D of several images."""
        window = {**self._window(source), "stride": [1, 1]}
        if self.random.integers(2):
            return self._convolution(source, window, int(self.random.choice([1, 8, 65])))
        return self._depthwise(source, window, 1)

    def wider(self, source: _Value) -> _Value:
        """DEPTH_TO_SPACE, of channels that a convolution makes."""
        block, channels = (int(self.random.integers(*ends)) for ends in ((2, 4), (1, 10)))
        source = self.layer(source, channels * block * block, 1)
        shape = (1, *(side * block for side in source.sides), channels)
        result = self._value(shape, source.scale, source.zero_point)
        options = o.DepthToSpaceOptions(block)
        return self._operate(BuiltinOperator.DEPTH_TO_SPACE, (source.index,), result, options)

    def softmax(self, source: _Value) -> _Value:
        """SOFTMAX of a vector, or of each pixel."""
        zero_point = -128 if self.signed else 0
        result = self._value(source.shape, 1 / 256, zero_point)
        options = o.SoftmaxOptions(float(self.random.choice([1.0, 1.0, 0.5])))
        return self._operate(BuiltinOperator.SOFTMAX, (source.index,), result, options)

    def unit_vector(self, source: _Value) -> _Value:
        """L2_NORMALIZATION in steps of 1/128, of whole words of channels or of a dense layer."""
        if source.channels != source.elements or source.channels % 4:
            source = self.dense(source, (4, 12, 64, 132))
        result = self._value(source.shape, 1 / 128, 0 if self.signed else 128)
        options = o.L2NormOptions()
        return self._operate(BuiltinOperator.L2_NORMALIZATION, (source.index,), result, options)

    def lstm(self, source: _Value) -> _Value:
        """UNIDIRECTIONAL_SEQUENCE_LSTM of int8; one of some is of a form that stays on the CPU."""
        unusual = _UNUSUAL_LSTMS[int(self.random.integers(len(_UNUSUAL_LSTMS)))]
        sequence = self._sequence(source, unusual.get("sequences", 1))
        major = bool(self.random.integers(3) == 0)
        if major:
            count, steps, features = sequence.shape
            sequence = self.in_shape(sequence, (steps, count, features))
        if not self.signed:
            sequence = self._of_type(sequence, TensorType.INT8, -128)
        result = self._lstm(sequence, int(self.random.choice(_UNITS)), unusual, major=major)
        if not self.signed:
            result = self._of_type(result, TensorType.UINT8, 128)
        rows = result.elements // result.channels
        return result if result.shape[0] == 1 else self.in_shape(result, (1, rows, result.channels))

    def _sequence(self, source: _Value, sequences: int) -> _Value:
        """All elements as steps of sequences, of as many as there may be."""
        sequences = math.gcd(sequences, source.elements)
        each = source.elements // sequences
        steps = [k for k in range(1, _MOST_STEPS + 1) if each % k == 0]
        chosen = int(self.random.choice([*steps, steps[-1]]))
        shape = (sequences, chosen, each // chosen)
        return source if source.shape == shape else self.in_shape(source, shape)

    def _of_type(self, source: _Value, kind: TensorType, further: int) -> _Value:
        """QUANTIZE to another type in which the bytes are the same."""
        result = self._value(source.shape, source.scale, source.zero_point + further, kind)
        return self._operate(BuiltinOperator.QUANTIZE, (source.index,), result)

    def _lstm(
        self, sequence: _Value, units: int, unusual: Mapping[str, Any], *, major: bool
    ) -> _Value:
        count = sequence.shape[1 if major else 0]
        low, high = -128, 127
        zero_point = int(
            self.random.choice([low, 0, high, int(self.random.integers(low, high + 1))])
        )
        scale = float(self.random.choice([1 / 128, 1 / 100, 1 / 300]))
        kind = TensorType.INT8
        hidden = self._value((count, units), scale, zero_point, kind, keeps=True)
        cell_scale = unusual.get("cell_scale", 2.0 ** -int(self.random.integers(10, 16)))
        cell = self._value((count, units), cell_scale, 0, TensorType.INT16, keeps=True)
        inputs = [sequence.index] + [-1] * 23
        for gate in range(_GATES):
            odd = int(gate == 1) * unusual.get("odd", 0)
            inputs[1 + gate], step = self._gate_weights(sequence, units, odd)
            inputs[5 + gate], _ = self._gate_weights(hidden, units, 0)
            bias = self.random.integers(-int(1 / step), int(1 / step) + 1, units).astype(np.int32)
            inputs[12 + gate] = self._constant(bias, (step,))
        inputs[18], inputs[19] = hidden.index, cell.index
        result = self._value((*sequence.shape[:-1], units), scale, zero_point, kind)
        options = o.UnidirectionalSequenceLSTMOptions(
            fused_activation_function=unusual.get("activation", ActivationFunctionType.TANH),
            cell_clip=float(self.random.choice([0, 0, 0.25, 2, 100])),
            time_major=major,
        )
        return self._operate(BuiltinOperator.UNIDIRECTIONAL_SEQUENCE_LSTM, inputs, result, options)

    def _gate_weights(self, source: _Value, units: int, zero_point: int) -> tuple[int, float]:
        """Weights of a gate whose sums spread over the curve of its function; and a sum's step."""
        values = self.random.integers(-127, 128, (units, source.channels), np.int8)
        deviation = math.sqrt(source.channels) * _BYTE_DEVIATION**2
        step = float(self.random.uniform(0.5, 3)) / deviation * min(self._edge, 1)
        return self._constant(values, (step / source.scale,), zero_point), step

    def grow(self, operators: int, names: Sequence[str] = ()) -> None:
        """Add operators, of the kinds ``names`` (all if there are none)."""
        chosen = {name: OPERATORS[name] for name in names} if names else OPERATORS
        for _ in range(operators):
            recent = self.values[-3:]
            source = recent[int(self.random.integers(len(recent)))]
            fitting = [make for fits, make in chosen.values() if fits(source)]
            if fitting:
                fitting[int(self.random.integers(len(fitting)))](self, source)

    def is_read(self, value: _Value) -> bool:
        """Whether an operator reads a value."""
        return value.index in self._read

    @property
    def outputs(self) -> tuple[_Value, ...]:
        """Values that no operator reads, and those that are shown."""
        made = [each for each in self.values if each not in self._inputs]
        return tuple(
            each for each in made if each.index not in self._read or each.index in self._shown
        )

    @property
    def inputs(self) -> tuple[_Value, ...]:
        """Inputs that an operator reads."""
        return tuple(each for each in self._inputs if each.index in self._read)

    @property
    def operands(self) -> tuple[tuple[int, ...], ...]:
        """Tensors that each operator reads."""
        return tuple(operator.inputs for operator in self._operators)

    def finish(self) -> bytes:
        """The model, without inputs that no operator reads."""
        inputs = tuple(each.index for each in self.inputs)
        outputs = tuple(each.index for each in self.outputs)
        operators = tuple(self._operators)
        graph = tflite.SubGraph(tuple(self._tensors), inputs, outputs, operators, "main")
        codes = tuple(tflite.OperatorCode(min(int(c), 127), "", 1, int(c)) for c in self._codes)
        model = tflite.Model(3, codes, (graph,), "darwinn-testbench", tuple(self._buffers))
        return flatbuffer.write(model)


_GATES = 4
_UNITS = (1, 3, 5, 8, 16, 33, 70)
_MOST_STEPS = 24
_MOST_FED = 1000
"""Elements that an LSTM is fed in all."""
_UNUSUAL_LSTMS: Sequence[Mapping[str, Any]] = (
    *({},) * 20,
    {"activation": ActivationFunctionType.RELU},
    {"sequences": 2},
    {"odd": 1},
    {"cell_scale": 8.0},
)
"""Forms of an LSTM: mostly the one that the chip computes, else what it refuses."""

_Fits = Callable[[_Value], bool]
_Makes = Callable[[RandomNetwork, _Value], _Value]
Operator = tuple[_Fits, _Makes]
"""Whether an operator fits a value, and what adds it."""
_MOST_DENSE = 4000
_MOST_SMALL = 300
_MOST_PARTS = 8


def _image(value: _Value) -> bool:
    return value.is_image


def _small(value: _Value) -> bool:
    return value.is_image and 1 < math.prod(value.sides) <= _MOST_SMALL


def _few(value: _Value) -> bool:
    return value.is_image and min(value.shape[1:]) <= _MOST_PARTS


def _classes(value: _Value) -> bool:
    return 1 < value.channels == math.prod(value.shape)


OPERATORS: Mapping[str, Operator] = {
    "CONV_2D": (_image, RandomNetwork.convolution),
    "DEPTHWISE_CONV_2D": (_image, RandomNetwork.depthwise),
    "FULLY_CONNECTED": (
        lambda value: math.prod(value.shape) <= _MOST_DENSE,
        RandomNetwork.dense,
    ),
    "AVERAGE_POOL_2D": (
        _image,
        lambda network, value: network.pool(value, BuiltinOperator.AVERAGE_POOL_2D),
    ),
    "MAX_POOL_2D": (
        _image,
        lambda network, value: network.pool(value, BuiltinOperator.MAX_POOL_2D),
    ),
    "MEAN": (_image, RandomNetwork.mean),
    "PAD": (_image, RandomNetwork.pad),
    "ADD": (
        lambda value: True,
        lambda network, value: network.binary(value, BuiltinOperator.ADD),
    ),
    "SUB": (
        lambda value: True,
        lambda network, value: network.binary(value, BuiltinOperator.SUB),
    ),
    "MUL": (
        lambda value: True,
        lambda network, value: network.binary(value, BuiltinOperator.MUL),
    ),
    "RESIZE_BILINEAR": (
        _small,
        lambda network, value: network.resize(value, BuiltinOperator.RESIZE_BILINEAR),
    ),
    "RESIZE_NEAREST_NEIGHBOR": (
        _small,
        lambda network, value: network.resize(value, BuiltinOperator.RESIZE_NEAREST_NEIGHBOR),
    ),
    "CONCATENATION": (lambda value: True, RandomNetwork.join),
    "CONCATENATION of pixels": (_small, RandomNetwork.stack),
    "ADD of a constant": (_small, RandomNetwork.term),
    "RESHAPE": (_small, RandomNetwork.reshape),
    "SPLIT": (_small, RandomNetwork.split),
    "STRIDED_SLICE": (_small, RandomNetwork.cut),
    "TRANSPOSE": (_small, RandomNetwork.transposed),
    "TRANSPOSE_CONV": (_small, RandomNetwork.transposed_convolution),
    "LOGISTIC": (lambda value: True, RandomNetwork.function),
    "RSQRT": (lambda value: True, RandomNetwork.root),
    "LEAKY_RELU": (lambda value: True, RandomNetwork.leaky),
    "QUANTIZE": (lambda value: True, RandomNetwork.requantised),
    "SQUARED_DIFFERENCE": (lambda value: True, RandomNetwork.squared_difference),
    "PRELU": (lambda value: True, RandomNetwork.prelu),
    "MAXIMUM": (
        lambda value: True,
        lambda network, value: network.extreme(value, BuiltinOperator.MAXIMUM),
    ),
    "MAXIMUM of a number": (
        lambda value: True,
        lambda network, value: network.extreme(value, BuiltinOperator.MAXIMUM, number=True),
    ),
    "MINIMUM": (
        lambda value: True,
        lambda network, value: network.extreme(value, BuiltinOperator.MINIMUM),
    ),
    "PACK": (lambda value: value.elements <= _MOST_DENSE, RandomNetwork.pack),
    "UNPACK": (_few, RandomNetwork.unpack),
    "TILE": (_small, RandomNetwork.tiled),
    "SPACE_TO_DEPTH": (_small, RandomNetwork.deeper),
    "DEPTH_TO_SPACE": (_small, RandomNetwork.wider),
    "SPACE_TO_BATCH_ND": (_small, RandomNetwork.dilated),
    "SOFTMAX": (_classes, RandomNetwork.softmax),
    "SOFTMAX of pixels": (
        lambda value: _small(value) and value.channels > 1,
        RandomNetwork.softmax,
    ),
    "L2_NORMALIZATION": (
        lambda value: value.elements <= _MOST_DENSE,
        RandomNetwork.unit_vector,
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (
        lambda value: value.elements <= _MOST_FED,
        RandomNetwork.lstm,
    ),
}
"""Operators by name."""


def random_network(seed: int, operators: int = 10, names: Sequence[str] = ()) -> bytes:
    """A network of about so many operators, as a TensorFlow Lite model.

    Raises:
        KeyError: there is no operator of a name.
    """
    random = np.random.default_rng((seed, 1))
    shape = (
        1,
        int(random.integers(1, 33)),
        int(random.integers(1, 33)),
        int(random.choice([1, 2, 3, 4, 7, 16])),
    )
    network = RandomNetwork(seed, shape, signed=bool(random.integers(2)))
    network.grow(operators, names)
    return network.finish()
