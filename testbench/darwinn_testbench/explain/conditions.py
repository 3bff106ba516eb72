"""What an operator must be to run on the chip: the conditions of the vendor's compiler, as a table.

A condition says in a few words what is wrong with an operator, what to do about it, and where the
rule is from. What the vendor does not put in numbers ("depending on size") is held by what compiled
models show: at most what was seen on the chip is taken to fit, at least what was seen on the CPU
not to, and between the two nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from darwinn_testbench.explain.graph import EIGHT_BITS, Node, Value

REQUIREMENTS = "vendor's model requirements"
OPERATORS = "vendor's supported operations"
"""Of coral.ai/docs/edgetpu/models-intro."""
SEEN = "seen in compiled models"
NUMBERS_SEEN = f"{OPERATORS}, numbers {SEEN}"
"""The vendor says that there is a limit, and not which."""

SUPPORTED = "Mapped to Edge TPU"
UNSUPPORTED = "Operation not supported"
WRONG_TYPE = "Operation is working on an unsupported data type"
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
    found = ((each, each.finds(node)) for each in (*own, *GENERAL))
    return tuple(Objection(condition, text) for condition, text in found if text)


# What is wrong with types and shapes, of any operator.


def _types(node: Node) -> str:
    """Data that is not quantised to 8 bits; a variable of an LSTM may have 16."""
    wrong = [
        each
        for each in (*node.data, *node.outputs)
        if each.type not in EIGHT_BITS and not (each.variable and each.type == "INT16")
    ]
    return f"{wrong[0].type.lower()} data" if wrong else ""


def _float_weights(node: Node) -> str:
    wrong = [each for each in node.given if each.constant and each.type.startswith("FLOAT")]
    return f"{wrong[0].type.lower()} parameters" if wrong else ""


def _not_quantised(node: Node) -> str:
    wrong = [each for each in (*node.data, *node.outputs) if not each.scales]
    return "8 bits without a scale" if wrong else ""


def _dynamic(node: Node) -> str:
    """A dimension that is known at run time only; the first may be open, which counts as 1."""
    for each in (*node.data, *node.outputs):
        if any(size < 0 for size in (*each.signature[1:], *each.shape)) or 0 in each.shape:
            return "dynamic shape"
    return ""


def _batch(node: Node) -> str:
    for each in (*node.data, *node.outputs):
        if len(each.shape) > 3 and max(each.shape[:-3]) > 1:
            return f"batch {max(each.shape[:-3])}" if len(each.shape) == 4 else "5 dimensions"
    return ""


_QUANTISE = (
    "quantise the whole model to 8 bits (full integer quantisation with a representative data set, "
    "inference_input_type and inference_output_type uint8 or int8)"
)

GENERAL = (
    Condition("type", _types, _QUANTISE, REQUIREMENTS, WRONG_TYPE),
    Condition("parameter type", _float_weights, _QUANTISE, REQUIREMENTS, WRONG_TYPE),
    Condition("quantisation", _not_quantised, _QUANTISE, REQUIREMENTS, WRONG_TYPE),
    Condition(
        "dynamic shape",
        _dynamic,
        "fix all sizes when the model is converted (input shape with batch 1)",
        REQUIREMENTS,
    ),
    Condition(
        "batch",
        _batch,
        "set batch 1: only the three innermost dimensions may be larger",
        REQUIREMENTS,
    ),
)
"""Conditions of every operator."""


# What single operators do not allow.


def _activation(node: Node) -> str:
    activation = node.option("fused_activation_function")
    return f"fused {activation.name}" if activation else ""


def _parameters(*places: int) -> Callable[[Node], str]:
    def finds(node: Node) -> str:
        values = [node.inputs[k] for k in places if k < len(node.inputs)]
        computed = any(each is not None and not each.constant for each in values)
        return "parameters are computed" if computed else ""

    return finds


def _constant(*places: int) -> Condition:
    """Inputs that have to be in the file."""
    return Condition(
        "constant parameters",
        _parameters(*places),
        "give parameters that are constants when the model is compiled",
        REQUIREMENTS,
    )


def _dilation(node: Node) -> str:
    rates = (node.option("dilation_h_factor", 1), node.option("dilation_w_factor", 1))
    return "" if rates[0] == rates[1] else f"dilation {rates[0]}x{rates[1]}"


def _constant_part(node: Node) -> str:
    constants = [k for k, each in enumerate(node.inputs) if each is not None and each.constant]
    if not constants:
        return ""
    if len(node.inputs) != 2:
        return "a constant among several inputs"
    data = node.constant(constants[0])
    return "" if data is not None and not data.any() else "a constant that is not 0"


def _weights_format(node: Node) -> str:
    weights = node.option("weights_format")
    return f"weights {weights.name}" if weights else ""


def _one_dimension(of: str) -> Callable[[Node], str]:
    def finds(node: Node) -> str:
        (value, *_) = (*node.outputs, None) if of == "result" else (*node.data, None)
        many = value is not None and len(value.extent) > 1
        return f"{of} of {len(value.extent)} dimensions" if many and value is not None else ""

    return finds


def _axes(node: Node) -> tuple[list[int], Value | None]:
    """The axes that an operator with them as second input works along, from the first."""
    data, axes = (*node.inputs, None)[0], node.constant(1)
    if data is None or axes is None or axes.dtype.kind not in "iu":
        return [], data
    rank = len(data.shape)
    return [int(axis) % rank if rank else 0 for axis in axes.reshape(-1)], data


def _along_batch(node: Node) -> str:
    axes, data = _axes(node)
    return "along the batch" if data is not None and len(data.shape) > 3 and 0 in axes else ""


def _takes_floats(node: Node) -> str:
    kinds = [each.type.lower() for each in node.data if each.type.startswith("FLOAT")]
    return f"{kinds[0]} data" if kinds else ""


def _odd_depth(node: Node) -> str:
    axes, data = _axes(node)
    if data is None or not data.shape or len(data.shape) - 1 not in axes:
        return ""
    return f"over {data.shape[-1]} channels" if data.shape[-1] % 4 else ""


def _pads_batch(node: Node) -> str:
    sizes = node.constant(1)
    if sizes is None or sizes.ndim != 2 or len(sizes) < 4:
        return ""
    return "pads the batch" if sizes[:-3].any() else ""


def _packs_batch(node: Node) -> str:
    shape = node.outputs[0].shape if node.outputs else ()
    axis = node.option("axis", 0)
    return "along the batch" if len(shape) > 3 and axis in (0, -len(shape)) else ""


def _alpha(node: Node) -> str:
    alpha = node.inputs[1] if len(node.inputs) > 1 else None
    return "alpha of several dimensions" if alpha is not None and len(alpha.extent) > 1 else ""


def _splits_batch(place: int, data: int) -> Callable[[Node], str]:
    def finds(node: Node) -> str:
        axis, value = node.constant(place), node.inputs[data] if data < len(node.inputs) else None
        if axis is None or axis.size != 1 or axis.dtype.kind not in "iu":
            return ""
        if value is None or len(value.shape) < 4:
            return ""
        splits = len(node.outputs) > 1 and int(axis.reshape(-1)[0]) in (0, -len(value.shape))
        return "splits the batch" if splits else ""

    return finds


def _strides(node: Node) -> str:
    strides = node.constant(3)
    if strides is not None and (strides != 1).any():
        return f"strides {'x'.join(str(each) for each in strides.reshape(-1))}"
    masks = (node.option("ellipsis_mask", 0), node.option("new_axis_mask", 0))
    return "a mask for new axes" if any(masks) else ""


def _long_softmax(node: Node) -> str:
    longest = max((each.elements for each in node.data), default=0)
    return f"{longest:,} elements" if longest > 16_000 else ""


_NO_ACTIVATION = Condition(
    "fused activation",
    _activation,
    "put the activation into an operator of its own",
    OPERATORS,
)
_SAME_DILATION = Condition("dilation", _dilation, "dilate both ways alike", OPERATORS)
_AXES = _constant(1)
_NO_BATCH = Condition("batch axis", _along_batch, "leave the batch dimension alone", OPERATORS)


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


def _result_bytes(node: Node) -> int:
    return max((each.bytes for each in node.outputs), default=0)


def _data_bytes(node: Node) -> int:
    return max((each.bytes for each in node.data), default=0)


def _enlargement(node: Node) -> int:
    """How many times more rows or columns a result has."""
    if not node.data or not node.outputs:
        return 0
    before, after = node.data[0].shape, node.outputs[0].shape
    if len(before) != 4 or len(after) != 4:
        return 0
    return max(round(after[k] / max(before[k], 1)) for k in (1, 2))


_SMALLER = "make the tensor smaller, or leave this step out of the model and do it in the program"
_RESIZE = (
    *_sized(
        Seen("enlargement", "enlarged {:,} times", _enlargement, 2, 33),
        "enlarge in steps of 2, or put it last: what follows it stays on the CPU, too",
        NUMBERS_SEEN,
    ),
    *_sized(
        Seen("size", "result of {:,} bytes", _result_bytes, 819_200, 3_145_728),
        _SMALLER,
        NUMBERS_SEEN,
    ),
)
"""A result of 1024 x 1024 x 3 was reported on the CPU (google-coral/edgetpu, issue 597)."""
_TRANSPOSE = _sized(
    Seen("size", "{:,} bytes transposed", _result_bytes, 57_600, 102_400),
    "convert from a model with channels last, which needs no transposition",
    SEEN,
)
_MEAN = _sized(
    Seen("size", "mean of {:,} bytes", _data_bytes, 62_720, 98_304),
    "reduce it in parts (SPLIT, MEAN, CONCATENATION), or make the tensor smaller",
    SEEN,
)
"""1 x 256 x 128 x 3 was reported on the CPU (google-coral/edgetpu, issue 461)."""
_RESHAPE = _sized(
    Seen("size", "{:,} bytes reshaped", _result_bytes, 57_600, 587_520),
    _SMALLER,
    NUMBERS_SEEN,
)
"""48 x 48 x 255 was reported on the CPU (google-coral/edgetpu, issue 512)."""

OPERATOR_CONDITIONS: Mapping[str, tuple[Condition, ...]] = {
    "ADD": (),
    "AVERAGE_POOL_2D": (_NO_ACTIVATION,),
    "CONCATENATION": (
        _NO_ACTIVATION,
        Condition(
            "constant part",
            _constant_part,
            "concatenate with zeros alone, as padding does, or without constants",
            OPERATORS,
        ),
    ),
    "CONV_2D": (_constant(1, 2), _SAME_DILATION),
    "DEPTHWISE_CONV_2D": (_constant(1, 2), _SAME_DILATION),
    "EXPAND_DIMS": (),
    "FULLY_CONNECTED": (
        _constant(1, 2),
        Condition("weights format", _weights_format, "use the default weights format", OPERATORS),
        Condition(
            "result",
            _one_dimension("result"),
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
        Condition("channels", _odd_depth, "use a multiple of 4 channels", OPERATORS),
        *_MEAN,
    ),
    "MINIMUM": (),
    "MUL": (),
    "PACK": (Condition("batch axis", _packs_batch, "leave the batch alone", OPERATORS),),
    "PAD": (_AXES, Condition("batch", _pads_batch, "pad rows, columns or channels", OPERATORS)),
    "PRELU": (
        _constant(1),
        Condition("alpha", _alpha, "share alpha along rows and columns", OPERATORS),
    ),
    "QUANTIZE": (
        Condition(
            "floating point input",
            _takes_floats,
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
            _one_dimension("input"),
            "put the softmax last, or do it in the program",
            OPERATORS,
        ),
        Condition("length", _long_softmax, "use at most 16,000 elements", OPERATORS),
    ),
    "SPACE_TO_DEPTH": (),
    "SPLIT": (Condition("batch axis", _splits_batch(0, 1), "leave the batch alone", OPERATORS),),
    "SPLIT_V": (Condition("batch axis", _splits_batch(2, 0), "leave the batch alone", OPERATORS),),
    "SQUARED_DIFFERENCE": (),
    "SQUEEZE": (),
    "STRIDED_SLICE": (
        _constant(1, 2, 3),
        Condition("strides", _strides, "use strides of 1, and no new axes", OPERATORS),
    ),
    "SUB": (),
    "SUM": (_AXES, _NO_BATCH),
    "TANH": (),
    "TILE": (_AXES,),
    "TRANSPOSE": (_AXES, *_TRANSPOSE),
    "TRANSPOSE_CONV": (_constant(0, 1),),
}
"""The operators of the vendor's table with their limits, and those of ``SEEN_OPERATORS``. Limits of
older compilers (run-time versions up to 12) are left out."""

SEEN_OPERATORS = frozenset({"TILE"})
"""Operators that the vendor's table lacks and compiled models have on the chip."""


_INSTEAD: Mapping[str, str] = {
    "DEQUANTIZE": (
        "at the end, take the quantised output and compute scale * (q - zero point) in the "
        "program; before operators of the CPU it belongs to them"
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
    message = WRONG_TYPE if _types(node) else UNSUPPORTED
    return Condition("operator", _what_kind, instead, OPERATORS, message)


def _what_kind(node: Node) -> str:
    return "a custom operator" if node.custom else "not supported"
