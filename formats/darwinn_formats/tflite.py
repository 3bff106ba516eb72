"""TensorFlow Lite models: the part of the schema that Edge TPU files and CPU oracles need.

Tables are marked open: fields that are not declared are passed over, but a model that uses one
of them in a way that changes its meaning is refused (``load``). Option tables that are not
declared read as ``OpaqueTable`` with their name, so that whoever needs them can refuse the
operator by name. Slots and defaults are those of schema version 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from darwinn_formats import flatbuffer as fb
from darwinn_formats.errors import FormatError
from darwinn_formats.files import Source, content_of, errors_name
from darwinn_formats.tflite_names import BUILTIN_OPTIONS, BUILTIN_OPTIONS_2, BuiltinOperator

__all__ = ["BuiltinOperator", "Model", "check", "load"]

IDENTIFIER = b"TFL3"
"""File identifier of TensorFlow Lite models."""


class TensorType(IntEnum):
    """Element type of a tensor."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    UINT8 = 3
    INT64 = 4
    STRING = 5
    BOOL = 6
    INT16 = 7
    COMPLEX64 = 8
    INT8 = 9
    FLOAT64 = 10
    COMPLEX128 = 11
    UINT64 = 12
    RESOURCE = 13
    VARIANT = 14
    UINT32 = 15
    UINT16 = 16
    INT4 = 17
    BFLOAT16 = 18
    INT2 = 19
    UINT4 = 20
    FLOAT8_E4M3FN = 21
    FLOAT8_E5M2 = 22


DTYPES: dict[TensorType, np.dtype[Any]] = {
    TensorType.FLOAT32: np.dtype("<f4"),
    TensorType.FLOAT16: np.dtype("<f2"),
    TensorType.INT32: np.dtype("<i4"),
    TensorType.UINT8: np.dtype("u1"),
    TensorType.INT64: np.dtype("<i8"),
    TensorType.BOOL: np.dtype("?"),
    TensorType.INT16: np.dtype("<i2"),
    TensorType.COMPLEX64: np.dtype("<c8"),
    TensorType.INT8: np.dtype("i1"),
    TensorType.FLOAT64: np.dtype("<f8"),
    TensorType.COMPLEX128: np.dtype("<c16"),
    TensorType.UINT64: np.dtype("<u8"),
    TensorType.UINT32: np.dtype("<u4"),
    TensorType.UINT16: np.dtype("<u2"),
}
"""NumPy types of the element types that have one."""


class Padding(IntEnum):
    """Padding of a convolution or a pool."""

    SAME = 0
    VALID = 1


class ActivationFunctionType(IntEnum):
    """Activation that is fused into an operator."""

    NONE = 0
    RELU = 1
    RELU_N1_TO_1 = 2
    RELU6 = 3
    TANH = 4
    SIGN_BIT = 5


class WeightsFormat(IntEnum):
    """Layout of the weights of FULLY_CONNECTED."""

    DEFAULT = 0
    SHUFFLED4X16INT8 = 1


class MirrorPadMode(IntEnum):
    """Whether the border itself is repeated."""

    REFLECT = 0
    SYMMETRIC = 1


class LSTMKernelType(IntEnum):
    """Kernel of an LSTM operator."""

    FULL = 0
    BASIC = 1


def _padding() -> Any:
    return fb.enumeration(Padding.SAME, fb.INT8)


def _activation() -> Any:
    return fb.enumeration(ActivationFunctionType.NONE, fb.INT8)


def _tensor_type(default: TensorType = TensorType.FLOAT32) -> Any:
    return fb.enumeration(default, fb.INT8)


@dataclass(frozen=True, slots=True)
class Conv2DOptions:
    """Options of CONV_2D."""

    padding: Padding = _padding()
    stride_w: int = fb.int32()
    stride_h: int = fb.int32()
    fused_activation_function: ActivationFunctionType = _activation()
    dilation_w_factor: int = fb.int32(1)
    dilation_h_factor: int = fb.int32(1)
    quantized_bias_type: TensorType = _tensor_type()


