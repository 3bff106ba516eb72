"""`darwinn report`: everything about an executable on one page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from darwinn_testbench.chip.cycles import DEFAULT_CHIP
from darwinn_testbench.cli import options, results, timing_options
from darwinn_testbench.cli.console import finish, wrapped
from darwinn_testbench.cli.declared import option
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.programs.formats import format_of, split_data
from darwinn_testbench.programs.natives import load_natives
from darwinn_testbench.report.files import write_result

EXAMPLES = """**Examples**

`darwinn report model_edgetpu.tflite --output report.html`

`darwinn report model_edgetpu.tflite --reference model.tflite --runs 5 -o report.html`

`darwinn report program.pte --reference model.tflite -o report.html`
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
    file: options.AnyFile,
    output: Output = Path("report.html"),
    reference: options.Reference = None,
    maps: options.Maps = None,
    chip: timing_options.Chip = DEFAULT_CHIP,
    host: timing_options.Host = None,
    seed: options.Seed = 0,
    runs: options.Runs = None,
    inputs_kind: options.InputsKind = None,
    model: options.Model = 0,
    companions: options.FurtherFiles = None,
    chip_only: options.ChipOnly = False,
    strict: Strict = True,
    no_assumptions: options.NoAssumptions = False,
    require_reference: options.RequireReference = False,
    inputs: options.Inputs = None,
    function: options.Function = None,
    natives: options.Natives = None,
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

    The page of an ExecuTorch, IREE or BEF program has the verdict of `darwinn verify`, and its
    operators with their times on this computer's CPU.
    """
    # Imported here: no other command should wait for the libraries that draw.
    from darwinn_testbench.profile.program_report import make_program_report
    from darwinn_testbench.profile.report import make_report

    written = results.Results(json, junit, sarif, markdown, github)
    options.only_one_on_stdout(json=json, output=output)
    source = options.source_of(file)
    data, others = split_data(companions or ())
    shared: dict[str, Any] = {
        "maps": options.maps_of(maps, reference),
        "seed": seed,
        "runs": runs,
        "inputs_kind": inputs_kind or (),
        "require_reference": require_reference,
    }
    with progress_bar() as progress:
        if format_of(source) is None:
            options.only_for(
                "programs of other formats", inputs=inputs, function=function, natives=natives
            )
            page = make_report(
                source,
                reference,
                model=model,
                companions=others,
                chip_name=chip,
                host_name=host,
                chip_only=chip_only,
                strict=strict,
                assumptions=not no_assumptions,
                progress=progress,
                **shared,
            )
        else:
            options.only_for(
                "DarwiNN files",
                model=model or None,
                with_=others or None,
                chip=None if chip == DEFAULT_CHIP else chip,
                host=host,
                chip_only=chip_only,
                no_assumptions=no_assumptions,
            )
            page = make_program_report(
                source,
                reference,
                inputs,
                function=function,
                natives=None if natives is None else load_natives(natives),
                data=data,
                progress=progress,
                **shared,
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
