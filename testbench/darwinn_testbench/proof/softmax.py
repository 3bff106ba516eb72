"""Value numbers of the steps of a softmax on the tiles (``darwinn_reference.tflite.softmax``)."""

from __future__ import annotations

import numpy as np
from darwinn_reference.tflite import softmax
from darwinn_reference.tflite.call import SoftmaxFunctions
from darwinn_sim.kernel.field import CONSTANTS

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
    return Steps((differences, powers), (roots, squares, shares))
