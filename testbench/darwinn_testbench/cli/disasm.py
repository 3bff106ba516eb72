"""`darwinn disasm`: the program as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from darwinn_testbench.cli import options
from darwinn_testbench.cli.console import finish
from darwinn_testbench.disassembly import ChunkRow, disassemble
from darwinn_testbench.report import Report
from darwinn_testbench.report.files import write_result

NAME = "disasm"
EXAMPLES = """**Examples**

`darwinn disasm model_edgetpu.tflite | less`

`darwinn disasm --executable 0 --chunk 1 model_edgetpu.tflite`

`darwinn disasm --output program.txt tiny.coral`
"""

Chunk = Annotated[
    int | None,
    typer.Option("--chunk", metavar="N", min=0, help="Only this chunk.", show_default=False),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="PATH", help="Write the listing here.", show_default=False
    ),
]


def command(
    file: options.File,
    executable: options.Executable = None,
    chunk: Chunk = None,
    output: Output = None,
    json: options.Json = False,
) -> None:
    """Print the instructions: operands by name, relocations, traversals as loop nests, tile sets.

    A traversal reads from the outermost loop to the innermost: "L1 4 x +16 > L0 8 x +1" does 8
    steps of 1, four times, 16 apart.
    """
    options.only_one_on_stdout(json=json, output=output)
    report = disassemble(options.source_of(file), executable=executable, chunk=chunk)
    if output is not None:
        write_result(output, "".join(f"{part}\n" for part in _listing(report)).encode())
    finish(
        report,
        file=file,
        as_json=json,
        body=_listing if output is None else _nothing,
        summary_on_stderr=True,
        next_step=f"darwinn dma {file} shows what the program moves, darwinn verify {file} runs it",
    )


def _listing(report: Report[ChunkRow]) -> Sequence[str]:
    return [
        f"; {row.name}: {row.bundles} bundles\n{row.text or row.message}" for row in report.rows
    ]


def _nothing(_: Report[ChunkRow]) -> Sequence[str]:
    return []
