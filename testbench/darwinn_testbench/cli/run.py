"""`darwinn run`: a compiled model on the simulated chip."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from shlex import quote
from typing import Annotated, NoReturn

from darwinn_sim.machine.examine import StopPoint, Tap
from rich.console import RenderableType

from darwinn_testbench.chip.execution import (
    RunRow,
    TapFigures,
    lifted_line,
    output_arrays,
    outputs_as,
    run,
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
from darwinn_testbench.engine import Engine
from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.formats import format_of, split_data
from darwinn_testbench.programs.handler import HostOptions
from darwinn_testbench.programs.natives import load_natives
from darwinn_testbench.programs.run import run_program
from darwinn_testbench.programs.taps import ValueTap
from darwinn_testbench.report import Column, Report, Verdict, counted, seconds, table
from darwinn_testbench.report.files import result_stream, write_result

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

Until = Annotated[
    str | None,
    option("--until POINT", "Stop the inference at layer:N (its end) or at pc:CHUNK:PC."),
]
Taps = Annotated[
    list[str] | None,
    option(
        "--tap WHAT",
        "Copy out narrow:TILE:START:END (bytes), wide:TILE:ROW:ROW, scalar:START:END "
        "(bytes), or layer:N, what a layer writes (`darwinn verify --layers` numbers them). "
        "Of an ExecuTorch, IREE or BEF program: values by name, or by the operation that computes "
        "them; `'*'` and `'?'` stand for any characters, and `'*'` alone shows which there are. "
        "Repeat it for several; --output FILE.npz stores them as tap0, tap1 …",
    ),
]
Preloads = Annotated[
    list[str] | None,
    option(
        "--preload WHAT",
        "What is in wide memory before anything runs: wide:TILES:ROW=FILE, or "
        "wide:TILES:ROW:END=pattern:SEED for random bytes. TILES is like 0 or 0-3,5.",
    ),
]
Then = Annotated[
    list[str] | None,
    option(
        "--then FILE",
        "The next segment of a pipeline, on a chip of its own: it runs on what the segments "
        "before it give, by name. Repeat it for more segments, in their order.",
    ),
]
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
    file: options.AnyFile,
    inputs: options.Inputs = None,
    seed: options.Seed = 0,
    runs: options.Runs = None,
    inputs_kind: options.InputsKind = None,
    output: Output = None,
    until: Until = None,
    tap: Taps = None,
    preload: Preloads = None,
    then: Then = None,
    model: options.Model = 0,
    companions: options.FurtherFiles = None,
    schedules: options.Schedules = 0,
    schedule_seed: options.ScheduleSeed = None,
    chip_only: options.ChipOnly = False,
    no_hazards: options.NoHazards = False,
    strict: options.Strict = False,
    no_assumptions: options.NoAssumptions = False,
    engine: options.RunEngine = Engine.MODEL,
    function: options.Function = None,
    natives: options.Natives = None,
    work_queue: options.WorkQueue = None,
    init_function: options.InitFunction = None,
    error_codes: options.ErrorCodes = False,
    json: options.Json = False,
) -> None:
    """Run a compiled model, an inference for each set of inputs, or a function of a program.

    Operators that the compiler has left to the CPU run too, in LiteRT, unless --chip-only is given
    or a stop point or a tap looks inside the chip: the outputs are those of the whole model.
    Without --inputs the inputs are drawn from the seed. --until and --tap look inside before
    the end. A bare stream runs on the buffers of its descriptors: input0, output0 and so on.
    Of an ExecuTorch, IREE or BEF program a function is called on the CPU.
    """
    options.only_one_on_stdout(json=json, output=output)
    options.no_rtl(engine)
    options.schedule_of(schedules, schedule_seed)
    source = options.source_of(file)
    host = HostOptions(work_queue, init_function, error_codes)
    data, others = split_data(companions or ())
    if format_of(source) is not None:
        options.only_for(
            "DarwiNN files",
            until=until,
            preload=preload,
            then=then,
            model=model or None,
            with_=others or None,
            schedules=schedules or None,
            chip_only=chip_only,
            hazards=False if no_hazards else None,
            strict=strict,
            no_assumptions=no_assumptions,
        )
        with progress_bar() as progress, _archive(tap or (), output) as archive:
            report = run_program(
                source,
                inputs,
                function=function,
                engine=engine,
                natives=None if natives is None else load_natives(natives),
                data=data,
                host=host,
                seed=seed,
                runs=runs,
                inputs_kind=inputs_kind or (),
                taps=tap or (),
                keep=None if archive is None else partial(write_member, archive),
                progress=progress,
            )
            if archive is not None:
                for name, array in output_arrays(report).items():
                    write_member(archive, name, array)
        _finish(report, file, output, json, stored=archive is not None)
    options.only_for(
        "programs of other formats",
        function=function,
        natives=natives,
        data=data or None,
        work_queue=work_queue,
        init_function=init_function,
        error_codes=error_codes,
    )
    options.no_original(engine)
    stop, taps = _examine(until, tap or ())
    preloads = [each for text in preload or () for each in parse_preload(text)]
    with progress_bar() as progress:
        report = run(
            source,
            inputs,
            model=model,
            companions=others,
            then=then or (),
            seed=seed,
            runs=runs,
            inputs_kind=inputs_kind or (),
            until=stop,
            taps=taps,
            preloads=preloads,
            schedules=schedules,
            schedule_seed=schedule_seed,
            chip_only=chip_only,
            hazards=False if no_hazards else None,
            strict=strict,
            assumptions=not no_assumptions,
            progress=progress,
        )
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
    options.refuse_no_file(output)
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
        body=_body,
        next_step=_next_step(report, file, output),
        summary_on_stderr=output == "-",
    )


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
