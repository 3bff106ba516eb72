"""`darwinn regress`: many executables, seeds and engines, in parallel and resumable."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from rich.console import RenderableType

from darwinn_testbench.cli import results
from darwinn_testbench.cli.console import finish
from darwinn_testbench.cli.declared import argument
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.regression.task import Outcome
from darwinn_testbench.report import Column, Report, seconds, table
from darwinn_testbench.request import settings

EXAMPLES = """**A manifest**

`[defaults]` holds what the cases have in common, each `[[case]]` a file or a pattern:

`[[case]]`

`file = "models/*_edgetpu.tflite"`

`reference = "models/{name}.tflite"`

`seeds = [0, 1, 2]`

**Examples**

`darwinn regress nightly.toml --journal results`

`darwinn regress nightly.toml --journal results --github --junit results/junit.xml`

`darwinn regress nightly.toml --scheduler tcp://head:8786`
"""

_COLUMNS: tuple[Column[Outcome], ...] = (
    Column("case", lambda row: row.name, may_shrink=True),
    Column("engine", lambda row: row.engine),
    Column("seed", lambda row: row.seed, "right"),
    Column("runs", lambda row: row.inferences, "right"),
    Column("s", lambda row: seconds(row.seconds) if row.seconds else "-", "right"),
    Column("verdict", lambda row: row.verdict),
)

Manifest = Annotated[
    str, argument("MANIFEST", "TOML file that lists the cases (`darwinn docs ci` has every key).")
]


def command(
    manifest: Manifest,
    out: settings.Out = Path("regression"),
    jobs: settings.Jobs = None,
    scheduler: settings.Scheduler = None,
    fresh: settings.Fresh = False,
    assumptions: settings.Assumptions = True,
    *,
    written: results.Results,
) -> None:
    """Verify many executables: each case of the manifest, with each of its seeds, on each engine.

    Every finished task is written to disk at once. If a regression is killed, the same command
    continues where it stopped. It runs a task again if a file, an option or this program has
    changed, or if the machine caused the verdict, as after a timeout.
    """
    # Imported here: no other command should wait for what starts processes.
    from darwinn_testbench.regression.run import regress

    with progress_bar() as progress:
        report = regress(
            manifest,
            out,
            jobs=jobs,
            scheduler=scheduler,
            fresh=fresh,
            assumptions=assumptions,
            progress=progress,
        )
    written.write([report])
    finish(report, file=manifest, as_json=written.json, body=_body, next_step=_next_step(report))


def _body(report: Report[Outcome]) -> Sequence[RenderableType]:
    notes = [f"{row.case}: {row.message}" for row in report.rows if not row.verdict.passed]
    return [table(_COLUMNS, report.rows), *notes]


def _next_step(report: Report[Outcome]) -> str:
    failed = next((row for row in report.rows if row.verdict.failed), None)
    if failed is None:
        return "--junit, --sarif, --markdown and --github keep the result for a server"
    if not failed.conclusive:
        return (
            "the same command does again what the machine is to blame for; more time is `timeout` "
            "of a case, in seconds"
        )
    return f"{failed.command} --json says more of the first that does not pass"
