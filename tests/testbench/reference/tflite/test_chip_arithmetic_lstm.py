"""The LSTM equals a slow scalar loop over time steps and cells, and keeps its state."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.graph import ABSENT, Network, NetworkTensor
from hypothesis import given, settings
from hypothesis import strategies as st
from one_operator import Array, f32, single, slow_factor, slow_output, tensor

BATCH, STEPS, FEATURES, CELLS = 2, 3, 4, 3
CELL_SCALE, OUTPUT_SCALE, OUTPUT_ZERO = 2.0**-12, 0.0078, -1
OUTPUT = 20


def lstm(generator: np.random.Generator, **options: Any) -> tuple[Network, Array]:
    def weights(index: int, columns: int) -> NetworkTensor:
        values = generator.integers(-127, 128, (CELLS, columns)).astype(np.int8)
        return tensor(index, values.shape, "i1", generator.uniform(0.002, 0.02), 0, values)

    def bias(index: int) -> NetworkTensor:
        values = generator.integers(-5000, 5000, CELLS).astype(np.int32)
        return tensor(index, values.shape, "i4", constant=values)

    tensors = [
        tensor(0, (BATCH, STEPS, FEATURES), "i1", 0.01, -20),
        *(weights(k, FEATURES) for k in range(1, 5)),
        *(weights(k, CELLS) for k in range(5, 9)),
        *(bias(k) for k in range(9, 13)),
        tensor(13, (BATCH, CELLS), "i1", OUTPUT_SCALE, OUTPUT_ZERO, variable=True),
        tensor(14, (BATCH, CELLS), "i2", CELL_SCALE, 0, variable=True),
        tensor(15, (BATCH, STEPS, CELLS), "i1", OUTPUT_SCALE, OUTPUT_ZERO),
    ]
    absent = [ABSENT] * 3
    inputs = [*range(9), *absent, *range(9, 13), ABSENT, ABSENT, 13, 14, *[ABSENT] * 4]
    defaults = {"fused_activation_function": "TANH", "cell_clip": 10.0}
    network = single("UNIDIRECTIONAL_SEQUENCE_LSTM", tensors, inputs, (15,), **defaults | options)
    sequence = generator.integers(-128, 128, tensors[0].shape).astype(np.int8)
    return network, sequence


def slow_lstm(network: Network, sequence: Array, clip: float) -> tuple[Array, Array, Array]:
    tensors = network.tensors
    gate_unit, candidate_unit, wide_unit = f32(1 / 255), f32(2 / 255), f32(2 / 32767)
    hidden = np.full((BATCH, CELLS), OUTPUT_ZERO)
    cell = np.zeros((BATCH, CELLS), int)
    result = np.zeros((BATCH, STEPS, CELLS), int)
    wide = tensor(0, (), "i2", float(wide_unit))
    for batch, step in np.ndindex(BATCH, STEPS):
        before = hidden[batch].copy()
        for c in range(CELLS):
            sums = []
            for gate in range(4):
                bias = tensors[9 + gate].constant
                assert bias is not None
                fed = int(bias[c]) + dot(tensors[1 + gate], c, sequence[batch, step], -20)
                back = dot(tensors[5 + gate], c, before, OUTPUT_ZERO)
                scales = [float(tensors[k + gate].scale[0]) for k in (1, 5)]
                first = slow_output(fed, slow_factor(0.01, scales[0], tensors[15]), tensors[15])
                factor = slow_factor(OUTPUT_SCALE, scales[1], tensors[15])
                second = slow_output(back, factor, tensors[15])
                sums.append(float(f32(first + second - 2 * OUTPUT_ZERO) * f32(OUTPUT_SCALE)))
            i, f, o = (rounded(1 / (1 + math.exp(-sums[k])), gate_unit) for k in (0, 1, 3))
            g = rounded(math.tanh(sums[2]), candidate_unit)
            gated = slow_output(
                i * g, f32(f32(gate_unit * candidate_unit) * (f32(1) / wide_unit)), wide
            )
            factor = f32(f32(gate_unit * f32(CELL_SCALE)) * f32(2.0**12))
            kept = slow_output(f * int(cell[batch, c]), factor, tensors[14])
            # The scales of the two have the ratio 8192 to 32767 exactly.
            total = 8192 * gated + 32767 * kept
            share = f32(wide_unit / f32(8192))
            real = float(f32(total) * share)
            t = rounded(math.tanh(min(max(real, -clip), clip)), wide_unit)
            new = slow_output(total, f32(share * f32(2.0**12)), tensors[14])
            steps = round(clip / CELL_SCALE)
            cell[batch, c] = min(max(new, -steps), steps)
            factor = slow_factor(float(gate_unit), float(wide_unit), tensors[15])
            hidden[batch, c] = slow_output(o * t, factor, tensors[15])
        result[batch, step] = hidden[batch]
    return result, hidden, cell


def dot(weights: NetworkTensor, row: int, vector: Array, zero_point: int) -> int:
    matrix = weights.constant
    assert matrix is not None
    return sum(
        int(w) * (int(x) - zero_point) for w, x in zip(matrix[row], vector.tolist(), strict=True)
    )


def rounded(value: float, unit: np.float32) -> int:
    return round(value / float(unit))


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([10.0, 1.0, 0.25]))
def test_lstm(seed: int, clip: float) -> None:
    """A bound within the range of the cell, which is 8, is an assumption."""
    network, sequence = lstm(np.random.default_rng(seed), cell_clip=clip)
    values = ChipArithmetic(network).run([sequence])
    result, hidden, cell = slow_lstm(network, sequence, clip)
    assert bool(values.assumed) == (clip < 10)
    assert np.array_equal(values[15], result)
    assert np.array_equal(values[13], hidden)
    assert np.array_equal(values[14], cell)


def test_state_that_is_given_back_continues_the_sequence() -> None:
    network, sequence = lstm(np.random.default_rng(7))
    chip = ChipArithmetic(network)
    first = chip.run([sequence])
    second = chip.run([sequence], given={13: first[13], 14: first[14]})
    again = chip.run([sequence])
    assert np.array_equal(first[15], again[15])
    assert not np.array_equal(first[15], second[15])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"fused_activation_function": "NONE"}, "activation NONE"),
        ({"fused_activation_function": "RELU"}, "activation RELU"),
    ],
)
def test_other_forms_are_refused(options: dict[str, Any], reason: str) -> None:
    network, sequence = lstm(np.random.default_rng(0), **options)
    values = ChipArithmetic(network).run([sequence])
    assert {13, 14, 15} == set(values.missing)
    assert reason in values.missing[15]
