"""The XNNPACK delegate: against stored results of the original, slow loops, and what is refused."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import nightly
import numpy as np
import pytest
from darwinn_formats import executorch
from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_formats.executorch.xnnpack import schema
from darwinn_formats.executorch.xnnpack.schema import NO_VALUE, Datatype
from darwinn_reference.errors import Unsupported
from darwinn_reference.executorch import ExecutorchReference
from darwinn_reference.executorch.original import unavailable
from darwinn_reference.executorch.xnnpack import OPERATIONS
from darwinn_testbench.comparison.compare import compare
from darwinn_testbench.policy import NAMED, FloatTolerance, Policy
from numpy.typing import NDArray
from xnnpack_cases import NODES, Case, cases
from xnnpack_expected import Originals, stored
from xnnpack_graphs import GraphBuilder

FP32, QINT8, QUINT8 = Datatype.FP32, Datatype.QINT8, Datatype.QUINT8
Array = NDArray[Any]

STORED = list(stored())


def run(program: bytes, *inputs: Array) -> Array:
    (output,) = ExecutorchReference(program).run(inputs)
    assert isinstance(output.data, np.ndarray)
    return output.data


APPROXIMATED = (
    *(
        "AvgPooling2d",
        "Cos",
        "ELU",
        "Exp",
        "Gelu",
        "Hardswish",
        "Log",
        "ReciprocalSquareRoot",
        "Sigmoid",
        "Sin",
    ),
    *("Softmax", "SquareRoot", "Tanh"),
)
"""Nodes that XNNPACK approximates in half precision: up to two units in the last place, and what is
near 0 by up to 0.001. Of all others every bit is the original's."""


def policy_of(case: Case, wanted: Array) -> Policy:
    if wanted.dtype.kind != "f":
        return NAMED["exact"]
    if "fp16" not in case.name:
        return NAMED["float32-reassociated"]
    is_near = any(f"{name} " in case.name for name in APPROXIMATED)
    return FloatTolerance(1e-3, 2e-3) if is_near else NAMED["exact"]


def assert_same(case: Case, expected: list[Array]) -> None:
    outputs = ExecutorchReference(case.program).run(case.inputs)
    assert len(outputs) == len(expected)
    for output, wanted in zip(outputs, expected, strict=True):
        found = compare(np.asarray(output.data), wanted, policy_of(case, wanted))
        assert found.passed, f"{case.name}: {found.reason}"


@pytest.mark.parametrize("case, expected", STORED, ids=[case.name for case, _ in STORED])
def test_results_are_those_of_the_original(case: Case, expected: list[Array]) -> None:
    assert_same(case, expected)


def test_every_node_that_can_be_executed_has_stored_results() -> None:
    names = {case.name.split()[1] for case, _ in STORED}
    assert names == {entry.__name__ for entry in OPERATIONS}


