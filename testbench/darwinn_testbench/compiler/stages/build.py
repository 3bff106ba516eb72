"""From a model to an executable: all stages, and how much of the network goes to the chip.

The chip gets one piece of the network. An operator that has no mapping, or does not fit, stays on
the CPU, and so does everything that depends on it; the stages then run again on what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from darwinn_formats import tflite
from darwinn_formats.darwinn import Package
from darwinn_reference.tflite.graph import ABSENT, STATE_SUFFIX, Network, Operator, network

from darwinn_testbench.compiler.assembler import Assembler
from darwinn_testbench.compiler.package import token_of
from darwinn_testbench.compiler.parameters import blob
from darwinn_testbench.compiler.program import begin, end
from darwinn_testbench.compiler.stages.cache import Cache, cache
from darwinn_testbench.compiler.stages.executable import (
    chips_part,
    package_of,
    with_custom_operators,
)
from darwinn_testbench.compiler.stages.folding import folded, is_folded
from darwinn_testbench.compiler.stages.host import NO_OPERATION
from darwinn_testbench.compiler.stages.importer import Importer, StaysError
from darwinn_testbench.compiler.stages.malformed import malformed
from darwinn_testbench.compiler.stages.operations import AnyOperation, IntegerGraph, Port
from darwinn_testbench.compiler.stages.phases import Areas, Phase
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.planning import (
    Planned,
    StaysHere,
    plan,
    planned_together,
)
from darwinn_testbench.compiler.stages.schedule import TooLongError, streamed, write_phases


@dataclass(frozen=True)
class Fate:
    """Where an operator of the network runs: on the chip if ``reason`` is empty.

    ``behind`` is the number of the operator that ended the chip's piece before it. ``piece`` is the
    number of the chip's piece that has it.
    """

    number: int
    name: str
    reason: str = ""
    behind: int | None = None
    piece: int = 0

    @property
    def on_chip(self) -> bool:
        """Whether the chip runs it."""
        return not self.reason


@dataclass(frozen=True, eq=False)
class Piece:
    """What the chip computes by one request.

    ``operators`` are numbers in the network. ``part`` is the piece as a model of its own, before
    compilation and compiled. ``places`` say for each phase where its instructions begin and end in
    the program: the chunk, and the instruction in it. ``resident`` are bytes of parameters that
    stay where they are used, by operator.
    """

    operators: frozenset[int]
    part: tuple[bytes, bytes]
    package: Package
    graph: IntegerGraph
    placement: Placement
    phases: tuple[Phase, ...]
    cache: Cache
    places: tuple[tuple[Spot, Spot], ...]
    resident: Mapping[int, int]


Spot = tuple[int, int]
"""A chunk, and an instruction in it."""


@dataclass(frozen=True, eq=False)
class Built:
    """What came out: the file, and the pieces that the chip computes.

    ``data`` is empty if nothing goes to the chip.
    """

    fates: tuple[Fate, ...]
    data: bytes = b""
    pieces: tuple[Piece, ...] = ()


@dataclass(frozen=True, eq=False)
class Asked:
    """A model to compile, with the name of its executables.

    ``stays`` are operators that are to stay on the CPU, by number, and why.
    """

    model: tflite.Model
    name: str
    stays: Mapping[int, str] = field(default_factory=dict)


class Worth(Protocol):
    """Decides which further pieces of a model are worth a request of their own."""

    def may_be(self, model: tflite.Model, operators: frozenset[int]) -> bool:
        """Whether a piece of some of these operators could be worth it, without making one."""

    def against(self, model: tflite.Model, piece: Piece) -> str:
        """Why a piece is not worth it; empty if it is."""


def build_together(models: Sequence[Asked], worth: Worth | None = None) -> tuple[Built, ...]:
    """Compile models whose parameters share the memory of the chip.

    Args:
        models: the models; earlier ones have their parameters kept first.
        worth: decides on further pieces of a model; None: each model has one piece.

    Raises:
        ModelError: a model is of a kind of which no network is made.
    """
    models = [replace(each, model=folded(each.model, each.name)) for each in models]
    cuts = [_cut(each, worth) for each in models]
    planned = iter(planned_together([each for cut in cuts for each in cut.alone]))
    programs = []
    for number, cut in enumerate(cuts):
        try:
            programs.append([_assembled(next(planned)) for _ in cut.alone])
        except TooLongError as reason:
            shorter = _without_long(models[number], reason)
            return build_together([*models[:number], shorter, *models[number + 1 :]], worth)
    flat = [program for each in programs for program in each]
    # Programs that share the memory say so by one token.
    token = None if len(flat) < 2 else token_of(*(part for each in flat for part in each.contents))
    return tuple(
        _finished(each, cut, program, token)
        for each, cut, program in zip(models, cuts, programs, strict=True)
    )


def _without_long(asked: Asked, reason: TooLongError) -> Asked:
    """A model of which the operator of a step that is too long stays on the CPU."""
    if reason.operation == NO_OPERATION:
        raise reason
    return replace(asked, stays={**asked.stays, reason.operation: str(reason)})


@dataclass(frozen=True, eq=False)
class _Cut:
    """Where the operators of a model run, and each of the chip's pieces planned by itself."""

    fates: tuple[Fate, ...]
    alone: tuple[Planned, ...]


