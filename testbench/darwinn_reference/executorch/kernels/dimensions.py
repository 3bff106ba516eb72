"""What all kernels say of dimensions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from darwinn_reference.arrays import AnyArray

Kernel = Callable[..., Any]


def of_any_rank(kernel: Kernel) -> Kernel:
    """A kernel that takes tensors without dimensions too, as such of one element.

    Their only dimension is then 0 or -1, as in PyTorch, and the results have none either.
    """

    @functools.wraps(kernel)
    def lifted(x: AnyArray, *arguments: Any) -> Any:
        if x.ndim:
            return kernel(x, *arguments)
        result = kernel(np.atleast_1d(x), *map(_lifted, arguments))
        if isinstance(result, tuple):
            return tuple(np.reshape(entry, ()) for entry in result)
        return np.reshape(result, ())

    return lifted


def _lifted(argument: Any) -> Any:
    return np.atleast_1d(argument) if isinstance(argument, np.ndarray) else argument
