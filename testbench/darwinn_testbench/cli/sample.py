"""`darwinn sample`: write the project's own models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from rich.console import RenderableType

from darwinn_testbench.cli.console import finish
from darwinn_testbench.cli.declared import argument, option
from darwinn_testbench.compiler import SampleRow, sample
from darwinn_testbench.report import Column, Report, table
from darwinn_testbench.report.shell import quote
from darwinn_testbench.request import settings

EXAMPLES = """**Examples**

`darwinn sample build/sample`

`darwinn sample build/sample --seed 7 --json`
"""

Directory = Annotated[Path, argument("DIR", "Folder for the files; the command creates it.")]
Seed = Annotated[int, option("--seed N", "Seed of the weights.", min=0)]

_COLUMNS: tuple[Column[SampleRow], ...] = (
    Column("file", lambda row: row.name),
    Column("bytes", lambda row: row.bytes, "right"),
    Column("content", lambda row: row.content, may_shrink=True),
)


def command(directory: Directory, seed: Seed = 0, json: settings.Json = False) -> None:
    """Write three small networks, before compilation and compiled, to try the commands on.

    The dense network (int8) and the convolution (uint8) are compiled by this project, with real
    instructions, parameters and DMA hints. Before compilation each is a .tflite, a .pte
    (ExecuTorch) and a .bef (TFRT): three references to verify the compiled files with. The third
    network, a classifier with operators on the CPU, tells the colour of pictures, for `classify`
    and `evaluate`. `darwinn docs sample` explains how the programs work.
    """
    report = sample(directory, seed=seed)
    row = next(row for row in report.rows if row.reference)
    compiled, reference = Path(directory, row.name), Path(directory, row.reference)
    finish(
        report,
        file=str(directory),
        as_json=json,
        body=_body,
        next_step=f"darwinn verify {quote(str(compiled))} --reference {quote(str(reference))}",
    )


def _body(report: Report[SampleRow]) -> Sequence[RenderableType]:
    return [table(_COLUMNS, report.rows)]
