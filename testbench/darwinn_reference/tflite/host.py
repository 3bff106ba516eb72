"""Operators that the host does beside the chip, in LiteRT's arithmetic.

They stand at the edges of a network whose inputs or outputs are floats, and between the parts that
the compiler maps: the same real input then goes both ways, through the chip and the references.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.call import Call, Operand, require_same_quantisation, usable
from darwinn_reference.tflite.graph import NetworkTensor
from darwinn_reference.tflite.output_stage import NotComputableError

_QUANTISED_TYPES = (np.uint8, np.int8, np.int16)


def _half_away(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """The nearest integer, halves away from zero, as C's round; the difference is exact."""
    rounded: NDArray[np.float32] = np.trunc(values)
    rounded += np.copysign(np.float32(1), values) * (np.abs(values - rounded) >= 0.5)
    return rounded


def _grid(tensor: NetworkTensor) -> tuple[np.float32, int]:
    """Scale and zero point of a tensor that real values are brought to, or read from."""
    if tensor.dtype not in _QUANTISED_TYPES or not tensor.quantised or not usable(tensor.scale):
        raise NotComputableError(f"tensor {tensor.index} ({tensor.name}) has no single scale")
    return np.float32(tensor.scale[0]), int(tensor.zero_point[0])


def quantize_floats(call: Call) -> AnyArray:
    """QUANTIZE of float32: round(x / scale) + zero point, halves away from zero."""
    output = call.outputs[0]
    scale, zero_point = _grid(output)
    limits = np.iinfo(output.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        real = _numbers(call.operand(0), "f").astype(np.float32)
        levels = _half_away(real / scale).astype(np.float64) + zero_point
    # A value that is no number becomes the least one, as where LiteRT runs.
    bounded = np.nan_to_num(np.clip(levels, limits.min, limits.max), nan=limits.min)
    quantised: AnyArray = bounded.astype(output.dtype)
    return quantised


def dequantize(call: Call) -> AnyArray:
    """DEQUANTIZE to float32: (value - zero_point) * scale, or the same number of float16."""
    operand = call.operand(0)
    if call.outputs[0].dtype != np.float32:
        raise NotComputableError(f"output of {call.outputs[0].dtype}")
    if operand.value.dtype == np.float16:
        return operand.value.astype(np.float32)
    scale, zero_point = _grid(operand.tensor)
    return (operand.value.astype(np.int64) - zero_point).astype(np.float32) * scale


def cast(call: Call) -> AnyArray:
    """CAST between numbers; what does not fit an integer is refused."""
    value, target = call.operand(0).value, call.outputs[0].dtype
    if target.kind not in "biuf" or value.dtype.kind not in "biuf":
        raise NotComputableError(f"cast from {value.dtype} to {target}")
    if target.kind in "iu" and value.size:
        limits = np.iinfo(target)
        inside = (value >= limits.min) & (value <= limits.max)
        if not inside.all():
            raise NotComputableError(f"cast of numbers that {target} does not hold")
    converted: AnyArray = value.astype(target)
    return converted


def shape(call: Call) -> AnyArray:
    """SHAPE: the extents of a tensor, whatever it holds."""
    return np.array(call.operand(0).value.shape, call.outputs[0].dtype)


def place(call: Call, choose: Callable[..., AnyArray]) -> AnyArray:
    """ARG_MAX, ARG_MIN: the first index of the greatest or least value."""
    indices = choose(call.operand(0).value, axis=int(call.constant(1).reshape(-1)[0]))
    return indices.astype(call.outputs[0].dtype)


def gather(call: Call) -> AnyArray:
    """GATHER: slices of one axis at the indices of the second input."""
    operand, indices = call.operand(0), call.operand(1).value
    require_same_quantisation(operand.tensor, call.outputs[0])
    if call.option("batch_dims", 0):
        raise NotComputableError("GATHER with batch dimensions")
    axis = int(call.option("axis", 0))
    _require_within(indices, operand.value.shape[axis])
    return np.take(operand.value, indices, axis=axis)


def gather_nd(call: Call) -> AnyArray:
    """GATHER_ND: slices at the indices along the last axis of the second input."""
    operand, indices = call.operand(0), call.operand(1).value
    require_same_quantisation(operand.tensor, call.outputs[0])
    _require_within(indices, operand.value.shape[: indices.shape[-1]])
    found: AnyArray = operand.value[tuple(np.moveaxis(indices, -1, 0))]
    return found


def _require_within(indices: AnyArray, sizes: int | tuple[int, ...]) -> None:
    if ((indices < 0) | (indices >= np.asarray(sizes))).any():
        raise NotComputableError("an index beyond the tensor")


def floor_divide(call: Call) -> AnyArray:
    """FLOOR_DIV of numbers; of integers the divisor is not 0."""
    if call.operand(1).value.dtype.kind == "i" and not call.operand(1).value.all():
        raise NotComputableError("division by zero")
    return of_numbers(call, np.floor_divide)


def square_root(call: Call) -> AnyArray:
    """SQRT of floats."""
    with np.errstate(invalid="ignore"):
        roots: AnyArray = np.sqrt(_numbers(call.operand(0), "f"))
    return roots


def of_numbers(call: Call, function: np.ufunc, kinds: str = "if") -> AnyArray:
    """ADD, SUB, MUL of numbers, DIV of floats."""
    left, right = (_numbers(call.operand(k), kinds) for k in (0, 1))
    if call.activation != "NONE":
        raise NotComputableError(f"numbers with the fused activation {call.activation}")
    call.expect(np.broadcast_shapes(left.shape, right.shape))
    with np.errstate(all="ignore"):
        result: AnyArray = function(left, right)
    return result


def _numbers(operand: Operand, kinds: str) -> AnyArray:
    if operand.value.dtype.kind not in kinds:
        raise NotComputableError(f"{operand.value.dtype} numbers")
    return operand.value
