"""Faults of an executable, as a compiler, a linker or a bad memory might make them, by kind.

A :class:`Fault` changes bytes of the parameters, or fields of instructions. Each kind is a record
of ``KINDS``: what it changes, and how a fault is drawn from a seed. None is about one model. The
kinds of ``program_faults``, which change one instruction, are among them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from random import Random

import numpy as np
from darwinn_formats.darwinn import CompiledModel, Executable
from darwinn_sim import chip
from darwinn_sim.errors import SimulationError
from darwinn_sim.isa.codec import DecodedChunk, Operation
from darwinn_sim.lifting.walk import NotLifted
from parameter_roles import Role, Roles, roles_of
from program_faults import (
    SYNCHRONISATION,
    Change,
    Edit,
    Kind,
    executables_of,
    mutated_stream,
    programs_of,
)
from program_faults import draw as drawn_instruction


@dataclass(frozen=True)
class ByteChange:
    """A byte of the parameters of an executable (by its number), and what it holds then."""

    executable: int
    place: int
    after: int


@dataclass(frozen=True)
class Fault:
    """What is wrong: bytes of parameters, or fields of instructions; ``where`` in words."""

    kind: str
    where: str
    octets: tuple[ByteChange, ...] = ()
    fields: tuple[Edit, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}"


class Subject:
    """A model of which faults are drawn."""

    def __init__(self, model: CompiledModel) -> None:
        self.model = model
        self.executables = executables_of(model)
        self.programs = programs_of(model)

    @cached_property
    def roles(self) -> Roles | None:
        """What the bytes of its parameters are; None of a program that cannot be walked."""
        try:
            return roles_of(self.model)
        except (NotLifted, SimulationError):
            return None

    @cached_property
    def places(self) -> dict[Role, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
        """Executable and byte of all parameters that have a role."""
        roles = self.roles
        return {} if roles is None else {role: roles.places(role) for role in Role}

    @cached_property
    def operations(self) -> list[tuple[int, int, Operation]]:
        """Executable, chunk and instruction, of all."""
        return [
            (executable, number, operation)
            for executable, chunks in enumerate(self.programs)
            for number, chunk in enumerate(chunks)
            for operation in _operations(chunk)
        ]


def _operations(chunk: DecodedChunk) -> Iterable[Operation]:
    return (chunk[index] for index in range(len(chunk)))


Draw = Callable[[Random, Subject], Fault | None]


@dataclass(frozen=True)
class FaultKind:
    """A kind of faults: its name, what it changes, and how one is drawn (None: no place).

    A fault of synchronisation ``reorders``: it changes which orders of the units are legal.
    """

    name: str
    changes: str
    draw: Draw
    reorders: bool = False


def faulty(model: CompiledModel, fault: Fault) -> CompiledModel:
    """A model with the fault."""
    made = [_faulty(each, fault, number) for number, each in enumerate(executables_of(model))]
    return replace(model, inference=made[0], caching=made[1] if len(made) > 1 else None)


def _faulty(executable: Executable, fault: Fault, number: int) -> Executable:
    octets = [each for each in fault.octets if each.executable == number]
    if octets:
        parameters = bytearray(executable.parameters)
        for each in octets:
            parameters[each.place] = each.after
        executable = replace(executable, parameters=bytes(parameters))
    chunks = list(executable.instruction_bitstreams)
    for edit in fault.fields:
        if edit.executable == number:
            stream = mutated_stream(chunks[edit.chunk].bitstream, edit)
            chunks[edit.chunk] = replace(chunks[edit.chunk], bitstream=stream)
    return replace(executable, instruction_bitstreams=tuple(chunks))


def faulty_file(data: bytes, model: CompiledModel, fault: Fault) -> bytes:
    """The file of a model with the fault, of which every other byte is as it was.

    Raises: LookupError if what is changed does not stand in the file, or more than once.
    """
    changed = bytearray(data)
    pairs = zip(executables_of(model), executables_of(faulty(model, fault)), strict=True)
    for before, after in pairs:
        streams = zip(before.instruction_bitstreams, after.instruction_bitstreams, strict=True)
        parts = [(a.bitstream, b.bitstream) for a, b in streams]
        for old, new in ((before.parameters, after.parameters), *parts):
            if bytes(old) != bytes(new):
                _put(changed, data, bytes(old), bytes(new))
    return bytes(changed)


def _put(changed: bytearray, data: bytes, old: bytes, new: bytes) -> None:
    at = data.find(old)
    if at < 0 or data.find(old, at + 1) >= 0:
        raise LookupError("what is changed does not stand in the file just once")
    changed[at : at + len(old)] = new


def _bit_of(role: Role, kind: str) -> Draw:
    """A bit of a byte of the parameters that has a role."""

    def draw(random: Random, subject: Subject) -> Fault | None:
        places = subject.places.get(role)
        if places is None or not len(places):
            return None
        executable, place = map(int, places[random.randrange(len(places))])
        bit = random.randrange(8)
        before = subject.executables[executable].parameters[place]
        change = ByteChange(executable, place, before ^ 1 << bit)
        where = f"executable {executable}, parameter byte {place}, bit {bit}"
        return Fault(kind, where, octets=(change,))

    return draw


def _bit_of_fields(names: Sequence[str], bits: int, kind: str) -> Draw:
    """One of the lowest ``bits`` of a field of one of these names; it is no field that is 0."""

    def draw(random: Random, subject: Subject) -> Fault | None:
        found = [
            (where, name, place, value)
            for where in subject.operations
            for name in names
            if name in where[2].values
            for place, value in _values(where[2], name)
            if value or name.endswith("zero_point")
        ]
        if not found:
            return None
        (executable, chunk, operation), name, place, before = random.choice(found)
        width = min(bits, operation.instruction.field(name).width)
        change = _changed(operation, name, place, before ^ 1 << random.randrange(width))
        return of_fields(kind, [(executable, chunk, operation, (change,))])

    return draw


def _values(operation: Operation, name: str) -> list[tuple[int, int]]:
    """Place (-1: it is not repeated) and value of each repetition of a field."""
    value = operation.values[name]
    return list(enumerate(value)) if isinstance(value, tuple) else [(-1, value)]


def _changed(operation: Operation, name: str, place: int, after: int) -> Change:
    field = operation.instruction.field(name)
    before = operation.many(name)[place] if place >= 0 else operation[name]
    after &= (1 << field.width) - 1
    if field.signed and after >> field.width - 1:
        after -= 1 << field.width
    return Change(name, place, before, after)


def of_fields(
    kind: str, changes: Sequence[tuple[int, int, Operation, tuple[Change, ...]]]
) -> Fault:
    """A fault that changes fields of instructions, each with its executable and chunk."""
    fields = tuple(
        Edit(executable, chunk, each.pc, each.instruction.name, own)
        for executable, chunk, each, own in changes
    )
    where = " and ".join(map(str, fields))
    return Fault(kind, where, fields=fields)


def _either(*draws: Draw) -> Draw:
    """What one of these draws, or the others where it finds no place."""

    def draw(random: Random, subject: Subject) -> Fault | None:
        for each in random.sample(draws, len(draws)):
            if (found := each(random, subject)) is not None:
                return found
        return None

    return draw


_TRIES = 100


def _rows_exchanged(random: Random, subject: Subject) -> Fault | None:
    """Two rows of the parameters of one executable that are not equal, in each other's place."""
    sizes = [len(each.parameters) // chip.ROW_BYTES for each in subject.executables]
    if max(sizes) < 2:
        return None
    executable = random.choices(range(len(sizes)), [size if size > 1 else 0 for size in sizes])[0]
    parameters = bytes(subject.executables[executable].parameters)
    for _ in range(_TRIES):
        one, other = random.sample(range(sizes[executable]), 2)
        begins = one * chip.ROW_BYTES, other * chip.ROW_BYTES
        first, second = (parameters[each : each + chip.ROW_BYTES] for each in begins)
        if first != second:
            changes = [
                ByteChange(executable, begin + k, octet)
                for begin, row in zip(begins, (second, first), strict=True)
                for k, octet in enumerate(row)
                if parameters[begin + k] != octet
            ]
            where = f"executable {executable}, rows {one} and {other} of {chip.ROW_BYTES} bytes"
            return Fault("parameter rows exchanged", where, octets=tuple(changes))
    return None


_EXCHANGED = (
    "narrow_read_base",
    "narrow_write_base",
    "wide_read_base",
    "wide_write_base",
    "targets",
)
"""Fields that say where a tile takes from or gives to what another one has or needs."""
_MOVES = ("Mesh", "Ring", "NarrowToWide", "WideToNarrow")


def _halos_exchanged(random: Random, subject: Subject) -> Fault | None:
    """An address or the targets of two moves of different tiles, in each other's place."""
    groups: dict[tuple[int, int, str], list[Operation]] = defaultdict(list)
    for executable, chunk, operation in subject.operations:
        name = operation.instruction.name
        if name.startswith(_MOVES) and "tiles" in operation.values:
            groups[executable, chunk, name].append(operation)
    found = [
        (key, one, other, field)
        for key, group in groups.items()
        # Neighbours in the program belong to one layer.
        for one, other in pairwise(group)
        for field in _EXCHANGED
        if field in one.values and one["tiles"] & other["tiles"] == 0 and one[field] != other[field]
    ]
    if not found:
        return None
    (executable, chunk, _), one, other, field = random.choice(found)
    changes = [
        (executable, chunk, each, (_changed(each, field, -1, value),))
        for each, value in ((one, other[field]), (other, one[field]))
    ]
    return of_fields("halos exchanged", changes)


_READS = ("narrow_read", "parameter_read")


def _other_tensor(random: Random, subject: Subject) -> Fault | None:
    """A tensor instruction begins to read where another one that reads alike begins."""
    alike: dict[tuple[object, ...], set[int]] = defaultdict(set)
    found = []
    for executable, chunk, operation in subject.operations:
        if not operation.instruction.name.startswith("Tensor"):
            continue
        for name in _READS:
            walk = (operation.values[f"{name}_limit"], operation.values[f"{name}_stride"])
            key = (executable, chunk, operation.instruction.name, name, *walk)
            alike[key].add(operation[f"{name}_base"])
            found.append((key, operation))
    found = [each for each in found if len(alike[each[0]]) > 1]
    if not found:
        return None
    key, operation = random.choice(found)
    executable, chunk, _, name = key[:4]
    field = f"{name}_base"
    base = random.choice(sorted(alike[key] - {operation[field]}))
    assert isinstance(executable, int) and isinstance(chunk, int)
    change = _changed(operation, field, -1, base)
    return of_fields("another tensor", [(executable, chunk, operation, (change,))])


_FLOAT_BITS = 24
"""Bits of a scale that are flipped: of its mantissa, and the lowest of its exponent."""
_POINTS = ("output_zero_point", "activation_zero_point", "parameter_zero_point")


def _of_instructions(kind: Kind) -> Draw:
    """One changed instruction, as ``program_faults`` draws it."""

    def draw(random: Random, subject: Subject) -> Fault | None:
        found = drawn_instruction(random, subject.programs, kind)
        return None if found is None else Fault(kind, str(found), fields=(found,))

    return draw


DATA_KINDS: tuple[FaultKind, ...] = (
    FaultKind("weight", "a bit of a weight", _bit_of(Role.WEIGHT, "weight")),
    FaultKind("bias", "a bit of a bias in the parameters", _bit_of(Role.BIAS, "bias")),
    FaultKind(
        "zero point",
        "a bit of a zero point, of an instruction or in the parameters",
        _either(_bit_of_fields(_POINTS, 8, "zero point"), _bit_of(Role.ZERO_POINT, "zero point")),
    ),
    FaultKind(
        "scale",
        "a bit of an output scale, of an instruction or in the parameters",
        _either(
            _bit_of_fields(("output_scale",), _FLOAT_BITS, "scale"), _bit_of(Role.SCALE, "scale")
        ),
    ),
    FaultKind(
        "function table",
        "a bit of a coefficient or a bound of a table",
        _bit_of_fields(("coefficient", "lower_bound"), 32, "function table"),
    ),
    FaultKind("padding", "a bit of parameters that no sum takes", _bit_of(Role.PADDING, "padding")),
    FaultKind("parameter rows exchanged", "two rows of parameters", _rows_exchanged),
    FaultKind(
        "halos exchanged", "an address or the targets of moves of two tiles", _halos_exchanged
    ),
    FaultKind("another tensor", "where an instruction begins to read", _other_tensor),
)
"""Kinds of faults of what a program computes with."""

KINDS = DATA_KINDS + tuple(
    FaultKind(kind, kind.changes, _of_instructions(kind), kind in SYNCHRONISATION) for kind in Kind
)
"""All kinds of faults."""


def drawn(subject: Subject, kind: FaultKind, seed: str, number: int) -> list[Fault]:
    """Up to ``number`` faults of a kind, none twice; the same of the same seed."""
    random = Random(f"{seed}/{kind.name}")
    found: dict[str, Fault] = {}
    for _ in range(_TRIES * number):
        fault = kind.draw(random, subject)
        if fault is None or len(found) == number:
            break
        found.setdefault(fault.where, fault)
    return list(found.values())[:number]
