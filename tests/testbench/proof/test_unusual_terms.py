"""Forms of operators in which numbers have been wrong: factors that agree, wraps, constants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import slow_forms as slow
from darwinn_formats.files import Content
from darwinn_formats.tflite import BuiltinOperator
from darwinn_formats.tflite import options as o
from darwinn_reference.tflite.graph import Network, NetworkTensor
from darwinn_sim.kernel.field import random_elements
from darwinn_sim.kernel.numbering import Made
from darwinn_sim.numbering import kernels
from darwinn_testbench.compilation.compile import CompileOptions, compile_model
from darwinn_testbench.compiler.random_networks import RandomNetwork
from darwinn_testbench.proof.difference import Results
from darwinn_testbench.proof.terms import Elements, NoTerms, StageTerms
from darwinn_testbench.proof.unsigned import unsigned
from darwinn_testbench.report import Verdict
from one_operator import single, tensor
from operator_numbers import assert_same_classes, numbers_of


def whole(index: int, *values: int) -> NetworkTensor:
    return tensor(index, (len(values),), "i4", constant=np.array(values, np.int32))


def drawn(shape: tuple[int, ...]) -> dict[int, Elements]:
    elements = random_elements(np.random.default_rng(0), int(np.prod(shape)))
    return {0: elements.reshape(shape)}


def stage_of(network: Network, numbers: dict[int, Elements]) -> StageTerms:
    stages: list[StageTerms] = []
    numbers_of(network, numbers, stages)
    return stages[0]


def accepted(network: Network, factor: float, form: Any = None, **other: Any) -> set[int]:
    """Elements for which a program's results of the same sums may stand, with another factor, and
    with other bounds if asked for; of a stage with ``other`` fields."""
    raised = unsigned(network)
    stage = replace(stage_of(network, drawn(network.tensors[0].shape)), **other)
    made = Made.zeros(stage.totals.size)
    made["total"] = stage.totals.reshape(-1)
    made["scale"] = np.full(len(made), factor, np.float32).view(np.uint32)
    numbers = np.empty(len(made), np.uint64)
    scales = np.full(len(made), factor, np.float32)
    kernels.results(made["total"].copy(), scales, stage.form if form is None else form, numbers)
    made["number"] = numbers
    results = Results()
    results.take(made)
    missing = np.arange(len(made))
    return set(results.harmless(raised, raised.operators[0], missing, stage))


MEAN = single(
    "MEAN",
    [
        tensor(0, (1, 7, 7, 2), "i1", 0.02, -128),
        whole(1, 1, 2),
        tensor(2, (1, 2), "i1", 0.02, -128),
    ],
    (0, 1),
    (2,),
    keep_dims=False,
)
RESIZE = single(
    "RESIZE_BILINEAR",
    [tensor(0, (1, 2, 2, 1), "u1", 1), whole(1, 4, 4), tensor(2, (1, 4, 4, 1), "u1", 1)],
    (0, 1),
    (2,),
)
DENSE = single(
    "FULLY_CONNECTED",
    [
        tensor(0, (1, 4), "u1", 0.5),
        tensor(1, (2, 4), "u1", 0.0217183, 128, np.full((2, 4), 1, np.uint8)),
        whole(2, 5, 6),
        tensor(3, (1, 2), "u1", 0.5, 255),
    ],
    (0, 1, 2),
    (3,),
)
"""Weights of -127, which are bytes of 1."""

SUMS = 2 * 4 * 127 * 255 + 11
"""Sums of all its elements together are not greater."""


@pytest.mark.parametrize("network", [MEAN, RESIZE, DENSE], ids=["mean", "resize", "dense"])
@pytest.mark.parametrize("times", [0.5, 0.9, 1.2, 4])
def test_another_factor_is_accepted_for_no_sum_that_it_changes(
    network: Network, times: float
) -> None:
    factor = float(stage_of(network, drawn(network.tensors[0].shape)).factors.flat[0])
    assert not accepted(network, factor * times)


def test_another_factor_is_accepted_where_no_sum_shows_it() -> None:
    """No sum is near to a tie, and the next factor changes nothing."""
    factor = float(stage_of(DENSE, drawn((1, 4))).factors.flat[0])
    near = float(np.nextafter(np.float32(factor), np.float32(1)))
    assert accepted(DENSE, near) == {0, 1}


@pytest.mark.parametrize("steps", range(1, 9))
def test_another_factor_is_accepted_exactly_where_no_sum_shows_it(steps: int) -> None:
    stage = stage_of(DENSE, drawn((1, 4)))
    factor = here = stage.factors.flat[0]
    for _ in range(steps):
        factor = np.nextafter(factor, np.float32(1))
    sums = np.arange(-SUMS, SUMS + 1)
    first, second = (stage.values(sums, np.full(sums.size, each)) for each in (here, factor))
    assert bool(accepted(DENSE, float(factor))) == np.array_equal(first, second)


def test_another_factor_is_not_accepted_of_a_result_without_bounds() -> None:
    """Its low byte is left: sums tell factors apart far beyond the range of a byte."""
    factor = float(stage_of(DENSE, drawn((1, 4))).factors.flat[0])
    near = float(np.nextafter(np.float32(factor), np.float32(1)))
    assert not accepted(DENSE, near, bounded=False)


@pytest.mark.parametrize(("low", "high", "point"), [(0, 255, 254), (1, 255, 255), (0, 254, 255)])
def test_another_zero_point_or_bound_is_never_accepted(low: int, high: int, point: int) -> None:
    """Although the factor beside it changes nothing."""
    factor = float(stage_of(DENSE, drawn((1, 4))).factors.flat[0])
    near = float(np.nextafter(np.float32(factor), np.float32(1)))
    assert not accepted(DENSE, near, np.uint64(kernels.form(low, high, point)))


@pytest.mark.parametrize("depth", [1, 40])
def test_a_channel_with_a_bias_of_31_bits_spoils_no_other(depth: int) -> None:
    """Compilers give dead channels such biases: parts of sums are not those of 32 bits."""
    weights = np.random.default_rng(0).integers(-127, 128, (3, 5, 5, depth)).astype(np.int8)
    weights[1] = 0
    weights[1, 0, 0, 0] = -1
    # Their parts add up to more than 32 bits where there are many.
    weights[0] = 127
    tensors = [
        tensor(0, (1, 5, 5, depth), "i1", 0.5, -128),
        NetworkTensor(
            1,
            "t1",
            weights.shape,
            np.dtype("i1"),
            np.array([0.01, 1e-21, 0.02], np.float32),
            np.zeros(3, np.int64),
            0,
            weights,
        ),
        whole(2, 300, -(2**31) + 1, -20),
        tensor(3, (1, 1, 1, 3), "i1", 0.25, 3),
    ]
    network = single("CONV_2D", tensors, (0, 1, 2), (3,), padding="VALID")
    numbers = drawn((1, 5, 5, depth))
    stage = stage_of(network, numbers)
    modulus = (1 << 61) - 1
    for channel, found in enumerate(stage.totals.reshape(-1).tolist()):
        total = int(tensors[2].constant[channel])  # type: ignore[index]
        for weight, number in zip(weights[channel].flat, numbers[0].flat, strict=True):
            total += int(weight) * int(number)
        assert found == total % modulus


def test_a_greatest_element_of_another_scale_is_sampled() -> None:
    """Its rule requantises it: the byte itself is another function."""
    tensors = [
        tensor(0, (1, 3, 2), "u1", 0.5),
        whole(1, 1),
        tensor(2, (1, 2), "u1", 0.25),
    ]
    with pytest.raises(NoTerms, match="quantisation"):
        numbers_of(single("REDUCE_MAX", tensors, (0, 1), (2,)), drawn((1, 3, 2)))


def test_a_greatest_element_of_another_zero_point_is_sampled() -> None:
    """Its rule subtracts the one and adds the other."""
    tensors = [tensor(0, (1, 2, 2, 1), "u1", 0.5, 3), tensor(1, (1, 1, 1, 1), "u1", 0.5, 4)]
    options = {"filter_width": 2, "filter_height": 2, "stride_w": 2, "stride_h": 2}
    network = single("MAX_POOL_2D", tensors, (0,), (1,), padding="VALID", **options)
    with pytest.raises(NoTerms, match="quantisation"):
        numbers_of(network, drawn((1, 2, 2, 1)))


def test_weights_that_are_computed_have_no_terms_of_a_layer() -> None:
    """Each product is of two unknown bytes: their numbers are no sums of parts."""
    tensors = [
        tensor(0, (1, 3), "u1", 0.5),
        tensor(1, (2, 3), "u1", 0.5),
        tensor(2, (1, 2), "u1", 0.25),
    ]
    numbers = {**drawn((1, 3)), 1: random_elements(np.random.default_rng(1), 6).reshape(2, 3)}
    with pytest.raises(NoTerms):
        numbers_of(single("FULLY_CONNECTED", tensors, (0, 1), (2,)), numbers)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_constant_of_as_many_elements_as_channels_is_moved(axis: int) -> None:
    constant = np.array([[7, 9]], np.uint8)
    tensors = [
        tensor(0, (1, 2), "u1", 0.5, 3),
        tensor(1, (1, 2), "u1", 0.5, 3, constant),
        tensor(2, (2, 2) if axis == 0 else (1, 4), "u1", 0.5, 3),
    ]
    network = single("CONCATENATION", tensors, (0, 1), (2,), axis=axis)
    numbers = drawn((1, 2))
    keys = list(slow.concatenation(slow.Operands(network, numbers)))
    assert keys[2:] == [("constant", 7), ("constant", 9)]
    assert_same_classes(numbers_of(network, numbers), keys)


@pytest.mark.parametrize("steps", [13, 128, 250])
def test_a_constant_may_leave_each_byte_as_it_is(steps: int) -> None:
    """In steps that are small beside those of the other operand: with few of them the result is
    that operand, with more it is another function of it. Weights of 16 bits have neighbours whose
    reciprocal is nearer to the factor, so that it does not say which weight it is."""
    network = RandomNetwork(1, (1, 1, 3, 8), signed=True)
    source = network._value((1, 1, 3, 8), 6.457, 127)
    network._inputs, network.values = [source], [source]
    values = np.full((1, 1, 3, 8), steps - 128, np.int8)
    values[0, 0, 1] += 1
    constant = network._constant(values, (0.01,), -128)
    result = network._value(source.shape, 6.467, 127)
    inputs = (constant, source.index)
    network._operate(BuiltinOperator.ADD, inputs, result, o.AddOptions())
    model = Content(network.finish(), "model.tflite")
    report = compile_model(model, CompileOptions(check=True)).report
    assert report.verdict is Verdict.PROVED, report.headline


@pytest.mark.parametrize("order", [(0, 2, 2, 3), (0, 2, 9, 3)])
def test_a_malformed_operator_has_no_terms(order: tuple[int, ...]) -> None:
    moved = [tensor(0, (1, 3, 2, 2), "i1", 0.02, -128), whole(1, *order)]
    result = tensor(2, (1, 2, 3, 2), "i1", 0.02, -128)
    with pytest.raises(NoTerms, match="malformed"):
        numbers_of(single("TRANSPOSE", [*moved, result], (0, 1), (2,)), drawn((1, 3, 2, 2)))
