"""`darwinn diff`: what two compiled models, or two programs of another format, differ in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from rich.console import RenderableType

from darwinn_testbench.cli import options
from darwinn_testbench.cli.completed import offered, offered_in_list
from darwinn_testbench.cli.console import finish, wrapped
from darwinn_testbench.cli.declared import argument, option
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.cli.results import JUnit
from darwinn_testbench.difference.difference import AspectFigures, FileFigures, compared
from darwinn_testbench.difference.gates import Gate, by_gates
from darwinn_testbench.difference.rows import DIFFERS, DIGEST, NOT_KNOWN, Aspect, DifferenceRow
from darwinn_testbench.difference.side import Comparing
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Column, Report, Verdict, table, to_junit
from darwinn_testbench.report.files import write_result
from darwinn_testbench.report.shell import quote
from darwinn_testbench.report.tables import cell_text
from darwinn_testbench.request import settings
from darwinn_testbench.request.record import Wanted, refuse_no_file

EXAMPLES = """**Examples**

`darwinn diff before_edgetpu.tflite after_edgetpu.tflite`

`darwinn diff a_edgetpu.tflite b_edgetpu.tflite --only outputs,cycles`

`darwinn diff a_edgetpu.tflite b_edgetpu.tflite --reference model.tflite`

`darwinn diff model_edgetpu.tflite model.package --html difference.html`

`darwinn diff a_edgetpu.tflite b_edgetpu.tflite --only layers --all --json`

