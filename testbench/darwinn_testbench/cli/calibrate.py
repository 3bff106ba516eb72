"""`darwinn calibrate`: fit a host to times that were measured with it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from darwinn_sim.timing import HostLink
from darwinn_sim.timing.description import built_in
from rich.console import RenderableType

from darwinn_testbench.accuracy.measured import (
    AT_MOST,
    CalibrationRow,
    calibrate_host,
    given_times,
    host_file,
    times_of_csv,
)
from darwinn_testbench.cli import options
from darwinn_testbench.cli.completed import offered
from darwinn_testbench.cli.console import finish
from darwinn_testbench.cli.declared import argument, option
from darwinn_testbench.cli.outputs import is_named_by
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Column, Report, Verdict, significant, table
from darwinn_testbench.report.files import write_result
from darwinn_testbench.report.shell import quote
from darwinn_testbench.request import settings, timing
from darwinn_testbench.request.timing import DEFAULT_CHIP

EXAMPLES = """**Examples**

`darwinn calibrate mobilenet_edgetpu.tflite=2.31 detector_edgetpu.tflite=7.9 --output desk.toml`

`darwinn calibrate --times times.csv --base pcie --output desk.toml`

`darwinn cycles other_edgetpu.tflite --host desk.toml`
"""

Measured = Annotated[
    list[str] | None,
    argument(
        "MODEL=MS...",
        "Compiled models, each with the milliseconds of one inference, as an application measures "
        "them; if a model has several times, the median counts.",
    ),
]
Times = Annotated[
    Path | None,
    option("--times CSV", "More models: each line has a model and its milliseconds."),
]
Base = Annotated[
    str,
    option(
        "--base NAME",
        "Kind of host: a host link or a TOML file (`darwinn docs timing`). Its description gives "
        "the parameters about which the times say nothing.",
        autocompletion=offered(built_in("hosts"), ".toml"),
    ),
]
AtMost = Annotated[
    float,
    option(
        "--at-most PERCENT",
        "Largest mean error of a good fit, for models that take no part in it (with two models, "
        "for these two). If the error is larger, the verdict is mismatch, exit code 1.",
        min=0,
    ),
]
Output = Annotated[
    Path | None,
    option("--output -o TOML", "Write the host's description, for --host; - is standard output."),
]

_COLUMNS: tuple[Column[CalibrationRow], ...] = (
    Column("model", lambda row: row.name, may_shrink=True),
    Column("measured ms", lambda row: significant(row.measured, 4), "right"),
    Column("predicted ms", lambda row: significant(row.predicted, 4), "right"),
    Column("error", lambda row: f"{row.error:+.1%}", "right"),
    Column("without it", lambda row: _share(row.left_out_error), "right"),
)

_SCALES = {"Hz": (1e6, "MHz"), "B/s": (1e6, "MB/s"), "s": (1e-3, "ms"), "share": (0.01, "%")}
"""How parameters are printed: divided by, and the unit."""


def command(
    measured: Measured = None,
    times: Times = None,
    base: Base = "usb3",
    chip: timing.Chip = DEFAULT_CHIP,
    at_most: AtMost = AT_MOST,
    output: Output = None,
    json: settings.Json = False,
) -> None:
    """Fit a host to times that you measured, and write its description for --host.

    The fit gives the host's fixed cost of a request, the link's rates, the time of a copy of
    outputs, and the chip's clock, each with its 90 % interval. Two models are enough to begin
    with; ten that differ in computation and in bytes of output determine all of them. `without it`
    is the error for a model if the fit uses only the others. If these errors are larger on average
    than --at-most, the fit is poor: a mismatch, exit code 1. The description is written all the
    same.
    """
    options.only_one_on_stdout(json=json, output=output)
    given = given_times(measured or ())
    for model, more in times_of_csv(times).items() if times is not None else ():
        given.setdefault(model, []).extend(more)
        if output is not None and is_named_by(output, model):
            raise InputError(f"{output}: --output would replace a model that {times} names")
    with progress_bar() as progress:
        report, link = calibrate_host(given, base, chip, at_most=at_most, progress=progress)
    if output is not None:
        write_result(output, host_file(link, base, output.parent).encode())
    finish(
        report,
        file=report.file,
        as_json=json,
        body=partial(_body, link=link),
        next_step=_next_step(report, output),
        summary_on_stderr=str(output) == "-",
    )


def _next_step(report: Report[CalibrationRow], output: Path | None) -> str:
    if report.verdict is not Verdict.PASS:
        far = max(report.rows, key=lambda row: abs(row.left_out_error or row.error))
        # Two models are the fewest that can be fitted.
        other = "leave it out" if len(report.rows) > 2 else "measure a further model"
        return f"measure {far.name} again, or {other}: it is farthest off; and check --base"
    if output is None or str(output) == "-":
        return "the same with --output desk.toml writes a description for --host"
    return f"darwinn cycles MODEL --host {quote(str(output))} times other models with it"


def _body(report: Report[CalibrationRow], link: HostLink) -> Sequence[RenderableType]:
    figures: dict[str, Any] = report.figures["parameters"]
    lines = [_parameter(name, found) for name, found in figures.items()]
    notes = [f"{row.name}: {row.message}" for row in report.rows if row.message]
    return [table(_COLUMNS, report.rows), *lines, *notes]


def _parameter(name: str, found: dict[str, Any]) -> str:
    scale, unit = _SCALES[found["unit"]]
    value = found["value"]
    if name == "output_copy_seconds":
        scale, unit = 1e-9, "ns"
    given = (value, found.get("least", value), found.get("most", value))
    middle, least, most = (significant(each / scale, 4) for each in given)
    text = f"{name.removesuffix('_seconds').replace('_', ' ')}: {middle} {unit}"
    return text if given[1] == given[2] else f"{text} ({least} to {most})"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:+.1%}"
