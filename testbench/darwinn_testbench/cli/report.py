"""`darwinn report`: everything about an executable on one page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from darwinn_testbench.chip.cycles import DEFAULT_CHIP
from darwinn_testbench.cli import options, results, timing_options
from darwinn_testbench.cli.console import finish, wrapped
from darwinn_testbench.cli.declared import option
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.report.files import write_result

EXAMPLES = """**Examples**

`darwinn report model_edgetpu.tflite --output report.html`

`darwinn report model_edgetpu.tflite --reference model.tflite --runs 5 -o report.html`
"""

Output = Annotated[
    Path,
    option("--output -o PATH", "The page, in the place of what is there; - is standard output."),
]
Strict = Annotated[
    bool,
    option("--strict/--no-strict", "Whether reading memory that nothing has written is a fault."),
]


def command(
    file: options.File,
    output: Output = Path("report.html"),
    reference: options.Reference = None,
    maps: options.Maps = None,
    chip: timing_options.Chip = DEFAULT_CHIP,
    host: timing_options.Host = None,
    seed: options.Seed = 0,
    runs: options.Runs = None,
    inputs_kind: options.InputsKind = None,
    model: options.Model = 0,
    companions: options.Companions = None,
    chip_only: options.ChipOnly = False,
    strict: Strict = True,
    no_assumptions: options.NoAssumptions = False,
    require_reference: options.RequireReference = False,
    junit: results.JUnit = None,
    sarif: results.Sarif = None,
    markdown: results.Markdown = None,
    github: results.GitHub = False,
    json: options.Json = False,
) -> None:
    """Write one HTML page about a compiled model: verdict, times, pictures, memory, DMA, outputs.

    The page needs nothing else: no network and no other file, its scripts are in it. The verdict is
    that of `darwinn verify --strict` unless --no-strict is given, the times are those of `darwinn
    profile --operations`.
    """
    # Imported here: no other command should wait for the libraries that draw.
    from darwinn_testbench.profile.report import make_report

    written = results.Results(json, junit, sarif, markdown, github)
    options.only_one_on_stdout(json=json, output=output)
    with progress_bar() as progress:
        page = make_report(
            options.compiled_source_of(file),
            reference,
            model=model,
            companions=companions or (),
            maps=options.maps_of(maps, reference),
            chip_name=chip,
            host_name=host,
            seed=seed,
            runs=runs,
            inputs_kind=inputs_kind or (),
            chip_only=chip_only,
            strict=strict,
            assumptions=not no_assumptions,
            require_reference=require_reference,
            progress=progress,
        )
    older = ", in the place of an older file" if output.is_file() else ""
    write_result(output, page.html)
    verification = replace(page.verification, command="report")
    written.write([verification])
    finish(
        verification,
        file=file,
        as_json=json,
        body=lambda _: [] if str(output) == "-" else [wrapped(f"written: {output}{older}")],
        next_step=f"open {output} in a browser",
        summary_on_stderr=str(output) == "-",
    )
