"""The conditions of the vendor's compiler for an operator on the chip, as a table.

A condition says in a few words what is wrong with an operator, what to do about it, and where the
rule is from. For some conditions the vendor gives no numbers ("depending on size"). Then compiled
models give them: sizes up to the greatest seen on the chip fit, sizes from the least seen on the
CPU do not, and between the two nothing is known.

``evidence`` says which source gives which row of the vendor's table. If no available source
mentions an operator, or the lifting of a limit of 2019, a doubt remains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from darwinn_testbench.explain import findings
from darwinn_testbench.explain.evidence import EVIDENCE, Basis
from darwinn_testbench.explain.graph import Node

REQUIREMENTS = "vendor's model requirements"
OPERATORS = "vendor's supported operations"
"""Of coral.ai/docs/edgetpu/models-intro."""
SEEN = "seen in compiled models"
REPORTED = "reported in {} of google-coral/edgetpu"
NUMBERS_SEEN = f"{OPERATORS}, numbers {SEEN}"
"""The vendor says that there is a limit, and not which."""

NOT_AT_HAND = f"{OPERATORS}, of a later edition that is not at hand"
"""As they were noted down; no copy of the table that can be read confirms it."""

_BASES: Mapping[str, Basis] = {
    REQUIREMENTS: Basis.VENDOR,
    OPERATORS: Basis.VENDOR,
    SEEN: Basis.FILES,
    NUMBERS_SEEN: Basis.FILES,
    NOT_AT_HAND: Basis.NOT_CONFIRMED,
}

NOT_COVERED = (
    'an operator version that the compiler is too old for ("Operation version not supported")',
    "a network whose data are too large for the chip as a whole, which the compiler refuses "
    '("large activation tensors")',
    "limits of size that the compiler has and no file, document or report shows",
)
"""Reasons of the vendor's compiler that no condition examines."""

SUPPORTED = "Mapped to Edge TPU"
UNSUPPORTED = "Operation not supported"
WRONG_TYPE = "Operation is working on an unsupported data type"
WRONG_RANK = "Tensor has unsupported rank (up to 3 innermost dimensions mapped)"
UNSPECIFIED = "Operation is otherwise supported, but not mapped due to some unspecified limitation"
SECOND_PIECE = "More than one subgraph is not supported"
"""What the vendor's compiler writes in its log."""


@dataclass(frozen=True)
class Condition:
    """A reason for the CPU.

    ``finds`` says in a few words what of an operator is against the condition, nothing if all is
    well. Of one that is not ``sure`` only a doubt follows. ``message`` is how the vendor's compiler
    calls it.
    """

    name: str
    finds: Callable[[Node], str]
    advice: str
    source: str
    message: str = UNSPECIFIED
    sure: bool = True

    @property
    def basis(self) -> Basis:
        """How it is known."""
        return _BASES.get(self.source, Basis.REPORT)


@dataclass(frozen=True)
class Objection:
    """What a condition finds of an operator."""

    condition: Condition
    text: str


def objections(node: Node) -> tuple[Objection, ...]:
    """All that is against an operator on the chip, and all doubts, the weightiest first."""
    own = OPERATOR_CONDITIONS.get(node.name) if not node.custom else None
    if own is None:
        return (Objection(_unsupported(node), _what_kind(node)),)
    confirmed = () if EVIDENCE[node.name] else (_NOT_CONFIRMED,)
    found = ((each, each.finds(node)) for each in (*own, *GENERAL, _TOO_LARGE, *confirmed))
    return tuple(Objection(condition, text) for condition, text in found if text)


_QUANTISE = (
    "quantise the whole model to 8 bits (full integer quantisation with a representative data set, "
    "inference_input_type and inference_output_type uint8 or int8)"
)

GENERAL = (
    Condition("type", findings.types, _QUANTISE, REQUIREMENTS, WRONG_TYPE),
    Condition("parameter type", findings.float_weights, _QUANTISE, REQUIREMENTS, WRONG_TYPE),
    Condition("quantisation", findings.not_quantised, _QUANTISE, REQUIREMENTS, WRONG_TYPE),
    Condition(
        "dynamic shape",
        findings.dynamic,
        "fix all sizes when the model is converted (input shape with batch 1)",
        REQUIREMENTS,
    ),
    Condition(
        "batch",
        findings.batch,
        "set batch 1: only the three innermost dimensions may be larger",
        REQUIREMENTS,
        WRONG_RANK,
    ),
)
"""Conditions of every operator."""


_NOT_CONFIRMED = Condition(
    "not confirmed",
    lambda node: "not seen on the chip?",
    "ask the compiler: whether it gives this operator to the chip is not confirmed",
    NOT_AT_HAND,
    sure=False,
)
"""Of operators without evidence."""


def _constant(*places: int) -> Condition:
    """Inputs that have to be in the file."""
    return Condition(
        "constant parameters",
        findings.parameters(*places),
        "give parameters that are constants when the model is compiled",
        REQUIREMENTS,
    )


