"""UNIDIRECTIONAL_SEQUENCE_LSTM as the compiler expresses it on the chip.

A CPU interpreter keeps the gates' sums in 16 bits; the compiler quantises W x + b and R h each to
8 bits with the scale of the output, where they saturate, so that the results differ by
construction. The scales of the values between instructions are the compiler's own: those below
give the scale field of every instruction of the public LSTM to the bit (docs/comparison.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.call import Call, Operand
from darwinn_reference.tflite.factors import addition_weights, conversion_factor
from darwinn_reference.tflite.graph import NetworkTensor
from darwinn_reference.tflite.output_stage import (
    INT32_MAXIMUM,
    NotComputableError,
    clip_bounds,
    output_stage,
    requantise,
    summing_dtype,
)

STATE_INPUTS = (18, 19)
"""Inputs that hold the hidden and the cell state: variables that an inference updates."""

GATES = ("input", "forget", "candidate", "output")
FIRST_INPUT_WEIGHTS, FIRST_RECURRENT_WEIGHTS, FIRST_BIAS = 1, 5, 12
"""Inputs that hold weights and biases of the first of the gates; the others follow."""
_UNKNOWN_INPUTS = {
    "peepholes": (9, 10, 11),
    "projection": (16, 17),
    "layer normalisation": (20, 21, 22, 23),
}
_BYTE_SPAN = 255


def _intermediate(name: str, dtype: type[np.generic], scale: float) -> NetworkTensor:
    """A value between instructions, in the value domain (zero point 0)."""
    scales = np.array([scale], np.float32)
    return NetworkTensor(-1, name, (), np.dtype(dtype), scales, np.zeros(1, np.int64))


GATE = _intermediate("sigmoid of a gate", np.uint8, 1 / 255)
CANDIDATE = _intermediate("tanh of the candidate", np.int8, 2 / 255)
GATED_CANDIDATE = _intermediate("gated candidate", np.int16, 2 / 32767)
CELL_ACTIVATION = _intermediate("tanh of the cell", np.int16, 2 / 32767)
"""Values between the steps: types and scales are the compiler's own."""


def unidirectional_sequence_lstm(call: Call) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Outputs of all time steps, then the hidden and the cell state after the last one."""
    _refuse_unknown_forms(call)
    sequence, hidden, cell = call.operand(0), call.operand(18), call.operand(19)
    time_axis = 0 if call.option("time_major", False) else 1
    back = {
        gate: _Product(call, hidden, FIRST_RECURRENT_WEIGHTS + position)
        for position, gate in enumerate(GATES)
    }
    # What does not depend on the state is computed for all steps at once.
    steps = np.moveaxis(sequence.value, time_axis, 0)
    fed = {
        gate: _Product(call, sequence, FIRST_INPUT_WEIGHTS + position, FIRST_BIAS + position)(steps)
        for position, gate in enumerate(GATES)
    }
    state, memory = hidden.value, cell.value.astype(np.int64)
    # The cell state is an addition as any other.
    addition = addition_weights(GATED_CANDIDATE.scale[0], cell.tensor.scale[0], cell.tensor)
    clip = float(call.option("cell_clip", 0.0))
    limit = cell_limit(cell.tensor, clip)
    if np.isfinite(limit):
        call.assume(f"the new cell of an LSTM is bounded by cell_clip {clip}")
    outputs = []
    for step in range(len(steps)):
        sums = {gate: fed[gate][step] + back[gate](state) for gate in GATES}
        state, memory = _step(call, sums, memory, cell.tensor, addition, limit)
        outputs.append(state)
    return np.stack(outputs, axis=time_axis), state, memory.astype(cell.tensor.dtype)


def _refuse_unknown_forms(call: Call) -> None:
    for name, positions in _UNKNOWN_INPUTS.items():
        if any(call.optional(position) is not None for position in positions):
            raise NotComputableError(f"LSTM with {name}")
    if call.activation != "TANH":
        raise NotComputableError(f"LSTM with activation {call.activation}")
    hidden, cell = call.operand(18).tensor, call.operand(19).tensor
    if not np.array_equal(hidden.scale, call.output.scale) or not np.array_equal(
        hidden.zero_point, call.output.zero_point
    ):
        raise NotComputableError("LSTM whose hidden state is not quantised as its output")
    if cell.dtype != np.int16 or not cell.quantised or cell.zero_point[0] != 0:
        raise NotComputableError("LSTM whose cell state is not symmetric int16")


def cell_limit(cell: NetworkTensor, clip: float) -> np.float32:
    """The greatest magnitude of a new cell state by its ``cell_clip``, in its unit; inf without one
    within the range of its type."""
    limit = np.trunc(np.float32(clip) / cell.scale[0])
    return limit if 0 < limit < np.iinfo(cell.dtype).max else np.float32(np.inf)


class _Product:
    """W x + b, or R h, of a gate: a saturated byte of the output's scale, less its zero point."""

    def __init__(
        self, call: Call, source: Operand, weights_at: int, bias_at: int | None = None
    ) -> None:
        weights = call.operand(weights_at)
        matrix = weights.centred(np.float64)
        bias = 0 if bias_at is None else call.operand(bias_at).value
        bound = _BYTE_SPAN * np.abs(matrix).sum(axis=1) + np.abs(np.asarray(bias, np.float64))
        if bound.max(initial=0) > INT32_MAXIMUM:
            raise NotComputableError("LSTM whose gates may exceed the int32 accumulator")
        # Exact by the bound: integer terms, every partial sum of which the dtype holds.
        dtype = summing_dtype(float(bound.max(initial=0)))
        self._columns: AnyArray = matrix.T.astype(dtype)
        self._bias: AnyArray = np.asarray(bias, dtype)
        self._zero_point, self._output = dtype(source.zero_point), call.output
        self._factor = conversion_factor(source.scale, call.output, np.atleast_1d(weights.scale))

    def __call__(self, values: AnyArray) -> NDArray[np.int64]:
        """Of vectors of stored values, one in each row of the last axis."""
        total = (values.astype(self._columns.dtype) - self._zero_point) @ self._columns + self._bias
        saturated = output_stage(total, self._factor, self._output)
        return saturated.astype(np.int64) - int(self._output.zero_point[0])


