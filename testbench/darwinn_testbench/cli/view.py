"""`darwinn view`: the page of a profile in a browser, several files side by side."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_sim.errors import SimulationError

from darwinn_testbench.cli import options
from darwinn_testbench.cli.declared import argument, option
from darwinn_testbench.cli.files import program_files
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.cli.terminal import print_line
from darwinn_testbench.errors import InputError
from darwinn_testbench.profile.operators import OperatorTimeRow, profile_operators
from darwinn_testbench.profile.profile import ProfileRow, profile
from darwinn_testbench.programs.formats import format_of
from darwinn_testbench.programs.natives import load_natives
from darwinn_testbench.report import Report, Row, judged
from darwinn_testbench.request import settings, timing
from darwinn_testbench.request.scope import Scope
from darwinn_testbench.request.setting import Setting
from darwinn_testbench.request.timing import DEFAULT_CHIP

EXAMPLES = """**Examples**

`darwinn view model_edgetpu.tflite --reference model.tflite`

`darwinn view before_edgetpu.tflite after_edgetpu.tflite`

`darwinn view model_edgetpu.tflite --no-browser --port 8000`, on a machine that is reached by
`ssh -L 8000:127.0.0.1:8000`
"""

Files = Annotated[
    list[str],
    argument(
        "FILE",
        "Edge TPU .tflite, packages, streams, programs of other formats, or folders of them.",
    ),
]
Reference = Annotated[
    Sequence[Path],
    Setting(
        "--reference MODEL",
        "The model before compilation: its operators name the layers. Repeat it, in the "
        "order of the files.",
        scope=Scope.CHIP,
    ),
]
Port = Annotated[
    int, option("--port N", "Port on this machine; by default one that is free.", min=0, max=65535)
]
Browser = Annotated[
    bool,
    option("--browser/--no-browser", "Open the page in the browser, or only print its address."),
]


_LIBRARY = "charts.js"
"""Where the server has what charts are drawn by: once for all pages."""


def command(
    files: Files,
    reference: Reference = (),
    chip: timing.Chip = DEFAULT_CHIP,
    host: timing.Host = None,
    assumptions: settings.Assumptions = True,
    port: Port = 0,
    browser: Browser = True,
    natives: settings.Natives = None,
) -> None:
    """Open the page of a profile in a browser, several files side by side.

    The page is that of `darwinn profile --html`; a program of another format gets generated inputs.
    The command prints the address. Only this machine can reach it, and the path in it is secret.
    Ctrl-C ends the server.
    """
    # Imported here: help should not wait for them.
    from darwinn_testbench.pages import charts
    from darwinn_testbench.pages.server import PageServer
    from darwinn_testbench.profile.beside import beside

    files = program_files(files)
    given = None if natives is None else load_natives(natives)
    references: Sequence[Path | None] = reference or [None] * len(files)
    if len(references) != len(files):
        raise InputError(f"{len(files)} files have {len(references)} references: give one for each")
    # First of all, as a port that is taken should not be found out behind the work.
    with PageServer(port) as server:
        reports: list[Report[ProfileRow] | Report[OperatorTimeRow]] = []
        unread: list[Row] = []
        for file, each in zip(files, references, strict=True):
            try:
                with progress_bar() as progress:
                    source = options.source_of(file)
                    if format_of(source) is not None:
                        options.only_for(Scope.CHIP, reference=each)
                        timed = profile_operators(source, natives=given, progress=progress)
                        reports.append(timed)
                        continue
                    reports.append(
                        profile(
                            source,
                            reference=each,
                            chip_name=chip,
                            host_name=host,
                            assumptions=assumptions,
                            progress=progress,
                        )
                    )
            except (FormatError, OSError, InputError, SimulationError, ExecutionError) as error:
                verdict, text = judged(error)
                unread.append(Row(name=file, verdict=verdict, message=text))
                if len(unread) == len(files):
                    raise
                named = text if text.startswith(file) else f"{file}: {text}"
                print_line(f"darwinn view: {verdict.value}: {named}")
        script = {_LIBRARY: charts.library().encode()} if charts.installed() else {}
        library = next(iter(script), "")
        pages = {
            f"{number}.html": _page(report, library) for number, report in enumerate(reports, 1)
        }
        several = len(files) > 1
        first = beside(reports, list(pages), unread, library) if several else pages["1.html"]
        server.publish({"": first, **pages, **script})
        _say([report.file for report in reports], server.url)
        if browser:
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print_line("darwinn view: ended")


def _page(report: Report[ProfileRow] | Report[OperatorTimeRow], library: str) -> bytes:
    """The page of a compiled model or of a program of another format."""
    from darwinn_testbench.profile.beside import is_of_chip, is_of_operators
    from darwinn_testbench.profile.operator_page import operator_page
    from darwinn_testbench.profile.page import profile_page

    if is_of_operators(report):
        return operator_page(report, library)
    assert is_of_chip(report)
    return profile_page(report, library)


def _say(files: Sequence[str], url: str) -> None:
    print(url, flush=True)
    print_line(f"darwinn view: {', '.join(files)}; Ctrl-C ends it")
