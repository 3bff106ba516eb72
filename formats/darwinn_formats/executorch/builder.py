"""Make programs: methods with their values and instructions, constants, and a simple memory plan.

    program = ProgramBuilder()
    method = program.method("forward")
    x = method.input(np.float32, (2, 3))
    y = method.tensor(np.float32, (2, 3))
    method.call("aten::add.out", x, program.constant(ones), 1, outputs=[y])
    method.output(y)
    data = program.build()

Every planned tensor gets bytes of its own unless ``at`` says where it lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from darwinn_formats.executorch import schema
from darwinn_formats.executorch.loader import dump

_SCALAR_TYPES = {dtype: scalar_type for scalar_type, dtype in schema.DTYPES.items()}


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a method, by its index."""

    index: int


@dataclass(frozen=True, slots=True)
class Constant:
    """Constant data of a program, by its index; a value of each method that uses it."""

    index: int
    array: NDArray[Any] = field(compare=False)


Argument = Value | Constant | bool | int | float | str | None | Sequence[Any]
"""What a call takes: numbers and texts become values, sequences lists of integers or tensors."""


def scalar_type_of(dtype: DTypeLike) -> schema.ScalarType:
    """Element type of a NumPy type; KeyError if there is none."""
    return _SCALAR_TYPES[np.dtype(dtype).newbyteorder("<")]


class MethodBuilder:
    """One method; made by ``ProgramBuilder.method``."""

    def __init__(self, program: ProgramBuilder, name: str) -> None:
        self.program = program
        self.name = name
        self.values: list[schema.KernelType] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.operators: list[str] = []
        self.instructions: list[schema.InstructionArguments] = []
        self.delegates: list[schema.BackendDelegate] = []
        self.planned_bytes = 0

    def value(self, content: schema.KernelType) -> Value:
        """Add a value as it is."""
        self.values.append(content)
        return Value(len(self.values) - 1)

    def tensor(
        self,
        dtype: DTypeLike,
        sizes: Sequence[int],
        *,
        dim_order: Sequence[int] | None = None,
        is_bound: bool = False,
        is_planned: bool = True,
        at: int | None = None,
        initial: int = 0,
        name: str = "",
    ) -> Value:
        """Add a tensor; ``is_bound``: the sizes are a capacity; ``initial``: data at the start."""
        order = tuple(range(len(sizes))) if dim_order is None else tuple(dim_order)
        dynamism = schema.TensorShapeDynamism
        tensor = schema.Tensor(
            scalar_type_of(dtype),
            sizes=tuple(sizes),
            dim_order=order,
            data_buffer_idx=initial,
            shape_dynamism=dynamism.DYNAMIC_BOUND if is_bound else dynamism.STATIC,
            allocation_info=self._place(dtype, sizes, at) if is_planned else None,
            extra_tensor_info=schema.ExtraTensorInfo(fully_qualified_name=name) if name else None,
        )
        return self.value(tensor)

    def input(self, dtype: DTypeLike, sizes: Sequence[int], **options: Any) -> Value:
        """Add a tensor that is an input; options as for ``tensor``."""
        added = self.tensor(dtype, sizes, **options)
        self.inputs.append(added.index)
        return added

    def output(self, *values: Value) -> None:
        """Let values be the next outputs."""
        self.outputs += [entry.index for entry in values]

    def state(self, array: NDArray[Any], name: str = "") -> Value:
        """Add a tensor with an initial value that lasts from call to call."""
        return self.tensor(
            array.dtype, array.shape, initial=self.program.initial_data(array), name=name
        )

    def call(
        self,
        operator: str,
        *arguments: Argument,
        outputs: Sequence[Value] = (),
        returns: Value | None = None,
    ) -> None:
        """Call an operator with outputs; what it returns are these, unless ``returns`` is given."""
        indices = [self.argument(entry).index for entry in arguments]
        indices += [entry.index for entry in outputs]
        if returns is not None:
            indices.append(returns.index)
        elif len(outputs) == 1:
            indices.append(outputs[0].index)
        elif outputs:
            indices.append(self.tensors(outputs).index)
        if operator not in self.operators:
            self.operators.append(operator)
        step = schema.KernelCall(self.operators.index(operator), tuple(indices))
        self.instructions.append(step)

    def step(self, instruction: schema.InstructionArguments) -> None:
        """Add an instruction as it is."""
        self.instructions.append(instruction)

    def tensors(self, entries: Sequence[Value]) -> Value:
        """Add a list of tensors."""
        return self.value(schema.TensorList(tuple(entry.index for entry in entries)))

    def argument(self, content: Argument) -> Value:
        """The value that stands for an argument."""
        match content:
            case Value():
                return content
            case Constant():
                return self._constant(content)
            case None:
                return self.value(schema.Null())
            case bool():
                return self.value(schema.Bool(content))
            case int():
                return self.value(schema.Int(content))
            case float():
                return self.value(schema.Double(content))
            case str():
                return self.value(schema.String(content))
        return self._list(content)

    def plan(self) -> schema.ExecutionPlan:
        """The method as the schema has it."""
        instructions = tuple(map(schema.Instruction, self.instructions))
        operators = [name.rpartition(".") for name in self.operators]
        return schema.ExecutionPlan(
            name=self.name,
            values=tuple(map(schema.EValue, self.values)),
            inputs=tuple(self.inputs),
            outputs=tuple(self.outputs),
            chains=(schema.Chain(instructions=instructions),),
            operators=tuple(
                schema.Operator(name, overload) if name else schema.Operator(overload)
                for name, _, overload in operators
            ),
            delegates=tuple(self.delegates),
            non_const_buffer_sizes=(0, self.planned_bytes),
        )

    def _place(
        self, dtype: DTypeLike, sizes: Sequence[int], at: int | None
    ) -> schema.AllocationDetails:
        size = int(np.prod(sizes, dtype=np.int64)) * np.dtype(dtype).itemsize
        start = _aligned(self.planned_bytes) if at is None else at
        self.planned_bytes = max(self.planned_bytes, start + size)
        return schema.AllocationDetails(1, start & 0xFFFFFFFF, start >> 32)

    def _constant(self, constant: Constant) -> Value:
        array = constant.array
        return self.tensor(array.dtype, array.shape, is_planned=False, initial=constant.index)

    def _list(self, content: Sequence[Any]) -> Value:
        entries = list(content)
        if all(isinstance(entry, int) and not isinstance(entry, bool) for entry in entries):
            held = tuple(self.argument(entry).index for entry in entries)
            return self.value(schema.IntList(held))
        if all(isinstance(entry, float) for entry in entries):
            return self.value(schema.DoubleList(tuple(entries)))
        if all(isinstance(entry, bool) for entry in entries):
            return self.value(schema.BoolList(tuple(entries)))
        indices = tuple(-1 if entry is None else self.argument(entry).index for entry in entries)
        kind = schema.OptionalTensorList if None in entries else schema.TensorList
        return self.value(kind(indices))


