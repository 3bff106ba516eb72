"""Each rule of rounding, with scales and sums for which its neighbours give another byte.

Scales that are drawn at random seldom tell: two factors that differ by the last bit of a float32
round the same sum to another byte where it is about a tie, one sum in tens of thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from darwinn_reference.tflite.call import CompilerChoices
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.graph import Network, NetworkTensor
from darwinn_reference.tflite.roundings import (
    ADDITION,
    CONSTANT_FACTOR,
    MEAN,
    POOL,
    PRODUCTS,
    REQUANTISATION,
    Neighbour,
    Quantities,
    Rounding,
    values,
)
from numpy.typing import ArrayLike
from one_operator import Array, compute, f32, single, tensor

_DRAWS = 20000
_EXTENTS = (3, 6)
"""An even number of elements has ties."""
_LEVEL = 201
"""A constant, less its zero point."""


@dataclass(frozen=True)
class Case:
    """One operator: its rule, spelled out, and a network in which a sum is ``total``.

    ``totals`` are the sums that may occur.
    """

    rounding: Rounding
    slow: Callable[[np.float32, np.float32, np.float32], np.float32]
    network: Callable[[Quantities, int], tuple[Network, list[Array]]]
    totals: Array
    same_scales: bool = False
    extents: tuple[int, ...] = (1,)


def _byte(number: int) -> Array:
    return np.array([[number]], np.uint8)


def _pair(
    given: Quantities, shape: tuple[int, ...], result: tuple[int, ...], at: int
) -> tuple[NetworkTensor, NetworkTensor]:
    """The input, and the output at index ``at``."""
    return tensor(0, shape, "u1", given.source), tensor(at, result, "u1", given.target)


def dense(given: Quantities, total: int) -> tuple[Network, list[Array]]:
    """The sum is the bias: the input is its zero point."""
    weights = tensor(1, (1, 1), "i1", given.other, constant=np.ones((1, 1), np.int8))
    bias = tensor(2, (1,), "i4", constant=np.array([total], np.int32))
    tensors = [
        tensor(0, (1, 1), "u1", given.source),
        weights,
        bias,
        tensor(3, (1, 1), "u1", given.target),
    ]
    return single("FULLY_CONNECTED", tensors, (0, 1, 2), (3,)), [_byte(0)]


def scaled(given: Quantities, total: int) -> tuple[Network, list[Array]]:
    constant = tensor(1, (1,), "u1", given.other, constant=given.levels.astype(np.uint8))
    tensors = [
        tensor(0, (1, 1), "u1", given.source),
        constant,
        tensor(2, (1, 1), "u1", given.target),
    ]
    return single("MUL", tensors, (0, 1), (2,)), [_byte(total)]


def requantised(given: Quantities, total: int) -> tuple[Network, list[Array]]:
    return single("QUANTIZE", _pair(given, (1, 1), (1, 1), 1), (0,), (1,)), [_byte(total)]


def _image(total: int) -> Array:
    """One channel of pixels that add up to ``total``."""
    count = _EXTENTS[0] * _EXTENTS[1]
    low, more = divmod(total, count)
    return (low + (np.arange(count) < more)).astype(np.uint8).reshape(1, *_EXTENTS, 1)


def pooled(given: Quantities, total: int) -> tuple[Network, list[Array]]:
    tensors = [
        tensor(0, (1, *_EXTENTS, 1), "u1", given.source),
        tensor(1, (1, 1, 1, 1), "u1", given.target),
    ]
    options = {"filter_height": _EXTENTS[0], "filter_width": _EXTENTS[1], "padding": "VALID"}
    return single("AVERAGE_POOL_2D", tensors, (0,), (1,), **options), [_image(total)]


def averaged(given: Quantities, total: int) -> tuple[Network, list[Array]]:
    axes = tensor(1, (2,), "i4", constant=np.array([1, 2], np.int32))
    tensors = [
        tensor(0, (1, *_EXTENTS, 1), "u1", given.source),
        axes,
        tensor(2, (1, 1), "u1", given.target),
    ]
    return single("MEAN", tensors, (0, 1), (2,)), [_image(total)]


_N = f32(_EXTENTS[0] * _EXTENTS[1])
_WINDOW = np.arange(255 * int(_N))
CASES: Mapping[str, Case] = {
    "FULLY_CONNECTED": Case(
        PRODUCTS, lambda s, w, out: f32(f32(s * w) * f32(1 / out)), dense, np.arange(2**18)
    ),
    "MUL": Case(
        CONSTANT_FACTOR,
        lambda s, w, out: f32(f32(s * f32(f32(_LEVEL) * w)) * f32(1 / out)),
        scaled,
        np.arange(256),
    ),
    "QUANTIZE": Case(
        REQUANTISATION, lambda s, w, out: f32(s * f32(1 / out)), requantised, np.arange(256)
    ),
    "AVERAGE_POOL_2D": Case(
        POOL,
        lambda s, w, out: f32(f32(s * f32(1 / _N)) * f32(1 / s)),
        pooled,
        _WINDOW,
        same_scales=True,
        extents=_EXTENTS,
    ),
    "MEAN": Case(
        MEAN, lambda s, w, out: f32(f32(s / out) / _N), averaged, _WINDOW, extents=_EXTENTS
    ),
}


def _quantities(case: Case, source: np.float32, other: np.float32, out: ArrayLike) -> Quantities:
    levels = np.array([_LEVEL])
    output = tensor(0, (), "u1", out)
    return Quantities(source, output, np.atleast_1d(other), levels, case.extents)


def drawn(case: Case) -> Iterator[Quantities]:
    """Scales with which the greatest sum comes to a byte."""
    generator = np.random.default_rng(5)
    for _ in range(_DRAWS):
        source, other = (f32(each) for each in generator.uniform(0.01, 1, 2))
        (unit,) = values(case.rounding.formula, _quantities(case, source, other, 1.0))
        out = unit * case.totals[-1] / generator.uniform(100, 250)
        yield _quantities(case, source, other, source if case.same_scales else out)


def telling(case: Case, neighbour: Neighbour) -> tuple[Quantities, int]:
    """Scales and a sum of which the rule and its neighbour make two bytes."""
    for given in drawn(case):
        mine, other = (values(each.formula, given) for each in (case.rounding, neighbour))
        if mine != other:
            sums = case.totals.astype(np.float32)
            apart = np.flatnonzero(np.rint(sums * mine) != np.rint(sums * other))
            if len(apart):
                return given, int(case.totals[apart[0]])
    raise AssertionError(f"no scales tell {neighbour.text} apart")


PAIRS = [
    pytest.param(name, each, id=f"{name} not {each.text}")
    for name, case in CASES.items()
    for each in case.rounding.neighbours
]


@pytest.mark.parametrize(("name", "neighbour"), PAIRS)
def test_a_rule_and_not_its_neighbour_decides_the_byte(name: str, neighbour: Neighbour) -> None:
    case = CASES[name]
    given, total = telling(case, neighbour)
    network, inputs = case.network(given, total)
    factor = case.slow(given.source, f32(given.other[0]), given.target)
    assert compute(network, *inputs).item() == round(float(f32(f32(total) * factor)))


(ELDER,) = (each for each in POOL.neighbours if each.elder)


@pytest.mark.parametrize(
    ("name", "neighbour", "assumes"),
    [("QUANTIZE", REQUANTISATION.open_against[0], True), ("AVERAGE_POOL_2D", ELDER, False)],
)
def test_the_program_decides_between_rules_of_which_files_show_neither_or_both(
    name: str, neighbour: Neighbour, assumes: bool
) -> None:
    case = CASES[name]
    given, total = telling(case, neighbour)
    network, inputs = case.network(given, total)
    mine, other = (float(values(each.formula, given)[0]) for each in (case.rounding, neighbour))
    results = [round(float(f32(f32(total) * f32(factor)))) for factor in (mine, other)]
    for held, expected, assumed in (
        ((), results[0], assumes),
        ((mine,), results[0], False),
        ((other,), results[1], False),
        ((mine, other), results[0], False),
    ):
        found = ChipArithmetic(network, CompilerChoices(factors=frozenset(held))).run(inputs)
        assert found[network.outputs[0]].item() == expected
        assert (0 in found.assumed) is assumed


def test_additions_by_the_rule_and_not_its_neighbours() -> None:
    """Weights of 15 bits and sums of 23 leave few ties: the factor is compared itself."""
    generator = np.random.default_rng(3)
    left = {each.text for each in ADDITION.neighbours}
    for first, second, out in generator.uniform(0.01, 1, (400, 3)).astype(f32):
        given = Quantities(first, tensor(0, (), "u1", out), np.atleast_1d(second))
        weight, _ = given.weights
        mine = values(ADDITION.formula, given)
        assert mine == f32(f32(first / weight) * f32(1 / out))
        left -= {e.text for e in ADDITION.neighbours if values(e.formula, given) != mine}
    assert left <= {"weights of at most 32766"}
