"""Value numbers of operators that programs compute in several steps, each with its own stage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from darwinn_reference.tflite.coefficient_tables import CoefficientTable
from darwinn_sim.kernel.field import CONSTANTS, MODULUS
from darwinn_sim.numbering import kernels
from darwinn_sim.units.output_stage import OUTPUT_16BIT, RANGE_REDUCTION, TABLE
from numpy.typing import NDArray

Elements = NDArray[np.uint64]

Bounds = tuple[int, int, int]
"""The least and the greatest byte of a result, and its zero point."""

HIGHEST = CONSTANTS - 1
INT32_SPAN = 2**31
"""So many sums of either sign an accumulator holds."""


@dataclass(frozen=True)
class Steps:
    """Numbers of what a program makes of the inputs of an operator, step by step.

    ``settled`` are the steps of which all programs hold the same constants; the last one is the
    operator's output. The steps ``before`` have constants that follow from the scales, and may take
    padding along.
    """

    before: tuple[Elements, ...]
    settled: tuple[Elements, ...]

    @property
    def last(self) -> Elements:
        """The operator's output."""
        return self.settled[-1]


def sums(terms: list[Elements], weights: list[int], constant: int) -> Elements:
    """A constant, and terms of the same size times weights."""
    parts = np.empty((len(terms), 2, terms[0].size), np.int64)
    for term, part in zip(terms, parts, strict=True):
        kernels.split(np.ascontiguousarray(term), part[0], part[1])
    low, high = (np.array(weights)[:, None, None] * parts).sum(axis=0)
    found = np.empty(terms[0].size, np.uint64)
    kernels.joined(low + constant, high, found)
    return found


def signed_parts(totals: Elements) -> NDArray[np.int64]:
    """The lower and the upper part of each element; a constant has none but the lower one, which is
    its value, also if that is below 0."""
    parts = np.empty((2, totals.size), np.int64)
    kernels.split(totals, parts[0], parts[1])
    negative = totals > np.uint64(MODULUS - INT32_SPAN)
    parts[0, negative] = totals[negative].astype(np.int64) - MODULUS
    parts[1, negative] = 0
    return parts


def products(one: Elements, other: Elements) -> Elements:
    """Values times values."""
    found = np.empty(one.size, np.uint64)
    kernels.products(one, 0, other, 0, found)
    return found


def results(totals: Elements, factor: np.float32 | NDArray[np.float32], bounds: Bounds) -> Elements:
    """What an output stage makes of sums, with one factor or one for each."""
    return results_of_form(totals, factor, np.uint64(kernels.form(*bounds)))


def results_of_form(
    totals: Elements, factor: np.float32 | NDArray[np.float32], form: np.uint64
) -> Elements:
    """As :func:`results`, by the number of the bounds or of a table (:func:`form_of`)."""
    found = np.empty(totals.size, np.uint64)
    scales = np.ascontiguousarray(np.broadcast_to(factor, totals.shape), np.float32)
    kernels.results(totals, scales, form, found)
    return found


def sum_of_two(
    terms: tuple[Elements, Elements],
    weights: tuple[int, int],
    constant: int,
    factor: np.float32,
    bounds: Bounds,
) -> Elements:
    """What an output stage makes of the sum of two bytes, of which any may be constant.

    A sum of one byte that is not constant may come out as this byte. No program knows of such a sum
    that it is the same of every byte (``darwinn_sim.units.numbered_sums``), so it is none here.
    """
    found = _known_too(sums([*terms], [*weights], constant), factor, bounds)
    low, high, zero_point = bounds
    every = np.arange(CONSTANTS)
    for own, other in ((0, 1), (1, 0)):
        alone = (terms[own] >= CONSTANTS) & (terms[other] < CONSTANTS)
        for known in np.unique(terms[other][alone]):
            here = alone & (terms[other] == known)
            totals = weights[own] * every + weights[other] * int(known) + constant
            values = np.rint(totals.astype(np.float32) * factor) + zero_point
            values = np.clip(values, low, high).astype(np.uint64)
            if np.array_equal(values, every):
                found[here] = terms[own][here]
    return found


def _known_too(totals: Elements, factor: np.float32, bounds: Bounds) -> Elements:
    """As :func:`results`, of sums that are constants the bytes that come of them."""
    found = results(totals, factor, bounds)
    constant, known = constants_of(totals)
    low, high, zero_point = bounds
    values = np.rint(known.astype(np.float32) * factor) + zero_point
    found[constant] = np.clip(values, low, high).astype(np.uint64)
    return found


def constants_of(totals: Elements) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which sums are constants, and their values."""
    lower, upper = signed_parts(totals)
    constant = (upper == 0) & (np.abs(lower) < INT32_SPAN)
    return constant, lower[constant]


def scaled_bytes(
    numbers: Elements, zero_point: int, factors: NDArray[np.float32], bounds: Bounds
) -> Elements:
    """What an output stage makes of single bytes less a zero point, times a factor each.

    Bytes that it does not change are the same bytes; constants and factors of 0 give constants.
    """
    low, high, offset = bounds
    every = np.arange(CONSTANTS) - zero_point
    found = results(sums([numbers], [1], -zero_point), factors, bounds)
    kinds, which = np.unique(factors.view(np.uint32), return_inverse=True)
    for k, factor in enumerate(kinds.view(np.float32)):
        values = np.rint(every.astype(np.float32) * factor) + offset
        values = np.clip(values, low, high).astype(np.uint64)
        here = which == k
        constant = here & (numbers < CONSTANTS)
        found[constant] = values[numbers[constant].astype(np.intp)]
        if factor == 0:
            found[here] = offset
        elif np.array_equal(values, np.arange(CONSTANTS)):
            found[here] = numbers[here]
    return found


def looked_up(numbers: Elements, table: NDArray[np.int32]) -> Elements:
    """A function of bytes by its 256 values."""
    found = np.empty(numbers.size, np.uint64)
    function = np.uint64(kernels.function_of_byte(table))
    kernels.apply(function, table, numbers, found)
    return found


def form_of(table: object, *, wide: bool) -> np.uint64:
    """The number of an output stage with a function table, whose zero point is 0; ``wide``: its
    results have 16 bits."""
    assert isinstance(table, CoefficientTable)
    coefficients = np.ascontiguousarray(table.coefficients.reshape(-1)).view(np.uint32)
    bounds = np.ascontiguousarray(table.lower_bounds).view(np.uint32)
    function = TABLE | RANGE_REDUCTION * table.range_reduction | OUTPUT_16BIT * wide
    symmetry = 2 * table.odd + table.symmetric
    form = kernels.table_form(coefficients, bounds, function, table.low, table.high, symmetry)
    return np.uint64(form)
