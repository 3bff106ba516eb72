"""Operators that move, shift and reduce elements, against loops over single elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import executorch_cases
import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError
from darwinn_formats.executorch.builder import ProgramBuilder
from darwinn_reference.executorch import OPERATORS, ExecutorchReference
from executorch_cases import floats, integers
from hypothesis import example, given
from hypothesis import strategies as st

TYPES = ("f4", "f8", "f2", "i1", "u1", "i4", "i8", "?")
sizes = st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)
types = st.sampled_from(TYPES)


def kernel(name: str) -> Any:
    return OPERATORS[f"aten::{name}"].kernel


def values(shape: Sequence[int], dtype: str = "f4", seed: int = 0) -> np.ndarray:
    return integers(*shape, seed=seed).astype(dtype)


@st.composite
def with_dimension(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """A tensor and one of its dimensions, which may be counted from the end."""
    x = values(draw(sizes), draw(types))
    return x, draw(st.integers(-x.ndim, x.ndim - 1))


# --- movement -------------------------------------------------------------------------------------


@given(sizes, types, st.data())
def test_strided_copies_take_each_element_from_its_place(
    shape: tuple[int, ...], dtype: str, data: st.DataObject
) -> None:
    # A transposed tensor: its elements count in row-major order, wherever they lie.
    x = values(shape[::-1], dtype).T
    rank = data.draw(st.integers(0, 3))
    size = data.draw(st.lists(st.integers(0, 3), min_size=rank, max_size=rank))
    stride = data.draw(st.lists(st.integers(0, 5), min_size=rank, max_size=rank))
    offset = data.draw(st.none() | st.integers(0, 9))
    row = [x[place] for place in np.ndindex(x.shape)]
    places = [
        (offset or 0) + sum(at * step for at, step in zip(place, stride, strict=True))
        for place in np.ndindex(*size)
    ]
    if any(place >= len(row) for place in places):
        with pytest.raises(IndexError):
            kernel("as_strided_copy.out")(x, size, stride, offset)
        return
    result = kernel("as_strided_copy.out")(x, size, stride, offset)
    assert result.shape == tuple(size)
    assert result.dtype == x.dtype
    assert result.reshape(-1).tolist() == [row[place].item() for place in places]


@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=4).map(tuple),
    types,
    st.integers(-5, 5),
    st.data(),
)
def test_diagonals_are_where_two_places_differ_by_the_offset(
    shape: tuple[int, ...], dtype: str, offset: int, data: st.DataObject
) -> None:
    x = values(shape, dtype)
    first, second = data.draw(st.permutations(range(x.ndim)))[:2]
    negative = data.draw(st.booleans())
    result = kernel("diagonal_copy.out")(x, offset, first - x.ndim * negative, second)
    others = [axis for axis in range(x.ndim) if axis not in (first, second)]
    for rest in itertools.product(*(range(shape[axis]) for axis in others)):
        expected = []
        for at, other in itertools.product(range(shape[first]), range(shape[second])):
            place = dict(zip(others, rest, strict=True)) | {first: at, second: other}
            if other - at == offset:
                expected.append(x[tuple(place[axis] for axis in range(x.ndim))].item())
        assert result[rest].tolist() == expected


@given(with_dimension(), st.integers(0, 5), st.integers(0, 3))
def test_windows_start_a_step_apart(given_x: tuple[np.ndarray, int], size: int, step: int) -> None:
    x, dimension = given_x
    length = x.shape[dimension]
    if size > length or step < 1:
        with pytest.raises(ValueError, match="window"):
            kernel("unfold_copy.out")(x, dimension, size, step)
        return
    result = kernel("unfold_copy.out")(x, dimension, size, step)
    starts = range(0, length - size + 1, step)
    axis = dimension % x.ndim
    assert result.shape == (*x.shape[:axis], len(starts), *x.shape[axis + 1 :], size)
    for place in np.ndindex(result.shape):
        source = list(place[:-1])
        source[axis] = starts[place[axis]] + place[-1]
        assert result[place] == x[tuple(source)]


@given(with_dimension(), st.integers(-2, 5), st.integers(-1, 5))
def test_narrowed_dimensions_hold_what_is_asked_for(
    given_x: tuple[np.ndarray, int], start: int, length: int
) -> None:
    x, dimension = given_x
    entries = list(range(x.shape[dimension]))
    if start < 0 or length < 0 or start + length > len(entries):
        with pytest.raises(IndexError):
            kernel("narrow_copy.out")(x, dimension, start, length)
        return
    result = kernel("narrow_copy.out")(x, dimension, start, length)
    np.testing.assert_array_equal(result, x.take(entries[start : start + length], dimension))


@given(sizes, types, st.data())
def test_masked_elements_take_those_of_the_source_in_order(
    shape: tuple[int, ...], dtype: str, data: st.DataObject
) -> None:
    """Either of the tensors may be broadcast, and a source that is too short is an error."""
    ones = data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    partial = tuple(1 if one else size for size, one in zip(shape, ones, strict=True))
    start = data.draw(st.integers(0, len(shape)))
    pair = (shape, partial[start:])
    in_shape, mask_shape = pair if data.draw(st.booleans()) else pair[::-1]
    x, mask = values(in_shape, dtype), values(mask_shape, "i8", 5) > 0
    source = values((data.draw(st.integers(0, 40)),), dtype, 9)
    everywhere = np.broadcast_to(mask, shape)
    if everywhere.sum() > source.size:
        with pytest.raises(ValueError, match="places"):
            kernel("masked_scatter.out")(x, mask, source)
        return
    result = kernel("masked_scatter.out")(x, mask, source)
    taken = iter(source.tolist())
    for place in np.ndindex(shape):
        old = np.broadcast_to(x, shape)[place]
        assert result[place] == (next(taken) if everywhere[place] else old)
    assert result.dtype == x.dtype


@given(st.lists(st.integers(-1, 4), max_size=6), st.sampled_from(["i4", "i8"]), st.booleans())
def test_indices_are_repeated_as_often_as_they_say(
    counts: list[int], dtype: str, is_announced: bool
) -> None:
    repeats = np.array(counts, dtype)
    call = kernel("repeat_interleave.Tensor_out")
    expected = [at for at, count in enumerate(counts) for _ in range(count)]
    if min(counts, default=0) < 0:
        with pytest.raises(ValueError, match="below 0"):
            call(repeats)
        return
    result = call(repeats, len(expected) if is_announced else None)
    assert result.tolist() == expected
    assert result.dtype == repeats.dtype
    with pytest.raises(ValueError, match="announced"):
        call(repeats, len(expected) + 1)


def reflected(position: int, size: int) -> int:
    """Where a walk over the elements, that turns at both ends, is."""
    while not 0 <= position < size:
        position = -position if position < 0 else 2 * (size - 1) - position
    return position


@given(st.sampled_from([1, 2, 3]), st.booleans(), types, st.data())
def test_margins_repeat_or_mirror_the_tensor(
    rank: int, has_batch: bool, dtype: str, data: st.DataObject
) -> None:
    shape = tuple(data.draw(st.integers(1, 4)) for _ in range(rank + 1 + has_batch))
    x = values(shape, dtype)
    padding = data.draw(st.lists(st.integers(-2, 4), min_size=2 * rank, max_size=2 * rank))
    pairs = [(0, 0)] * (x.ndim - rank) + list(zip(padding[::2], padding[1::2], strict=True))[::-1]
    padded = [size + sum(pair) for size, pair in zip(shape, pairs, strict=True)]
    for name in ("reflection", "replication"):
        call = kernel(f"{name}_pad{rank}d.out")
        is_far = name == "reflection" and any(
            max(pair) >= size and size + sum(pair) > 0
            for pair, size in zip(pairs, shape, strict=True)
        )
        if min(padded) < 0 or is_far:
            with pytest.raises(ValueError, match="margin"):
                call(x, padding)
            continue
        result = call(x, padding)
        assert result.shape == tuple(padded)
        for place in np.ndindex(result.shape):
            source = []
            for at, (before, _), size in zip(place, pairs, shape, strict=True):
                position = at - before
                held = min(max(position, 0), size - 1)
                source.append(held if name == "replication" else reflected(position, size))
            assert result[place] == x[tuple(source)]


# --- bits, functions, reductions ------------------------------------------------------------------


@given(
    st.sampled_from(["left", "right"]),
    st.sampled_from(["i1", "u1", "i4", "i8"]),
    st.lists(st.integers(-9, 9), max_size=4),
    st.integers(-1, 70),
)
def test_shifts_are_products_with_powers_of_two(
    direction: str, dtype: str, numbers: list[int], count: int
) -> None:
    """Of what leaves the type the lower bits stay; where C++ defines nothing is an error."""
    x = np.array(numbers, dtype="i8").astype(dtype)
    by_number = kernel(f"bitwise_{direction}_shift.Tensor_Scalar_out")
    by_tensor = kernel(f"bitwise_{direction}_shift.Tensor_out")
    counts = np.array(count, "i8")
    bits = 64 if dtype == "i8" else 32
    if not 0 <= count < bits:
        with pytest.raises(ValueError, match=f"of {bits} bits"):
            by_number(x, count)
        return
    factor = 2**count
    exact = [int(n) * factor if direction == "left" else int(n) // factor for n in x.tolist()]
    modulus = 2 ** (x.itemsize * 8)
    expected = np.array([n % modulus for n in exact], f"u{x.itemsize}").view(dtype)
    assert by_number(x, count).tolist() == expected.tolist()
    assert by_tensor(x, counts).astype(dtype).tolist() == expected.tolist()


@example([0.8927313089370728], 0.8927313372183859, "f4")
@given(
    st.lists(st.floats(-0.5, 1.5, width=32), max_size=5),
    st.none() | st.floats(0.01, 0.9),
    st.sampled_from(["f4", "f8"]),
)
def test_logits_are_logarithms_of_odds(
    numbers: list[float], bound: float | None, dtype: str
) -> None:
    x = np.array(numbers, dtype)
    with np.errstate(all="ignore"):
        result = kernel("logit.out")(x, bound)
    # The bound is rounded to the type before anything is compared, which decides beside it.
    low = None if bound is None else x.dtype.type(bound)
    for number, actual in zip(x.tolist(), result.tolist(), strict=True):
        held = number
        if low is not None:
            held = float(low) if number < low else min(number, float(1 - low))
        if 0 < held < 1:
            expected = math.log(held / (1 - held))
            assert actual == pytest.approx(expected, rel=1e-5, abs=1e-5 if dtype == "f4" else 1e-12)
        else:
            assert not math.isfinite(actual)


@given(with_dimension(), st.sampled_from([None, 0, 1, 0.5, 3]), st.booleans())
def test_variances_are_mean_squares_of_what_is_beside_the_mean(
    given_x: tuple[np.ndarray, int], correction: float | None, keep: bool
) -> None:
    x, dimension = given_x
    with np.errstate(all="ignore"):
        spread, average = kernel("var_mean.correction_out")(x, [dimension], correction, keep)
        alone = kernel("var.correction_out")(x, [dimension], correction, keep)
    np.testing.assert_array_equal(alone, spread)
    rows = np.moveaxis(x, dimension, -1).astype(np.float64)
    shape = list(x.shape)
    shape[dimension] = 1
    assert np.shape(spread) == np.shape(average) == (tuple(shape) if keep else rows.shape[:-1])
    flat = rows.reshape(math.prod(rows.shape[:-1]), rows.shape[-1])
    for row, variance, mean in zip(flat, np.ravel(spread), np.ravel(average), strict=True):
        left = len(row) - (1 if correction is None else correction)
        if left <= 0:
            assert np.isnan(variance)
            assert np.isnan(mean)
            continue
        expected = sum(row) / len(row)
        assert mean == pytest.approx(expected, rel=1e-3, abs=1e-3)
        assert variance == pytest.approx(
            sum((entry - expected) ** 2 for entry in row) / left, rel=1e-4, abs=1e-4
        )


# --- random numbers -------------------------------------------------------------------------------


@given(sizes, st.floats(0, 1))
def test_random_numbers_are_the_same_at_each_call(
    shape: tuple[int, ...], probability: float
) -> None:
    for name in ("rand.out", "randn.out"):
        np.testing.assert_array_equal(kernel(name)(list(shape)), kernel(name)(list(shape)))
    x = floats(*shape) + 3
    kept, mask = kernel("native_dropout.out")(x, probability, True)
    np.testing.assert_array_equal(kept, np.where(mask, x, 0))
    np.testing.assert_array_equal(mask, kernel("rand.out")(list(shape)) >= probability)
    for arguments in ((x, probability, False), (x, 0.0)):
        same, everywhere = kernel("native_dropout.out")(*arguments)
        np.testing.assert_array_equal(same, x)
        assert everywhere.all()


def test_random_numbers_are_distributed_as_they_should_be() -> None:
    count = 100_000
    uniform, normal = kernel("rand.out")([count]), kernel("randn.out")([count])
    assert 0 <= uniform.min() < 0.001 < 0.999 < uniform.max() < 1
    # Five deviations of each estimate.
    assert uniform.mean() == pytest.approx(0.5, abs=5 * math.sqrt(1 / 12 / count))
    assert normal.mean() == pytest.approx(0, abs=5 / math.sqrt(count))
    assert normal.var() == pytest.approx(1, abs=5 * math.sqrt(2 / count))


# --- layouts, and what does not fit ---------------------------------------------------------------

X4 = floats(2, 3, 4, 5)
MASK4 = integers(2, 3, 4, 5) > 0
LAYOUTS: list[tuple[str, tuple[Any, ...]]] = [
    ("as_strided_copy.out", (X4, [2, 2, 1, 3], [30, 2, 0, 7], 1)),
    ("bitwise_left_shift.Tensor_Scalar_out", (integers(2, 3, 4, 5), 2)),
    ("diagonal_copy.out", (X4, 1, -1, 1)),
    ("logit.out", (X4, 0.1)),
    ("masked_scatter.out", (X4, MASK4, X4)),
    ("narrow_copy.out", (X4, -2, 1, 2)),
    ("reflection_pad2d.out", (X4, [1, 0, 2, 1])),
    ("replication_pad2d.out", (X4, [1, 0, 2, 1])),
    ("unfold_copy.out", (X4, 2, 2, 1)),
    ("var_mean.correction_out", (X4, [1], 1, True)),
    ("_upsample_bilinear2d_aa.out", (X4, [3, 7], False, None, None)),
    ("grid_sampler_2d.out", (X4, floats(2, 3, 2, 2), 2, 2, False)),
    ("_cdist_forward.out", (X4, floats(2, 1, 2, 5), 2.0, None)),
]


@pytest.mark.parametrize(("name", "arguments"), LAYOUTS, ids=[name for name, _ in LAYOUTS])
@given(data=st.data())
def test_results_do_not_depend_on_the_order_of_dimensions(
    name: str, arguments: tuple[Any, ...], data: st.DataObject
) -> None:
    expected = kernel(name)(*arguments)
    expected = expected if isinstance(expected, tuple) else (expected,)
    program = ProgramBuilder()
    method = program.method()

    def order(rank: int) -> tuple[int, ...]:
        return tuple(data.draw(st.permutations(range(rank))))

    placed = [
        method.input(entry.dtype, entry.shape, dim_order=order(entry.ndim))
        if isinstance(entry, np.ndarray)
        else entry
        for entry in arguments
    ]
    outputs = [
        method.tensor(entry.dtype, entry.shape, dim_order=order(entry.ndim)) for entry in expected
    ]
    method.call(f"aten::{name}", *placed, outputs=outputs)
    method.output(*outputs)
    inputs = [entry for entry in arguments if isinstance(entry, np.ndarray)]
    for output, wanted in zip(
        ExecutorchReference(program.build()).run(inputs), expected, strict=True
    ):
        np.testing.assert_array_equal(output.data, wanted)


FAR = 2**62
HOSTILE: list[tuple[str, tuple[Any, ...]]] = [
    ("aten::as_strided_copy.out", (X4, [FAR, FAR], [1, 1], 0)),
    ("aten::as_strided_copy.out", (X4, [2, 2], [-1, 1], 5)),
    ("aten::as_strided_copy.out", (X4, [2], [FAR], None)),
    ("aten::as_strided_copy.out", (X4, [2], [1, 1], None)),
    ("aten::as_strided_copy.out", (X4, [0, FAR, FAR], [0, 0, 0], None)),
    ("aten::diagonal_copy.out", (X4, FAR, 0, 0)),
    ("aten::diagonal_copy.out", (X4, FAR, 9, 0)),
    ("aten::narrow_copy.out", (X4, 0, 0, FAR)),
    ("aten::narrow_copy.out", (X4, 0, FAR, FAR)),
    ("aten::narrow_copy.out", (X4, 7, 0, 1)),
    ("aten::unfold_copy.out", (X4, 0, FAR, 1)),
    ("aten::unfold_copy.out", (X4, 0, -1, 1)),
    ("aten::unfold_copy.out", (X4, 0, 1, -1)),
    ("aten::replication_pad3d.out", (floats(1, 2, 2, 2), [FAR // 8, 0, 0, 0, 0, 0])),
    ("aten::replication_pad3d.out", (floats(1, 2, 2, 2), [-FAR, 0, 0, 0, 0, 0])),
    ("aten::reflection_pad3d.out", (floats(1, 2, 2, 2), [0, 0, 0, 0, 0])),
    ("aten::repeat_interleave.Tensor_out", (np.array([FAR, FAR, FAR]), None)),
    ("aten::repeat_interleave.Tensor_out", (np.array([[1]]), None)),
    ("aten::masked_scatter.out", (X4, floats(2, 3, 4, 5), X4)),
    ("aten::masked_scatter.out", (floats(1 << 17, 1), np.ones((1, 1 << 17), bool), X4)),
    ("aten::rand.out", ([FAR, FAR],)),
    ("aten::randn.out", ([-1],)),
    ("aten::native_dropout.out", (X4, 1.5, True)),
    ("aten::native_dropout.out", (X4, float("nan"), True)),
    ("aten::bitwise_left_shift.Tensor_Scalar_out", (integers(3), FAR)),
    ("aten::topk.values", (X4, FAR, 0, True, True)),
    ("aten::topk.values", (X4, -1, 0, True, True)),
    ("aten::arange.start_out", (0, FAR, 1)),
    ("aten::arange.start_out", (0, 1, 0)),
    ("aten::arange.out", (float("inf"),)),
    ("aten::ones.out", ([FAR, FAR],)),
    ("aten::repeat.out", (X4, [FAR, 1, 1, 1])),
    ("aten::repeat.out", (X4, [-1, 1, 1, 1])),
    ("aten::_adaptive_avg_pool2d.out", (X4, [FAR, 1])),
    ("aten::upsample_nearest2d.vec_out", (X4, [FAR, 1], None)),
    ("aten::upsample_bilinear2d.vec_out", (floats(0, 1, 2, 2), [FAR, 1], False, None)),
    ("aten::remainder.Tensor_out", (integers(3), np.array([1, 0, 2]))),
    ("aten::remainder.Scalar_out", (integers(3), 0)),
    ("aten::fmod.Scalar_out", (integers(3), 0)),
    ("aten::floor_divide.out", (integers(3), np.array([1, 0, 2]))),
    ("aten::div.out_mode", (integers(3), np.array([1, 0, 2]), "trunc")),
    ("aten::div.Scalar_mode_out", (integers(3), 0, "floor")),
    ("aten::_native_batch_norm_legit.out", (X4, None, None, X4, X4, True, 0.1, 1e-5)),
    ("aten::var_mean.correction_out", (X4, [9], 1, True)),
    ("aten::_cdist_forward.out", (floats(1 << 16, 0), floats(1 << 16, 0), 2.0, None)),
    ("aten::_cdist_forward.out", (floats(2, 3), floats(2, 4), 2.0, None)),
    ("aten::_cdist_forward.out", (floats(2, 3), floats(2, 3), float("nan"), None)),
    ("aten::_pdist_forward.out", (floats(1 << 20, 0), 2.0)),
    ("aten::_pdist_forward.out", (X4, 2.0)),
    ("aten::_upsample_bilinear2d_aa.out", (X4, [FAR, FAR], False, None, None)),
    ("aten::_upsample_bilinear2d_aa.out", (X4, [0, 1], False, None, None)),
    ("aten::_upsample_bilinear2d_aa.out", (floats(1, 1, 0, 2), [2, 2], False, None, None)),
    ("aten::grid_sampler_2d.out", (floats(1, 1, 0, 2), floats(1, 2, 2, 2), 0, 1, False)),
    ("aten::grid_sampler_2d.out", (X4, floats(2, 2, 2, 3), 0, 1, False)),
    ("aten::grid_sampler_2d.out", (X4, floats(2, 2, 2, 2), 0, 3, False)),
    ("quantized_decomposed::mixed_mm.out", (X4, integers(2, 3).astype("i1"), floats(2), None)),
]


@pytest.mark.parametrize(
    ("name", "arguments"), HOSTILE, ids=[f"{at} {name}" for at, (name, _) in enumerate(HOSTILE)]
)
def test_what_does_not_fit_is_one_error(name: str, arguments: tuple[Any, ...]) -> None:
    program = ProgramBuilder()
    method = program.method()
    placed = [executorch_cases.place(method, entry) for entry in arguments]
    operator = OPERATORS[name]
    outputs = [method.tensor(np.float32, (2, 3)) for _ in range(operator.outputs)]
    method.call(name, *placed, outputs=outputs)
    method.output(*outputs)
    inputs = [entry for entry in arguments if isinstance(entry, np.ndarray)]
    with pytest.raises(ExecutionError) as caught:
        ExecutorchReference(program.build()).run(inputs)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "arguments", "result", "output"),
    [
        ("add.Scalar_out", (integers(2, 3), 0.5, 1), "float32", "int64"),
        ("sin.out", (integers(2, 3),), "float32", "int32"),
        ("mul.out", (integers(2, 3), integers(2, 3)), "int64", "bool"),
        ("cat.out", ([integers(1, 3), floats(1, 3)], 0), "float32", "int64"),
        ("mean.out", (floats(2, 3, 2), [2], False, None), "float32", "int64"),
    ],
)
def test_results_do_not_become_of_a_lower_category(
    name: str, arguments: tuple[Any, ...], result: str, output: str
) -> None:
    """As the original runtime, which refuses the call."""

    def run(dtype: str) -> Any:
        program = ProgramBuilder()
        method = program.method()
        placed = [executorch_cases.place(method, entry) for entry in arguments]
        target = method.tensor(dtype, (2, 3))
        method.call(f"aten::{name}", *placed, outputs=[target])
        method.output(target)
        inputs = [e for e in executorch_cases.flat(arguments) if isinstance(e, np.ndarray)]
        return ExecutorchReference(program.build()).run(inputs)[0].data

    assert run(result).dtype == run("float64").astype(result).dtype
    with pytest.raises(ExecutionError, match=f"{result} in an output of type {output}"):
        run(output)
