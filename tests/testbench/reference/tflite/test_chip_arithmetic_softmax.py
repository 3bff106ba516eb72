"""The softmax of the tiles: each 16-bit step equals a slow one, and near ties of real programs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats import darwinn
from darwinn_reference.tflite.call import CompilerChoices, SoftmaxFunctions
from darwinn_reference.tflite.coefficient_tables import (
    CoefficientTable,
    coefficient_tables,
    compiler_choices,
)
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.report import Verdict
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from one_operator import Array, byte_types, compute, f32, single, tensor

SMALL = "mobilenet_v1_0.25_128_quant"
LSTM = "keras_lstm_mnist_ptq"


def exponential(x: Array) -> Array:
    return (65535 * np.exp(x.astype(np.float64))).astype(np.float32)


def inverse_root(x: Array) -> Array:
    return (46340 / np.sqrt(x.astype(np.float64))).astype(np.float32)


FUNCTIONS = SoftmaxFunctions(exponential, inverse_root)


def slow_softmax(row: list[int], scale: np.float32) -> list[int]:
    powers = [
        min(round(float(exponential(np.array(f32(value - max(row)) * scale)))), 65535)
        for value in row
    ]
    total = f32(sum(powers)) * f32(1 / 65535)
    root = min(round(float(inverse_root(np.array(total)))), 65535)
    square = min(round(float(f32(root * root) * f32(1 / 65535))), 32768)
    factor = f32(1 / 46340) * f32(1 / 46340) * f32(256)
    return [min(round(float(f32(power * square) * factor)), 255) for power in powers]


@given(st.data(), byte_types, st.floats(2**-6, 1, width=32), st.sampled_from([1.0, 0.5]))
def test_each_step_rounds_to_16_bits(
    data: st.DataObject, kind: str, scale: float, beta: float
) -> None:
    values = data.draw(hnp.arrays(kind, (2, 40)))
    lowest = int(np.iinfo(kind).min)
    tensors = [tensor(0, (2, 40), kind, scale, 3), tensor(1, (2, 40), kind, 1 / 256, lowest)]
    network = single("SOFTMAX", tensors, (0,), (1,), beta=beta)
    result = compute(network, values, softmax=FUNCTIONS)
    ideal = compute(network, values)
    for row, found in zip(values.tolist(), result.tolist(), strict=True):
        expected = slow_softmax(row, f32(beta) * f32(scale))
        assert found == [byte + lowest for byte in expected]
    assert np.abs(result.astype(int) - ideal.astype(int)).max() <= 1


@given(
    hnp.arrays("f4", (8, 5), elements=st.floats(-4, 4, width=32)),
    st.lists(st.floats(2**-20, 2**20, width=32), min_size=1, max_size=9),
)
def test_range_reduction_halves_the_value_for_each_power_of_4(
    coefficients: Array, arguments: list[float]
) -> None:
    bounds = np.linspace(1.25, 3.5, 7).astype(np.float32)
    infinity = f32(np.inf)
    table = CoefficientTable(coefficients, bounds, -infinity, infinity, range_reduction=True)
    plain = CoefficientTable(coefficients, bounds, -infinity, infinity)
    for x, found in zip(arguments, table(np.array(arguments, f32)), strict=True):
        power = math.floor(math.log2(x) / 2)
        while not 1 <= x / 4.0**power < 4:
            power += 1 if x / 4.0**power >= 4 else -1
        reduced = np.array([x / 4.0**power], f32)
        assert found == plain(reduced)[0] * f32(2.0**-power)


@pytest.mark.parametrize("name", [SMALL, LSTM, "bright_16x16"])
def test_the_functions_of_a_program_are_taken(corpus: Path, name: str) -> None:
    executable = darwinn.load(corpus / "darwinn" / f"{name}_edgetpu.tflite").models[0].inference
    functions = compiler_choices(executable).softmax
    assert functions is not None
    x = np.linspace(-12, 0, 1001).astype(np.float32)
    assert np.abs(functions.exponential(x) - exponential(x)).max() < 1
    total = np.geomspace(1, 4000, 1001).astype(np.float32)
    assert np.abs(functions.inverse_root(total) - inverse_root(total)).max() < 1


def test_the_scalar_core_s_softmax_has_no_tables(corpus: Path) -> None:
    file = darwinn.load(corpus / "darwinn" / f"{SMALL}_2019_edgetpu.tflite")
    assert compiler_choices(file.models[0].inference).softmax is None
    assert not list(coefficient_tables(file.models[0].inference))
    assert CompilerChoices().softmax is None


@pytest.mark.parametrize(("name", "verdict"), [(SMALL, Verdict.PROVED), (LSTM, Verdict.PASS)])
def test_near_ties_round_as_the_chip_s_steps_do(corpus: Path, name: str, verdict: Verdict) -> None:
    """Inputs with shares of 0.4996 and 1.5014 of 256, which the steps put on the other side."""
    files = (corpus / "darwinn" / f"{name}_edgetpu.tflite", corpus / "tflite" / f"{name}.tflite")
    report = verify(*files, runs=15, seed=77)
    assert report.verdict is verdict, report.message