_NO_ACTIVATION = Condition(
    "fused activation",
    findings.activation,
    "put the activation into an operator of its own",
    OPERATORS,
)
_SAME_DILATION = Condition("dilation", findings.dilation, "dilate both ways alike", OPERATORS)
_AXES = _constant(1)
_NO_BATCH = Condition(
    "batch axis", findings.along_batch, "leave the batch dimension alone", OPERATORS
)


def _limit_of_2019(name: str, finds: Callable[[Node], str], advice: str) -> Condition:
    """A limit of the table of 2019, from before run-time 13: lifted since, as far as is known."""
    return Condition(name, finds, advice, NOT_AT_HAND, sure=False)


@dataclass(frozen=True)
class Seen:
    """A figure of an operator: the greatest seen on the chip, the least seen on the CPU for it.

    ``said`` is what is said of it, with the figure's place in braces.
    """

    name: str
    said: str
    figure: Callable[[Node], int]
    on_chip: int
    on_cpu: int

    def beyond(self, node: Node) -> str:
        """What is said of a figure that was seen on the CPU."""
        value = self.figure(node)
        return self.said.format(value) if value >= self.on_cpu else ""

    def between(self, node: Node) -> str:
        """What is said of a figure of which nothing is known."""
        value = self.figure(node)
        return f"{self.said.format(value)}?" if self.on_chip < value < self.on_cpu else ""


def _sized(seen: Seen, advice: str, source: str) -> tuple[Condition, Condition]:
    """Two conditions of a size: what is too much, and what may be."""
    return (
        Condition(seen.name, seen.beyond, advice, source),
        Condition(seen.name, seen.between, advice, source, sure=False),
    )


_SMALLER = "make the tensor smaller, or leave this step out of the model and do it in the program"
_ENLARGEMENT = Seen("enlargement", "enlarged {:,} times", findings.enlargement, 2, 33)
_BROADCAST = Condition(
    _ENLARGEMENT.name,
    lambda node: _ENLARGEMENT.beyond(node) if findings.single_pixel(node) else "",
    "the same value everywhere: leave it out, and an ADD or MUL of the single pixel broadcasts it; "
    "before a CONCATENATION with a convolution behind, convolve both parts alone and add them",
    NUMBERS_SEEN,
)
_RESIZE = (
    # First, as an operator's first objection is the one with advice.
    _BROADCAST,
    *_sized(
        _ENLARGEMENT,
        "enlarge in steps of 2, or put it last: what follows it stays on the CPU, too",
        NUMBERS_SEEN,
    ),
    *_sized(
        Seen("size", "result of {:,} bytes", findings.result_bytes, 819_200, 3_145_728),
        _SMALLER,
        NUMBERS_SEEN,
    ),
)
"""A result of 1024 x 1024 x 3 was reported on the CPU (google-coral/edgetpu, issue 597)."""
_LARGEST = Seen(
    "activation size", "tensor of {:,} bytes", findings.largest_bytes, 3_170_352, 1 << 62
)
"""No file shows a limit: the compiler refuses a network whose data do not fit as a whole."""
_TRANSPOSE = _sized(
    Seen("size", "{:,} bytes transposed", findings.result_bytes, 57_600, 102_400),
    "convert from a model with channels last, which needs no transposition",
    SEEN,
)
_MEAN = _sized(
    Seen("length", "means of {:,} elements", findings.averaged, 8_192, 32_768),
    "reduce it in parts (SPLIT, MEAN, CONCATENATION), or make the tensor smaller",
    REPORTED.format("issue 461"),
)
"""1 x 256 x 128 x 3 was reported on the CPU, and its parts of 1 x 64 x 128 x 3 on the chip
(google-coral/edgetpu, issue 461). Bytes do not decide: public executables have means of 294,912 and
491,520 bytes on the chip, five times those that were reported."""
_RESHAPE = _sized(
    Seen("size", "{:,} bytes reshaped", findings.result_bytes, 57_600, 587_520),
    _SMALLER,
    NUMBERS_SEEN,
)
"""48 x 48 x 255 was reported on the CPU (google-coral/edgetpu, issue 512)."""

_TOO_LARGE = Condition(
    _LARGEST.name,
    _LARGEST.between,
    "make the input of the model smaller, or split it into segments: the compiler may refuse the "
    'whole model ("large activation tensors")',
    SEEN,
    sure=False,
)
"""Of every operator: larger tensors than those that compiled models have on the chip."""

