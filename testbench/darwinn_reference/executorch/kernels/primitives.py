"""Operators on numbers, whose result is a value rather than a tensor."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from darwinn_reference.arrays import AnyArray

Kernel = Callable[..., Any]


def size_of(x: AnyArray, dimension: int) -> int:
    """Size of a dimension."""
    return int(x.shape[dimension])


def item_of(x: AnyArray) -> bool | int | float:
    """The only element of a tensor."""
    number: bool | int | float = x.reshape(()).item()
    return number


def remainder(a: int, b: int) -> int:
    """Remainder of integers with the sign of the dividend, as in the original runtime."""
    if not isinstance(a, int) or not isinstance(b, int):
        raise TypeError(f"a remainder of {a} by {b}, which are not both integers")
    return int(math.copysign(abs(a) % abs(b), a))


def quotient(a: int, b: int) -> int:
    """Quotient rounded towards zero, as in the original runtime."""
    whole = abs(a) // abs(b)
    return whole if (a < 0) == (b < 0) else -whole


def floor_quotient(a: int | float, b: int | float) -> int | float:
    """a / b rounded down; of floats by 0 infinite, as in the original runtime."""
    if b == 0 and (isinstance(a, float) or isinstance(b, float)):
        return math.copysign(math.inf, a)
    return a // b


def true_quotient(a: int | float, b: int | float) -> float:
    """a / b by the rules of floats: by 0 infinite or NaN."""
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


def either(condition: bool, a: bool | int | float, b: bool | int | float) -> bool | int | float:
    """a where the condition holds, else b."""
    return a if condition else b


KERNELS: Mapping[str, Kernel] = {
    "aten::_local_scalar_dense": item_of,
    "aten::sym_numel": lambda x: int(x.size),
    "aten::sym_size.int": size_of,
    "executorch_prim::add.Scalar": operator.add,
    "executorch_prim::ceil.Scalar": math.ceil,
    "executorch_prim::eq.Scalar": operator.eq,
    "executorch_prim::floordiv.Scalar": floor_quotient,
    "executorch_prim::floordiv.int": quotient,
    "executorch_prim::ge.Scalar": operator.ge,
    "executorch_prim::gt.Scalar": operator.gt,
    "executorch_prim::le.Scalar": operator.le,
    "executorch_prim::lt.Scalar": operator.lt,
    "executorch_prim::mod.Scalar": remainder,
    "executorch_prim::mod.int": remainder,
    "executorch_prim::mul.Scalar": operator.mul,
    "executorch_prim::ne.Scalar": operator.ne,
    "executorch_prim::neg.Scalar": operator.neg,
    "executorch_prim::round.Scalar": round,
    "executorch_prim::sub.Scalar": operator.sub,
    "executorch_prim::sym_float.Scalar": float,
    "executorch_prim::sym_int.Scalar": int,
    "executorch_prim::sym_ite.Scalar": either,
    "executorch_prim::sym_max.Scalar": max,
    "executorch_prim::sym_min.Scalar": min,
    "executorch_prim::sym_not.Scalar": operator.not_,
    "executorch_prim::truediv.Scalar": true_quotient,
    "executorch_prim::trunc.Scalar": math.trunc,
}
