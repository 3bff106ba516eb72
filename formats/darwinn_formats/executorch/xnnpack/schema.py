"""Graphs of the XNNPACK delegate: the public schema (``schema.fbs``) as dataclasses.

Every table and field of the schema is here under its own name, nodes without their prefix ``XNN``.
Values are known by ``TensorValue.id_out``; ``NO_VALUE`` stands for none. Sizes of images are in
the order batch, height, width, channels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from darwinn_formats import flatbuffer as fb

NO_VALUE = 2**32 - 1
"""The id of a value that is not there: a bias, or the external id of an inner value."""
NAMED = 2**64 - 1
"""The offset of constant data that is stored under a name."""

EXTERNAL_INPUT = 1
EXTERNAL_OUTPUT = 2
"""Flags of values that the delegate's caller gives or takes."""
TRANSPOSE_WEIGHTS = 1
"""Flag of matrix products whose second operand has inputs by outputs, not outputs by inputs."""
SAME_PADDING = 4
"""Flag of windows that are padded as TensorFlow's ``SAME``."""
LEGACY_RESIZE = 4
ALIGN_CORNERS = 8
"""Flags of ``StaticResizeBilinear2D``: where pixels are sampled; without them, at their centres."""
KEEP_DIMS = 64
"""Flag of averages whose output keeps the sizes of 1."""


class Datatype(IntEnum):
    """Type of the elements of a value: ``q`` for quantised, ``c`` by channel, ``d`` at run time,
    ``b`` by block, ``p`` packed.
    """

    INVALID = 0
    FP32 = 1
    FP16 = 2
    QINT8 = 3
    QUINT8 = 4
    QINT32 = 5
    QCINT8 = 6
    QCINT32 = 7
    QCINT4 = 8
    QDINT8 = 9
    QBINT4 = 10
    QPINT8 = 11
    INT32 = 12
    PFP32 = 13
    BF16 = 14


ELEMENT_BITS: Mapping[Datatype, int] = {
    **dict.fromkeys((Datatype.FP32, Datatype.QINT32, Datatype.QCINT32, Datatype.INT32), 32),
    **dict.fromkeys((Datatype.FP16, Datatype.BF16), 16),
    **dict.fromkeys((Datatype.QINT8, Datatype.QUINT8, Datatype.QCINT8, Datatype.QDINT8), 8),
    **dict.fromkeys((Datatype.QCINT4, Datatype.QBINT4), 4),
}
"""Bits of an element, of the types whose constants are laid out plainly."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Constant data within the flatbuffer, as graphs of the identifier XN00 may have it."""

    storage: fb.Span | None = fb.byte_span(alignment=16)


@dataclass(frozen=True, slots=True)
class PerChannelQuant:
    """A scale for each entry of a dimension, here or as constant data of float32."""

    scale: tuple[float, ...] = fb.vector(fb.FLOAT32)
    channel_dim: int = fb.int32()
    scale_buffer_idx: int = fb.uint32()
    num_scales: int = fb.uint32()
    file_offset: int = fb.file_offset()


@dataclass(frozen=True, slots=True)
class PerTensorQuant:
    """One scale and one zero point."""

    scale: float = fb.float32()
    zero_point: int = fb.int32()
    file_offset: int = fb.file_offset()


@dataclass(frozen=True, slots=True)
class PerTokenDynamicQuant:
    """Scale and zero point of each row, found at run time."""

    num_nonbatch_dims: int = fb.int32()
    file_offset: int = fb.file_offset()


@dataclass(frozen=True, slots=True)
class PerChannelGroupQuant:
    """A scale for each group of a channel's elements: float32, bfloat16, or bfloat16 as data."""

    scale: tuple[float, ...] = fb.vector(fb.FLOAT32)
    channel_dim: int = fb.int32()
    group_size: int = fb.int32()
    scale_bf16: tuple[int, ...] = fb.vector(fb.UINT16)
    scale_buffer_idx: int = fb.uint32()
    num_scales: int = fb.uint32()
    file_offset: int = fb.file_offset()


