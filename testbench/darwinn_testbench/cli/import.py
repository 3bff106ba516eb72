# ruff: noqa: N999 - a command is loaded by its name.
"""`darwinn import`: what another runtime has noted of a program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from darwinn_testbench.cli import options
from darwinn_testbench.cli.declared import argument, option
from darwinn_testbench.cli.program_views import finish_profile
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.profile.imported import TICKS, import_times
from darwinn_testbench.report.shell import quote
from darwinn_testbench.request import settings

EXAMPLES = """**Examples**

`darwinn import run.etdp`

`darwinn import run.etdp model.etrecord --program model.pte --html profile.html`

`darwinn import device.etdp --program model.pte --ticks-per-second 240e6 --csv times.csv`
"""

Files = Annotated[
    list[str],
    argument("FILE", "ExecuTorch ETDump (.etdp), and ETRecord beside it, in any order."),
]
Program = Annotated[
    str | None,
    option(
        "--program FILE",
        "The program that was run (.pte): it adds full names and inputs of the operators.",
    ),
]
Ticks = Annotated[
    float,
    option(
        "--ticks-per-second N",
        "Ticks per second of the clock in the dump; by default a tick is a nanosecond.",
        min=1.0,
        max=1e12,
    ),
]
Html = Annotated[
    Path | None,
    option("--html PATH", "Also write a page with charts and the network; - is stdout."),
]


def command(
    files: Files,
    program: Program = None,
    data: settings.DataFiles = (),
    function: settings.Function = None,
    ticks_per_second: Ticks = TICKS,
    html: Html = None,
    json: settings.Json = False,
) -> None:
    """Show the operator times that ExecuTorch's runtime recorded, on any device.

    The dump (ETDump) has the times of instructions and of the parts of delegates. The record
    (ETRecord) has the lines of source from which they came. ExecuTorch need not be installed.
    """
    options.only_one_on_stdout(json=json, html=html)
    with progress_bar() as progress:
        progress("reading", 0, None)
        report = import_times(
            files, program, data=data or (), function=function, ticks_per_second=ticks_per_second
        )
    finish_profile(
        report,
        files[0],
        html,
        as_json=json,
        next_step=(
            "the same with --program FILE.pte adds full names and the network"
            if program is None
            else f"darwinn profile {quote(program)} times the same operators on this computer"
        ),
    )
