"""Operations of operators that keep states from one inference to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from darwinn_reference.tflite import lstm as rules
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.factors import addition_weights, conversion_factor
from darwinn_reference.tflite.graph import ABSENT, NetworkTensor, Operator
from darwinn_reference.tflite.output_stage import clip_bounds
from numpy.typing import NDArray

from darwinn_testbench.compiler.parameters import SIGN_OFFSET, round_up
from darwinn_testbench.compiler.stages.operands import Operands, StaysError
from darwinn_testbench.compiler.stages.operations import (
    UNIT,
    AnyOperation,
    Convolution,
    OutputStage,
    Recurrent,
)
from darwinn_testbench.compiler.stages.rows import GROUP
from darwinn_testbench.compiler.stages.tables import FUNCTIONS, table_of

_Kind = TypeVar("_Kind", bound=np.generic)

_ORDER = tuple(rules.GATES.index(name) for name in ("input", "forget", "output", "candidate"))
"""The gates as they are in memory: those with a sigmoid first."""


def lstm(importer: Operands, operator: Operator) -> AnyOperation:
    """UNIDIRECTIONAL_SEQUENCE_LSTM: a layer of what is fed, for all steps, then step by step."""
    _refuse_unknown(importer, operator)
    source = importer.source(operator)
    tensor, image = importer.result(operator)
    hidden, cell = (importer.state(operator.inputs[k]) for k in rules.STATE_INPUTS)
    if source.pixels != image.pixels or source.sides[:2] != image.sides[:2]:
        raise StaysError("a result of another shape")
    memory = importer.tensor(operator, rules.STATE_INPUTS[1])
    fed, zero_point, stage = _layer(importer, operator, source.scale, rules.FIRST_INPUT_WEIGHTS)
    bias = _of_gates(
        [_constant(importer, operator, rules.FIRST_BIAS + gate, np.int32) for gate in _ORDER]
    )
    sums = importer.between(image, (image.height, image.width, len(fed)))
    importer.first(
        Convolution(
            operator.index,
            operator.name,
            sums,
            source,
            UNIT,
            UNIT,
            fed.reshape(len(fed), 1, 1, -1),
            zero_point,
            replace(stage, bias=bias),
        )
    )
    weights, zero_point, back = _layer(
        importer, operator, hidden.scale, rules.FIRST_RECURRENT_WEIGHTS
    )
    first, second, factor = addition_weights(rules.GATED_CANDIDATE.scale[0], cell.scale, memory)
    if not (first and second):
        raise StaysError("a cell whose scale is too far from 1")
    limit = rules.cell_limit(memory, float(operator.options.get("cell_clip", 0.0)))
    unit = rules.GATED_CANDIDATE.scale[0] / np.float32(first)
    squashed = _function("tanh", rules.CELL_ACTIVATION, unit, cell.zero_point)
    return Recurrent(
        operator.index,
        operator.name,
        image,
        sums,
        hidden,
        cell,
        weights,
        zero_point,
        back,
        _function("sigmoid", rules.GATE, image.scale, 0, -2 * image.zero_point),
        _function("tanh", rules.CANDIDATE, image.scale, SIGN_OFFSET, -2 * image.zero_point),
        _product(rules.GATED_CANDIDATE, rules.CANDIDATE, cell.zero_point),
        _product(memory, memory, cell.zero_point),
        (first, second),
        _within(_stage(memory, np.atleast_1d(factor), cell.zero_point), limit),
        _within(squashed, limit * cell.scale),
        _product(tensor, rules.CELL_ACTIVATION, image.zero_point),
    )


def _refuse_unknown(importer: Operands, operator: Operator) -> None:
    """Refuse each form of which the reference does not know the arithmetic: it says so itself."""
    tensors = (importer.network.tensors[index] for index in operator.inputs if index != ABSENT)
    given = {
        each.index: np.zeros(each.shape, each.dtype) if each.constant is None else each.constant
        for each in tensors
    }
    try:
        ChipArithmetic(importer.network).run_operator(operator, given)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        raise StaysError("operands whose shapes or values do not fit each other") from None


def _constant(
    importer: Operands, operator: Operator, place: int, kind: type[_Kind]
) -> NDArray[_Kind]:
    """A constant operand of a type."""
    values = importer.tensor(operator, place).constant
    if values is None or values.dtype != kind:
        raise StaysError(f"input {place} is no constant {np.dtype(kind)}")
    return np.asarray(values)


def _of_gates(each: Sequence[NDArray[_Kind]], padding: int = 0) -> NDArray[_Kind]:
    """What each gate has of each unit, one gate behind the other in whole words."""
    missing = round_up(len(each[0]), GROUP) - len(each[0])
    widths = [(0, missing)] + [(0, 0)] * (each[0].ndim - 1)
    return np.concatenate([np.pad(one, widths, constant_values=padding) for one in each])


def _layer(
    importer: Operands, operator: Operator, scale: np.float32, first: int
) -> tuple[NDArray[np.uint8], int, OutputStage]:
    """Weights of all gates, their zero point, and the stage of their sums, without a bias."""
    tensor, image = importer.result(operator)
    places = [first + gate for gate in _ORDER]
    found = [importer.tensor(operator, place) for place in places]
    zero_points = {int(point) for each in found for point in each.zero_point}
    if len(zero_points) != 1:
        raise StaysError("several zero points of weights")
    (zero_point,) = zero_points
    values = [
        _constant(importer, operator, place, np.int8).view(np.uint8) ^ np.uint8(SIGN_OFFSET)
        for place in places
    ]
    factors = [
        np.broadcast_to(conversion_factor(scale, tensor, each.scale), len(one))
        for each, one in zip(found, values, strict=True)
    ]
    zero_point += SIGN_OFFSET
    stage = _stage(tensor, _of_gates(factors), image.zero_point)
    return _of_gates(values, zero_point), zero_point, stage


def _stage(tensor: NetworkTensor, factors: NDArray[np.float32], zero_point: int) -> OutputStage:
    """The stage of a tensor, with 16 bits if it has."""
    low, high = clip_bounds(tensor)
    wide = tensor.dtype.itemsize > 1
    return OutputStage(factors, np.zeros(1, np.int32), low, high, zero_point, wide=wide)


def _within(stage: OutputStage, limit: np.float32) -> OutputStage:
    """A stage whose bounds are at most a limit on both sides."""
    return replace(stage, low=max(stage.low, -limit), high=min(stage.high, limit))


def _product(tensor: NetworkTensor, operand: NetworkTensor, zero_point: int) -> OutputStage:
    """The stage of a gate times something."""
    factor = conversion_factor(rules.GATE.scale[0], tensor, operand.scale)
    return _stage(tensor, factor, zero_point)


def _function(
    name: str, tensor: NetworkTensor, unit: np.float32, zero_point: int, bias: int = 0
) -> OutputStage:
    """The stage of a function of a sum in steps of ``unit``."""
    function = FUNCTIONS[name]
    return OutputStage(
        np.atleast_1d(unit),
        np.array([bias], np.int32),
        np.float32(-function.last if function.odd else function.first),
        np.float32(function.last),
        zero_point,
        table_of(name, 1 / float(tensor.scale[0])),
        wide=tensor.dtype.itemsize > 1,
    )
