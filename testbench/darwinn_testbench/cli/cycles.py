"""`darwinn cycles`: how long an executable takes on the chip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

from rich.console import RenderableType

from darwinn_testbench.chip.cycles import CyclesRow, measure_files
from darwinn_testbench.chip.stage_times import (
    StageRow,
    TurnRow,
    pipeline_times,
    stage_order,
    turn_times,
)
from darwinn_testbench.cli import options, results
from darwinn_testbench.cli.console import finish
from darwinn_testbench.cli.declared import argument, option
from darwinn_testbench.cli.files import compiled_files
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.errors import InputError
from darwinn_testbench.regression.baseline import MetricRow
from darwinn_testbench.regression.cycles import Guarding, guarded_cycles
from darwinn_testbench.report import Column, Report, Verdict, significant, table
from darwinn_testbench.request.timing import CycleTiming, advised

EXAMPLES = """**Examples**

`darwinn cycles model_edgetpu.tflite`

`darwinn cycles model_edgetpu.tflite --chip beagle-std --host usb2`

`darwinn cycles --pipeline segments/`

`darwinn cycles --pipeline segments/ --reference model.tflite`

`darwinn cycles --one-chip detector_edgetpu.tflite classifier_edgetpu.tflite`

`darwinn cycles models/*_edgetpu.tflite --baseline cycles.json --update --reason "first"`

`darwinn cycles models/*_edgetpu.tflite --baseline cycles.json --github`