def _step(
    call: Call,
    sums: dict[str, NDArray[np.int64]],
    memory: NDArray[np.int64],
    cell: NetworkTensor,
    addition: tuple[int, int, np.float32],
    limit: np.float32,
) -> tuple[AnyArray, NDArray[np.int64]]:
    """One time step: the new hidden state (bytes) and the new cell state (int16 values).

    ``addition`` are the weights of the gated candidate and the cell state, and their sum's factor;
    ``limit`` is the greatest new cell state by its ``cell_clip``.
    """
    unit = call.output.scale[0]
    function = call.choices.levels
    opened = np.stack([sums[name] for name in ("input", "forget", "output")])
    admit, forget, emit = function("sigmoid", opened.astype(np.float32) * unit, GATE)
    candidate = function("tanh", sums["candidate"].astype(np.float32) * unit, CANDIDATE)
    gated = _gated(admit, candidate, CANDIDATE, GATED_CANDIDATE)
    kept = _gated(forget, memory, cell, cell)
    # The tanh is taken of the unrounded sum.
    first, second, factor = addition
    total = first * gated + second * kept
    real = total.astype(np.float32) * (GATED_CANDIDATE.scale[0] / np.float32(first))
    real = np.clip(real, -limit * cell.scale[0], limit * cell.scale[0])
    squashed = function("tanh", real, CELL_ACTIVATION)
    hidden = output_stage(
        emit * squashed,
        conversion_factor(GATE.scale[0], call.output, CELL_ACTIVATION.scale),
        call.output,
    )
    low, high = clip_bounds(cell)
    bounds = max(low, -limit), min(high, limit)
    return hidden, requantise(total, factor, bounds, 0, cell.dtype).astype(np.int64)


def _gated(
    gate: NDArray[np.int64], value: NDArray[np.int64], source: NetworkTensor, output: NetworkTensor
) -> NDArray[np.int64]:
    """gate * value in the unit of ``output``; at most 255 * 2^15 < 2^24 before the scale."""
    factor = conversion_factor(GATE.scale[0], output, source.scale)
    return output_stage(gate * value, factor, output).astype(np.int64)
