"""What the RTL has to do: the record ``requirements.toml``, and the rules of the AXI bus.

The words of a requirement are those of its page in docs/; the record has how they begin.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from darwinn_rtl.axi_rules import RULES
from faults import untold

from tests.signoff.statements import Statement, statements

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_name("requirements.toml")
SCANNED = ("DMA", "HOST", "CORE", "TILE")
"""Groups whose pages are about nothing but the RTL: each statement there is a requirement, or is
said to be none."""
RULE_TESTS = (
    "dma/test_axi_check.py::test_what_breaks_a_rule_is_told_under_its_name[{}]",
    "dma/test_axi_check.py::test_what_breaks_a_rule_is_told_of_each_identifier_behind_other_traffic[{}]",
)
"""Tests of the checker that are made of the table of rules."""
_KINDS = ("tests", "proofs", "bins", "faults")


class RecordRefused(Exception):
    """The record says what its pages or its form do not allow."""


@dataclass(frozen=True)
class Requirement:
    """A numbered requirement, its statements, and the names of its evidence."""

    number: str
    statements: tuple[Statement, ...]
    tests: tuple[str, ...] = ()
    proofs: tuple[str, ...] = ()
    bins: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """The letters of its number."""
        return self.number.partition("-")[0]


@dataclass(frozen=True)
class Requirements:
    """All requirements, and the statements of the scanned pages that have no number."""

    all: tuple[Requirement, ...]
    unnumbered: tuple[Statement, ...]


@cache
def requirements(record: Path = RECORD) -> Requirements:
    """Read the record; raises ``RecordRefused`` if a page does not say what it quotes."""
    written = tomllib.loads(record.read_text())
    pages: dict[str, str] = written.pop("pages")
    remarks: dict[str, list[str]] = written.pop("remarks")
    known = {page: _said(page) for page in {*pages.values(), *remarks, *_named_pages(written)}}
    of_rules = {f"BUS-{rule.name}" for rule in RULES}
    found = [
        *_read(written, pages, known, without=of_rules),
        *_rules({name: each for name, each in written.items() if name in of_rules}),
    ]
    claimed = {each for requirement in found for each in requirement.statements}
    claimed |= {
        each for page, starts in remarks.items() for each in _quoted(page, starts, known[page])
    }
    left = [each for group in SCANNED for each in known[pages[group]] if each not in claimed]
    return Requirements(tuple(found), tuple(left))


def _named_pages(written: dict[str, Any]) -> Iterator[str]:
    return (each["page"] for each in written.values() if "page" in each)


def _said(page: str) -> list[Statement]:
    return list(statements(page, (ROOT / "docs" / page).read_text()))


def _read(
    written: dict[str, Any],
    pages: dict[str, str],
    known: dict[str, list[Statement]],
    without: set[str],
) -> Iterator[Requirement]:
    for number, entry in written.items():
        if number in without:
            continue
        unknown = set(entry) - {"page", "says", *_KINDS}
        if unknown:
            raise RecordRefused(f"{number} has {sorted(unknown)}")
        page = entry.get("page") or pages[number.partition("-")[0]]
        says = entry["says"]
        starts = [says] if isinstance(says, str) else says
        yield Requirement(number, tuple(_quoted(page, starts, known[page])), **_evidence(entry))


def _rules(more: dict[str, Any]) -> Iterator[Requirement]:
    """A requirement for each rule of the bus; ``more`` is evidence besides its own tests."""
    for rule in RULES:
        number = f"BUS-{rule.name}"
        said = Statement("rtl-bus.md", "The rules", f"{rule.name}: {rule.side}: {rule.says}")
        own = _evidence(more.get(number, {}))
        own["tests"] = (*(test.format(rule.name) for test in RULE_TESTS), *own["tests"])
        own["faults"] = (untold(rule), *own["faults"])
        yield Requirement(number, (said,), **own)


def _evidence(entry: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    return {kind: tuple(entry.get(kind, ())) for kind in _KINDS}


def _quoted(page: str, starts: Sequence[str], said: Sequence[Statement]) -> Iterator[Statement]:
    for start in starts:
        found = [each for each in said if each.text.startswith(start)]
        if not found:
            raise RecordRefused(f"no statement of docs/{page} begins with: {start}")
        # The same words may stand in two tables; both are meant.
        yield from found
