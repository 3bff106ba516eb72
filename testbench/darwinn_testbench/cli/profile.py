"""`darwinn profile`: where the cycles of an inference go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from rich.console import RenderableType

from darwinn_testbench.chip.cycles import DEFAULT_CHIP
from darwinn_testbench.cli import options, timing_options
from darwinn_testbench.cli.console import finish, wrapped
from darwinn_testbench.cli.declared import option
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.cli.terminal import print_line
from darwinn_testbench.engine import Engine
from darwinn_testbench.profile.csv import to_csv
from darwinn_testbench.profile.profile import (
    SHORT,
    ProfileFigures,
    ProfileRow,
    profile,
)
from darwinn_testbench.profile.tables import LAYER_NOTE, MEMORY_COLUMNS, UNIT_COLUMNS, layer_columns
from darwinn_testbench.programs.formats import format_of, split_data
from darwinn_testbench.programs.natives import load_natives
from darwinn_testbench.report import Report, table
from darwinn_testbench.report.files import write_result
from darwinn_testbench.report.tables import counted

EXAMPLES = """**Examples**

`darwinn profile model_edgetpu.tflite`

`darwinn profile model_edgetpu.tflite --operations --csv layers.csv`

`darwinn profile model_edgetpu.tflite --reference model.tflite`

`darwinn profile model_edgetpu.tflite --chip beagle-std --host usb2`

`darwinn profile model_edgetpu.tflite --reference model.tflite --html profile.html`

`darwinn profile model_edgetpu.tflite --reference model.tflite --model-explorer network`

`darwinn profile program.pte --inputs x.npy --runs 20 --html profile.html`

