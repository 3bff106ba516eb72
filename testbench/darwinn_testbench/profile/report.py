"""Everything that is known of an executable, on one page: verdict, time, memory, DMA, outputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from darwinn_formats.brief import brief
from darwinn_reference.tflite.model import CpuModel
from darwinn_sim.host.dma_trace import DmaComparison, DmaRow

from darwinn_testbench.chip.cpu_operators import CPU_COLUMNS
from darwinn_testbench.chip.cpu_time import CpuTime, cpu_times
from darwinn_testbench.chip.dma_check import DmaFigures
from darwinn_testbench.comparison.asked import Asked, between_programs
from darwinn_testbench.comparison.check import OutputRow
from darwinn_testbench.comparison.verify import answer
from darwinn_testbench.pages import Page, Section, Table, render, sentence, table_of
from darwinn_testbench.profile.environment import environment
from darwinn_testbench.profile.page import memory_sections, summary, time_sections, times
from darwinn_testbench.profile.profile import (
    ProfileFigures,
    ProfileRow,
)
from darwinn_testbench.profile.profile import profiled as times_of
from darwinn_testbench.profile.tables import OUTPUT_COLUMNS
from darwinn_testbench.report import Column, Report, counted
from darwinn_testbench.request.record import takes
from darwinn_testbench.request.timing import ChipPage, Profiling

_MAX_TRANSFERS = 500
"""Transfers that the page lists; --json of `darwinn dma` has all of them."""


@brief
@dataclass(frozen=True)
class ReportPage:
    """The page, and the verification that decides its verdict."""

    verification: Report[OutputRow]
    html: bytes


def page_of(asked: ChipPage) -> ReportPage:
    """Verify, time and describe a compiled model; raises as ``verify`` and ``profile`` do."""
    source, reference = asked.source, asked.reference
    if reference is not None and between_programs(source, reference):
        assert isinstance(reference, bytes | str | os.PathLike)
        # The page shows outputs beside those of the network: this refuses any other file.
        CpuModel.load(reference)
    verified = answer(asked.part(Asked))
    profiled = times_of(asked.part(Profiling))
    asked.progress("drawing", 0, None)
    page = Page(
        title=Path(verified.file).name,
        verdict=verified.verdict,
        summary=f"{sentence(verified.headline)} {sentence(profiled.message)}",
        sections=tuple(_sections(verified, profiled, () if asked.chip_only else cpu_times(source))),
        times=times(profiled),
    )
    return ReportPage(verified, render(page))


make_report = takes(ChipPage, "make_report")(page_of)


def _sections(
    verified: Report[OutputRow], profiled: Report[ProfileRow], on_cpu: Sequence[CpuTime]
) -> list[Section]:
    found: ProfileFigures = profiled.figures["profile"]
    outputs = table_of(OUTPUT_COLUMNS, verified.rows)
    return [
        summary(found),
        *_assumptions(verified),
        Section("Outputs", _inputs(verified), [outputs]),
        *(_on_cpu(each) for each in on_cpu),
        *time_sections(profiled),
        *memory_sections(profiled),
        *_dma(verified.figures["dma"]),
        environment(found),
    ]


def _on_cpu(found: CpuTime) -> Section:
    text = f"The times of the summary are those of chip and host link, without this. {found}."
    return Section("On the CPU", text, [table_of(CPU_COLUMNS, found.operators)])


def _assumptions(verified: Report[OutputRow]) -> list[Section]:
    """What verdict and times rest on without evidence, if there is such a thing."""
    found = [(each.text,) for each in verified.assumptions]
    if not found:
        return []
    text = "No known program holds these values: what they do is assumed (darwinn docs isa)."
    return [Section("Assumptions", text, [Table(("value and rule",), found)])]


def _inputs(verified: Report[OutputRow]) -> str:
    figures = verified.figures
    sets = counted(figures["inferences"], "set")
    excitation = figures["excitation"]
    lines = (f"Inputs: {sets}, drawn from seed {figures['seed']}", str(excitation))
    return ". ".join((*lines, *excitation.warnings)) + "."


_TRANSFER_COLUMNS: tuple[Column[DmaRow], ...] = (
    Column("entry", lambda row: row.index, "right"),
    Column("hint", lambda row: row.hint.text() if row.hint else "none"),
    Column("the chip did", lambda row: row.issued.text() if row.issued else "nothing"),
    Column("", lambda row: "" if row.equal else "differs"),
)


def _dma(runs: Sequence[DmaFigures]) -> list[Section]:
    """A section for each run, but for one that did the same as a run of the executable before."""
    sections = []
    seen: list[DmaComparison | None] = []
    for run in runs:
        if run.comparison in seen:
            continue
        seen.append(run.comparison)
        rows = run.comparison.rows if run.comparison else ()
        entries = rows[:_MAX_TRANSFERS]
        text = f"{run.hints} hints, {run.issued} transfers, interrupts and fences issued"
        if len(rows) > len(entries):
            text += f"; the first {len(entries)} are shown"
        table = table_of(_TRANSFER_COLUMNS, entries, folded=True)
        sections.append(Section(f"DMA of {run.name}", text, [table]))
    return sections
