"""Instructions as steps: functions without arguments that have their registers bound to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from darwinn_formats.iree import CallingConvention, Instruction
from darwinn_formats.iree.calling_convention import parse
from darwinn_formats.iree.opcodes import BLOCK, IMPORT_BIT, MOVE_BIT, REFERENCE_BIT

from darwinn_testbench.reference.iree import effects
from darwinn_testbench.reference.iree.imports import PlacedError
from darwinn_testbench.reference.iree.semantics import PURE, wrap32, wrap64
from darwinn_testbench.reference.protocol import ExecutionError, Unsupported

if TYPE_CHECKING:
    from darwinn_testbench.reference.iree.machine import Activation

RETURN = -1
"""What leaves a function, in the place of the next block."""

Step = Callable[[], None]
Leave = Callable[[], int]

STATUS = {
    1: "cancelled",
    2: "unknown",
    3: "invalid argument",
    4: "deadline exceeded",
    5: "not found",
    6: "already exists",
    7: "permission denied",
    8: "resource exhausted",
    9: "failed precondition",
    10: "aborted",
    11: "out of range",
    12: "unimplemented",
    13: "internal",
    14: "unavailable",
    15: "data loss",
    16: "unauthenticated",
}
"""Status codes of ``fail``."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block: its steps, what leads to the next block, and the pc of each and of the last."""

    steps: tuple[Step, ...]
    leave: Leave
    places: tuple[int, ...]


