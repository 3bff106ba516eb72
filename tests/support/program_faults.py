"""What a compiler may get wrong: single mutations of real programs, by kind.

A :class:`Mutation` changes some fields of one instruction. ``draw`` takes one of a kind at random;
``mutated_stream`` and ``mutated_model`` make the program that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

import numpy as np
from darwinn_formats.darwinn import CompiledModel, Executable
from darwinn_sim.isa.codec import DecodedChunk, Operation, decode
from darwinn_sim.isa.codes import AluOperation, StoreOperation
from darwinn_sim.isa.fields import Field
from darwinn_sim.isa.table import BY_NAME
from program_mutations import instructions_of, with_value

Value = int | tuple[int, ...]


class Kind(StrEnum):
    """What is wrong with a mutated program; ``changes`` says it in words."""

    changes: str

    def __new__(cls, name: str, changes: str) -> Kind:
        made = str.__new__(cls, name)
        made._value_, made.changes = name, changes
        return made

    WATCHER_REMOVED = "watcher removed", "a watcher of an instruction is not valid any more"
    WATCHER_WEAKENED = "watcher weakened", "a watcher awaits a number less by 1, 2, or up to 64"
    PRODUCER_LOST = "producer lost", "an instruction does not increment its flag"
    FENCE_EMPTIED = "fence emptied", "a fence waits for nothing; it still loads what it loads"
    DESCRIPTOR = (
        "descriptor changed",
        "an immediate, a register or a word of a bundle that makes a DMA descriptor",
    )
    ADDRESS = "address off by one", "base or stride of a traversal"
    SCALE = "wrong scale", "scale, zero point or clip bound of a tensor instruction"
    TABLE = "wrong table entry", "a coefficient or a bound of a table, times -1, 0.9, 1.1 or 2"
    LOOP = "loop count", "a limit of a traversal, of the main loops, the count of a loop"
    SIDE = "wrong side of a double buffer", "the side on which a double buffer begins"


SYNCHRONISATION = frozenset(
    (Kind.WATCHER_REMOVED, Kind.WATCHER_WEAKENED, Kind.PRODUCER_LOST, Kind.FENCE_EMPTIED)
)
VALUES = frozenset((Kind.ADDRESS, Kind.SCALE, Kind.TABLE, Kind.LOOP, Kind.SIDE))


@dataclass(frozen=True)
class Change:
    """A field (``place``: of a repeated one, which), and what it held and holds."""

    field: str
    place: int
    before: int
    after: int

    def __str__(self) -> str:
        where = f"[{self.place}]" if self.place >= 0 else ""
        return f"{self.field}{where} {self.before} -> {self.after}"


@dataclass(frozen=True)
class Edit:
    """Changes of the instruction at ``pc`` of a chunk of an executable (by their numbers)."""

    executable: int
    chunk: int
    pc: int
    instruction: str
    changes: tuple[Change, ...]

    def __str__(self) -> str:
        changes = ", ".join(map(str, self.changes))
        place = f"executable {self.executable}, chunk {self.chunk}, pc {self.pc}"
        return f"{place}, {self.instruction}: {changes}"


@dataclass(frozen=True)
class Mutation(Edit):
    """The only edit of a program, of a kind."""

    kind: Kind

    def __str__(self) -> str:
        return f"{self.kind}: {super().__str__()}"


def executables_of(model: CompiledModel) -> tuple[Executable, ...]:
    """What a model consists of; mutations number them so."""
    return tuple(each for each in (model.inference, model.caching) if each is not None)


def programs_of(model: CompiledModel) -> list[list[DecodedChunk]]:
    """The chunks of each executable of a model, decoded."""
    return [
        [decode(chunk.bitstream) for chunk in executable.instruction_bitstreams]
        for executable in executables_of(model)
    ]


def draw(random: Random, programs: Sequence[Sequence[DecodedChunk]], kind: Kind) -> Mutation | None:
    """A mutation of a kind at a random place of ``programs``; None if they have no such place."""
    places = [
        (executable, chunk, index)
        for executable, chunks in enumerate(programs)
        for chunk, program in enumerate(chunks)
        for index in range(len(program))
    ]
    random.shuffle(places)
    for executable, chunk, index in places:
        program = programs[executable][chunk]
        operation = program[index]
        options = list(_FINDERS[kind](random, operation, program, index))
        if options:
            name = operation.instruction.name
            changes = random.choice(options)
            return Mutation(executable, chunk, operation.pc, name, changes, kind)
    return None


def mutated_stream(stream: bytes | memoryview, mutation: Edit) -> bytes:
    """A chunk of instructions with the mutation."""
    instructions = instructions_of(bytes(stream))
    at = decode(stream).pc.tolist().index(mutation.pc)
    for change in mutation.changes:
        field = BY_NAME[mutation.instruction].field(change.field)
        place = max(change.place, 0)
        instructions[at] = with_value(instructions[at], field, change.after, place)
    return b"".join(instructions)


def mutated_executable(executable: Executable, mutation: Mutation) -> Executable:
    """An executable with the mutation."""
    chunks = list(executable.instruction_bitstreams)
    chunk = chunks[mutation.chunk]
    chunks[mutation.chunk] = replace(chunk, bitstream=mutated_stream(chunk.bitstream, mutation))
    return replace(executable, instruction_bitstreams=tuple(chunks))


def mutated_model(model: CompiledModel, mutation: Mutation) -> CompiledModel:
    """A model with the mutation."""
    if mutation.executable == 0:
        return replace(model, inference=mutated_executable(model.inference, mutation))
    assert model.caching is not None
    return replace(model, caching=mutated_executable(model.caching, mutation))


# What can be changed of an instruction: tuples of changes, of which one is drawn.
_Changes = tuple[Change, ...]
_Finder = Callable[[Random, Operation, DecodedChunk, int], Iterator[_Changes]]


def _wrapped(field: Field, value: int) -> int:
    """A value as the field holds it."""
    value &= (1 << field.width) - 1
    return value - (1 << field.width) if field.signed and value >> (field.width - 1) else value


def _set(operation: Operation, name: str, value: int, place: int = -1) -> _Changes:
    """A field with another value; nothing if it holds that already."""
    field = operation.instruction.field(name)
    before = operation.many(name)[place] if place >= 0 else operation[name]
    after = _wrapped(field, value)
    return (Change(name, place, before, after),) if after != before else ()


def _values(operation: Operation, name: str) -> Iterator[tuple[int, int]]:
    """Place (-1: it is not repeated) and value of each repetition of a field."""
    value: Value = operation.values[name]
    yield from enumerate(value) if isinstance(value, tuple) else [(-1, value)]


def _watchers(operation: Operation) -> Iterator[int]:
    """Places of the watchers that are valid."""
    if operation.instruction.watchers:
        yield from (place for place, valid in _values(operation, "watcher_valid") if valid)


def _watcher_removed(
    random: Random, operation: Operation, program: DecodedChunk, index: int
) -> Iterator[_Changes]:
    for place in _watchers(operation):
        yield _set(operation, "watcher_valid", 0, place)


def _watcher_weakened(
    random: Random, operation: Operation, program: DecodedChunk, index: int
) -> Iterator[_Changes]:
    for place in _watchers(operation):
        expected = dict(_values(operation, "watcher_expected"))[place]
        for less in (1, 2, random.randrange(3, 65)):
            yield _set(operation, "watcher_expected", expected - less, place)


def _producer_lost(
    random: Random, operation: Operation, program: DecodedChunk, index: int
) -> Iterator[_Changes]:
    for name in operation.instruction.producers:
        if operation[f"{name}_increment"]:
            yield _set(operation, f"{name}_increment", 0)


_AWAITED = ("wait_idle", "producer_count_valid", "expected_valid", "tile_fence_valid")


def _fence_emptied(
    random: Random, operation: Operation, program: DecodedChunk, index: int
) -> Iterator[_Changes]:
    if operation.instruction.name in ("TileFence", "ScalarFence"):
        names = [name for name in _AWAITED if operation.values.get(name)]
        yield tuple(change for name in names for change in _set(operation, name, 0))


_BUNDLES_OF_A_DESCRIPTOR = 8
"""So many bundles before the one that issues a descriptor make it."""


def _descriptor(
    random: Random, operation: Operation, program: DecodedChunk, index: int
) -> Iterator[_Changes]:
    if operation.instruction.name != "Scalar":
        return
    after = range(index, min(index + _BUNDLES_OF_A_DESCRIPTOR, len(program)))
    if not any(_issues(program[k]) for k in after):
        return
    if operation["store_op"] == StoreOperation.DESCRIPTOR:
        yield _set(operation, "store_register", random.randrange(32))
        yield _set(operation, "store_address", random.randrange(4))
    if operation["alu_op"] != AluOperation.NONE and operation["alu_immediate"]:
        number = operation["alu_b"]
        for value in (number + 1, number - 1, number + 8, number ^ 1 << random.randrange(16)):
            yield _set(operation, "alu_b", value)


def _issues(operation: Operation) -> bool:
    return operation.instruction.name == "Scalar" and operation["store_op"] == StoreOperation.ISSUE


def _address(
    random: Random, operation: Operation, program: DecodedChunk, index: int
) -> Iterator[_Changes]:
    for traversal in operation.instruction.traversals:
        if not _walks(operation, traversal.name):
            continue
        step = random.choice((-1, 1))
        yield _set(operation, f"{traversal.name}_base", operation[f"{traversal.name}_base"] + step)
        for place, stride in _values(operation, f"{traversal.name}_stride"):
            if stride and operation.many(f"{traversal.name}_limit")[place]:
                yield _set(operation, f"{traversal.name}_stride", stride + step, place)


def _walks(operation: Operation, traversal: str) -> bool:
    """A traversal is in use: it has a base or a stride."""
    return bool(operation[f"{traversal}_base"] or any(operation.many(f"{traversal}_stride")))


def _scale(
    random: Random, operation: Operation, program: DecodedChunk, index: int
) -> Iterator[_Changes]:
    if "output_scale" not in operation.values:
        return
    factor = random.choice((0.5, 0.99, 1.01, 2))
    scale = _as_float(operation["output_scale"])
    if scale:
        yield _set(operation, "output_scale", _as_bits(scale * factor))
    for name in ("output_zero_point", "activation_zero_point", "parameter_zero_point"):
        if name in operation.values:
            yield _set(operation, name, operation[name] + random.choice((-1, 1)))
    for name in ("low_clip", "high_clip"):
        if name in operation.values and np.isfinite(_as_float(operation[name])):
            clip = _as_float(operation[name]) + random.choice((-1, 1))
            yield _set(operation, name, _as_bits(clip))


def _table(
    random: Random, operation: Operation, program: DecodedChunk, index: int
) -> Iterator[_Changes]:
    if operation.instruction.name == "CoefficientTable":
        for name in ("coefficient", "lower_bound"):
            for place, bits in _values(operation, name):
                if _as_float(bits):
                    value = _as_float(bits) * random.choice((-1, 0.9, 1.1, 2))
                    yield _set(operation, name, _as_bits(value), place)


def _loop(
    random: Random, operation: Operation, program: DecodedChunk, index: int
) -> Iterator[_Changes]:
    names = [f"{each.name}_limit" for each in operation.instruction.traversals]
    for name in (*names, "main_limit", "count"):
        if name in operation.values:
            for place, limit in _values(operation, name):
                if limit:
                    yield _set(operation, name, limit + random.choice((-1, 1)), place)


def _side(
    random: Random, operation: Operation, program: DecodedChunk, index: int
) -> Iterator[_Changes]:
    for traversal in operation.instruction.traversals:
        name = f"{traversal.name}_double"
        if operation[f"{name}_offset"]:
            yield _set(operation, f"{name}_start", operation[f"{name}_start"] ^ 1)


def _as_float(bits: int) -> float:
    return float(np.uint32(bits).view(np.float32))


def _as_bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def _real(finder: _Finder) -> _Finder:
    """Without what would change nothing."""

    def find(
        random: Random, operation: Operation, program: DecodedChunk, index: int
    ) -> Iterator[_Changes]:
        return (each for each in finder(random, operation, program, index) if each)

    return find


_FINDERS: dict[Kind, _Finder] = {
    Kind.WATCHER_REMOVED: _real(_watcher_removed),
    Kind.WATCHER_WEAKENED: _real(_watcher_weakened),
    Kind.PRODUCER_LOST: _real(_producer_lost),
    Kind.FENCE_EMPTIED: _real(_fence_emptied),
    Kind.DESCRIPTOR: _real(_descriptor),
    Kind.ADDRESS: _real(_address),
    Kind.SCALE: _real(_scale),
    Kind.TABLE: _real(_table),
    Kind.LOOP: _real(_loop),
    Kind.SIDE: _real(_side),
}
