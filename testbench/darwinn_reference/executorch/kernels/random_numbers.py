"""Operators that draw random numbers, from a generator with a seed that never changes.

The original runtime takes another seed at each call. Here a run can be repeated: each call draws
from NumPy's PCG64 with the seed ``SEED``, in the order of the elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.values import refuse_more

Kernel = Callable[..., Any]

SEED = 0


def _generator(size: Sequence[int]) -> np.random.Generator:
    """A generator for so many float64, if there may be so many: ExecutionError."""
    refuse_more(math.prod(size) * 8, "random numbers")
    return np.random.Generator(np.random.PCG64(SEED))


def uniform(size: Sequence[int]) -> AnyArray:
    """Numbers of at least 0 and less than 1, before they are rounded to the output's type."""
    return _generator(size).random(tuple(size))


def normal(size: Sequence[int]) -> AnyArray:
    """Normal numbers of mean 0 and deviation 1."""
    return _generator(size).standard_normal(tuple(size))


def dropout(
    x: AnyArray, probability: float, training: bool | None = None
) -> tuple[AnyArray, AnyArray]:
    """x with 0 for what is dropped, and what is kept; as in the original, nothing is scaled."""
    if not 0 <= probability <= 1:
        raise ValueError(f"a probability of {probability}")
    if training is False or probability == 0:
        return x, np.ones(x.shape, np.bool_)
    kept = uniform(x.shape) >= probability
    return np.where(kept, x, x.dtype.type(0)), kept


KERNELS: Mapping[str, Kernel] = {
    "aten::native_dropout.out": dropout,
    "aten::rand.out": uniform,
    "aten::randn.out": normal,
}