@pytest.mark.nightly
@pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "installed")
def test_random_graphs_agree_with_the_original() -> None:
    seed = nightly.nightly_seed() % 2**31
    nightly.note("random graphs of XNNPACK", nightly.CASES, seed)
    original, compared = Originals(), 0
    halves = cases(seed, nightly.CASES // 4, halves=True)
    for case in itertools.chain(cases(seed, nightly.CASES), halves):
        expected = original(case)
        if not isinstance(expected, str):
            assert_same(case, expected)
            compared += 1
    # The original crashes on some.
    assert compared > 0.9 * nightly.CASES


# --- slow and obvious -----------------------------------------------------------------------------


def test_a_quantised_convolution_is_what_loops_over_integers_give() -> None:
    random = np.random.default_rng(5)
    image = random.integers(-128, 128, (1, 5, 6, 4)).astype(np.int8)
    filters = random.integers(-127, 128, (6, 3, 2, 2)).astype(np.int8)
    bias = random.integers(-900, 900, 6).astype(np.int32)
    scales = random.uniform(0.001, 0.01, 6).astype(np.float32)
    graph = GraphBuilder()
    x = graph.input(QINT8, image.shape, (0.0625, -7))
    w = graph.value(
        Datatype.QCINT8,
        filters.shape,
        schema.PerChannelQuant(tuple(map(float, scales)), 0),
        data=filters,
    )
    products = tuple(float(scale * np.float32(0.0625)) for scale in scales)
    b = graph.value(Datatype.QCINT32, (6,), schema.PerChannelQuant(products, 0), data=bias)
    y = graph.output(QINT8, (1, 3, 5, 6), (0.125, 3))
    graph.node(schema.Conv2d(1, 0, 1, 0, 3, 2, 2, 1, 1, 1, 2, 3, 2, 0, 0, x, w, b, y), (-3.0, 9.0))
    expected = np.zeros((1, 3, 5, 6), np.int8)
    for row, column, output in np.ndindex(3, 5, 6):
        total = int(bias[output])
        for i, j, k in np.ndindex(3, 2, 2):
            at = 2 * row - 1 + i
            if 0 <= at < 5:
                pixel = int(image[0, at, column + j, output // 3 * 2 + k]) + 7
                total += pixel * int(filters[output, i, j, k])
        scale = np.float32(0.0625) * scales[output] / np.float32(0.125)
        rounded = int(np.rint(np.float32(total) * scale)) + 3
        expected[0, row, column, output] = max(3 - 24, min(3 + 72, rounded))
    np.testing.assert_array_equal(run(graph.program(), image), expected)


def test_a_sum_rounds_halves_up() -> None:
    graph = GraphBuilder()
    x, y = graph.input(QINT8, (4,), (0.5, 0)), graph.input(QINT8, (4,), (0.5, 0))
    graph.node(schema.Add(x, y, graph.output(QINT8, (4,), (1.0, 0))))
    left, right = np.array([1, 2, -1, -2], np.int8), np.array([0, 1, 0, -1], np.int8)
    assert run(graph.program(), left, right).tolist() == [1, 2, 0, -1]


def test_rows_are_quantised_by_their_own_extremes() -> None:
    graph = GraphBuilder()
    x = graph.input(FP32, (2, 4))
    q = graph.value(Datatype.QDINT8, (2, 4), schema.PerTokenDynamicQuant(1))
    w = graph.value(
        Datatype.QCINT8,
        (4, 4),
        schema.PerChannelQuant((1.0,) * 4, 0),
        data=np.eye(4, dtype=np.int8),
    )
    y = graph.output(FP32, (2, 4))
    graph.node(schema.Convert(x, q))
    graph.node(schema.FullyConnected(q, w, NO_VALUE, y))
    rows = np.array([[0, 1, 2, 2.55], [-127.5, 0, 1, 127.5]], np.float32)
    result = run(graph.program(), rows)
    np.testing.assert_allclose(result[0], rows[0], atol=0.005)
    np.testing.assert_allclose(result[1], [-127.5, 0, 1, 127.5], atol=0.501)
    assert np.unique(np.diff(np.sort(result[1]))).size > 1


def clamped(has_reader: bool) -> bytes:
    """A product and a clamp to another scale; the value between may be an output as well."""
    graph = GraphBuilder()
    x = graph.input(QINT8, (1, 1), (1.0, 0))
    w = graph.value(QINT8, (1, 1), (0.25, 0), data=np.ones((1, 1), np.int8))
    make = graph.output if has_reader else graph.value
    between = make(QINT8, (1, 1), (1.0, 0))
    y = graph.output(QINT8, (1, 1), (0.25, 0))
    graph.node(schema.FullyConnected(x, w, NO_VALUE, between))
    graph.node(schema.Clamp(between, y), (-20.0, 20.0))
    return graph.program()


def test_a_clamp_behind_a_product_spares_one_rounding() -> None:
    given = np.array([[7]], np.int8)
    assert run(clamped(has_reader=False), given).item() == 7
    *_, last = ExecutorchReference(clamped(has_reader=True)).run([given])
    assert np.asarray(last.data).item() == 8


def test_half_bytes_are_read_low_half_first_and_by_row() -> None:
    graph = GraphBuilder()
    x = graph.input(FP32, (1, 3))
    packed = np.array([[0x19, 0x0F], [0x78, 0x08]], np.uint8)
    scales = schema.PerChannelQuant((1.0, 1.0), 0)
    w = graph.value(Datatype.QCINT4, (2, 3), scales, data=packed)
    graph.node(schema.FullyConnected(x, w, NO_VALUE, graph.output(FP32, (1, 2))))
    result = run(graph.program(), np.array([[1, 10, 100]], np.float32))
    assert result.tolist() == [[1 - 70 + 700, 0 - 10 + 0]]


# --- refused --------------------------------------------------------------------------------------


def test_unknown_nodes_types_and_uses_are_refused_all_together() -> None:
    graph = GraphBuilder()
    x, y = graph.input(FP32, (2, 2)), graph.input(QINT8, (2, 2), (1.0, 0))
    attention, z = graph.output(FP32, (2, 2)), graph.output(QINT8, (2, 2), (0.5, 0))
    half = graph.value(Datatype.BF16, (2, 2))
    graph.node(schema.ScaledDotProductAttention(x, x, x, x, x, attention))
    graph.node(schema.Softmax(y, half))
    graph.node(schema.StaticReshape(2, (2, 2), y, z))
    with pytest.raises(Unsupported) as caught:
        ExecutorchReference(graph.program())
    assert str(caught.value).endswith(
        "ScaledDotProductAttention, Softmax of qint8 to bf16, "
        "StaticReshape from one quantisation to another, values of bf16"
    )


def test_other_delegates_are_refused_by_name() -> None:
    file = executorch.load(absolute())
    plan = file.program.execution_plan[0]
    other = replace(plan, delegates=(replace(plan.delegates[0], id="VulkanBackend"),))
    program = replace(file.program, execution_plan=(other,))
    with pytest.raises(Unsupported, match="VulkanBackend"):
        ExecutorchReference(executorch.dump(program, file.segments))


def absolute() -> bytes:
    graph = GraphBuilder()
    graph.node(schema.Abs(graph.input(FP32, (2,)), graph.output(FP32, (2,))))
    return graph.program()


def test_nodes_whose_sizes_do_not_fit_are_named() -> None:
    graph = GraphBuilder()
    x, y = graph.input(FP32, (2, 3)), graph.input(FP32, (2, 2))
    graph.node(schema.Add(x, y, graph.output(FP32, (2, 3))))
    with pytest.raises(ExecutionError, match=r"node 0 Add: .*broadcast"):
        run(graph.program(), np.zeros((2, 3), np.float32), np.zeros((2, 2), np.float32))


def test_sizes_may_change_from_call_to_call() -> None:
    graph = GraphBuilder()
    x = graph.input(FP32, (4, 3))
    y = graph.output(FP32, (4, 3))
    graph.node(schema.Square(x, y))
    file = executorch.load(graph.program())
    plan = file.program.execution_plan[0]
    bound = executorch.schema.TensorShapeDynamism.DYNAMIC_BOUND
    values = tuple(
        replace(value, val=replace(value.val, shape_dynamism=bound))
        if isinstance(value.val, executorch.schema.Tensor)
        else value
        for value in plan.values
    )
    program = replace(file.program, execution_plan=(replace(plan, values=values),))
    reference = ExecutorchReference(executorch.dump(program, file.segments))
    for rows in (4, 2, 3):
        given = np.full((rows, 3), 2, np.float32)
        (output,) = reference.run([given])
        assert np.array_equal(np.asarray(output.data), given * 2)


def test_random_graphs_end_with_results() -> None:
    count = sum(len(types) for _, types in NODES.values())
    for case in itertools.islice(cases(17, 2 * count), count, None):
        for output in ExecutorchReference(case.program).run(case.inputs):
            assert math.prod(np.asarray(output.data).shape) > 0


def test_changed_graphs_run_or_end_with_one_error() -> None:
    random = np.random.default_rng(23)
    ended = 0
    for case, _ in STORED:
        data = bytearray(case.program)
        start, end = data.index(b"XH00"), len(data)
        for _ in range(4):
            changed = bytearray(data)
            for place in random.integers(start, end, 2):
                changed[place] = random.choice([0, 1, 2, 0x7F, 0xFF, int(random.integers(256))])
            try:
                ExecutorchReference(bytes(changed)).run(case.inputs)
            except (FormatError, Unsupported, ExecutionError) as error:
                assert "\n" not in str(error)
                ended += 1
    assert 0 < ended < 4 * len(STORED)


@pytest.mark.parametrize("margin, expected", [(0, [1.0, 100.0]), (1, [300 / 255, 100.0])])
def test_single_pixels_have_a_scale_of_their_own_in_products(
    margin: int, expected: list[float]
) -> None:
    """With a margin the image has one scale, 100 / 255, of which 1 is 2.55."""
    graph = GraphBuilder()
    x = graph.input(FP32, (1, 1, 2, 1))
    q = graph.value(Datatype.QDINT8, (1, 1, 2, 1), schema.PerTokenDynamicQuant(3))
    scales = schema.PerChannelQuant((1.0,), 0)
    w = graph.value(Datatype.QCINT8, (1, 1, 1, 1), scales, data=np.ones((1, 1, 1, 1), np.int8))
    y = graph.output(FP32, (1, 1 + 2 * margin, 2 + 2 * margin, 1))
    graph.node(schema.Convert(x, q))
    sides = (margin, margin, margin, margin)
    graph.node(
        schema.Conv2d(*sides, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, q, w, NO_VALUE, y),
    )
    result = run(graph.program(), np.array([1, 100], np.float32).reshape(1, 1, 2, 1))
    inner = result[0, margin, margin : margin + 2, 0]
    np.testing.assert_allclose(inner, expected, atol=0.001)
