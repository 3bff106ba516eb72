"""`darwinn dma`: what a program moves, against its hints."""

from __future__ import annotations

from collections.abc import Sequence

from darwinn_sim.host import dma_trace
from rich.console import RenderableType

from darwinn_testbench.chip.dma_check import DmaCheck, DmaFigures, checked_dma
from darwinn_testbench.cli import options, results
from darwinn_testbench.cli.console import Lines, finish
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.report import Column, Report, table
from darwinn_testbench.report.shell import quote
from darwinn_testbench.request.record import Wanted

EXAMPLES = """**Examples**

`darwinn dma model_edgetpu.tflite`

`darwinn dma --executable 0 --full model_edgetpu.tflite`

`darwinn dma --json model_edgetpu.tflite | jq '.rows[].entries[]'`
"""

_SUMMARY: tuple[Column[DmaFigures], ...] = (
    Column("executable", lambda row: row.name),
    Column("type", lambda row: row.type, may_shrink=True),
    Column("hints", lambda row: row.hints, "right"),
    Column("issued", lambda row: row.issued, "right"),
    Column("beyond", lambda row: row.beyond_hints, "right"),
    Column("bytes in", lambda row: row.bytes_in, "right"),
    Column("bytes out", lambda row: row.bytes_out, "right"),
    Column("verdict", lambda row: row.verdict),
)


def command(file: options.File, asked: Wanted[DmaCheck], written: results.Results) -> None:
    """Compare the DMA that the program issues with the DMA hints of the file, entry by entry.

    The command executes the scalar core to get the transfers. The hints are only the compiler's
    expectation. An entry is equal if kind, direction, buffer, offset and size are equal; contiguous
    descriptors count as one entry. A bare instruction stream has no hints: its transfers are only
    shown.
    """
    with progress_bar() as progress:
        report = checked_dma(asked(options.compiled_source_of(file), progress=progress))
    written.write([report])
    finish(report, file=file, as_json=written.json, body=_body, next_step=_next_step(report, file))


def _body(report: Report[DmaFigures]) -> Sequence[RenderableType]:
    return [*map(_listing, report.rows), table(_SUMMARY, report.rows)]


def _listing(row: DmaFigures) -> Lines:
    """Hints and transfers of one executable, one line each; where they differ, both."""
    head = f"{row.name} {row.type}"
    if row.comparison is None:
        return Lines.of([head, f"  {row.verdict.value}: {row.message}", ""])
    return Lines.of([head, *map(_line, row.comparison.rows), ""])


def _line(entry: dma_trace.DmaRow) -> str:
    issued = entry.issued.text() if entry.issued else "nothing"
    if not entry.equal:
        hint = entry.hint.text() if entry.hint else "nothing"
        return f"  {entry.index:4}  DIFFERS  hint: {hint}; chip: {issued}"
    against = f", {entry.against:,} bytes the other way" if entry.against else ""
    times = f"  ({entry.descriptors} descriptors{against})" if entry.descriptors > 1 else ""
    mark = "equal  " if entry.hint else "no hint"
    return f"  {entry.index:4}  {mark}  {issued}{times}"


def _next_step(report: Report[DmaFigures], file: str) -> str:
    if not report.verdict.failed:
        return f"darwinn verify {quote(file)} runs the whole chip"
    return f"darwinn disasm {quote(file)} shows the descriptors in the program"
