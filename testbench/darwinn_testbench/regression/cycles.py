"""Cycles of many files beside their reviewed baseline."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path

import numpy as np
from darwinn_formats.errors import FormatError
from darwinn_formats.files import Content, read_file
from darwinn_sim.errors import SimulationError
from darwinn_sim.host.dma_trace import TransferDirection, TransferKind
from darwinn_sim.isa import grading
from darwinn_sim.isa.grading import Assumption
from darwinn_sim.isa.table import INSTRUCTIONS
from darwinn_sim.kernel import state
from darwinn_sim.machine import layers
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.timing import Cause, Timing, chip_description
from darwinn_sim.timing.description import built_in
from numpy.typing import NDArray

from darwinn_testbench.chip.cycles import CyclesRow, time_file
from darwinn_testbench.chip.cycles import unmeasured as unmeasured_file
from darwinn_testbench.errors import InputError
from darwinn_testbench.profile.uncovered import BEFORE, cycles_before_layers
from darwinn_testbench.regression import baseline
from darwinn_testbench.regression.baseline import Entry, Metric, MetricRow, Part
from darwinn_testbench.report import Report, Row, Verdict, counted, worst
from darwinn_testbench.report.progress import silent
from darwinn_testbench.request.record import takes
from darwinn_testbench.request.timing import CycleTiming, FileTiming

_WAITS = tuple(cause for cause in Cause if cause not in (Cause.BUSY, Cause.FINISHED))


@dataclass(frozen=True)
class Guarding(CycleTiming):
    """Files beside their baseline at ``path``. With ``update`` it is rewritten with the figures
    (and made where there is none), ``reason`` with every entry that changed, and nothing is judged.
    """

    files: Sequence[str | os.PathLike[str]]
    path: str | os.PathLike[str]
    _: KW_ONLY
    update: bool = False
    reason: str = ""


def guarded_cycles(asked: Guarding) -> Report[MetricRow]:
    """Time every executable of ``files`` and compare the figures with the baseline at ``path``.

    An executable that cannot be timed gives no entry, nor does one of several files that cannot be
    read: it is among ``unmeasured`` in the figures, and its verdict counts.

    Raises:
        InputError: two files of one name, or a description with the name of a built-in one.
        FormatError, InputError, OSError: the only file, or the baseline, is not valid, or there is
            none.
    """
    files, path, update = asked.files, asked.path, asked.update
    chip, host = asked.chip, asked.host
    if update and not asked.reason:
        raise InputError("--update needs --reason: whoever reviews the baseline wants to know why")
    if "-" in files:
        raise InputError("standard input has no name, and a baseline knows files by theirs")
    _check_names(files, chip, host)
    there = Path(path).exists()
    if not there and not update:
        raise InputError(f"{path}: no such file; --update --reason TEXT writes it")
    expected = baseline.load(path) if there else ()
    measured: list[Entry] = []
    unmeasured: list[Row] = []
    assumed: list[tuple[Assumption, ...]] = []
    for done, file in enumerate(files):
        asked.progress(Path(file).name, done, len(files))
        try:
            content = Content(read_file(file), os.fspath(file))
            report = time_file(
                asked.part(FileTiming, source=content, chip_only=True, progress=silent)
            )
        except (FormatError, OSError, InputError, SimulationError) as error:
            if len(files) == 1:
                raise
            content, report = Content(b"", os.fspath(file)), unmeasured_file(file, error)
        assumed.append(report.assumptions)
        digest = hashlib.sha256(content).hexdigest()
        for row in report.rows:
            if row.timing is None:
                name = ": ".join(filter(None, (Path(file).name, row.name)))
                unmeasured.append(replace(row, name=name))
            else:
                measured.append(_entry(file, row, row.timing, digest))
    if update:
        baseline.save(path, baseline.updated(expected, measured, asked.reason))
        expected = baseline.load(path)
    rows = baseline.compare(measured, expected)
    return Report(
        command="cycles",
        file=os.fspath(path),
        rows=rows,
        figures={
            "chip": chip,
            "host": host or chip_description(chip).host,
            "files": len(files),
            "updated": update,
            "unmeasured": unmeasured,
            "assumptions": grading.merged(assumed),
        },
        decided=worst(row.verdict for row in (*rows, *unmeasured)),
        message=_message(len(measured), rows, unmeasured, update),
    )


check_cycles = takes(Guarding, "check_cycles")(guarded_cycles)


def _check_names(files: Sequence[str | os.PathLike[str]], chip: str, host: str | None) -> None:
    """Refuse what the names in a baseline would not tell apart.

    Raises:
        InputError: two files of one name, or a description with the name of a built-in one.
    """
    known: dict[str, str] = {}
    for each in files:
        file, name = os.fspath(each), Path(each).name
        if name in known:
            raise InputError(
                f"{known[name]} and {file}: a baseline knows files by their names: "
                "give each a baseline of its own"
            )
        known[name] = file
    for folder, name in (("chips", chip), ("hosts", host or "")):
        if name not in built_in(folder) and Path(name).stem in built_in(folder):
            raise InputError(
                f"{name}: has the name of a built-in description, and a baseline knows "
                "descriptions by their names: call it otherwise"
            )


def _message(
    entries: int, rows: Sequence[MetricRow], unmeasured: Sequence[Row], update: bool
) -> str:
    executables = counted(entries, "executable")
    failed = [row for row in rows if row.verdict is not Verdict.PASS]
    better = sum(row.change == "better" for row in failed)
    figures = counted(len(rows), "figure")
    text = f"{len(rows) - len(failed)} of {figures} of {executables} are as expected"
    if better:
        text += f", {better} changed for the better"
    if update:
        text = f"the baseline now holds {executables} of these files"
    if unmeasured:
        text += (
            f"; {len(unmeasured)} could not be timed: {unmeasured[0].name}: {unmeasured[0].message}"
        )
    return text


def _entry(file: str | os.PathLike[str], row: CyclesRow, timing: Timing, digest: str) -> Entry:
    figures = {
        "cycles": timing.cycles,
        "tensor_iterations": timing.tensor_iterations,
        "instruction_bytes": _bytes(timing, TransferKind.INSTRUCTION),
        "bytes_in": _bytes(timing, *TransferKind, direction=TransferDirection.INFEED),
        "bytes_out": _bytes(timing, *TransferKind, direction=TransferDirection.OUTFEED),
    }
    if row.estimated_cycles is not None:
        figures["compiler_estimate"] = row.estimated_cycles
    return Entry(
        name=f"{Path(file).name}: {row.name}",
        chip=timing.chip.name,
        host=timing.host.name if timing.host else "none",
        sha256=digest,
        metrics={name: Metric(value) for name, value in figures.items()},
        layers=tuple(_parts(timing)),
    )


def _bytes(timing: Timing, *kinds: TransferKind, direction: TransferDirection | None = None) -> int:
    return sum(
        each.size
        for each in timing.transfers
        if each.kind in kinds and direction in (None, each.direction)
    )


def _parts(timing: Timing) -> Iterator[Part]:
    """The program cut where layers begin: cycles of each layer, who was busy in it, and
    what was waited for."""
    found = layers.find(timing.program.chunks)
    cuts = [0, *(layer.first for layer in found), len(timing.instructions)]
    spans = [layer.end - layer.start for layer in timing.layers]
    names = [BEFORE, *(f"layer {layer.number}" for layer in found)]
    units, numbers = unit_names(timing.program)
    busy = timing.instructions[:, Cause.BUSY]
    for name, begin, end, cycles in zip(
        names, cuts, cuts[1:], [cycles_before_layers(timing), *spans], strict=False
    ):
        part = slice(begin, end)
        totals = np.bincount(numbers[part], busy[part], len(units))
        working = {units[k]: int(totals[k]) for k in np.flatnonzero(totals).tolist()}
        spent = timing.instructions[part].sum(axis=0)
        waits = {cause.label: int(spent[cause]) for cause in _WAITS if spent[cause]}
        yield Part(name, cycles, working, waits)


def unit_names(program: LoweredProgram) -> tuple[list[str], NDArray[np.int64]]:
    """Names of units, and for each instruction the number of the one that executes it."""
    tables = program.tables
    names = list(state.UNIT_NAMES)
    numbers = np.array(tables.unit, np.int64)
    for opcode in np.unique(tables.opcode[numbers < 0]).tolist():
        numbers[(numbers < 0) & (tables.opcode == opcode)] = len(names)
        names.append(INSTRUCTIONS[opcode].name)
    return names, numbers