def _cut(asked: Asked, worth: Worth | None) -> _Cut:
    """Find the pieces of a model: the largest first, then pieces of what is left.

    What is left is what the piece does not need, and what it needs: no piece takes some of both,
    so no two pieces wait for each other.
    """
    source = network(asked.model, asked.name)
    stays = {**malformed(source), **asked.stays}
    fates, planned = _largest(source, stays)
    if planned is None:
        return _Cut(fates, ())
    found = {fate.number: fate for fate in fates}
    alone = [planned]
    everything = frozenset(found)
    rest = _left(source, everything, _on_chip(fates)) if worth else []
    while worth and rest:
        candidates = rest.pop(0)
        if not worth.may_be(asked.model, candidates):
            continue
        others = dict.fromkeys(sorted(everything - candidates), _ELSEWHERE)
        fates, planned = _largest(source, {**others, **stays})
        against = ""
        if planned is not None:
            against = worth.against(asked.model, _alone(asked, fates, planned))
            rest += _left(source, candidates, _on_chip(fates))
        for fate in fates:
            if fate.number not in candidates:
                continue
            if fate.on_chip and against:
                before = found[fate.number]
                found[fate.number] = replace(before, reason=f"{before.reason}; {against}")
            elif fate.on_chip or fate.behind is None:
                found[fate.number] = replace(fate, piece=len(alone))
        if planned is not None and not against:
            alone.append(planned)
    return _Cut(tuple(found[number] for number in sorted(found)), tuple(alone))


_ELSEWHERE = "in another piece"


def _left(
    source: Network, candidates: frozenset[int], taken: frozenset[int]
) -> list[frozenset[int]]:
    """What may become further pieces: what operators ``taken`` do not need, and what they need."""
    needed = {
        each.index
        for number in taken
        for index in source.operators[number].outputs
        for each in source.operators_before(index)
    }
    left = candidates - taken
    return [each for each in (left - needed, left & needed) if each]


def _on_chip(fates: Sequence[Fate]) -> frozenset[int]:
    return frozenset(fate.number for fate in fates if fate.on_chip)


def _largest(source: Network, stays: Mapping[int, str]) -> tuple[tuple[Fate, ...], Planned | None]:
    """The largest piece that fits the chip by itself, and where each operator runs then."""
    kept = dict(stays)
    while True:
        fates, graph = _partition(source, kept)
        if graph is None:
            return fates, None
        try:
            return fates, plan(graph, Areas())
        except StaysHere as found:
            kept = _without(source, kept, found)


def _without(source: Network, kept: Mapping[int, str], found: StaysHere) -> dict[int, str]:
    """Leave an operator out that does not fit: with what depends on it, or with what it needs.

    The chip gets one piece: what is before the operator, or what is behind it. The larger one is
    taken.
    """
    alone = {**kept, found.number: found.reason}
    needed = source.operators_before(source.operators[found.number].outputs[0])
    name = f"before {found.number} {source.operators[found.number].name}"
    behind = {**kept, **{each.index: name for each in needed}, found.number: found.reason}
    sizes = [
        sum(fate.on_chip for fate in _partition(source, choice)[0]) for choice in (alone, behind)
    ]
    return alone if sizes[0] >= sizes[1] else behind


@dataclass(frozen=True, eq=False)
class _Assembled:
    """A graph that has been planned, and the program that computes it."""

    planned: Planned
    cached: Cache
    program: Assembler
    places: tuple[tuple[Spot, Spot], ...]

    @property
    def contents(self) -> tuple[bytes, ...]:
        """What tells it from other programs: parameters that stay, and instructions."""
        chunks = (each.bitstream for each in self.program.chunks())
        return blob(self.cached.blocks), *chunks


def _assembled(planned: Planned) -> _Assembled:
    """Write the program of a graph, and note where each phase is in it."""
    cached = cache(planned.phases, planned.areas)
    program = Assembler()
    spots: list[tuple[Spot, Spot]] = [((0, 0), (0, 0))] * len(planned.phases)

    def noting(number: int, emit: Callable[[Assembler], None]) -> Callable[[Assembler], None]:
        def noted(program: Assembler) -> None:
            begin = program.place
            emit(program)
            spots[number] = begin, program.place

        return noted

    noted = [
        replace(phase, emit=noting(number, phase.emit))
        for number, phase in enumerate(planned.phases)
    ]
    begin(program)
    write_phases(program, noted, cached)
    end(program)
    return _Assembled(planned, cached, program, tuple(spots))


def _alone(asked: Asked, fates: Sequence[Fate], planned: Planned) -> Piece:
    """A piece as if it were the only one."""
    (kept,) = planned_together([planned])
    return _piece(asked, _on_chip(fates), _assembled(kept), None)


