"""What is in an ExecuTorch file: a summary for programs that read JSON, a listing for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from darwinn_formats.executorch import schema, xnnpack
from darwinn_formats.executorch.container import ExtendedHeader
from darwinn_formats.executorch.loader import DEFAULT_DATA, DataFile, ProgramFile
from darwinn_formats.executorch.schema import (
    Bool,
    BoolList,
    Chain,
    DelegateCall,
    Double,
    DoubleList,
    ExecutionPlan,
    FrameList,
    FreeCall,
    Instruction,
    Int,
    IntList,
    JumpFalseCall,
    KernelCall,
    MoveCall,
    Null,
    OptionalTensorList,
    String,
    Tensor,
    TensorList,
    TensorShapeDynamism,
)

Summary = dict[str, Any]
"""JSON-able: texts, numbers, truth values, None, lists and dictionaries of these."""


def describe(file: ProgramFile) -> Summary:
    """Methods, delegates, data and test cases of a program, without the data; sizes in bytes."""
    program = file.program
    return {
        "file": file.file,
        "kind": file.kind,
        "sha256": file.sha256,
        "size": file.size,
        "version": program.version,
        "header": _header(file.header),
        "methods": [_method(file, plan) for plan in program.execution_plan],
        "segments": [{"offset": entry.offset, "size": entry.size} for entry in program.segments],
        "constants": _constants(program),
        "named_data": [
            {"key": entry.key, "segment": entry.segment_index} for entry in program.named_data
        ],
        "external": [describe_data(entry) for entry in file.external],
        **_absent(file),
        "test_suites": [
            {"method": suite.method_name, "cases": len(suite.test_cases)}
            for suite in (file.bundle.method_test_suites if file.bundle else ())
        ],
    }


def _absent(file: ProgramFile) -> Summary:
    """The external data that is not at hand, and the files that would be read."""
    names = file.absent
    if not names:
        return {}
    places = [Path(file.file).with_suffix(".ptd").name, DEFAULT_DATA]
    return {"absent": {"files": places, "tensors": list(names)}}


def describe_data(file: DataFile) -> Summary:
    """Names, types and sizes of external data."""
    return {
        "file": file.file,
        "kind": "data",
        "version": file.root.version,
        "header": _header(file.header),
        "named_data": [
            {
                "key": entry.key,
                "segment": entry.segment_index,
                "size": file.root.segments[entry.segment_index].size,
                "tensor": None
                if entry.tensor_layout is None
                else _type(entry.tensor_layout.scalar_type, entry.tensor_layout.sizes),
            }
            for entry in file.root.named_data
        ],
    }


def disassemble(file: ProgramFile) -> Iterator[str]:
    """Lines of a program: methods, values that are neither lists nor numbers, instructions."""
    for plan in file.program.execution_plan:
        yield f"method {plan.name}"
        for index, value in enumerate(plan.values):
            if isinstance(value.val, Tensor):
                yield f"  %{index} = {_tensor_line(value.val)}"
        yield f"  inputs {_arguments(plan, plan.inputs)}"
        yield f"  outputs {_arguments(plan, plan.outputs)}"
        for number, chain in enumerate(plan.chains):
            yield f"  chain {number}"
            yield from (f"    {line}" for line in _chain_lines(plan, chain))
        for number, delegate in enumerate(plan.delegates):
            graph = file.xnnpack(delegate)
            if graph is not None:
                yield f"  delegate {number} {delegate.id}"
                yield from (f"    {line}" for line in xnnpack.disassemble(graph))


def _chain_lines(plan: ExecutionPlan, chain: Chain) -> Iterator[str]:
    for position, instruction in enumerate(chain.instructions):
        location = chain.stacktrace and location_of(chain.stacktrace[position])
        yield f"{position:>5}  {instruction_text(plan, instruction)}" + (
            f"  # {location}" if location else ""
        )


def instruction_text(plan: ExecutionPlan, instruction: Instruction) -> str:
    """One instruction in one line."""
    step = instruction.instr_args
    match step:
        case KernelCall(index, arguments):
            return f"{plan.operators[index].full_name}({_arguments(plan, arguments)})"
        case DelegateCall(index, arguments):
            return f"delegate {plan.delegates[index].id}({_arguments(plan, arguments)})"
        case MoveCall(source, target):
            return f"move %{target} <- %{source}"
        case JumpFalseCall(condition, destination):
            return f"jump {destination} if not {_argument(plan, condition)}"
        case FreeCall(index):
            return f"free %{index}"
    raise AssertionError(step)


def location_of(frames: FrameList) -> str:
    """The innermost line of source of an instruction, or the empty text."""
    if not frames.items:
        return ""
    frame = frames.items[-1]
    return f"{frame.filename}:{frame.lineno} {frame.name}".strip()


def _arguments(plan: ExecutionPlan, indices: tuple[int, ...]) -> str:
    return ", ".join(_argument(plan, index) for index in indices)


def _argument(plan: ExecutionPlan, index: int) -> str:
    value = plan.values[index].val
    return _SPELLINGS[type(value)](plan, value, index)


_Spelling = Callable[[ExecutionPlan, Any, int], str]

_SPELLINGS: Mapping[type[Any], _Spelling] = {
    Null: lambda plan, value, index: "none",
    Int: lambda plan, value, index: str(value.int_val),
    Bool: lambda plan, value, index: str(value.bool_val).lower(),
    Double: lambda plan, value, index: repr(value.double_val),
    String: lambda plan, value, index: json.dumps(value.string_val),
    Tensor: lambda plan, value, index: f"%{index}",
    IntList: lambda plan, value, index: f"[{_arguments(plan, value.items)}]",
    TensorList: lambda plan, value, index: f"[{_arguments(plan, value.items)}]",
    OptionalTensorList: lambda plan, value, index: "[{}]".format(
        ", ".join("none" if item < 0 else _argument(plan, item) for item in value.items)
    ),
    DoubleList: lambda plan, value, index: str(list(value.items)),
    BoolList: lambda plan, value, index: str(list(value.items)).lower(),
}
"""How arguments are written, by the type of their values."""


def _tensor_line(tensor: Tensor) -> str:
    text = _type(tensor.scalar_type, tensor.sizes)
    if tuple(tensor.dim_order) != tuple(range(len(tensor.sizes))):
        text += f" order {tuple(tensor.dim_order)}"
    if tensor.shape_dynamism is not TensorShapeDynamism.STATIC:
        text += " bound"
    place = tensor.allocation_info
    if place is not None:
        text += f" at {place.memory_id}:{place.memory_offset}"
    if tensor.is_external:
        text += " external"
    elif tensor.data_buffer_idx:
        text += f" data {tensor.data_buffer_idx}"
    return f"{text} {json.dumps(tensor.name)}" if tensor.name else text


def _type(scalar_type: schema.ScalarType, sizes: tuple[int, ...]) -> str:
    return f"{scalar_type.name.lower()}{list(sizes)}"


def _header(header: ExtendedHeader | None) -> Summary | None:
    if header is None:
        return None
    return {
        "length": header.length,
        "program_size": header.program_size,
        "segment_base": header.segment_base,
        "segment_size": header.segment_size,
    }


def _constants(program: schema.Program) -> Summary:
    pieces = program.constant_segment
    inline = not program.has_constant_segment or pieces is None
    return {
        "where": "flatbuffer" if program.constant_buffer else "none" if inline else "segment",
        "count": len(program.constant_buffer) if inline or pieces is None else len(pieces.offsets),
        "initial": [len(entry.offsets) for entry in program.mutable_data_segments],
    }


def _method(file: ProgramFile, plan: ExecutionPlan) -> Summary:
    calls = Counter(
        plan.operators[step.op_index].full_name
        for chain in plan.chains
        for step in (instruction.instr_args for instruction in chain.instructions)
        if isinstance(step, KernelCall)
    )
    return {
        "name": plan.name,
        "inputs": [_port(plan, index) for index in plan.inputs],
        "outputs": [_port(plan, index) for index in plan.outputs],
        "values": len(plan.values),
        "instructions": [len(chain.instructions) for chain in plan.chains],
        "operators": dict(sorted(calls.items())),
        "delegates": [_delegate(file, delegate) for delegate in plan.delegates],
        "planned_memory": list(plan.non_const_buffer_sizes[1:]),
        "has_stack_traces": any(chain.stacktrace for chain in plan.chains),
    }


def _port(plan: ExecutionPlan, index: int) -> Summary:
    value = plan.values[index].val
    is_tensor = isinstance(value, Tensor)
    return {
        "value": index,
        "name": value.name if isinstance(value, Tensor) else "",
        "type": _tensor_line(value) if isinstance(value, Tensor) else type(value).__name__.lower(),
        "content": None if is_tensor else _argument(plan, index),
    }


def _delegate(file: ProgramFile, delegate: schema.BackendDelegate) -> Summary:
    compiled = file.darwinn(delegate)
    graph = file.xnnpack(delegate)
    place = delegate.processed
    return {
        "id": delegate.id,
        "size": len(file.payload(delegate)),
        "where": None if place is None else place.location.name.lower(),
        "compile_specs": {entry.key: len(entry.value) for entry in delegate.compile_specs},
        "executables": None
        if compiled is None
        else [executable.name for executable in compiled.executables],
        "graph": None if graph is None else xnnpack.describe(graph),
    }
