"""What the host does beside the chip equals slow rules, and LiteRT to the last byte."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats.tflite import BuiltinOperator
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_testbench.comparison.verify import verify
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from one_operator import Array, compute, f32, scales, single, tensor
from tiny_models import both, tiny_model

_TYPES = st.sampled_from(["u1", "i1", "i2"])


@given(st.data(), _TYPES, scales, hnp.arrays("f4", 8, elements=st.floats(-600, 600, width=32)))
def test_floats_are_quantised_with_halves_away_from_zero(
    data: st.DataObject, kind: str, scale: float, values: Array
) -> None:
    zero_point = 0 if kind == "i2" else data.draw(st.integers(0, 127))
    halves = (f32(scale) * np.array([-2.5, -0.5, 0.5, 1.5, 2.5], f32)).astype(f32)
    values = np.concatenate([values, halves])
    tensors = [tensor(0, values.shape, "f4"), tensor(1, values.shape, kind, scale, zero_point)]
    limits = np.iinfo(kind)
    for value, found in zip(
        values, compute(single("QUANTIZE", tensors, (0,), (1,)), values).tolist(), strict=True
    ):
        ratio = float(f32(value) / f32(scale))
        level = math.copysign(math.floor(abs(ratio) + 0.5), ratio) + zero_point
        assert found == min(max(level, limits.min), limits.max)


def test_what_is_no_number_is_quantised_to_the_least_value() -> None:
    tensors = [tensor(0, (3,), "f4"), tensor(1, (3,), "i1", 0.5, 3)]
    values = np.array([np.nan, np.inf, -np.inf], f32)
    assert compute(single("QUANTIZE", tensors, (0,), (1,)), values).tolist() == [-128, 127, -128]


@pytest.mark.parametrize("kind", ["u1", "i1", "i2"])
def test_the_way_in_and_out_equals_litert(kind: str) -> None:
    zero_point = 0 if kind == "i2" else 11
    values = np.random.default_rng(3).normal(0, 20, 4096).astype(f32)
    values[:1024] = (np.arange(1024) - 512) * f32(0.05)
    whole, bytes_ = tensor(0, (4096,), "f4"), tensor(1, (4096,), kind, 0.1, zero_point)
    model = tiny_model(BuiltinOperator.QUANTIZE, [whole, bytes_], (0,), (1,))
    chip, litert = both(model, values)
    assert np.array_equal(chip[1], litert[1])
    model = tiny_model(
        BuiltinOperator.DEQUANTIZE,
        [tensor(0, (4096,), kind, 0.1, zero_point), tensor(1, (4096,), "f4")],
        (0,),
        (1,),
    )
    back, expected = both(model, chip[1])
    assert np.array_equal(back[1], expected[1])


@pytest.mark.parametrize(
    ("name", "tensors", "inputs", "expected"),
    [
        ("CAST", [("u1", (2,)), ("f4", (2,))], [[0, 255]], [0.0, 255.0]),
        ("SQRT", [("f4", (2,)), ("f4", (2,))], [[4, 2]], [2.0, float(np.sqrt(f32(2)))]),
        ("ADD", [("f4", (2,)), ("f4", (2,)), ("f4", (2,))], [[1, 2], [3, 4]], [4, 6]),
        ("SUB", [("i4", (2,)), ("i4", (1,)), ("i4", (2,))], [[1, 2], [3]], [-2, -1]),
        ("MUL", [("i4", (2,)), ("i4", (1,)), ("i4", (2,))], [[1, 2], [3]], [3, 6]),
        ("DIV", [("f4", (2,)), ("f4", (1,)), ("f4", (2,))], [[1, 3], [2]], [0.5, 1.5]),
        ("FLOOR_DIV", [("i4", (2,)), ("i4", (1,)), ("i4", (2,))], [[-7, 7], [2]], [-4, 3]),
        ("GATHER", [("u1", (3,)), ("i4", (2,)), ("u1", (2,))], [[5, 6, 7], [2, 0]], [7, 5]),
        ("SHAPE", [("f4", (2, 3)), ("i4", (2,))], [np.zeros((2, 3))], [2, 3]),
        (
            "GATHER_ND",
            [("u1", (3,)), ("i4", (2, 1)), ("u1", (2,))],
            [[5, 6, 7], [[1], [1]]],
            [6] * 2,
        ),
    ],
)
def test_numbers_and_indices(
    name: str, tensors: list[tuple[str, tuple[int, ...]]], inputs: list[Any], expected: list[Any]
) -> None:
    made = [tensor(k, shape, kind) for k, (kind, shape) in enumerate(tensors)]
    network = single(name, made, range(len(inputs)), (len(inputs),))
    values = [np.array(v, each.dtype) for v, each in zip(inputs, made, strict=False)]
    assert compute(network, *values).tolist() == expected


@pytest.mark.parametrize(
    ("name", "inputs", "reason"),
    [
        ("CAST", [[2.0**40]], "does not hold"),
        ("FLOOR_DIV", [[1], [0]], "division by zero"),
        ("DIV", [[1], [2]], "numbers"),
        ("GATHER", [[1], [7]], "beyond the tensor"),
    ],
)
def test_what_has_no_one_result_is_refused(name: str, inputs: list[Any], reason: str) -> None:
    kinds = ["f4"] if name == "CAST" else ["i4", "i4"]
    made = [tensor(k, (1,), kind) for k, kind in enumerate([*kinds, "i4"])]
    network = single(name, made, range(len(kinds)), (len(kinds),))
    values = [np.array(v, kind) for v, kind in zip(inputs, kinds, strict=True)]
    assert reason in ChipArithmetic(network).run(values).missing[len(kinds)]


def test_a_network_of_float_inputs_equals_the_chip_on_every_byte(wild: Path) -> None:
    name = "yamnet_spectra_in"
    compiled, model = (
        wild / "darwinn" / f"{name}_edgetpu.tflite",
        wild / "tflite" / f"{name}.tflite",
    )
    # What the chip gives, and what the CPU makes of it.
    rows = verify(compiled, model, runs=1).rows
    assert len(rows) == 2
    for row in rows:
        assert row.chip_arithmetic is not None
        assert row.chip_arithmetic.differing == 0