@dataclass(frozen=True, slots=True)
class DepthwiseConv2DOptions:
    """Options of DEPTHWISE_CONV_2D."""

    padding: Padding = _padding()
    stride_w: int = fb.int32()
    stride_h: int = fb.int32()
    depth_multiplier: int = fb.int32()
    fused_activation_function: ActivationFunctionType = _activation()
    dilation_w_factor: int = fb.int32(1)
    dilation_h_factor: int = fb.int32(1)


@dataclass(frozen=True, slots=True)
class Pool2DOptions:
    """Options of AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D."""

    padding: Padding = _padding()
    stride_w: int = fb.int32()
    stride_h: int = fb.int32()
    filter_width: int = fb.int32()
    filter_height: int = fb.int32()
    fused_activation_function: ActivationFunctionType = _activation()


@fb.open_table
@dataclass(frozen=True, slots=True)
class FullyConnectedOptions:
    """Options of FULLY_CONNECTED."""

    fused_activation_function: ActivationFunctionType = _activation()
    weights_format: WeightsFormat = fb.enumeration(WeightsFormat.DEFAULT, fb.INT8)
    keep_num_dims: bool = fb.boolean()
    asymmetric_quantize_inputs: bool = fb.boolean()
    quantized_bias_type: TensorType = _tensor_type()


@dataclass(frozen=True, slots=True)
class SoftmaxOptions:
    """Options of SOFTMAX."""

    beta: float = fb.float32()


@dataclass(frozen=True, slots=True)
class ConcatenationOptions:
    """Options of CONCATENATION."""

    axis: int = fb.int32()
    fused_activation_function: ActivationFunctionType = _activation()


@dataclass(frozen=True, slots=True)
class AddOptions:
    """Options of ADD."""

    fused_activation_function: ActivationFunctionType = _activation()
    pot_scale_int16: bool = fb.boolean(True)


@dataclass(frozen=True, slots=True)
class SubOptions:
    """Options of SUB."""

    fused_activation_function: ActivationFunctionType = _activation()
    pot_scale_int16: bool = fb.boolean(True)


@dataclass(frozen=True, slots=True)
class MulOptions:
    """Options of MUL."""

    fused_activation_function: ActivationFunctionType = _activation()


@dataclass(frozen=True, slots=True)
class DivOptions:
    """Options of DIV."""

    fused_activation_function: ActivationFunctionType = _activation()


@dataclass(frozen=True, slots=True)
class ReshapeOptions:
    """Options of RESHAPE."""

    new_shape: tuple[int, ...] = fb.vector(fb.INT32)


@dataclass(frozen=True, slots=True)
class PadOptions:
    """Options of PAD, which has none."""


@dataclass(frozen=True, slots=True)
class SplitOptions:
    """Options of SPLIT."""

    num_splits: int = fb.int32()


@dataclass(frozen=True, slots=True)
class ResizeBilinearOptions:
    """Options of RESIZE_BILINEAR; slots 0 and 1 are deprecated sizes, given by an input now."""

    new_height: int = fb.int32()
    new_width: int = fb.int32()
    align_corners: bool = fb.boolean()
    half_pixel_centers: bool = fb.boolean()


@dataclass(frozen=True, slots=True)
class ResizeNearestNeighborOptions:
    """Options of RESIZE_NEAREST_NEIGHBOR."""

    align_corners: bool = fb.boolean()
    half_pixel_centers: bool = fb.boolean()


@dataclass(frozen=True, slots=True)
class ReducerOptions:
    """Options of MEAN and the other reductions."""

    keep_dims: bool = fb.boolean()


@dataclass(frozen=True, slots=True)
class SqueezeOptions:
    """Options of SQUEEZE."""

    squeeze_dims: tuple[int, ...] = fb.vector(fb.INT32)


