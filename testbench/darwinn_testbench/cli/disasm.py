"""`darwinn disasm`: the program as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, NoReturn

from darwinn_testbench.chip.disassembly import ChunkRow, disassemble
from darwinn_testbench.cli import options
from darwinn_testbench.cli.console import Lines, RowType, finish
from darwinn_testbench.cli.declared import option
from darwinn_testbench.programs.contents import PartRow, list_program
from darwinn_testbench.programs.formats import format_of
from darwinn_testbench.programs.handler import MlirForm
from darwinn_testbench.report import Report
from darwinn_testbench.report.files import write_result
from darwinn_testbench.report.shell import quote
from darwinn_testbench.request import settings
from darwinn_testbench.request.scope import Scope
from darwinn_testbench.request.setting import Setting

EXAMPLES = """**Examples**

`darwinn disasm model_edgetpu.tflite | less`

`darwinn disasm --executable 0 --chunk 1 model_edgetpu.tflite`

`darwinn disasm --output program.txt tiny.coral`

`darwinn disasm --function forward program.pte`

`darwinn disasm --mlir plain program.bef`
"""

Chunk = Annotated[int | None, Setting("--chunk N", "Only this chunk.", least=0, scope=Scope.CHIP)]
Mlir = Annotated[
    MlirForm | None,
    Setting(
        "--mlir",
        "Print a BEF file as MLIR: plain as TFRT's own tools do, with locations, in generic "
        "forms, or exact, so that converting the text gives the same bytes.",
        scope=Scope.PROGRAM,
    ),
]
Output = Annotated[Path | None, option("--output -o PATH", "Write the listing here.")]


def command(
    file: options.AnyFile,
    executable: settings.Executable = None,
    chunk: Chunk = None,
    function: settings.Function = None,
    data: settings.DataFiles = (),
    mlir: Mlir = None,
    output: Output = None,
    json: settings.Json = False,
) -> None:
    """Print the instructions: operands by name, relocations, traversals as loop nests, tile sets.

    A traversal is printed from the outermost loop to the innermost: "L1 4 x +16 > L0 8 x +1" does 8
    steps of 1, four times, 16 apart. Of an ExecuTorch, IREE or BEF file, every method, module and
    function is listed.
    """
    options.only_one_on_stdout(json=json, output=output)
    source = options.source_of(file)
    program = format_of(source)
    if program is not None:
        options.only_for(Scope.CHIP, executable=executable, chunk=chunk)
        listed = list_program(source, program, data, function=function, mlir=mlir)
        _finish(listed, file, output, json, _lines)
    options.only_for(Scope.PROGRAM, function=function, data=data, mlir=mlir)
    _finish(disassemble(source, executable=executable, chunk=chunk), file, output, json, _listing)


def _finish(
    report: Report[RowType],
    file: str,
    output: Path | None,
    as_json: bool,
    listing: Callable[[Report[RowType]], Sequence[str]],
) -> NoReturn:
    if output is not None:
        write_result(output, "".join(f"{part}\n" for part in listing(report)).encode())
    finish(
        report,
        file=file,
        as_json=as_json,
        body=listing if output is None else _nothing,
        summary_on_stderr=True,
        next_step=f"darwinn inspect {quote(file)} tells what is in the file, darwinn run "
        f"{quote(file)} runs it",
    )


def _lines(report: Report[PartRow]) -> Sequence[str]:
    return [Lines.of(row.lines) for row in report.rows]


def _listing(report: Report[ChunkRow]) -> Sequence[str]:
    return [
        Lines.of([f"; {row.name}: {row.bundles} bundles", *(row.text or row.message).split("\n")])
        for row in report.rows
    ]


def _nothing(_: Report[RowType]) -> Sequence[str]:
    return []
