"""Which rule computes an operator, and which files show that it is the chip's.

A rule that no file shows is an assumption, and everything that rests on it says so. The table of
docs/comparison.md is made from the tables here (``reference.documents``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial

import numpy as np

from darwinn_reference.tflite import (
    host,
    layers,
    moves,
    operators,
    reductions,
    resize,
)
from darwinn_reference.tflite.call import OperatorFunction
from darwinn_reference.tflite.graph import Network, Operator
from darwinn_reference.tflite.lstm import STATE_INPUTS, unidirectional_sequence_lstm
from darwinn_reference.tflite.roundings import (
    ACTIVATION_BOUND,
    ADDITION,
    CONSTANT_FACTOR,
    CONSTANT_TERM,
    MEAN,
    POOL,
    PRODUCTS,
    REQUANTISATION,
    ROUNDINGS,
    STAGED_MEAN,
    UNIT_VECTOR,
    Rounding,
)

BY_DEFINITION = "by definition"
"""In place of a file: bytes are moved or compared, which can be done in one way only."""


class Terms(Enum):
    """What an output element is, and so how the rule's function is asked for value numbers in the
    place of values (``proof.terms``)."""

    MOVES = "an element of an input, or a constant"
    WEIGHTS = "a sum of elements times constants, and the output stage"
    SUMS = "a sum of elements times the compiler's factors, and the output stage"
    PRODUCT = "a product of two elements, and the output stage"
    LOOKUP = "a function of one element"
    MAXIMUM = "the greatest of elements"
    SOFTMAX = "the steps of a softmax on the tiles, or those of the scalar core"
    PRELU = "a sum of two functions of one element"
    EXTREME = "an element and a bounded difference"
    UNIT_VECTOR = "a product of an element and the root of a sum of squares, by a table"
    SQUARE = "the square of a difference of two elements, by a table"
    NONE = "no rule of proof: sampled"


@dataclass(frozen=True, slots=True)
class Rule:
    """How an operator is computed, and which of its inputs are state that it updates.

    ``shown_by`` names executables whose bytes or factors show the rule, or ``BY_DEFINITION``;
    ``assumption`` says on what it rests without any. Single forms may be assumed beside
    (``Call.assume``): ``forms`` says which. ``roundings`` are the numbers that are rounded on the
    way, each with the neighbouring rules that files rule out or do not.
    """

    function: OperatorFunction
    terms: Terms = Terms.NONE
    shown_by: tuple[str, ...] = ()
    assumption: str = ""
    forms: str = ""
    state_inputs: tuple[int, ...] = ()
    roundings: tuple[Rounding, ...] = ()

    @property
    def open_against(self) -> tuple[str, ...]:
        """Other rules of rounding that no file tells from this one."""
        return tuple(
            f"{rounding.name}: {each.text}"
            for rounding in self.roundings
            for each in rounding.open_against
        )


def _moves(function: OperatorFunction) -> Rule:
    return Rule(function, Terms.MOVES, (BY_DEFINITION,))


def _activation(name: str) -> Rule:
    function = partial(operators.bounded, activation=name)
    return Rule(
        function,
        Terms.SUMS,
        assumption="a requantisation with bounds",
        roundings=(REQUANTISATION, ACTIVATION_BOUND),
    )


_PRODUCTS = (PRODUCTS, ACTIVATION_BOUND)
_SUMS = (ADDITION, CONSTANT_TERM, REQUANTISATION, ACTIVATION_BOUND)

RULES: Mapping[str, Rule] = {
    "ADD": Rule(
        operators.weighted_sum, Terms.SUMS, ("mobilenet_v2_1.0_224", "mat_Add"), roundings=_SUMS
    ),
    "AVERAGE_POOL_2D": Rule(
        layers.average_pool_2d,
        Terms.WEIGHTS,
        ("mobilenet_v1_0.75_192", "deeplabv3_mnv2"),
        forms="a window over the border is divided by its elements within the image",
        roundings=(POOL, ACTIVATION_BOUND),
    ),
    "BATCH_TO_SPACE_ND": _moves(moves.batch_to_space_nd),
    "CONCATENATION": Rule(
        operators.concatenation,
        Terms.SUMS,
        ("posenet", "ssd", "bodypix"),
        forms="operands of another scale are requantised",
        roundings=(REQUANTISATION,),
    ),
    "CONV_2D": Rule(
        layers.conv_2d,
        Terms.WEIGHTS,
        ("mobilenet_v1", "mobilenet_v2", "deeplab", "yamnet"),
        forms="groups are layers of their own; sums beyond 32 bits wrap, with a bias they saturate",
        roundings=_PRODUCTS,
    ),
    "DEPTHWISE_CONV_2D": Rule(
        layers.depthwise_conv_2d,
        Terms.WEIGHTS,
        ("mobilenet_v1", "mobilenet_v2", "lane_nav", "gabor"),
        roundings=_PRODUCTS,
    ),
    "DEPTH_TO_SPACE": _moves(moves.depth_to_space),
    "EXPAND_DIMS": _moves(moves.reshape),
    "FULLY_CONNECTED": Rule(
        layers.fully_connected,
        Terms.WEIGHTS,
        ("dense_1024", "classifier_2022", "lane_nav"),
        roundings=_PRODUCTS,
    ),
    "L2_NORMALIZATION": Rule(
        operators.l2_normalization,
        Terms.UNIT_VECTOR,
        ("function_7_v1", "function_7_v4"),
        forms="other scales than 1/128 follow the rule of products",
        roundings=(UNIT_VECTOR,),
    ),
    "LEAKY_RELU": Rule(
        operators.leaky_relu,
        Terms.LOOKUP,
        assumption="values below and above 0 are rounded once each",
        roundings=(REQUANTISATION,),
    ),
    "LOGISTIC": Rule(
        partial(operators.by_value, function="sigmoid"),
        Terms.LOOKUP,
        ("detect_ssd", "yamnet", "yolov8n_full_integer_quant"),
    ),
    "MAXIMUM": Rule(
        operators.maximum,
        Terms.EXTREME,
        (BY_DEFINITION,),
        forms="operands of other scales are requantised first",
        roundings=(REQUANTISATION,),
    ),
    "MAX_POOL_2D": Rule(layers.max_pool_2d, Terms.MAXIMUM, (BY_DEFINITION,)),
    "MEAN": Rule(
        layers.mean,
        Terms.WEIGHTS,
        ("mobilenet_v2_2019_retrained", "thermal_face_automl", "yamnet"),
        roundings=(MEAN, STAGED_MEAN),
    ),
    "MINIMUM": Rule(
        partial(operators.extreme, choose=np.minimum),
        Terms.EXTREME,
        (BY_DEFINITION,),
        forms="operands of other scales are requantised first",
        roundings=(REQUANTISATION,),
    ),
    "MIRROR_PAD": _moves(moves.mirror_pad),
    "MUL": Rule(
        operators.multiply,
        Terms.PRODUCT,
        ("yolov8n_full_integer_quant", "looming", "movenet"),
        roundings=(PRODUCTS, CONSTANT_FACTOR, ACTIVATION_BOUND),
    ),
    "PACK": _moves(moves.pack),
    "PAD": _moves(moves.pad),
    "PADV2": _moves(moves.pad_v2),
    "PRELU": Rule(
        operators.prelu,
        Terms.PRELU,
        ("mbfacenet_quant_with_mask", "srgan_quant_2"),
        forms="slopes of each element are multiplied as another tensor",
        roundings=(REQUANTISATION, CONSTANT_FACTOR),
    ),
    "QUANTIZE": Rule(
        operators.bounded,
        Terms.SUMS,
        ("posenet", "bodypix", "dense_1024"),
        roundings=(REQUANTISATION,),
    ),
    "REDUCE_MAX": Rule(
        partial(reductions.extreme, choose=np.maximum),
        Terms.MAXIMUM,
        (BY_DEFINITION,),
        forms="another output scale is requantised to last",
        roundings=(REQUANTISATION,),
    ),
    "REDUCE_MIN": Rule(
        partial(reductions.extreme, choose=np.minimum),
        Terms.NONE,
        (BY_DEFINITION,),
        forms="another output scale is requantised to last",
        roundings=(REQUANTISATION,),
    ),
    "RELU": _activation("RELU"),
    "RELU6": _activation("RELU6"),
    "RELU_0_TO_1": _activation("RELU_0_TO_1"),
    "RELU_N1_TO_1": _activation("RELU_N1_TO_1"),
    "RESHAPE": _moves(moves.reshape),
    "RESIZE_BILINEAR": Rule(
        resize.resize_bilinear,
        Terms.WEIGHTS,
        ("deeplab",),
        forms="a step that is no multiple of 1/128 pixel is rounded to that of the program",
    ),
    "RESIZE_NEAREST_NEIGHBOR": Rule(
        resize.resize_nearest_neighbor,
        Terms.MOVES,
        ("yolov8n_full_integer_quant",),
        forms="steps that are no multiple of 1/128 pixel are not rounded",
    ),
    "RSQRT": Rule(
        partial(operators.by_value, function="rsqrt"),
        Terms.LOOKUP,
        ("efficient_l3",),
        forms="of 0 and below the table's value is taken, without a table the greatest byte",
    ),
    "SLICE": _moves(moves.cut),
    "SOFTMAX": Rule(
        operators.softmax, Terms.SOFTMAX, ("mobilenet_v1", "mobilenet_v2", "classifier_2022")
    ),
    "SPACE_TO_BATCH_ND": _moves(moves.space_to_batch_nd),
    "SPACE_TO_DEPTH": _moves(moves.space_to_depth),
    "SPLIT": _moves(moves.split),
    "SPLIT_V": _moves(moves.split_v),
    "SQUARED_DIFFERENCE": Rule(
        operators.squared_difference,
        Terms.SQUARE,
        ("efficient_l3",),
        forms="without a bound the low byte of a square is kept",
    ),
    "SQUEEZE": _moves(moves.reshape),
    "STRIDED_SLICE": _moves(moves.strided_slice),
    "SUB": Rule(
        partial(operators.weighted_sum, sign=-1),
        Terms.SUMS,
        ("movenet_single_pose_lightning_ptq",),
        forms="a difference of two tensors is a sum whose second weight is negative",
        roundings=_SUMS,
    ),
    "SUM": Rule(
        reductions.total,
        Terms.WEIGHTS,
        assumption="one output stage after the whole sum, as in MEAN",
        roundings=(REQUANTISATION,),
    ),
    "TANH": Rule(partial(operators.by_value, function="tanh"), Terms.LOOKUP, ("keras_lstm",)),
    "TILE": _moves(moves.tile),
    "TRANSPOSE": _moves(moves.transpose),
    "TRANSPOSE_CONV": Rule(
        layers.transpose_conv,
        Terms.WEIGHTS,
        assumption="one output stage after the whole sum, as in CONV_2D",
        roundings=_PRODUCTS,
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Rule(
        unidirectional_sequence_lstm,
        Terms.NONE,
        ("keras_lstm_mnist_ptq",),
        state_inputs=STATE_INPUTS,
        roundings=(PRODUCTS, ADDITION),
    ),
    "UNPACK": _moves(moves.unpack),
}
"""Operators of quantised tensors that the oracle computes, by their names in the TFLite schema."""

HOST: Mapping[str, OperatorFunction] = {
    "ADD": partial(host.of_numbers, function=np.add),
    "ARG_MAX": partial(host.place, choose=np.argmax),
    "ARG_MIN": partial(host.place, choose=np.argmin),
    "CAST": host.cast,
    "DEQUANTIZE": host.dequantize,
    "DIV": partial(host.of_numbers, function=np.true_divide, kinds="f"),
    "FLOOR_DIV": host.floor_divide,
    "GATHER": host.gather,
    "GATHER_ND": host.gather_nd,
    "MUL": partial(host.of_numbers, function=np.multiply),
    "QUANTIZE": host.quantize_floats,
    "SHAPE": host.shape,
    "SQRT": host.square_root,
    "SUB": partial(host.of_numbers, function=np.subtract),
}
"""Operators that the host does, in LiteRT's arithmetic: those of plain numbers and of indices."""

