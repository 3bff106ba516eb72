"""Random calls of operators: shapes with and without elements, types, negative dimensions.

Unlike ``executorch_cases``, what comes out is not stored: the interpreter and the original runtime
are asked for the same call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from executorch_cases import BOOL, F32, I8, I32, I64, Case, Indices

Call = tuple[str, tuple[Any, ...], tuple[np.dtype[Any], ...]]
"""Name without namespace, arguments, types of the outputs."""


class Draw:
    """What calls are made of, drawn from a generator."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def number(self, low: int, high: int) -> int:
        return int(self._random.integers(low, high + 1))

    def one_of(self, *entries: Any) -> Any:
        return entries[self.number(0, len(entries) - 1)]

    def flag(self) -> bool:
        return bool(self.number(0, 1))

    def sizes(self, least: int = 0, most: int = 4, empty: bool = True) -> tuple[int, ...]:
        sizes = [self.number(1, 4) for _ in range(self.number(least, most))]
        if empty and sizes and self.number(0, 5) == 0:
            sizes[self.number(0, len(sizes) - 1)] = 0
        return tuple(sizes)

    def floats(self, *sizes: int) -> np.ndarray:
        return np.asarray(np.round(self._random.normal(0, 2, sizes), 1)).astype(F32)

    def integers(
        self, *sizes: int, low: int = -5, high: int = 5, dtype: np.dtype[Any] = I64
    ) -> np.ndarray:
        return np.asarray(self._random.integers(low, high + 1, sizes)).astype(dtype)

    def truths(self, *sizes: int) -> np.ndarray:
        return np.asarray(self._random.random(sizes) > 0.5)

    def distinct(self, *sizes: int) -> np.ndarray:
        """Floats of which no two are equal, so that an order of theirs is the only one."""
        count = int(np.prod(sizes))
        return self._random.permutation(count).astype(F32).reshape(sizes) / np.float32(4)

    def tensor(self, *sizes: int) -> np.ndarray:
        """A tensor of any type."""
        kind = self.number(0, 4)
        if kind < 2:
            return self.floats(*sizes)
        return (
            self.truths(*sizes) if kind == 2 else self.integers(*sizes, dtype=(I32, I8)[kind - 3])
        )

    def dimension(self, rank: int) -> int:
        count = max(rank, 1)
        return self.number(-count, count - 1)

    def dimensions(self, rank: int) -> list[int]:
        chosen = self._random.permutation(rank)[: self.number(0, rank)]
        return [int(entry) - rank * self.number(0, 1) for entry in chosen]


def reductions(draw: Draw) -> Call:
    x = draw.floats(*draw.sizes(least=1))
    several, keep = draw.dimensions(x.ndim), draw.flag()
    name = draw.one_of("sum.IntList_out", "mean.out", "amax.out", "var_mean.correction_out")
    if name == "amax.out":
        return name, (x, several, keep), (F32,)
    if name == "var_mean.correction_out":
        return name, (x, draw.one_of(several, None), draw.one_of(None, 0, 2), keep), (F32, F32)
    return name, (x, draw.one_of(several, None), keep, None), (F32,)


def along_a_dimension(draw: Draw) -> Call:
    x = draw.distinct(*draw.sizes(least=1, most=3))
    along, keep = draw.dimension(x.ndim), draw.flag()
    name = draw.one_of("argmax.out", "min.dim_min", "cumsum.out", "_softmax.out", "topk.values")
    if name == "argmax.out":
        return name, (x, draw.one_of(along, None), keep), (I64,)
    if name == "min.dim_min":
        return name, (x, along, keep), (F32, I64)
    if name == "topk.values":
        return name, (x, draw.number(0, 3), along, draw.flag(), True), (F32, I64)
    return name, (x, along, None if name == "cumsum.out" else False), (F32,)