QuantParams = PerChannelQuant | PerTensorQuant | PerTokenDynamicQuant | PerChannelGroupQuant
"""How a value is quantised."""


@dataclass(frozen=True, slots=True)
class TensorValue:
    """A value: type of its elements, sizes, data if it is constant.

    ``dq_datatype`` is of graphs of the identifier XN00: what the value is quantised to before use.
    """

    datatype: Datatype = fb.enumeration(Datatype.INVALID)
    num_dims: int = fb.uint32()
    dims: tuple[int, ...] = fb.vector(fb.UINT32)
    constant_buffer_idx: int = fb.uint32()
    external_id: int = fb.uint32()
    flags: int = fb.uint32()
    id_out: int = fb.uint32()
    dq_datatype: Datatype = fb.enumeration(Datatype.INVALID)
    file_offset: int = fb.file_offset()


@dataclass(frozen=True, slots=True)
class QuantizedTensorValue:
    """A value with its quantisation."""

    tensor_value: TensorValue = fb.table(TensorValue, required=True)
    quant_params: QuantParams | None = fb.union(QuantParams)
    file_offset: int = fb.file_offset()


_Content = TensorValue | QuantizedTensorValue


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the graph."""

    xvalue_union: _Content | None = fb.union(_Content)
    file_offset: int = fb.file_offset()

    @property
    def tensor(self) -> TensorValue:
        """The value without its quantisation."""
        content = self.xvalue_union
        assert content is not None
        return content.tensor_value if isinstance(content, QuantizedTensorValue) else content

    @property
    def quantisation(self) -> QuantParams | None:
        """How the value is quantised; None for one that is not."""
        content = self.xvalue_union
        return content.quant_params if isinstance(content, QuantizedTensorValue) else None


@dataclass(frozen=True, slots=True)
class Unary:
    """Fields of the nodes with one input."""

    input_id: int = fb.uint32()
    output_id: int = fb.uint32()
    flags: int = fb.uint32()


@dataclass(frozen=True, slots=True)
class Binary:
    """Fields of the nodes with two inputs."""

    input1_id: int = fb.uint32()
    input2_id: int = fb.uint32()
    output_id: int = fb.uint32()
    flags: int = fb.uint32()


@dataclass(frozen=True, slots=True)
class Convolution:
    """Fields of the convolutions; the filter of a depthwise one has its channels last."""

    padding_top: int = fb.uint32()
    padding_right: int = fb.uint32()
    padding_bottom: int = fb.uint32()
    padding_left: int = fb.uint32()
    kernel_height: int = fb.uint32()
    kernel_width: int = fb.uint32()
    subsampling_height: int = fb.uint32()
    subsampling_width: int = fb.uint32()
    dilation_height: int = fb.uint32()
    dilation_width: int = fb.uint32()
    group_input_channels: int = fb.uint32()
    group_output_channels: int = fb.uint32()
    groups: int = fb.uint32()
    adjustment_height: int = fb.uint32()
    adjustment_width: int = fb.uint32()
    input1_id: int = fb.uint32()
    filter_id: int = fb.uint32()
    bias_id: int = fb.uint32()
    output_id: int = fb.uint32()
    flags: int = fb.uint32()


@dataclass(frozen=True, slots=True)
class Pooling:
    """Fields of averages and maxima in windows."""

    padding_top: int = fb.uint32()
    padding_right: int = fb.uint32()
    padding_bottom: int = fb.uint32()
    padding_left: int = fb.uint32()
    pooling_height: int = fb.uint32()
    pooling_width: int = fb.uint32()
    stride_height: int = fb.uint32()
    stride_width: int = fb.uint32()
    dilation_height: int = fb.uint32()
    dilation_width: int = fb.uint32()
    input_id: int = fb.uint32()
    output_id: int = fb.uint32()
    flags: int = fb.uint32()


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Fields of concatenations."""

    axis: int = fb.uint32()
    input1_id: int = fb.uint32()
    input2_id: int = fb.uint32()
    input3_id: int = fb.uint32()
    input4_id: int = fb.uint32()
    output_id: int = fb.uint32()
    flags: int = fb.uint32()
    input5_id: int = fb.uint32()


