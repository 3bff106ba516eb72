"""The statements of a page of docs/: each row of a table, each point of a list, each sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SENTENCE = re.compile(r"(?<=[.:]) +(?=[A-Z`])")
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_RULE_OF_TABLE = re.compile(r"\|[-:| ]+\|")


@dataclass(frozen=True)
class Statement:
    """What a page says at one place.

    Attributes:
        page: its name in docs/.
        section: the heading above it.
        text: in one line, without links; the cells of a row are joined by ": ".
    """

    page: str
    section: str
    text: str


def statements(page: str, text: str) -> Iterator[Statement]:
    """Every statement of a page, in order; headings, code and heads of tables are none."""
    section = ""
    for block in _blocks(text):
        if block.startswith("#"):
            section = block.lstrip("# ")
            continue
        for each in _parts(block):
            yield Statement(page, section, each)


def _blocks(text: str) -> Iterator[str]:
    """What stands between empty lines, and headings; code is left out."""
    lines: list[str] = []
    code = False
    for line in [*text.splitlines(), ""]:
        if line.startswith("```"):
            code = not code
            continue
        if code:
            continue
        if not line.strip() or line.startswith("#"):
            if lines:
                yield "\n".join(lines)
            lines = []
        if line.startswith("#"):
            yield line
        elif line.strip():
            lines.append(line)


def _parts(block: str) -> Iterator[str]:
    """The statements of a table, a list or a paragraph."""
    lines = block.splitlines()
    if block.startswith("|"):
        # Two lines of head come first.
        for row in lines[2 if _RULE_OF_TABLE.fullmatch(lines[1]) else 0 :]:
            cells = (cell.strip() for cell in row.strip("|").split(" | "))
            yield _plain(": ".join(filter(None, cells)))
        return
    points = re.split(r"(?m)^(?:[-*]|\d+\.) +", block)
    if len(points) > 1:
        head, *points = points
        yield from _sentences(head)
        yield from map(_plain, points)
        return
    yield from _sentences(block)


def _sentences(text: str) -> Iterator[str]:
    yield from filter(None, _SENTENCE.split(_plain(text)))


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", " ".join(text.replace("\\|", "|").split()))
