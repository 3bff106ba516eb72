"""`darwinn profile`: where the cycles of an inference go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

from rich.console import RenderableType

from darwinn_testbench.cli import options
from darwinn_testbench.cli.console import finish, wrapped
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.cli.terminal import print_line
from darwinn_testbench.engine import Engine
from darwinn_testbench.profile.profile import (
    SHORT,
    ProfileFigures,
    ProfileRow,
    profiled,
)
from darwinn_testbench.profile.summary import summary_lines
from darwinn_testbench.profile.tables import LAYER_NOTE, MEMORY_COLUMNS, UNIT_COLUMNS, layer_columns
from darwinn_testbench.programs.formats import format_of
from darwinn_testbench.report import Report, table
from darwinn_testbench.report.files import write_result
from darwinn_testbench.report.tables import counted
from darwinn_testbench.request import settings
from darwinn_testbench.request.record import Wanted
from darwinn_testbench.request.records import Calls
from darwinn_testbench.request.scope import Scope
from darwinn_testbench.request.setting import Setting, Use
from darwinn_testbench.request.timing import Profile, Profiling, advised

EXAMPLES = """**Examples**

`darwinn profile model_edgetpu.tflite`

`darwinn profile model_edgetpu.tflite --top 10 --csv layers.csv`

`darwinn profile model_edgetpu.tflite --reference model.tflite`

`darwinn profile model_edgetpu.tflite --chip beagle-std --host usb2`

`darwinn profile model_edgetpu.tflite --reference model.tflite --html profile.html`

`darwinn profile model_edgetpu.tflite --reference model.tflite --model-explorer network`

`darwinn profile program.pte --inputs x.npy --runs 20 --html profile.html`

`darwinn profile model_edgetpu.tflite --timeline trace.pftrace`, then open it in ui.perfetto.dev
"""


class Order(StrEnum):
    """What the rows of the table are sorted by."""

    START = "start"
    CYCLES = "cycles"
    BUSY = "busy"
    BYTES = "bytes"
    PRODUCTS = "products"


@dataclass(frozen=True, kw_only=True)
class Asked(Profile):
    """A profile, and the files that it is written to."""

    top: Annotated[
        int | None,
        Setting(
            "--top N",
            "Show only the N layers, or times between layers, that take the most cycles; of a "
            "program of another format the N slowest operators. --json and --csv have all.",
            least=1,
        ),
    ] = None
    sort: Annotated[
        Order | None,
        Setting(
            "--sort",
            "Order of the table: start (in time), cycles, busy (cycles of the tensor units), bytes "
            "or products, the greatest first; start by default, cycles with --top.",
            scope=Scope.CHIP,
        ),
    ] = None
    timeline: Annotated[
        Path | None,
        Setting(
            "--timeline PATH",
            "Also write a trace for the Perfetto UI (.pftrace).",
            scope=Scope.CHIP,
            use=Use.RESULT,
        ),
    ] = None
    html: Annotated[
        Path | None,
        Setting(
            "--html PATH",
            "Also write a page with charts and the network; - is stdout.",
            use=Use.RESULT,
        ),
    ] = None
    model_explorer: Annotated[
        Path | None,
        Setting(
            "--model-explorer PATH",
            "Also write the network for Model Explorer, and beside it the data of its nodes: "
            "PATH.json, PATH.cycles.json and so on.",
            scope=Scope.CHIP,
        ),
    ] = None


_NAMES = 16
"""Characters of the names of the summary's lines."""


