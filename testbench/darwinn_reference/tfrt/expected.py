"""Comments of a text that say which errors it must report, and parts that are judged alone.

As MLIR's tools have it: ``// expected-error [@+N] {{text}}``, and lines ``// -----`` between parts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """A comment that says that the operation of a line reports an error with this text."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class ReportedError:
    """An error that was reported; ``place`` is empty where it has none."""

    line: int
    message: str
    place: str


_EXPECTED: Final = re.compile(r"//\s*expected-error\s*(?:@([+-]\d+)\s*)?\{\{(.*?)\}\}")
_BETWEEN: Final = re.compile(r"^// -----[^\n]*$", re.MULTILINE)


def expected_errors(source: str) -> list[ExpectedError]:
    """All ``expected-error`` comments of a text."""
    return [
        ExpectedError(number + int(match.group(1) or 0), match.group(2))
        for number, line in enumerate(source.splitlines(), 1)
        for match in _EXPECTED.finditer(line)
    ]


def parts_of(source: str) -> list[str]:
    """Parts of a text, each with empty lines before it so that its lines keep their numbers."""
    parts, line = [], 0
    for part in _BETWEEN.split(source):
        parts.append("\n" * line + part)
        line += part.count("\n")
    return parts


def complaints(reported: Sequence[ReportedError], expected: Sequence[ExpectedError]) -> list[str]:
    """Errors that were not expected, and those that were expected but did not come."""
    left = list(expected)
    found = []
    for error in reported:
        match = next((e for e in left if e.line == error.line and e.text in error.message), None)
        if match is None:
            found.append(f"{error.place}: error: {error.message}".removeprefix(": "))
        else:
            left.remove(match)
    return found + [f"line {e.line}: expected error {e.text!r} was not produced" for e in left]