class Preparation:
    """Makes the steps of one activation."""

    def __init__(self, activation: Activation) -> None:
        self.activation = activation
        self.machine = activation.machine
        self.banks = activation.banks
        self.references = activation.references
        self.block_of: dict[int, int] = {}

    def blocks(self) -> tuple[Block, ...]:
        """All blocks in their order; control goes to them by their number."""
        instructions = list(self.activation.function.instructions())
        starts = [entry.pc for entry in instructions if entry.mnemonic == BLOCK]
        self.block_of = {pc: index for index, pc in enumerate(starts)}
        made: list[Block] = []
        steps: list[Step] = []
        places: list[int] = []
        for entry in instructions:
            if entry.operation.terminates:
                made.append(Block(tuple(steps), self._leave(entry), (*places, entry.pc)))
                steps, places = [], []
            elif (step := self._step(entry)) is not None:
                steps.append(step)
                places.append(entry.pc)
        return tuple(made)

    def _bank(self, kind: str, register: int) -> tuple[Any, int]:
        """Memory of a register and its index in it."""
        if kind == "r":
            return self.references, register & _ORDINAL
        return self.banks[kind], register // (2 if kind in _WIDE else 1)

    def _step(self, instruction: Instruction) -> Step | None:
        name = instruction.mnemonic
        if name in PURE:
            return self._pure(instruction, PURE[name])
        if name in effects.EFFECTS:
            return self._effect(instruction, effects.EFFECTS[name])
        if name in effects.TYPED_EFFECTS:
            type_name = self._type_name(instruction)
            function = effects.TYPED_EFFECTS[name]
            return self._effect(instruction, lambda *values: function(*values, type_name))
        if name in _SILENT:
            return None
        if name not in _PREPARE:
            raise Unsupported("operations", [name])
        return _PREPARE[name](self, instruction)

    def _pure(self, instruction: Instruction, function: Callable[..., Any]) -> Step:
        sources, target = [], None
        for field, operand in zip(instruction.operation.fields, instruction.operands, strict=True):
            if field.written:
                target = self._bank(field.kind, operand)
            else:
                sources.append(self._bank(field.kind, operand))
        assert target is not None
        return _BIND[len(sources)](function, sources, *target)

    def _copies(self, pairs: Sequence[tuple[int, int]]) -> Step | None:
        """Copy registers in order: one cell or one reference each."""
        if not pairs:
            return None
        cells = self.banks["i"]
        numbers = [pair for pair in pairs if not pair[0] & REFERENCE_BIT]
        others = [
            (source & _ORDINAL, target & _ORDINAL, bool(source & MOVE_BIT))
            for source, target in pairs
            if source & REFERENCE_BIT
        ]
        references = self.references

        def copy() -> None:
            for source, target in numbers:
                cells[target] = cells[source]
            for source, target, moves in others:
                value = references[source]
                if moves:
                    references[source] = None
                references[target] = value

        return copy

    def _branch(self, target: int, pairs: Sequence[tuple[int, int]]) -> Leave:
        block, copy = self.block_of[target], self._copies(pairs)
        if copy is None:
            return lambda: block

        def leave() -> int:
            copy()
            return block

        return leave

    def _leave(self, instruction: Instruction) -> Leave:
        return _LEAVE[instruction.mnemonic](self, instruction)

    def _goto(self, instruction: Instruction) -> Leave:
        target, pairs = instruction.operands
        return self._branch(target, pairs)

    def _conditional(self, instruction: Instruction) -> Leave:
        condition, yes, yes_pairs, no, no_pairs = instruction.operands
        cells, index = self._bank("i", condition)
        if not yes_pairs and not no_pairs:
            first, second = self.block_of[yes], self.block_of[no]
            return lambda: first if cells[index] else second
        taken = self._branch(yes, yes_pairs)
        other = self._branch(no, no_pairs)
        return lambda: taken() if cells[index] else other()

    def _conditional_break(self, instruction: Instruction) -> Leave:
        """A debugger would stop; the way is the same."""
        _, target, pairs = instruction.operands
        return self._branch(target, pairs)

    def _table(self, instruction: Instruction) -> Leave:
        register, target, pairs, cases = instruction.operands
        cells, index = self._bank("i", register)
        default = self._branch(target, pairs)
        ways = [self._branch(*case) for case in cases]

        def leave() -> int:
            case = cells[index]
            return ways[case]() if 0 <= case < len(ways) else default()

        return leave

    def _give(self, instruction: Instruction) -> Leave:
        (registers,) = instruction.operands
        activation = self.activation
        convention = activation.function.convention
        letters = () if convention is None else convention.results
        values = tuple(zip(letters, registers, strict=False))

        def leave() -> int:
            activation.results = tuple(activation.get(*value) for value in values)
            return RETURN

        return leave

    def _fail(self, instruction: Instruction) -> Leave:
        register, text = instruction.operands
        cells, index = self._bank("i", register)
        message = bytes(text).decode("utf-8", "replace")
        following = self.block_of.get(instruction.end)

        def leave() -> int:
            status = cells[index]
            if status:
                name = STATUS.get(status, f"status {status}")
                raise ExecutionError(f"{name}: {message}" if message else name)
            if following is None:
                raise ExecutionError("the function goes on after its end")
            return following

        return leave

    def _suspending_call(self, instruction: Instruction) -> Leave:
        """Imports complete at once, so that the call goes on with the block that resumes."""
        position = len(instruction.operands) - 2
        call = self._call(instruction)
        block = self.block_of[instruction.operands[position]]

        def leave() -> int:
            call()
            return block

        return leave

    def _call(self, instruction: Instruction) -> Step:
        lists = [
            operand
            for field, operand in zip(
                instruction.operation.fields, instruction.operands, strict=True
            )
            if field.kind == "V"
        ]
        target: int = instruction.operands[0]
        segments = lists[0] if "variadic" in instruction.mnemonic else None
        if target & IMPORT_BIT:
            return self._import_call(target & ~IMPORT_BIT, segments, *lists[-2:])
        return self._internal_call(target, *lists[-2:])

    def _internal_call(
        self, ordinal: int, arguments: Sequence[int], results: Sequence[int]
    ) -> Step:
        activation, machine = self.activation, self.machine
        function = machine.module.functions[ordinal]
        assert function.convention is not None
        taken = tuple(zip(function.convention.flat_arguments(), arguments, strict=True))
        given = tuple(zip(function.convention.results, results, strict=True))

        def call() -> None:
            values = machine.call(function, [activation.get(*value) for value in taken])
            for (letter, register), value in zip(given, values, strict=True):
                activation.put(letter, register, value)

        return call

    def _import_call(
        self,
        ordinal: int,
        segments: Sequence[int] | None,
        arguments: Sequence[int],
        results: Sequence[int],
    ) -> Step:
        machine, activation = self.machine, self.activation
        entry = machine.module.definition.imported_functions[ordinal]
        handler = machine.imports[ordinal]
        convention = parse(entry.signature.calling_convention if entry.signature else "0")
        shape = _argument_shape(convention, segments, arguments)
        given = tuple(zip(convention.results, results, strict=True))
        several = len(given) > 1

        def call() -> None:
            if handler is None:
                raise ExecutionError(f"the import {entry.full_name} is optional and not there")
            values = [
                [tuple(activation.get(*value) for value in item) for item in group]
                if isinstance(group, list)
                else activation.get(*group)
                for group in shape
            ]
            try:
                result = handler(machine.host, *values)
            except (PlacedError, Unsupported):
                raise
            except ExecutionError as error:
                raise ExecutionError(f"{entry.full_name}: {error}") from None
            for (letter, register), value in zip(
                given, result if several else (result,), strict=False
            ):
                activation.put(letter, register, value)

        return call

    def _resolved(self, instruction: Instruction) -> Step:
        target, register = instruction.operands
        there = int(self.machine.imports[target & ~IMPORT_BIT] is not None)
        return self._set("i", register, there)

    def _set(self, kind: str, register: Any, value: Any) -> Step:
        bank, index = self._bank(kind, register)

        def step() -> None:
            bank[index] = value

        return step

    def _zero(self, instruction: Instruction) -> Step:
        field = instruction.operation.fields[0]
        value = None if field.kind == "r" else 0
        return self._set(field.kind, instruction.operands[0], value)

    def _constant(self, instruction: Instruction) -> Step:
        """An immediate goes to its cells bit by bit, so that floats are the same as integers."""
        value, register = instruction.operands
        kind = instruction.operation.fields[1].kind
        number: Any = value
        if kind in _SAME_BITS:
            kind = _SAME_BITS[kind]
            number = (wrap64 if kind in _WIDE else wrap32)(number)
        return self._set(kind, register, number)

    def _rodata(self, instruction: Instruction) -> Step:
        ordinal, register = instruction.operands
        return self._set("r", register, self.machine.rodata[ordinal])

    def _load_global(self, instruction: Instruction) -> Step:
        kind = instruction.operation.fields[-1].kind
        if kind == "r":
            ordinal, _, register = instruction.operands
            return _move(self.machine.references, ordinal, self.references, register & _ORDINAL)
        place, register = instruction.operands
        source, target, size = self._global_view(kind, register)
        return _move(source, place // size, *target)

    def _store_global(self, instruction: Instruction) -> Step:
        kind = instruction.operation.fields[-1].kind
        if kind == "r":
            ordinal, _, register = instruction.operands
            return self._store_reference(self.machine.references, ordinal, register)
        place, register = instruction.operands
        memory, source, size = self._global_view(kind, register)
        return _move(*source, memory, place // size)

    def _store_reference(self, target: list[Any], ordinal: Any, register: Any) -> Step:
        activation = self.activation

        def store() -> None:
            target[ordinal] = activation.reference(register)

        return store

    def _global_view(self, kind: str, register: Any) -> tuple[Any, tuple[Any, int], int]:
        same = _SAME_BITS.get(kind, kind)
        size = 8 if same in _WIDE else 4
        return self.machine.globals[same], self._bank(same, register), size

    def _load_global_indirect(self, instruction: Instruction) -> Step:
        kind = instruction.operation.fields[-1].kind
        cells, index = self._bank("i", instruction.operands[0])
        bank, target = self._bank(kind, instruction.operands[-1])
        place = self._indirect_place(kind)

        def load() -> None:
            memory, position = place(cells[index])
            bank[target] = memory[position]

        return load

    def _store_global_indirect(self, instruction: Instruction) -> Step:
        kind = instruction.operation.fields[-1].kind
        cells, index = self._bank("i", instruction.operands[0])
        read = self._reader(kind, instruction.operands[-1])
        place = self._indirect_place(kind)

        def store() -> None:
            memory, position = place(cells[index])
            memory[position] = read()

        return store

    def _indirect_place(self, kind: str) -> Callable[[int], tuple[Any, int]]:
        machine = self.machine
        if kind == "r":
            memory, size = machine.references, 1
        else:
            memory, size = machine.globals[kind], 8 if kind in _WIDE else 4
        limit = len(machine.references) if kind == "r" else machine.global_bytes

        def place(offset: int) -> tuple[Any, int]:
            if offset < 0 or offset % size or offset + size > limit:
                raise ExecutionError(f"there is no global {offset}")
            return memory, offset // size

        return place

    def _reader(self, kind: str, register: Any) -> Callable[[], Any]:
        """What reads a register; a reference that moves leaves null behind."""
        if kind == "r":
            activation = self.activation
            return lambda: activation.reference(register)
        bank, index = self._bank(kind, register)
        return lambda: bank[index]

    def _readers(self, instruction: Instruction) -> list[Callable[[], Any]]:
        """What reads each register that an instruction reads."""
        pairs = zip(instruction.operation.fields, instruction.operands, strict=True)
        return [
            self._reader(field.kind, operand)
            for field, operand in pairs
            if field.kind in "ilfdr" and not field.written
        ]

    def _target(self, instruction: Instruction) -> tuple[Any, int]:
        """Memory and index of the register that an instruction writes."""
        field, operand = instruction.operation.fields[-1], instruction.operands[-1]
        return self._bank(field.kind, operand)

    def _select(self, instruction: Instruction) -> Step:
        """Numbers, of which only the one that is taken is read."""
        condition, yes, no, target = instruction.operands
        declared = instruction.operation.fields[-1].kind
        kind = _SAME_BITS.get(declared, declared)
        cells, case = self._bank("i", condition)
        bank, first = self._bank(kind, yes)
        _, second = self._bank(kind, no)
        _, index = self._bank(kind, target)

        def step() -> None:
            bank[index] = bank[first if cells[case] else second]

        return step

    def _select_reference(self, instruction: Instruction) -> Step:
        """References, both of which may move."""
        condition, yes, no = self._readers(instruction)
        bank, index = self._target(instruction)

        def step() -> None:
            first, second = yes(), no()
            bank[index] = first if condition() else second

        return step

    def _switch(self, instruction: Instruction) -> Step:
        case, default = self._readers(instruction)
        bank, index = self._target(instruction)
        field, registers = next(
            (field, operand)
            for field, operand in zip(
                instruction.operation.fields, instruction.operands, strict=True
            )
            if field.kind == "V"
        )
        values = [self._reader(field.type, register) for register in registers]

        def step() -> None:
            number = case()
            bank[index] = values[number]() if 0 <= number < len(values) else default()

        return step

    def _discard(self, instruction: Instruction) -> Step:
        references = self.references
        ordinals = [register & _ORDINAL for register in instruction.operands[0]]

        def step() -> None:
            for ordinal in ordinals:
                references[ordinal] = None

        return step

    def _assign(self, instruction: Instruction) -> Step:
        (read,) = self._readers(instruction)
        bank, index = self._target(instruction)

        def step() -> None:
            bank[index] = read()

        return step

    def _buffer_load(self, instruction: Instruction) -> Step:
        element = effects.ACCESSES[instruction.mnemonic]
        references, source = self._bank("r", instruction.operands[0])
        offsets, offset = self._bank("l", instruction.operands[1])
        kind = instruction.operation.fields[2].kind
        cells, target = self._bank(_SAME_BITS.get(kind, kind), instruction.operands[2])

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

    def _buffer_store(self, instruction: Instruction) -> Step:
        element = effects.ACCESSES[instruction.mnemonic]
        references, destination = self._bank("r", instruction.operands[0])
        offsets, offset = self._bank("l", instruction.operands[1])
        kind = instruction.operation.fields[2].kind
        cells, source = self._bank(_SAME_BITS.get(kind, kind), instruction.operands[2])
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

    def _effect(self, instruction: Instruction, function: Callable[..., Any]) -> Step:
        """A step of a function of all that the instruction reads."""
        readers = self._readers(instruction)
        if not instruction.operation.fields[-1].written:

            def act() -> None:
                function(*[read() for read in readers])

            return act
        bank, index = self._target(instruction)

        def step() -> None:
            bank[index] = function(*[read() for read in readers])

        return step

    def _type_name(self, instruction: Instruction) -> str:
        """Name of the type that an instruction is declared with."""
        pairs = zip(instruction.operation.fields, instruction.operands, strict=True)
        ordinal: int = next(operand for field, operand in pairs if field.kind == "T")
        return self.machine.module.definition.types[ordinal].full_name


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


def _move(source: Any, place: Any, bank: Any, index: Any) -> Step:
    def step() -> None:
        bank[index] = source[place]

    return step


def _not_a_buffer(value: object) -> ExecutionError:
    found = "null" if value is None else f"a {type(value).__name__}"
    return ExecutionError(f"{found} is no buffer")


def _outside(index: int, view: memoryview[Any], element: str) -> ExecutionError:
    return ExecutionError(f"element {index} of {len(view)} elements of type {element}")


_WIDE = frozenset("ld")
_SAME_BITS = {"f": "i", "d": "l"}
"""Integers that hold the bits of floats, where they are only moved."""
_ORDINAL = ~(REFERENCE_BIT | MOVE_BIT)
_SILENT = frozenset(("block", "trace", "print"))
"""Operations without a step: markers, and what only a debugger would see."""


def _argument_shape(
    convention: CallingConvention, segments: Sequence[int] | None, registers: Sequence[int]
) -> list[Any]:
    """Letters and registers of a call, those of each repeated tuple in a list of tuples."""
    left = iter(registers)
    shape: list[Any] = []
    for index, argument in enumerate(convention.arguments):
        if isinstance(argument, tuple):
            count = 0 if segments is None else segments[index]
            shape.append([[(letter, next(left)) for letter in argument] for _ in range(count)])
        else:
            shape.append((argument, next(left)))
    return shape


_Prepare = Callable[[Preparation, Instruction], Step]

_PREPARE: Mapping[str, _Prepare] = {
    "call": Preparation._call,
    "call.variadic": Preparation._call,
    "import.resolved": Preparation._resolved,
    "const.ref.rodata": Preparation._rodata,
    "discard.refs": Preparation._discard,
    "assign.ref": Preparation._assign,
    **{f"const.{kind}.zero": Preparation._zero for kind in ("i32", "i64", "f32", "f64", "ref")},
    **{f"const.{kind}": Preparation._constant for kind in ("i32", "i64", "f32", "f64")},
    "select.ref": Preparation._select_reference,
    **{f"select.{kind}": Preparation._select for kind in ("i32", "i64", "f32", "f64")},
    **{f"switch.{kind}": Preparation._switch for kind in ("i32", "i64", "f32", "f64", "ref")},
    **{name: Preparation._buffer_load for name in effects.ACCESSES if ".load." in name},
    **{name: Preparation._buffer_store for name in effects.ACCESSES if ".store." in name},
    **{
        f"global.{way}.{kind}": prepare
        for way, prepare in (
            ("load", Preparation._load_global),
            ("store", Preparation._store_global),
            ("load.indirect", Preparation._load_global_indirect),
            ("store.indirect", Preparation._store_global_indirect),
        )
        for kind in ("i32", "i64", "f32", "f64", "ref")
    },
}
_LEAVE: Mapping[str, Callable[[Preparation, Instruction], Leave]] = {
    "br": Preparation._goto,
    "break": Preparation._goto,
    "yield": Preparation._goto,
    "cond_br": Preparation._conditional,
    "cond_break": Preparation._conditional_break,
    "br_table": Preparation._table,
    "return": Preparation._give,
    "fail": Preparation._fail,
    "call.yieldable": Preparation._suspending_call,
    "call.variadic.yieldable": Preparation._suspending_call,
}

COVERED = frozenset((*PURE, *effects.EFFECTS, *effects.TYPED_EFFECTS, *_SILENT, *_PREPARE, *_LEAVE))
"""Mnemonics of all operations that can be run."""