@dataclass(frozen=True, slots=True)
class StridedSliceOptions:
    """Options of STRIDED_SLICE."""

    begin_mask: int = fb.int32()
    end_mask: int = fb.int32()
    ellipsis_mask: int = fb.int32()
    new_axis_mask: int = fb.int32()
    shrink_axis_mask: int = fb.int32()
    offset: bool = fb.boolean()


@dataclass(frozen=True, slots=True)
class TransposeConvOptions:
    """Options of TRANSPOSE_CONV."""

    padding: Padding = _padding()
    stride_w: int = fb.int32()
    stride_h: int = fb.int32()
    fused_activation_function: ActivationFunctionType = _activation()
    quantized_bias_type: TensorType = _tensor_type()


@dataclass(frozen=True, slots=True)
class LeakyReluOptions:
    """Options of LEAKY_RELU."""

    alpha: float = fb.float32()


@dataclass(frozen=True, slots=True)
class PackOptions:
    """Options of PACK."""

    values_count: int = fb.int32()
    axis: int = fb.int32()


@dataclass(frozen=True, slots=True)
class TileOptions:
    """Options of TILE, which has none."""


@dataclass(frozen=True, slots=True)
class ArgMaxOptions:
    """Options of ARG_MAX."""

    output_type: TensorType = _tensor_type()


@dataclass(frozen=True, slots=True)
class ArgMinOptions:
    """Options of ARG_MIN."""

    output_type: TensorType = _tensor_type()


@dataclass(frozen=True, slots=True)
class CastOptions:
    """Options of CAST: what the types of its tensors say too."""

    in_data_type: TensorType = _tensor_type()
    out_data_type: TensorType = _tensor_type()


@dataclass(frozen=True, slots=True)
class FloorDivOptions:
    """Options of FLOOR_DIV, which has none."""


@dataclass(frozen=True, slots=True)
class GatherOptions:
    """Options of GATHER."""

    axis: int = fb.int32()
    batch_dims: int = fb.int32()


@dataclass(frozen=True, slots=True)
class GatherNdOptions:
    """Options of GATHER_ND, which has none."""


@dataclass(frozen=True, slots=True)
class UnpackOptions:
    """Options of UNPACK."""

    num: int = fb.int32()
    axis: int = fb.int32()


@dataclass(frozen=True, slots=True)
class SplitVOptions:
    """Options of SPLIT_V."""

    num_splits: int = fb.int32()


@dataclass(frozen=True, slots=True)
class ExpandDimsOptions:
    """Options of EXPAND_DIMS, which has none."""


@dataclass(frozen=True, slots=True)
class SliceOptions:
    """Options of SLICE, which has none."""


@dataclass(frozen=True, slots=True)
class TransposeOptions:
    """Options of TRANSPOSE, which has none."""


@dataclass(frozen=True, slots=True)
class SpaceToDepthOptions:
    """Options of SPACE_TO_DEPTH."""

    block_size: int = fb.int32()


@dataclass(frozen=True, slots=True)
class DepthToSpaceOptions:
    """Options of DEPTH_TO_SPACE."""

    block_size: int = fb.int32()


@dataclass(frozen=True, slots=True)
class PadV2Options:
    """Options of PADV2, which has none."""


@dataclass(frozen=True, slots=True)
class MirrorPadOptions:
    """Options of MIRROR_PAD."""

    mode: MirrorPadMode = fb.enumeration(MirrorPadMode.REFLECT, fb.INT8)


@dataclass(frozen=True, slots=True)
class MaximumMinimumOptions:
    """Options of MAXIMUM and MINIMUM, which have none."""


@dataclass(frozen=True, slots=True)
class SquaredDifferenceOptions:
    """Options of SQUARED_DIFFERENCE, which has none."""


@dataclass(frozen=True, slots=True)
class L2NormOptions:
    """Options of L2_NORMALIZATION."""

    fused_activation_function: ActivationFunctionType = _activation()


