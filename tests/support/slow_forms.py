"""Which function of its inputs each output element is, in plain Python, as a key.

Two elements are the same function if their keys are equal: linear forms by their weights, with
factor, bounds and zero point of the output stage; products, maxima and tables by their operands.
What comes out as it went in is that byte, and what depends on nothing is a constant. Bytes are
those of the chip: unsigned, with the zero point raised by 128 for int8.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from darwinn_reference.tflite.factors import addition_weights
from darwinn_reference.tflite.graph import Network, NetworkTensor
from one_operator import f32, slow_factor, slow_output

Key = Hashable
Numbers = Mapping[int, Any]
"""Of each tensor that is computed the numbers of its elements, which are their names here."""

_CONSTANTS = 256
_LARGEST_WEIGHT = 255


def raised(tensor: NetworkTensor) -> int:
    """The zero point of the chip's bytes."""
    return int(tensor.zero_point[0]) + (128 if tensor.dtype == np.int8 else 0)


def octet(tensor: NetworkTensor, value: Any) -> int:
    """A byte of a constant as the chip holds it."""
    return int(value) + (128 if tensor.dtype == np.int8 else 0)


@dataclass
class Form:
    """``constant`` plus weights times bytes, by the bytes' names."""

    constant: int = 0
    weights: dict[Key, int] = field(default_factory=dict)

    def add(self, name: Key, weight: int) -> None:
        """Add a byte that is not known, times a weight."""
        self.weights[name] = self.weights.get(name, 0) + weight

    def add_byte(self, number: int, zero_point: int, weight: int) -> None:
        """Add a byte less a zero point, times a weight; numbers below 256 are values."""
        self.constant -= weight * zero_point
        if number < _CONSTANTS:
            self.constant += weight * number
        else:
            self.add(number, weight)

    def key(self, factor: Any, output: NetworkTensor, activation: str = "NONE") -> Key:
        """What the output stage makes of the sum."""
        stage = replace(output, dtype=np.dtype("u1"), zero_point=np.array([raised(output)]))
        weights = {name: weight for name, weight in self.weights.items() if weight}
        if not weights or factor == 0:
            return ("constant", slow_output(self.constant, factor, stage, activation))
        if len(weights) == 1:
            ((name, weight),) = weights.items()
            if isinstance(name, int) and _keeps(weight, self.constant, factor, stage, activation):
                return ("byte", name)
        ends = (slow_output(sign * (1 << 40), f32(1), stage, activation) for sign in (-1, 1))
        terms = frozenset(weights.items())
        return ("sum", terms, self.constant, float(factor), *ends, raised(output))


def _keeps(weight: int, constant: int, factor: Any, stage: NetworkTensor, activation: str) -> bool:
    return all(
        slow_output(weight * each + constant, factor, stage, activation) == each
        for each in range(256)
    )


def moved(number: int) -> Key:
    """An element that is moved."""
    return ("constant", int(number)) if number < _CONSTANTS else ("byte", int(number))


def greatest(numbers: Iterable[int]) -> Key:
    """The greatest of bytes: of constants the greatest counts, and 0 is less than nothing."""
    names = {int(each) for each in numbers}
    constant = max((each for each in names if each < _CONSTANTS), default=0)
    unknown = frozenset(each for each in names if each >= _CONSTANTS)
    if not unknown:
        return ("constant", constant)
    if not constant and len(unknown) == 1:
        return ("byte", *unknown)
    return ("greatest", unknown, constant)


@dataclass(frozen=True)
class Operands:
    """An operator's network, with the names of what it reads."""

    network: Network
    numbers: Numbers

    def tensor(self, position: int) -> NetworkTensor:
        """The tensor of an input."""
        return self.network.tensors[self.network.operators[0].inputs[position]]

    @property
    def output(self) -> NetworkTensor:
        """The first output."""
        return self.network.tensors[self.network.outputs[0]]

    @property
    def options(self) -> Mapping[str, Any]:
        """The operator's."""
        return self.network.operators[0].options

    @property
    def activation(self) -> str:
        """The fused one."""
        return str(self.options.get("fused_activation_function", "NONE"))

    def values(self, position: int) -> Any:
        """Names of an input's elements: numbers, or the bytes of a constant."""
        tensor = self.tensor(position)
        if tensor.constant is None:
            return self.numbers[tensor.index].astype(object)
        raise_by = 128 if tensor.dtype == np.int8 else 0
        return tensor.constant.astype(object) + raise_by

    def parameter(self, position: int) -> list[int]:
        """A constant of plain integers."""
        constant = self.tensor(position).constant
        assert constant is not None
        return [int(each) for each in constant.reshape(-1)]


