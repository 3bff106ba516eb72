"""The page about a night, in the frame of all pages: its jobs, what they said, earlier nights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from darwinn_testbench.pages import Chart, Page, Section, Table, charts, render, table_of
from darwinn_testbench.report import Column
from darwinn_testbench.report.verdict import Verdict

from tests.nightly.results import Done, Night, Nights, Result

_LAST_LINES = 60
_NIGHTS = 60
_FIGURES_OF = 8
"""Figures are shown of so many nights."""

_VERDICTS = {
    Result.PASSED: Verdict.PASS,
    Result.FAILED: Verdict.REGRESSION,
    Result.LATE: Verdict.FAULT,
    Result.LACKS: Verdict.REFUSED,
}


def page_of(night: Night, nights: Nights, out: Path) -> bytes:
    """The page; ``out`` has the output of each job in NAME.log."""
    failed = [each.name for each in night.jobs if each.result.failed]
    passed = sum(each.result is Result.PASSED for each in night.jobs)
    what = f"failed: {', '.join(failed)}" if failed else "none failed"
    return render(
        Page(
            title=f"Night of {night.started}",
            verdict=Verdict.REGRESSION if failed else Verdict.PASS,
            summary=f"{passed} of {len(night.jobs)} jobs passed, {what}. Commit {night.commit}, "
            f"seed {night.seed}, {night.machine}.",
            sections=tuple(_sections(night, nights, out)),
        )
    )


def _sections(night: Night, nights: Nights, out: Path) -> Iterator[Section]:
    columns = (
        Column[Done]("job", lambda each: each.name),
        Column[Done]("result", lambda each: _VERDICTS[each.result]),
        Column[Done]("seconds", lambda each: each.seconds, "right"),
        Column[Done]("what it shows", lambda each: each.about),
        Column[Done]("its last word", lambda each: each.says),
    )
    yield Section("Jobs", parts=[table_of(columns, night.jobs), _times(night)])
    earlier = [*nights.all[-_NIGHTS:], night]
    if night.figures:
        yield Section("Figures", parts=[_figures(earlier[-_FIGURES_OF:])])
    if len(earlier) > 1:
        names = list(dict.fromkeys(each.name for one in earlier for each in one.jobs))
        rows = [
            [one.started, one.commit, one.seed, *(_verdict(one, name) for name in names)]
            for one in reversed(earlier)
        ]
        yield Section("Nights", parts=[Table(["night", "commit", "seed", *names], rows)])
    for each in night.jobs:
        log = out / f"{each.name}.log"
        if each.result is not Result.LACKS and log.exists():
            lines = log.read_text(errors="replace").replace("\r", "\n").splitlines()
            last = [[line] for line in lines[-_LAST_LINES:]]
            yield Section(
                f"Output of {each.name}",
                f"The last {len(last)} of {len(lines)} lines of {log.name}.",
                [Table(["line"], last, folded=True)],
            )


def _figures(nights: Sequence[Night]) -> Table:
    """Of the last night, a line each, beside what they were in the nights before."""
    shown = list(reversed(nights))
    rows = [
        [job, name, *(_rounded(each.figures.get((job, name))) for each in shown)]
        for job, name in shown[0].figures
    ]
    heads = ["job", "figure", *(f"{each.started} {each.commit}" for each in shown)]
    return Table(heads, rows, [False, False, *(True for _ in shown)])


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 2)


def _times(night: Night) -> Chart:
    ran = [each for each in night.jobs if each.result is not Result.LACKS]
    return charts.bars(
        {"name": [each.name for each in ran], "value": [each.seconds / 60 for each in ran]},
        unit="minutes",
        label="how long each job took",
    )


def _verdict(night: Night, name: str) -> Verdict | None:
    result = night.result(name)
    return None if result is None else _VERDICTS[result]
