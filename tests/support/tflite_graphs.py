"""TensorFlow Lite graphs of a few operators, by the names of their tensors, for looking at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from darwinn_formats import flatbuffer, tflite
from darwinn_formats.darwinn.loader import CUSTOM_OPERATOR
from darwinn_formats.tflite import BuiltinOperator, QuantizationParameters, TensorType
from numpy.typing import NDArray

Constants = Mapping[str, NDArray[Any]]
Step = tuple[str, Sequence[str], Sequence[str]]
"""An operator's name, the names of what it reads, and of what it gives."""


def tensor(
    name: str,
    shape: Sequence[int],
    kind: TensorType = TensorType.INT8,
    signature: Sequence[int] = (),
    buffer: int = 0,
) -> tflite.Tensor:
    """A tensor; one of 8 bits has a scale."""
    eight_bits = kind in (TensorType.INT8, TensorType.UINT8)
    quantisation = QuantizationParameters(scale=(0.5,), zero_point=(0,)) if eight_bits else None
    return tflite.Tensor(
        tuple(shape), kind, buffer, name, quantisation, shape_signature=tuple(signature)
    )


def model(
    tensors: Sequence[tflite.Tensor],
    steps: Sequence[Step],
    outputs: Sequence[str],
    constants: Constants | None = None,
    options: Mapping[int, Any] | None = None,
) -> bytes:
    """A graph: ``options`` are those of operators by number; a name that no builtin has is custom.

    What no operator gives is an input, but for the constants.
    """
    held = dict(constants or {})
    buffers = [tflite.Buffer(memoryview(b""))]
    every = list(tensors)
    for name, data in held.items():
        buffers.append(tflite.Buffer(memoryview(data.tobytes())))
        kind = {"i1": TensorType.INT8, "i4": TensorType.INT32}[data.dtype.str[1:]]
        every.append(tensor(name, data.shape, kind, buffer=len(buffers) - 1))
    place = {each.name: k for k, each in enumerate(every)}
    place[""] = -1
    names = list(dict.fromkeys(step[0] for step in steps))
    codes = tuple(_code(name) for name in names)
    operators = tuple(
        tflite.Operator(
            names.index(name),
            tuple(place[each] for each in given),
            tuple(place[each] for each in results),
            (options or {}).get(number),
        )
        for number, (name, given, results) in enumerate(steps)
    )
    computed = {each for _, _, results in steps for each in results}
    inputs = tuple(
        k for k, each in enumerate(every) if each.name not in computed and each.name not in held
    )
    graph = tflite.SubGraph(
        tuple(every), inputs, tuple(place[each] for each in outputs), operators, "main"
    )
    return flatbuffer.write(tflite.Model(3, codes, (graph,), "test", tuple(buffers)))


def _code(name: str) -> tflite.OperatorCode:
    if name in BuiltinOperator.__members__:
        number = int(BuiltinOperator[name])
        return tflite.OperatorCode(min(number, 127), "", 1, number)
    return tflite.OperatorCode(int(BuiltinOperator.CUSTOM), name, 1, int(BuiltinOperator.CUSTOM))


def ints(*values: Any) -> NDArray[np.int32]:
    """A constant of 32-bit integers."""
    return np.array(values, np.int32)


__all__ = ["CUSTOM_OPERATOR", "Constants", "Step", "ints", "model", "tensor"]
