"""Operators that move elements: shapes, copies, slices, indices, and tensors of one value.

All are real copies: what the plan calls a view lies in memory of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.kernels.dimensions import of_any_rank
from darwinn_reference.executorch.promotion import Operand, promote
from darwinn_reference.executorch.values import refuse_more, zeros

Kernel = Callable[..., Any]
Indices = Sequence[AnyArray | None]

# --- shapes ---------------------------------------------------------------------------------------


def same(x: AnyArray, *formats: object) -> AnyArray:
    """x; type and order of dimensions are those of the output."""
    return x


def expand(x: AnyArray, size: Sequence[int], implicit: bool = False) -> AnyArray:
    """Dimensions of size 1 repeated, new ones before them; -1 keeps a size."""
    known = (*[1] * (len(size) - x.ndim), *x.shape)
    target = tuple(old if new == -1 else new for new, old in zip(size, known, strict=True))
    return np.broadcast_to(x, target)


def squeeze(x: AnyArray, dimensions: Sequence[int] | int) -> AnyArray:
    """Dimensions removed if their size is 1."""
    listed = (dimensions,) if isinstance(dimensions, int) else tuple(dimensions)
    return np.squeeze(x, tuple(entry for entry in listed if x.ndim and x.shape[entry] == 1))


def select(x: AnyArray, dimension: int, index: int) -> AnyArray:
    """One entry of a dimension, which goes away."""
    return np.asarray(x[_along(x, dimension, index)])


def cut(
    x: AnyArray, dimension: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> AnyArray:
    """Entries of a dimension from ``start`` to before ``end``."""
    return np.asarray(x[_along(x, dimension, slice(start, end, step))])


def narrow(x: AnyArray, dimension: int, start: int, length: int) -> AnyArray:
    """``length`` entries of a dimension; a negative start is an error, as in the original."""
    size = x.shape[dimension]
    if not 0 <= start <= start + length <= size:
        raise IndexError(f"{length} entries from {start} of {size}")
    return cut(x, dimension, start, start + length)


def diagonal(x: AnyArray, offset: int = 0, first: int = 0, second: int = 1) -> AnyArray:
    """Elements whose places in two dimensions differ by ``offset``, in a new last dimension."""
    far = max(x.shape, default=0)
    return np.diagonal(x, min(max(offset, -far), far), first, second)


def windows_along(x: AnyArray, dimension: int, size: int, step: int) -> AnyArray:
    """Windows of a dimension, ``step`` apart, their elements in a new last dimension."""
    if step < 1:
        raise ValueError(f"windows {step} apart")
    windows = sliding_window_view(x, size, axis=dimension)
    return np.asarray(windows[_along(x, dimension, slice(None, None, step))])


def strided(
    x: AnyArray, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> AnyArray:
    """Elements of x in row-major order, ``stride`` of them apart along each dimension."""
    first = offset or 0
    if len(size) != len(stride) or min((*size, *stride, first)) < 0:
        raise ValueError(f"sizes {list(size)} and strides {list(stride)} from element {first}")
    if 0 in size:
        return np.zeros(tuple(size), x.dtype)
    last = first + sum((count - 1) * step for count, step in zip(size, stride, strict=True))
    if last >= x.size:
        raise IndexError(f"element {last} of {x.size}")
    row = np.ascontiguousarray(x).reshape(-1)
    return as_strided(row[first:], tuple(size), [step * x.itemsize for step in stride])


def split_by_sizes(x: AnyArray, sizes: Sequence[int], dimension: int = 0) -> list[AnyArray]:
    """Pieces of given sizes along a dimension."""
    if sum(sizes) != x.shape[dimension]:
        raise ValueError(f"pieces of {list(sizes)} do not make up {x.shape[dimension]}")
    return np.split(x, np.cumsum(sizes)[:-1].tolist(), dimension)


def concatenate(tensors: Sequence[AnyArray], dimension: int = 0) -> AnyArray:
    """Tensors one after another; an empty one of one dimension goes with any."""
    dtype = promote(tensor.dtype for tensor in tensors)
    held = [tensor for tensor in tensors if tensor.shape != (0,)] or list(tensors[:1])
    return np.concatenate(held, dimension, dtype=dtype, casting="unsafe")


def stack(tensors: Sequence[AnyArray], dimension: int = 0) -> AnyArray:
    """Tensors one after another in a new dimension."""
    dtype = promote(tensor.dtype for tensor in tensors)
    return np.stack(list(tensors), dimension, dtype=dtype, casting="unsafe")


def repeat(x: AnyArray, repeats: Sequence[int]) -> AnyArray:
    """The tensor, so many times along each dimension, new ones before its own."""
    if min(repeats, default=0) < 0 or len(repeats) < x.ndim:
        raise ValueError(f"a tensor of {x.ndim} dimensions, {list(repeats)} times")
    refuse_more(math.prod(repeats) * x.nbytes, "a repeated tensor")
    return np.tile(x, tuple(repeats))


def roll(x: AnyArray, shifts: Sequence[int], dimensions: Sequence[int] = ()) -> AnyArray:
    """Entries moved along dimensions, those that leave at the end coming in at the start."""
    if dimensions:
        return np.roll(x, tuple(shifts), tuple(dimensions))
    return np.roll(x, shifts[0])


def pixel_shuffle(x: AnyArray, factor: int) -> AnyArray:
    """Channels spread over blocks of ``factor`` by ``factor`` pixels."""
    *outer, channels, height, width = x.shape
    blocks = x.reshape(*outer, channels // factor**2, factor, factor, height, width)
    count = len(outer)
    order = (*range(count + 1), count + 3, count + 1, count + 4, count + 2)
    shape = (*outer, channels // factor**2, height * factor, width * factor)
    return blocks.transpose(order).reshape(shape)


def pixel_unshuffle(x: AnyArray, factor: int) -> AnyArray:
    """Blocks of ``factor`` by ``factor`` pixels gathered in channels."""
    *outer, channels, height, width = x.shape
    blocks = x.reshape(*outer, channels, height // factor, factor, width // factor, factor)
    count = len(outer)
    order = (*range(count + 1), count + 2, count + 4, count + 1, count + 3)
    shape = (*outer, channels * factor**2, height // factor, width // factor)
    return blocks.transpose(order).reshape(shape)


def _pairs(x: AnyArray, padding: Sequence[int]) -> list[tuple[int, int]]:
    """(before, after) of each dimension; the list starts with the last dimension."""
    listed = list(zip(padding[::2], padding[1::2], strict=True))[::-1]
    pairs = [(0, 0)] * (x.ndim - len(listed)) + listed
    sizes = [size + sum(pair) for size, pair in zip(x.shape, pairs, strict=True)]
    if min(sizes, default=0) < 0:
        raise ValueError(f"margins {list(padding)} of a tensor of sizes {x.shape}")
    refuse_more(math.prod(sizes) * x.itemsize, "a padded tensor")
    return pairs


def pad_constant(x: AnyArray, padding: Sequence[int], value: float = 0) -> AnyArray:
    """A number around the tensor; a negative margin is an error, as in the original runtime."""
    return np.pad(x, _pairs(x, padding), constant_values=x.dtype.type(value))


def _padded_like(place: Callable[[AnyArray, int], AnyArray], dimensions: int) -> Kernel:
    """Padding by the tensor's own elements; a negative margin cuts.

    ``place`` gives the element for each position, which lies within the margins of a dimension.
    """

    def kernel(x: AnyArray, padding: Sequence[int]) -> AnyArray:
        if len(padding) != 2 * dimensions or x.ndim not in (dimensions + 1, dimensions + 2):
            raise ValueError(f"{len(padding)} margins for {x.ndim} dimensions")
        result = x
        for axis, (before, after) in enumerate(_pairs(x, padding)):
            if before or after:
                size = x.shape[axis]
                result = np.take(result, place(np.arange(-before, size + after), size), axis)
        return result

    return kernel


def _reflected(positions: AnyArray, size: int) -> AnyArray:
    """Positions mirrored at the first and the last element, which are not repeated."""
    if positions.size and not -size < positions[0] <= positions[-1] < 2 * size - 1:
        raise ValueError(f"a margin that is not less than the {size} elements of its dimension")
    return np.asarray(size - 1 - np.abs(size - 1 - np.abs(positions)))


def _replicated(positions: AnyArray, size: int) -> AnyArray:
    """Positions held between the first and the last element."""
    return np.clip(positions, 0, size - 1)


# --- indices --------------------------------------------------------------------------------------


def embedding(
    weight: AnyArray,
    indices: AnyArray,
    padding_index: int = -1,
    scale_gradient: bool = False,
    sparse: bool = False,
) -> AnyArray:
    """Rows by number."""
    if indices.size and (indices.min() < 0 or indices.max() >= len(weight)):
        raise IndexError(f"row {indices.min()} or {indices.max()} of {len(weight)}")
    return weight[indices]


def _key(indices: Indices) -> tuple[Any, ...]:
    return tuple(slice(None) if entry is None else entry for entry in indices)


def index(x: AnyArray, indices: Indices) -> AnyArray:
    """Elements by an index, or a mask, for each dimension that has one."""
    return np.asarray(x[_key(indices)])


def index_put(
    x: AnyArray, indices: Indices, values: AnyArray, accumulate: bool = False
) -> AnyArray:
    """x with elements replaced, or added to."""
    result = x.copy()
    held = values.astype(x.dtype)
    if accumulate:
        np.add.at(result, _key(indices), held)
    else:
        result[_key(indices)] = held
    return result


def repeated_indices(repeats: AnyArray, total: int | None = None) -> AnyArray:
    """Each index as often as its number says; ``total`` numbers in all."""
    if repeats.ndim != 1 or repeats.dtype not in (np.int32, np.int64) or repeats.min(initial=0) < 0:
        raise ValueError("repetitions are a row of whole numbers, not below 0")
    # Sums of many int64 numbers may pass their range; what passes the memory is refused first.
    refuse_more(int(repeats.sum(dtype=np.float64)) * repeats.itemsize, "a result")
    result = np.repeat(np.arange(len(repeats), dtype=repeats.dtype), repeats)
    if total is not None and total != len(result):
        raise ValueError(f"{len(result)} elements where {total} are announced")
    return result


def gather(x: AnyArray, dimension: int, indices: AnyArray, sparse: bool = False) -> AnyArray:
    """For each index the element at that place of a dimension."""
    return np.take_along_axis(_region(x, dimension, indices), indices, dimension)


def scatter(x: AnyArray, dimension: int, indices: AnyArray, source: Operand) -> AnyArray:
    """x with an element replaced at the place of each index."""
    result = x.copy()
    values = np.asarray(source)
    if values.ndim:
        values = values[tuple(map(slice, indices.shape))]
    region = _region(result, dimension, indices)
    np.put_along_axis(region, indices, values.astype(x.dtype), dimension)
    return result


def scatter_add(x: AnyArray, dimension: int, indices: AnyArray, source: AnyArray) -> AnyArray:
    """x with an element added at the place of each index."""
    result = x.copy()
    places: list[AnyArray] = list(np.indices(indices.shape, sparse=True))
    places[dimension] = indices
    np.add.at(result, tuple(places), source[tuple(map(slice, indices.shape))])
    return result


def _region(x: AnyArray, dimension: int, indices: AnyArray) -> AnyArray:
    """The part of x that indices of these sizes can reach."""
    key = [slice(size) for size in indices.shape]
    key[dimension] = slice(None)
    return x[tuple(key)]


def slice_scatter(
    x: AnyArray,
    source: AnyArray,
    dimension: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> AnyArray:
    """x with entries of a dimension replaced."""
    result = x.copy()
    result[_along(x, dimension, slice(start, end, step))] = source
    return result


def select_scatter(x: AnyArray, source: AnyArray, dimension: int, index: int) -> AnyArray:
    """x with one entry of a dimension replaced."""
    result = x.copy()
    result[_along(x, dimension, index)] = source
    return result


def masked_select(x: AnyArray, mask: AnyArray) -> AnyArray:
    """Elements where the mask holds."""
    return np.asarray(x[np.broadcast_to(mask, np.broadcast_shapes(x.shape, mask.shape))])


def masked_scatter(x: AnyArray, mask: AnyArray, source: AnyArray) -> AnyArray:
    """x with elements where the mask holds replaced by those of the source, in their order."""
    if mask.dtype != np.bool_:
        raise TypeError(f"a mask of type {mask.dtype}")
    shape = np.broadcast_shapes(x.shape, mask.shape)
    result = zeros(shape, x.dtype)
    result[...] = x
    places = np.broadcast_to(mask, shape)
    count = np.count_nonzero(places)
    if count > source.size:
        raise ValueError(f"{source.size} elements for {count} places")
    result[places] = source.reshape(-1)[:count]
    return result


def _along(x: AnyArray, dimension: int, key: Any) -> tuple[Any, ...]:
    return (*[slice(None)] * (dimension % x.ndim), key)


# --- tensors of one value, and of a row -----------------------------------------------------------


def fill(x: AnyArray, value: Operand) -> AnyArray:
    """One number, given as such or as a tensor, everywhere."""
    return np.full(x.shape, np.asarray(value).reshape(()))


def no_values(size: Sequence[int], *formats: object) -> AnyArray:
    """Zeros; memory that is not initialised reads as zeros too."""
    return zeros(tuple(size), np.bool_)


def full(size: Sequence[int], value: Any) -> AnyArray:
    """One number everywhere in a tensor of this size."""
    number = np.asarray(value)
    result = zeros(tuple(size), number.dtype)
    result[...] = number
    return result


def steps(start: float, end: float, step: float = 1) -> AnyArray:
    """Numbers from ``start`` to before ``end``, ``step`` apart."""
    refuse_more(8 * max(math.ceil((end - start) / step), 0), "a row of numbers")
    return np.arange(start, end, step)


def copy(x: AnyArray, source: AnyArray, non_blocking: bool = False) -> AnyArray:
    """The source, broadcast to the sizes of x."""
    return np.broadcast_to(source, x.shape)


KERNELS: Mapping[str, Kernel] = {
    **{
        f"aten::{name}_pad{dimensions}d.out": _padded_like(place, dimensions)
        for name, place in (("reflection", _reflected), ("replication", _replicated))
        for dimensions in (1, 2, 3)
    },
    "aten::_to_copy.out": same,
    "aten::alias_copy.out": same,
    "aten::arange.out": lambda end: steps(0, end),
    "aten::arange.start_out": steps,
    "aten::as_strided_copy.out": strided,
    "aten::cat.out": concatenate,
    "aten::clone.out": same,
    "aten::constant_pad_nd.out": pad_constant,
    "aten::copy.out": copy,
    "aten::detach_copy.out": same,
    "aten::diagonal_copy.out": diagonal,
    "aten::embedding.out": embedding,
    "aten::empty.out": no_values,
    "aten::expand_copy.out": expand,
    "aten::fill.Scalar_out": fill,
    "aten::fill.Tensor_out": fill,
    "aten::flip.out": of_any_rank(lambda x, dimensions: np.flip(x, tuple(dimensions))),
    "aten::full.out": full,
    "aten::full_like.out": lambda x, value, *formats: np.full(x.shape, value),
    "aten::gather.out": of_any_rank(gather),
    "aten::index.Tensor_out": index,
    "aten::index_put.out": index_put,
    "aten::index_select.out": lambda x, dimension, indices: np.take(
        x, np.atleast_1d(indices), dimension
    ),
    "aten::lift_fresh_copy.out": same,
    "aten::masked_scatter.out": masked_scatter,
    "aten::masked_select.out": masked_select,
    "aten::narrow_copy.out": narrow,
    "aten::nonzero.out": lambda x: np.argwhere(x),
    "aten::ones.out": lambda size, *formats: full(size, True),
    "aten::permute_copy.out": lambda x, dimensions: x.transpose(tuple(dimensions)),
    "aten::pixel_shuffle.out": pixel_shuffle,
    "aten::pixel_unshuffle.out": pixel_unshuffle,
    "aten::repeat.out": repeat,
    "aten::repeat_interleave.Tensor_out": repeated_indices,
    "aten::roll.out": roll,
    "aten::scalar_tensor.out": np.asarray,
    "aten::scatter.src_out": of_any_rank(scatter),
    "aten::scatter.value_out": of_any_rank(scatter),
    "aten::scatter_add.out": of_any_rank(scatter_add),
    "aten::select_copy.int_out": select,
    "aten::select_scatter.out": select_scatter,
    "aten::slice_copy.Tensor_out": cut,
    "aten::slice_scatter.out": slice_scatter,
    "aten::split_copy.Tensor_out": lambda x, size, dimension=0: np.split(
        x, range(size, x.shape[dimension], size), dimension
    ),
    "aten::split_with_sizes_copy.out": split_by_sizes,
    "aten::squeeze_copy.dim_out": squeeze,
    "aten::squeeze_copy.dims_out": squeeze,
    "aten::stack.out": stack,
    "aten::t_copy.out": np.transpose,
    "aten::transpose_copy.int_out": lambda x, first, second: (
        x.swapaxes(first, second) if x.ndim else x
    ),
    "aten::tril.out": lambda x, diagonal=0: np.tril(x, diagonal),
    "aten::unbind_copy.int_out": lambda x, dimension=0: list(np.moveaxis(x, dimension, 0)),
    "aten::unfold_copy.out": windows_along,
    "aten::unsqueeze_copy.out": lambda x, dimension: np.expand_dims(x, dimension),
    "aten::view_copy.out": lambda x, size: x.reshape(tuple(size)),
    "aten::zeros.out": no_values,
    "dim_order_ops::_clone_dim_order.out": same,
    "dim_order_ops::_empty_dim_order.out": no_values,
    "dim_order_ops::_to_dim_order_copy.out": same,
}

IN_PLACE: Mapping[str, Kernel] = {
    "aten::copy_": copy,
    "aten::index_put_": index_put,
}
"""Operators that replace the elements of their first argument."""