def movements(draw: Draw) -> Call:
    x = draw.tensor(*draw.sizes(least=1))
    along = draw.dimension(x.ndim)
    size = x.shape[along]
    ends = [draw.one_of(None, draw.number(-6, 6)) for _ in range(2)]
    margins = [draw.number(0, 2) for _ in range(2 * draw.number(0, x.ndim))]
    repeats = [draw.number(0, 2) for _ in range(x.ndim + draw.number(0, 1))]
    name, arguments = draw.one_of(
        ("select_copy.int_out", (along, draw.number(-size - 1, size))),
        ("slice_copy.Tensor_out", (along, *ends, draw.number(1, 3))),
        ("permute_copy.out", (draw.one_of(list(range(x.ndim)), list(range(-1, -x.ndim - 1, -1))),)),
        ("squeeze_copy.dims_out", (draw.dimensions(x.ndim),)),
        ("unsqueeze_copy.out", (draw.number(-x.ndim - 1, x.ndim),)),
        ("transpose_copy.int_out", (along, draw.dimension(x.ndim))),
        ("flip.out", (draw.dimensions(x.ndim),)),
        ("repeat.out", (repeats,)),
        ("roll.out", ([draw.number(-5, 5)], [along])),
        ("constant_pad_nd.out", (margins, draw.one_of(0, 1.5, -1))),
        ("view_copy.out", (draw.one_of([-1], [1, *x.shape]),)),
        ("narrow_copy.out", (along % x.ndim, draw.number(0, 2), draw.number(0, 2))),
        ("unfold_copy.out", (along, draw.number(0, 2), draw.number(1, 2))),
        ("index_select.out", (along, draw.integers(draw.number(0, 3), low=0, high=max(size, 1)))),
    )
    return name, (x, *arguments), (x.dtype,)


def indices(draw: Draw) -> Call:
    x = draw.floats(*draw.sizes(least=1, most=3, empty=False))
    along = draw.dimension(x.ndim)
    size = x.shape[along]
    within = tuple(draw.number(0, entry) for entry in x.shape)
    places = draw.integers(*within, low=0, high=size - 1)
    mask = draw.truths(*draw.one_of(x.shape, x.shape[-1:], (1,) * x.ndim))
    listed = Indices([draw.integers(2, low=-x.shape[0], high=x.shape[0] - 1, dtype=I32)])
    others = [entry for axis, entry in enumerate(x.shape) if axis != along % x.ndim]
    name, arguments = draw.one_of(
        ("index.Tensor_out", (listed,)),
        ("index_put.out", (listed, draw.floats(*draw.one_of((2, *x.shape[1:]), (1,))), True)),
        ("gather.out", (along, places, False)),
        ("scatter.value_out", (along, places, 1.5)),
        ("scatter_add.out", (along, places, draw.floats(*x.shape))),
        ("select_scatter.out", (draw.floats(*others), along, draw.number(-size, size - 1))),
        ("masked_scatter.out", (mask, draw.floats(x.size))),
        ("masked_fill.Scalar_out", (mask, draw.one_of(1, 2.5))),
        ("masked_select.out", (mask,)),
    )
    return name, (x, *arguments), (F32,)


