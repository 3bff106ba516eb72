"""Operations of operators that move pixels and channels, or interpolate between them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from darwinn_reference.tflite.graph import Operator

from darwinn_testbench.compiler.stages.operands import (
    COLUMNS,
    IMAGE_RANK,
    SIDES,
    Made,
    Operands,
    StaysError,
    activation_of,
    requantising,
    sides_of,
    stage_of,
    unchanged,
)
from darwinn_testbench.compiler.stages.operations import (
    AnyOperation,
    Channelwise,
    Enlarged,
    Image,
    Interpolated,
    Joined,
    OutputStage,
    Reach,
    Repeated,
    Slice,
    Stacked,
    Taps,
    Transposed,
)


def transpose(importer: Operands, operator: Operator) -> AnyOperation:
    """TRANSPOSE of rows, columns and channels."""
    source = importer.source(operator)
    _, image = importer.result(operator)
    order = importer.tensor(operator, 1).constant
    rank = len(importer.tensor(operator, 0).shape)
    if order is None:
        raise StaysError("the order of axes is not constant")
    if (source.scale, source.zero_point) != (image.scale, image.zero_point):
        raise StaysError("a transposition in another quantisation")
    missing = IMAGE_RANK - rank
    axes = [*range(missing), *(missing + int(axis) for axis in np.asarray(order).reshape(-1))]
    if axes[0]:
        raise StaysError("a transposition of images")
    places = axes[1] - 1, axes[2] - 1, axes[3] - 1
    return Transposed(operator.index, operator.name, image, source, places)


def resize_nearest(importer: Operands, operator: Operator) -> AnyOperation:
    """RESIZE_NEAREST_NEIGHBOR, a whole number of times."""
    source = importer.source(operator)
    tensor, image = importer.result(operator)
    times = image.height // source.height
    whole = (source.height * times, source.width * times) == (image.height, image.width)
    if operator.options.get("align_corners") or not whole:
        raise StaysError("an enlargement that is no whole number of times")
    if (source.scale, source.zero_point) != (image.scale, image.zero_point):
        raise StaysError("an enlargement in another quantisation")
    stage = stage_of(tensor, image, np.float32(1))
    return Enlarged(operator.index, operator.name, image, source, times, stage)


_PIXEL = 128
"""Positions of an interpolation are in 1/128 pixel."""


def resize_bilinear(importer: Operands, operator: Operator) -> AnyOperation:
    """RESIZE_BILINEAR."""
    source = importer.source(operator)
    _, image = importer.result(operator)
    if (source.scale, source.zero_point) != (image.scale, image.zero_point):
        raise StaysError("an interpolation in another quantisation")
    if source.is_vector or image.is_vector:
        raise StaysError("an interpolation of a single pixel")
    aligned = bool(operator.options.get("align_corners"))
    half = bool(operator.options.get("half_pixel_centers"))
    rows = _taps(source.height, image.height, aligned=aligned, half=half)
    columns = _taps(source.width, image.width, aligned=aligned, half=half)
    # Bytes are interpolated as they are: the weights add up to 2^14, and no zero point matters.
    stage = OutputStage(
        np.array([2.0**-14], np.float32),
        np.zeros(1, np.int32),
        np.float32(0),
        np.float32(255),
        0,
    )
    return Interpolated(operator.index, operator.name, image, source, rows, columns, stage)


def _taps(size: int, outputs: int, *, aligned: bool, half: bool) -> Taps:
    """The taps of an axis.

    Raises:
        StaysError: positions that are no multiples of 1/128 pixel.
    """
    corners = aligned and outputs > 1
    step = Fraction(size - 1, outputs - 1) if corners else Fraction(size, outputs)
    start = step / 2 - Fraction(1, 2) if half else Fraction(0)
    if (_PIXEL * step).denominator != 1 or (_PIXEL * start).denominator != 1:
        raise StaysError("an interpolation at positions that are no multiples of 1/128 pixel")
    positions = [int(_PIXEL * (start + step * k)) for k in range(outputs)]
    last = size - 1
    return Taps(
        tuple(min(max(each >> 7, 0), last) for each in positions),
        tuple(min(max((each >> 7) + 1, 0), last) for each in positions),
        tuple(each & (_PIXEL - 1) for each in positions),
    )


def _cut(
    importer: Operands,
    operator: Operator,
    source: Image,
    index: int,
    firsts: Sequence[int],
    strides: Sequence[int] = (1, 1, 1),
) -> AnyOperation:
    """A tensor that has some elements of an image: those of rows, columns and channels from
    ``firsts`` on."""
    image, tensor = importer.image(index), importer.network.tensors[index]
    if (source.scale, source.zero_point) != (image.scale, image.zero_point):
        raise StaysError("a slice in another quantisation")
    stage = stage_of(tensor, image, np.float32(1))
    if (image.height, image.width) == (source.height, source.width) and strides[2] == 1:
        return Slice(operator.index, operator.name, image, source, firsts[2], stage)
    if image.channels != source.channels or strides[2] != 1:
        raise StaysError("a slice of pixels and of channels at once")
    rows, columns = (Reach(1, strides[k], 1, -firsts[k]) for k in (0, 1))
    return Channelwise(operator.index, operator.name, image, source, rows, columns, None, 0, stage)


def split(importer: Operands, operator: Operator, axes: int = 0, data: int = 1) -> Made:
    """Parts one behind the other along an axis; inputs ``axes`` and ``data``."""
    if len(operator.outputs) == 1:
        importer.alias(operator, data)
        return None
    axis = importer.tensor(operator, axes).constant
    rank = len(importer.tensor(operator, data).shape)
    if axis is None:
        raise StaysError("the axis is not constant")
    place = int(np.asarray(axis).reshape(-1)[0]) % rank - rank + SIDES
    if place < 0:
        raise StaysError("a split of images")
    source = importer.source(operator, data)
    parts: list[AnyOperation] = []
    firsts = [0, 0, 0]
    for index in operator.outputs:
        parts.append(_cut(importer, operator, source, index, firsts))
        image = importer.image(index)
        firsts[place] += (image.height, image.width, image.channels)[place]
    return parts


def split_v(importer: Operands, operator: Operator) -> Made:
    """SPLIT_V."""
    return split(importer, operator, 2, 0)


def strided_slice(importer: Operands, operator: Operator) -> AnyOperation:
    """STRIDED_SLICE. Where it drops axes of one element, the result has the same pixels."""
    shape = importer.tensor(operator, 0).shape
    begin, _, strides = (importer.tensor(operator, place).constant for place in (1, 2, 3))
    masks = ("ellipsis_mask", "new_axis_mask")
    if begin is None or strides is None or any(operator.options.get(name) for name in masks):
        raise StaysError("a slice of another form")
    drops, free = (
        int(operator.options.get(f"{name}_mask", 0)) for name in ("shrink_axis", "begin")
    )
    # Axes that are not named are taken as a whole.
    rest = len(shape) - np.size(begin)
    begins = [*np.asarray(begin).reshape(-1).tolist(), *[0] * rest]
    steps = np.array([*np.asarray(strides).reshape(-1).tolist(), *[1] * rest])
    if (steps < 1).any():
        raise StaysError("a slice backwards")
    firsts = [
        0 if free >> axis & 1 else min(max(first + size if first < 0 else first, 0), size)
        for axis, (first, size) in enumerate(zip(begins, shape, strict=True))
    ]
    dropped = [axis for axis in range(len(shape)) if drops >> axis & 1]
    kept = list(importer.network.tensors[operator.outputs[0]].shape)
    for axis in dropped:
        kept.insert(axis, 1)
    _, image = importer.result(operator)
    if sides_of(tuple(kept)) != (image.height, image.width, image.channels):
        raise StaysError("a slice that drops an axis of pixels")
    return _cut_of(importer, operator, firsts, steps.tolist())


def sliced(importer: Operands, operator: Operator) -> AnyOperation:
    """SLICE."""
    begin = importer.tensor(operator, 1).constant
    if begin is None:
        raise StaysError("a slice of another form")
    firsts = np.asarray(begin).reshape(-1).tolist()
    return _cut_of(importer, operator, firsts, [1] * len(firsts))


def _cut_of(
    importer: Operands, operator: Operator, firsts: list[int], strides: list[int]
) -> AnyOperation:
    """The same with a number for each axis of the tensor."""
    source = importer.source(operator)
    index = operator.outputs[0]
    ahead, behind = ([fill] * SIDES for fill in (0, 1))
    return _cut(
        importer,
        operator,
        source,
        index,
        [*ahead, *firsts][-SIDES:],
        [*behind, *strides][-SIDES:],
    )


def concatenation(importer: Operands, operator: Operator) -> AnyOperation:
    """CONCATENATION."""
    tensor, image = importer.result(operator)
    sources = tuple(importer.source(operator, place) for place in range(len(operator.inputs)))
    axis = int(operator.options.get("axis", 0)) % len(tensor.shape) - len(tensor.shape)
    stages = tuple(requantising(each, tensor, image, activation_of(operator)) for each in sources)
    return _concatenated(operator, image, sources, stages, axis)


def _concatenated(
    operator: Operator,
    image: Image,
    sources: tuple[Image, ...],
    stages: tuple[OutputStage, ...],
    axis: int,
) -> AnyOperation:
    """Images one behind the other along an axis, of which -1 are channels."""
    common = operator.index, operator.name, image, sources, stages
    if axis != -1:
        return Stacked(*common, beside=axis == COLUMNS)
    return Joined(*common)


def pad(importer: Operands, operator: Operator) -> AnyOperation | None:
    """Zero points around an image: a copy of each pixel, where the source has one.

    None if all that reads them finds them anyway.
    """
    source = importer.source(operator)
    _, image = importer.result(operator)
    amounts = importer.tensor(operator, 1).constant
    if amounts is None:
        raise StaysError("amounts are not constant")
    if len(operator.inputs) > 2:
        raise StaysError("a value of its own to pad with")
    if (source.scale, source.zero_point) != (image.scale, image.zero_point):
        raise StaysError("padding in another quantisation")
    sides = np.zeros((IMAGE_RANK, 2), np.int64)
    pairs = np.asarray(amounts).reshape(-1, 2)
    sides[IMAGE_RANK - len(pairs) :] = pairs
    if sides[0].any() or (sides < 0).any():
        raise StaysError("padding of images")
    rows, columns = (Reach(1, 1, 1, int(before)) for before, _ in sides[1:3])
    stage = stage_of(importer.result(operator)[0], image, np.float32(1))
    number, name = operator.index, operator.name
    if not sides[3].any():
        if importer.frame(operator, source, (rows.before, columns.before)):
            return None
        return Channelwise(number, name, image, source, rows, columns, None, 0, stage)
    if sides[1:3].any():
        pixels = importer.between(source, (image.height, image.width, source.channels))
        padded = Channelwise(number, name, pixels, source, rows, columns, None, 0, stage)
        source = importer.first(padded)
    return Slice(number, name, image, source, -int(sides[3][0]), stage)


def pack(importer: Operands, operator: Operator) -> AnyOperation:
    """PACK: images one behind the other along a new axis."""
    tensor, image = importer.result(operator)
    rank = len(tensor.shape)
    axis = int(operator.options.get("axis", 0)) % rank - rank
    sides = [image.height, image.width, image.channels]
    sides[axis] = 1
    own = sides[0], sides[1], sides[2]
    sources = tuple(
        importer.as_shape(operator, importer.source(operator, place), own)
        for place in range(len(operator.inputs))
    )
    _require_same(image, *sources)
    return _concatenated(operator, image, sources, (unchanged(image),) * len(sources), axis)


def unpack(importer: Operands, operator: Operator) -> list[AnyOperation]:
    """UNPACK: parts of one element along an axis, which goes."""
    source = importer.source(operator)
    rank = len(importer.tensor(operator, 0).shape)
    axis = int(operator.options.get("axis", 0)) % rank - rank
    if axis < -SIDES:
        raise StaysError("parts of images")
    sides = [source.height, source.width, source.channels]
    sides[axis] = 1
    parts: list[AnyOperation] = []
    for number, index in enumerate(operator.outputs):
        firsts = [0] * SIDES
        firsts[axis] = number
        importer.seen_as(index, (sides[0], sides[1], sides[2]))
        parts.append(_cut(importer, operator, source, index, firsts))
    return parts


def tile(importer: Operands, operator: Operator) -> AnyOperation:
    """TILE: an image several times along its axes."""
    source = importer.source(operator)
    _, image = importer.result(operator)
    times = importer.tensor(operator, 1).constant
    if times is None:
        raise StaysError("the numbers of copies are not constant")
    _require_same(image, source)
    ends = image.height, image.width, image.channels
    own = source.height, source.width, source.channels
    if all(mine in (1, its) for mine, its in zip(own, ends, strict=True)):
        return Repeated(operator.index, operator.name, image, source)
    for axis in range(-SIDES, 0):
        count = ends[axis] // own[axis]
        sides = (*ends[: axis % SIDES + 1], *own[axis % SIDES + 1 :])
        last = sides == ends
        if count > 1 or last:
            made = image if last else importer.between(source, (sides[0], sides[1], sides[2]))
            several = (source,) * count
            operation = _concatenated(operator, made, several, (unchanged(image),) * count, axis)
            if last:
                return operation
            source = importer.first(operation)
    raise StaysError("copies of images")


def space_to_depth(importer: Operands, operator: Operator) -> AnyOperation:
    """SPACE_TO_DEPTH: each place of a block gives some of the channels."""
    source = importer.source(operator)
    _, image = importer.result(operator)
    block = int(operator.options.get("block_size", 1))
    _require_same(image, source)
    parts = []
    for row, column in np.ndindex(block, block):
        made = importer.between(source, (image.height, image.width, source.channels))
        rows, columns = (Reach(1, block, 1, -first) for first in (row, column))
        common = operator.index, operator.name, made, source, rows, columns
        parts.append(importer.first(Channelwise(*common, None, 0, unchanged(image))))
    return _concatenated(operator, image, tuple(parts), (unchanged(image),) * len(parts), -1)


def depth_to_space(importer: Operands, operator: Operator) -> Made:
    """DEPTH_TO_SPACE: some of the channels become each place of a block."""
    source = importer.source(operator)
    _, image = importer.result(operator)
    block = int(operator.options.get("block_size", 1))
    _require_same(image, source)
    if block == 1:
        importer.alias(operator)
        return None
    stage = unchanged(image)
    return Enlarged(operator.index, operator.name, image, source, block, stage, image.channels)


def _require_same(image: Image, *sources: Image) -> None:
    """Refuse to move bytes to another quantisation."""
    for each in sources:
        if (each.scale, each.zero_point) != (image.scale, image.zero_point):
            raise StaysError("bytes that move to another quantisation")


def view(importer: Operands, operator: Operator) -> None:
    """RESHAPE and other operators that change nothing but the shape."""
    importer.alias(operator)
