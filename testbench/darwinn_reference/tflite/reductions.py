"""Sums and extremes along constant axes; the mean is among the pools (``layers``)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.call import Call, Operand, same_quantisation
from darwinn_reference.tflite.operators import requantised
from darwinn_reference.tflite.output_stage import (
    INT32_MAXIMUM,
    NotComputableError,
)

_BYTE_SPAN = 255


def axes_of(call: Call) -> tuple[int, ...]:
    """The axes that go, each once, in order; refused if there are none."""
    value = call.operand(0).value
    axes = from_the_front(call.constant(1).reshape(-1).tolist(), value.ndim)
    if not axes or not value.size:
        raise NotComputableError("a reduction of nothing")
    return axes


def from_the_front(axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Axes of a tensor, of which negative ones count from the end; refused if one is not there."""
    known = set(axes)
    for axis in known:
        if not -rank <= axis < rank:
            raise NotComputableError(f"axis {axis} of a tensor of {rank} axes")
    return tuple(sorted({axis % rank for axis in known}))


def total(call: Call) -> AnyArray:
    """SUM: the sum of the centred bytes, and one output stage."""
    operand = call.operand(0)
    if _BYTE_SPAN * operand.value.size > INT32_MAXIMUM:
        raise NotComputableError("the sum may exceed the int32 accumulator")
    sums = operand.centred().sum(axis=axes_of(call)).reshape(call.output.shape)
    return call.finish(sums, call.requantisation(operand), activation="NONE")


def extreme(call: Call, choose: np.ufunc) -> AnyArray:
    """REDUCE_MAX, REDUCE_MIN: the greatest or least byte."""
    operand = call.operand(0)
    values = choose.reduce(operand.value, axis=axes_of(call))
    shaped = np.asarray(values).reshape(call.outputs[0].shape)
    if same_quantisation(operand.tensor, call.outputs[0]):
        return shaped
    call.assume("the greatest or least byte is then brought to the output's scale")
    return requantised(call, Operand(operand.tensor, shaped))
