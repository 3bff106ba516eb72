"""Declared comparison policies: how far an output may be from its reference and still be right.

A policy is declared beside the output it judges, never derived from the result. Its textual form
is what ``--policy`` takes and what reports print (docs/comparison.md):

====================  ===========================================================================
``exact``             every element equal
``lsb:N``             integer elements at most N least significant bits off
``lsb:N,F%``          ... and at most F percent of the elements off at all
``float:A,R``         ``abs(actual - expected) <= A + R * abs(expected)``
a name                ``float32``, ``float32-reassociated``, ``float16``, ``bfloat16``
====================  ===========================================================================
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from darwinn_testbench.errors import PolicyError

if TYPE_CHECKING:
    from darwinn_reference.arrays import AnyArray


@dataclass(frozen=True, slots=True)
class Exact:
    """Every element equal; NaN equals NaN, and -0.0 differs from 0.0."""

    def __str__(self) -> str:
        return "exact"


@dataclass(frozen=True, slots=True)
class LsbBudget:
    """Integer outputs: at most ``lsb`` off each, and at most ``percent`` % of them off at all."""

    lsb: int
    percent: float = 100.0

    def __post_init__(self) -> None:
        if self.lsb < 0:
            raise PolicyError(f"an LSB budget cannot be negative ({self.lsb})")
        if not 0.0 <= self.percent <= 100.0:
            raise PolicyError(f"a share lies between 0% and 100%, not {self.percent:g}%")

    def __str__(self) -> str:
        share = "" if self.percent == 100.0 else f",{_decimal(self.percent)}%"
        return f"lsb:{self.lsb}{share}"


@dataclass(frozen=True, slots=True)
class FloatTolerance:
    """``abs(actual - expected) <= atol + rtol * abs(expected)``; infinities and NaN must agree."""

    atol: float
    rtol: float

    def __post_init__(self) -> None:
        if not all(math.isfinite(value) and value >= 0 for value in (self.atol, self.rtol)):
            raise PolicyError(f"tolerances are finite and not negative ({self.atol}, {self.rtol})")

    def __str__(self) -> str:
        return f"float:{_decimal(self.atol)},{_decimal(self.rtol)}"


Policy = Exact | LsbBudget | FloatTolerance

NAMED: dict[str, Policy] = {
    "exact": Exact(),
    "float32": FloatTolerance(1e-5, 1e-5),
    "float32-reassociated": FloatTolerance(1e-4, 1e-4),
    "float16": FloatTolerance(1e-3, 1e-3),
    "bfloat16": FloatTolerance(1e-2, 1e-2),
}
"""Policies that have a name of their own; the reasons stand in docs/comparison.md."""

FORMS = (*NAMED, "lsb:N", "lsb:N,F%", "float:ATOL,RTOL")
"""What :func:`parse` takes, in words."""

LITERT_LAYER = LsbBudget(1, 25.0)
"""One quantised layer against LiteRT, from the same input. LiteRT's fixed-point multiplier rounds
twice, first to 2^-k of the output's unit when its factor lies between 2^-(k+1) and 2^-k: that
moves at most 2^-(k+1) of the bytes, by 1. Factors below 1/2 give a quarter at most; most layers
stay near 1 % (docs/comparison.md)."""


FLOAT_REFERENCE = LsbBudget(1)
"""Quantised outputs against a reference whose floating point results were quantised with the same
scale and zero point: both round the same number once, which a tie or a last bit of the sum can
move by one step."""


def parse(text: str) -> Policy:
    """Read the textual form of a policy; ``parse(str(policy)) == policy``.

    Raises:
        PolicyError: the text is no policy; the message says what was expected.
    """
    name = text.strip().lower()
    if name in NAMED:
        return NAMED[name]
    kind, colon, arguments = name.partition(":")
    reader = _READERS.get(kind)
    if reader is None or not colon:
        raise PolicyError(f"policy {text!r}: expected {', '.join(FORMS[:-1])} or {FORMS[-1]}")
    return reader(text, [part.strip() for part in arguments.split(",")])


def within(policy: Policy, actual: AnyArray, expected: AnyArray) -> NDArray[np.bool_]:
    """Which elements the policy accepts, one by one (a budget's share is not looked at here).

    ``actual`` and ``expected`` have the same shape and dtype.

    Raises:
        PolicyError: an LSB budget on elements that are not integers.
    """
    match policy:
        case Exact():
            return identical(actual, expected)
        case LsbBudget(lsb):
            if actual.dtype.kind not in "iub":
                raise PolicyError(f"policy {policy}: {actual.dtype} elements have no LSB")
            near: NDArray[np.bool_] = np.asarray(absolute_difference(actual, expected) <= lsb, bool)
            return near
        case FloatTolerance(atol, rtol):
            return _within_tolerance(actual, expected, atol, rtol)


def identical(actual: AnyArray, expected: AnyArray) -> NDArray[np.bool_]:
    """Elements that are equal: same value, same sign of zero, or both NaN."""
    same: NDArray[np.bool_] = actual == expected
    if actual.dtype.kind == "f":
        same = same & (np.signbit(actual) == np.signbit(expected))
        same |= np.isnan(actual) & np.isnan(expected)
    return same


def difference(actual: AnyArray, expected: AnyArray) -> AnyArray:
    """``actual - expected`` without overflow: int64 (object for wide 64-bit values) or float64."""
    if actual.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            return actual.astype(np.float64) - expected.astype(np.float64)
    if actual.dtype.itemsize < 8 or (_narrow(actual) and _narrow(expected)):
        return actual.astype(np.int64) - expected.astype(np.int64)
    exact: AnyArray = actual.astype(object) - expected.astype(object)
    return exact


def absolute_difference(actual: AnyArray, expected: AnyArray) -> AnyArray:
    """``abs(actual - expected)`` without overflow, in the dtype of :func:`difference`."""
    return np.abs(difference(actual, expected))


def _narrow(values: AnyArray) -> bool:
    limit = 1 << 62
    return values.size == 0 or (int(values.min()) >= -limit and int(values.max()) <= limit)


def _within_tolerance(
    actual: AnyArray, expected: AnyArray, atol: float, rtol: float
) -> NDArray[np.bool_]:
    finite = np.isfinite(actual) & np.isfinite(expected)
    distance = np.where(finite, absolute_difference(actual, expected), np.inf)
    bound = atol + rtol * np.abs(np.where(finite, expected, 0).astype(np.float64))
    accepted: NDArray[np.bool_] = finite & (distance <= bound)
    accepted |= np.isinf(actual) & (actual == expected)
    accepted |= np.isnan(actual) & np.isnan(expected)
    return accepted


def _decimal(value: float) -> str:
    """The shortest text that reads back as the same number, without a trailing ``.0``."""
    return repr(float(value)).removesuffix(".0")


def _read_lsb(text: str, arguments: list[str]) -> Policy:
    if len(arguments) not in (1, 2) or not re.fullmatch(r"[0-9]{1,18}", arguments[0]):
        raise PolicyError(f"policy {text!r}: expected lsb:N or lsb:N,F% with a whole number N")
    if len(arguments) == 1:
        return LsbBudget(int(arguments[0]))
    if not arguments[1].endswith("%"):
        raise PolicyError(f"policy {text!r}: the share of elements ends in %, as in lsb:1,2%")
    return LsbBudget(int(arguments[0]), _number(text, arguments[1].removesuffix("%")))


def _read_float(text: str, arguments: list[str]) -> Policy:
    if len(arguments) != 2:
        raise PolicyError(f"policy {text!r}: expected float:ATOL,RTOL")
    return FloatTolerance(_number(text, arguments[0]), _number(text, arguments[1]))


def _number(text: str, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise PolicyError(f"policy {text!r}: {word!r} is not a number") from None


_READERS = {"lsb": _read_lsb, "float": _read_float}
