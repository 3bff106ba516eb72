"""`darwinn run`: a compiled model on the simulated chip."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, NoReturn

from darwinn_sim.machine.examine import StopPoint, Tap
from rich.console import RenderableType

from darwinn_testbench.chip.execution import (
    ChipRun,
    RunRow,
    TapFigures,
    chip_run,
    lifted_line,
    output_arrays,
    outputs_as,
    states_line,
    write_member,
)
from darwinn_testbench.chip.hazards import hazard_lines
from darwinn_testbench.chip.preload import parse as parse_preload
from darwinn_testbench.chip.schedules import schedule_lines
from darwinn_testbench.chip.whole import cpu_line
from darwinn_testbench.cli import options
from darwinn_testbench.cli.console import after_failure, finish
from darwinn_testbench.cli.declared import option
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.formats import format_of
from darwinn_testbench.programs.run import program_run
from darwinn_testbench.programs.taps import ValueTap
from darwinn_testbench.report import Column, Report, Verdict, counted, seconds, table
from darwinn_testbench.report.files import result_stream, write_result
from darwinn_testbench.report.shell import quote
from darwinn_testbench.request import settings
from darwinn_testbench.request.record import Wanted, refuse_no_file
from darwinn_testbench.request.records import ProgramRun, Run
from darwinn_testbench.request.scope import Scope

EXAMPLES = """**Examples**

`darwinn run model_edgetpu.tflite --inputs photo.png --output outputs.npz`

`darwinn run model_edgetpu.tflite --seed 7 --runs 3 --strict`

`darwinn run model_edgetpu.tflite --until layer:3 --tap narrow:0:0:0x400 --tap layer:3`

`darwinn run segment_0_of_2_edgetpu.tflite --then segment_1_of_2_edgetpu.tflite`

`darwinn run model_edgetpu.tflite --chip-only --output from_chip.npz`

`darwinn run stream.coral --inputs input0=bytes.bin --preload wide:0-3:0=parameters.bin`

`darwinn run program.pte --tap '*'` (all values, with names and operations)

`darwinn run program.pte --tap 'aten::convolution.out' --output values.npz`

`darwinn run program.pte --function forward --inputs x.npy --engine original`

