"""Every kernel against results of the original runtime, and those it lacks against slow loops.

``tests/support/executorch_expected.json`` was made by the original runtime, version 1.5.1, from
the programs of ``executorch_cases``; ``test_original`` makes it again.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import executorch_cases
import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError
from darwinn_formats.executorch.builder import ProgramBuilder
from darwinn_reference.executorch import OPERATORS, ExecutorchReference
from darwinn_reference.executorch.element_types import ONE_TYPE
from darwinn_reference.executorch.kernels import quantised, windows
from executorch_cases import Case, floats, integers
from hypothesis import given
from hypothesis import strategies as st

CASES = executorch_cases.cases()
EXPECTED: dict[str, list[list[float]]] = json.loads(
    Path(executorch_cases.__file__).with_name("executorch_expected.json").read_text()
)
ELSEWHERE = {name for name in OPERATORS if name.startswith("cortex_m::") or "::et_" in name} | {
    "executorch_prim::ne.Scalar",
    "aten::rand.out",
    "aten::randn.out",
}
"""Operators that the original runtime's Python package lacks, that need more than one call, or that
give something else at each."""


def test_every_operator_has_a_case() -> None:
    assert {case.operator for case in CASES} == set(OPERATORS) - ELSEWHERE
    assert {case.name for case in CASES} == set(EXPECTED)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operators_agree_with_the_original_runtime(case: Case) -> None:
    outputs = ExecutorchReference(case.build()).run(case.inputs)
    for output, expected in zip(outputs, EXPECTED[case.name], strict=True):
        actual = np.asarray(output.data).reshape(-1).astype(np.float64)
        exact = np.asarray(output.data).dtype.kind != "f"
        tolerance = 0 if exact else 1e-5
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance / 10)


# --- windows, against loops over single elements --------------------------------------------------

convolutions = st.fixed_dictionaries(
    {
        "groups": st.sampled_from([1, 2, 3]),
        "inputs": st.integers(1, 2),
        "outputs": st.integers(1, 2),
        "size": st.tuples(st.integers(1, 5), st.integers(1, 6)),
        "kernel": st.tuples(st.integers(1, 3), st.integers(1, 3)),
        "stride": st.tuples(st.integers(1, 3), st.integers(1, 2)),
        "padding": st.tuples(st.integers(0, 2), st.integers(0, 2)),
        "dilation": st.tuples(st.integers(1, 2), st.integers(1, 2)),
    }
)


def taps(
    size: tuple[int, ...], output: tuple[int, ...], geometry: dict[str, Any]
) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """(place in the output, position in the window, place in the image) that meet."""
    found = []
    for place in itertools.product(*map(range, output)):
        for position in itertools.product(*map(range, geometry["kernel"])):
            source = tuple(
                at * geometry["stride"][axis]
                - geometry["padding"][axis]
                + position[axis] * geometry["dilation"][axis]
                for axis, at in enumerate(place)
            )
            if all(0 <= at < limit for at, limit in zip(source, size, strict=True)):
                found.append((place, position, source))
    return found


@given(convolutions)
def test_convolution_is_the_sum_over_its_window(geometry: dict[str, Any]) -> None:
    groups = geometry["groups"]
    x = integers(1, groups * geometry["inputs"], *geometry["size"])
    weight = integers(groups * geometry["outputs"], geometry["inputs"], *geometry["kernel"])
    span = [d * (k - 1) for d, k in zip(geometry["dilation"], geometry["kernel"], strict=True)]
    output = tuple(
        (size + 2 * margin - room - 1) // step + 1
        for size, margin, room, step in zip(
            geometry["size"], geometry["padding"], span, geometry["stride"], strict=True
        )
    )
    if min(output) < 1:
        return
    expected = np.zeros((1, len(weight), *output), np.int64)
    for place, position, source in taps(geometry["size"], output, geometry):
        for channel, inner in itertools.product(range(len(weight)), range(geometry["inputs"])):
            outer = channel // geometry["outputs"] * geometry["inputs"] + inner
            product = x[(0, outer, *source)] * weight[(channel, inner, *position)]
            expected[(0, channel, *place)] += product
    options = (geometry["stride"], geometry["padding"], geometry["dilation"], groups)
    np.testing.assert_array_equal(windows.convolve(x, weight, *options), expected)


@pytest.mark.parametrize("transposed", [False, True])
def test_half_precision_rounds_every_product_and_sum(transposed: bool) -> None:
    """Loops over float16, whose arithmetic rounds: results with the bias last, or first."""
    x = integers(1, 4, 4, 5).astype(np.float16) / np.float16(7)
    weight = integers(4, 2, 2, 3, seed=1).astype(np.float16) / np.float16(11)
    bias = np.array([0.3, -0.7, 1.1, 2.3], np.float16)
    result = windows.convolution(
        x, weight, bias, [1, 1], [0, 0], [1, 1], transposed, [0, 0], 2, rounded=round_half
    )
    expected = np.zeros(result.shape, np.float16)
    if transposed:
        expected += bias.reshape(1, 4, 1, 1)
        for row, column, channel in itertools.product(range(4), range(5), range(4)):
            for output, down, right in itertools.product(range(2), range(2), range(3)):
                place = (0, channel // 2 * 2 + output, row + down, column + right)
                expected[place] += x[0, channel, row, column] * weight[channel, output, down, right]
    else:
        for output, row, column in itertools.product(range(4), range(3), range(3)):
            for inner, down, right in itertools.product(range(2), range(2), range(3)):
                pixel = x[0, output // 2 * 2 + inner, row + down, column + right]
                expected[0, output, row, column] += pixel * weight[output, inner, down, right]
        expected += bias.reshape(1, 4, 1, 1)
    np.testing.assert_array_equal(result.astype(np.float16), expected)
    # Rounded once, some would be others.
    once = windows.convolution(x, weight, bias, [1, 1], [0, 0], [1, 1], transposed, [0, 0], 2)
    assert (once.astype(np.float16) != expected).any()


def round_half(x: Any) -> Any:
    return x.astype(np.float16).astype(np.float32)


@given(convolutions)
def test_transposed_convolution_is_the_adjoint_of_convolution(geometry: dict[str, Any]) -> None:
    """<y, convolve(x)> = <transposed(y), x> for whole numbers, where the sizes go up evenly."""
    groups = geometry["groups"]
    stride, padding, dilation = (geometry[key] for key in ("stride", "padding", "dilation"))
    weight = integers(groups * geometry["outputs"], geometry["inputs"], *geometry["kernel"])
    y = integers(1, len(weight), *geometry["size"])
    options = (stride, padding, dilation)
    full = [
        (size - 1) * step - 2 * margin + spread * (width - 1) + 1
        for size, step, margin, spread, width in zip(
            geometry["size"], stride, padding, dilation, geometry["kernel"], strict=True
        )
    ]
    if min(full) < 1:
        return
    back = windows.convolve_transposed(y, weight, *options, (0, 0), groups)
    x = integers(*back.shape, seed=3)
    forth = windows.convolve(x, weight, *options, groups)
    assert forth.shape == y.shape
    assert np.sum(forth * y) == np.sum(back * x)


@given(convolutions, st.booleans())
def test_maxima_are_the_greatest_of_their_window(geometry: dict[str, Any], round_up: bool) -> None:
    geometry["padding"] = tuple(
        min(margin, width // 2)
        for margin, width in zip(geometry["padding"], geometry["kernel"], strict=True)
    )
    x = floats(1, 2, *geometry["size"])
    kernel, stride, padding, dilation = (
        geometry[key] for key in ("kernel", "stride", "padding", "dilation")
    )
    span = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    if any(
        size + 2 * margin < room
        for size, margin, room in zip(geometry["size"], padding, span, strict=True)
    ):
        return
    best, index = windows.max_pool(x, kernel, stride, padding, dilation, round_up)
    expected = np.full(best.shape, -np.inf, np.float32)
    for place, _, source in taps(geometry["size"], best.shape[2:], geometry):
        for channel in range(2):
            at = (0, channel, *place)
            expected[at] = max(expected[at], x[(0, channel, *source)])
    np.testing.assert_array_equal(best, expected)
    reached = np.isfinite(best)
    flat = x.reshape(2, -1)
    for channel in range(2):
        places = index[0, channel][reached[0, channel]]
        np.testing.assert_array_equal(flat[channel][places], best[0, channel][reached[0, channel]])


# --- Cortex-M -------------------------------------------------------------------------------------


def requantise_slowly(value: int, multiplier: int, shift: int) -> int:
    """CMSIS-NN: doubling high product of the shifted value, then a rounded division."""
    high = ((value << max(shift, 0)) * multiplier + 2**30) // 2**31
    divisor = 1 << max(-shift, 0)
    quotient, rest = divmod(abs(high), divisor)
    return (quotient + (2 * rest >= divisor > 1)) * (1 if high >= 0 else -1)


@given(st.integers(-(2**26), 2**26), st.integers(2**30, 2**31 - 1), st.integers(-12, 3))
def test_requantisation_rounds_twice(value: int, multiplier: int, shift: int) -> None:
    actual = quantised.requantise(np.array([value]), multiplier, shift)
    assert actual.tolist() == [requantise_slowly(value, multiplier, shift)]


def test_integer_convolutions_of_the_cortex_library() -> None:
    x = integers(1, 2, 4, 3, low=-128, high=127).astype(np.int8)
    weight = integers(3, 2, 2, 2, low=-127, high=127).astype(np.int8)  # o, h, w, i
    bias = integers(3, low=-1000, high=1000).astype(np.int32)
    multipliers = np.array([2**30, 2**30 + 5, 2**31 - 1], np.int32)
    shifts = np.array([-7, -6, -8], np.int32)
    call = ([2, 1], [1, 0], [1, 1])
    rest = (5, -3, multipliers, shifts, -128, 127, np.zeros(0, np.uint8))
    whole, depth = (*call, *rest), (*call, 3, *rest)
    actual = quantised.cortex_convolution(x, weight, bias, *whole)
    assert actual.shape == (1, 3, 3, 2)
    for place in np.ndindex(actual.shape):
        _, channel, row, column = place
        total = int(bias[channel])
        for down, right, inner in np.ndindex(2, 2, 2):
            at = (row * 2 - 1 + down, column + right)
            if 0 <= at[0] < 4:
                total += (int(x[0, inner, at[0], at[1]]) + 5) * int(
                    weight[channel, down, right, inner]
                )
        scaled = requantise_slowly(total, int(multipliers[channel]), int(shifts[channel]))
        assert actual[place] == min(max(scaled - 3, -128), 127)
    # A depthwise convolution is one of as many groups as channels, with its weights turned.
    depthwise = weight.transpose(3, 1, 2, 0)[:1]
    by_channel = quantised.cortex_depthwise_convolution(x[:, :1], depthwise, bias, *depth)
    same = quantised.cortex_convolution(x[:, :1], weight[..., :1], bias, *whole)
    np.testing.assert_array_equal(by_channel, same)


def test_integer_products_of_the_cortex_library() -> None:
    x, weight = integers(2, 4).astype(np.int8), integers(3, 4, seed=1).astype(np.int8)
    bias = np.array([10, -20, 30], np.int32)
    sums = weight.astype(np.int64).sum(axis=1) * 7 + bias
    rest = (7, 0, 4, [2**30], [-2], 127, -128)
    with_bias = quantised.cortex_linear(x, weight, bias, None, *rest)
    with_sums = quantised.cortex_linear(x, weight, None, sums, *rest)
    np.testing.assert_array_equal(with_bias, with_sums)
    for row, column in np.ndindex(2, 3):
        total = int(bias[column]) + sum(
            (int(a) + 7) * int(b) for a, b in zip(x[row], weight[column], strict=True)
        )
        assert with_bias[row, column] == requantise_slowly(total, 2**30, -2) + 4


def test_averages_of_the_cortex_library_round_halves_away_from_zero() -> None:
    x = np.array([[[[1, 2], [-1, -2], [3, 3]]]], np.int8)
    pooled = quantised.cortex_average_pool(
        x, [1, 2], [1, 2], [0, 0], False, 0, 1, 0, np.zeros(0, np.uint8)
    )
    assert pooled.reshape(-1).tolist() == [2, -2, 3]


def test_padding_of_the_cortex_library_follows_the_stored_order() -> None:
    """Margins of an image that is stored as (n, h, w, c) are given in that order."""
    program = ProgramBuilder()
    method = program.method()
    order = (0, 2, 3, 1)
    x = method.input(np.int8, (1, 2, 2, 3), dim_order=order)
    y = method.tensor(np.int8, (1, 3, 3, 5), dim_order=order)
    method.call("cortex_m::pad.out", x, [0, 1, 0, 1], [0, 0, 2, 0], -7, outputs=[y])
    method.output(y)
    given_x = np.arange(12, dtype=np.int8).reshape(1, 2, 2, 3)
    (output,) = ExecutorchReference(program.build()).run([given_x])
    expected = np.full((1, 3, 3, 5), -7, np.int8)
    expected[:, 1:, 1:, :3] = given_x
    np.testing.assert_array_equal(output.data, expected)


def test_the_result_of_ne_is_a_truth_value() -> None:
    assert OPERATORS["executorch_prim::ne.Scalar"].kernel(1, 2) is True


@pytest.mark.parametrize("operator", ONE_TYPE)
def test_operators_that_do_not_convert_refuse_other_types(operator: str) -> None:
    """Another type of the output, and of each tensor that has to be like it."""
    for variant in executorch_cases.with_other_types(operator, ONE_TYPE[operator]):
        with pytest.raises(ExecutionError, match="float32, float64, which this operator does not"):
            ExecutorchReference(variant.build())


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        ("aten::mm.out", (floats(2, 3), floats(2, 3))),
        ("aten::embedding.out", (floats(4, 2), np.array([4]), -1, False, False)),
        ("aten::constant_pad_nd.out", (floats(2, 3), [-1, 0], 0.0)),
        ("aten::view_copy.out", (floats(2, 3), [4, 2])),
        ("aten::split_with_sizes_copy.out", (floats(3), [1, 1], 0)),
    ],
)
def test_arguments_that_do_not_fit_are_an_error_of_the_instruction(
    operator: str, arguments: tuple[Any, ...]
) -> None:
    program = ProgramBuilder()
    method = program.method()
    placed = [executorch_cases.place(method, entry) for entry in arguments]
    out = method.tensor(np.float32, (2, 3))
    method.call(operator, *placed, outputs=[out])
    method.output(out)
    reference = ExecutorchReference(program.build())
    inputs = [entry for entry in arguments if isinstance(entry, np.ndarray)]
    with pytest.raises(ExecutionError, match=rf"forward, instruction 0: {operator}\("):
        reference.run(inputs)
