"""Recurrent networks in every form that tests need, as a converter writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from darwinn_formats import flatbuffer, tflite
from darwinn_formats.tflite import (
    ActivationFunctionType,
    BuiltinOperator,
    QuantizationParameters,
    TensorType,
)
from darwinn_formats.tflite.options import UnidirectionalSequenceLSTMOptions
from numpy.typing import NDArray

_GATES = 4
_KINDS = {"i1": TensorType.INT8, "i2": TensorType.INT16, "i4": TensorType.INT32}


@dataclass(frozen=True)
class Lstm:
    """An LSTM: ``steps`` of ``inputs`` values each, and ``units``.

    ``left_out`` are inputs of the operator by their places; with ``several_zero_points`` one gate's
    weights have another one. Biases are drawn up to ``bias``.
    """

    seed: int = 1
    steps: int = 4
    inputs: int = 6
    units: int = 5
    time_major: bool = False
    sequences: int = 1
    zero_point: int = -3
    cell_scale: float = 2**-12
    bias: int = 3000
    cell_clip: float = 0.0
    activation: ActivationFunctionType = ActivationFunctionType.TANH
    left_out: tuple[int, ...] = ()
    several_zero_points: bool = False

    def model(self) -> bytes:
        """The file."""
        return _Writer(self).finish()


class _Writer:
    def __init__(self, lstm: Lstm) -> None:
        self._lstm = lstm
        self._random = np.random.default_rng(lstm.seed)
        self._tensors: list[tflite.Tensor] = []
        self._buffers = [tflite.Buffer(memoryview(b""))]

    def finish(self) -> bytes:
        lstm = self._lstm
        order = (lstm.steps, lstm.sequences) if lstm.time_major else (lstm.sequences, lstm.steps)
        hidden = 2**-7, lstm.zero_point
        inputs = [-1] * 24
        inputs[0] = self._tensor("x", (*order, lstm.inputs), "i1", 2**-6, 5)
        for gate in range(_GATES):
            odd = int(lstm.several_zero_points and gate == 1)
            inputs[1 + gate] = self._weights(lstm.inputs, odd)
            inputs[5 + gate] = self._weights(lstm.units, 0)
            inputs[12 + gate] = self._constant(
                self._random.integers(-lstm.bias, lstm.bias + 1, lstm.units).astype("i4"), 2**-14, 0
            )
        state = (lstm.sequences, lstm.units)
        inputs[18] = self._tensor("hidden", state, "i1", *hidden, variable=True)
        inputs[19] = self._tensor("cell", state, "i2", lstm.cell_scale, 0, variable=True)
        for place in lstm.left_out:
            inputs[place] = -1
        result = self._tensor("y", (*order, lstm.units), "i1", *hidden)
        options = UnidirectionalSequenceLSTMOptions(
            fused_activation_function=lstm.activation,
            cell_clip=lstm.cell_clip,
            time_major=lstm.time_major,
        )
        number = int(BuiltinOperator.UNIDIRECTIONAL_SEQUENCE_LSTM)
        operator = tflite.Operator(0, tuple(inputs), (result,), options)
        graph = tflite.SubGraph(tuple(self._tensors), (inputs[0],), (result,), (operator,), "main")
        code = tflite.OperatorCode(number, "", 3, number)
        return flatbuffer.write(tflite.Model(3, (code,), (graph,), "test", tuple(self._buffers)))

    def _weights(self, inputs: int, zero_point: int) -> int:
        values = self._random.integers(-127, 128, (self._lstm.units, inputs)).astype("i1")
        return self._constant(values, float(self._random.uniform(0.002, 0.01)), zero_point)

    def _constant(self, values: NDArray[Any], scale: float, zero_point: int) -> int:
        self._buffers.append(tflite.Buffer(memoryview(values.tobytes())))
        kind = values.dtype.str[1:]
        return self._tensor("", values.shape, kind, scale, zero_point, len(self._buffers) - 1)

    def _tensor(
        self,
        name: str,
        shape: tuple[int, ...],
        kind: str,
        scale: float,
        zero_point: int,
        buffer: int = 0,
        *,
        variable: bool = False,
    ) -> int:
        quantisation = QuantizationParameters(scale=(scale,), zero_point=(zero_point,))
        self._tensors.append(
            tflite.Tensor(
                shape,
                _KINDS[kind],
                buffer,
                name or f"c{len(self._tensors)}",
                quantisation,
                is_variable=variable,
            )
        )
        return len(self._tensors) - 1
