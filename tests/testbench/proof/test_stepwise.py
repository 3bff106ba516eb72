"""Numbers of operators that programs compute in several steps, or by a table of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from darwinn_reference.tflite.call import CompilerChoices, ScaledFunction
from darwinn_reference.tflite.coefficient_tables import CoefficientTable
from darwinn_reference.tflite.factors import root_unit
from darwinn_reference.tflite.graph import Network
from darwinn_testbench.compiler.stages.tables import table_of
from darwinn_testbench.proof.terms import Elements, NoTerms
from hypothesis import given, settings
from hypothesis import strategies as st
from one_operator import byte_types, f32, single, tensor
from operator_cases import UNKNOWN
from operator_numbers import assert_same_classes, drawn_numbers, numbers_of
from slow_forms import Operands


def parabola(scale: float) -> CoefficientTable:
    """The table of a program that squares into this unit."""
    coefficients = np.full((8, 5), 1 / f32(scale), np.float32)
    coefficients[1] = 0, 0, 1 / f32(scale), 0, 0
    bounds = np.full(7, np.inf, np.float32)
    bounds[0] = np.finfo(np.float32).min
    return CoefficientTable(coefficients, bounds, f32(-np.inf), f32(np.inf))


def root(scale: np.float32) -> ScaledFunction:
    """The table of a program that makes the reciprocal root of a sum of squares."""
    amplitude = 1 / float(root_unit(scale))
    table = table_of("inverse root", amplitude)
    coefficients, bounds = table.coefficients, table.bounds
    ends = scale * scale, f32(np.inf)
    found = CoefficientTable(coefficients, bounds, *ends, range_reduction=True)
    return ScaledFunction(amplitude, found)


def choices_of(network: Network) -> CompilerChoices:
    scale = float(network.tensors[network.outputs[0]].scale[0])
    return CompilerChoices(
        parabolas={float(1 / f32(scale)): parabola(scale)},
        functions={"rsqrt": (root(network.tensors[0].scale[0]),)},
    )


@pytest.mark.parametrize("name", UNKNOWN)
@settings(max_examples=settings().max_examples // 4)
@given(seed=st.integers(0, 2**32 - 1), kind=byte_types)
def test_equal_numbers_are_equal_functions(name: str, seed: int, kind: str) -> None:
    """Also beside the same operator with another scale of an operand."""
    random = np.random.default_rng(seed)
    make, slow = UNKNOWN[name]
    network = make(random, kind)
    numbers = drawn_numbers(network, random, known_too=False)
    found, keys = [], []
    for each in (network, _with_scale(network, 0), _with_scale(network, 1)):
        try:
            found += numbers_of(each, numbers, choices=choices_of(each))
        except NoTerms:
            assert each is not network
            continue
        keys += list(slow(Operands(each, numbers)))
    assert_same_classes(found, keys)


def _with_scale(network: Network, index: int) -> Network:
    tensors = list(network.tensors)
    tensors[index] = replace(tensors[index], scale=tensors[index].scale * f32(1.25))
    return replace(network, tensors=tuple(tensors))


def refused(network: Network, numbers: dict[int, Elements], choices: CompilerChoices) -> str:
    with pytest.raises(NoTerms) as caught:
        numbers_of(network, numbers, choices=choices)
    return str(caught.value)


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_no_program_shows_has_no_rule(name: str) -> None:
    """Constants, and a table that is not there."""
    random = np.random.default_rng(0)
    network = UNKNOWN[name][0](random, "u1")
    numbers = drawn_numbers(network, random, known_too=False)
    numbers[0].flat[0] = 7
    assert "constant" in refused(network, numbers, choices_of(network))
    numbers = drawn_numbers(network, random, known_too=False)
    assert "no table" in refused(network, numbers, CompilerChoices())


def test_slopes_of_elements_have_no_rule() -> None:
    slopes = np.ones((2, 3, 2), np.int8)
    tensors = [
        tensor(0, (1, 2, 3, 2), "i1", 0.5),
        tensor(1, slopes.shape, "i1", 0.5, constant=slopes),
        tensor(2, (1, 2, 3, 2), "i1", 0.5),
    ]
    network = single("PRELU", tensors, (0, 1), (2,))
    numbers = drawn_numbers(network, np.random.default_rng(0))
    assert "slopes" in refused(network, numbers, CompilerChoices())