def convolutions(draw: Draw) -> Call:
    rank, groups, is_transposed = draw.number(1, 2), draw.number(1, 2), draw.flag()
    x = draw.floats(draw.number(0, 2), 2 * groups, *[draw.number(3, 7) for _ in range(rank)])
    outputs = groups * draw.number(1, 2)
    channels = (2 * groups, outputs // groups) if is_transposed else (outputs, 2)
    weight = draw.floats(*channels, *[draw.number(1, 3) for _ in range(rank)])
    steps = [draw.number(1, 2) for _ in range(rank)]
    extra = [draw.number(0, step - 1) if is_transposed else 0 for step in steps]
    bias = draw.one_of(None, draw.floats(outputs))
    margins, spreads = ([draw.number(low, low + 1) for _ in range(rank)] for low in (0, 1))
    options = (steps, margins, spreads, is_transposed, extra, groups)
    return "convolution.out", (x, weight, bias, *options), (F32,)


def windows(draw: Draw) -> Call:
    x = draw.distinct(draw.number(1, 2), 2, draw.number(3, 7), draw.number(3, 7))
    kernel, steps, output = ([draw.number(1, 3) for _ in range(2)] for _ in range(3))
    margins = [draw.number(0, width // 2) for width in kernel]
    grid = draw.floats(len(x), 2, 3, 2) / np.float32(2)
    name, arguments, dtypes = draw.one_of(
        ("avg_pool2d.out", (kernel, steps, margins, draw.flag(), draw.flag(), None), (F32,)),
        ("max_pool2d_with_indices.out", (kernel, steps, margins, [1, 1], draw.flag()), (F32, I64)),
        ("_adaptive_avg_pool2d.out", (output,), (F32,)),
        ("upsample_bilinear2d.vec_out", (output, draw.flag(), None), (F32,)),
        ("upsample_nearest2d.vec_out", (None, [draw.one_of(0.5, 1.5, 2.0), 2.0]), (F32,)),
        ("_upsample_bilinear2d_aa.out", (output, draw.flag(), None, None), (F32,)),
        ("grid_sampler_2d.out", (grid, draw.number(0, 2), draw.number(0, 2), draw.flag()), (F32,)),
        ("reflection_pad2d.out", (margins * 2,), (F32,)),
        ("replication_pad2d.out", ([*margins, -1, 2],), (F32,)),
        ("native_group_norm.out", (None, None, len(x), 2, x[0, 0].size, 1, 1e-5), (F32,) * 3),
        ("native_layer_norm.out", ([x.shape[-1]], None, None, 1e-5), (F32,) * 3),
    )
    return name, (x, *arguments), dtypes


def products(draw: Draw) -> Call:
    rows, width, columns = draw.number(0, 3), draw.number(1, 3), draw.number(1, 3)
    left, right = draw.floats(rows, width), draw.floats(width, columns)
    addend = draw.floats(*draw.one_of((rows, columns), (columns,), (1, columns)))
    power = draw.one_of(0.0, 1.0, 2.0, 3.0, float("inf"))
    name, arguments = draw.one_of(
        ("mm.out", (left, right)),
        ("bmm.out", (left[np.newaxis], right[np.newaxis])),
        ("addmm.out", (addend, left, right, draw.one_of(1, 0, 0.5), draw.one_of(1, 2, 0.5))),
        ("linear.out", (left, right.T.copy(), draw.one_of(None, draw.floats(columns)))),
        ("embedding.out", (right, draw.integers(rows, low=0, high=width - 1), -1, False, False)),
        ("_cdist_forward.out", (left, right.T.copy(), power, None)),
        ("_pdist_forward.out", (left, power)),
        ("cat.out", ([left, draw.floats(0), draw.floats(2, width)], draw.one_of(0, -2))),
        ("where.self_out", (draw.truths(3, 1), draw.floats(), draw.floats(1, 3))),
    )
    return name, arguments, (F32,)


def element_by_element(draw: Draw) -> Call:
    shapes = draw.one_of(((2, 1), (1, 3)), ((), (3,)), ((0, 3), (1, 3)), ((3,), (2, 2, 3)))
    a, b = (draw.tensor(*shape) for shape in shapes)
    name = draw.one_of("eq.Tensor_out", "le.Tensor_out", "maximum.out", "mul.out", "atan2.out")
    if name.endswith("Tensor_out"):
        return name, (a, b), (BOOL,)
    common = np.result_type(a, b) if F32 not in (a.dtype, b.dtype) else F32
    return name, (a, b), (F32 if name == "atan2.out" else common,)


GROUPS: Sequence[Callable[[Draw], Call]] = (
    reductions,
    along_a_dimension,
    movements,
    indices,
    convolutions,
    windows,
    products,
    element_by_element,
)


def calls(seed: int, count: int) -> Iterator[Case]:
    """Calls of operators of all groups in turn; each follows from the seed and its number."""
    for at in range(count):
        name, arguments, dtypes = GROUPS[at % len(GROUPS)](Draw(seed + at))
        yield Case(f"{seed + at} {name}", f"aten::{name}", arguments, dtypes)