Slow = Callable[[Operands], Iterator[Key]]
"""The keys of all elements of all outputs, in order."""


# --- layers with weights -------------------------------------------------------------------------


def _weight(tensor: NetworkTensor, place: tuple[int, ...], channel: int) -> int:
    assert tensor.constant is not None
    points = tensor.zero_point
    return int(tensor.constant[place]) - int(points[channel if len(points) > 1 else 0])


def _layer_key(of: Operands, source: int, bias: int, channel: int, form: Form) -> Key:
    weights = of.tensor(1)
    inputs = of.network.operators[0].inputs
    if bias < len(inputs) and inputs[bias] >= 0:
        form.constant += of.parameter(bias)[channel]
    scale = float(weights.scale[channel if len(weights.scale) > 1 else 0])
    factor = slow_factor(float(of.tensor(source).scale[0]), scale, of.output)
    return form.key(factor, of.output, of.activation)


def _before(of: Operands, axis: int, kernel: int) -> int:
    """Rows or columns that "same" padding puts before the image."""
    name = "hw"[axis - 1]
    if of.options.get("padding", "SAME") == "VALID":
        return 0
    stride = of.options.get(f"stride_{name}", 1)
    reach = (kernel - 1) * of.options.get(f"dilation_{name}_factor", 1) + 1
    size = of.tensor(0).shape[axis]
    before: int = max((-(-size // stride) - 1) * stride + reach - size, 0) // 2
    return before


def _window(
    of: Operands, kernel: tuple[int, int], place: tuple[int, int]
) -> Iterator[tuple[int, int, int, int]]:
    """Row and column of the kernel, and of the image, that a window meets."""
    met = []
    for axis in (1, 2):
        name = "hw"[axis - 1]
        stride = of.options.get(f"stride_{name}", 1)
        dilation = of.options.get(f"dilation_{name}_factor", 1)
        first = place[axis - 1] * stride - _before(of, axis, kernel[axis - 1])
        met.append([(k, first + k * dilation) for k in range(kernel[axis - 1])])
    for ky, row in met[0]:
        for kx, column in met[1]:
            if 0 <= row < of.tensor(0).shape[1] and 0 <= column < of.tensor(0).shape[2]:
                yield ky, kx, row, column


def convolution(of: Operands) -> Iterator[Key]:
    """CONV_2D, also in groups."""
    numbers, weights, point = of.values(0), of.tensor(1), raised(of.tensor(0))
    channels, *kernel, depth = weights.shape
    each_group = channels // (of.tensor(0).shape[3] // depth)
    for n, y, x, c in np.ndindex(*of.output.shape):
        form = Form()
        for ky, kx, row, column in _window(of, (kernel[0], kernel[1]), (y, x)):
            for d in range(depth):
                number = numbers[n, row, column, c // each_group * depth + d]
                form.add_byte(number, point, _weight(weights, (c, ky, kx, d), c))
        yield _layer_key(of, 0, 2, c, form)


def depthwise(of: Operands) -> Iterator[Key]:
    """DEPTHWISE_CONV_2D."""
    numbers, weights, point = of.values(0), of.tensor(1), raised(of.tensor(0))
    multiplier = weights.shape[3] // of.tensor(0).shape[3]
    for n, y, x, c in np.ndindex(*of.output.shape):
        form = Form()
        for ky, kx, row, column in _window(of, (weights.shape[1], weights.shape[2]), (y, x)):
            number = numbers[n, row, column, c // multiplier]
            form.add_byte(number, point, _weight(weights, (0, ky, kx, c), c))
        yield _layer_key(of, 0, 2, c, form)


def dense(of: Operands) -> Iterator[Key]:
    """FULLY_CONNECTED."""
    weights, point = of.tensor(1), raised(of.tensor(0))
    channels, depth = weights.shape
    for row in of.values(0).reshape(-1, depth):
        for c in range(channels):
            form = Form()
            for k in range(depth):
                form.add_byte(row[k], point, _weight(weights, (c, k), c))
            yield _layer_key(of, 0, 2, c, form)


def transposed(of: Operands) -> Iterator[Key]:
    """TRANSPOSE_CONV: each pixel spreads over the output."""
    image, weights, output = of.tensor(2), of.tensor(1), of.output
    kernel, shape = weights.shape[1:3], output.shape
    strides = [of.options[f"stride_{name}"] for name in "hw"]
    before = [0, 0]
    if of.options["padding"] == "SAME":
        spans = [(image.shape[1 + k] - 1) * strides[k] + kernel[k] for k in (0, 1)]
        before = [max(spans[k] - shape[1 + k], 0) // 2 for k in (0, 1)]
    forms = {place: Form() for place in np.ndindex(*shape)}
    for (n, y, x, d), number in np.ndenumerate(of.values(2)):
        for ky, kx in np.ndindex(*kernel):
            row, column = y * strides[0] + ky - before[0], x * strides[1] + kx - before[1]
            if 0 <= row < shape[1] and 0 <= column < shape[2]:
                for c in range(shape[3]):
                    weight = _weight(weights, (c, ky, kx, d), c)
                    forms[n, row, column, c].add_byte(number, raised(image), weight)
    for (*_, c), form in forms.items():
        yield _layer_key(of, 2, 3, c, form)


# --- pools and reductions ------------------------------------------------------------------------


def average_pool(of: Operands) -> Iterator[Key]:
    """AVERAGE_POOL_2D: over what is within the image, in steps of 1 / the least common multiple."""
    numbers, source = of.values(0), of.tensor(0)
    kernel = of.options["filter_height"], of.options["filter_width"]
    windows = [
        [(n, row, column, c) for _, _, row, column in _window(of, kernel, (y, x))]
        for n, y, x, c in np.ndindex(*of.output.shape)
    ]
    common = math.lcm(*map(len, windows))
    whole = common <= _LARGEST_WEIGHT * min(map(len, windows))
    for window in windows:
        form, unit = Form(), f32(1) / f32(common if whole else len(window))
        for place in window:
            form.add_byte(numbers[place], raised(source), common // len(window) if whole else 1)
        factor = slow_factor(float(source.scale[0]), float(unit), of.output)
        yield form.key(factor, of.output, of.activation)


def max_pool(of: Operands) -> Iterator[Key]:
    """MAX_POOL_2D."""
    numbers = of.values(0)
    kernel = of.options["filter_height"], of.options["filter_width"]
    for n, y, x, c in np.ndindex(*of.output.shape):
        met = _window(of, kernel, (y, x))
        yield greatest(numbers[n, row, column, c] for _, _, row, column in met)


def _reduced(of: Operands) -> list[list[int]]:
    """What each output element is of."""
    numbers, rank = of.values(0), of.values(0).ndim
    gone = {axis % rank for axis in of.parameter(1)}
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, number in np.ndenumerate(numbers):
        kept = tuple(each for axis, each in enumerate(place) if axis not in gone)
        groups.setdefault(kept, []).append(int(number))
    return [groups[place] for place in sorted(groups)]


def mean(of: Operands) -> Iterator[Key]:
    """MEAN."""
    point = raised(of.tensor(0))
    for group in _reduced(of):
        form = Form()
        for number in group:
            form.add_byte(number, point, 1)
        ratio = f32(of.tensor(0).scale[0]) / f32(of.output.scale[0])
        yield form.key(f32(ratio / f32(len(group))), of.output, of.activation)


def total(of: Operands) -> Iterator[Key]:
    """SUM."""
    point = raised(of.tensor(0))
    for group in _reduced(of):
        form = Form()
        for number in group:
            form.add_byte(number, point, 1)
        yield form.key(slow_factor(float(of.tensor(0).scale[0]), 1, of.output), of.output)


def reduced_max(of: Operands) -> Iterator[Key]:
    """REDUCE_MAX of one quantisation."""
    yield from map(greatest, _reduced(of))


# --- element by element --------------------------------------------------------------------------


def _pairs(of: Operands) -> Iterator[tuple[int, int]]:
    left, right = np.broadcast_arrays(of.values(0), of.values(1))
    yield from zip(left.reshape(-1).tolist(), right.reshape(-1).tolist(), strict=True)


def addition(of: Operands, sign: int = 1) -> Iterator[Key]:
    """ADD or SUB of two tensors."""
    left, right = of.tensor(0), of.tensor(1)
    first, second, factor = addition_weights(left.scale[0], right.scale[0], of.output)
    if right.constant is not None:
        # The factor is that of the constant, which compilers take first.
        factor = addition_weights(right.scale[0], left.scale[0], of.output)[2]
    for one, other in _pairs(of):
        form = Form()
        form.add_byte(one, raised(left), first)
        form.add_byte(other, raised(right), sign * second)
        yield form.key(factor, of.output, of.activation)


def product(of: Operands) -> Iterator[Key]:
    """MUL of two tensors: the product of two unknown bytes is a name of its own."""
    left, right = of.tensor(0), of.tensor(1)
    points = raised(left), raised(right)
    factor = slow_factor(float(left.scale[0]), float(right.scale[0]), of.output)
    for one, other in _pairs(of):
        form = Form()
        if one < _CONSTANTS:
            form.add_byte(other, points[1], one - points[0])
        elif other < _CONSTANTS:
            form.add_byte(one, points[0], other - points[1])
        else:
            form.add(frozenset([(one, points[0]), (other, points[1])]), 1)
        yield form.key(factor, of.output, of.activation)


def _constant_sides(of: Operands) -> tuple[int, int]:
    return (0, 1) if of.tensor(0).constant is None else (1, 0)


def constant_term(of: Operands, sign: int = 1) -> Iterator[Key]:
    """ADD or SUB of a tensor and a constant of each channel."""
    computed, constant = _constant_sides(of)
    signs = (1, sign) if computed == 0 else (sign, 1)
    source, other = of.tensor(computed), of.tensor(constant)
    steps = float(other.scale[0]) / float(source.scale[0])
    for pair in _pairs(of):
        form = Form()
        form.add_byte(pair[computed], raised(source), signs[0])
        form.constant += signs[1] * round((pair[constant] - raised(other)) * steps)
        yield form.key(slow_factor(float(source.scale[0]), 1, of.output), of.output, of.activation)


def constant_factor(of: Operands) -> Iterator[Key]:
    """MUL of a tensor and a constant of each channel."""
    computed, constant = _constant_sides(of)
    source, other = of.tensor(computed), of.tensor(constant)
    for pair in _pairs(of):
        form = Form()
        form.add_byte(pair[computed], raised(source), 1)
        real = f32(f32(pair[constant] - raised(other)) * other.scale[0])
        factor = slow_factor(float(source.scale[0]), float(real), of.output)
        yield form.key(factor, of.output, of.activation)


def _requantised(number: int, source: NetworkTensor, of: Operands, activation: str) -> Key:
    form = Form()
    form.add_byte(number, raised(source), 1)
    same = source.scale[0] == of.output.scale[0]
    factor = f32(1) if same else slow_factor(float(source.scale[0]), 1, of.output)
    return form.key(factor, of.output, activation)


def requantised(of: Operands) -> Iterator[Key]:
    """QUANTIZE, or an activation."""
    name = of.network.operators[0].name
    for number in of.values(0).reshape(-1).tolist():
        yield _requantised(number, of.tensor(0), of, "NONE" if name == "QUANTIZE" else name)


def prelu(of: Operands) -> Iterator[Key]:
    """PRELU: a part above 0, and one below with a factor of each channel."""
    source, slopes, output = of.tensor(0), of.tensor(1), of.output
    point, target = raised(source), raised(output)
    above = slow_factor(float(source.scale[0]), 1, output)
    numbers, levels = np.broadcast_arrays(of.values(0), of.values(1))
    for number, level in zip(
        numbers.reshape(-1).tolist(), levels.reshape(-1).tolist(), strict=True
    ):
        real = f32(f32(level - raised(slopes)) * slopes.scale[0])
        below = slow_factor(float(source.scale[0]), float(real), output)
        positive, negative = Form(), Form()
        positive.add_byte(number, point, 1)
        if number < _CONSTANTS:
            negative.constant = min(number - point, 0)
            parts = (positive.key(above, output, "RELU"), negative.key(below, output))
            values = [part[1] for part in parts if isinstance(part, tuple)]
            yield ("constant", min(max(sum(values) - target, 0), 255))
        elif below == 0:
            yield positive.key(above, output, "RELU")
        else:
            same = f32(source.scale[0] * (f32(1) / source.scale[0]))
            least: Key = number if point == 255 else ("least", number, point, float(same))
            kept = point == target and below == 1
            scaled = least if kept else ("below", least, point, float(below))
            last = f32(output.scale[0] * (f32(1) / output.scale[0]))
            parts = positive.key(above, output, "RELU"), scaled
            yield ("parts", *parts, target, float(last))


def extreme(of: Operands) -> Iterator[Key]:
    """MAXIMUM or MINIMUM of two tensors, in the quantisation of the output."""
    name = of.network.operators[0].name
    left, right = of.tensor(0), of.tensor(1)
    own = (of.output.scale[0], raised(of.output))
    alike = all((each.scale[0], raised(each)) == own for each in (left, right))
    halved = alike and name == "MAXIMUM"
    # The bound is 127 of some scales, by the last bit.
    scale = left.scale[0]
    most = round(float(f32(255) * scale / f32(2 * scale))) if halved else 255
    form = name, halved, most, raised(of.output)

    def more_of(x: int, y: int) -> int:
        return min(round(max(x - y, 0) / 2), most) if halved else max(x - y, 0)

    def found_of(kept: int, more: int) -> int:
        found = kept - more if name == "MINIMUM" else kept + (2 if halved else 1) * more
        return min(max(found, 0), 255)

    for one, other in _pairs(of):
        first = _requantised(one, left, of, "NONE")
        second = _requantised(other, right, of, "NONE")
        if first == second:
            yield first
            continue
        kept = first if name == "MINIMUM" else second
        more = _of_two(first, second, more_of, ("more", *form))
        if halved and more == first:
            # It is a byte from 128 down, and so none of the operands.
            more = ("more", *form, first, second)
        yield _of_two(kept, more, found_of, ("extreme", *form))


def _of_two(one: Key, other: Key, function: Callable[[int, int], int], name: Key) -> Key:
    """A function of two bytes; of one alone, it may be that byte. It is a constant of constants."""
    known = [_values(one), _values(other)]
    choices = [values or range(256) for values in known]
    if any(known):
        found = [function(x, y) for x in choices[0] for y in choices[1]]
        if all(known):
            return ("constant", found[0])
        if found == [*range(256)]:
            return other if known[0] else one
    return (name, one, other)


def bounded(of: Operands) -> Iterator[Key]:
    """MAXIMUM or MINIMUM of a tensor and a number, which comes second."""
    greatest = of.network.operators[0].name == "MAXIMUM"
    source = of.tensor(0)
    number = int(of.values(1).reshape(-1)[0])
    (level,) = _values(_requantised(number, of.tensor(1), of, "NONE"))
    bounds = (level, 255) if greatest else (0, level)
    same = source.scale[0] == of.output.scale[0]
    factor = f32(1) if same else slow_factor(float(source.scale[0]), 1, of.output)
    form = *bounds, raised(source), float(factor), raised(of.output)
    for each in of.values(0).reshape(-1).tolist():
        found = _requantised(each, source, of, "NONE")
        values = _values(found)
        if values:
            yield ("constant", min(max(values[0], bounds[0]), bounds[1]))
        elif bounds == (0, 255) and found == ("byte", each):
            yield found
        else:
            yield ("bounded", *form, each)


def _values(*keys: Key) -> list[int]:
    """The bytes of keys that are all constants; else none."""
    found = [int(key[1]) for key in keys if isinstance(key, tuple) and key[0] == "constant"]
    return found if len(found) == len(keys) else []


def squared_difference(of: Operands) -> Iterator[Key]:
    """SQUARED_DIFFERENCE: a form of both, whose square comes out."""
    left, right = of.tensor(0), of.tensor(1)
    first, second, _ = addition_weights(left.scale[0], right.scale[0], of.output)
    unit = float(left.scale[0] / f32(first) if first else right.scale[0] / f32(second))
    for one, other in _pairs(of):
        form = Form()
        form.add_byte(one, raised(left), first)
        form.add_byte(other, raised(right), -second)
        weights = frozenset((name, weight) for name, weight in form.weights.items() if weight)
        yield ("square", weights, form.constant, unit, float(of.output.scale[0]))


def unit_vector(of: Operands) -> Iterator[Key]:
    """L2_NORMALIZATION: an element, and what its vector is made of."""
    source, output = of.tensor(0), of.output
    form = float(source.scale[0]), raised(source), float(output.scale[0]), raised(output)
    for row in of.values(0).reshape(-1, source.shape[-1]).tolist():
        for number in row:
            yield ("unit", number, tuple(sorted(row)), form)


def concatenation(of: Operands) -> Iterator[Key]:
    """CONCATENATION: each operand in the output's quantisation."""
    axis = of.options["axis"]
    begins: list[tuple[int, int]] = []
    for position in range(len(of.network.operators[0].inputs)):
        begins += [(position, k) for k in range(of.tensor(position).shape[axis])]
    for place in np.ndindex(*of.output.shape):
        position, within = begins[place[axis]]
        at = (*place[:axis], within, *place[axis:][1:])
        number = int(of.values(position)[at])
        yield _requantised(number, of.tensor(position), of, of.activation)


# --- moves ---------------------------------------------------------------------------------------


def padded(of: Operands) -> Iterator[Key]:
    """PAD with the zero point, PADV2 with a constant."""
    amounts = np.array(of.parameter(1)).reshape(-1, 2)
    filling = raised(of.tensor(0))
    if of.network.operators[0].name == "PADV2":
        filling = int(of.values(2).reshape(-1)[0])
    for place in np.ndindex(*of.output.shape):
        at = tuple(int(k - before) for k, (before, _) in zip(place, amounts, strict=True))
        inside = all(0 <= k < size for k, size in zip(at, of.tensor(0).shape, strict=True))
        yield moved(of.values(0)[at] if inside else filling)


def sliced(of: Operands) -> Iterator[Key]:
    """SLICE, or STRIDED_SLICE without masks."""
    begins = of.parameter(1)
    strides = of.parameter(3) if len(of.network.operators[0].inputs) > 3 else [1] * len(begins)
    for place in np.ndindex(*of.output.shape):
        at = tuple(b + s * k for b, s, k in zip(begins, strides, place, strict=True))
        yield moved(of.values(0)[at])


def split(of: Operands) -> Iterator[Key]:
    """SPLIT: all outputs, one after another."""
    (axis,) = of.parameter(0)
    first = 0
    for index in of.network.outputs:
        shape = of.network.tensors[index].shape
        for place in np.ndindex(*shape):
            at = tuple(k + first if each == axis else k for each, k in enumerate(place))
            yield moved(of.values(1)[at])
        first += shape[axis]


def turned(of: Operands) -> Iterator[Key]:
    """TRANSPOSE."""
    order = of.parameter(1)
    for place in np.ndindex(*of.output.shape):
        at = [0] * len(order)
        for each, axis in enumerate(order):
            at[axis] = place[each]
        yield moved(of.values(0)[tuple(at)])


def nearest(of: Operands) -> Iterator[Key]:
    """RESIZE_NEAREST_NEIGHBOR from the corner: the pixel below the exact position."""
    sizes = of.tensor(0).shape
    for n, y, x, c in np.ndindex(*of.output.shape):
        row, column = y * sizes[1] // of.output.shape[1], x * sizes[2] // of.output.shape[2]
        yield moved(of.values(0)[n, row, column, c])


def bilinear(of: Operands) -> Iterator[Key]:
    """RESIZE_BILINEAR from the corner, in 1/128 pixel: bytes as they are, no zero point."""
    sizes, shape, numbers = of.tensor(0).shape, of.output.shape, of.values(0)
    plain = replace(of.output, dtype=np.dtype("u1"), zero_point=np.zeros(1, np.int64))

    def taps(axis: int, k: int) -> list[tuple[int, int]]:
        position = 128 * sizes[axis] * k // shape[axis]
        first, part = divmod(position, 128)
        last = sizes[axis] - 1
        return [(min(first, last), 128 - part), (min(first + 1, last), part)]

    for n, y, x, c in np.ndindex(*shape):
        form = Form()
        for row, one in taps(1, y):
            for column, other in taps(2, x):
                form.add_byte(numbers[n, row, column, c], 0, one * other)
        yield form.key(f32(2.0**-14), plain)