def _piece(asked: Asked, operators: frozenset[int], made: _Assembled, token: int | None) -> Piece:
    planned, cached = made.planned, made.cached
    parameters = b"".join(piece.rows.tobytes() for piece in streamed(planned.phases, cached))
    package = package_of(
        asked.name, planned.graph, planned.placement, made.program, parameters, cached, token
    )
    return Piece(
        operators,
        chips_part(asked.model, planned.graph, package, operators),
        package,
        planned.graph,
        planned.placement,
        tuple(planned.phases),
        cached,
        made.places,
        planned.resident,
    )


def _finished(asked: Asked, cut: _Cut, programs: Sequence[_Assembled], token: int | None) -> Built:
    """The model with its custom operators."""
    if not programs:
        return Built(cut.fates)
    pieces = tuple(
        _piece(
            asked,
            frozenset(fate.number for fate in cut.fates if fate.on_chip and fate.piece == number),
            program,
            token,
        )
        for number, program in enumerate(programs)
    )
    parts = [(each.graph, each.package, each.operators) for each in pieces]
    return Built(cut.fates, with_custom_operators(asked.model, parts), pieces)


# --- partition ----------------------------------------------------------------------------------


def _partition(
    source: Network, stays: Mapping[int, str]
) -> tuple[tuple[Fate, ...], IntegerGraph | None]:
    """Where each operator runs, and the graph of those on the chip."""
    fates, importer, operations = _walk(source, stays)
    chip = {each.number for each in fates if each.on_chip}
    if not operations:
        return tuple(replace(each, reason=each.reason or _VIEW) for each in fates), None
    outputs = _outputs(source, chip)
    inputs = [_port(source, importer, index) for index in _inputs(source, chip)]
    states = [
        replace(each, name=each.name + STATE_SUFFIX, state=True)
        for each in inputs
        if source.tensors[each.index].variable
    ]
    return fates, IntegerGraph(
        tuple(operations),
        tuple(inputs),
        (*(_port(source, importer, index) for index in outputs), *states),
    )


FOLDED = "a constant, which nothing has to compute"
"""Why an operator is nowhere: its results follow from the file (``folding``)."""
_VIEW = "another shape of bytes that nothing on the chip needs"


def _walk(
    source: Network, stays: Mapping[int, str], apart: frozenset[int] = frozenset()
) -> tuple[tuple[Fate, ...], Importer, list[AnyOperation]]:
    importer = Importer(source, apart, stays.keys())
    fates: list[Fate] = []
    operations: list[AnyOperation] = []
    made: set[int] = set()
    behind: dict[int, int] = {}
    views: dict[int, int] = {}
    idle: dict[int, str] = {}
    for operator in source.operators:
        number, name = operator.index, operator.name
        if is_folded(source, operator):
            fates.append(Fate(number, name, FOLDED))
            continue
        ender = next((behind[k] for k in operator.inputs if k in behind), None)
        if ender is not None:
            blocker = source.operators[ender]
            fates.append(Fate(number, name, f"behind {ender} {blocker.name}", ender))
            behind.update(dict.fromkeys(operator.outputs, ender))
            continue
        try:
            if number in stays:
                raise StaysError(stays[number])
            taken = importer.take(operator)
        except StaysError as reason:
            fates.append(Fate(number, name, str(reason)))
            found = made.intersection(operator.inputs)
            if found:
                behind.update(dict.fromkeys(operator.outputs, number))
            if found <= views.keys():
                idle.update((views[index], _VIEW) for index in found)
            continue
        fates.append(Fate(number, name))
        if not taken and all(k in views or k not in made for k in operator.inputs):
            views.update(dict.fromkeys(operator.outputs, number))
        made.update(operator.outputs)
        operations += taken
    left = importer.framed.keys() & _outputs(source, set(_on_chip(fates)))
    if left:
        return _walk(source, stays, apart | left)
    walked = tuple(fates), importer, operations
    if idle:
        # What the chip would only pass on keeps what is behind the operator from the chip.
        other = _walk(source, {**stays, **idle}, apart)
        walked = max(walked, other, key=lambda each: (bool(each[2]), len(_on_chip(each[0]))))
    return walked


def _data(source: Network, operator: Operator) -> list[int]:
    """Inputs that are computed."""
    return [
        index
        for index in operator.inputs
        if index != ABSENT and source.tensors[index].constant is None
    ]


def _made(source: Network, chip: set[int]) -> set[int]:
    return {index for number in chip for index in source.operators[number].outputs}


def _inputs(source: Network, chip: set[int]) -> list[int]:
    made = _made(source, chip)
    needed = [index for number in sorted(chip) for index in _data(source, source.operators[number])]
    return list(dict.fromkeys(index for index in needed if index not in made))


def _outputs(source: Network, chip: set[int]) -> list[int]:
    made = _made(source, chip)
    wanted = set(source.outputs)
    for operator in source.operators:
        if operator.index not in chip and not is_folded(source, operator):
            wanted.update(operator.inputs)
    return sorted(made & wanted)


def _port(source: Network, importer: Importer, index: int) -> Port:
    tensor = source.tensors[index]
    is_signed = tensor.dtype == np.int8
    return Port(index, tensor.name, tensor.shape, importer.image(index), is_signed)
