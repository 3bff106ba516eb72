"""`darwinn warm-up`: compile the model of the chip before it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from rich.console import RenderableType

from darwinn_testbench.cli.console import finish
from darwinn_testbench.cli.declared import argument
from darwinn_testbench.cli.progress import compilation_bar
from darwinn_testbench.kernels import KernelsRow, Part, warm_up
from darwinn_testbench.report import Column, Report, table
from darwinn_testbench.request import settings

EXAMPLES = """**Examples**

`darwinn warm-up`

`darwinn warm-up function time --json`
"""

Parts = Annotated[
    list[Part] | None,
    argument(
        "PART",
        "function: results of the chip (run, verify and most others); time: cycles (cycles, "
        "profile, report); hazards: the hazard check of verify and run; proof: the proof of "
        "verify; lifted: many inputs at once. All by default, which takes about three minutes "
        "of processor time.",
    ),
]

_COLUMNS: tuple[Column[KernelsRow], ...] = (
    Column("part", lambda row: row.name),
    Column("compiled", lambda row: row.compiled, "right"),
    Column("found", lambda row: row.found, "right"),
    Column("bytes", lambda row: row.bytes, "right"),
    Column("processor s", lambda row: f"{row.processor_seconds:.1f}", "right"),
)


def command(parts: Parts = None, jobs: settings.Jobs = None, json: settings.Json = False) -> None:
    """Compile the model of the chip for this processor, before it is needed.

    The model of the chip consists of compiled functions, its kernels. Without this command, the
    first command that needs them compiles them, once for each processor and version of the sources,
    which takes a minute. An installation may contain kernels for any processor of
    its kind or newer; then no command has to wait, and this command makes inferences somewhat
    faster.

    Compiled kernels are kept in ~/.cache/darwinn-testbench (SECURITY.md says whom it trusts).
    Kernels of sources that were not used for 30 days are removed, and so are the oldest ones beyond
    2 GiB, unless they were used within a day.
    """
    with compilation_bar() as watch:
        report = warm_up(tuple(dict.fromkeys(parts or Part)), jobs=jobs, progress=watch)
    finish(report, file=report.file, as_json=json, body=_body, next_step="")


def _body(report: Report[KernelsRow]) -> Sequence[RenderableType]:
    return [table(_COLUMNS, report.rows)]
