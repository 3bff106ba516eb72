"""Loading a model, and refusing what a verified flatbuffer can still get wrong."""

from __future__ import annotations

from darwinn_formats import flatbuffer as fb
from darwinn_formats.errors import FormatError
from darwinn_formats.files import Source, content_of, errors_name
from darwinn_formats.tflite.names import BuiltinOperator
from darwinn_formats.tflite.schema import Model, SubGraph


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
