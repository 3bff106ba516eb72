"""Recurrent networks in every form that tests need, as a converter writes them."""

from __future__ import annotations

from collections.abc import Sequence
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
from darwinn_formats.tflite import options as o
from darwinn_testbench.compiler.random_networks import RandomNetwork
from darwinn_testbench.compiler.random_networks import _Value as Value
from numpy.typing import NDArray

_GATES = 4
_KINDS = {
    "i1": TensorType.INT8,
    "i2": TensorType.INT16,
    "i4": TensorType.INT32,
    "b1": TensorType.BOOL,
    "resource": TensorType.RESOURCE,
}


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

    def twice(self) -> bytes:
        """Two such layers, one behind the other, the second with as many inputs as units."""
        return _Writer(self).finish(layers=2)


class _Writer:
    def __init__(self, lstm: Lstm) -> None:
        self._lstm = lstm
        self._random = np.random.default_rng(lstm.seed)
        self._tensors: list[tflite.Tensor] = []
        self._buffers = [tflite.Buffer(memoryview(b""))]

    def finish(self, layers: int = 1) -> bytes:
        lstm = self._lstm
        source = first = self._tensor("x", self._shape(lstm.inputs), "i1", 2**-6, 5)
        operators, width = [], lstm.inputs
        for number in range(layers):
            name = "" if number == 0 else f" of layer {number}"
            operators.append(self._layer(source, width, name))
            (source,), width = operators[-1].outputs, lstm.units
        number = int(BuiltinOperator.UNIDIRECTIONAL_SEQUENCE_LSTM)
        graph = tflite.SubGraph(tuple(self._tensors), (first,), (source,), tuple(operators), "main")
        code = tflite.OperatorCode(number, "", 3, number)
        return flatbuffer.write(tflite.Model(3, (code,), (graph,), "test", tuple(self._buffers)))

    def _shape(self, values: int) -> tuple[int, ...]:
        lstm = self._lstm
        order = (lstm.steps, lstm.sequences) if lstm.time_major else (lstm.sequences, lstm.steps)
        return (*order, values)

    def _layer(self, source: int, width: int, name: str) -> tflite.Operator:
        lstm, hidden = self._lstm, (2**-7, self._lstm.zero_point)
        inputs = [source] + [-1] * 23
        for gate in range(_GATES):
            odd = int(lstm.several_zero_points and gate == 1)
            inputs[1 + gate] = self._weights(width, odd)
            inputs[5 + gate] = self._weights(lstm.units, 0)
            inputs[12 + gate] = self._constant(
                self._random.integers(-lstm.bias, lstm.bias + 1, lstm.units).astype("i4"), 2**-14, 0
            )
        state = (lstm.sequences, lstm.units)
        inputs[18] = self._tensor(f"hidden{name}", state, "i1", *hidden, variable=True)
        inputs[19] = self._tensor(f"cell{name}", state, "i2", lstm.cell_scale, 0, variable=True)
        for place in lstm.left_out:
            inputs[place] = -1
        result = self._tensor(f"y{name}", self._shape(lstm.units), "i1", *hidden)
        options = o.UnidirectionalSequenceLSTMOptions(
            fused_activation_function=lstm.activation,
            cell_clip=lstm.cell_clip,
            time_major=lstm.time_major,
        )
        return tflite.Operator(0, tuple(inputs), (result,), options)

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


