"""Type promotion of ATen operators, which differs from NumPy's.

Tensors with dimensions decide before tensors without, and these before plain numbers: a lower
class changes the type only when it is of a higher category (truth values, integers, floats).
Source: "torch.result_type" in the documentation of PyTorch, tensor attributes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from darwinn_testbench.policy import AnyArray

Operand = AnyArray | bool | int | float

_BOOL, _INTEGER, _FLOAT = range(3)
_CATEGORIES = {"b": _BOOL, "i": _INTEGER, "u": _INTEGER, "f": _FLOAT}
_NUMBERS = {bool: np.dtype(bool), int: np.dtype(np.int64), float: np.dtype(np.float32)}
"""Types that plain numbers have when nothing else decides."""


def result_type(*operands: Operand) -> np.dtype[Any]:
    """Type in which an operator computes on these operands."""
    shaped = [entry.dtype for entry in operands if isinstance(entry, np.ndarray) and entry.ndim]
    single = [entry.dtype for entry in operands if isinstance(entry, np.ndarray) and not entry.ndim]
    numbers = [_NUMBERS[type(entry)] for entry in operands if not isinstance(entry, np.ndarray)]
    result: np.dtype[Any] | None = None
    for dtypes in (shaped, single, numbers):
        if not dtypes:
            continue
        candidate = promote(dtypes)
        if result is None or _category(candidate) > _category(result):
            result = candidate if result is None else promote((result, candidate))
    assert result is not None
    return result


def promote(dtypes: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """Common type of several: any float beats any integer, whatever their widths."""
    entries = list(dtypes)
    highest = max(_category(entry) for entry in entries)
    deciding = [entry for entry in entries if _category(entry) == highest]
    return np.result_type(*deciding)


def cast(operand: Operand, dtype: np.dtype[Any]) -> AnyArray:
    """An operand as an array of a type."""
    return np.asarray(operand).astype(dtype, copy=False)


def common(*operands: Operand) -> tuple[AnyArray, ...]:
    """Operands as arrays of the type in which they are computed."""
    dtype = result_type(*operands)
    return tuple(cast(operand, dtype) for operand in operands)


def floating(operand: Operand) -> AnyArray:
    """An operand as floats of at least 32 bits: integers become float32."""
    array = np.asarray(operand)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float32)


def _category(dtype: np.dtype[Any]) -> int:
    return _CATEGORIES[dtype.kind]
