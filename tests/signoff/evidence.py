"""The evidence of a requirement: what its names stand for, when it runs, and what it said last.

Nothing is listed here: tests come from pytest, proofs with their faults from ``tests/formal``,
faults from ``faults.py``, units with bins from the tests that declare them, mutants from the record
of the campaign.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from faults import MUTATIONS, Mutation

from tests.formal.proofs import PROOFS
from tests.rtl_mutation.record import Record
from tests.signoff.collected import collected
from tests.signoff.requirements import ROOT, Requirement

GATE, NIGHT = "gate", "night"
_DECLARE = ("Coverage", "keep_bins")
"""Calls whose first argument is the name of a unit with bins."""


@dataclass(frozen=True)
class Evidence:
    """One piece: its name on the page, and when it runs.

    Attributes:
        kind: test, proof, bins or fault.
        name: as results are kept: a test's without its cases, a proof's, a unit's, a fault's.
        shown: as the page has it.
        when: in the gate, by night, or both.
        bites: how many faults show that it can fail: of the list, of a proof, of the campaign.
    """

    kind: str
    name: str
    shown: str
    when: frozenset[str]
    bites: int = 0


def test_name(written: str) -> str:
    """The whole name of a test of the record, where tests/rtl is left out."""
    folder = "tests/" if written.startswith("../") else "tests/rtl/"
    return folder + written.removeprefix("../")


def cases_of(name: str) -> list[str]:
    """Every collected case of a test; none if there is no such test."""
    return [each for each in collected() if each == name or each.startswith(f"{name}[")]


def proofs_of(written: str) -> list[tuple[str, frozenset[str]]]:
    """The properties that ``wrapper`` or ``wrapper.property`` names, each with the time of its
    proofs."""
    wrapper, _, label = written.partition(".")
    found: dict[str, set[str]] = {}
    for proof in PROOFS:
        if proof.wrapper == f"{wrapper}_proof":
            for each in proof.properties:
                if label in ("", each.label):
                    when = GATE if proof.of_the_gate else NIGHT
                    found.setdefault(f"{wrapper}.{each.label}", set()).add(when)
    return [(name, frozenset(when)) for name, when in found.items()]


def evidence(requirement: Requirement) -> list[Evidence]:
    """Everything that a requirement names, in the order of the page; raises ``KeyError`` with the
    first name that stands for nothing."""
    return [
        *_tests(requirement),
        *_proofs(requirement.proofs),
        *(_bins(unit) for unit in requirement.bins),
        *_faults(requirement.faults),
    ]


def _tests(requirement: Requirement) -> Iterator[Evidence]:
    catching = (_fault(name).test for name in requirement.faults)
    # Of some cases of a test and the test as a whole, the test as a whole is said.
    names = dict.fromkeys([*map(test_name, requirement.tests), *catching])
    for name in names:
        base = name.partition("[")[0]
        if base != name and base in names:
            continue
        cases = cases_of(name)
        if not cases:
            raise KeyError(f"{requirement.number}: there is no test {name}")
        when = frozenset(NIGHT if collected()[case] else GATE for case in cases)
        mutants = sum(count for case, count in _mutants().items() if case in set(cases))
        yield Evidence("test", name, name.removeprefix("tests/rtl/"), when, mutants)


def _proofs(names: Iterable[str]) -> Iterator[Evidence]:
    for name in names:
        found = proofs_of(name)
        if not found:
            raise KeyError(f"there is no proof {name}")
        for each, when in found:
            yield Evidence("proof", each, each, when, 1)


def _bins(unit: str) -> Evidence:
    declared = units_with_bins()
    if unit not in declared:
        raise KeyError(f"no test declares bins of {unit}")
    return Evidence("bins", unit, unit, frozenset({GATE, NIGHT}))


def _faults(names: Iterable[str]) -> Iterator[Evidence]:
    for name in names:
        # The fault is put in by night; the test that notices it may be in the gate.
        yield Evidence("fault", _fault(name).name, name, frozenset({NIGHT}), 1)


def _fault(name: str) -> Mutation:
    if name not in _MUTATIONS:
        raise KeyError(f"there is no fault {name}")
    return _MUTATIONS[name]


_MUTATIONS = {each.name: each for each in MUTATIONS}


@cache
def _mutants() -> Mapping[str, int]:
    """How many mutants of the campaign each case of a test has caught."""
    record = Record(ROOT / "tests" / "rtl_mutation" / "record.json")
    return Counter(catch.by for catch in record.catches())


@cache
def units_with_bins() -> Mapping[str, Path]:
    """Each unit for which a test of the RTL declares bins, and that test's file."""
    return {
        unit: path
        for path in sorted((ROOT / "tests" / "rtl").rglob("*.py"))
        for unit in _declared(ast.parse(path.read_text()))
    }


def _declared(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            first = node.args[0] if node.args else None
            if (
                node.func.id in _DECLARE
                and isinstance(first, ast.Constant)
                and isinstance(first.value, str)
            ):
                yield first.value
