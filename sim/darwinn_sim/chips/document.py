"""The tables of docs/chip-facts.md and docs/timing.md that come from the descriptions of chips.

python -m darwinn_sim.chips.document [--check] FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from darwinn_sim.chips import DEFAULT
from darwinn_sim.chips.description import ChipDescription, read_chip
from darwinn_sim.chips.quantities import Quantity, Rule

_HARNESS: Final = "harness"


def _sizes() -> Iterator[tuple[str, ...]]:
    yield "parameter", "meaning", "Beagle", "confidence: evidence", "other chips"
    beagle = read_chip(DEFAULT)
    for name, rule, found in _parameters(beagle):
        if rule.compiled:
            evidence = f"{found.confidence}: {found.source}"
            yield f"`{name}`", rule.meaning, _value(found, rule), evidence, _others(rule)


def _others(rule: Rule) -> str:
    if rule.least == rule.most:
        return f"the same: {rule.why}"
    step = ", a power of two" if rule.power_of_two else ""
    step += f", a multiple of {rule.multiple}" if rule.multiple > 1 else ""
    return f"{rule.least:,} to {rule.most:,}{step}: {rule.why}"


def _times() -> Iterator[tuple[str, ...]]:
    yield "parameter", "unit", f"`{DEFAULT}`", f"`{_HARNESS}`", "confidence", "meaning", "source"
    beagle, harness = read_chip(DEFAULT), read_chip(_HARNESS)
    for name, rule, found in _parameters(beagle):
        if not rule.compiled:
            values = (f"{each.value:,}" for each in (found, getattr(harness, name)))
            facts = (str(found.confidence), rule.meaning, found.source)
            yield f"`{name}`", rule.unit, *values, *facts


def _parameters(description: ChipDescription) -> Iterator[tuple[str, Rule, Quantity]]:
    for name, rule in description.parameters().items():
        yield name, rule, getattr(description, name)


def _value(found: Quantity, rule: Rule) -> str:
    return f"{found.value:,} {rule.unit}{'s' if found.value != 1 and rule.unit != 'B' else ''}"


PAGES: Mapping[str, Callable[[], Iterator[tuple[str, ...]]]] = {
    "chip-facts.md": _sizes,
    "timing.md": _times,
}
"""For each page the rows of its table, the heads of columns first."""


def updated(page: str, rows: Iterator[tuple[str, ...]]) -> str:
    """The text of a page with its table brought up to date: what has the same first columns."""
    heads, *others = rows
    begin = f"| {' | '.join(heads[:2])} |"
    before, found, rest = page.partition(begin)
    if not found:
        raise ValueError(f"no table that begins with {begin}")
    _, end, after = rest.partition("\n\n")
    lines = [heads, ("---",) * len(heads), *others]
    return before + "\n".join(f"| {' | '.join(line)} |" for line in lines) + end + after


def main(arguments: Sequence[str]) -> int:
    """Bring the pages up to date, or with ``--check`` say which are not; gives the exit code."""
    code = 0
    for name, rows in PAGES.items():
        path = Path(arguments[-1]) / name
        text = path.read_text()
        new = updated(text, rows())
        if "--check" not in arguments:
            path.write_text(new)
        elif new != text:
            print(f"{path} is not up to date: make docs")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