@dataclass(frozen=True, slots=True)
class FullyConnected:
    """A product with a matrix of weights."""

    input1_id: int = fb.uint32()
    filter_id: int = fb.uint32()
    bias_id: int = fb.uint32()
    output_id: int = fb.uint32()
    flags: int = fb.uint32()


@dataclass(frozen=True, slots=True)
class StaticTranspose:
    """Dimensions in another order."""

    num_dims: int = fb.uint32()
    perm: tuple[int, ...] = fb.vector(fb.UINT32)
    input_id: int = fb.uint32()
    output_id: int = fb.uint32()
    flags: int = fb.uint32()


@dataclass(frozen=True, slots=True)
class StaticResizeBilinear2D:
    """An image of another size."""

    new_height: int = fb.uint32()
    new_width: int = fb.uint32()
    input_id: int = fb.uint32()
    output_id: int = fb.uint32()
    flags: int = fb.uint32()


@dataclass(frozen=True, slots=True)
class StaticConstantPad:
    """A margin of one number around a tensor."""

    pre_paddings: tuple[int, ...] = fb.vector(fb.UINT32)
    post_paddings: tuple[int, ...] = fb.vector(fb.UINT32)
    padding_value: float = fb.float32()
    input_id: int = fb.uint32()
    output_id: int = fb.uint32()
    flags: int = fb.uint32()


@dataclass(frozen=True, slots=True)
class StaticReshape:
    """Other sizes; a size of 0 is the one that follows from the rest."""

    num_dims: int = fb.uint32()
    new_shape: tuple[int, ...] = fb.vector(fb.UINT32)
    input_id: int = fb.uint32()
    output_id: int = fb.uint32()
    flags: int = fb.uint32()


@dataclass(frozen=True, slots=True)
class StaticSlice:
    """A part of a tensor; a size of 0 is all that follows the offset."""

    num_dims: int = fb.uint32()
    offsets: tuple[int, ...] = fb.vector(fb.UINT32)
    sizes: tuple[int, ...] = fb.vector(fb.UINT32)
    input_id: int = fb.uint32()
    output_id: int = fb.uint32()
    flags: int = fb.uint32()


@dataclass(frozen=True, slots=True)
class ScaledDotProductAttention:
    """Attention of one step."""

    query_id: int = fb.uint32()
    key_id: int = fb.uint32()
    value_id: int = fb.uint32()
    scale_id: int = fb.uint32()
    mask_id: int = fb.uint32()
    output_id: int = fb.uint32()
    flags: int = fb.uint32()


@dataclass(frozen=True, slots=True)
class ArgMaxPooling2d:
    """Maxima in windows, and where in the window they are."""

    padding_top: int = fb.uint32()
    padding_right: int = fb.uint32()
    padding_bottom: int = fb.uint32()
    padding_left: int = fb.uint32()
    pooling_height: int = fb.uint32()
    pooling_width: int = fb.uint32()
    input_id: int = fb.uint32()
    output_value_id: int = fb.uint32()
    output_index_id: int = fb.uint32()
    flags: int = fb.uint32()


@dataclass(frozen=True, slots=True)
class ELU:
    """Below 0, ``alpha * (exp(x) - 1)``."""

    alpha: float = fb.float32()
    input_id: int = fb.uint32()
    output_id: int = fb.uint32()
    flags: int = fb.uint32()


@dataclass(frozen=True, slots=True)
class LeakyReLU:
    """Below 0, ``negative_slope`` times the input."""

    negative_slope: float = fb.float32()
    input_id: int = fb.uint32()
    output_id: int = fb.uint32()
    flags: int = fb.uint32()


@dataclass(frozen=True, slots=True)
class Add(Binary):
    """The sum."""