`darwinn cycles model_edgetpu.tflite --chip mine.toml --host none --json | jq '.rows[].cycles'`
"""

Files = Annotated[
    list[str],
    argument(
        "FILE",
        "Edge TPU .tflite files, DarwiNN packages or instruction streams, or folders of them; - is "
        "stdin.",
    ),
]
AsPipeline = Annotated[
    bool,
    option(
        "--pipeline",
        "FILE... are the segments of one model, each on a chip of its own: also say throughput, "
        "bottleneck and latency.",
    ),
]
Whole = Annotated[
    str | None,
    option(
        "--reference FILE",
        "With --pipeline: the whole model before compilation; also say which other cut is faster.",
    ),
]
OneChip = Annotated[
    bool,
    option(
        "--one-chip",
        "FILE... take turns on one chip: also say how long loading displaced parameters takes.",
    ),
]
Baseline = Annotated[
    Path | None,
    option(
        "--baseline JSON",
        "Compare with this reviewed baseline; any difference beyond its tolerances fails.",
    ),
]
Update = Annotated[
    bool,
    option("--update", "Rewrite the baseline with the figures of FILE..., without comparing them."),
]
Reason = Annotated[
    str, option("--reason TEXT", "Reason why the figures changed; it is kept in the baseline.")
]

_COLUMNS: tuple[Column[CyclesRow], ...] = (
    Column("executable", lambda row: row.name, may_shrink=True),
    Column("type", lambda row: row.type),
    Column("cycles", lambda row: row.cycles_text, "right"),
    Column("ms", lambda row: row.milliseconds_text, "right"),
    Column("host", lambda row: _share(row.host_share), "right"),
    Column("compiler", lambda row: _estimate(row), "right"),
    Column("verdict", lambda row: row.verdict),
)


_METRICS: tuple[Column[MetricRow], ...] = (
    Column("executable", lambda row: row.name, may_shrink=True),
    Column("figure", lambda row: row.metric),
    Column("value", lambda row: "-" if row.value is None else row.value, "right"),
    Column("expected", lambda row: row.expected, "right"),
    Column("allowed", lambda row: f"{100 * row.tolerance:g} %", "right"),
    Column("check", lambda row: row.check),
    Column("change", lambda row: row.change),
    Column("verdict", lambda row: row.verdict),
)


_STAGES: tuple[Column[StageRow], ...] = (
    Column("stage", lambda row: row.stage, "right"),
    Column("file", lambda row: row.name, may_shrink=True),
    Column("ms", lambda row: _interval(row), "right"),
    Column("busy", lambda row: _share(row.busy), "right"),
    Column("in, bytes", lambda row: row.input_bytes, "right"),
    Column("out, bytes", lambda row: row.output_bytes, "right"),
    Column("streamed", lambda row: row.parameter_bytes, "right"),
    Column("loading, ms", lambda row: _milliseconds(row.loading_milliseconds), "right"),
    Column("verdict", lambda row: row.verdict),
)

_UNSURE = 0.05
"""A cut that saves less than this share may save nothing: it is predicted, not compiled."""

_TURNS: tuple[Column[TurnRow], ...] = (
    Column("file", lambda row: row.name, may_shrink=True),
    Column("loading, ms", lambda row: _milliseconds(row.swap_milliseconds), "right"),
    Column("loading, bytes", lambda row: row.swap_bytes, "right"),
    Column("inference, ms", lambda row: _milliseconds(row.milliseconds), "right"),
    Column("cached with", lambda row: row.token[:10] or "-"),
    Column("verdict", lambda row: row.verdict),
)


def command(
    files: Files,
    asked: CycleTiming,
    pipeline: AsPipeline = False,
    reference: Whole = None,
    one_chip: OneChip = False,
    baseline: Baseline = None,
    update: Update = False,
    reason: Reason = "",
    *,
    written: results.Results,
) -> None:
    """Estimate the cycles of each executable with an event model of the chip.

    The model needs no data, and the result is the same every time. An inference is the
    EXECUTION_ONLY or STAND_ALONE executable of a model; PARAMETER_CACHING runs once before.
    Milliseconds include the host and its link; `host` is their share, and the times in parentheses
    are a 90 % interval. `compiler` is the compiler's own estimate.

    If the compiler left operators to the CPU, the command also measures these on this machine,
    after one inference on noise, and prints their time in a line of its own. --chip-only leaves
    them out.

    With --pipeline, the files (or the segments in a folder, in the order of their numbers) are
    stages that each have a chip; --reference MODEL also says where another cut would be faster.
    With --one-chip they are models that share one, in turns.
    """
    files = compiled_files(files)
    if reference is not None and not pipeline:
        raise InputError("--reference is for --pipeline")
    if pipeline or one_chip:
        if pipeline and one_chip:
            raise InputError("--pipeline gives each model a chip, --one-chip gives all of them one")
        if baseline is not None or update or reason or asked.executable is not None:
            raise InputError(
                "--baseline, --update, --reason and --executable are for files one by one"
            )
        _finish_together(files, asked, written, reference, pipeline=pipeline)
    profile_of = partial(
        advised, "profile", request=asked, chip_name=asked.chip, host_name=asked.host
    )
    if baseline is not None:
        with progress_bar() as progress:
            told = {"update": update, "reason": reason, "progress": progress}
            checked = guarded_cycles(asked.part(Guarding, files=files, path=baseline, **told))
        written.write([checked])
        next_step = _next_step(checked, files, profile_of, baseline)
        finish(
            checked,
            file=str(baseline),
            as_json=written.json,
            body=_metrics_body,
            next_step=next_step,
        )
    if update or reason:
        raise InputError("--update and --reason belong to --baseline")
    with progress_bar() as progress:
        report = measure_files(
            files,
            lambda file: options.compiled_source_of(str(file)),
            asked.but(progress=progress),
        )
    written.write([report])
    finish(
        report,
        file=files[0] if len(files) == 1 else report.file,
        as_json=written.json,
        body=partial(_body, several=len(files) > 1),
        next_step=_where_cycles_go(report, files, profile_of),
    )


def _finish_together(
    files: Sequence[str],
    asked: CycleTiming,
    written: results.Results,
    reference: str | None,
    *,
    pipeline: bool,
) -> NoReturn:
    """Time models that work together."""
    opened = lambda file: options.compiled_source_of(str(file))  # noqa: E731
    report: Report[StageRow] | Report[TurnRow]
    with progress_bar() as progress:
        timed = asked.but(progress=progress)
        if pipeline:
            report = pipeline_times(stage_order(files), opened, timed)
            if reference is not None:
                report = _with_cut(report, reference, asked)
        else:
            report = turn_times(files, opened, timed)
    columns: Sequence[Column[Any]] = _STAGES if pipeline else _TURNS
    written.write([report])

    def body(shown: Report[Any]) -> Sequence[RenderableType]:
        cpu = shown.figures.get("cpu", ())
        notes = [f"{Path(each.file).name}: {each}; not in the times above" for each in cpu]
        return [table(columns, shown.rows), *notes, *_other_cut(shown)]

    slowest = report.figures.get("pipeline")
    file = files[0] if slowest is None else stage_order(files)[slowest.bottleneck]
    profile = advised("profile", file, asked, chip_name=asked.chip, host_name=asked.host)
    other = "; --reference MODEL says what other cut is faster"
    other = other if pipeline and reference is None else ""
    finish(
        report,
        file=report.file,
        as_json=written.json,
        body=body,
        next_step=f"{profile} shows where the cycles go{other}" if file != "-" else "",
    )


def _with_cut(report: Report[StageRow], reference: str, asked: CycleTiming) -> Report[StageRow]:
    """The times of segments beside those of the cut that the compiler's balance gives."""
    # Imported here: no other call should wait for the compiler.
    from darwinn_testbench.compilation.segments import best_cut
    from darwinn_testbench.compilation.times import CHIP, usual_link

    host = usual_link().name
    if (report.figures.get("chip"), report.figures.get("host")) != (CHIP, host):
        raise InputError(
            f"--reference: cuts are predicted for {CHIP} and {host}, not for "
            f"{asked.chip} and {asked.host}"
        )
    cut = best_cut(options.source_of(reference), len(report.rows))
    return replace(report, figures={**report.figures, "cut": cut})


