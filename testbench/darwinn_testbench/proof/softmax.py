"""Value numbers of a softmax: of its steps on the tiles (``darwinn_reference.tflite.softmax``), or
of the loops of the scalar core, which early compilers wrote (docs/chip-facts.md)."""

from __future__ import annotations

import numpy as np
from darwinn_reference.tflite import softmax
from darwinn_reference.tflite.call import SoftmaxFunctions
from darwinn_sim.kernel.field import CONSTANTS
from darwinn_sim.numbering import kernels

from darwinn_testbench.proof.maxima import Maxima
from darwinn_testbench.proof.steps import (
    HIGHEST,
    Elements,
    Steps,
    form_of,
    looked_up,
    products,
    results,
    results_of_form,
    sums,
)


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
    differences = results(
        sums([rows.reshape(-1), greatest], [1, -1], 0), unit.factor, (0, HIGHEST, HIGHEST)
    )
    every = (np.arange(CONSTANTS) - HIGHEST).astype(np.float32) * unit.scale
    table = softmax.to_16_bits(functions.exponential(every), softmax.EXPONENTIAL_ONE)
    powers = looked_up(differences, table.astype(np.int32))
    totals = sums(list(powers.reshape(rows.shape).T), [1] * rows.shape[1], 0)
    root_form = form_of(functions.inverse_root, wide=True)
    roots = results_of_form(totals, softmax.EXPONENTIAL_UNIT, root_form)
    squares = results(
        products(roots, roots), softmax.EXPONENTIAL_UNIT, (0, softmax.SQUARE_LIMIT, 0)
    )
    weighted = products(powers, np.repeat(squares, rows.shape[1]))
    shares = results(weighted, softmax.SHARE_FACTOR, (0, HIGHEST, 0))
    known = (rows < CONSTANTS).all(axis=1)
    octets = rows[known].astype(np.int64)
    levels = softmax.shares(octets - octets.max(axis=-1, keepdims=True), unit, functions)
    shares.reshape(rows.shape)[known] = levels.astype(np.uint64)
    return Steps((differences, powers), (roots, squares, shares))


def by_scalar_core(numbers: Elements, zero_point: int, scale: np.float32) -> Steps:
    """The shares along the last axis, of bytes that are not known: what is between is in registers,
    where nobody sees it."""
    rows = np.ascontiguousarray(numbers.reshape(-1, numbers.shape[-1]))
    found = np.empty_like(rows)
    words = np.empty((kernels.SHARES_WORDS, 4), np.uint64)
    kernels.shares_by_scalar_core(rows, zero_point, scale, words, found)
    return Steps((), (found.reshape(-1),))
