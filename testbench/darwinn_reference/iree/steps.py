"""Instructions as steps: functions without arguments that have their registers bound to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from darwinn_formats.errors import ExecutionError
from darwinn_formats.iree import Instruction
from darwinn_formats.iree.opcodes import BLOCK

from darwinn_reference.errors import Unsupported
from darwinn_reference.iree import effects
from darwinn_reference.iree.binding import Binding, Step
from darwinn_reference.iree.calls import call, resolved
from darwinn_reference.iree.registers import ORDINAL, SAME_BITS, size_of
from darwinn_reference.iree.semantics import PURE, wrap32, wrap64

SILENT = frozenset((BLOCK, "trace", "print"))
"""Operations without a step: markers, and what only a debugger would see."""


def step_of(binding: Binding, instruction: Instruction) -> Step | None:
    """The step of an instruction within a block; None if there is nothing to do."""
    name = instruction.mnemonic
    if name in PURE:
        return _pure(binding, instruction, PURE[name])
    if name in effects.EFFECTS:
        return _effect(binding, instruction, effects.EFFECTS[name])
    if name in effects.TYPED_EFFECTS:
        type_name = _type_name(binding, instruction)
        function = effects.TYPED_EFFECTS[name]
        return _effect(binding, instruction, lambda *values: function(*values, type_name))
    if name in SILENT:
        return None
    if name not in _PREPARE:
        raise Unsupported("operations", [name])
    return _PREPARE[name](binding, instruction)


def _pure(binding: Binding, instruction: Instruction, function: Callable[..., Any]) -> Step:
    sources, target = [], None
    for field, operand in instruction.fields():
        if field.written:
            target = binding.bank(field.kind, operand)
        else:
            sources.append(binding.bank(field.kind, operand))
    assert target is not None
    return _BIND[len(sources)](function, sources, *target)


def _zero(binding: Binding, instruction: Instruction) -> Step:
    field = instruction.operation.fields[0]
    value = None if field.kind == "r" else 0
    return binding.set(field.kind, instruction.operands[0], value)


def _constant(binding: Binding, instruction: Instruction) -> Step:
    """An immediate goes to its cells bit by bit, so that floats are the same as integers."""
    value, register = instruction.operands
    kind = instruction.operation.fields[1].kind
    number: Any = value
    if kind in SAME_BITS:
        kind = SAME_BITS[kind]
        number = (wrap32 if size_of(kind) == 4 else wrap64)(number)
    return binding.set(kind, register, number)


def _rodata(binding: Binding, instruction: Instruction) -> Step:
    ordinal, register = instruction.operands
    return binding.set("r", register, binding.state.rodata[ordinal])


def _bits(kind: str) -> str:
    return SAME_BITS.get(kind, kind)


def _load_global(binding: Binding, instruction: Instruction) -> Step:
    kind = _bits(instruction.operation.fields[-1].kind)
    memory, size, _ = _globals(binding, kind)
    target = binding.bank(kind, instruction.operands[-1])
    return _move(memory, instruction.operands[0] // size, *target)


def _store_global(binding: Binding, instruction: Instruction) -> Step:
    kind = _bits(instruction.operation.fields[-1].kind)
    memory, size, _ = _globals(binding, kind)
    source, place = instruction.operands[-1], instruction.operands[0] // size
    if kind == "r":
        return _write(binding.reader(kind, source), memory, place)
    return _move(*binding.bank(kind, source), memory, place)


def _load_global_indirect(binding: Binding, instruction: Instruction) -> Step:
    place, memory = _indirect_place(binding, instruction)
    bank, target = binding.target(instruction)

    def load() -> None:
        bank[target] = memory[place()]

    return load


def _store_global_indirect(binding: Binding, instruction: Instruction) -> Step:
    place, memory = _indirect_place(binding, instruction)
    read = binding.reader(instruction.operation.fields[-1].kind, instruction.operands[-1])

    def store() -> None:
        position = place()
        memory[position] = read()

    return store


def _indirect_place(binding: Binding, instruction: Instruction) -> tuple[Callable[[], int], Any]:
    """What finds the place of a global by its offset in a register, and the memory of it."""
    cells, index = binding.bank("i", instruction.operands[0])
    memory, size, limit = _globals(binding, instruction.operation.fields[-1].kind)

    def place() -> int:
        offset: int = cells[index]
        if offset < 0 or offset % size or offset + size > limit:
            raise ExecutionError(f"there is no global {offset}")
        return offset // size

    return place, memory


def _globals(binding: Binding, kind: str) -> tuple[Any, int, int]:
    """Globals of a kind, size and end: references count one by one, numbers by their bytes."""
    state = binding.state
    if kind == "r":
        return state.references, 1, len(state.references)
    return state.globals[kind], size_of(kind), state.global_bytes


def _select(binding: Binding, instruction: Instruction) -> Step:
    """Numbers, of which only the one that is taken is read."""
    condition, yes, no, target = instruction.operands
    kind = _bits(instruction.operation.fields[-1].kind)
    cells, case = binding.bank("i", condition)
    bank, first = binding.bank(kind, yes)
    _, second = binding.bank(kind, no)
    _, index = binding.bank(kind, target)

    def step() -> None:
        bank[index] = bank[first if cells[case] else second]

    return step


def _select_reference(binding: Binding, instruction: Instruction) -> Step:
    """References, both of which may move."""
    condition, yes, no = binding.readers(instruction)
    bank, index = binding.target(instruction)

    def step() -> None:
        first, second = yes(), no()
        bank[index] = first if condition() else second

    return step


def _switch(binding: Binding, instruction: Instruction) -> Step:
    case, default = binding.readers(instruction)
    bank, index = binding.target(instruction)
    field, registers = next(
        (field, operand) for field, operand in instruction.fields() if field.kind == "V"
    )
    values = [binding.reader(field.type, register) for register in registers]

    def step() -> None:
        number = case()
        bank[index] = values[number]() if 0 <= number < len(values) else default()

    return step


def _discard(binding: Binding, instruction: Instruction) -> Step:
    references = binding.registers.references
    ordinals = [register & ORDINAL for register in instruction.operands[0]]

    def step() -> None:
        for ordinal in ordinals:
            references[ordinal] = None

    return step


def _assign(binding: Binding, instruction: Instruction) -> Step:
    (read,) = binding.readers(instruction)
    return _write(read, *binding.target(instruction))


def _buffer_load(binding: Binding, instruction: Instruction) -> Step:
    element = effects.ACCESSES[instruction.mnemonic]
    references, source = binding.bank("r", instruction.operands[0])
    offsets, offset = binding.bank("l", instruction.operands[1])
    cells, target = binding.bank(
        _bits(instruction.operation.fields[2].kind), instruction.operands[2]
    )

    def step() -> None:
        try:
            view = references[source].loads[element]
        except AttributeError:
            raise _not_a_buffer(references[source]) from None
        index = offsets[offset]
        if not 0 <= index < len(view):
            raise _outside(index, view, element)
        cells[target] = view[index]

    return step


def _buffer_store(binding: Binding, instruction: Instruction) -> Step:
    element = effects.ACCESSES[instruction.mnemonic]
    references, destination = binding.bank("r", instruction.operands[0])
    offsets, offset = binding.bank("l", instruction.operands[1])
    cells, source = binding.bank(
        _bits(instruction.operation.fields[2].kind), instruction.operands[2]
    )
    mask = {"i8": 0xFF, "i16": 0xFFFF}.get(element, -1)

    def step() -> None:
        try:
            view = references[destination].stores[element]
        except AttributeError:
            raise _not_a_buffer(references[destination]) from None
        index = offsets[offset]
        if not 0 <= index < len(view):
            raise _outside(index, view, element)
        view[index] = cells[source] & mask

    return step


def _effect(binding: Binding, instruction: Instruction, function: Callable[..., Any]) -> Step:
    """A step of a function of all that the instruction reads."""
    readers = binding.readers(instruction)
    if not instruction.operation.fields[-1].written:

        def act() -> None:
            function(*[read() for read in readers])

        return act
    bank, index = binding.target(instruction)

    def step() -> None:
        bank[index] = function(*[read() for read in readers])

    return step


def _type_name(binding: Binding, instruction: Instruction) -> str:
    """Name of the type that an instruction is declared with."""
    ordinal: int = next(instruction.of_kind("T"))
    return binding.state.module.definition.types[ordinal].full_name


def _bind_one(function: Callable[..., Any], sources: Any, bank: Any, index: int) -> Step:
    ((bank_a, a),) = sources

    def step() -> None:
        bank[index] = function(bank_a[a])

    return step


def _bind_two(function: Callable[..., Any], sources: Any, bank: Any, index: int) -> Step:
    (bank_a, a), (bank_b, b) = sources

    def step() -> None:
        bank[index] = function(bank_a[a], bank_b[b])

    return step


def _bind_three(function: Callable[..., Any], sources: Any, bank: Any, index: int) -> Step:
    (bank_a, a), (bank_b, b), (bank_c, c) = sources

    def step() -> None:
        bank[index] = function(bank_a[a], bank_b[b], bank_c[c])

    return step


_BIND: Mapping[int, Callable[..., Step]] = {1: _bind_one, 2: _bind_two, 3: _bind_three}


def _write(read: Callable[[], Any], bank: Any, index: Any) -> Step:
    def step() -> None:
        bank[index] = read()

    return step


def _move(source: Any, place: Any, bank: Any, index: Any) -> Step:
    def step() -> None:
        bank[index] = source[place]

    return step


def _not_a_buffer(value: object) -> ExecutionError:
    found = "null" if value is None else f"a {type(value).__name__}"
    return ExecutionError(f"{found} is no buffer")


def _outside(index: int, view: memoryview[Any], element: str) -> ExecutionError:
    return ExecutionError(f"element {index} of {len(view)} elements of type {element}")


_PREPARE: Mapping[str, Callable[[Binding, Instruction], Step]] = {
    "call": call,
    "call.variadic": call,
    "import.resolved": resolved,
    "const.ref.rodata": _rodata,
    "discard.refs": _discard,
    "assign.ref": _assign,
    **{f"const.{kind}.zero": _zero for kind in ("i32", "i64", "f32", "f64", "ref")},
    **{f"const.{kind}": _constant for kind in ("i32", "i64", "f32", "f64")},
    "select.ref": _select_reference,
    **{f"select.{kind}": _select for kind in ("i32", "i64", "f32", "f64")},
    **{f"switch.{kind}": _switch for kind in ("i32", "i64", "f32", "f64", "ref")},
    **{name: _buffer_load for name in effects.ACCESSES if ".load." in name},
    **{name: _buffer_store for name in effects.ACCESSES if ".store." in name},
    **{
        f"global.{way}.{kind}": prepare
        for way, prepare in (
            ("load", _load_global),
            ("store", _store_global),
            ("load.indirect", _load_global_indirect),
            ("store.indirect", _store_global_indirect),
        )
        for kind in ("i32", "i64", "f32", "f64", "ref")
    },
}

STEPS = frozenset((*PURE, *effects.EFFECTS, *effects.TYPED_EFFECTS, *SILENT, *_PREPARE))
"""Mnemonics of the operations within a block."""
