"""Option tables of operators that references need, by the slots of schema version 3.

Tables are marked open: fields that are not declared are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from darwinn_formats import flatbuffer as fb
from darwinn_formats.tflite.enums import (
    ActivationFunctionType,
    LSTMKernelType,
    MirrorPadMode,
    Padding,
    TensorType,
    WeightsFormat,
)
from darwinn_formats.tflite.names import BUILTIN_OPTIONS


def _padding() -> Any:
    return fb.enumeration(Padding.SAME, fb.INT8)


def _activation() -> Any:
    return fb.enumeration(ActivationFunctionType.NONE, fb.INT8)


def element_type(default: TensorType = TensorType.FLOAT32) -> Any:
    """A field that holds an element type."""
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
    quantized_bias_type: TensorType = element_type()


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
    quantized_bias_type: TensorType = element_type()


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
    quantized_bias_type: TensorType = element_type()


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

    output_type: TensorType = element_type()


@dataclass(frozen=True, slots=True)
class ArgMinOptions:
    """Options of ARG_MIN."""

    output_type: TensorType = element_type()


@dataclass(frozen=True, slots=True)
class CastOptions:
    """Options of CAST: what the types of its tensors say too."""

    in_data_type: TensorType = element_type()
    out_data_type: TensorType = element_type()


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

OPTION_TABLES: dict[int, type[Any]] = {
    BUILTIN_OPTIONS.index(table.__name__): table
    for table in BuiltinOptions.__args__
    if table is not fb.OpaqueTable
}
"""The option tables that are declared, by their number in the union."""
