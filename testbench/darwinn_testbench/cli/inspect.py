"""`darwinn inspect`: what is in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NoReturn

from darwinn_formats.files import Source
from rich.console import RenderableType

from darwinn_testbench.chip.bit_coverage import CoverageRow, coverage, percent
from darwinn_testbench.chip.inspection import ExecutableRow, inspect
from darwinn_testbench.cli import options
from darwinn_testbench.cli.console import Lines, finish, wrapped
from darwinn_testbench.cli.declared import argument, option
from darwinn_testbench.cli.files import compiled_files, program_files
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.programs.contents import FunctionRow, inspect_program, summary_lines
from darwinn_testbench.programs.formats import Format, format_of
from darwinn_testbench.programs.several import inspect_files, together
from darwinn_testbench.report import Column, Report, counted, table
from darwinn_testbench.report.shell import quote
from darwinn_testbench.request import settings
from darwinn_testbench.request.scope import Scope

EXAMPLES = """**Examples**

`darwinn inspect model_edgetpu.tflite`

`darwinn inspect --json model_edgetpu.tflite | jq '.rows[].instructions'`

`darwinn inspect old_edgetpu.tflite new_edgetpu.tflite`

`darwinn inspect --coverage *_edgetpu.tflite`

`darwinn inspect program.pte`
"""

Files = Annotated[
    list[str],
    argument(
        "FILE",
        "Edge TPU .tflite, DarwiNN package or instruction stream; ExecuTorch .pte, .bpte, "
        ".ptd; IREE .vmfb; TFRT BEF or its text. - is standard input. A folder stands for all "
        "such files in it.",
    ),
]
Coverage = Annotated[
    bool,
    option(
        "--coverage",
        "Show how many set instruction bits lie in fields of known meaning, by opcode.",
    ),
]

_COLUMNS: tuple[Column[ExecutableRow], ...] = (
    Column("#", lambda row: row.index, "right"),
    Column("type", lambda row: row.type),
    Column("chunks", lambda row: row.chunks, "right"),
    Column("instructions", lambda row: row.instructions, "right"),
    Column("parameters", lambda row: row.parameter_bytes, "right"),
    Column("scratch", lambda row: row.scratch_bytes, "right"),
    Column("verdict", lambda row: row.verdict),
)


_COVERAGE_COLUMNS: tuple[Column[CoverageRow], ...] = (
    Column("instruction", lambda row: row.name, may_shrink=True),
    Column("count", lambda row: row.instructions, "right"),
    Column("set bits", lambda row: row.set_bits, "right"),
    Column("high", lambda row: row.high, "right"),
    Column("medium", lambda row: row.medium, "right"),
    Column("low", lambda row: row.low, "right"),
    Column("unknown", lambda row: row.open + row.outside, "right"),
    Column("known", lambda row: percent(row.explained, 1), "right"),
    Column("high", lambda row: percent(row.high_share, 1), "right"),
)


def command(
    files: Files,
    data: settings.DataFiles = (),
    show_coverage: Coverage = False,
    json: settings.Json = False,
) -> None:
    """Show the executables of a file, their inputs and outputs, and their instruction statistics.

    The command checks the whole file: every offset and length, every instruction, every bit. For
    programs of other formats it shows functions, data, delegates and operators.
    """
    if show_coverage:
        _show_coverage(compiled_files(files), as_json=json)
    files = program_files(files)
    if len(files) > 1:
        _show_several(files, data, as_json=json)
    (file,) = files
    source = options.source_of(file)
    program = format_of(source)
    if program is not None:
        _show_program(source, program, file, data, as_json=json)
    options.only_for(Scope.PROGRAM, data=data)
    report = inspect(source)
    finish(
        report,
        file=file,
        as_json=json,
        body=_body,
        next_step=f"darwinn disasm {quote(file)} shows the program; darwinn verify "
        f"{quote(file)} runs it",
    )


def _show_coverage(files: Sequence[str], *, as_json: bool) -> NoReturn:
    finish(
        coverage(list(map(options.source_of, files))),
        file=" ".join(files),
        as_json=as_json,
        body=_coverage_body,
        next_step="darwinn docs isa says what each field means, and how well that is known",
    )


def _show_several(files: Sequence[str], data: Sequence[Source], *, as_json: bool) -> NoReturn:
    with progress_bar() as progress:
        reports = inspect_files(files, options.source_of, data, progress)
    finish(
        together(reports),
        file=f"{len(files)} files",
        as_json=as_json,
        body=lambda _: [part for report in reports for part in _section(report)],
        next_step=f"darwinn disasm {quote(files[0])} shows the program of one of them",
    )


def _section(report: Report[Any]) -> list[RenderableType]:
    """What is said of one of several files."""
    head = f"{report.file}:"
    if not report.figures:
        return [
            head,
            wrapped(*(f"  {row.verdict.value}: {row.message}" for row in report.rows)),
            "",
        ]
    body = _body if "packages" in report.figures else _program_body
    return [head, *body(report), ""]


def _show_program(
    source: Source, found: Format, file: str, data: Sequence[Source], *, as_json: bool
) -> NoReturn:
    finish(
        inspect_program(source, found, data),
        file=file,
        as_json=as_json,
        body=_program_body,
        next_step=f"darwinn layers {quote(file)} shows its operators, "
        f"darwinn run {quote(file)} runs it",
    )


def _program_body(report: Report[FunctionRow]) -> Sequence[RenderableType]:
    figures = report.figures
    head = f"{figures['kind']}, {figures['size']:,} bytes, sha256 {figures['sha256'][:16]}…"
    told = {
        key: value
        for key, value in figures["description"].items()
        if key not in {"file", "size", "sha256", "format"}
    }
    functions = [_function(row) for row in report.rows]
    return [head, *functions, *map(wrapped, summary_lines(told))]


def _function(row: FunctionRow) -> Lines:
    """A function with what it takes and gives."""
    lines = [f"function {row.index} {row.name}: {row.instructions} instructions"]
    lines += [f"  input  {each}" for each in row.inputs]
    lines += [f"  output {each}" for each in row.outputs]
    return wrapped(*lines)


def _coverage_body(report: Report[CoverageRow]) -> Sequence[RenderableType]:
    notes = [f"{row.name}: {row.message}" for row in report.rows if row.message]
    return [table(_COVERAGE_COLUMNS, [*report.rows, report.figures["total"]]), *notes]


def _body(report: Report[ExecutableRow]) -> Sequence[RenderableType]:
    figures = report.figures
    head = f"{figures['kind']}, {figures['size']:,} bytes, sha256 {figures['sha256'][:16]}…"
    packages = [_package(package) for package in figures["packages"]]
    return [head, *packages, "", table(_COLUMNS, report.rows), "", *map(_details, report.rows)]


def _package(package: Mapping[str, Any]) -> str:
    compiler = package["compiler_version"] or "unknown"
    return (
        f"package of {package['executables']} executables, runtime version "
        f"{package['min_runtime_version']} or later, compiler {compiler}"
    )


def _details(row: ExecutableRow) -> Lines:
    counts = ", ".join(f"{count} {name}" for name, count in row.operations.items())
    model = "" if row.model is None else f", model {row.model}"
    facts = [] if row.program_layers is None else [counted(row.program_layers, "layer")]
    if row.token is not None:
        # A bare stream has neither.
        facts += [f"token {row.token}", counted(row.hints, "hint")]
    head = f"executable {row.index}{model}: {'; '.join(filter(None, [', '.join(facts), counts]))}"
    note = [f"  {row.message}"] if row.message else []
    lines = [head, *note, *(f"  {layer}" for layer in row.layers)]
    return wrapped(*lines)
