"""Option tables of operators that references need, by the slots of schema version 3.

Tables are marked open: fields that are not declared are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

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

_T = TypeVar("_T")

OPTION_TABLES: dict[int, type[Any]] = {}
"""The option tables that are declared, by their number in the union."""


@dataclass_transform(frozen_default=True)
def _option_table(declared: type[_T]) -> type[_T]:
    """Make a dataclass of a table, and enter it by its name."""
    table = dataclass(frozen=True, slots=True)(declared)
    OPTION_TABLES[BUILTIN_OPTIONS.index(table.__name__)] = table
    return table


def _padding() -> Any:
    return fb.enumeration(Padding.SAME, fb.INT8)


def _activation() -> Any:
    return fb.enumeration(ActivationFunctionType.NONE, fb.INT8)


def element_type(default: TensorType = TensorType.FLOAT32) -> Any:
    """A field that holds an element type."""
    return fb.enumeration(default, fb.INT8)


@_option_table
class Conv2DOptions:
    """Options of CONV_2D."""

    padding: Padding = _padding()
    stride_w: int = fb.int32()
    stride_h: int = fb.int32()
    fused_activation_function: ActivationFunctionType = _activation()
    dilation_w_factor: int = fb.int32(1)
    dilation_h_factor: int = fb.int32(1)
    quantized_bias_type: TensorType = element_type()


@_option_table
class DepthwiseConv2DOptions:
    """Options of DEPTHWISE_CONV_2D."""

    padding: Padding = _padding()
    stride_w: int = fb.int32()
    stride_h: int = fb.int32()
    depth_multiplier: int = fb.int32()
    fused_activation_function: ActivationFunctionType = _activation()
    dilation_w_factor: int = fb.int32(1)
    dilation_h_factor: int = fb.int32(1)


@_option_table
class Pool2DOptions:
    """Options of AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D."""

    padding: Padding = _padding()
    stride_w: int = fb.int32()
    stride_h: int = fb.int32()
    filter_width: int = fb.int32()
    filter_height: int = fb.int32()
    fused_activation_function: ActivationFunctionType = _activation()


@fb.open_table
@_option_table
class FullyConnectedOptions:
    """Options of FULLY_CONNECTED."""

    fused_activation_function: ActivationFunctionType = _activation()
    weights_format: WeightsFormat = fb.enumeration(WeightsFormat.DEFAULT, fb.INT8)
    keep_num_dims: bool = fb.boolean()
    asymmetric_quantize_inputs: bool = fb.boolean()
    quantized_bias_type: TensorType = element_type()


@_option_table
class SoftmaxOptions:
    """Options of SOFTMAX."""

    beta: float = fb.float32()


@_option_table
class ConcatenationOptions:
    """Options of CONCATENATION."""

    axis: int = fb.int32()
    fused_activation_function: ActivationFunctionType = _activation()


@_option_table
class AddOptions:
    """Options of ADD."""

    fused_activation_function: ActivationFunctionType = _activation()
    pot_scale_int16: bool = fb.boolean(True)


@_option_table
class SubOptions:
    """Options of SUB."""

    fused_activation_function: ActivationFunctionType = _activation()
    pot_scale_int16: bool = fb.boolean(True)


@_option_table
class MulOptions:
    """Options of MUL."""

    fused_activation_function: ActivationFunctionType = _activation()


@_option_table
class DivOptions:
    """Options of DIV."""

    fused_activation_function: ActivationFunctionType = _activation()


@_option_table
class ReshapeOptions:
    """Options of RESHAPE."""

    new_shape: tuple[int, ...] = fb.vector(fb.INT32)


@_option_table
class SplitOptions:
    """Options of SPLIT."""

    num_splits: int = fb.int32()


@_option_table
class ResizeBilinearOptions:
    """Options of RESIZE_BILINEAR; slots 0 and 1 are deprecated sizes, given by an input now."""

    new_height: int = fb.int32()
    new_width: int = fb.int32()
    align_corners: bool = fb.boolean()
    half_pixel_centers: bool = fb.boolean()


@_option_table
class ResizeNearestNeighborOptions:
    """Options of RESIZE_NEAREST_NEIGHBOR."""

    align_corners: bool = fb.boolean()
    half_pixel_centers: bool = fb.boolean()


@_option_table
class ReducerOptions:
    """Options of MEAN and the other reductions."""

    keep_dims: bool = fb.boolean()


@_option_table
class SqueezeOptions:
    """Options of SQUEEZE."""

    squeeze_dims: tuple[int, ...] = fb.vector(fb.INT32)


@_option_table
class StridedSliceOptions:
    """Options of STRIDED_SLICE."""

    begin_mask: int = fb.int32()
    end_mask: int = fb.int32()
    ellipsis_mask: int = fb.int32()
    new_axis_mask: int = fb.int32()
    shrink_axis_mask: int = fb.int32()
    offset: bool = fb.boolean()


@_option_table
class TransposeConvOptions:
    """Options of TRANSPOSE_CONV."""

    padding: Padding = _padding()
    stride_w: int = fb.int32()
    stride_h: int = fb.int32()
    fused_activation_function: ActivationFunctionType = _activation()
    quantized_bias_type: TensorType = element_type()


@_option_table
class LeakyReluOptions:
    """Options of LEAKY_RELU."""

    alpha: float = fb.float32()


@_option_table
class BatchMatMulOptions:
    """Options of BATCH_MATMUL."""

    adj_x: bool = fb.boolean()
    adj_y: bool = fb.boolean()
    asymmetric_quantize_inputs: bool = fb.boolean()


@_option_table
class PackOptions:
    """Options of PACK."""

    values_count: int = fb.int32()
    axis: int = fb.int32()


@_option_table
class ArgMaxOptions:
    """Options of ARG_MAX."""

    output_type: TensorType = element_type()


@_option_table
class ArgMinOptions:
    """Options of ARG_MIN."""

    output_type: TensorType = element_type()


@_option_table
class CastOptions:
    """Options of CAST: what the types of its tensors say too."""

    in_data_type: TensorType = element_type()
    out_data_type: TensorType = element_type()


@_option_table
class ShapeOptions:
    """Options of SHAPE: what the type of its result says too."""

    out_type: TensorType = element_type()


@_option_table
class GatherOptions:
    """Options of GATHER."""

    axis: int = fb.int32()
    batch_dims: int = fb.int32()


@_option_table
class UnpackOptions:
    """Options of UNPACK."""

    num: int = fb.int32()
    axis: int = fb.int32()


@_option_table
class SplitVOptions:
    """Options of SPLIT_V."""

    num_splits: int = fb.int32()


@_option_table
class SpaceToDepthOptions:
    """Options of SPACE_TO_DEPTH."""

    block_size: int = fb.int32()


@_option_table
class DepthToSpaceOptions:
    """Options of DEPTH_TO_SPACE."""

    block_size: int = fb.int32()


@_option_table
class MirrorPadOptions:
    """Options of MIRROR_PAD."""

    mode: MirrorPadMode = fb.enumeration(MirrorPadMode.REFLECT, fb.INT8)


@_option_table
class L2NormOptions:
    """Options of L2_NORMALIZATION."""

    fused_activation_function: ActivationFunctionType = _activation()


@_option_table
class LSTMOptions:
    """Options of LSTM."""

    fused_activation_function: ActivationFunctionType = _activation()
    cell_clip: float = fb.float32()
    proj_clip: float = fb.float32()
    kernel_type: LSTMKernelType = fb.enumeration(LSTMKernelType.FULL, fb.INT8)
    asymmetric_quantize_inputs: bool = fb.boolean()


@_option_table
class UnidirectionalSequenceLSTMOptions:
    """Options of UNIDIRECTIONAL_SEQUENCE_LSTM."""

    fused_activation_function: ActivationFunctionType = _activation()
    cell_clip: float = fb.float32()
    proj_clip: float = fb.float32()
    time_major: bool = fb.boolean()
    asymmetric_quantize_inputs: bool = fb.boolean()
    diagonal_recurrent_tensors: bool = fb.boolean()


def _without_fields(name: str) -> type[Any]:
    return _option_table(type(name, (), {}))


BatchToSpaceNDOptions = _without_fields("BatchToSpaceNDOptions")
DequantizeOptions = _without_fields("DequantizeOptions")
ExpandDimsOptions = _without_fields("ExpandDimsOptions")
FloorDivOptions = _without_fields("FloorDivOptions")
FloorModOptions = _without_fields("FloorModOptions")
GatherNdOptions = _without_fields("GatherNdOptions")
HardSwishOptions = _without_fields("HardSwishOptions")
MaximumMinimumOptions = _without_fields("MaximumMinimumOptions")
PadOptions = _without_fields("PadOptions")
PadV2Options = _without_fields("PadV2Options")
QuantizeOptions = _without_fields("QuantizeOptions")
SliceOptions = _without_fields("SliceOptions")
SpaceToBatchNDOptions = _without_fields("SpaceToBatchNDOptions")
SquaredDifferenceOptions = _without_fields("SquaredDifferenceOptions")
TileOptions = _without_fields("TileOptions")
TopKV2Options = _without_fields("TopKV2Options")
TransposeOptions = _without_fields("TransposeOptions")
