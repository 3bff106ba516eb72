"""Operators that move bytes without changing them: the same on the chip and on every host.

Nothing is assumed here. Plain integers and floats, which only the host has, move alike.
"""

from __future__ import annotations

import math

import numpy as np

from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.call import Call, Operand, require_same_quantisation
from darwinn_reference.tflite.graph import MAXIMUM_ELEMENTS
from darwinn_reference.tflite.output_stage import NotComputableError


def _moved(call: Call, position: int = 0) -> Operand:
    """The input at ``position``, whose bytes mean in every output what they mean there."""
    operand = call.operand(position)
    for output in call.outputs:
        require_same_quantisation(operand.tensor, output)
    return operand


def reshape(call: Call) -> AnyArray:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: the same bytes."""
    return _moved(call).value.reshape(call.outputs[0].shape)


def transpose(call: Call) -> AnyArray:
    """TRANSPOSE by a constant permutation."""
    return _moved(call).value.transpose([int(axis) for axis in call.constant(1)])


def _amounts(call: Call, value: AnyArray) -> list[tuple[int, int]]:
    amounts = [(int(before), int(after)) for before, after in call.constant(1)]
    extents = [extent + sum(both) for extent, both in zip(value.shape, amounts, strict=True)]
    if math.prod(extents) > MAXIMUM_ELEMENTS:
        raise NotComputableError(f"padding by {amounts} makes more than {MAXIMUM_ELEMENTS}")
    call.expect(tuple(extents))
    return amounts


def pad(call: Call) -> AnyArray:
    """PAD with the zero point."""
    operand = _moved(call)
    zero = operand.zero_point if len(operand.tensor.scale) else 0
    return np.pad(operand.value, _amounts(call, operand.value), constant_values=zero)


def pad_v2(call: Call) -> AnyArray:
    """PADV2 with a constant that is quantised as the rest."""
    operand, value = _moved(call), call.operand(2)
    require_same_quantisation(value.tensor, call.outputs[0])
    filling = call.constant(2).reshape(-1)[0]
    return np.pad(operand.value, _amounts(call, operand.value), constant_values=filling)


def mirror_pad(call: Call) -> AnyArray:
    """MIRROR_PAD, with the border itself repeated (SYMMETRIC) or not (REFLECT)."""
    operand = _moved(call)
    amounts = _amounts(call, operand.value)
    if call.option("mode", "REFLECT") == "SYMMETRIC":
        return np.pad(operand.value, amounts, mode="symmetric")
    return np.pad(operand.value, amounts, mode="reflect")


def tile(call: Call) -> AnyArray:
    """TILE: repeated copies."""
    operand = _moved(call)
    repeats = [int(times) for times in call.constant(1)]
    extents = zip(operand.value.shape, repeats, strict=True)
    call.expect(tuple(extent * times for extent, times in extents))
    return np.tile(operand.value, repeats)


def split(call: Call) -> tuple[AnyArray, ...]:
    """SPLIT: inputs are the axis and the value."""
    axis = int(call.constant(0).reshape(-1)[0])
    operand = _moved(call, 1)
    if operand.value.shape[axis] % len(call.outputs):
        raise NotComputableError(f"axis {axis} does not split into {len(call.outputs)} parts")
    return tuple(np.split(operand.value, len(call.outputs), axis=axis))


def split_v(call: Call) -> tuple[AnyArray, ...]:
    """SPLIT_V: inputs are the value, the sizes (one of which may be -1, the rest) and the axis."""
    operand, axis = _moved(call), int(call.constant(2).reshape(-1)[0])
    sizes = [int(size) for size in call.constant(1).reshape(-1)]
    rest = operand.value.shape[axis] - sum(size for size in sizes if size >= 0)
    sizes = [rest if size < 0 else size for size in sizes]
    if sum(sizes) != operand.value.shape[axis] or min(sizes) < 0 or len(sizes) != len(call.outputs):
        raise NotComputableError(f"axis {axis} does not split into {sizes}")
    return tuple(np.split(operand.value, np.cumsum(sizes)[:-1], axis=axis))


def pack(call: Call) -> AnyArray:
    """PACK along a new axis."""
    parts = [_moved(call, position).value for position in range(len(call.inputs))]
    return np.stack(parts, axis=int(call.option("axis", 0)))


def unpack(call: Call) -> tuple[AnyArray, ...]:
    """UNPACK along an axis, which goes."""
    operand, axis = _moved(call), int(call.option("axis", 0))
    if operand.value.shape[axis] != len(call.outputs):
        raise NotComputableError(f"axis {axis} does not unpack into {len(call.outputs)}")
    return tuple(np.moveaxis(operand.value, axis, 0))


def cut(call: Call) -> AnyArray:
    """SLICE: inputs are the value, the begin and the size (-1: to the end) along each axis."""
    operand = _moved(call)
    ranges = []
    for begin, size in zip(call.constant(1).tolist(), call.constant(2).tolist(), strict=True):
        ranges.append(slice(begin, None if size < 0 else begin + size))
    return operand.value[tuple(ranges)]


def strided_slice(call: Call) -> AnyArray:
    """STRIDED_SLICE: inputs are the value, begins, ends and strides; masks change single axes."""
    operand = _moved(call)
    begins, ends, strides = (call.constant(k).tolist() for k in (1, 2, 3))

    def has(mask: str, axis: int) -> bool:
        return bool(int(call.option(mask, 0)) >> axis & 1)

    index: list[int | slice | None] = []
    whole = False
    for axis, (begin, end, stride) in enumerate(zip(begins, ends, strides, strict=True)):
        if has("ellipsis_mask", axis):
            if whole:
                raise NotComputableError("several ellipses")
            whole = True
            added = bin(int(call.option("new_axis_mask", 0))).count("1")
            count = operand.value.ndim - (len(begins) - 1 - added)
            index += [slice(None)] * count
        elif has("new_axis_mask", axis):
            index.append(None)
        elif has("shrink_axis_mask", axis):
            index.append(begin)
        else:
            last = begin + end if call.option("offset", False) else end
            first_free, last_free = has("begin_mask", axis), has("end_mask", axis)
            index.append(slice(None if first_free else begin, None if last_free else last, stride))
    sliced: AnyArray = operand.value[tuple(index)]
    return sliced


def space_to_depth(call: Call) -> AnyArray:
    """SPACE_TO_DEPTH: blocks of pixels become channels."""
    value, block = _moved(call).value, int(call.option("block_size", 1))
    n, rows, columns, depth = value.shape
    if block < 1 or rows % block or columns % block:
        raise NotComputableError(f"{rows}x{columns} is not made of blocks of {block}")
    parts = value.reshape(n, rows // block, block, columns // block, block, depth)
    shape = (n, rows // block, columns // block, block * block * depth)
    return parts.transpose(0, 1, 3, 2, 4, 5).reshape(shape)


def depth_to_space(call: Call) -> AnyArray:
    """DEPTH_TO_SPACE: channels become blocks of pixels."""
    value, block = _moved(call).value, int(call.option("block_size", 1))
    n, rows, columns, depth = value.shape
    if block < 1 or depth % (block * block):
        raise NotComputableError(f"{depth} channels are not blocks of {block}")
    parts = value.reshape(n, rows, columns, block, block, depth // (block * block))
    return parts.transpose(0, 1, 3, 2, 4, 5).reshape(n, rows * block, columns * block, -1)


def _blocks(call: Call, value: AnyArray) -> tuple[tuple[int, ...], list[tuple[int, int]]]:
    """Sides of a block, and the amounts of padding or cropping along the same axes."""
    block = tuple(int(side) for side in call.constant(1).reshape(-1))
    amounts = [(int(first), int(last)) for first, last in call.constant(2).reshape(-1, 2)]
    if not (0 < len(block) == len(amounts) < value.ndim) or min(block) < 1:
        raise NotComputableError(f"blocks of {block} with {amounts} in {value.shape}")
    if any(min(both) < 0 for both in amounts):
        raise NotComputableError(f"negative amounts {amounts}")
    return block, amounts


def space_to_batch_nd(call: Call) -> AnyArray:
    """SPACE_TO_BATCH_ND: after padding with the zero point, each place of a block is a batch."""
    operand = _moved(call)
    value = operand.value
    block, amounts = _blocks(call, value)
    extents = [size + sum(both) for size, both in zip(value.shape[1:], amounts, strict=False)]
    if any(extent % side for extent, side in zip(extents, block, strict=True)):
        raise NotComputableError(f"{extents} is not made of blocks of {block}")
    rest = value.shape[1 + len(block) :]
    counts = [extent // side for extent, side in zip(extents, block, strict=True)]
    call.expect((len(value) * math.prod(block), *counts, *rest))
    widths = [(0, 0), *amounts, *[(0, 0)] * len(rest)]
    zero = operand.zero_point if len(operand.tensor.scale) else 0
    padded = np.pad(value, widths, constant_values=zero)
    split = [each for pair in zip(counts, block, strict=True) for each in pair]
    parts = padded.reshape(len(value), *split, *rest)
    rank = len(block)
    inner, outer = (range(first, first + 2 * rank, 2) for first in (2, 1))
    moved = parts.transpose(*inner, 0, *outer, *range(1 + 2 * rank, parts.ndim))
    return moved.reshape(-1, *counts, *rest)


def batch_to_space_nd(call: Call) -> AnyArray:
    """BATCH_TO_SPACE_ND: batches are the places of blocks, whose borders are then cropped."""
    value = _moved(call).value
    block, amounts = _blocks(call, value)
    batches, rest = len(value) // math.prod(block), value.shape[1 + len(block) :]
    if batches * math.prod(block) != len(value):
        raise NotComputableError(f"{len(value)} batches are not blocks of {block}")
    counts, rank = value.shape[1 : 1 + len(block)], len(block)
    parts = value.reshape(*block, batches, *counts, *rest)
    pairs = [axis for k in range(rank) for axis in (rank + 1 + k, k)]
    moved = parts.transpose(rank, *pairs, *range(2 * rank + 1, parts.ndim))
    sides = [count * side for count, side in zip(counts, block, strict=True)]
    whole = moved.reshape(batches, *sides, *rest)
    kept = (slice(first, side - last) for side, (first, last) in zip(sides, amounts, strict=True))
    return whole[(slice(None), *kept)]
