"""Places graphs and finds their phases: one alone, or several that share the parameter memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from darwinn_formats.errors import Portable

from darwinn_testbench.compiler.program import PACKED_ROW
from darwinn_testbench.compiler.stages.bands import Chain
from darwinn_testbench.compiler.stages.cache import rows_to_keep
from darwinn_testbench.compiler.stages.demand import Demand, DoesNotFitError
from darwinn_testbench.compiler.stages.fitting import fitted
from darwinn_testbench.compiler.stages.host import (
    NO_OPERATION,
    band_phases,
    input_phases,
    output_phase,
)
from darwinn_testbench.compiler.stages.mapping import (
    TooLargeError,
    phases_of,
    scratch_bytes,
    spread_phases,
)
from darwinn_testbench.compiler.stages.operations import (
    AnyOperation,
    IntegerGraph,
    Port,
    sources_of,
)
from darwinn_testbench.compiler.stages.parts import short_enough
from darwinn_testbench.compiler.stages.phases import Areas, Phase
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.storage import Storage


class StaysHere(Portable):
    """An operator turned out not to fit."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(reason)
        self.number, self.reason = number, reason


LEAST_WORKING_ROWS = 256
"""Rows of wide memory that are left for parameters that come and go, at least. With fewer, more
layers wait for theirs; but those that the host sends take some twenty times as long."""


def planned_together(alone: Sequence[Planned]) -> list[Planned]:
    """Plan graphs anew, each with its parameters in rows of its own as far as there are rows.

    Args:
        alone: each graph planned as if no parameters stayed.
    """
    planned = list(alone)
    kept = [0] * len(planned)
    for _ in range(_TRIES):
        least = max((each.areas.least for each in planned), default=0)
        most = max(PACKED_ROW - max(LEAST_WORKING_ROWS, least), 0)
        wanted = [rows_to_keep(each.phases, each.areas, most) for each in planned]
        if all(w <= k for w, k in zip(wanted, kept, strict=True)) or sum(kept) == most:
            break
        kept = _allotted(wanted, most)
        areas = (Areas(sum(kept), (behind - rows, behind)) for rows, behind in _ends(kept))
        try:
            planned = [
                plan(each.graph, area, each.placement)
                for each, area in zip(planned, areas, strict=True)
            ]
        except StaysHere:
            # An operator needs the room: fewer parameters stay.
            break
    return planned


def _ends(kept: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Rows of each program, and the row behind them."""
    return zip(kept, accumulate(kept), strict=True)


def _allotted(wanted: Sequence[int], most: int) -> list[int]:
    """Rows for each program, of ``most`` in all: as wanted, as long as there are any.

    A little more than wanted, since smaller areas hold fewer rows each.
    """
    kept: list[int] = []
    for rows in wanted:
        kept.append(max(min(rows + _SLACK if rows else 0, most - sum(kept)), 0))
    return kept


_TRIES = 4
_SLACK = 4


@dataclass(frozen=True, eq=False)
class Planned:
    """A graph that has been placed, and its phases.

    ``resident`` are bytes of parameters that stay where they are used, by operator.
    """

    graph: IntegerGraph
    areas: Areas
    placement: Placement
    phases: list[Phase]
    resident: Mapping[int, int]


def plan(graph: IntegerGraph, areas: Areas, before: Placement | None = None) -> Planned:
    """Place a graph and find its phases.

    Args:
        graph: the graph.
        areas: rows of wide memory.
        before: its placement with other areas, which holds as long as operators need the same
            narrow memory for themselves.

    Raises:
        StaysHere: an operator does not fit.
    """
    placement = _placed(graph, areas, before)
    phases: list[Phase] = []
    ports = {port.image.index: port for port in graph.inputs}
    # An output leaves as soon as it is there: the host takes it while the chip computes the rest.
    leaving: dict[int, list[Phase]] = defaultdict(list)
    for port in graph.outputs:
        leaving[port.image.index].append(output_phase(port, placement))
    fed = {chain.fed for chain in placement.chains}
    try:
        for port in graph.inputs:
            if port.image.index not in fed:
                phases += input_phases(port, placement, areas)
        for port in graph.inputs:
            phases += spread_phases(NO_OPERATION, port.image.index, placement, areas)
    except (TooLargeError, ValueError) as reason:
        raise StaysHere(_first_reader(graph, port), str(reason)) from None
    resident: Counter[int] = Counter()
    for operation, view, after, comes in _in_order(graph, placement):
        residents = len(areas.residents)
        try:
            if comes is not None:
                index, before_it = comes
                phases += band_phases(ports[index], view, areas, before_it)
                phases += spread_phases(NO_OPERATION, index, view, areas)
            for phase in phases_of(operation, view, areas):
                phases += short_enough(phase)
            if after is not None:
                index = operation.result.index
                phases += spread_phases(operation.number, index, after, areas)
                phases += leaving.pop(index, [])
        except (TooLargeError, ValueError) as reason:
            raise StaysHere(operation.number, str(reason)) from None
        stayed = areas.residents[residents:]
        resident[operation.number] += sum(piece.rows.size for _, piece in stayed)
    phases += [phase for each in leaving.values() for phase in each]
    return Planned(graph, areas, placement, phases, resident)


def _placed(graph: IntegerGraph, areas: Areas, before: Placement | None) -> Placement:
    needs = {each.result.index: scratch_bytes(each, areas) for each in graph.operations}
    scratch = {index: size for index, size in needs.items() if size}
    if before is not None and before.scratch_sizes == scratch:
        return before
    try:
        return fitted(Demand(graph, scratch))
    except DoesNotFitError as reason:
        raise StaysHere(graph.operations[reason.operation].number, str(reason)) from None


def _first_reader(graph: IntegerGraph, port: Port) -> int:
    """The number of the first operator that reads an input."""
    readers = (
        each.number
        for each in graph.operations
        if port.image.index in {image.index for image in sources_of(each)}
    )
    return next(readers)


_Coming = tuple[int, Storage | None]
"""The input of which a band comes, and where its band before is, of which some rows are needed."""


def _coming(placement: Placement, chain: Chain, band: int) -> _Coming | None:
    if chain.fed is None:
        return None
    if chain.again:
        return chain.fed, None
    if band % chain.across:
        return None
    return chain.fed, placement.bands[band - chain.across][chain.fed] if band else None


def _in_order(
    graph: IntegerGraph, placement: Placement
) -> Iterator[tuple[AnyOperation, Placement, Placement | None, _Coming | None]]:
    """Each operation as often as it is computed: what is where then, and when it is done.

    The latter is None of a chain's result before its last band. At last the input of which a band
    comes first.
    """
    step = 0
    while step < len(graph.operations):
        chain = next((each for each in placement.chains if each.first == step), None)
        if chain is None:
            yield graph.operations[step], placement, placement, None
            step += 1
            continue
        result = graph.operations[chain.last].result
        *_, last = bands = placement.bands_of(chain, result)
        for band in bands:
            view = placement.in_band(band)
            comes = _coming(placement, chain, band)
            for member in range(chain.first, chain.last):
                yield graph.operations[member], view, view, comes
                comes = None
            yield graph.operations[chain.last], view, placement if band == last else None, comes
        step = chain.last + 1
