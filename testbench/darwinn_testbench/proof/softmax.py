"""Value numbers of the steps of a softmax on the tiles (``darwinn_reference.tflite.softmax``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from darwinn_reference.tflite import softmax
from darwinn_reference.tflite.call import SoftmaxFunctions
from darwinn_reference.tflite.coefficient_tables import CoefficientTable
from darwinn_sim.kernel.field import CONSTANTS
from darwinn_sim.numbering import kernels
from darwinn_sim.units.output_stage import OUTPUT_16BIT, RANGE_REDUCTION, TABLE
from numpy.typing import NDArray

from darwinn_testbench.proof.maxima import Maxima

Elements = NDArray[np.uint64]

_HIGHEST = CONSTANTS - 1


@dataclass(frozen=True)
class Steps:
    """Numbers of what a softmax makes of its values, step by step.

    ``settled`` are the steps of which all programs hold the same constants. The steps ``before``
    have constants that follow from the scale of the values, and may take padding along.
    """

    before: tuple[Elements, ...]
    settled: tuple[Elements, ...]

    @property
    def shares(self) -> Elements:
        """The last step, in one row for each softmax."""
        return self.settled[-1]


def steps(
    numbers: Elements,
    unit: softmax.DifferenceUnit,
    functions: SoftmaxFunctions,
    maxima: Maxima,
) -> Steps:
    """The steps along the last axis; the last ones are bytes."""
    rows = numbers.reshape(-1, numbers.shape[-1])
    greatest = np.repeat(maxima.of(rows), rows.shape[1])
    # 255 less the difference to the greatest.
    differences = _results(
        _sums([rows.reshape(-1), greatest], [1, -1], 0), unit.factor, (0, _HIGHEST, _HIGHEST)
    )
    every = (np.arange(CONSTANTS) - _HIGHEST).astype(np.float32) * unit.scale
    table = softmax.to_16_bits(functions.exponential(every), softmax.EXPONENTIAL_ONE)
    powers = _looked_up(differences, table.astype(np.int32))
    totals = _sums(list(powers.reshape(rows.shape).T), [1] * rows.shape[1], 0)
    root_form = _form_of(functions.inverse_root)
    roots = np.empty_like(totals)
    kernels.results(totals, np.full(totals.size, softmax.EXPONENTIAL_UNIT), root_form, roots)
    squares = _results(
        _products(roots, roots), softmax.EXPONENTIAL_UNIT, (0, softmax.SQUARE_LIMIT, 0)
    )
    products = _products(powers, np.repeat(squares, rows.shape[1]))
    shares = _results(products, softmax.SHARE_FACTOR, (0, _HIGHEST, 0)).reshape(numbers.shape)
    return Steps((differences, powers), (roots, squares, shares))


def _form_of(table: object) -> np.uint64:
    assert isinstance(table, CoefficientTable)
    coefficients = np.ascontiguousarray(table.coefficients.reshape(-1)).view(np.uint32)
    bounds = np.ascontiguousarray(table.lower_bounds).view(np.uint32)
    function = TABLE | RANGE_REDUCTION * table.range_reduction | OUTPUT_16BIT
    symmetry = 2 * table.odd + table.symmetric
    form = kernels.table_form(coefficients, bounds, function, table.low, table.high, symmetry)
    return np.uint64(form)


def _sums(terms: list[Elements], weights: list[int], constant: int) -> Elements:
    parts = np.empty((len(terms), 2, terms[0].size), np.int64)
    for term, part in zip(terms, parts, strict=True):
        kernels.split(np.ascontiguousarray(term), part[0], part[1])
    low, high = (np.array(weights)[:, None, None] * parts).sum(axis=0)
    found = np.empty(terms[0].size, np.uint64)
    kernels.joined(low + constant, high, found)
    return found


def _products(one: Elements, other: Elements) -> Elements:
    found = np.empty(one.size, np.uint64)
    kernels.products(one, 0, other, 0, found)
    return found


def _results(totals: Elements, factor: np.float32, bounds: tuple[int, int, int]) -> Elements:
    found = np.empty(totals.size, np.uint64)
    scales = np.full(totals.size, factor, np.float32)
    kernels.results(totals, scales, np.uint64(kernels.form(*bounds)), found)
    return found


def _looked_up(numbers: Elements, table: NDArray[np.int32]) -> Elements:
    found = np.empty(numbers.size, np.uint64)
    function = np.uint64(kernels.function_of_byte(table))
    kernels.apply(function, table, numbers, found)
    return found