OPERATOR_CONDITIONS: Mapping[str, tuple[Condition, ...]] = {
    "ADD": (),
    "AVERAGE_POOL_2D": (_NO_ACTIVATION,),
    "CONCATENATION": (
        _NO_ACTIVATION,
        Condition(
            "constant part",
            findings.constant_part,
            "concatenate with zeros alone, as padding does, or without constants",
            OPERATORS,
        ),
    ),
    "CONV_2D": (_constant(1, 2), _SAME_DILATION),
    "DEPTHWISE_CONV_2D": (_constant(1, 2), _SAME_DILATION),
    "EXPAND_DIMS": (),
    "FULLY_CONNECTED": (
        _constant(2),
        Condition(
            "weights format", findings.weights_format, "use the default weights format", OPERATORS
        ),
        Condition(
            "result",
            findings.one_dimension("result"),
            "use a 1x1 convolution where one result for each position is wanted",
            OPERATORS,
        ),
    ),
    "L2_NORMALIZATION": (),
    "LOGISTIC": (),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (),
    "MAXIMUM": (),
    "MAX_POOL_2D": (_NO_ACTIVATION,),
    "MEAN": (
        _AXES,
        _NO_BATCH,
        Condition("channels", findings.odd_depth, "use a multiple of 4 channels", NOT_AT_HAND),
        _limit_of_2019("reduced channels", findings.over_channels, "reduce rows and columns alone"),
        *_MEAN,
    ),
    "MINIMUM": (),
    "MUL": (),
    "PACK": (Condition("batch axis", findings.packs_batch, "leave the batch alone", OPERATORS),),
    "PAD": (
        _AXES,
        Condition("batch", findings.pads_batch, "pad rows, columns or channels", OPERATORS),
        _limit_of_2019("padded channels", findings.pads_channels, "pad rows and columns alone"),
    ),
    "PRELU": (
        _constant(1),
        Condition("alpha", findings.alpha, "share alpha along rows and columns", OPERATORS),
    ),
    "QUANTIZE": (
        Condition(
            "floating point input",
            findings.takes_floats,
            "give the model an 8-bit input (inference_input_type uint8 or int8 in the converter)",
            REQUIREMENTS,
        ),
    ),
    "REDUCE_MAX": (_AXES, _NO_BATCH),
    "REDUCE_MIN": (_AXES, _NO_BATCH),
    "RELU": (),
    "RELU6": (),
    "RELU_N1_TO_1": (),
    "RESHAPE": _RESHAPE,
    "RESIZE_BILINEAR": (_AXES, *_RESIZE),
    "RESIZE_NEAREST_NEIGHBOR": (_AXES, *_RESIZE),
    "RSQRT": (),
    "SLICE": (_constant(1, 2),),
    "SOFTMAX": (
        Condition(
            "input",
            findings.one_dimension("input"),
            "put the softmax last, or do it in the program",
            OPERATORS,
        ),
        Condition("length", findings.long_softmax, "use at most 16,000 elements", OPERATORS),
    ),
    "SPACE_TO_DEPTH": (),
    "SPLIT": (
        Condition("batch axis", findings.splits_batch(0, 1), "leave the batch alone", OPERATORS),
    ),
    "SPLIT_V": (
        Condition("batch axis", findings.splits_batch(2, 0), "leave the batch alone", OPERATORS),
    ),
    "SQUARED_DIFFERENCE": (),
    "SQUEEZE": (
        _limit_of_2019(
            "inner dimensions", findings.relays, "drop leading dimensions alone, or none"
        ),
    ),
    "STRIDED_SLICE": (
        _constant(1, 2, 3),
        Condition("strides", findings.strides, "use strides of 1, and no new axes", OPERATORS),
    ),
    "SUB": (),
    "SUM": (_AXES, _NO_BATCH),
    "TANH": (),
    "TILE": (_AXES,),
    "TRANSPOSE": (_AXES, *_TRANSPOSE),
    "TRANSPOSE_CONV": (_constant(0, 1),),
}
"""The operators of the vendor's table with their limits, and those of ``SEEN_OPERATORS``. Limits of
older compilers (run-time versions up to 12) leave a doubt."""

SEEN_OPERATORS = frozenset({"TILE"})
"""Operators that the vendor's table lacks and compiled models have on the chip."""


_INSTEAD: Mapping[str, str] = {
    "DEQUANTIZE": (
        "at the end, take the quantised output and compute scale * (q - zero point) in the "
        "program; leave it if CPU operators follow: they need the float value"
    ),
    "ARG_MAX": "put it last, or take the scores and search for the greatest in the program",
    "ARG_MIN": "put it last, or search for the least in the program",
    "LEAKY_RELU": "use RELU, or PRELU with constant alpha",
    "ELU": "use RELU or PRELU",
    "HARD_SWISH": "use RELU6, or build it from RELU6 and MUL",
    "GELU": "use RELU, or an approximation by LOGISTIC and MUL",
    "CAST": "use 8-bit tensors throughout, and convert in the program",
    "DIV": "multiply by the reciprocal, if that is a constant",
    "GATHER": "use SLICE or STRIDED_SLICE, or do it in the program",
    "GATHER_ND": "put it last, or do it in the program",
    "BATCH_MATMUL": "use FULLY_CONNECTED or a 1x1 convolution with constant weights",
}
"""What may stand in the place of an operator that is not supported."""
_CUSTOM = "it belongs to the CPU; as the last operator it keeps nothing else there"


def _unsupported(node: Node) -> Condition:
    usual = _CUSTOM if node.custom else "put it last, or use operators of the vendor's list instead"
    instead = _INSTEAD.get(node.name, usual)
    message = WRONG_TYPE if findings.types(node) else UNSUPPORTED
    return Condition("operator", _what_kind, instead, OPERATORS, message)


def _what_kind(node: Node) -> str:
    return "a custom operator" if node.custom else "not supported"