class ProgramBuilder:
    """A program with one or more methods."""

    def __init__(self) -> None:
        self.methods: list[MethodBuilder] = []
        self._constants: list[bytes] = [b""]
        self._initial: list[bytes] = [b""]

    def method(self, name: str = "forward") -> MethodBuilder:
        """Add a method."""
        self.methods.append(MethodBuilder(self, name))
        return self.methods[-1]

    def constant(self, array: NDArray[Any]) -> Constant:
        """Add constant data."""
        self._constants.append(np.ascontiguousarray(array).tobytes())
        return Constant(len(self._constants) - 1, array)

    def initial_data(self, array: NDArray[Any]) -> int:
        """Add initial data of a mutable tensor; returns its index."""
        self._initial.append(np.ascontiguousarray(array).tobytes())
        return len(self._initial) - 1

    def program(self) -> tuple[schema.Program, tuple[bytes, ...]]:
        """The program as the schema has it, and its segments."""
        constants, places = _pack(self._constants)
        initial, initial_places = _pack(self._initial)
        mutable = (schema.SubsegmentOffsets(1, initial_places),) if len(initial_places) > 1 else ()
        program = schema.Program(
            execution_plan=tuple(method.plan() for method in self.methods),
            segments=(schema.DataSegment(), *(schema.DataSegment() for _ in mutable)),
            constant_segment=schema.SubsegmentOffsets(0, places),
            mutable_data_segments=mutable,
        )
        return program, (constants, initial) if mutable else (constants,)

    def build(self) -> bytes:
        """The file of the program; FormatError for a value that does not fit its field."""
        return dump(*self.program())


def _pack(pieces: Sequence[bytes]) -> tuple[bytes, tuple[int, ...]]:
    """Pieces one after another, aligned, and where each starts."""
    packed, places = bytearray(), []
    for piece in pieces:
        packed += bytes(_aligned(len(packed)) - len(packed))
        places.append(len(packed))
        packed += piece
    return bytes(packed), tuple(places)


def _aligned(offset: int) -> int:
    return offset + -offset % schema.TENSOR_ALIGNMENT
