"""Numbers in the text form: what MLIR prints for a value, and the value of a text.

A float has six significant digits, zeros to seven, where these are all that it needs; else as many
as its type can have; else, and where that would look like an integer, the bits in hexadecimal.
Digits are rounded as ``llvm::APFloat::toString`` rounds them, half up after a cut, so that the text
is the same.
"""

from __future__ import annotations

import math
from typing import Final

from darwinn_formats.tfrt.encoding import DTYPES, FLOATS, DType
from darwinn_formats.tfrt.model import Scalar, decode

_SHORT: Final = 6
"""Significant digits that are tried first."""
_MOST_ZEROS: Final = 3
"""Zeros right after the decimal point, or before it, above which there is an exponent."""
_PRECISION: Final = {DType.F16: 11, DType.BF16: 8, DType.F32: 24, DType.F64: 53}
"""Bits of the significand."""
# 59/196 is a little less than the decimal digits of a bit.
_DIGITS, _BITS = 59, 196


def number_text(scalar: Scalar) -> str:
    """A number without its type: what reads back as the same bits."""
    if scalar.dtype is DType.I1:
        return "true" if scalar.value else "false"
    if scalar.dtype not in FLOATS:
        return str(int(scalar.value.real))
    value = float(decode(scalar.dtype, scalar.data)[0])
    if math.isfinite(value):
        short = _short_text(value)
        if Scalar.of(scalar.dtype, float(short)) == scalar:
            return short
        text = _long_text(value, 2 + _PRECISION[scalar.dtype] * _DIGITS // _BITS)
        if "." in text:
            return text
    return f"0x{int.from_bytes(scalar.data, 'little'):X}"


def _short_text(value: float) -> str:
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    digits, exponent = _digits(abs(value), _SHORT)
    exponent += len(digits) - 1 if value else 0
    mantissa = f"{digits[0]}.{digits[1:].ljust(_SHORT, '0')}"
    return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"


def _long_text(value: float, precision: int) -> str:
    sign = "-" if value < 0 else ""
    digits, exponent = _digits(abs(value), precision)
    highest = exponent + len(digits) - 1
    if exponent >= 0:
        if exponent <= _MOST_ZEROS and len(digits) + exponent <= precision:
            return f"{sign}{digits}{'0' * exponent}"
    elif highest >= 0:
        return f"{sign}{digits[: highest + 1]}.{digits[highest + 1 :]}"
    elif -highest <= _MOST_ZEROS:
        return f"{sign}0.{'0' * (-highest - 1)}{digits}"
    mantissa = f"{digits[0]}.{digits[1:] or '0'}"
    return f"{sign}{mantissa}E{'-' if highest < 0 else '+'}{abs(highest)}"


def _digits(value: float, precision: int) -> tuple[str, int]:
    """Digits of a value of at least 0, without zeros at their end, and the last one's exponent."""
    number, denominator = value.as_integer_ratio()
    exponent = 1 - denominator.bit_length()
    number *= 5**-exponent
    # First the binary number is cut to about the digits that are wanted.
    removed = number.bit_length() - (precision * _BITS + _DIGITS - 1) // _DIGITS
    if (tens := removed * _DIGITS // _BITS) > 0:
        number //= 10**tens
        exponent += tens
    if (more := len(str(number)) - precision) > 0:
        number, rest = divmod(number, 10**more)
        number += rest >= 5 * 10 ** (more - 1)
        exponent += more
    digits = str(number)
    kept = digits.rstrip("0") or "0"
    return kept, exponent + len(digits) - len(kept)


def scalar_of_text(text: str, kind: str, dtype: DType) -> Scalar:
    """A number of a type; ``kind`` is that of its token.

    Raises:
        ValueError: when the text is no number of that type.
    """
    info = DTYPES[dtype]
    if dtype in FLOATS:
        if kind == "hex":
            bits = int(text, 16)
            if bits >> 8 * info.size:
                raise ValueError(f"{text} has more than {8 * info.size} bits")
            return Scalar(dtype, bits.to_bytes(info.size, "little"))
        if kind == "integer":
            raise ValueError(f"{text} is an integer, {info.text} needs a decimal point")
        return Scalar.of(dtype, float(text))
    if kind == "float":
        raise ValueError(f"{text} is not an integer")
    value = int(text, 16 if kind == "hex" else 10)
    check_range(value, dtype)
    return Scalar.of(dtype, value)


def check_range(value: int, dtype: DType) -> None:
    """Whether an integer fits a type; i-types take values of either sign, as in the original.

    Raises:
        ValueError: when it does not.
    """
    info = DTYPES[dtype]
    bits = 1 if dtype is DType.I1 else 8 * info.size
    lowest = 0 if info.text.startswith("ui") else -(1 << bits - 1)
    if not lowest <= value < 1 << bits:
        raise ValueError(f"{value} does not fit into {info.text}")