_HOST_ONLY = frozenset({"ARG_MAX", "ARG_MIN", "CAST", "DEQUANTIZE", "GATHER", "GATHER_ND", "SHAPE"})
"""Those that are the host's although their input is quantised."""


def rule_of(network: Network, operator: Operator) -> Rule | None:
    """The rule of an operator, by what it computes with; None if there is none."""
    if operator.custom:
        return None
    first = next((network.tensors[k] for k in operator.inputs if k >= 0), None)
    plain = first is not None and not len(first.scale) and first.dtype.itemsize > 1
    if operator.name in _HOST_ONLY or (plain and operator.name in HOST):
        return Rule(HOST[operator.name], shown_by=(BY_DEFINITION,))
    return RULES.get(operator.name)


_HEADINGS = ("operator", "shown by", "exact", "assumed", "rounded numbers", "proof: an element is")
_ROUNDING_HEADINGS = ("rounded number", "rule", "instead of", "told apart by")
_Row = tuple[str, ...]


def updated(page: str) -> str:
    """The text of docs/comparison.md with the tables of operators and roundings as they are now."""
    page = _replaced(page, "operators", _HEADINGS, _rows())
    return _replaced(page, "roundings", _ROUNDING_HEADINGS, _rounding_rows())


def _replaced(page: str, name: str, headings: _Row, rows: Iterable[_Row]) -> str:
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = page.split(begin, 1)
    after = rest.split(end, 1)[1]
    lines = (headings, ("---",) * len(headings), *rows)
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{before}{begin}\n{table}\n{end}{after}"


def _rows() -> Iterator[_Row]:
    for name, rule in RULES.items():
        shown = ", ".join(rule.shown_by) or "no file"
        rounded = ", ".join(each.name for each in rule.roundings)
        assumed = rule.assumption or rule.forms
        yield name, shown, _exact(rule), assumed, rounded, rule.terms.value
    others = sorted(set(HOST) - set(RULES))
    by_host = ("computed on the host, as in LiteRT", "yes", "", "", Terms.NONE.value)
    yield ", ".join(others), *by_host
    both = ", ".join(sorted(set(HOST) & set(RULES)))
    yield f"{both} of plain numbers", *by_host


def _exact(rule: Rule) -> str:
    if rule.assumption:
        return "no"
    if rule.forms:
        return "except for assumed forms"
    return "except where rounding rules are open" if rule.open_against else "yes"


def _rounding_rows() -> Iterator[_Row]:
    for rounding in ROUNDINGS.values():
        for each in rounding.neighbours:
            files = ", ".join((*each.told_apart_by, *(f"bytes of {f}" for f in each.bytes_of)))
            files = files or "no file: open"
            files += f"; older compilers have it: {each.elder}" if each.elder else ""
            yield rounding.name, f"`{rounding.text}`", f"`{each.text}`", files
