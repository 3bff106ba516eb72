"""From a model to an executable: all stages, and how much of the network goes to the chip.

The chip gets one piece of the network. An operator that has no mapping, or does not fit, stays on
the CPU, and so does everything that depends on it; the stages then run again on what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from darwinn_formats import tflite
from darwinn_formats.darwinn import Package
from darwinn_formats.errors import Portable
from darwinn_reference.tflite.graph import ABSENT, Network, Operator, network

from darwinn_testbench.compiler.assembler import Assembler
from darwinn_testbench.compiler.program import PACKED_ROW, begin, end
from darwinn_testbench.compiler.stages.cache import Cache, cache, rows_to_keep
from darwinn_testbench.compiler.stages.executable import (
    chips_part,
    package_of,
    with_custom_operator,
)
from darwinn_testbench.compiler.stages.fitting import chains_of
from darwinn_testbench.compiler.stages.host import NO_OPERATION, input_phases, output_phase
from darwinn_testbench.compiler.stages.importer import Importer, StaysError
from darwinn_testbench.compiler.stages.mapping import (
    TooLargeError,
    phases_of,
    scratch_bytes,
    spread_phases,
)
from darwinn_testbench.compiler.stages.operations import AnyOperation, IntegerGraph, Port
from darwinn_testbench.compiler.stages.phases import Areas, Phase
from darwinn_testbench.compiler.stages.placement import DoesNotFitError, Placement, place
from darwinn_testbench.compiler.stages.schedule import streamed, write_phases


@dataclass(frozen=True)
class Fate:
    """Where an operator of the network runs: on the chip if ``reason`` is empty.

    ``behind`` is the number of the operator that ended the chip's piece before it.
    """

    number: int
    name: str
    reason: str = ""
    behind: int | None = None

    @property
    def on_chip(self) -> bool:
        """Whether the chip runs it."""
        return not self.reason


@dataclass(frozen=True, eq=False)
class Built:
    """What came out: the file, and what it is made of.

    ``part`` is the chip's part of the model as a model of its own, before compilation and compiled.
    ``data`` is empty if nothing goes to the chip, and so are the others but ``fates``.
    """

    fates: tuple[Fate, ...]
    data: bytes = b""
    part: tuple[bytes, bytes] = (b"", b"")
    package: Package | None = None
    graph: IntegerGraph | None = None
    placement: Placement | None = None
    phases: tuple[Phase, ...] = ()
    cache: Cache | None = None


def build(model: tflite.Model, name: str, stays: Mapping[int, str] | None = None) -> Built:
    """Compile a model.

    Args:
        model: the model before compilation.
        name: of the executable.
        stays: operators that are to stay on the CPU, by number, and why.

    Raises:
        ModelError: it is of a kind of which no network is made.
    """
    source = network(model, name)
    kept = dict(stays or {})
    while True:
        fates, graph = _partition(source, kept)
        if graph is None:
            return Built(fates)
        try:
            return _built(model, name, fates, graph)
        except _StaysHere as found:
            kept = _without(source, kept, found)


class _StaysHere(Portable):
    """An operator turned out not to fit."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(reason)
        self.number, self.reason = number, reason


LEAST_WORKING_ROWS = 600
"""Rows of wide memory that are left for parameters that come and go."""


def _without(source: Network, kept: Mapping[int, str], found: _StaysHere) -> dict[int, str]:
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


def _built(model: tflite.Model, name: str, fates: tuple[Fate, ...], graph: IntegerGraph) -> Built:
    planned = _plan(graph, Areas())
    kept = 0
    for _ in range(_TRIES):
        wanted = rows_to_keep(planned.phases, planned.areas)
        most = PACKED_ROW - max(LEAST_WORKING_ROWS, planned.areas.least)
        if wanted <= kept or kept == max(most, 0):
            break
        # A little more, since smaller areas hold fewer rows each.
        kept = max(min(wanted + _SLACK, most), 0)
        planned = _plan(graph, Areas(kept))
    return _written(model, name, fates, graph, planned)


