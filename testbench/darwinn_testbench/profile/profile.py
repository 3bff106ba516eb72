"""Where the cycles of an inference go: by layer, by unit, and by what was waited for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from darwinn_formats.brief import brief
from darwinn_formats.darwinn import Executable
from darwinn_formats.names import short_name
from darwinn_sim import chip, timing
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.errors import SimulationError
from darwinn_sim.host.dma_trace import TransferDirection, TransferKind
from darwinn_sim.isa import grading
from darwinn_sim.machine.completeness import incomplete_note
from darwinn_sim.machine.lowering import lower_executable, twin
from darwinn_sim.timing import (
    CHIP_STATION_NAMES,
    TILE_STATION_NAMES,
    Cause,
    TimedTransfer,
    Timing,
    stations,
)

from darwinn_testbench.chip.cpu_operators import named_operators
from darwinn_testbench.chip.cycles import link_of, rate_of
from darwinn_testbench.chip.model import choose_model, open_models
from darwinn_testbench.layers.graph import operation as operation_text
from darwinn_testbench.layers.rows import NAMED, LayerRow
from darwinn_testbench.layers.view import view_bound
from darwinn_testbench.profile.energy import Energy, energy_of
from darwinn_testbench.profile.memory import used
from darwinn_testbench.profile.uncovered import Uncovered, uncovered
from darwinn_testbench.report import Report, Row, Verdict, one_line, significant
from darwinn_testbench.report.result import PYTHON_ONLY
from darwinn_testbench.report.spreadsheet import Line
from darwinn_testbench.request.record import takes
from darwinn_testbench.request.records import Naming
from darwinn_testbench.request.timing import NO_HOST, Profiling

if TYPE_CHECKING:
    from darwinn_testbench.comparison.layer_names import LayerName

WAITS = tuple(cause for cause in Cause if cause not in (Cause.BUSY, Cause.FINISHED))
"""What a unit waits for: neither work nor the time after the end."""

SHORT = 0.001
"""Share of the inference: shorter times without a layer are not shown one by one."""

NO_LAYER = "no layer"
"""What stands for the time in which no layer is executed."""

UNIT_NAMES = (*CHIP_STATION_NAMES, *(f"tiles: {name}" for name in TILE_STATION_NAMES))
"""Units around the tiles, then those of each tile."""


@dataclass(frozen=True, kw_only=True)
class ProfileRow(Row):
    """A layer of the program in time, or a time in which no layer is executed.

    ``start`` and ``end`` are cycles from the host's request, ``cycles`` those between them and
    ``share`` their share of the inference; layers can overlap. ``busy`` and ``waiting`` (by cause)
    are cycles of the tensor units of all tiles in the layer's instructions, the waits before each
    of them included: those before the first ended by ``start``. ``utilisation`` is the share of
    their multipliers' cycles that computed. ``kind`` and ``bytes`` are None, and ``operation``
    (the kind with its window, ``conv 3x3 /2``) is empty, if operations were not asked for. Without
    a layer ``number`` is None, and ``message`` says what the host link moved for most of the time.
    ``operator`` and ``tensor`` are the network's, if a reference tells them.
    """

    number: int | None = None
    kind: str | None = None
    operation: str = ""
    start: int
    end: int
    cycles: int
    share: float
    busy: int = 0
    waiting: Mapping[str, float] = field(default_factory=dict)
    iterations: int = 0
    products: int = 0
    utilisation: float = 0.0
    bytes: int | None = None
    operator: str = field(default="", metadata=NAMED)
    tensor: str = field(default="", metadata=NAMED)

    page = "darwinn_testbench.profile.page:tables"
    drawn = ("cycles",)
    unit = "cycles, by what the tensor units did"

    @property
    def parts(self) -> Mapping[str, float]:
        """What the row's cycles were: all of them together are the row's cycles.

        The busy part is the mean of all tiles; the rest is split by the waits.
        """
        if self.number is None:
            return {NO_LAYER: self.cycles}
        busy = self.busy / chip.TILES
        # A layer without a wait is one whose other tiles have no instruction of it.
        waits = self.waiting or {Cause.DISPATCH.label: 1}
        rest = (self.cycles - busy) / sum(waits.values())
        return {Cause.BUSY.label: busy} | {cause: rest * each for cause, each in waits.items()}

    @property
    def csv_lines(self) -> Sequence[Line]:
        """The row with a column for each cause, of those without a wait too."""
        (line,) = super().csv_lines
        waits = {f"waiting for {each.label}": self.waiting.get(each.label, 0) for each in WAITS}
        return ({k: v for k, v in line.items() if not k.startswith("waiting.")} | waits,)

    @property
    def network(self) -> str:
        """The operator of the network, with the first name of its tensor; empty if not known."""
        return f"{self.operator} {short_name(self.tensor)}".strip()


@brief
@dataclass(frozen=True)
class UnitFigures:
    """A unit and its cycles: ``busy`` and ``waiting``, by cause, are the mean of all tiles."""

    name: str
    busy: float
    waiting: Mapping[str, float]
    elements: int


@brief
@dataclass(frozen=True)
class Profiled:
    """What a profile is made of, for charts and timelines; the network if it was asked for.

    ``names`` and ``differences`` (elements that differ) are by layer, if a reference was given.
    """

    timing: Timing
    executable: Executable
    caching: Executable | None
    network: Report[LayerRow] | None = None
    names: Mapping[int, LayerName] = field(default_factory=dict)
    differences: Mapping[int, int] = field(default_factory=dict)


@brief
@dataclass(frozen=True)
class ProfileFigures:
    """The figures of the whole inference; cycles are approximately those of the chip.

    ``inferences_per_second`` are those of one request after another. ``products`` are those of all
    multipliers, zeros of padding included. ``narrow_bytes`` and ``wide_bytes`` are those of a
    tile's memories that are used (``memory.Used``). ``energy`` is an estimate, None where no source
    carries one.
    """

    chip: str
    host: str
    clock_hz: float
    cycles: int
    milliseconds: float
    inferences_per_second: float
    fixed_milliseconds: float
    fixed_share: float
    utilisation: float
    products: int
    waiting: Mapping[str, float]
    units: tuple[UnitFigures, ...]
    memory_bytes: Mapping[str, int]
    transfer_bytes: Mapping[str, int]
    streamed_parameter_bytes: int
    cached_parameter_bytes: int
    narrow_bytes: int
    wide_bytes: int
    energy: Energy | None
    profiled: Profiled = field(repr=False, metadata=PYTHON_ONLY)


def profiled(asked: Profiling) -> Report[ProfileRow]:
    """Time one inference and say where its cycles went.

    The figures of the report are one ``ProfileFigures`` under ``profile``.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError: the file has no such model.
        SimulationError: the program fails, or uses what the model of the chip lacks.
    """
    model, assumptions = asked.model, asked.assumptions
    bound = choose_model(open_models(asked.source, asked.others), model)
    on_cpu = bound.on_cpu
    asked.progress("timing", 0, None)
    chip = timing.chip_description(asked.chip_name)
    link = link_of(chip, asked.host_name)
    program = lower_executable(bound.compiled.inference, assumptions=assumptions)
    view = partial(view_bound, bound, model=model, assumptions=assumptions, program=twin(program))
    with ThreadPoolExecutor(1) as beside:
        # Kernels leave Python's lock to others, so that both have a core where there are two.
        viewing = beside.submit(copy_context().run, view) if asked.operations else None
        timed = timing.simulate(
            bound.compiled.inference,
            chip,
            link,
            spans=True,
            assumptions=assumptions,
            program=program,
        )
        viewed, unseen = _viewed(viewing)
    assumed = [timed.program.assumptions if viewed is None else viewed.assumptions]
    names: Mapping[int, LayerName] = {}
    differing: Mapping[int, int] = {}
    if asked.reference is not None:
        # Imported here: no other call should wait for what compares.
        from darwinn_testbench.comparison import layer_names

        tensors = layer_names.tensors_of(asked.part(Naming))
        names, differing = layer_names.names_of(tensors), layer_names.differing_elements(tensors)
        if viewed is not None:
            viewed = replace(viewed, rows=layer_names.with_names(viewed.rows, names))
    compiled = bound.compiled
    made_of = Profiled(timed, compiled.inference, compiled.caching, viewed, names, differing)
    figures = _figures(timed, made_of)
    message = (
        f"about {timed.cycles:,} cycles, {significant(1000 * timed.seconds)} ms at "
        f"{rate_of(timed.chip)} behind {figures.host}, "
        f"{100 * timed.fixed_share:.0f} % of it the host's fixed cost"
    )
    alone = f"without the operators on the CPU: {named_operators(on_cpu)}" if on_cpu else ""
    notes = (message, unseen, alone, incomplete_note(timed.program.chunks), bound.note)
    return Report(
        command="profile",
        file=bound.file,
        rows=_rows(timed, viewed.rows if viewed else (), names),
        figures={"model": model, "profile": figures, "assumptions": grading.merged(assumed)},
        message="; ".join(filter(None, notes)),
    )


profile = takes(Profiling, "profile")(profiled)


def _viewed(viewing: Future[Report[LayerRow]] | None) -> tuple[Report[LayerRow] | None, str]:
    """What the layers compute, or why that is not known: times are known without it."""
    try:
        return None if viewing is None else viewing.result(), ""
    except SimulationError as error:
        return None, f"operations unknown: {one_line(error)}"


def queue_name(transfer: TimedTransfer) -> str:
    """What the queue of a transfer is called: what it moves, and scratch which way."""
    if transfer.kind is TransferKind.SCRATCH:
        return f"scratch {transfer.direction.value}"
    return str(transfer.kind.value)


def _rows(
    timed: Timing, operations: Sequence[LayerRow], names: Mapping[int, LayerName]
) -> tuple[ProfileRow, ...]:
    named = {row.number: row for row in operations}
    rows = [_row_without_layer(timed, part) for part in uncovered(timed)]
    for layer in timed.layers:
        cycles = layer.end - layer.start
        peak = chip.TILES * chip.LANES * WORD_BYTES * max(cycles, 1)
        operation, name = named.get(layer.number), names.get(layer.number)
        rows.append(
            ProfileRow(
                name=f"layer {layer.number}",
                verdict=Verdict.PASS,
                number=layer.number,
                kind=operation.kind if operation else None,
                operation=operation_text(operation) if operation else "",
                start=layer.start,
                end=layer.end,
                cycles=cycles,
                share=cycles / max(timed.cycles, 1),
                busy=int(layer.cycles[Cause.BUSY]),
                waiting=_waiting(layer.cycles.tolist()),
                iterations=layer.iterations,
                products=layer.products,
                utilisation=layer.products / peak,
                bytes=operation.bytes_read + operation.bytes_written if operation else None,
                operator=name.operator if name else "",
                tensor=name.tensor if name else "",
            )
        )
    return tuple(sorted(rows, key=lambda row: row.start))


def _row_without_layer(timed: Timing, part: Uncovered) -> ProfileRow:
    return ProfileRow(
        name=part.name,
        verdict=Verdict.PASS,
        message=_moved_most(timed, part),
        start=part.start,
        end=part.end,
        cycles=part.cycles,
        share=part.cycles / max(timed.cycles, 1),
    )


def _moved_most(timed: Timing, part: Uncovered) -> str:
    """The DMA queue that is moving for most of ``part``, and its share."""
    moving: Counter[str] = Counter()
    for each in timed.transfers:
        moving[queue_name(each)] += max(min(each.end, part.end) - max(each.start, part.start), 0)
    name, cycles = max(moving.items(), key=lambda item: item[1], default=("", 0))
    return f"DMA {name} {100 * cycles / part.cycles:.0f} %" if cycles else "no DMA"


def _figures(timed: Timing, profiled: Profiled) -> ProfileFigures:
    transfers: Counter[str] = Counter()
    for transfer in timed.transfers:
        transfers[queue_name(transfer)] += transfer.size
    caching = profiled.caching
    memory = used(timed.program, caching)
    tensor = timed.tile_usage[:, stations.TENSOR].sum(axis=0)
    return ProfileFigures(
        chip=timed.chip.name,
        host=timed.host.name if timed.host else NO_HOST,
        clock_hz=timed.chip.clock.value,
        cycles=timed.cycles,
        milliseconds=1000 * timed.seconds,
        inferences_per_second=1 / timed.seconds,
        fixed_milliseconds=1000 * timed.fixed_seconds,
        fixed_share=timed.fixed_share,
        utilisation=timed.utilisation,
        products=sum(layer.products for layer in timed.layers),
        waiting={cause.label: float(tensor[cause]) / max(int(tensor.sum()), 1) for cause in Cause},
        units=tuple(_units(timed)),
        memory_bytes=_memory_bytes(timed),
        transfer_bytes=dict(transfers),
        streamed_parameter_bytes=transfers["parameter"],
        cached_parameter_bytes=0 if caching is None else len(caching.parameters),
        narrow_bytes=memory.narrow,
        wide_bytes=memory.wide,
        energy=energy_of(timed),
        profiled=profiled,
    )


def _units(timed: Timing) -> list[UnitFigures]:
    usage = np.concatenate([timed.chip_usage.astype(float), timed.tile_usage.mean(axis=0)])
    elements = np.concatenate([timed.chip_elements, timed.tile_elements.sum(axis=0)])
    return [
        UnitFigures(name, float(row[Cause.BUSY]), _waiting(row.tolist()), int(count))
        for name, row, count in zip(UNIT_NAMES, usage, elements, strict=True)
        if count
    ]


def _waiting(cycles: Sequence[float]) -> dict[str, float]:
    """Cycles by cause, without zeros."""
    return {cause.label: cycles[cause] for cause in WAITS if cycles[cause]}


def _memory_bytes(timed: Timing) -> dict[str, int]:
    """Bytes that crossed the ports of the memories of all tiles, and the ring.

    The tensor unit reads a word of narrow memory and a row of wide memory in each iteration.
    """
    counts = dict(zip(TILE_STATION_NAMES, timed.tile_elements.sum(axis=0).tolist(), strict=True))
    sent = sum(count for name, count in counts.items() if name.endswith(" send"))
    received = sum(count for name, count in counts.items() if name.endswith(" receive"))
    iterations = counts["tensor unit"]
    to_wide, to_narrow = counts["narrow-to-wide"], counts["wide-to-narrow"]
    consumed = counts["ring consumer A"] + counts["ring consumer B"]
    return {
        "narrow memory, read": WORD_BYTES * (iterations + to_wide + sent),
        "narrow memory, written": WORD_BYTES * (counts["result writer"] + to_narrow + received),
        "wide memory, read": chip.ROW_BYTES * (iterations + counts["ring producer"])
        + WORD_BYTES * to_narrow,
        "wide memory, written": WORD_BYTES * to_wide + chip.ROW_BYTES * consumed,
        "ring": WORD_BYTES * timed.ring_words,
        "mesh": WORD_BYTES * sent,
        "host link, in": _crossed(timed, TransferDirection.INFEED),
        "host link, out": _crossed(timed, TransferDirection.OUTFEED),
    }


def _crossed(timed: Timing, direction: TransferDirection) -> int:
    return sum(each.size for each in timed.transfers if each.direction is direction)
