"""Bounds for a server: how much worse the second file may be, by figure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from darwinn_testbench.difference.programs import FILE, GAP, PORTABLE
from darwinn_testbench.difference.rows import Aspect, DifferenceRow, row
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import EXIT_CODES, Report, Verdict


class Gate(StrEnum):
    """A figure that can be bounded."""

    SIZE = "size"
    """Bytes of the file."""
    PORTABLE = "portable"
    """Operators that are left to the runtime's own kernels."""
    MEMORY = "memory"
    """Planned bytes of all functions."""
    CONSTANTS = "constants"
    """Constants that differ."""
    GAP = "gap"
    """The greatest difference of an output."""


def by_gates(report: Report[DifferenceRow]) -> Report[DifferenceRow]:
    """The report in which only gates fail, if there are any: a server counts what fails."""
    if not any(each.aspect is Aspect.GATES for each in report.rows):
        return report
    rows = (
        replace(each, verdict=Verdict.RAN, message=each.message or each.change)
        if each.aspect is not Aspect.GATES and EXIT_CODES[each.verdict] == 1
        else each
        for each in report.rows
    )
    return replace(report, rows=tuple(rows))


@dataclass(frozen=True)
class Bound:
    """How much a figure may grow from A to B; ``percent`` says that the limit is one of A's."""

    gate: Gate
    limit: float
    percent: bool

    def __str__(self) -> str:
        return f"{self.gate}={self.limit:g}{'%' if self.percent else ''}"


_BOUND = re.compile(r"(?P<gate>\w+)=(?P<limit>\d+(?:\.\d*)?(?:e-?\d+)?)(?P<percent>%?)")


def parse_bound(text: str) -> Bound:
    """Read ``NAME=LIMIT`` or ``NAME=LIMIT%``.

    Raises:
        InputError: it is none, or of no figure that can be bounded.
    """
    match = _BOUND.fullmatch(text)
    names = ", ".join(Gate)
    if match is None or match["gate"] not in list(Gate):
        raise InputError(f"--gate {text}: expected NAME=LIMIT or NAME=LIMIT%, NAME one of {names}")
    return Bound(Gate(match["gate"]), float(match["limit"]), bool(match["percent"]))


def _figure(aspect: Aspect, name: str) -> Callable[[Sequence[DifferenceRow]], DifferenceRow | None]:
    def found(rows: Sequence[DifferenceRow]) -> DifferenceRow | None:
        return next((each for each in rows if (each.aspect, each.name) == (aspect, name)), None)

    return found


def _gap(rows: Sequence[DifferenceRow]) -> DifferenceRow | None:
    gaps = [each for each in rows if each.aspect is Aspect.OUTPUTS and each.name.endswith(GAP)]
    return max(gaps, key=lambda each: each.delta or 0, default=None)


def _different_constants(rows: Sequence[DifferenceRow]) -> DifferenceRow | None:
    found = [each for each in rows if each.aspect is Aspect.CONSTANTS]
    return row(Aspect.CONSTANTS, "different", 0, sum(not each.equal for each in found))


_FIGURES: Mapping[Gate, Callable[[Sequence[DifferenceRow]], DifferenceRow | None]] = {
    Gate.SIZE: _figure(Aspect.SIZES, FILE),
    Gate.PORTABLE: _figure(Aspect.DELEGATES, PORTABLE),
    Gate.MEMORY: _figure(Aspect.MEMORY, "planned"),
    Gate.CONSTANTS: _different_constants,
    Gate.GAP: _gap,
}
ASPECTS: Mapping[Gate, Aspect] = {
    Gate.SIZE: Aspect.SIZES,
    Gate.PORTABLE: Aspect.DELEGATES,
    Gate.MEMORY: Aspect.MEMORY,
    Gate.CONSTANTS: Aspect.CONSTANTS,
    Gate.GAP: Aspect.OUTPUTS,
}
"""The aspect that each figure is of."""


def judged(bounds: Sequence[Bound], rows: Sequence[DifferenceRow]) -> Iterator[DifferenceRow]:
    """A row for each bound, which passes if the figure has grown by no more than its limit.

    A figure that is not known does not pass.
    """
    for bound in bounds:
        found = _FIGURES[bound.gate](rows)
        a, b = (0, 0) if found is None else (found.a or 0, found.b or 0)
        assert isinstance(a, int | float)
        assert isinstance(b, int | float)
        limit = bound.limit * abs(a) / 100 if bound.percent else bound.limit
        failed = next(
            (each for each in rows if each.aspect is ASPECTS[bound.gate] and each.message), None
        )
        unknown = failed is not None or (found is None and bound.gate is not Gate.MEMORY)
        reason = f"not known: {failed.message if failed else 'there is no such figure'}"
        yield row(
            Aspect.GATES,
            str(bound),
            a,
            b,
            equal=not unknown and b - a <= limit,
            message=reason if unknown else "",
        )