@dataclass(frozen=True, slots=True)
class HardSwishOptions:
    """Options of HARD_SWISH, which has none."""


@dataclass(frozen=True, slots=True)
class QuantizeOptions:
    """Options of QUANTIZE, which has none."""


@dataclass(frozen=True, slots=True)
class DequantizeOptions:
    """Options of DEQUANTIZE, which has none."""


@dataclass(frozen=True, slots=True)
class LSTMOptions:
    """Options of LSTM."""

    fused_activation_function: ActivationFunctionType = _activation()
    cell_clip: float = fb.float32()
    proj_clip: float = fb.float32()
    kernel_type: LSTMKernelType = fb.enumeration(LSTMKernelType.FULL, fb.INT8)
    asymmetric_quantize_inputs: bool = fb.boolean()


@dataclass(frozen=True, slots=True)
class UnidirectionalSequenceLSTMOptions:
    """Options of UNIDIRECTIONAL_SEQUENCE_LSTM."""

    fused_activation_function: ActivationFunctionType = _activation()
    cell_clip: float = fb.float32()
    proj_clip: float = fb.float32()
    time_major: bool = fb.boolean()
    asymmetric_quantize_inputs: bool = fb.boolean()
    diagonal_recurrent_tensors: bool = fb.boolean()


BuiltinOptions = (
    Conv2DOptions
    | DepthwiseConv2DOptions
    | Pool2DOptions
    | FullyConnectedOptions
    | SoftmaxOptions
    | ConcatenationOptions
    | AddOptions
    | SubOptions
    | MulOptions
    | DivOptions
    | ReshapeOptions
    | PadOptions
    | SplitOptions
    | ResizeBilinearOptions
    | ResizeNearestNeighborOptions
    | ReducerOptions
    | SqueezeOptions
    | StridedSliceOptions
    | TransposeConvOptions
    | LeakyReluOptions
    | PackOptions
    | TileOptions
    | ArgMaxOptions
    | ArgMinOptions
    | CastOptions
    | FloorDivOptions
    | GatherOptions
    | GatherNdOptions
    | UnpackOptions
    | SplitVOptions
    | ExpandDimsOptions
    | SliceOptions
    | TransposeOptions
    | SpaceToDepthOptions
    | DepthToSpaceOptions
    | PadV2Options
    | MirrorPadOptions
    | MaximumMinimumOptions
    | SquaredDifferenceOptions
    | L2NormOptions
    | HardSwishOptions
    | QuantizeOptions
    | DequantizeOptions
    | LSTMOptions
    | UnidirectionalSequenceLSTMOptions
    | fb.OpaqueTable
)
"""Options of a builtin operator."""

_OPTION_TABLES: dict[int, type[Any]] = {
    BUILTIN_OPTIONS.index(table.__name__): table
    for table in BuiltinOptions.__args__
    if table is not fb.OpaqueTable
}


def _others(names: tuple[str, ...]) -> dict[int, str]:
    return {tag: name for tag, name in enumerate(names) if tag and tag not in _OPTION_TABLES}


@fb.open_table
@dataclass(frozen=True, slots=True)
class SparsityParameters:
    """Marks a tensor that is stored sparse; what it says is not read."""


@fb.open_table
@dataclass(frozen=True, slots=True)
class QuantizationParameters:
    """real value = scale * (value - zero_point), for the whole tensor or along one dimension."""

    min: tuple[float, ...] = fb.vector(fb.FLOAT32)
    max: tuple[float, ...] = fb.vector(fb.FLOAT32)
    scale: tuple[float, ...] = fb.vector(fb.FLOAT32)
    zero_point: tuple[int, ...] = fb.vector(fb.INT64)
    details: fb.OpaqueTable | None = fb.union(
        {}, other={1: "CustomQuantization", 2: "BlockwiseQuantization", 3: "MultiAxisQuantization"}
    )
    quantized_dimension: int = fb.int32()