_TRIES = 4
_SLACK = 4


@dataclass(frozen=True, eq=False)
class _Planned:
    areas: Areas
    placement: Placement
    phases: list[Phase]


def _plan(graph: IntegerGraph, areas: Areas) -> _Planned:
    """Place a graph and find its phases."""
    needs = {each.number: scratch_bytes(each, areas) for each in graph.operations}
    scratch = {number: size for number, size in needs.items() if size}
    try:
        placement = place(graph, scratch, chains_of(graph, scratch))
    except DoesNotFitError as reason:
        raise _StaysHere(graph.operations[reason.operation].number, str(reason)) from None
    phases = [phase for port in graph.inputs for phase in input_phases(port, placement, areas)]
    for port in graph.inputs:
        phases += spread_phases(NO_OPERATION, port.image.index, placement, areas)
    for operation, view, after in _in_order(graph, placement):
        try:
            phases += phases_of(operation, view, areas)
            if after is not None:
                index = operation.result.index
                phases += spread_phases(operation.number, index, after, areas)
        except TooLargeError as reason:
            raise _StaysHere(operation.number, str(reason)) from None
    phases += [output_phase(port, placement) for port in graph.outputs]
    return _Planned(areas, placement, phases)


def _in_order(
    graph: IntegerGraph, placement: Placement
) -> Iterator[tuple[AnyOperation, Placement, Placement | None]]:
    """Each operation as often as it is computed: what is where then, and when it is done.

    The latter is None of a chain's result before its last band.
    """
    step = 0
    while step < len(graph.operations):
        chain = next((each for each in placement.chains if each.first == step), None)
        if chain is None:
            yield graph.operations[step], placement, placement
            step += 1
            continue
        for band in range(chain.bands):
            view = placement.in_band(band)
            for member in range(chain.first, chain.last):
                yield graph.operations[member], view, view
            is_last = band == chain.bands - 1
            yield graph.operations[chain.last], view, placement if is_last else None
        step = chain.last + 1


def _written(
    model: tflite.Model,
    name: str,
    fates: tuple[Fate, ...],
    graph: IntegerGraph,
    planned: _Planned,
) -> Built:
    cached = cache(planned.phases, planned.areas)
    program = Assembler()
    begin(program)
    write_phases(program, planned.phases, cached)
    end(program)
    parameters = b"".join(piece.rows.tobytes() for piece in streamed(planned.phases, cached))
    package = package_of(name, graph, planned.placement, program, parameters, cached)
    on_chip = frozenset(each.number for each in fates if each.on_chip)
    return Built(
        fates,
        with_custom_operator(model, graph, package, on_chip),
        chips_part(model, graph, package, on_chip),
        package,
        graph,
        planned.placement,
        tuple(planned.phases),
        cached,
    )


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
    inputs = _inputs(source, chip)
    return fates, IntegerGraph(
        tuple(operations),
        tuple(_port(source, importer, index) for index in inputs),
        tuple(_port(source, importer, index) for index in outputs),
    )


_VIEW = "another shape of bytes that nothing on the chip needs"


def _walk(
    source: Network, stays: Mapping[int, str]
) -> tuple[tuple[Fate, ...], Importer, list[AnyOperation]]:
    importer = Importer(source)
    fates: list[Fate] = []
    operations: list[AnyOperation] = []
    made: set[int] = set()
    behind: dict[int, int] = {}
    for operator in source.operators:
        number, name = operator.index, operator.name
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
            if not made.isdisjoint(operator.inputs):
                behind.update(dict.fromkeys(operator.outputs, number))
            continue
        fates.append(Fate(number, name))
        made.update(operator.outputs)
        operations += taken
    return tuple(fates), importer, operations


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
        if operator.index not in chip:
            wanted.update(operator.inputs)
    return sorted(made & wanted)


def _port(source: Network, importer: Importer, index: int) -> Port:
    tensor = source.tensors[index]
    return Port(index, tensor.name, tensor.shape, importer.image(index))
