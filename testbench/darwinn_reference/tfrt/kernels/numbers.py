"""Kernels on numbers: constants, arithmetic, comparison, casts, prints."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from darwinn_formats.tfrt import DType

from darwinn_reference.tfrt.host import Host
from darwinn_reference.tfrt.registry import kernel, kernels
from darwinn_reference.tfrt.values import CHAIN, Chain, KernelError

DIVIDE_BY_ZERO = "Divide by zero"


# --- arithmetic ------------------------------------------------------------------------------


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
    # Names with _s are those of synchronous functions.
    for _names, _function in (
        (("add", "add_s"), operator.add),
        (("minus",), operator.sub),
        (("mul", "mul_s"), operator.mul),
    ):
        kernel(*(f"tfrt.{name}.i{_bits}" for name in _names))(_wrapping(_function, _bits))
    kernel(f"tfrt.div.i{_bits}", results=2)(_dividing(_bits))


def _divide(dividend: float, divisor: float) -> float:
    if divisor == 0:
        raise KernelError(DIVIDE_BY_ZERO)
    return dividend / divisor


def _to_i64(value: float) -> int:
    """The integer towards zero; C++ leaves open what others become, x86 gives the lowest."""
    lowest = -(1 << 63)
    if not math.isfinite(value) or not lowest <= value < -lowest:
        return lowest
    return int(value)


kernels(
    {
        "tfrt.new.chain": lambda: CHAIN,
        # Takes whatever has to be there.
        "tfrt.merge.chains": lambda *_: CHAIN,
        "tfrt.equal.i32 tfrt.equal.i64": operator.eq,
        "tfrt.lessequal.i32 tfrt.lessequal.i64": operator.le,
        "tfrt.and.i1": lambda first, second: first and second,
        # Values of f32 are NumPy's, so that every operation rounds to f32.
        "tfrt.add.f32 tfrt.add.f64": operator.add,
        "tfrt.multiply.f32 tfrt.multiply.f64": operator.mul,
        "tfrt.minimum.f32 tfrt.minimum.f64": lambda first, second: min(first, second),
        "tfrt.div.f32 tfrt.div.f64": _divide,
        "tfrt.cast.i64_to_f32": lambda value: np.int64(value).astype(np.float32),
        "tfrt.cast.i64_to_f64": lambda value: float(value),
        "tfrt.cast.f32_to_i64 tfrt.cast.f64_to_i64": _to_i64,
    }
)


# --- constants and prints --------------------------------------------------------------------


_INTEGERS = (DType.I1, DType.I32, DType.I64, DType.UI32, DType.UI64)
_FLOATS = (DType.F16, DType.BF16, DType.F32, DType.F64)
for _dtype in (*_INTEGERS, *_FLOATS):
    _element = _dtype.name.lower()
    kernel(f"tfrt.constant.{_element}", attributes=(int(_dtype),))(lambda value: value)
    if _dtype in (DType.I32, DType.I64, *_FLOATS):
        kernel(f"tfrt.constant_s.{_element}", attributes=(int(_dtype),))(lambda value: value)
for _name, _dtype in (("complex64", DType.F32), ("complex128", DType.F64)):
    # Attributes come in the order of their names: the imaginary part before the real one.
    kernel(f"tfrt.constant.{_name}", attributes=(int(_dtype),) * 2)(
        lambda imaginary, real: complex(real, imaginary)
    )


def _complex_text(value: complex) -> str:
    return f"{value.real:f}+{value.imag:f}i"


def float_text(value: float, style: str) -> str:
    """A float as C's ``%f`` and ``%e``, with its spelling of what is not finite."""
    if math.isfinite(value):
        return f"{value:{style}}"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    return f"{sign}{'nan' if math.isnan(value) else 'inf'}"


def printing(name: str, text: Callable[[Any], str] = str) -> Callable[[Host, Any, Chain], Chain]:
    """A kernel that prints a value, with its name if it has one."""
    head = f"{name} = " if name else ""

    def call(host: Host, value: Any, chain: Chain) -> Chain:
        host.print(f"{head}{text(value)}")
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