def _other_cut(report: Report[Any]) -> Sequence[RenderableType]:
    """The cut that is faster, or that none is."""
    cut, given = report.figures.get("cut"), report.figures.get("pipeline")
    if cut is None or given is None:
        return []
    if cut.times.interval_milliseconds > (1 - _UNSURE) * given.interval_milliseconds:
        return ["", "the compiler's balance gives no faster cut"]
    from darwinn_testbench.cli.cuts import shown

    return ["", *shown(cut)]


def _where_cycles_go(
    report: Report[CyclesRow], files: Sequence[str], profile_of: Callable[[str], str]
) -> str:
    """The command for the first file that was timed; empty where that can be read only once."""
    timed = next((row.file for row in report.rows if row.cycles is not None), "")
    return f"{profile_of(timed)} shows where the cycles go" if timed in files else ""


def _body(report: Report[CyclesRow], several: bool) -> Sequence[RenderableType]:
    notes = [f"{row.name}: {row.message}" for row in report.rows if row.cycles is None]
    notes = notes if len(report.rows) > 1 else []
    notes += () if several else _first(report.rows)
    for each in report.figures.get("cpu", ()):
        notes.append(f"{Path(each.file).name}: {each}" if several else str(each))
    return [table(_COLUMNS, report.rows), *notes]


def _first(rows: Sequence[CyclesRow]) -> list[str]:
    """Times of first inferences, which load parameters as well; a nominal clock gives none."""
    return [
        f"{row.name}: {significant(row.first_milliseconds)} ms for the first inference, which "
        "loads the cached parameters"
        for row in rows
        if row.first_milliseconds is not None and row.milliseconds_text != "-"
    ]


def _metrics_body(report: Report[MetricRow]) -> Sequence[RenderableType]:
    different = [row for row in report.rows if row.message]
    failed = [row for row in report.figures["unmeasured"] if row.message]
    notes = [f"{row.case}: {row.message}" for row in (*different, *failed)]
    shown: list[RenderableType] = [table(_METRICS, different), ""] if different else []
    return [*shown, *notes]


def _next_step(
    report: Report[MetricRow],
    files: Sequence[str],
    profile_of: Callable[[str], str],
    baseline: Path,
) -> str:
    if report.verdict is Verdict.REGRESSION:
        failed = next(row.name for row in report.rows if row.verdict is Verdict.REGRESSION)
        # A baseline knows files by their names.
        file = next(each for each in files if failed.startswith(f"{Path(each).name}: "))
        return (
            f"{profile_of(file)} shows where the cycles go; to accept them: the same "
            "command with --update --reason TEXT"
        )
    return f"{baseline} is meant to be reviewed and committed" if report.figures["updated"] else ""


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(row: StageRow) -> str:
    given = (row.milliseconds, row.least_milliseconds, row.most_milliseconds)
    middle, least, most = ("-" if each is None else significant(each) for each in given)
    return middle if row.milliseconds is None else f"{middle} ({least} to {most})"


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _estimate(row: CyclesRow) -> str:
    return "" if row.estimated_cycles is None else f"{row.estimated_cycles:,}"
