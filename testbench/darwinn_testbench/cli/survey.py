"""`darwinn survey`: every program of the chip in folders, one row each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from rich.console import Console, RenderableType

from darwinn_testbench.cli import results
from darwinn_testbench.cli.console import finish, wrapped
from darwinn_testbench.cli.declared import argument, option
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Report, table
from darwinn_testbench.report.files import write_result
from darwinn_testbench.request import settings
from darwinn_testbench.request.record import refuse_no_file
from darwinn_testbench.survey.columns import FIELD_COLUMNS, row_columns
from darwinn_testbench.survey.field_values import KNOWN, FieldValues
from darwinn_testbench.survey.plan import LeftOut
from darwinn_testbench.survey.run import survey
from darwinn_testbench.survey.task import Options, SurveyRow

EXAMPLES = """**How files pair**

`zoo/NAME_edgetpu.tflite` is compared with `zoo/NAME.tflite`, or with `tflite/NAME.tflite` beside
the file or its folder; `NAME_cocompiled_with_...` and `NAME_segment_0_of_2` with that of NAME too.

**Examples**

`darwinn survey zoo`

`darwinn survey zoo more/model_edgetpu.tflite --jobs 4 --html survey.html`

`darwinn survey zoo --no-reference --strict --json > survey.json`
"""

_NAMED = 4
"""Files of a kind that are named where they are left out; --json and --html have all."""

Paths = Annotated[
    list[str],
    argument(
        "PATH",
        "Files, and folders in which the survey looks for compiled models by content.",
    ),
]
Html = Annotated[
    Path | None, option("--html PATH", "Also write all rows as one page; - is stdout.")
]


def command(
    paths: Paths,
    chosen: Options,
    out: settings.Out = Path("survey"),
    jobs: settings.Jobs = None,
    fresh: settings.Fresh = False,
    html: Html = None,
    *,
    written: results.Results,
) -> None:
    """Verify and time every compiled model in folders, one row each.

    A file is recognised by its content: compiled `.tflite`, bare package, or bare instruction
    stream. Each of its models runs as in `darwinn verify`, against the model before compilation of
    the same name. Other files are listed with the reason why they are left out. If a file cannot be
    read or executed, its row has the reason. The exit code is that of the worst row.

    Every finished row is written to disk at once (--journal). If a survey is killed, the same
    command continues where it stopped. It does a row again if its files, an option or this program
    has changed, or if the machine caused the verdict, as after a timeout.
    """
    if "-" in paths:
        raise InputError("standard input holds one file: darwinn verify takes it")
    written.refuse_beside(html=html)
    refuse_no_file(html)
    with progress_bar() as progress:
        report = survey(paths, out, chosen, jobs=jobs, fresh=fresh, progress=progress)
    if html is not None:
        # Imported here: nothing else should wait for the libraries that draw.
        from darwinn_testbench.survey.page import page_of

        write_result(html, page_of(report))
    written.write([report])
    finish(
        report,
        file=report.file,
        as_json=written.json,
        body=_body if str(html) != "-" else lambda _: [],
        next_step=_next_step(report, html),
        summary_on_stderr=str(html) == "-",
    )


def _body(report: Report[SurveyRow]) -> Sequence[RenderableType]:
    parts: list[RenderableType] = []
    if report.rows:
        parts.append(table(row_columns(report.rows, Console().width), report.rows))
    parts += [wrapped(f"{row.name}: {note}") for row in report.rows for note in _notes(row)]
    parts += _fields(report.figures["fields"])
    parts += _left_out(report.figures["left_out"])
    return parts


def _notes(row: SurveyRow) -> Iterator[str]:
    """What there is to say of a row that its columns do not."""
    if row.verdict.failed:
        yield row.why
    if row.untimed and row.untimed not in row.message:
        yield f"cannot be timed: {row.untimed}"
    if row.reference_assumes:
        yield f"the reference assumes: {'; '.join(row.reference_assumes)}"
    yield from row.warnings


def _fields(fields: Sequence[FieldValues]) -> Iterator[RenderableType]:
    """The values that are not known; the others are many."""
    told = [each for each in fields if each.grade != KNOWN]
    if told:
        yield ""
        yield table(FIELD_COLUMNS, told)
    if fields:
        known = len(fields) - len(told)
        yield wrapped(
            f"{known} fields held known values, {len(told)} fields others; --html and --json list "
            "all values"
        )


def _left_out(left_out: Sequence[LeftOut]) -> Iterator[str]:
    reasons: dict[str, list[str]] = defaultdict(list)
    for each in left_out:
        reasons[each.reason].append(Path(each.file).name)
    for reason, names in reasons.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield wrapped(f"left out, {reason}: {', '.join(names[:_NAMED])}{more}")


def _next_step(report: Report[SurveyRow], html: Path | None) -> str:
    failed = next((row for row in report.rows if row.verdict.failed), None)
    if failed is not None and not failed.conclusive:
        return (
            "the same command does again what the machine is to blame for; --timeout S allows more "
            "time"
        )
    if failed is not None:
        return f"{failed.command} --json says more of the first that does not pass"
    if not report.rows:
        return "darwinn survey --help says what is looked for"
    if html is not None and str(html) != "-":
        return f"open {html} in a browser"
    return "--html FILE shows it all as one page"
