"""What a program file consists of, in figures that two files can be compared by.

One shape for all formats: operators, what executes them, sizes, planned memory and constants.
Nothing is executed, so foreign delegates and machine code are counted as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from darwinn_formats import executorch, iree, tfrt
from darwinn_formats.executorch import schema, xnnpack
from darwinn_reference.executorch.reference import ports_of
from darwinn_reference.iree.interface import signature_of

_DISPATCH = re.compile(rb"[\w$]+_dispatch_\d+_?([\w$]*)\Z")
"""Name of an entry point: function, number, and what it computes."""
_MOST_NAME = 256


@dataclass(frozen=True)
class ConstantFacts:
    """A constant: what it is called, type and sizes in words, and its bytes (None if absent)."""

    name: str
    kind: str
    data: memoryview | None = field(repr=False)


@dataclass(frozen=True)
class ProgramFacts:
    """What a program consists of.

    Attributes:
        functions: what can be called, with inputs and outputs in words.
        operators: how often each operator stands in the program, those within delegates included.
        delegates: how often each delegate, or format of executables, is there.
        delegated: operators that delegates or executables execute.
        portable: operators that are left to the kernels of the runtime.
        sizes: bytes by part of the file.
        memory: bytes that the program plans for its values.
        constants: in the order of the file.
    """

    functions: Mapping[str, str]
    operators: Mapping[str, int]
    delegates: Mapping[str, int]
    delegated: int
    portable: int
    sizes: Mapping[str, int]
    memory: Mapping[str, int]
    constants: Sequence[ConstantFacts] = field(repr=False)


PROGRAMS = (executorch.ProgramFile, iree.VmfbFile, tfrt.BefFile)
"""What a loaded file is if it is a program, and not data of one."""


def facts_of(
    file: executorch.ProgramFile | iree.VmfbFile | tfrt.BefFile, size: int
) -> ProgramFacts:
    """The facts of a loaded program, of a file of ``size`` bytes."""
    match file:
        case executorch.ProgramFile():
            return _of_executorch(file, size)
        case iree.VmfbFile():
            return _of_iree(file, size)
    return _of_bef(file, size)


def _signature(name: str, inputs: Sequence[object], outputs: Sequence[object]) -> dict[str, str]:
    found = {f"{name}, input {at}": str(port) for at, port in enumerate(inputs)}
    return found | {f"{name}, output {at}": str(port) for at, port in enumerate(outputs)}


# --- ExecuTorch -----------------------------------------------------------------------------------


def _of_executorch(file: executorch.ProgramFile, size: int) -> ProgramFacts:
    functions: dict[str, str] = {}
    memory: dict[str, int] = {}
    kernels: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    delegates: Counter[str] = Counter()
    constants = list(_constants(file))
    for plan in file.program.execution_plan:
        functions |= _signature(plan.name, *ports_of(file, plan.name))
        for number, planned in enumerate(plan.non_const_buffer_sizes[1:], 1):
            memory[f"{plan.name}, buffer {number}"] = planned
        kernels.update(_kernels(plan))
        for delegate in plan.delegates:
            delegates[delegate.id] += 1
            graph = file.xnnpack(delegate) if _is_whole(file) else None
            if graph is not None:
                nodes.update(type(each.operation).__name__ for each in graph.root.xnodes)
                constants += _graph_constants(graph)
    payloads = sum(
        len(file.payload(delegate))
        for plan in file.program.execution_plan
        for delegate in plan.delegates
    )
    sizes = {
        "file": size,
        "delegates": payloads,
        "constants": sum(len(each.data or b"") for each in constants),
        "segments": sum(map(len, file.segments)),
    }
    return ProgramFacts(
        functions,
        dict(kernels + nodes),
        dict(delegates),
        nodes.total() or delegates.total(),
        kernels.total(),
        sizes,
        memory,
        constants,
    )


def _graph_constants(graph: xnnpack.XnnpackGraph) -> Iterator[ConstantFacts]:
    """Constants of a graph of XNNPACK."""
    for value in graph.root.xvalues:
        data = graph.data(value)
        if data is not None:
            sizes = "x".join(map(str, value.tensor.dims)) or "scalar"
            yield ConstantFacts("", f"{value.tensor.datatype.name.lower()} {sizes}", data)


def _is_whole(file: executorch.ProgramFile) -> bool:
    """Whether the data of delegates is at hand as far as the program tells."""
    return not file.absent


def _kernels(plan: schema.ExecutionPlan) -> Iterator[str]:
    for chain in plan.chains:
        for instruction in chain.instructions:
            if isinstance(instruction.instr_args, schema.KernelCall):
                yield plan.operators[instruction.instr_args.op_index].full_name


def _constants(file: executorch.ProgramFile) -> Iterator[ConstantFacts]:
    absent, seen = set(file.absent), set[tuple[object, ...]]()
    for plan in file.program.execution_plan:
        for value in plan.values:
            tensor = value.val
            if not isinstance(tensor, schema.Tensor):
                continue
            stored = tensor.is_external or tensor.data_buffer_idx
            key = (tensor.name, tensor.data_buffer_idx, tensor.allocation_info is None)
            if not stored or (plan.name != file.methods[0] and key in seen):
                continue
            seen.add(key)
            sizes = "x".join(map(str, tensor.sizes)) or "scalar"
            kind = f"{tensor.scalar_type.name.lower()} {sizes}"
            data = None if tensor.name in absent else file.data(tensor)
            yield ConstantFacts(tensor.name, kind, data)


# --- IREE -----------------------------------------------------------------------------------------


def _of_iree(file: iree.VmfbFile, size: int) -> ProgramFacts:
    module = file.module
    functions: dict[str, str] = {}
    for name, function in module.exports.items():
        if not name.startswith("__"):
            signature = signature_of(module, function)
            sides = (signature.arguments, signature.results)
            functions |= _signature(
                name, *([declared.port for _, declared in side] for side in sides)
            )
    executables = [
        segment.data
        for ordinal, segment in enumerate(module.rodata)
        if ordinal in module.nested or iree.read_elf(segment.data) is not None
    ]
    entries = Counter(_dispatches(module))
    state = module.definition.module_state
    constants = list(_segments(module))
    return ProgramFacts(
        functions,
        {f"dispatch {name}" if name else "dispatch": count for name, count in entries.items()},
        dict(Counter(_formats(module))),
        entries.total(),
        0,
        {
            "file": size,
            "bytecode": len(module.definition.bytecode_data or b""),
            "executables": sum(map(len, executables)),
            "constants": sum(len(each.data or b"") for each in constants),
        },
        {"globals": 0 if state is None else state.global_bytes_capacity},
        constants,
    )


def _names(module: iree.Module) -> Iterator[bytes]:
    """Short texts among the data of a module."""
    for segment in module.rodata:
        if 0 < len(segment) <= _MOST_NAME:
            yield bytes(segment.data)


def _dispatches(module: iree.Module) -> Iterator[str]:
    """What each entry point of the executables computes, as the compiler calls it."""
    nested = [name.encode() for each in module.nested.values() for name in each.exports]
    texts = [text for text in _names(module) if _DISPATCH.fullmatch(text)]
    for text in nested or texts:
        match = _DISPATCH.fullmatch(text)
        yield match[1].decode() if match else text.decode("utf-8", "replace")


def _formats(module: iree.Module) -> Iterator[str]:
    """Formats of the executables that the module asks for."""
    texts = [text.decode("ascii", "replace") for text in _names(module)]
    known = [text for text in texts if text.startswith(("embedded-elf-", "system-", "vmvx-"))]
    yield from known or ["vmvx-bytecode-fb"] * len(module.nested)


def _segments(module: iree.Module) -> Iterator[ConstantFacts]:
    """Data that is neither an executable nor a short text."""
    for ordinal, segment in enumerate(module.rodata):
        is_code = ordinal in module.nested or iree.read_elf(segment.data) is not None
        is_text = len(segment) <= _MOST_NAME and bytes(segment.data).isascii()
        if not is_code and not is_text:
            yield ConstantFacts("", f"{len(segment)} bytes", segment.data)


# --- TFRT -----------------------------------------------------------------------------------------


def _of_bef(file: tfrt.BefFile, size: int) -> ProgramFacts:
    functions: dict[str, str] = {}
    kernels: Counter[str] = Counter()
    natives = 0
    for function in file.functions:
        if function.name:
            functions |= _signature(function.name, function.argument_types, function.result_types)
        natives += function.body is None
        if function.body is not None:
            kernels.update(kernel.name for kernel in function.body.kernels)
    constants = [
        ConstantFacts("", type(each).__name__, memoryview(repr(each).encode()))
        for each in file.attributes
    ]
    return ProgramFacts(
        functions,
        dict(kernels),
        {"native functions": natives} if natives else {},
        0,
        kernels.total(),
        {"file": size},
        {},
        constants,
    )
