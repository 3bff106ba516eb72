"""Operators whose tensors have to be of one element type, as the original runtime demands.

Element-wise arithmetic, reductions and concatenations convert; the operators here do not, and
refuse a program that an exporter has put together wrongly. Found by trying each operator in the
runtime, version 1.5.1, with an output and with each float tensor of another type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from darwinn_formats.executorch import schema

_BY_POSITION: Mapping[tuple[int, ...], Sequence[str]] = {
    (0,): (
        "_adaptive_avg_pool2d.out",
        "_log_softmax.out",
        "_pdist_forward.out",
        "_softmax.out",
        "_upsample_bilinear2d_aa.out",
        "alias_copy.out",
        "amax.out",
        "amin.out",
        "as_strided_copy.out",
        "avg_pool2d.out",
        "clone.out",
        "constant_pad_nd.out",
        "detach_copy.out",
        "diagonal_copy.out",
        "elu.out",
        "embedding.out",
        "expand_copy.out",
        "flip.out",
        "gather.out",
        "gelu.out",
        "hardtanh.out",
        "index.Tensor_out",
        "index_select.out",
        "leaky_relu.out",
        "lift_fresh_copy.out",
        "masked_fill.Scalar_out",
        "masked_select.out",
        "max.dim_max",
        "max_pool2d_with_indices.out",
        "min.dim_min",
        "narrow_copy.out",
        "native_dropout.out",
        "permute_copy.out",
        "pixel_shuffle.out",
        "pixel_unshuffle.out",
        "reflection_pad1d.out",
        "reflection_pad2d.out",
        "reflection_pad3d.out",
        "relu.out",
        "repeat.out",
        "replication_pad1d.out",
        "replication_pad2d.out",
        "replication_pad3d.out",
        "roll.out",
        "scatter.value_out",
        "select_copy.int_out",
        "slice_copy.Tensor_out",
        "topk.values",
        "upsample_bilinear2d.vec_out",
        "upsample_nearest2d.vec_out",
    ),
    (0, 1): (
        "_cdist_forward.out",
        "bmm.out",
        "convolution.out",
        "grid_sampler_2d.out",
        "max_pool2d_with_indices_backward.grad_input",
        "mm.out",
    ),
    (0, 1, 2): (
        "_native_batch_norm_legit.no_stats_out",
        "addmm.out",
        "convolution_backward.out",
        "linear.out",
        "native_group_norm.out",
    ),
    (0, 1, 2, 3, 4): (
        "_native_batch_norm_legit.out",
        "_native_batch_norm_legit_no_training.out",
    ),
    (0, 2): (
        "index_put.out",
        "masked_scatter.out",
    ),
    (0, 2, 3): ("native_layer_norm.out",),
    (0, 3): ("scatter.src_out", "scatter_add.out"),
    (1, 2): ("where.self_out",),
}

ONE_TYPE: Mapping[str, tuple[int, ...]] = {
    **{f"aten::{name}": positions for positions, names in _BY_POSITION.items() for name in names},
    **{f"quantized_decomposed::embedding_{bits}.out": (1, 2) for bits in ("byte", "4bit", "2bit")},
}
"""Positions of the arguments that are of the type of the first output, by operator."""


def mixed_types(
    operator: str, values: Sequence[schema.EValue], arguments: Sequence[int], outputs: int
) -> tuple[str, ...]:
    """Names of the types of a call that must not differ but do, else nothing.

    ``arguments`` are indices of ``values``; the output is the one at position ``outputs``.
    """
    if operator not in ONE_TYPE:
        return ()
    tensors = (values[arguments[place]].val for place in (*ONE_TYPE[operator], outputs))
    types = {tensor.scalar_type for tensor in tensors if isinstance(tensor, schema.Tensor)}
    return tuple(sorted(entry.name.lower() for entry in types)) if len(types) > 1 else ()
