"""What must hold in a graph beyond its flatbuffer: ids, sizes, quantisation, amounts of data.

Every function raises FormatError at the first fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from darwinn_formats.errors import FormatError
from darwinn_formats.executorch.xnnpack import schema
from darwinn_formats.executorch.xnnpack.schema import NO_VALUE, Datatype

_T = TypeVar("_T")

MAXIMUM_RANK = 6
"""Dimensions of a value, as XNNPACK bounds them."""
_MAXIMUM_ELEMENTS = 2**48

_BY_CHANNEL = {Datatype.QCINT8, Datatype.QCINT32, Datatype.QCINT4}
_BY_TENSOR = {Datatype.QINT8, Datatype.QUINT8, Datatype.QINT32}
QUANTISED: Mapping[Datatype, type] = {
    **dict.fromkeys(_BY_TENSOR, schema.PerTensorQuant),
    **dict.fromkeys(_BY_CHANNEL, schema.PerChannelQuant),
    Datatype.QDINT8: schema.PerTokenDynamicQuant,
    Datatype.QBINT4: schema.PerChannelGroupQuant,
}
"""How values of a quantised type are quantised."""

_ZERO_POINTS = {Datatype.QINT8: (-128, 127), Datatype.QUINT8: (0, 255), Datatype.QINT32: (0, 0)}


def check_graph(root: schema.Graph, sizes: Sequence[int]) -> dict[int, schema.Value]:
    """Check a graph; ``sizes`` are the bytes of its constant data, by index.

    Returns the values by ``id_out``.
    """
    values: dict[int, schema.Value] = {}

    def check_value(value: schema.Value) -> None:
        if value.xvalue_union is None:
            raise FormatError("xvalue_union", "the value is absent", offset=value.file_offset)
        tensor = value.tensor
        _check_tensor(root, tensor, sizes)
        _check_quantisation(value, sizes)
        if tensor.id_out in values or tensor.id_out == NO_VALUE:
            raise _fault("id_out", f"{tensor.id_out} is taken", tensor.file_offset)
        values[tensor.id_out] = value

    _each("xvalues", root.xvalues, check_value)
    _each("xnodes", root.xnodes, lambda node: _check_node(node, values))
    _check_order(root, values)
    return values


def _check_tensor(root: schema.Graph, tensor: schema.TensorValue, sizes: Sequence[int]) -> None:
    offset = tensor.file_offset
    if tensor.datatype is Datatype.INVALID:
        raise _fault("datatype", "values have no elements of the invalid type", offset)
    if tensor.num_dims != len(tensor.dims):
        raise _fault("dims", f"{len(tensor.dims)} of {tensor.num_dims}", offset)
    if tensor.num_dims > MAXIMUM_RANK:
        raise _fault("num_dims", f"{tensor.num_dims} are more than {MAXIMUM_RANK}", offset)
    if math.prod(tensor.dims) > _MAXIMUM_ELEMENTS:
        raise _fault("dims", "a value of more elements than memory can have", offset)
    if tensor.external_id != NO_VALUE and tensor.external_id >= root.num_externs:
        reason = f"{tensor.external_id} of {root.num_externs} external values"
        raise _fault("external_id", reason, offset)
    index = tensor.constant_buffer_idx
    if not index:
        return
    if index >= len(sizes):
        raise _fault("constant_buffer_idx", f"{index} of {len(sizes)} constants", offset)
    bits = schema.ELEMENT_BITS.get(tensor.datatype)
    if bits is None:
        return
    # Rows of half bytes start at a byte.
    *rows, row = tensor.dims or (1,)
    wanted = math.prod(rows) * -(-row * bits // 8)
    if wanted > sizes[index]:
        reason = f"constant {index} has {sizes[index]} bytes, the value {wanted}"
        raise _fault("constant_buffer_idx", reason, offset)


def _check_quantisation(value: schema.Value, sizes: Sequence[int]) -> None:
    tensor, quantisation = value.tensor, value.quantisation
    wanted = QUANTISED.get(tensor.datatype)
    if wanted is None or (quantisation is None and tensor.datatype is Datatype.QINT32):
        return
    if quantisation is None or not isinstance(quantisation, wanted):
        found = "nothing" if quantisation is None else type(quantisation).__name__
        reason = f"{tensor.datatype.name.lower()} goes with {wanted.__name__}, not {found}"
        raise _fault("quant_params", reason, value.file_offset)
    offset = quantisation.file_offset
    match quantisation:
        case schema.PerTensorQuant(scale, zero_point):
            _check_scales([scale], 1, offset)
            low, high = _ZERO_POINTS[tensor.datatype]
            if not low <= zero_point <= high:
                reason = f"{zero_point} is not within {low} to {high}"
                raise _fault("quant_params.zero_point", reason, offset)
        case schema.PerChannelQuant():
            _check_dimension("channel_dim", quantisation.channel_dim, tensor, offset)
            count = tensor.dims[quantisation.channel_dim]
            if quantisation.scale_buffer_idx:
                _check_stored(quantisation, count, 4, sizes)
            else:
                _check_scales(quantisation.scale, count, offset)
        case schema.PerTokenDynamicQuant(dimensions):
            if not 0 < dimensions <= tensor.num_dims:
                reason = f"{dimensions} of {tensor.num_dims} dimensions"
                raise _fault("quant_params.num_nonbatch_dims", reason, offset)
        case schema.PerChannelGroupQuant():
            _check_groups(quantisation, tensor, sizes)


def _check_groups(
    quantisation: schema.PerChannelGroupQuant, tensor: schema.TensorValue, sizes: Sequence[int]
) -> None:
    offset, size = quantisation.file_offset, quantisation.group_size
    if tensor.num_dims != 2:
        raise _fault("quant_params", f"groups in {tensor.num_dims} dimensions", offset)
    if size <= 0 or tensor.dims[1] % size:
        reason = f"{tensor.dims[1]} inputs in groups of {size}"
        raise _fault("quant_params.group_size", reason, offset)
    count = math.prod(tensor.dims) // size
    if quantisation.scale_buffer_idx:
        _check_stored(quantisation, count, 2, sizes)
    elif quantisation.scale_bf16:
        if len(quantisation.scale_bf16) != count:
            reason = f"{len(quantisation.scale_bf16)} scales, {count} needed"
            raise _fault("quant_params.scale_bf16", reason, offset)
    else:
        _check_scales(quantisation.scale, count, offset)


def _check_scales(scales: Sequence[float], count: int, offset: int) -> None:
    if len(scales) != count:
        raise _fault("quant_params.scale", f"{len(scales)} scales, {count} needed", offset)
    for scale in scales:
        if not (math.isfinite(scale) and scale > 0):
            raise _fault("quant_params.scale", f"{scale} is no scale", offset)


def _check_stored(
    quantisation: schema.PerChannelQuant | schema.PerChannelGroupQuant,
    count: int,
    item: int,
    sizes: Sequence[int],
) -> None:
    index, offset = quantisation.scale_buffer_idx, quantisation.file_offset
    if index >= len(sizes):
        reason = f"{index} of {len(sizes)} constants"
        raise _fault("quant_params.scale_buffer_idx", reason, offset)
    if quantisation.num_scales != count or sizes[index] < count * item:
        reason = f"{quantisation.num_scales} in {sizes[index]} bytes, {count} needed"
        raise _fault("quant_params.num_scales", reason, offset)


def _check_dimension(name: str, dimension: int, tensor: schema.TensorValue, offset: int) -> None:
    if not 0 <= dimension < tensor.num_dims:
        reason = f"{dimension} of {tensor.num_dims} dimensions"
        raise _fault(f"quant_params.{name}", reason, offset)


def _check_node(node: schema.Node, values: Mapping[int, schema.Value]) -> None:
    if node.xnode_union is None:
        raise FormatError("xnode_union", "the node is absent", offset=node.file_offset)
    operation = node.operation
    inputs, outputs = schema.value_ids(operation)
    for name, index in (*inputs.items(), *outputs.items()):
        if index in values or (name == "bias_id" and index == NO_VALUE):
            continue
        raise FormatError(f"{node.name}.{name}", f"no value {index}", offset=node.file_offset)
    for name, index in outputs.items():
        if values[index].tensor.constant_buffer_idx:
            reason = f"value {index} is constant"
            raise FormatError(f"{node.name}.{name}", reason, offset=node.file_offset)
    fault = _misshapen(operation)
    if fault:
        name, _, reason = fault.partition(": ")
        raise FormatError(f"{node.name}.{name}", reason, offset=node.file_offset)


def _misshapen(operation: schema.Operation) -> str:
    """The field of an operation whose sizes do not fit, with the reason, or the empty text."""
    match operation:
        case schema.StaticTranspose(count, perm) if sorted(perm) != list(range(count)):
            return f"perm: {list(perm)} does not order {count} dimensions"
        case schema.StaticReshape(count, shape) if len(shape) != count or count > MAXIMUM_RANK:
            return f"new_shape: {len(shape)} sizes of {count}"
        case schema.StaticSlice(count, offsets, lengths):
            if not count == len(offsets) == len(lengths):
                return f"offsets: {len(offsets)} and {len(lengths)} sizes of {count}"
        case schema.StaticConstantPad(before, after) if len(before) != len(after):
            return f"pre_paddings: {len(before)} margins, and {len(after)} behind"
    return ""


def _check_order(root: schema.Graph, values: Mapping[int, schema.Value]) -> None:
    """Nodes stand in the order in which they are executed: each input is there before."""
    known = {
        index
        for index, value in values.items()
        if value.tensor.constant_buffer_idx or value.tensor.flags & schema.EXTERNAL_INPUT
    }
    for number, node in enumerate(root.xnodes):
        inputs, outputs = schema.value_ids(node.operation)
        for name, index in inputs.items():
            if index not in known and index != NO_VALUE:
                reason = f"value {index} is not there when it is read"
                raise FormatError(
                    f"xnodes[{number}].{node.name}.{name}", reason, offset=node.file_offset
                )
        known.update(outputs.values())
    for index, value in values.items():
        if value.tensor.flags & schema.EXTERNAL_OUTPUT and index not in known:
            reason = f"the output {index} is never written"
            raise FormatError("output_ids", reason, offset=value.file_offset)


def _fault(field: str, reason: str, offset: int) -> FormatError:
    return FormatError(field, reason, offset=offset)


def _each(name: str, entries: Iterable[_T], check: Callable[[_T], None]) -> None:
    for index, entry in enumerate(entries):
        try:
            check(entry)
        except FormatError as error:
            raise error.within(f"{name}[{index}]") from None
