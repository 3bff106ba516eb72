"""Element types of tensors: as IREE numbers them, as its sources spell them, as NumPy has them.

NumPy has no bfloat16: arrays of it are float32 outside of the program.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from darwinn_reference.errors import Unsupported

_SIGNLESS, _SIGNED, _UNSIGNED, _BOOLEAN = 0x10, 0x11, 0x12, 0x13
_FLOAT, _BRAIN, _COMPLEX = 0x21, 0x22, 0x23
BFLOAT16 = _BRAIN << 24 | 16
"""Element type of bfloat16."""
_BFLOAT16_SPELLED = "bf16"
_NUMPY = {
    _SIGNLESS: "i",
    _SIGNED: "i",
    _UNSIGNED: "u",
    _BOOLEAN: "b",
    _FLOAT: "f",
    _COMPLEX: "c",
}
_SPELLED = {"i": _SIGNLESS, "si": _SIGNED, "ui": _UNSIGNED, "f": _FLOAT}
_WIDTHS = {"i": (8, 16, 32, 64), "u": (8, 16, 32, 64), "b": (8,), "f": (16, 32, 64), "c": (64, 128)}


def dtype_of(element_type: int) -> np.dtype[Any]:
    """NumPy type of an element type: class in the bits from 24, width in bits in the low ones.

    That of bfloat16 is float32.

    Raises:
        Unsupported: NumPy has no such type.
    """
    if element_type == BFLOAT16:
        return np.dtype(np.float32)
    kind, bits = _NUMPY.get(element_type >> 24), element_type & 0xFF
    if kind is None or bits not in _WIDTHS[kind]:
        raise Unsupported("element types", [f"{element_type:#x}"])
    return np.dtype(f"{kind}{bits // 8}")


def element_type_of(dtype: np.dtype[Any], spelling: str = "") -> int:
    """Element type of an array: as the source spells it, else integers without a sign.

    Raises:
        Unsupported: there is no such element type.
    """
    if spelling == _BFLOAT16_SPELLED and dtype == np.float32:
        return BFLOAT16
    bits = dtype.itemsize * 8
    letters = spelling.rstrip("0123456789")
    if dtype.kind == "b":
        return _BOOLEAN << 24 | bits
    if letters in _SPELLED and dtype.kind in "iuf":
        return _SPELLED[letters] << 24 | bits
    classes = {"i": _SIGNLESS, "u": _SIGNLESS, "f": _FLOAT, "c": _COMPLEX}
    if dtype.kind not in classes:
        raise Unsupported("element types", [str(dtype)])
    return classes[dtype.kind] << 24 | bits


def spelling_of(element_type: int) -> str:
    """An element type as the source spells it; an empty text if it has no such spelling."""
    kind, bits = element_type >> 24, element_type & 0xFF
    if element_type == BFLOAT16:
        return _BFLOAT16_SPELLED
    if kind == _BOOLEAN:
        return "i1"
    return next((f"{letters}{bits}" for letters, found in _SPELLED.items() if found == kind), "")


def spelled_dtype(spelling: str) -> np.dtype[Any] | None:
    """NumPy type of a type as the source spells it (``i8``, ``f32``), None if NumPy has none."""
    letters = spelling.rstrip("0123456789")
    digits = spelling.removeprefix(letters)
    if spelling == "i1":
        return np.dtype(np.bool_)
    if spelling == _BFLOAT16_SPELLED:
        return np.dtype(np.float32)
    if letters not in _SPELLED or not digits.isdigit():
        return None
    kind, bits = _NUMPY[_SPELLED[letters]], int(digits)
    return np.dtype(f"{kind}{bits // 8}") if bits in _WIDTHS[kind] else None