@fb.open_table
@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor: its shape, type, and the index of the buffer that holds its data."""

    shape: tuple[int, ...] = fb.vector(fb.INT32)
    type: TensorType = _tensor_type()
    buffer: int = fb.uint32()
    name: str = fb.string()
    quantization: QuantizationParameters | None = fb.table(QuantizationParameters)
    is_variable: bool = fb.boolean()
    sparsity: SparsityParameters | None = fb.table(SparsityParameters)
    shape_signature: tuple[int, ...] = fb.vector(fb.INT32)
    has_rank: bool = fb.boolean()
    external_buffer: int = fb.uint32(slot=10)
    file_offset: int = fb.file_offset()


@fb.open_table
@dataclass(frozen=True, slots=True)
class OperatorCode:
    """An operator that the model uses; a builtin number above 126 is only in `builtin_code`."""

    deprecated_builtin_code: int = fb.int8()
    custom_code: str = fb.string()
    version: int = fb.int32(1)
    builtin_code: int = fb.int32()
    file_offset: int = fb.file_offset()

    @property
    def operator(self) -> BuiltinOperator:
        """The builtin operator; CUSTOM is further named by `custom_code`."""
        return BuiltinOperator(max(self.deprecated_builtin_code, self.builtin_code))


@fb.open_table
@dataclass(frozen=True, slots=True)
class Operator:
    """A node of the graph; tensor indices, -1 for an optional input that is left out."""

    opcode_index: int = fb.uint32()
    inputs: tuple[int, ...] = fb.vector(fb.INT32)
    outputs: tuple[int, ...] = fb.vector(fb.INT32)
    builtin_options: BuiltinOptions | None = fb.union(
        _OPTION_TABLES, other=_others(BUILTIN_OPTIONS)
    )
    custom_options: fb.Span | None = fb.byte_span()
    custom_options_format: int = fb.int8()
    mutating_variable_inputs: tuple[bool, ...] = fb.vector(fb.BOOL)
    intermediates: tuple[int, ...] = fb.vector(fb.INT32)
    large_custom_options_offset: int = fb.uint64()
    large_custom_options_size: int = fb.uint64()
    builtin_options_2: fb.OpaqueTable | None = fb.union(
        {}, other=dict(enumerate(BUILTIN_OPTIONS_2[1:], 1))
    )
    file_offset: int = fb.file_offset()


@fb.open_table
@dataclass(frozen=True, slots=True)
class SubGraph:
    """A graph: tensors, and operators in execution order."""

    tensors: tuple[Tensor, ...] = fb.table_vector(Tensor)
    inputs: tuple[int, ...] = fb.vector(fb.INT32)
    outputs: tuple[int, ...] = fb.vector(fb.INT32)
    operators: tuple[Operator, ...] = fb.table_vector(Operator)
    name: str = fb.string()
    file_offset: int = fb.file_offset()


@dataclass(frozen=True, slots=True)
class Buffer:
    """Constant data, a view of the file; `offset` and `size` are for data after the flatbuffer."""

    data: memoryview = fb.byte_view(alignment=16)
    offset: int = fb.uint64()
    size: int = fb.uint64()
    file_offset: int = fb.file_offset()


@dataclass(frozen=True, slots=True)
class Metadata:
    """A named buffer."""

    name: str = fb.string()
    buffer: int = fb.uint32()


@fb.open_table
@fb.file_identifier(IDENTIFIER)
@dataclass(frozen=True, slots=True)
class Model:
    """A whole model."""

    version: int = fb.uint32()
    operator_codes: tuple[OperatorCode, ...] = fb.table_vector(OperatorCode)
    subgraphs: tuple[SubGraph, ...] = fb.table_vector(SubGraph)
    description: str = fb.string()
    buffers: tuple[Buffer, ...] = fb.table_vector(Buffer)
    metadata_buffer: tuple[int, ...] = fb.vector(fb.INT32)
    metadata: tuple[Metadata, ...] = fb.table_vector(Metadata)

    def code(self, operator: Operator) -> OperatorCode:
        """The operator code of a node."""
        return self.operator_codes[operator.opcode_index]

    def constant(self, tensor: Tensor) -> NDArray[Any] | None:
        """Data of a constant tensor in its shape, without a copy; None if it has none.

        Raises:
            FormatError: when the data does not fill the shape, is sparse, or has a type without
                a NumPy counterpart.
        """
        data = self.buffers[tensor.buffer].data
        if not data:
            return None
        dtype = DTYPES.get(tensor.type)
        if dtype is None or tensor.sparsity is not None:
            kind = "sparse tensors" if dtype else f"elements of type {tensor.type.name}"
            raise FormatError(tensor.name, f"{kind} are not supported", offset=tensor.file_offset)
        needed = dtype.itemsize * int(np.prod(tensor.shape, dtype=object))
        if min(tensor.shape, default=0) < 0 or needed != len(data):
            reason = f"{len(data)} bytes do not fill the shape {list(tensor.shape)} of {dtype}"
            raise FormatError(tensor.name, reason, offset=tensor.file_offset)
        return np.frombuffer(data, dtype).reshape(tensor.shape)


def check(model: Model) -> None:
    """Check what a verified flatbuffer can still get wrong: the indices, and what is refused.

    Raises:
        FormatError: with the offset of the table that is at fault.
    """
    for index, code in enumerate(model.operator_codes):
        number = max(code.deprecated_builtin_code, code.builtin_code)
        if not 0 <= number < len(BuiltinOperator):
            reason = f"no builtin operator has the number {number}"
            raise FormatError(f"Model.operator_codes[{index}]", reason, offset=code.file_offset)
    for index, buffer in enumerate(model.buffers):
        if buffer.offset > 1 or buffer.size > 1:
            reason = "data outside the flatbuffer is not supported"
            raise FormatError(f"Model.buffers[{index}]", reason, offset=buffer.file_offset)
    for index, graph in enumerate(model.subgraphs):
        try:
            _check_graph(model, graph)
        except FormatError as error:
            raise error.within(f"Model.subgraphs[{index}]") from None


def _check_graph(model: Model, graph: SubGraph) -> None:
    count = len(graph.tensors)
    _check_indices("inputs", graph.inputs, 0, count, graph.file_offset)
    _check_indices("outputs", graph.outputs, 0, count, graph.file_offset)
    for index, tensor in enumerate(graph.tensors):
        path = f"tensors[{index}]"
        buffers = len(model.buffers)
        _check_indices(f"{path}.buffer", [tensor.buffer], 0, buffers, tensor.file_offset)
        if tensor.external_buffer:
            reason = "external buffers are not supported"
            raise FormatError(path, reason, offset=tensor.file_offset)
    for index, operator in enumerate(graph.operators):
        path, offset = f"operators[{index}]", operator.file_offset
        codes = len(model.operator_codes)
        _check_indices(f"{path}.opcode_index", [operator.opcode_index], 0, codes, offset)
        _check_indices(f"{path}.inputs", operator.inputs, -1, count, offset)
        _check_indices(f"{path}.outputs", operator.outputs, 0, count, offset)
        _check_indices(f"{path}.intermediates", operator.intermediates, -1, count, offset)
        if operator.large_custom_options_size:
            raise FormatError(path, "large custom options are not supported", offset=offset)


def _check_indices(
    path: str, indices: tuple[int, ...] | list[int], low: int, high: int, offset: int
) -> None:
    if indices and not (low <= min(indices) and max(indices) < high):
        wrong = next(index for index in indices if not low <= index < high)
        raise FormatError(path, f"index {wrong} is not below {high}", offset=offset)


def load(source: Source) -> Model:
    """Load a model from a file, or from its bytes.

    Raises:
        FormatError: with file, offset and field, for anything that is not a valid model.
        OSError: when the file cannot be read.
    """
    with errors_name(source):
        model = fb.read(content_of(source), Model)
        check(model)
    return model