@dataclass(frozen=True, slots=True)
class Div(Binary):
    """The quotient."""


@dataclass(frozen=True, slots=True)
class Minimum(Binary):
    """The less of two."""


@dataclass(frozen=True, slots=True)
class Multiply(Binary):
    """The product."""


@dataclass(frozen=True, slots=True)
class Subtract(Binary):
    """The difference."""


@dataclass(frozen=True, slots=True)
class Maximum(Binary):
    """The greater of two."""


@dataclass(frozen=True, slots=True)
class PReLU(Binary):
    """Below 0, the product with a slope for each channel."""


@dataclass(frozen=True, slots=True)
class BatchMatrixMultiply(Binary):
    """Products of matrices."""


@dataclass(frozen=True, slots=True)
class Softmax(Unary):
    """Exponentials over the last dimension, divided by their sum."""


@dataclass(frozen=True, slots=True)
class Sigmoid(Unary):
    """``1 / (1 + exp(-x))``."""


@dataclass(frozen=True, slots=True)
class Clamp(Unary):
    """Within the limits of the node."""


@dataclass(frozen=True, slots=True)
class Floor(Unary):
    """Rounded down."""


@dataclass(frozen=True, slots=True)
class Convert(Unary):
    """In another type: quantised, or not any more."""


@dataclass(frozen=True, slots=True)
class GlobalAvgPooling2d(Unary):
    """Averages of whole images."""


@dataclass(frozen=True, slots=True)
class SquareRoot(Unary):
    """The square root."""


@dataclass(frozen=True, slots=True)
class Ceiling(Unary):
    """Rounded up."""


@dataclass(frozen=True, slots=True)
class Hardswish(Unary):
    """``x * clamp(x + 3, 0, 6) / 6``."""


@dataclass(frozen=True, slots=True)
class Negate(Unary):
    """The negative."""


@dataclass(frozen=True, slots=True)
class Square(Unary):
    """The square."""


@dataclass(frozen=True, slots=True)
class Abs(Unary):
    """The absolute value."""


@dataclass(frozen=True, slots=True)
class ReciprocalSquareRoot(Unary):
    """``1 / sqrt(x)``."""


@dataclass(frozen=True, slots=True)
class Log(Unary):
    """The natural logarithm."""


@dataclass(frozen=True, slots=True)
class Gelu(Unary):
    """``x`` times the normal distribution of ``x``."""


@dataclass(frozen=True, slots=True)
class Tanh(Unary):
    """The hyperbolic tangent."""


@dataclass(frozen=True, slots=True)
class Exp(Unary):
    """The exponential."""


@dataclass(frozen=True, slots=True)
class Sin(Unary):
    """The sine."""


@dataclass(frozen=True, slots=True)
class Copy(Unary):
    """The same."""


@dataclass(frozen=True, slots=True)
class Cos(Unary):
    """The cosine."""


@dataclass(frozen=True, slots=True)
class Conv2d(Convolution):
    """Filter: outputs, height, width, inputs of a group."""


@dataclass(frozen=True, slots=True)
class DepthwiseConv2d(Convolution):
    """Filter: 1, height, width, outputs."""


@dataclass(frozen=True, slots=True)
class ConvTranspose2d(Convolution):
    """Filter: outputs, height, width, inputs of a group."""


@dataclass(frozen=True, slots=True)
class AvgPooling2d(Pooling):
    """Averages in windows."""


@dataclass(frozen=True, slots=True)
class MaxPooling2d(Pooling):
    """Maxima in windows."""


@dataclass(frozen=True, slots=True)
class Concatenate2(Concatenation):
    """Two values one after another."""


@dataclass(frozen=True, slots=True)
class Concatenate3(Concatenation):
    """Three values one after another."""


@dataclass(frozen=True, slots=True)
class Concatenate4(Concatenation):
    """Four values one after another."""


@dataclass(frozen=True, slots=True)
class Concatenate5(Concatenation):
    """Five values one after another."""