class Unrolled(RandomNetwork):
    """Recurrent layers as Keras unrolls them, of operators of each step.

    The steps of the input are taken apart, and the first one has no state.
    """

    def __init__(self, seed: int, steps: int, inputs: int, units: int) -> None:
        super().__init__(seed, (1, steps, inputs), signed=True)
        self._units = units
        source = self.values[0]
        parts = [self._value((1, inputs), source.scale, source.zero_point) for _ in range(steps)]
        options = o.UnpackOptions(steps, 1)
        self._operate(BuiltinOperator.UNPACK, (source.index,), parts[-1], options, parts[:-1])
        self._steps = parts

    def unrolled_lstm(self) -> bytes:
        """A long short-term memory: gates of one layer, which is split."""
        hidden = cell = None
        for step in self._steps:
            gates = self._affine(step, 4)
            if hidden:
                gates = self._sum(gates, self._affine(hidden, 4))
            admit, forget, candidate, emit = self._parts(gates, 4)
            new = self._product(self.function(admit), self._tanh(candidate))
            if cell:
                new = self._sum(self._product(self.function(forget), cell), new)
            cell, hidden = new, self._product(self.function(emit), self._tanh(new))
        return self.finish()

    def unrolled_gru(self) -> bytes:
        """A gated recurrent unit, with the reset behind the matrix."""
        hidden = None
        for step in self._steps:
            update, reset, candidate = self._parts(self._affine(step, 3), 3)
            if hidden is None:
                hidden = self._product(self.function(update), self._tanh(candidate))
                continue
            parts = self._parts(self._affine(hidden, 3), 3)
            kept = self.function(self._sum(update, parts[0]))
            again = self._product(self.function(self._sum(reset, parts[1])), parts[2])
            new = self._tanh(self._sum(candidate, again))
            rest = self.with_constant(kept, BuiltinOperator.SUB, (1, 1))
            hidden = self._sum(self._product(kept, hidden), self._product(rest, new))
        return self.finish()

    def _affine(self, source: Value, gates: int) -> Value:
        shape = (gates * self._units, source.elements)
        weights, bias, scale, zero_point = self._weights(shape, source.elements, source, 0)
        result = self._value((1, shape[0]), scale, zero_point)
        options = o.FullyConnectedOptions()
        inputs = (source.index, weights, bias)
        return self._operate(BuiltinOperator.FULLY_CONNECTED, inputs, result, options)

    def _parts(self, source: Value, count: int) -> list[Value]:
        shape = (1, self._units)
        parts = [self._value(shape, source.scale, source.zero_point) for _ in range(count)]
        inputs = (self._constant(np.array(1, np.int32)), source.index)
        options = o.SplitOptions(count)
        self._operate(BuiltinOperator.SPLIT, inputs, parts[-1], options, parts[:-1])
        return parts

    def _tanh(self, source: Value) -> Value:
        result = self._value(source.shape, 1 / 128, 0)
        return self._operate(BuiltinOperator.TANH, (source.index,), result)

    def _sum(self, left: Value, right: Value) -> Value:
        result = self._value(left.shape, left.scale + right.scale, 0)
        inputs = (left.index, right.index)
        return self._operate(BuiltinOperator.ADD, inputs, result, o.AddOptions())

    def _product(self, left: Value, right: Value) -> Value:
        result = self._value(left.shape, 1 / 128, 0)
        inputs = (left.index, right.index)
        return self._operate(BuiltinOperator.MUL, inputs, result, o.MulOptions())


def loop() -> bytes:
    """A WHILE loop: its condition and its body are graphs of their own."""
    number, state = ("i", (1,), "i4"), ("state", (1, 4), "i1")
    calls = BuiltinOperator.WHILE, BuiltinOperator.LESS, BuiltinOperator.ADD, BuiltinOperator.TANH
    main = _graph("main", [number, state, number, state], (0, 1), [(0, (0, 1), (2, 3))], 2)
    less = ("less", (1,), "b1")
    condition = _graph("condition", [number, state, less], (0, 1), [(1, (0, 0), (2,))])
    steps = [(2, (0, 0), (2,)), (3, (1,), (3,))]
    body = _graph("body", [number, state, number, state], (0, 1), steps, 2)
    return _model(calls, (main, condition, body))


def assigned() -> bytes:
    """A state that is a variable of its own: read, changed, and assigned."""
    calls = (
        BuiltinOperator.VAR_HANDLE,
        BuiltinOperator.READ_VARIABLE,
        BuiltinOperator.ADD,
        BuiltinOperator.ASSIGN_VARIABLE,
    )
    state = ("state", (1, 4), "i1")
    tensors = [state, ("handle", (), "resource"), state, state]
    steps: list[_Step] = [(0, (), (1,)), (1, (1,), (2,)), (2, (0, 2), (3,)), (3, (1, 3), ())]
    return _model(calls, (_graph("main", tensors, (0,), steps),))


_Step = tuple[int, tuple[int, ...], tuple[int, ...]]
"""An operator by its code, what it reads and what it gives."""


def _graph(
    name: str,
    tensors: list[tuple[str, tuple[int, ...], str]],
    inputs: tuple[int, ...],
    steps: Sequence[_Step],
    outputs: int = 1,
) -> tflite.SubGraph:
    """A graph whose outputs are the last results of its operators."""
    quantisation = QuantizationParameters(scale=(2**-7,), zero_point=(0,))
    made = [k for _, _, results in steps for k in results]
    return tflite.SubGraph(
        tuple(
            tflite.Tensor(
                shape, _KINDS[kind], 0, f"{each}{k}", quantisation if kind == "i1" else None
            )
            for k, (each, shape, kind) in enumerate(tensors)
        ),
        inputs,
        tuple(made[-outputs:]),
        tuple(tflite.Operator(code, given, results) for code, given, results in steps),
        name,
    )


def _model(operators: tuple[BuiltinOperator, ...], graphs: tuple[tflite.SubGraph, ...]) -> bytes:
    codes = tuple(tflite.OperatorCode(min(int(k), 127), "", 1, int(k)) for k in operators)
    buffers = (tflite.Buffer(memoryview(b"")),)
    return flatbuffer.write(tflite.Model(3, codes, graphs, "test", buffers))
