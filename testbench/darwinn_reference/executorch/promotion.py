"""Type promotion of ATen operators, which differs from NumPy's.

Any float beats any integer, whatever their widths, and a plain number changes the type only when
it is of a higher category (truth values, integers, floats): "torch.result_type" in the PyTorch
documentation. As the original runtime, operators compute in the common type of all tensors, with
or without dimensions, and at least in float32; the result is rounded once, to the output's type.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from darwinn_reference.arrays import AnyArray

Operand = AnyArray | bool | int | float

_BOOL, _INTEGER, _FLOAT = range(3)
_CATEGORIES = {"b": _BOOL, "i": _INTEGER, "u": _INTEGER, "f": _FLOAT}
_NUMBERS = {bool: np.dtype(bool), int: np.dtype(np.int64), float: np.dtype(np.float32)}
"""Types that plain numbers have when nothing else decides."""


def result_type(*operands: Operand) -> np.dtype[Any]:
    """Type in which an operator computes on these operands."""
    tensors = [entry.dtype for entry in operands if isinstance(entry, np.ndarray)]
    numbers = [_NUMBERS[type(entry)] for entry in operands if not isinstance(entry, np.ndarray)]
    if not tensors or not numbers:
        return promote(tensors or numbers)
    common_type, candidate = promote(tensors), promote(numbers)
    if category(candidate) > category(common_type):
        return promote((common_type, candidate))
    return common_type


def promote(dtypes: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """Common type of several, at least float32 among floats."""
    entries = list(dtypes)
    highest = max(category(entry) for entry in entries)
    deciding = [entry for entry in entries if category(entry) == highest]
    if highest == _FLOAT:
        deciding.append(_NUMBERS[float])
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


def accumulating(x: AnyArray) -> AnyArray:
    """An array in the type in which its sums of products are made: at least float32."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def category(dtype: np.dtype[Any]) -> int:
    """Rank of a type: truth values, integers, floats."""
    return _CATEGORIES[dtype.kind]
