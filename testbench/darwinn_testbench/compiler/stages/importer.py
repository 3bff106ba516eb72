"""From a quantised TensorFlow Lite network to operations in integers.

What an operator has to be for the chip is checked here, operator by operator: each function of the
table makes the operation of one operator, or says why it cannot (``StaysError``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass

import numpy as np
from darwinn_reference.tflite.graph import Operator
from darwinn_reference.tflite.output_stage import NotComputableError

from darwinn_testbench.compiler.stages.import_batches import dilated_convolution
from darwinn_testbench.compiler.stages.import_elements import (
    added,
    addition,
    function_of,
    inverse_root,
    l2_normalization,
    leaky_relu,
    multiplication,
    reduce_max,
    requantise,
    softmax,
    squared_difference,
)
from darwinn_testbench.compiler.stages.import_extremes import extreme, prelu
from darwinn_testbench.compiler.stages.import_layers import (
    average_pool_2d,
    conv_2d,
    depthwise_conv_2d,
    fully_connected,
    max_pool_2d,
    transpose_conv,
)
from darwinn_testbench.compiler.stages.import_recurrent import lstm
from darwinn_testbench.compiler.stages.import_shapes import (
    concatenation,
    depth_to_space,
    pack,
    pad,
    resize_bilinear,
    resize_nearest,
    sliced,
    space_to_depth,
    split,
    split_v,
    strided_slice,
    tile,
    transpose,
    unpack,
    view,
)
from darwinn_testbench.compiler.stages.operands import Made, Operands, StaysError
from darwinn_testbench.compiler.stages.operations import (
    AnyOperation,
    FunctionTable,
    OutputStage,
)

__all__ = ["Importer", "StaysError"]


class Importer(Operands):
    """Makes operations of the operators of a network, in their order."""

    def take(self, operator: Operator) -> list[AnyOperation]:
        """The operations of an operator; none if it only changes a shape.

        Raises:
            StaysError: it has none, and why.
        """
        if operator.index in self.merged:
            return []
        make = _OPERATORS.get(operator.name)
        if make is None or operator.custom:
            raise StaysError("not supported")
        if operator.unread_options:
            raise StaysError(f"options {operator.unread_options} are not read")
        reshaped = dict(self._reshaped)
        self._ahead = []
        try:
            with np.errstate(all="ignore"):
                made = make(self, operator)
            operations = [*self._ahead, *_listed(made)]
            if not all(map(_is_finite, operations)):
                raise StaysError("scales whose ratio is no finite float32")
        except (NotComputableError, StaysError) as reason:
            self._reshaped = reshaped
            raise StaysError(str(reason)) from None
        if made is not None:
            self.takes(operator)
        return operations


def _listed(made: Made) -> list[AnyOperation]:
    if made is None:
        return []
    return made if isinstance(made, list) else [made]


def _is_finite(value: object) -> bool:
    """Whether all floating point numbers of an operation are finite, whose bounds need not be."""
    if isinstance(value, OutputStage):
        value = value.factors, value.table
    elif isinstance(value, FunctionTable):
        value = value.coefficients
    if isinstance(value, np.ndarray | np.floating):
        return value.dtype.kind != "f" or bool(np.isfinite(value).all())
    if isinstance(value, tuple):
        return all(map(_is_finite, value))
    return not is_dataclass(value) or all(map(_is_finite, vars(value).values()))


_OPERATORS: Mapping[str, Callable[[Operands, Operator], Made]] = {
    "ADD": addition(1),
    "AVERAGE_POOL_2D": average_pool_2d,
    "CONCATENATION": concatenation,
    "CONV_2D": conv_2d,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d,
    "DEPTH_TO_SPACE": depth_to_space,
    "EXPAND_DIMS": view,
    "FULLY_CONNECTED": fully_connected,
    "L2_NORMALIZATION": l2_normalization,
    "LEAKY_RELU": leaky_relu,
    "LOGISTIC": function_of("sigmoid"),
    "MAXIMUM": extreme(greatest=True),
    "MAX_POOL_2D": max_pool_2d,
    "MEAN": added(mean=True),
    "MINIMUM": extreme(greatest=False),
    "MUL": multiplication,
    "PACK": pack,
    "PAD": pad,
    "PRELU": prelu,
    "QUANTIZE": requantise("NONE"),
    "REDUCE_MAX": reduce_max,
    "RELU": requantise("RELU"),
    "RELU6": requantise("RELU6"),
    "RELU_N1_TO_1": requantise("RELU_N1_TO_1"),
    "RESHAPE": view,
    "RESIZE_BILINEAR": resize_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": resize_nearest,
    "RSQRT": inverse_root,
    "SLICE": sliced,
    "SOFTMAX": softmax,
    "SPACE_TO_BATCH_ND": dilated_convolution,
    "SPACE_TO_DEPTH": space_to_depth,
    "SPLIT": split,
    "SPLIT_V": split_v,
    "SQUARED_DIFFERENCE": squared_difference,
    "STRIDED_SLICE": strided_slice,
    "SUB": addition(-1),
    "SUM": added(mean=False),
    "TANH": function_of("tanh"),
    "SQUEEZE": view,
    "TILE": tile,
    "TRANSPOSE": transpose,
    "TRANSPOSE_CONV": transpose_conv,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
    "UNPACK": unpack,
}
