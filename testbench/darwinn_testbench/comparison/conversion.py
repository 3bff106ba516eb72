"""Values of two programs in one type and quantisation, so that they can be compared.

``real = scale * (stored - zero_point)`` holds on both sides. Integers without a scale keep their
value, except for a change of sign: then the zero point moves along, as 128 does for bytes. If the
other side has floats that its program rounds to integers, they are these integers.

Inputs of one side are converted to what the other takes (:func:`convert`). Outputs are compared in
a form that follows from both sides alone, and not from which of them is verified
(:func:`comparable`): if one is quantised, in steps of its quantisation, of the coarser one of two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from darwinn_reference.arrays import AnyArray
from darwinn_reference.protocol import Port, Steps

from darwinn_testbench.errors import InputError
from darwinn_testbench.policy import FLOAT_REFERENCE, NAMED, Exact, FloatTolerance, Policy


@dataclass(frozen=True)
class Converted:
    """Converted values. ``how`` says what was done."""

    values: AnyArray
    how: str = ""


@dataclass(frozen=True)
class Comparable:
    """Values of both sides in one type, and how exactly they have to agree by default.

    ``how`` says what was done to them; ``zero_point`` is the value of a real zero.
    """

    actual: AnyArray
    expected: AnyArray
    policy: Policy
    how: str = ""
    zero_point: int = 0


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


def quantised(values: AnyArray, source: Port) -> AnyArray | None:
    """Floating point values as the integers to which their program rounds them, if it does.

    Raises:
        InputError: values that no integer represents.
    """
    if source.steps is None or values.dtype.kind != "f":
        return None
    return _in_steps(values, source, source.steps)


def comparable(
    actual: AnyArray, left: Port, expected: AnyArray, right: Port, policy: Policy | None = None
) -> Comparable:
    """Outputs of both sides in one type; a tolerance of floats (``policy``) asks for real values.

    Raises:
        InputError: values that have no form in common.
    """
    kinds = {actual.dtype.kind, expected.dtype.kind}
    steps = _common_steps(left, right)
    real = isinstance(policy, FloatTolerance) and "f" in kinds
    if steps is not None and not real and not ("f" not in kinds and _same_numbers(left, right)):
        own, other = _in_steps(actual, left, steps), _in_steps(expected, right, steps)
        how = f"in steps of {np.float32(steps.scale)}"
        if _are_bytes(actual, steps) or _are_bytes(expected, steps):
            how += (
                f" (its whole numbers may be integers of the output: store them as {steps.dtype})"
            )
        return Comparable(own, other, FLOAT_REFERENCE, how, steps.zero_point)
    if "f" in kinds:
        sides = ((actual, left), (expected, right))
        floats = [each.dtype for each, _ in sides if each.dtype.kind == "f"]
        narrowest = Port("", min(floats, key=lambda dtype: dtype.itemsize), None)
        mine, theirs = (_to_float(values, port, narrowest) for values, port in sides)
        how = ", ".join(dict.fromkeys(filter(None, (mine.how, theirs.how))))
        return Comparable(mine.values, theirs.values, _FLOATS, how)
    found = _integers(expected, right, left)
    return Comparable(actual, found.values, Exact(), found.how, left.zero_point or 0)


_FLOATS = NAMED["float32-reassociated"]


def _are_bytes(values: AnyArray, steps: Steps) -> bool:
    """Whether floats look like stored integers: whole, and beyond what these can stand for."""
    if values.dtype.kind != "f" or not values.size:
        return False
    limits = np.iinfo(steps.dtype)
    least, most = float(values.min()), float(values.max())
    low, high = (steps.scale * (each - steps.zero_point) for each in (limits.min, limits.max))
    stored = limits.min <= least and most <= limits.max and bool((values == np.rint(values)).all())
    return stored and (least < low or most > high)


def _steps_of(port: Port) -> Steps | None:
    """The quantisation of a port, whichever type it has."""
    if port.dtype is not None and port.dtype.kind in "iu" and port.scale:
        return Steps(port.scale, port.zero_point or 0, port.dtype)
    return port.steps


def _common_steps(left: Port, right: Port) -> Steps | None:
    """The coarser quantisation of two ports; of equal ones that of an integer port."""
    known = [(_steps_of(port), port) for port in (left, right)]
    found = [(steps, port) for steps, port in known if steps is not None]
    return max(
        found,
        key=lambda each: (np.float32(each[0].scale), each[1].steps is None),
        default=(None, left),
    )[0]


def _same_numbers(left: Port, right: Port) -> bool:
    """Whether integers of two ports mean the same but for their sign."""
    if not (left.scale and right.scale) or left.dtype is None or right.dtype is None:
        return True
    offset = _sign_offset(right.dtype, left.dtype)
    same = np.float32(left.scale) == np.float32(right.scale)
    return bool(same) and (right.zero_point or 0) + offset == (left.zero_point or 0)


def _in_steps(values: AnyArray, source: Port, steps: Steps) -> AnyArray:
    """Values as integers of a quantisation; of integers without one only the sign may change."""
    limits = np.iinfo(steps.dtype)
    if values.dtype.kind == "f" or source.scale:
        real = values.astype(np.float64)
        if np.isnan(real).any():
            raise InputError(f"{source} holds NaN, which no step represents")
        if values.dtype.kind != "f":
            real = (real - (source.zero_point or 0)) * (source.scale or 1)
        rounded = np.rint(real / steps.scale) + steps.zero_point
        return np.asarray(rounded.clip(limits.min, limits.max).astype(steps.dtype))
    return _integers(values, source, Port(source.name, steps.dtype, None)).values


def _to_float(values: AnyArray, source: Port, target: Port) -> Converted:
    assert target.dtype is not None
    steps = target.steps
    if values.dtype.kind == "f" or not (source.scale or steps):
        return Converted(values.astype(target.dtype))
    stored = values
    if steps is None or source.scale:
        steps = Steps(source.scale or 1, source.zero_point or 0, values.dtype)
    else:
        stored = _integers(values, source, Port(target.name, steps.dtype, None)).values
    real = (stored.astype(np.float64) - steps.zero_point) * steps.scale
    return Converted(real.astype(target.dtype), "dequantised")


def _quantise(values: AnyArray, source: Port, target: Port) -> Converted:
    assert target.dtype is not None
    if target.dtype.kind == "b" or not (target.scale or source.steps):
        raise InputError(f"{source} cannot be converted to {target}, which has no scale")
    if not target.scale:
        assert source.steps is not None
        stored = _in_steps(values, source, source.steps)
        same = _integers(stored, Port(source.name, source.steps.dtype, None), target)
        return Converted(same.values, "quantised")
    steps = Steps(target.scale, target.zero_point or 0, target.dtype)
    return Converted(_in_steps(values, source, steps), "quantised")


def _integers(values: AnyArray, source: Port, target: Port) -> Converted:
    assert target.dtype is not None
    offset = _sign_offset(values.dtype, target.dtype)
    if source.scale and target.scale and not _same_numbers(target, source):
        steps = Steps(target.scale, target.zero_point or 0, target.dtype)
        return Converted(_in_steps(values, source, steps), "requantised")
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
        or "b" in (source.kind, target.kind)
    ):
        return 0
    middle = 1 << (8 * source.itemsize - 1)
    return middle if target.kind == "u" else -middle