`darwinn diff old.pte new.pte --gate size=2% --gate portable=0 --gate gap=1e-3 --junit result.xml`
"""

A = Annotated[
    str,
    argument(
        "A",
        "Edge TPU .tflite, DarwiNN package or instruction stream; or a program of another format. "
        "- is stdin.",
    ),
]
B = Annotated[str, argument("B", "The second file.")]
Only = Annotated[
    list[str] | None,
    option(
        "--only ASPECT",
        f"Compare only this aspect: {', '.join(Aspect)}. Repeat it, or separate several by commas.",
        autocompletion=offered_in_list(tuple(Aspect)),
    ),
]
All = Annotated[bool, option("--all", "Also show figures that are equal, and long lists in full.")]
References = Annotated[
    list[str] | None,
    option(
        "--reference -r [A=|B=]MODEL",
        "The model before compilation (.tflite) of both files, or only of A or B. Its "
        "operators name the layers, and layers of the same tensor are shown side by side. "
        "Repeat it for two models.",
    ),
]
Gates = Annotated[
    list[str] | None,
    option(
        "--gate NAME=LIMIT",
        f"For programs of other formats: pass if the figure grows from A to B by at most LIMIT (or "
        f"LIMIT%), whatever else differs. NAME is one of {', '.join(Gate)}. Repeat it.",
        autocompletion=offered(tuple(f"{each}=" for each in Gate)),
    ),
]
Html = Annotated[
    Path | None, option("--html PATH", "Also write a page with all figures, and charts of cycles.")
]

_MOST_ROWS = 12
"""Rows of an aspect that the tables show; --all, --json and --html have all."""

_FILES: tuple[Column[tuple[str, FileFigures]], ...] = (
    Column("", lambda each: each[0]),
    Column("file", lambda each: Path(each[1].file).name, may_shrink=True),
    Column("kind", lambda each: each[1].kind),
    Column("bytes", lambda each: each[1].size, "right"),
    Column("sha256", lambda each: each[1].sha256[:12]),
    Column("runtime", lambda each: each[1].runtime, "right"),
)
_ASPECTS: tuple[Column[AspectFigures], ...] = (
    Column("aspect", lambda each: each.aspect.value),
    Column("difference", lambda each: each.said, may_shrink=True),
)
_ROWS: tuple[Column[DifferenceRow], ...] = (
    Column("figure", lambda row: row.name, may_shrink=True),
    Column("A", lambda row: _text(row.a), "right"),
    Column("B", lambda row: _text(row.b), "right"),
    Column("change", lambda row: row.change, may_shrink=True),
)
_NETWORK: Column[DifferenceRow] = Column("network", lambda row: row.network, may_shrink=True)
_OUTPUTS: tuple[Column[DifferenceRow], ...] = (
    Column("outputs", lambda row: row.part),
    Column("tensor", lambda row: row.name, may_shrink=True),
    Column("elements that differ", lambda row: row.change or "none"),
)


def command(
    a: A,
    b: B,
    asked: Wanted[Comparing],
    only: Only = None,
    every: All = False,
    reference: References = None,
    html: Html = None,
    gate: Gates = None,
    json: settings.Json = False,
    junit: JUnit = None,
) -> None:
    """Show how two compiled models differ: programs, resources, cycles and outputs.

    The command compares executables, instructions, layers, memory, parameters, DMA, cycles by layer
    and cause, and the outputs of both for the same inputs (generated from --seed, or given). Names,
    checksums, kind, compiler and token of the files are shown, but do not count as differences. As
    with diff(1), the exit code is 0 if nothing that you compare differs, and 1 otherwise.

    For two programs of another format (.pte, .vmfb, BEF) it compares functions, operators, their
    delegates, sizes, planned memory, constants and outputs.
    """
    options.only_one_on_stdout(json=json, html=html, junit=junit)
    refuse_no_file(html)
    aspects = _aspects(only or ())
    if a == b == "-":
        raise InputError("standard input can be one of the two")
    with progress_bar() as progress:
        sides = options.source_of(a), options.source_of(b)
        told = {"only": aspects, "references": _references(reference or ()), "gates": gate or ()}
        report = compared(asked(*sides, **told, progress=progress))
        if junit is not None:
            write_result(junit, to_junit([by_gates(report)]))
        if html is not None:
            # Imported here: no other call should wait for it.
            from darwinn_testbench.difference.page import page_of

            progress("drawing", 0, None)
            write_result(html, page_of(report))
    finish(
        report,
        file=f"{a} {b}",
        as_json=json,
        body=lambda found: _body(found, every) if str(html) != "-" else [],
        next_step=_next_step(report, a, b, reference or (), html),
        summary_on_stderr=str(html) == "-",
    )


def _aspects(given: Sequence[str]) -> tuple[Aspect, ...]:
    """What is asked for by name.

    Raises:
        InputError: there is no such aspect.
    """
    names = [name.strip() for each in given for name in each.split(",") if name.strip()]
    for name in names:
        if name not in list(Aspect):
            raise InputError(f"--only {name}: not one of {', '.join(Aspect)}")
    return tuple(Aspect(name) for name in names)


def _references(given: Sequence[str]) -> tuple[str | None, str | None]:
    """The models before compilation of A and of B.

    Raises:
        InputError: one of them is given twice, or no file.
    """
    found: dict[str, str] = {}
    for each in given:
        side, equals, path = each.partition("=")
        sides, model = (side, path) if equals and side in ("A", "B") else ("AB", each)
        if not model:
            raise InputError(f"--reference {each}: a file is missing: --reference {sides}=MODEL")
        for name in sides:
            if name in found:
                raise InputError(
                    f"--reference {each}: {name} has {found[name]} already; for two models "
                    "before compilation: --reference A=MODEL --reference B=MODEL"
                )
            found[name] = model
    return found.get("A"), found.get("B")


def _body(report: Report[DifferenceRow], every: bool) -> Sequence[RenderableType]:
    figures = report.figures
    parts: list[RenderableType] = [
        table(_FILES, list(zip("AB", figures["files"], strict=True))),
        "",
        table(_ASPECTS, figures["aspects"]),
    ]
    for each in figures["aspects"]:
        rows = [row for row in report.rows if row.aspect is each.aspect]
        parts += _aspect(each.aspect, [row for row in rows if every or not row.equal], every)
    return parts


def _aspect(aspect: Aspect, rows: Sequence[DifferenceRow], every: bool) -> Iterator[RenderableType]:
    """For each part of the model numbers as a table, the greatest changes first, and texts."""
    if aspect is Aspect.OUTPUTS and rows and all(str(row.a).startswith(DIGEST) for row in rows):
        yield ""
        yield table(_OUTPUTS, rows if every else rows[:_MOST_ROWS])
        yield from _more(rows, every)
        return
    for part in dict.fromkeys(row.part for row in rows if row.name != NOT_KNOWN):
        found = [row for row in rows if row.part == part]
        numbers = [row for row in found if row.is_number]
        if not every:
            # Totals, whose names are one word, and then what changes most.
            numbers.sort(key=lambda row: (" " in row.name, -abs(row.delta or 0)))
        texts = [row for row in found if not row.is_number]
        yield ""
        yield ", ".join(filter(None, (aspect.value, part)))
        if numbers:
            shown = numbers if every else numbers[:_MOST_ROWS]
            named = any(row.network for row in shown)
            yield table((*_ROWS[:1], _NETWORK, *_ROWS[1:]) if named else _ROWS, shown)
            yield from _more(numbers, every)
        yield from (wrapped(f"- {_line(row)}") for row in texts[: None if every else _MOST_ROWS])
        yield from _more(texts, every)


def _more(rows: Sequence[DifferenceRow], every: bool) -> Iterator[RenderableType]:
    left = len(rows) - _MOST_ROWS
    if left > 0 and not every:
        yield f"and {left:,} more; --all shows them"


def _line(row: DifferenceRow) -> str:
    """A text of both sides, behind the name of the figure and of the network's operator."""
    return f"{row.name}: {_said(row)}" + (f" [{row.network}]" if row.network else "")


def _said(row: DifferenceRow) -> str:
    """A text of both sides; of digests what is said of the bytes."""
    if str(row.a).startswith(DIGEST) and str(row.b).startswith(DIGEST):
        return row.change or "equal"
    if row.equal:
        return str(row.a)
    if row.a is None or row.b is None:
        return f"{_text(row.b if row.a is None else row.a)} ({row.change})"
    if row.a == row.b:
        return f"{row.a}: {row.change}"
    said = f" ({row.change})" if row.change and row.change != DIFFERS else ""
    return f"{_text(row.a)} → {_text(row.b)}{said}"


def _text(value: object) -> str:
    return "-" if value is None else cell_text(value)


def _next_step(
    report: Report[DifferenceRow], a: str, b: str, references: Sequence[str], html: Path | None
) -> str:
    rows = [row for row in report.rows if row.verdict is Verdict.MISMATCH]
    if html is not None and str(html) != "-":
        return f"open {html} in a browser"
    if any(row.aspect is Aspect.OUTPUTS and str(row.a).startswith(DIGEST) for row in rows):
        return f"darwinn verify {quote(b)} --reference MODEL says which of them is right"
    if rows:
        given = "".join(f" --reference {quote(each)}" for each in references)
        return f"darwinn diff {quote(a)} {quote(b)}{given} --html difference.html shows all of it"
    return ""
