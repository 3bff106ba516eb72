"""What must hold in a program beyond its flatbuffer: indices, shapes, bounds of data.

Every function raises FormatError at the first fault and returns nothing. docs/formats-executorch.md
lists the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from darwinn_formats.errors import FormatError
from darwinn_formats.executorch import schema

T = TypeVar("T")

MAXIMUM_RANK = 16
MAXIMUM_NAME = 99
"""Bytes of the name of an operator, overload included."""
MAXIMUM_BYTES = 2**63 - 1
"""Bytes of a tensor."""

RESERVED = "is reserved"
"""How element types are refused that no program may hold."""
REFUSED_SIZES: Mapping[schema.TensorShapeDynamism, str] = {
    schema.TensorShapeDynamism.DYNAMIC_UNBOUND: "sizes without bound are not supported"
}
"""Kinds of sizes that are refused, with the reason."""


@dataclass(frozen=True, slots=True)
class Stores:
    """Where the data of tensors can be: what ``Program`` says, and the external data by name; not
    all of it has to be there if the program is ``incomplete``.
    """

    program: schema.Program
    external: Mapping[str, schema.ExternalData]
    incomplete: bool = False


def check_program(stores: Stores) -> None:
    """Check a whole program; segments were checked before."""
    program = stores.program
    constants = program.constant_segment
    if program.has_constant_segment and constants is not None:
        if program.constant_buffer:
            reason = "constants are both in a segment and in the flatbuffer"
            raise _fault("constant_buffer", reason, program.file_offset)
        try:
            _segment_of(program, constants)
        except FormatError as error:
            raise error.within("constant_segment") from None
    _each("mutable_data_segments", program.mutable_data_segments, partial(_segment_of, program))
    _each("named_data", program.named_data, partial(_segment_of, program))
    _each("execution_plan", program.execution_plan, partial(_check_plan, stores))


def check_data(root: schema.FlatTensor) -> None:
    """Check a file of external data; segments were checked before."""
    known: set[str] = set()

    def check(entry: schema.ExternalData) -> None:
        _segment_of(root, entry)
        if entry.key in known:
            raise _fault("key", f"{entry.key!r} is there twice", entry.file_offset)
        known.add(entry.key)
        layout = entry.tensor_layout
        if layout is None:
            return
        check_layout(layout, entry.file_offset)
        size = root.segments[entry.segment_index].size
        if layout.size_bytes > size:
            reason = f"a tensor of {layout.size_bytes} bytes in a segment of {size}"
            raise _fault("tensor_layout", reason, entry.file_offset)

    _each("named_data", root.named_data, check)


def check_bundle(bundle: schema.BundledProgram, program: schema.Program) -> None:
    """Check the stored tensors, and that the methods of the suites exist."""
    methods = {plan.name for plan in program.execution_plan}

    def check_suite(suite: schema.MethodTestSuite) -> None:
        if suite.method_name not in methods:
            reason = f"the program has no method {suite.method_name!r}"
            raise _fault("method_name", reason, suite.file_offset)
        _each("test_cases", suite.test_cases, check_case)

    def check_case(case: schema.MethodTestCase) -> None:
        _each("inputs", case.inputs, check_value)
        _each("expected_outputs", case.expected_outputs, check_value)

    def check_value(value: schema.BundledValue) -> None:
        if isinstance(value.val, schema.BundledTensor):
            _check_stored(value.val)

    _each("method_test_suites", bundle.method_test_suites, check_suite)


def _check_stored(tensor: schema.BundledTensor) -> None:
    order = tensor.dim_order or tuple(range(len(tensor.sizes)))
    layout = schema.TensorLayout(tensor.scalar_type, tensor.sizes, order)
    check_layout(layout, tensor.file_offset)
    if layout.size_bytes != len(tensor.data):
        reason = f"{len(tensor.data)} bytes for a tensor of {layout.size_bytes}"
        raise _fault("data", reason, tensor.file_offset)


def check_layout(layout: schema.Tensor | schema.TensorLayout, offset: int) -> None:
    """Element type, sizes and order of dimensions of a tensor at the byte ``offset``."""
    rank = len(layout.sizes)
    if layout.scalar_type not in schema.ITEM_SIZES:
        raise _fault("scalar_type", f"{layout.scalar_type.name} {RESERVED}", offset)
    if rank > MAXIMUM_RANK:
        raise _fault("sizes", f"{rank} dimensions are more than {MAXIMUM_RANK}", offset)
    if min(layout.sizes, default=0) < 0:
        raise _fault("sizes", f"a negative size in {layout.sizes}", offset)
    if sorted(layout.dim_order) != list(range(rank)):
        reason = f"{tuple(layout.dim_order)} is no order of {rank} dimensions"
        raise _fault("dim_order", reason, offset)
    if layout.size_bytes > MAXIMUM_BYTES:
        raise _fault("sizes", f"a tensor of {layout.size_bytes} bytes", offset)


# --- methods --------------------------------------------------------------------------------------


def _check_plan(stores: Stores, plan: schema.ExecutionPlan) -> None:
    count = len(plan.values)
    if not plan.chains:
        raise _fault("chains", "a method has at least one chain", plan.file_offset)
    if min(plan.non_const_buffer_sizes, default=0) < 0:
        raise _fault("non_const_buffer_sizes", "a negative size", plan.file_offset)
    _each("operators", plan.operators, _check_operator)
    _each("delegates", plan.delegates, partial(_check_delegate, stores.program))
    _each("values", plan.values, partial(_check_value, stores, plan))
    _check_indices("inputs", plan.inputs, count, plan.file_offset)
    _check_indices("outputs", plan.outputs, count, plan.file_offset)
    _each("chains", plan.chains, partial(_check_chain, plan))


def _check_operator(operator: schema.Operator) -> None:
    size = len(operator.full_name.encode())
    if size > MAXIMUM_NAME:
        reason = f"a name of {size} bytes is longer than {MAXIMUM_NAME}"
        raise _fault("name", reason, operator.file_offset)


def _check_delegate(program: schema.Program, delegate: schema.BackendDelegate) -> None:
    place = delegate.processed
    if place is None:
        raise _fault("processed", "the payload is absent", delegate.file_offset)
    inline = place.location is schema.DataLocation.INLINE
    stored: Sequence[Any] = program.backend_delegate_data if inline else program.segments
    if place.index >= len(stored):
        reason = f"payload {place.index} of {len(stored)} ({place.location.name})"
        raise _fault("processed.index", reason, delegate.file_offset)


def _check_value(stores: Stores, plan: schema.ExecutionPlan, value: schema.EValue) -> None:
    content = value.val
    if content is None:
        raise _fault("val", "a value has no type", value.file_offset)
    try:
        if isinstance(content, schema.Tensor):
            _check_tensor(stores, plan, content)
        elif type(content) in _LIST_ELEMENTS:
            _check_list(plan, content, value.file_offset)
    except FormatError as error:
        raise error.within("val") from None


_LIST_ELEMENTS: dict[type[Any], tuple[tuple[type[Any], ...], Container[int]]] = {
    schema.IntList: ((schema.Int,), ()),
    schema.TensorList: ((schema.Tensor,), ()),
    schema.OptionalTensorList: ((schema.Tensor, schema.Null), (-1,)),
}
"""Lists whose items are indices: types of the values, and numbers that are no indices."""


def _check_list(plan: schema.ExecutionPlan, content: Any, offset: int) -> None:
    kinds, special = _LIST_ELEMENTS[type(content)]
    for position, item in enumerate(content.items):
        if item in special:
            continue
        _check_indices("items", (item,), len(plan.values), offset)
        found = plan.values[item].val
        if not isinstance(found, kinds):
            reason = f"value {item} is {type(found).__name__}, not {kinds[0].__name__}"
            raise _fault(f"items[{position}]", reason, offset)


def _check_tensor(stores: Stores, plan: schema.ExecutionPlan, tensor: schema.Tensor) -> None:
    offset = tensor.file_offset
    if tensor.storage_offset:
        raise _fault("storage_offset", f"{tensor.storage_offset} is not supported", offset)
    if reason := REFUSED_SIZES.get(tensor.shape_dynamism):
        raise _fault("shape_dynamism", reason, offset)
    check_layout(tensor, offset)
    if tensor.allocation_info is not None:
        _check_allocation(plan, tensor, tensor.allocation_info)
    if tensor.is_external:
        _check_external(stores, tensor)
    elif tensor.data_buffer_idx:
        _check_data(stores.program, tensor)


def _check_allocation(
    plan: schema.ExecutionPlan, tensor: schema.Tensor, place: schema.AllocationDetails
) -> None:
    buffers = plan.non_const_buffer_sizes
    if not 0 < place.memory_id < len(buffers):
        reason = f"{place.memory_id} is not a buffer of 1 to {len(buffers) - 1}"
        raise _fault("allocation_info.memory_id", reason, tensor.file_offset)
    end = place.memory_offset + tensor.size_bytes
    if end > buffers[place.memory_id]:
        reason = f"the tensor ends at {end} of a buffer of {buffers[place.memory_id]} bytes"
        raise _fault("allocation_info.memory_offset", reason, tensor.file_offset)


def _check_external(stores: Stores, tensor: schema.Tensor) -> None:
    if not tensor.name:
        reason = "external data without a name"
        raise _fault("extra_tensor_info.fully_qualified_name", reason, tensor.file_offset)
    found = stores.external.get(tensor.name)
    layout = found and found.tensor_layout
    wanted = schema.TensorLayout(tensor.scalar_type, tensor.sizes, tensor.dim_order)
    if found is None and stores.incomplete:
        return
    if found is None:
        reason = f"no data file has {tensor.name!r}: --data FILE gives one (.ptd)"
    elif layout != wanted:
        reason = f"{tensor.name!r} is {layout} in the data file, not {wanted}"
    else:
        return
    raise _fault("extra_tensor_info", reason, tensor.file_offset)


def _check_data(program: schema.Program, tensor: schema.Tensor) -> None:
    """Bounds of the data of a constant, or of the initial data of a mutable tensor."""
    index, size = tensor.data_buffer_idx, tensor.size_bytes
    if tensor.allocation_info is None and not program.has_constant_segment:
        sizes = [len(buffer.storage) for buffer in program.constant_buffer]
        available = sizes[index] if index < len(sizes) else None
        count = len(sizes)
    else:
        pieces = _pieces_of(program, tensor)
        count = len(pieces.offsets)
        available = None
        if index < count:
            available = program.segments[pieces.segment_index].size - pieces.offsets[index]
    if available is None:
        raise _fault("data_buffer_idx", f"{index} is not below {count}", tensor.file_offset)
    if size > available:
        reason = f"{size} bytes of which {max(available, 0)} are there"
        raise _fault("data_buffer_idx", reason, tensor.file_offset)


def _pieces_of(program: schema.Program, tensor: schema.Tensor) -> schema.SubsegmentOffsets:
    """Where the data of a tensor is, which is in a segment."""
    if tensor.allocation_info is None:
        assert program.constant_segment is not None
        return program.constant_segment
    info = tensor.extra_tensor_info
    index = 0 if info is None else info.mutable_data_segments_idx
    if index >= len(program.mutable_data_segments):
        reason = f"{index} of {len(program.mutable_data_segments)} segments of initial data"
        raise _fault("extra_tensor_info.mutable_data_segments_idx", reason, tensor.file_offset)
    return program.mutable_data_segments[index]


# --- instructions ---------------------------------------------------------------------------------


def _check_chain(plan: schema.ExecutionPlan, chain: schema.Chain) -> None:
    if chain.stacktrace and len(chain.stacktrace) != len(chain.instructions):
        reason = f"{len(chain.stacktrace)} entries for {len(chain.instructions)} instructions"
        raise _fault("stacktrace", reason, chain.file_offset)
    _check_indices("inputs", chain.inputs, len(plan.values), chain.file_offset)
    _check_indices("outputs", chain.outputs, len(plan.values), chain.file_offset)
    _each("instructions", chain.instructions, partial(_check_instruction, plan, chain))


def _check_instruction(
    plan: schema.ExecutionPlan, chain: schema.Chain, instruction: schema.Instruction
) -> None:
    step = instruction.instr_args
    if step is None:
        raise _fault("instr_args", "an instruction has no arguments", instruction.file_offset)
    for name, count in _BOUNDS[type(step)](plan, chain):
        content = getattr(step, name)
        indices = content if isinstance(content, tuple) else (content,)
        _check_indices(f"instr_args.{name}", indices, count, instruction.file_offset)


_BOUNDS: dict[
    type[Any], Callable[[schema.ExecutionPlan, schema.Chain], Iterable[tuple[str, int]]]
] = {
    schema.KernelCall: lambda plan, chain: (
        ("op_index", len(plan.operators)),
        ("args", len(plan.values)),
    ),
    schema.DelegateCall: lambda plan, chain: (
        ("delegate_index", len(plan.delegates)),
        ("args", len(plan.values)),
    ),
    schema.MoveCall: lambda plan, chain: (
        ("move_from", len(plan.values)),
        ("move_to", len(plan.values)),
    ),
    schema.JumpFalseCall: lambda plan, chain: (
        ("cond_value_index", len(plan.values)),
        # A jump may lead behind the last instruction: the end of the chain.
        ("destination_instruction", len(chain.instructions) + 1),
    ),
    schema.FreeCall: lambda plan, chain: (("value_index", len(plan.values)),),
}
"""Fields of an instruction that are indices, and the number of what they choose from."""


# --- helpers --------------------------------------------------------------------------------------


def _each(name: str, entries: Iterable[T], check: Callable[[T], object]) -> None:
    index = -1
    try:
        for entry in entries:
            index += 1
            check(entry)
    except FormatError as error:
        raise error.within(f"{name}[{index}]") from None


def _segment_of(root: Any, entry: Any) -> None:
    if entry.segment_index >= len(root.segments):
        reason = f"segment {entry.segment_index} of {len(root.segments)}"
        raise _fault("segment_index", reason, entry.file_offset)


def _check_indices(name: str, indices: Iterable[int], count: int, offset: int) -> None:
    for index in indices:
        if not 0 <= index < count:
            raise _fault(name, f"index {index} is not in 0 to {count - 1}", offset)


def _fault(field: str, reason: str, offset: int) -> FormatError:
    return FormatError(field, reason, offset=offset)
