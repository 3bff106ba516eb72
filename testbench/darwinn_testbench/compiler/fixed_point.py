"""A matrix product in fixed point, as integer runtimes compute it, as a network for the chip.

Such a program scales a sum by an integer multiplier and a shift, and rounds halves up:

    result = clamp(((sum * multiplier + 2^(shift - 1)) >> shift) + zero point, -128, 127)

The chip multiplies by a float32 factor and rounds halves to even. The two agree on every sum that
can occur if the factor is the right number beside multiplier / 2^shift, one that takes the halves
to the same side. Whether there is one is not a matter of belief: every sum is tried.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_testbench.compiler.network import Convolution, Quantisation

_INT8 = np.iinfo(np.int8)
_SHIFTS = range(1, 63)
_SATURATED = 1 << 9
"""A result beyond this, before the zero point is added, is at a bound of int8."""
_STEPS = np.array([0, -1, 1, -2, 2, -3, 3])
"""How many float32 numbers away from the nearest one a factor may be. Products are rounded too, by
up to half a step of theirs: to leave a half on one side takes a step or two of the factor."""


def matrix_product(
    name: str,
    weights: NDArray[np.int8],
    rows: int,
    *,
    input_zero_point: int,
    output_zero_point: int,
    multiplier: int,
    shift: int,
) -> Convolution:
    """The product of an int8 matrix, shape (rows, inner), with ``weights``, (inner, columns).

    It is the same as a convolution with a kernel of one pixel: an image one pixel high, whose
    pixels are the rows. Values have no scale in such a program, so those of the network are 1.

    Raises:
        ValueError: no factor of the chip rounds every sum that can occur as the fixed point does.
    """
    inner, columns = weights.shape
    furthest = max(input_zero_point - _INT8.min, _INT8.max - input_zero_point)
    bound = int(np.abs(weights.astype(np.int64)).sum(axis=0).max()) * furthest
    factor = exact_factor(multiplier, shift, bound, output_zero_point)
    one = np.float32(1)
    return Convolution(
        name,
        height=1,
        width=rows,
        weights=np.ascontiguousarray(weights.T).reshape(columns, 1, 1, inner),
        weight=Quantisation(factor, 0),
        bias=np.zeros(columns, np.int32),
        input=Quantisation(one, input_zero_point),
        output=Quantisation(one, output_zero_point),
        relu6=False,
    )


def exact_factor(multiplier: int, shift: int, bound: int, zero_point: int) -> np.float32:
    """The float32 factor that stands for ``multiplier / 2^shift`` for all sums up to ``bound``.

    Raises:
        ValueError: there is none.
    """
    if shift not in _SHIFTS or not 0 < multiplier < 1 << 32:
        raise ValueError(f"{multiplier} / 2^{shift} is no factor of a fixed point")
    # Both rise with the sum: where they are at their bounds, they stay.
    bound = min(bound, (_SATURATED << shift) // multiplier + 1)
    sums = np.arange(-bound, bound + 1, dtype=np.int64)
    low, high = _INT8.min - zero_point, _INT8.max - zero_point
    wanted = np.clip((sums * multiplier + (1 << (shift - 1))) >> shift, low, high)
    nearest = np.float32(multiplier / (1 << shift)).view(np.int32)
    for factor in (nearest + _STEPS).astype(np.int32).view(np.float32):
        if np.array_equal(np.rint(np.clip(sums.astype(np.float32) * factor, low, high)), wanted):
            return np.float32(factor)
    raise ValueError(
        f"{multiplier} / 2^{shift}: no float32 factor rounds every sum up to {bound} alike"
    )
