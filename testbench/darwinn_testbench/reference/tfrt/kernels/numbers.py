"""Kernels on numbers: constants, arithmetic, comparison, casts, prints."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from darwinn_formats.tfrt import DType

from darwinn_testbench.reference.tfrt.host import Host
from darwinn_testbench.reference.tfrt.registry import kernel
from darwinn_testbench.reference.tfrt.values import CHAIN, Chain, KernelError

DIVIDE_BY_ZERO = "Divide by zero"


@kernel("tfrt.new.chain")
def new_chain() -> Chain:
    """A chain."""
    return CHAIN


@kernel("tfrt.merge.chains")
def merge_chains(*_: Any) -> Chain:
    """A chain when everything is there."""
    return CHAIN


# --- integers: wrapping ----------------------------------------------------------------------


def _wrapping(function: Callable[[int, int], int], bits: int) -> Callable[[int, int], int]:
    half, mask = 1 << bits - 1, (1 << bits) - 1

    def call(first: int, second: int) -> int:
        return ((function(first, second) + half) & mask) - half

    return call


def _dividing(bits: int) -> Callable[[int, int], tuple[int, int]]:
    half, mask = 1 << bits - 1, (1 << bits) - 1

    def call(dividend: int, divisor: int) -> tuple[int, int]:
        if divisor == 0:
            raise KernelError(DIVIDE_BY_ZERO)
        quotient = abs(dividend) // abs(divisor)
        if (dividend < 0) != (divisor < 0):
            quotient = -quotient
        wrapped = ((quotient + half) & mask) - half
        return wrapped, dividend - quotient * divisor

    return call


for _bits in (32, 64):
    for _name, _function in (
        ("add", operator.add),
        ("minus", operator.sub),
        ("mul", operator.mul),
    ):
        kernel(f"tfrt.{_name}.i{_bits}")(_wrapping(_function, _bits))
    kernel(f"tfrt.div.i{_bits}", results=2)(_dividing(_bits))


@kernel("tfrt.equal.i32", "tfrt.equal.i64")
def equal(first: int, second: int) -> bool:
    """Whether two integers are the same."""
    return first == second


@kernel("tfrt.lessequal.i32", "tfrt.lessequal.i64")
def less_equal(first: int, second: int) -> bool:
    """Whether the first integer is not above the second."""
    return first <= second


@kernel("tfrt.and.i1")
def logical_and(first: bool, second: bool) -> bool:
    """Both."""
    return first and second


# --- floats: f32 values are NumPy's, so that every operation rounds to f32 -------------------


@kernel("tfrt.add.f32", "tfrt.add.f64")
def add(first: float, second: float) -> float:
    """The sum."""
    return first + second


@kernel("tfrt.multiply.f32", "tfrt.multiply.f64")
def multiply(first: float, second: float) -> float:
    """The product."""
    return first * second


@kernel("tfrt.minimum.f32", "tfrt.minimum.f64")
def minimum(first: float, second: float) -> float:
    """The lower one."""
    return second if second < first else first


@kernel("tfrt.div.f32", "tfrt.div.f64")
def divide(dividend: float, divisor: float) -> float:
    """The quotient."""
    if divisor == 0:
        raise KernelError(DIVIDE_BY_ZERO)
    return dividend / divisor


@kernel("tfrt.cast.i64_to_f32")
def to_f32(value: int) -> np.float32:
    """The nearest f32."""
    return np.int64(value).astype(np.float32)


@kernel("tfrt.cast.i64_to_f64")
def to_f64(value: int) -> float:
    """The nearest f64."""
    return float(value)


@kernel("tfrt.cast.f32_to_i64", "tfrt.cast.f64_to_i64")
def to_i64(value: float) -> int:
    """The integer towards zero; C++ leaves open what others become, x86 gives the lowest."""
    lowest = -(1 << 63)
    if not math.isfinite(value) or not lowest <= value < -lowest:
        return lowest
    return int(value)


# --- constants and prints --------------------------------------------------------------------


def _constant(value: Any) -> Any:
    return value


def _complex(imaginary: float, real: float) -> complex:
    return complex(real, imaginary)


for _dtype in (DType.I1, DType.I32, DType.I64, DType.UI32, DType.UI64):
    kernel(f"tfrt.constant.{_dtype.name.lower()}", attributes=(int(_dtype),))(_constant)
for _dtype in (DType.F16, DType.BF16, DType.F32, DType.F64):
    kernel(f"tfrt.constant.{_dtype.name.lower()}", attributes=(int(_dtype),))(_constant)
kernel("tfrt.constant.complex64", attributes=(int(DType.F32),) * 2)(_complex)
kernel("tfrt.constant.complex128", attributes=(int(DType.F64),) * 2)(_complex)


def _complex_text(value: complex) -> str:
    return f"{value.real:f}+{value.imag:f}i"


def float_text(value: float, style: str) -> str:
    """A float as C's ``%f`` and ``%e``, with its spelling of what is not finite."""
    if math.isfinite(value):
        return f"{value:{style}}"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    return f"{sign}{'nan' if math.isnan(value) else 'inf'}"


def printing(name: str, text: Callable[[Any], str] = str) -> Callable[[Host, Any, Chain], Chain]:
    """A kernel that prints a value with its name."""

    def call(host: Host, value: Any, chain: Chain) -> Chain:
        host.print(f"{name} = {text(value)}")
        return chain

    return call


for _type, _label, _text in (
    ("i1", "int1", lambda value: str(int(value))),
    ("i32", "int32", str),
    ("i64", "int64", str),
    ("f32", "f32", lambda value: float_text(value, "f")),
    ("f64", "f64", lambda value: float_text(value, "f")),
    # A half is printed as its bits.
    ("f16", "f16", lambda value: str(int(np.float16(value).view(np.uint16)))),
    ("complex64", "complex64", _complex_text),
    ("complex128", "complex128", _complex_text),
):
    kernel(f"tfrt.print.{_type}", host=True)(printing(_label, _text))
