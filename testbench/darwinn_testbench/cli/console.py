"""Printing reports: tables or JSON on standard output, and the exit code."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import NoReturn, TypeVar

from darwinn_formats.errors import printable
from darwinn_formats.limits import MEMORY, SECONDS
from darwinn_formats.names import readable
from darwinn_sim.isa.grading import Assumption
from rich.console import Console, RenderableType

from darwinn_testbench.cli.terminal import Exit, print_line
from darwinn_testbench.report import EXIT_CODES, Report, Row, Verdict, styled
from darwinn_testbench.report.files import write_result
from darwinn_testbench.report.shell import quote

_MOST_ASSUMPTIONS = 10
_UNBOUNDED = 400
"""Characters of a line that no screen bounds."""
_WIDEST = 100_000
_LOG = 120
"""Characters of a line in the log of a CI server."""
_FULL_NAMES = ContextVar("full names", default=False)
_ROWS: ContextVar[Path | None] = ContextVar("rows", default=None)

RowType = TypeVar("RowType", bound=Row)


class Lines(str):
    """Several lines of a body, whose characters a terminal takes; any other string is one line."""

    __slots__ = ()

    @classmethod
    def of(cls, lines: Iterable[str]) -> Lines:
        """``lines``, each of which stays one whatever names it holds."""
        return cls("\n".join(map(readable, lines)))


@contextmanager
def full_names(wanted: bool) -> Iterator[None]:
    """Print tables as wide as they are if it is ``wanted``, whatever they are printed on."""
    token = _FULL_NAMES.set(wanted)
    try:
        yield
    finally:
        _FULL_NAMES.reset(token)


@contextmanager
def rows_to(target: Path | None) -> Iterator[None]:
    """Let :func:`finish` write the rows to ``target`` as CSV as well; ``-`` is standard output."""
    token = _ROWS.set(target)
    try:
        yield
    finally:
        _ROWS.reset(token)


def finish(
    report: Report[RowType],
    *,
    file: str,
    as_json: bool,
    body: Callable[[Report[RowType]], Sequence[RenderableType]],
    next_step: str,
    summary_on_stderr: bool = False,
) -> NoReturn:
    """Print ``report``, as JSON or as ``body`` and a verdict line, and end with its exit code.

    ``file`` is how the user named the file (the library does not know standard input). A string
    of the body is printed as one line, anything else as rich renders it. Where JSON goes to
    standard output, a line on standard error says why a report does not pass.
    """
    report = replace(report, file=file)
    next_step = _more_allowed(report) or next_step
    rows = _ROWS.get()
    if rows is not None:
        write_result(rows, report.to_csv())
    if str(rows) == "-":
        _print_summary(report, next_step, stderr=True)
    elif as_json:
        sys.stdout.write(report.to_json() + "\n")
        _say_why(report)
    else:
        _print_body(body(report))
        _print_body(assumption_lines(report.assumptions))
        _print_summary(report, next_step, stderr=summary_on_stderr)
    raise Exit(EXIT_CODES[report.verdict])


def _more_allowed(report: Report[RowType]) -> str:
    """What to try where a limit of the command line has ended a program; empty if none has."""
    passed = [each for each in (SECONDS, MEMORY) if each in report.headline]
    if report.verdict is not Verdict.FAULT or not passed:
        return ""
    value = {SECONDS: "S", MEMORY: "MIB"}[passed[0]]
    return f"the same with a larger {passed[0]} {value} allows more"


def after_failure(verdict: Verdict, file: str, *, drawn: bool = False) -> str:
    """What to try where the program of ``file`` has failed; ``drawn``: on inputs of a seed."""
    if verdict in (Verdict.RACE, Verdict.HAZARD):
        return f"darwinn disasm {quote(file)} shows what waits for which flag"
    shown = f"darwinn disasm {quote(file)} shows the program"
    if drawn and verdict is Verdict.FAULT:
        return f"{shown}; --inputs gives data, if what was drawn is none for it (an index, say)"
    return shown


def _say_why(report: Report[RowType]) -> None:
    if EXIT_CODES[report.verdict]:
        text = " ".join(report.headline.split())
        print_line(f"darwinn {report.command}: {report.verdict.value}: {text}")


def assumption_lines(assumptions: Sequence[Assumption]) -> list[str]:
    """A line for each assumption, up to a number that a person reads."""
    lines: list[str] = [
        wrapped(f"assumed: {each.text}") for each in assumptions[:_MOST_ASSUMPTIONS]
    ]
    more = len(assumptions) - len(lines)
    if more:
        lines.append(f"and {more:,} more assumptions; --json has them all")
    return [*lines, "(--no-assumptions refuses them)"] if lines else []


def wrapped(*lines: str) -> Lines:
    """``lines`` in the width of the terminal, what follows indented; words stay whole."""
    return Lines.of(part for line in map(readable, lines) for part in _wrapped(line))


def _wrapped(line: str) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line,
        Console().width,
        subsequent_indent=f"{indent}    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _console() -> Console:
    """Where tables go: as wide as the terminal or the log; elsewhere nothing has to fit."""
    if _FULL_NAMES.get():
        return Console(width=_WIDEST)
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return Console()
    return Console(width=_LOG if os.environ.get("CI") else _UNBOUNDED)


def _print_body(parts: Sequence[RenderableType]) -> None:
    console = _console()
    for part in parts:
        if isinstance(part, str):
            sys.stdout.write((part if isinstance(part, Lines) else readable(part)) + "\n")
        else:
            console.print(part)


def _print_summary(report: Report[RowType], next_step: str, *, stderr: bool) -> None:
    console = Console(stderr=stderr, highlight=False, soft_wrap=True, emoji=False)
    console.print(styled(report.verdict), end="")
    detail = f": {readable(report.headline)}" if report.headline else ""
    console.print(f"  {printable(report.file)}{detail}", markup=False)
    if next_step:
        console.print(printable(f"next: {next_step}"), style="dim", markup=False)
