"""TensorFlow Lite files of one operator, which LiteRT and the oracle both read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from darwinn_formats import flatbuffer, tflite
from darwinn_formats.tflite import BuiltinOperator
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.graph import NetworkTensor, TensorValues
from darwinn_reference.tflite.litert import LiteRtReference
from one_operator import Array

_TYPES = {dtype: kind for kind, dtype in tflite.DTYPES.items()}
_VERSION = 2
"""A version that LiteRT has of nearly every operator used here, and at which it takes int8."""
_VERSIONS = dict.fromkeys(
    (BuiltinOperator.RELU_0_TO_1, BuiltinOperator.DEPTH_TO_SPACE, BuiltinOperator.PRELU), 1
)


def tiny_model(
    operator: BuiltinOperator,
    tensors: Sequence[NetworkTensor],
    inputs: Sequence[int],
    outputs: Sequence[int],
    options: Any = None,
) -> bytes:
    """A file of one operator; its inputs are the tensors that have no constant value."""
    buffers = [tflite.Buffer(memoryview(b""))]
    described = []
    for each in tensors:
        place = 0
        if each.constant is not None:
            buffers.append(tflite.Buffer(memoryview(np.ascontiguousarray(each.constant).tobytes())))
            place = len(buffers) - 1
        quantisation = None
        if len(each.scale):
            quantisation = tflite.QuantizationParameters(
                scale=tuple(map(float, each.scale)),
                zero_point=tuple(map(int, each.zero_point)),
                quantized_dimension=each.channel_axis,
            )
        described.append(
            tflite.Tensor(each.shape, _TYPES[each.dtype], place, each.name, quantisation)
        )
    version = _VERSIONS.get(operator, _VERSION)
    code = tflite.OperatorCode(min(int(operator), 127), "", version, int(operator))
    fed = tuple(dict.fromkeys(k for k in inputs if k >= 0 and tensors[k].constant is None))
    done = tflite.Operator(0, tuple(inputs), tuple(outputs), options)
    graph = tflite.SubGraph(tuple(described), fed, tuple(outputs), (done,), "main")
    return flatbuffer.write(tflite.Model(3, (code,), (graph,), "test", tuple(buffers)))


def both(model: bytes, *inputs: Array) -> tuple[TensorValues, TensorValues]:
    """The values by the chip's arithmetic and by LiteRT."""
    return ChipArithmetic(tflite.load(model)).run(inputs), LiteRtReference(model).run(inputs)