def command(file: options.AnyFile, asked: Wanted[Asked], json: settings.Json = False) -> None:
    """Show the time of an inference by layer, unit and wait, or by operator.

    A summary comes first: time, inferences a second, what takes the most of it, memories of the
    chip, bytes over the host link.

    The times come from a cycle-approximate model (`darwinn docs timing`), for the clock and the
    host link that the command prints. Rows without a number are the time in which no layer is
    executed, so the rows cover the whole inference. Layers can overlap; then the shares of all rows
    add up to more than 100 %.

    For an ExecuTorch, IREE or BEF program, the command measures the operators in seconds on this
    computer's CPU. --engine original measures the original runtime.
    """
    request = asked(options.source_of(file))
    html, timeline = request.html, request.timeline
    options.only_one_on_stdout(json=json, timeline=timeline, html=html)
    is_program = format_of(request.source) is not None
    request.refuse(Scope.CHIP if is_program else Scope.PROGRAM, Scope.NETWORK)
    if is_program:
        # Imported here: no other call should wait for what shows programs.
        from darwinn_testbench.cli.program_views import finish_profile
        from darwinn_testbench.profile.operators import operator_times
        from darwinn_testbench.profile.original import original_times

        times = original_times if request.engine is Engine.ORIGINAL else operator_times
        with progress_bar() as progress:
            timed = times(request.part(Calls, data=request.external, progress=progress))
        finish_profile(
            timed,
            file,
            html,
            request.top,
            as_json=json,
            next_step="the same with --html profile.html draws the network",
        )
    with progress_bar() as progress:
        looks = request.operations or html is not None or request.model_explorer is not None
        report = profiled(request.part(Profiling, operations=looks, progress=progress))
        figures: ProfileFigures = report.figures["profile"]
        if timeline is not None:
            # Imported here: no other command should wait for it.
            from darwinn_testbench.profile.timeline import to_perfetto

            progress("writing the timeline", 0, None)
            made_of = figures.profiled
            write_result(timeline, to_perfetto(made_of.timing, made_of.names))
    if html is not None:
        # Imported here: no other command should wait for it.
        from darwinn_testbench.profile.page import profile_page

        write_result(html, profile_page(report))
    if request.model_explorer is not None:
        from darwinn_testbench.profile.model_explorer import write_files

        written = write_files(request.model_explorer, report)
        print_line(f"{', '.join(map(str, written))}: for Model Explorer (darwinn docs cli-time)")
    if timeline is not None and str(timeline) != "-":
        print_line(f"{timeline}: the timeline; https://ui.perfetto.dev opens it")
    data_on_stdout = "-" in (str(timeline), str(html))
    finish(
        report,
        file=file,
        as_json=json,
        body=_nothing if data_on_stdout else partial(_body, top=request.top, sort=request.sort),
        next_step=f"{advised('report', file, request)} --output report.html adds the verdict",
        summary_on_stderr=data_on_stdout,
    )


def _nothing(_: Report[ProfileRow]) -> Sequence[RenderableType]:
    return []


def _body(
    report: Report[ProfileRow], top: int | None, sort: Order | None
) -> Sequence[RenderableType]:
    figures: ProfileFigures = report.figures["profile"]
    shown = _shown(report.rows, top, sort)
    return [
        *(wrapped(f"{name:<{_NAMES}}{text}") for name, text in summary_lines(report)),
        "",
        table(layer_columns(shown), shown),
        "",
        *map(wrapped, filter(None, [LAYER_NOTE, _left_out(report.rows, shown, top)])),
        "",
        table(UNIT_COLUMNS, figures.units),
        "",
        table(MEMORY_COLUMNS, figures.memory_bytes.items()),
    ]


def _shown(rows: Sequence[ProfileRow], top: int | None, sort: Order | None) -> list[ProfileRow]:
    """The rows of the table: the longest ``top``, or all but short times between layers."""
    if top is None:
        found = [row for row in rows if row.number is not None or row.share >= SHORT]
    else:
        found = sorted(rows, key=lambda row: -row.cycles)[:top]
    order = sort or (Order.START if top is None else Order.CYCLES)
    sign = 1 if order is Order.START else -1
    return sorted(found, key=lambda row: sign * (getattr(row, order) or 0))


def _left_out(rows: Sequence[ProfileRow], shown: Sequence[ProfileRow], top: int | None) -> str:
    """What the rows are that the table does not show: the many short ones between layers."""
    count, cycles = len(rows) - len(shown), sum(row.cycles for row in rows)
    cycles -= sum(row.cycles for row in shown)
    if not count:
        return ""
    what = (
        f"{counted(count, 'time')} between layers of less than {100 * SHORT:g} %"
        if top is None
        else counted(count, "shorter row")
    )
    return f"{what} not shown, {cycles:,} cycles together; --json and --csv have all."
