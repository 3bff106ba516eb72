"""`darwinn report`: everything about an executable on one page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from darwinn_testbench.cli import options, results
from darwinn_testbench.cli.console import finish, wrapped
from darwinn_testbench.cli.declared import option
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.programs.formats import format_of
from darwinn_testbench.report.files import write_result
from darwinn_testbench.request import timing
from darwinn_testbench.request.record import Wanted
from darwinn_testbench.request.scope import Scope

EXAMPLES = """**Examples**

`darwinn report model_edgetpu.tflite --output report.html`

`darwinn report model_edgetpu.tflite --reference model.tflite --runs 5 -o report.html`

`darwinn report program.pte --reference model.tflite -o report.html`
"""

Output = Annotated[
    Path,
    option(
        "--output -o PATH", "File of the page; an existing file is replaced; - is standard output."
    ),
]


def command(
    file: options.AnyFile,
    asked: Wanted[timing.Page],
    output: Output = Path("report.html"),
    *,
    written: results.Results,
) -> None:
    """Write one HTML page about a compiled model: verdict, times, pictures, memory, DMA, outputs.

    The page contains its scripts and needs neither a network nor another file. The verdict is that
    of `darwinn verify --strict` (without --strict if --no-strict is given); the times are those of
    `darwinn profile`.

    The page of an ExecuTorch, IREE or BEF program has the verdict of `darwinn verify`, and its
    operators with their times on this computer's CPU.
    """
    # Imported here: no other command should wait for the libraries that draw.
    from darwinn_testbench.profile.program_report import program_page_of
    from darwinn_testbench.profile.report import page_of

    options.only_one_on_stdout(json=written.json, output=output)
    request = asked(options.source_of(file))
    is_program = format_of(request.source) is not None
    request.refuse(Scope.CHIP if is_program else Scope.PROGRAM)
    with progress_bar() as progress:
        request = request.but(progress=progress)
        if is_program:
            page = program_page_of(request.part(timing.ProgramPage, data=request.external))
        else:
            page = page_of(request.part(timing.ChipPage))
    older = ", in the place of an older file" if output.is_file() else ""
    write_result(output, page.html)
    verification = replace(page.verification, command="report")
    written.write([verification])
    finish(
        verification,
        file=file,
        as_json=written.json,
        body=lambda _: [] if str(output) == "-" else [wrapped(f"written: {output}{older}")],
        next_step=f"open {output} in a browser",
        summary_on_stderr=str(output) == "-",
    )
