"""Value numbers of the steps of a PRELU: programs add up a part above 0 and one below."""

from __future__ import annotations

import numpy as np
from darwinn_sim.kernel.field import CONSTANTS
from numpy.typing import NDArray

from darwinn_testbench.proof.steps import (
    HIGHEST,
    Bounds,
    Elements,
    Steps,
    results,
    scaled_bytes,
    sums,
)


def steps(
    numbers: Elements,
    zero_points: tuple[int, int],
    above: NDArray[np.float32],
    below: NDArray[np.float32],
    same: tuple[np.float32, np.float32],
) -> Steps:
    """The steps of flat ``numbers``, with factors ``above`` and ``below`` 0 for each; zero points
    of the input and the output; ``same``: the factors from the unit of each to itself."""
    source, target = zero_points
    positive = scaled_bytes(numbers, source, above, (target, HIGHEST, target))
    # Bytes above 0 are 0 here, in the quantisation of the input.
    least = scaled_bytes(numbers, source, np.full_like(above, same[0]), (0, source, source))
    negative = scaled_bytes(least, source, below, (0, HIGHEST, target))
    # Other ways to compute it may begin with the part above 0, which is an activation.
    return Steps((positive,), (negative, _added(positive, negative, target, same[1])))


def _added(positive: Elements, negative: Elements, zero_point: int, factor: np.float32) -> Elements:
    """The sum of both parts. Where slopes are 0, so is the part below."""
    bounds: Bounds = (0, HIGHEST, zero_point)
    totals = sums([positive, negative], [1, 1], -2 * zero_point)
    found = results(totals, factor, bounds)
    blank = negative == zero_point
    found[blank] = positive[blank]
    both = (positive < CONSTANTS) & (negative < CONSTANTS)
    whole = positive[both].astype(np.int64) + negative[both].astype(np.int64) - zero_point
    found[both] = np.clip(whole, 0, HIGHEST).astype(np.uint64)
    return found
