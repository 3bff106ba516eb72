"""Which rule computes an operator, and which files show that it is the chip's.

A rule that no file shows is an assumption, and everything that rests on it says so. The table of
docs/comparison.md is made from the tables here (``reference.documents``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from darwinn_testbench.reference import host, layers, operators
from darwinn_testbench.reference.call import OperatorFunction
from darwinn_testbench.reference.graph import Network, Operator
from darwinn_testbench.reference.lstm import STATE_INPUTS, unidirectional_sequence_lstm


@dataclass(frozen=True, slots=True)
class Rule:
    """How an operator is computed, and which of its inputs are state that it updates.

    ``shown_by`` names models (of the folders of executables) whose bytes or factors show the rule;
    ``assumption`` says on what it rests without any.
    """

    function: OperatorFunction
    shown_by: tuple[str, ...] = ()
    assumption: str = ""
    state_inputs: tuple[int, ...] = ()


RULES: Mapping[str, Rule] = {
    "ADD": Rule(operators.add),
    "AVERAGE_POOL_2D": Rule(layers.average_pool_2d),
    "CONCATENATION": Rule(operators.concatenation),
    "CONV_2D": Rule(layers.conv_2d),
    "DEPTHWISE_CONV_2D": Rule(layers.depthwise_conv_2d),
    "EXPAND_DIMS": Rule(operators.reshape),
    "FULLY_CONNECTED": Rule(layers.fully_connected),
    "LOGISTIC": Rule(operators.logistic),
    "MAX_POOL_2D": Rule(layers.max_pool_2d),
    "MEAN": Rule(layers.mean),
    "MUL": Rule(operators.multiply),
    "PAD": Rule(operators.pad),
    "QUANTIZE": Rule(operators.quantize),
    "RELU": Rule(operators.relu),
    "RELU6": Rule(operators.relu6),
    "RELU_N1_TO_1": Rule(operators.relu_n1_to_1),
    "RESHAPE": Rule(operators.reshape),
    "RESIZE_BILINEAR": Rule(operators.resize_bilinear),
    "SOFTMAX": Rule(operators.softmax),
    "SPLIT": Rule(operators.split),
    "SQUEEZE": Rule(operators.reshape),
    "SUB": Rule(operators.subtract),
    "TANH": Rule(operators.tanh),
    "TILE": Rule(operators.tile),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Rule(unidirectional_sequence_lstm, state_inputs=STATE_INPUTS),
}
"""Operators of quantised tensors that the oracle computes, by their names in the TFLite schema."""

HOST: Mapping[str, OperatorFunction] = {
    "ADD": host.add,
    "ARG_MAX": host.arg_max,
    "ARG_MIN": host.arg_min,
    "CAST": host.cast,
    "DEQUANTIZE": host.dequantize,
    "DIV": host.divide,
    "FLOOR_DIV": host.floor_divide,
    "GATHER": host.gather,
    "GATHER_ND": host.gather_nd,
    "MUL": host.multiply,
    "QUANTIZE": host.quantize_floats,
    "SQRT": host.square_root,
    "SUB": host.subtract,
}
"""Operators that the host does, in LiteRT's arithmetic: those of plain numbers and of indices."""

_HOST_ONLY = frozenset({"ARG_MAX", "ARG_MIN", "DEQUANTIZE", "GATHER", "GATHER_ND"})
"""Those that are the host's although their input is quantised."""


def rule_of(network: Network, operator: Operator) -> Rule | None:
    """The rule of an operator, by what it computes with; None if there is none."""
    if operator.custom:
        return None
    first = next((network.tensors[k] for k in operator.inputs if k >= 0), None)
    plain = first is not None and not len(first.scale) and first.dtype.itemsize > 1
    if operator.name in _HOST_ONLY or (plain and operator.name in HOST):
        return Rule(HOST[operator.name])
    if operator.name == "CAST":
        return Rule(HOST["CAST"])
    return RULES.get(operator.name)
