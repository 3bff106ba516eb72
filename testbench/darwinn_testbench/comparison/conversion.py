"""Convert values of one program to the element type and quantisation of another.

``real = scale * (stored - zero_point)`` holds on both sides. Integers without a scale keep their
value, except for a change of sign: then the zero point moves along, as 128 does for bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from darwinn_reference.arrays import AnyArray
from darwinn_reference.protocol import Port

from darwinn_testbench.errors import InputError
from darwinn_testbench.policy import FLOAT_REFERENCE, NAMED, Exact, Policy


@dataclass(frozen=True)
class Converted:
    """Converted values. ``how`` says what was done; ``rounded`` whether that rounds."""

    values: AnyArray
    how: str = ""
    rounded: bool = False


def convert(values: AnyArray, source: Port, target: Port) -> Converted:
    """``values`` of ``source`` as ``target`` has them; of a target without a type as they are.

    Raises:
        InputError: a conversion that would lose what the values mean, or that needs a scale.
    """
    if target.dtype is None:
        return Converted(values)
    kinds = values.dtype.kind, target.dtype.kind
    if kinds[0] not in "fiub" or kinds[1] not in "fiub":
        raise InputError(f"{source} cannot be converted to {target}")
    if kinds[1] == "f":
        return _to_float(values, source, target)
    return (
        _quantise(values, source, target) if kinds[0] == "f" else _integers(values, source, target)
    )


def default_policy(converted: Converted) -> Policy:
    """How exactly values have to agree with converted ones: docs/comparison.md."""
    if converted.values.dtype.kind == "f":
        return NAMED["float32-reassociated"]
    return FLOAT_REFERENCE if converted.rounded else Exact()


def _to_float(values: AnyArray, source: Port, target: Port) -> Converted:
    assert target.dtype is not None
    if values.dtype.kind == "f" or not source.scale:
        return Converted(values.astype(target.dtype))
    real = (values.astype(np.float64) - (source.zero_point or 0)) * source.scale
    return Converted(real.astype(target.dtype), "dequantised")


def _quantise(values: AnyArray, source: Port, target: Port) -> Converted:
    assert target.dtype is not None
    if target.dtype.kind == "b" or not target.scale:
        raise InputError(f"{source} cannot be converted to {target}, which has no scale")
    if np.isnan(values).any():
        raise InputError(f"{source} holds NaN, which {target} cannot represent")
    limits = np.iinfo(target.dtype)
    steps = np.rint(values.astype(np.float64) / target.scale) + (target.zero_point or 0)
    return Converted(steps.clip(limits.min, limits.max).astype(target.dtype), "quantised", True)


def _integers(values: AnyArray, source: Port, target: Port) -> Converted:
    assert target.dtype is not None
    offset = _sign_offset(values.dtype, target.dtype)
    if source.scale and target.scale:
        moved = (source.zero_point or 0) + offset == (target.zero_point or 0)
        if np.float32(source.scale) != np.float32(target.scale) or not moved:
            real = (values.astype(np.float64) - (source.zero_point or 0)) * source.scale
            return Converted(_quantise(real, source, target).values, "requantised", True)
    shifted = values.astype(np.int64) + offset if offset else values
    if target.dtype.kind == "b":
        return Converted(shifted != 0)
    limits = np.iinfo(target.dtype)
    if shifted.size and not (limits.min <= shifted.min() and shifted.max() <= limits.max):
        raise InputError(f"{source}: values {shifted.min()} to {shifted.max()} do not fit {target}")
    return Converted(shifted.astype(target.dtype), "sign changed" if offset else "")


def _sign_offset(source: np.dtype, target: np.dtype) -> int:
    """What is added to integers of one size when they gain or lose their sign."""
    if (
        source.itemsize != target.itemsize
        or source.kind == target.kind
        or "b"
        in (
            source.kind,
            target.kind,
        )
    ):
        return 0
    middle = 1 << (8 * source.itemsize - 1)
    return middle if target.kind == "u" else -middle