Operation = (
    Add
    | FullyConnected
    | Softmax
    | Sigmoid
    | StaticTranspose
    | Clamp
    | Conv2d
    | Div
    | StaticResizeBilinear2D
    | StaticConstantPad
    | AvgPooling2d
    | Minimum
    | DepthwiseConv2d
    | MaxPooling2d
    | Multiply
    | Subtract
    | Floor
    | Convert
    | GlobalAvgPooling2d
    | StaticReshape
    | ArgMaxPooling2d
    | SquareRoot
    | Ceiling
    | Hardswish
    | LeakyReLU
    | Maximum
    | Negate
    | Square
    | ELU
    | Abs
    | PReLU
    | Concatenate2
    | Concatenate3
    | Concatenate4
    | StaticSlice
    | ScaledDotProductAttention
    | BatchMatrixMultiply
    | Concatenate5
    | ConvTranspose2d
    | ReciprocalSquareRoot
    | Log
    | Gelu
    | Tanh
    | Exp
    | Sin
    | Copy
    | Cos
)
"""What a node does, in the order of the tags."""


@dataclass(frozen=True, slots=True)
class OutputMinMax:
    """Limits of what a node gives, in real numbers."""

    output_min: float = fb.float32()
    output_max: float = fb.float32()


@dataclass(frozen=True, slots=True)
class Node:
    """A node: what it does, a number from the exporter's graph, limits of what it gives."""

    xnode_union: Operation | None = fb.union(Operation)
    debug_handle: int = fb.uint32()
    output_min_max: OutputMinMax | None = fb.table(OutputMinMax)
    file_offset: int = fb.file_offset()

    @property
    def operation(self) -> Operation:
        """What the node does."""
        assert self.xnode_union is not None
        return self.xnode_union

    @property
    def name(self) -> str:
        """The name of the operation, as the schema has it but for ``XNN``."""
        return type(self.operation).__name__


@dataclass(frozen=True, slots=True)
class ConstantDataOffset:
    """Constant data: bytes after the graph, or, at the offset ``NAMED``, of a name."""

    offset: int = fb.uint64()
    size: int = fb.uint64()
    named_key: str = fb.string()
    file_offset: int = fb.file_offset()


@fb.file_identifier(b"XN01")
@dataclass(frozen=True, slots=True)
class Graph:
    """Root table; entry 0 of the constant data stands for none."""

    version: str = fb.string()
    xnodes: tuple[Node, ...] = fb.table_vector(Node)
    xvalues: tuple[Value, ...] = fb.table_vector(Value)
    num_externs: int = fb.uint32()
    input_ids: tuple[int, ...] = fb.vector(fb.UINT32)
    output_ids: tuple[int, ...] = fb.vector(fb.UINT32)
    constant_buffer: tuple[Buffer, ...] = fb.table_vector(Buffer)
    mem_buffer_sizes: tuple[int, ...] = fb.vector(fb.UINT32)
    constant_data: tuple[ConstantDataOffset, ...] = fb.table_vector(ConstantDataOffset)
    file_offset: int = fb.file_offset()


@fb.file_identifier(b"XN00")
@dataclass(frozen=True, slots=True)
class OlderGraph(Graph):
    """A graph of the version before, which may have its constant data within the flatbuffer."""


def value_ids(operation: Operation) -> tuple[dict[str, int], dict[str, int]]:
    """The fields of an operation that name its inputs, and those that name its outputs.

    Inputs that a concatenation of fewer leaves open are not among them.
    """
    fields = {
        entry.name: getattr(operation, entry.name)
        for entry in dataclasses.fields(operation)
        if entry.name.endswith("_id")
    }
    outputs = {name: entry for name, entry in fields.items() if name.startswith("output")}
    inputs = {name: entry for name, entry in fields.items() if name not in outputs}
    if isinstance(operation, Concatenation):
        count = int(type(operation).__name__[-1])
        inputs = {f"input{at}_id": inputs[f"input{at}_id"] for at in range(1, count + 1)}
    return inputs, outputs