`darwinn profile model_edgetpu.tflite --timeline trace.pftrace`, then open it in ui.perfetto.dev
"""

Csv = Annotated[Path | None, option("--csv PATH", "Also write the layers as CSV; - is stdout.")]
Timeline = Annotated[
    Path | None, option("--timeline PATH", "Also write a trace for the Perfetto UI (.pftrace).")
]
Html = Annotated[
    Path | None,
    option("--html PATH", "Also write a page with charts and the network; - is stdout."),
]
ModelExplorer = Annotated[
    Path | None,
    option(
        "--model-explorer PATH",
        "Also write the network for Model Explorer, and beside it the data of its nodes: "
        "PATH.json, PATH.cycles.json and so on.",
    ),
]
Operations = Annotated[
    bool, option("--operations", "Also say what each layer computes, which takes longer.")
]

Calls = Annotated[
    int | None,
    option(
        "--runs K",
        "Of a program of another format: pairs of calls that are measured, one as it is and one "
        "with each operator timed, after two that are not; 5 by default.",
        min=1,
        max=100_000,
    ),
]


def command(
    file: options.AnyFile,
    chip: timing_options.Chip = DEFAULT_CHIP,
    host: timing_options.Host = None,
    reference: options.Names = None,
    maps: options.Maps = None,
    operations: Operations = False,
    no_assumptions: options.NoAssumptions = False,
    model: options.Model = 0,
    companions: options.FurtherFiles = None,
    csv: Csv = None,
    timeline: Timeline = None,
    html: Html = None,
    model_explorer: ModelExplorer = None,
    inputs: options.Inputs = None,
    seed: options.Seed = 0,
    calls: Calls = None,
    function: options.Function = None,
    natives: options.Natives = None,
    engine: options.RunEngine = Engine.MODEL,
    json: options.Json = False,
) -> None:
    """Say where the time of an inference goes: by layer, unit and wait, or by operator.

    The times are those of a cycle-approximate model (docs/timing.md), with the chip's clock and the
    host link that are printed. Rows without a number are the time in which no layer is executed:
    with them nothing of the inference is left out. Layers can overlap; the shares of all rows add
    up to more than 100 % where they do.

    Of an ExecuTorch, IREE or BEF program the operators are timed as this computer's CPU executes
    them: seconds, measured, in the place of cycles. --engine original times the original runtime.
    """
    options.no_rtl(engine)
    options.only_one_on_stdout(json=json, csv=csv, timeline=timeline, html=html)
    source = options.source_of(file)
    data, others = split_data(companions or ())
    if format_of(source) is not None:
        options.only_for(
            "DarwiNN files",
            chip=None if chip == DEFAULT_CHIP else chip,
            host=host,
            reference=reference,
            map=maps,
            operations=operations,
            no_assumptions=no_assumptions,
            model=model or None,
            with_=others or None,
            timeline=timeline,
            model_explorer=model_explorer,
        )
        # Imported here: no other call should wait for what shows programs.
        from darwinn_testbench.cli.program_views import finish_profile
        from darwinn_testbench.profile.operators import profile_operators
        from darwinn_testbench.profile.original import profile_original

        shared: dict[str, Any] = {
            "function": function,
            "data": data,
            "seed": seed,
            "calls": calls,
        }
        with progress_bar() as progress:
            if engine is Engine.ORIGINAL:
                options.only_for("the project's references", natives=natives)
                timed = profile_original(source, inputs, progress=progress, **shared)
            else:
                given = None if natives is None else load_natives(natives)
                timed = profile_operators(
                    source, inputs, natives=given, progress=progress, **shared
                )
        finish_profile(
            timed,
            file,
            csv,
            html,
            as_json=json,
            next_step="the same with --html profile.html draws the network",
        )
    options.no_original(engine)
    options.only_for(
        "programs of other formats",
        inputs=inputs,
        seed=seed or None,
        runs=calls,
        function=function,
        natives=natives,
    )
    with progress_bar() as progress:
        report = profile(
            source,
            reference=reference,
            model=model,
            companions=others,
            maps=options.maps_of(maps, reference),
            chip_name=chip,
            host_name=host,
            operations=operations or html is not None or model_explorer is not None,
            assumptions=not no_assumptions,
            progress=progress,
        )
        figures: ProfileFigures = report.figures["profile"]
        if timeline is not None:
            # Imported here: no other command should wait for it.
            from darwinn_testbench.profile.timeline import to_perfetto

            progress("writing the timeline", 0, None)
            profiled = figures.profiled
            write_result(timeline, to_perfetto(profiled.timing, profiled.names))
    if html is not None:
        # Imported here: no other command should wait for it.
        from darwinn_testbench.profile.page import profile_page

        write_result(html, profile_page(report))
    if model_explorer is not None:
        from darwinn_testbench.profile.model_explorer import write_files

        written = write_files(model_explorer, report)
        print_line(f"{', '.join(map(str, written))}: for Model Explorer (docs/cli.md)")
    if csv is not None:
        write_result(csv, to_csv(report.rows))
    if timeline is not None and str(timeline) != "-":
        print_line(f"{timeline}: the timeline; https://ui.perfetto.dev opens it")
    data_on_stdout = "-" in (str(csv), str(timeline), str(html))
    report_command = timing_options.advised(
        "report", file, chip=chip, host=host, model=model, companions=companions
    )
    finish(
        report,
        file=file,
        as_json=json,
        body=_nothing if data_on_stdout else _body,
        next_step=f"{report_command} --output report.html adds the verdict",
        summary_on_stderr=data_on_stdout,
    )


def _nothing(_: Report[ProfileRow]) -> Sequence[RenderableType]:
    return []


def _body(report: Report[ProfileRow]) -> Sequence[RenderableType]:
    figures: ProfileFigures = report.figures["profile"]
    waits = ", ".join(
        f"{name} {100 * share:.1f} %" for name, share in figures.waiting.items() if share >= 0.001
    )
    shown = [row for row in report.rows if row.number is not None or row.share >= SHORT]
    return [
        table(layer_columns(shown), shown),
        "",
        *map(wrapped, filter(None, [LAYER_NOTE, _left_out(report.rows, shown)])),
        "",
        table(UNIT_COLUMNS, figures.units),
        "",
        table(MEMORY_COLUMNS, figures.memory_bytes.items()),
        "",
        wrapped(f"tensor units: {waits}"),
        f"multipliers used: {100 * figures.utilisation:.1f} %",
        wrapped(
            f"parameters: {figures.streamed_parameter_bytes:,} bytes streamed at each inference, "
            f"{figures.cached_parameter_bytes:,} cached"
        ),
    ]


def _left_out(rows: Sequence[ProfileRow], shown: Sequence[ProfileRow]) -> str:
    """What the rows are that the table does not show: the many short ones between layers."""
    count, cycles = len(rows) - len(shown), sum(row.cycles for row in rows)
    cycles -= sum(row.cycles for row in shown)
    if not count:
        return ""
    return (
        f"{counted(count, 'time')} between layers of less than {100 * SHORT:g} % not shown, "
        f"{cycles:,} cycles together; --json and --csv have all."
    )
