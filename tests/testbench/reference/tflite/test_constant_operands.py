"""Additions and multiplications by constants against the rule, element by element."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_reference.tflite import constant_operands
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.report import Verdict
from hypothesis import given
from hypothesis import strategies as st
from one_operator import compute, f32, scales, single, slow_factor, slow_output, tensor, zero_points

CHANNELS = 5
kinds = st.sampled_from(["ADD", "SUB", "MUL"])
constant_shapes = st.sampled_from([(), (1,), (1, 1, 1), (CHANNELS,), (1, 1, CHANNELS)])


@given(kinds, constant_shapes, st.booleans(), st.tuples(scales, scales, scales), st.data())
def test_constants_of_a_channel_are_factors_and_biases(
    kind: str,
    shape: tuple[int, ...],
    constant_first: bool,
    three: tuple[float, float, float],
    data: Any,
) -> None:
    dtype = data.draw(st.sampled_from(["u1", "i1"]))
    points = [data.draw(zero_points(dtype)) for _ in range(3)]
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    limits = np.iinfo(dtype)
    value = generator.integers(limits.min, limits.max, (2, 3, CHANNELS), endpoint=True).astype(
        dtype
    )
    constant = generator.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)
    tensors = [
        tensor(0, value.shape, dtype, three[0], points[0]),
        tensor(1, shape, dtype, three[1], points[1], constant),
        tensor(2, value.shape, dtype, three[2], points[2]),
    ]
    order = (1, 0) if constant_first else (0, 1)
    result = compute(single(kind, tensors, order, (2,)), value)
    every = np.broadcast_to(constant, value.shape)
    signs = {"ADD": (1, 1), "MUL": (1, 1)}.get(kind, (-1, 1) if constant_first else (1, -1))
    for place, byte in np.ndenumerate(value):
        term = int(byte) - points[0]
        real = f32(f32(int(every[place]) - points[1]) * f32(three[1]))
        if kind == "MUL":
            expected = slow_output(term, slow_factor(three[0], float(real), tensors[2]), tensors[2])
        else:
            steps = float(f32(three[1])) / float(f32(three[0]))
            bias = round((int(every[place]) - points[1]) * steps)
            total = signs[0] * term + signs[1] * bias
            expected = slow_output(total, slow_factor(three[0], 1, tensors[2]), tensors[2])
        assert result[place] == expected


def test_a_constant_of_all_positions_is_a_tensor_as_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(constant_operands, "product")
    tensors = [
        tensor(0, (2, 3, 4), "u1", 0.5),
        tensor(1, (2, 3, 1), "u1", 0.5, 0, np.full((2, 3, 1), 3, np.uint8)),
        tensor(2, (2, 3, 4), "u1", 0.5),
    ]
    compute(single("MUL", tensors, (0, 1), (2,)), np.ones((2, 3, 4), np.uint8))


def test_a_batch_normalisation_of_a_real_network(wild: Path) -> None:
    """A MUL and an ADD by 128 constants, which are its scales and biases to the bit."""
    name = "classifier_2022"
    source = wild / "darwinn" / f"{name}_edgetpu.tflite"
    report = verify(source, wild / "tflite" / f"{name}.tflite", runs=3, layers=True)
    assert report.verdict is Verdict.PROVED
    rows = [row for row in report.figures["tensors"] if row.operator in ("MUL", "ADD")]
    assert [row.finding for row in rows] == ["equal"] * 6