`darwinn run suite.bef --init-function start --work-queue mstd:8 --error-codes`
"""

Output = Annotated[
    str | None,
    option(
        "--output -o PATH",
        "Write the outputs: all of them by name in an .npz; one output in .npy; "
        "anything else, or - for standard output, gets one output's bytes. "
        "`darwinn verify --expected` takes .npz and .npy, with the same --seed or --inputs.",
    ),
]

_COLUMNS: tuple[Column[RunRow], ...] = (
    Column("run", lambda row: row.run, "right"),
    Column("inputs", lambda row: row.origin, may_shrink=True),
    Column("output", lambda row: row.name, may_shrink=True),
    Column("tensor", lambda row: f"{row.dtype} {'x'.join(map(str, row.shape))}", may_shrink=True),
    Column("minimum", lambda row: row.minimum, "right"),
    Column("maximum", lambda row: row.maximum, "right"),
    Column("sha256", lambda row: row.sha256[:16], may_shrink=True),
    Column("s", lambda row: seconds(row.seconds), "right"),
    Column("verdict", lambda row: row.verdict),
)

_MOST_TAPS = 100
"""Values of taps that are listed."""
_TAP_COLUMNS: tuple[Column[ValueTap], ...] = (
    Column("run", lambda tap: tap.run, "right"),
    Column("as", lambda tap: tap.member),
    Column("value", lambda tap: tap.tap, may_shrink=True),
    Column("operation", lambda tap: tap.operation, may_shrink=True),
    Column("tensor", lambda tap: f"{tap.dtype} {'x'.join(map(str, tap.shape))}"),
    Column("sha256", lambda tap: tap.sha256[:16]),
    Column("source", lambda tap: tap.location, may_shrink=True),
)


def command(
    file: options.AnyFile, asked: Wanted[Run], output: Output = None, json: settings.Json = False
) -> None:
    """Run a compiled model on each set of inputs, or call a function of a program.

    If the compiler left operators to the CPU, LiteRT runs these, and the outputs are those of the
    whole model. Only the chip's part runs with --chip-only, --until or --tap of something in the
    chip. Without --inputs, inputs are generated from the seed. --until stops inside an inference,
    and --tap copies out values from inside. A bare stream runs on the buffers of its descriptors:
    input0, output0 and so on. Of an ExecuTorch, IREE or BEF program, the command calls a function
    on the CPU.
    """
    options.only_one_on_stdout(json=json, output=output)
    request = asked(options.source_of(file))
    is_program = format_of(request.source) is not None
    request.refuse(Scope.CHIP if is_program else Scope.PROGRAM, Scope.NETWORK)
    if is_program:
        with progress_bar() as progress, _archive(request.taps, output) as archive:
            keep = None if archive is None else partial(write_member, archive)
            told = {"data": request.external, "keep": keep, "progress": progress}
            report = program_run(request.part(ProgramRun, **told))
            if archive is not None:
                for name, array in output_arrays(report).items():
                    write_member(archive, name, array)
        _finish(report, file, output, json, stored=archive is not None)
    stop, taps = _examine(request.until, request.taps)
    preloads = [each for text in request.preloads for each in parse_preload(text)]
    with progress_bar() as progress:
        looks = {"until": stop, "taps": taps, "preloads": preloads, "progress": progress}
        report = chip_run(request.part(ChipRun, **looks))
    _finish(report, file, output, json)


@contextmanager
def _archive(taps: Sequence[str], output: str | None) -> Iterator[zipfile.ZipFile | None]:
    """Where values of a program go as they come, so that no memory has to hold them all; None
    without taps, or where their checksums are enough.

    Raises:
        InputError: the form of the results has no room for taps.
    """
    if not taps or output is None:
        yield None
        return
    if not output.lower().endswith(".npz"):
        raise InputError(f"{output}: values of taps are written with the outputs to an .npz")
    refuse_no_file(output)
    with result_stream(output) as stream, zipfile.ZipFile(stream, "w") as archive:
        yield archive


def _finish(
    report: Report[RunRow], file: str, output: str | None, as_json: bool, *, stored: bool = False
) -> NoReturn:
    """Write the outputs, unless they are ``stored``, print the rows, and end with the exit code."""
    if output is not None and not stored:
        write_result(output, outputs_as(output, report))
    finish(
        report,
        file=file,
        as_json=as_json,
        body=lambda found: [*_body(found), *_written(output)],
        next_step=_next_step(report, file, output),
        summary_on_stderr=output == "-",
    )


def _written(output: str | None) -> list[str]:
    return [] if output in (None, "-") else [f"outputs written to {output}"]


def _next_step(report: Report[RunRow], file: str, output: str | None) -> str:
    if report.verdict.failed:
        drawn = report.figures["model"] is None and report.figures["random_inputs"]
        return after_failure(report.verdict, file, drawn=drawn)
    if report.figures["model"] is None:
        return _next_of_program(report, file, output)
    if report.rows:
        return (
            f"darwinn verify {quote(file)} --reference MODEL.tflite says whether "
            "the outputs are right"
        )
    return (
        f"darwinn verify {quote(file)} --reference MODEL.tflite --layers judges what layers compute"
    )


def _next_of_program(report: Report[RunRow], file: str, output: str | None) -> str:
    if not report.figures["inferences"]:
        return f"darwinn run {quote(file)} --function NAME calls one function alone"
    if output is None and report.figures["taps"]:
        return "the same with --output values.npz stores these values"
    if output is None or not output.endswith((".npz", ".npy")):
        return f"darwinn verify {quote(file)} --reference PROGRAM compares with another program"
    return f"darwinn verify {quote(file)} --expected {quote(output)} compares later outputs"


def _examine(until: str | None, taps: Sequence[str]) -> tuple[StopPoint | None, tuple[Tap, ...]]:
    try:
        stop = None if until is None else StopPoint.parse(until)
        return stop, tuple(map(Tap.parse, taps))
    except ValueError as error:
        raise InputError(str(error)) from error


def _narrow_memory(report: Report[RunRow]) -> list[str]:
    used, declared = report.figures["narrow_bytes"], report.figures["narrow_bytes_declared"]
    if used is None:
        return []
    said = "" if declared is None else f", the executable says {declared:,}"
    return [f"narrow memory: {used:,} bytes of each tile{said}"]


def _body(report: Report[RunRow]) -> Sequence[RenderableType]:
    drawn = f"inputs drawn from seed {report.figures['seed']}"
    source = drawn if report.figures["random_inputs"] else "given inputs"
    count = report.figures["inferences"]
    lines = [f"{counted(count, 'inference')} on {source}"] if count else []
    lines += [f"warning: {warning}" for warning in report.figures["warnings"]]
    lines += _narrow_memory(report)
    lines += states_line(report.figures)
    lines += lifted_line(report.figures)
    lines += cpu_line(report.figures)
    lines += schedule_lines(report.figures.get("schedules"))
    lines += hazard_lines(report.figures.get("hazards"))
    taps: Sequence[TapFigures] = report.figures["taps"]
    values = [tap for tap in taps if isinstance(tap, ValueTap)]
    lines += [
        f"tap {tap.tap}, inference {tap.run}: {tap.bytes:,} bytes, sha256 {tap.sha256[:16]}"
        for tap in taps
        if tap not in values
    ]
    if report.figures["stopped"] and report.verdict is Verdict.PASS:
        lines.append("stopped before the end, as asked")
    tables = [table(_COLUMNS, report.rows)] if report.rows else []
    printed = report.figures.get("printed", "").splitlines()
    tables += [table(_TAP_COLUMNS, values[:_MOST_TAPS])] if values else []
    if len(values) > _MOST_TAPS:
        lines.append(f"and {len(values) - _MOST_TAPS:,} values more; --json has all")
    return [*printed, *tables, *lines]
