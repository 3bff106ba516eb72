"""L2 normalisation: in steps that two real programs show, and what they compute is the function.

There is no model before compilation of them. Their chain of instructions has one meaning only: the
factor of the sum is s^2, the table 65535 s / sqrt, and the factor of the product 128 / 65535.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from darwinn_reference.tflite.coefficient_tables import (
    coefficient_tables,
    compiler_choices,
)
from darwinn_reference.tflite.roundings import (
    UNIT_VECTOR,
    Field,
    Neighbour,
    Quantities,
    values,
)
from darwinn_sim.machine.examine import Tap
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.chip.session import Session
from one_operator import Array, compute, f32, single, tensor
from rounding_evidence import held

_LENGTH = 128
_ONE = 65535
PROGRAMS = (
    ("function_7_v1", 62, 0x3CDF2188, 140),
    ("function_7_v4", 194, 0x3CC04AB9, 123),
)
"""Name, layer of the vector, bits of its scale, its zero point."""


def normalised(vectors: Array, scale: np.float32, zero_point: int, **choices: object) -> Array:
    tensors = [
        tensor(0, vectors.shape, "u1", scale, zero_point),
        tensor(1, vectors.shape, "u1", 1 / 128, 128),
    ]
    return compute(single("L2_NORMALIZATION", tensors, (0,), (1,)), vectors, **choices)


def test_vectors_come_to_length_1_in_two_roundings() -> None:
    """Spelled out: the reciprocal root in 16 bits, then the product, for all of one scale."""
    generator = np.random.default_rng(4)
    spread = generator.choice([1, 5, 60], (300, 1))
    values = np.clip(generator.normal(0, spread, (300, 8)).round(), -128, 127).astype(int)
    found = normalised((values + 128).astype(np.uint8), f32(0.3), 128).astype(int) - 128
    scale, unit = f32(0.3), f32(f32(1) / f32(0.3)) / f32(_ONE)
    factor = f32(f32(scale * unit) * f32(128))
    at_once = 0
    for vector, result in zip(values.tolist(), found.tolist(), strict=True):
        root = min(round(_ONE / max(sum(v * v for v in vector), 1) ** 0.5), _ONE)
        products = [round(float(f32(v * root) * factor)) for v in vector]
        assert result == [min(max(each, -128), 127) for each in products]
        length = max(np.linalg.norm(vector), 1)
        at_once += result == [min(max(round(v / length * 128), -128), 127) for v in vector]
    # Of long vectors the root has few steps: rounded once the result is another.
    assert at_once < len(values)


def _bytes_of(words: Array) -> Array:
    """The bytes of a layer's words in the order of their addresses, as one row."""
    return np.sort(words, order="address")["word"].copy().view(np.uint8)[None]


def _float(bits: int) -> np.float32:
    return f32(np.array(bits, np.uint32).view(f32).item())


def tapped(model: BoundModel, layer: int) -> Iterator[tuple[Array, Array]]:
    """The vector of a layer and the normalised one, which the layer after the next writes."""
    session = Session(model, lifts=False)
    for inputs in random_inputs(model.ports, seed=3, runs=2):
        result = session.infer(inputs, taps=[Tap(layer=layer), Tap(layer=layer + 2)]).result
        vector, found = (_bytes_of(each.data) for each in result.tapped)
        yield vector, found


@pytest.mark.parametrize(("name", "layer", "bits", "zero_point"), PROGRAMS)
def test_programs_normalise_byte_for_byte(
    wild2: Path, name: str, layer: int, bits: int, zero_point: int
) -> None:
    (model,) = open_models(wild2 / "darwinn" / f"{name}_edgetpu.tflite")
    choices = compiler_choices(model.compiled.inference)
    scale = _float(bits)
    for vectors, found in tapped(model, layer):
        expected = normalised(vectors, scale, zero_point, functions=choices.functions)
        assert np.array_equal(found, expected)
        lengths = np.linalg.norm(found.astype(float) - 128, axis=-1)
        assert np.abs(lengths - 128).max() < 3


@pytest.mark.parametrize(("name", "layer", "bits", "zero_point"), PROGRAMS)
def test_the_table_is_the_reciprocal_root_of_every_sum(
    wild2: Path, name: str, layer: int, bits: int, zero_point: int
) -> None:
    (model,) = open_models(wild2 / "darwinn" / f"{name}_edgetpu.tflite")
    (table,) = coefficient_tables(model.compiled.inference)
    scale = _float(bits)
    sums = np.unique(np.geomspace(1, _LENGTH * 255**2, 20000).round())
    values = table(sums.astype(f32) * (scale * scale))
    assert table.range_reduction
    assert np.abs(values * np.sqrt(sums) / _ONE - 1).max() < 2e-6


@pytest.mark.parametrize("neighbour", UNIT_VECTOR.neighbours, ids=lambda each: each.text)
def test_programs_hold_the_factor_of_the_rule(wild2: Path, neighbour: Neighbour) -> None:
    apart = set()
    for name, _, bits, _ in PROGRAMS:
        program = held(wild2 / "darwinn" / f"{name}_edgetpu.tflite")
        given = Quantities(_float(bits), tensor(0, (), "u1", 1 / 128))
        rule, other = (values(each.formula, given) for each in (UNIT_VECTOR, neighbour))
        assert program.has(Field.FACTOR, rule, rule)
        if not program.has(Field.FACTOR, other, other):
            apart.add(name)
    assert apart == set(neighbour.told_apart_by)
