"""The sign-off page of the RTL: each requirement, what shows that it holds, and its last result.

    python -m tests.signoff docs/rtl-signoff.md            # write the page (make docs)
    python -m tests.signoff --check docs/rtl-signoff.md    # fail if it is not up to date
    python -m tests.signoff --record RUN...                # note down what runs have said

A RUN is a JUnit file of pytest, the JSON of ``python -m tests.formal --json``, or a folder of
``make rtl-coverage``. Exits with 1 if the page is not up to date, with 2 if the record or a run is
refused.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill, shorten

from benchmarks.common import commit
from tests.formal.proofs import PROOFS
from tests.signoff.evidence import GATE, NIGHT, Evidence, cases_of, evidence
from tests.signoff.requirements import (
    RecordRefused,
    Requirement,
    Requirements,
    requirements,
)
from tests.signoff.results import Last, by_evidence, keep, kept, outcomes

TITLES = {
    "DMA": "The DMA engine",
    "HOST": "The host interface",
    "CORE": "The scalar core's side and the ring",
    "TILE": "The tile",
    "UNIT": "What the units of a tile compute",
    "NUM": "Numbers",
    "PLAIN": "The player in plain Verilog",
    "BUS": "The AXI bus",
}
_HEAD = (
    "| number | requirement | shown by | faults that show that it bites | when | last result |",
    "|---|---|---|---|---|---|",
)

_LONGEST = 320
"""Characters of a requirement's words; the page that it links to has all."""

Found = Mapping[str, Sequence[Evidence]]
"""The evidence of each requirement, by its number."""


def kept_as(each: Evidence) -> str:
    """The name under which the result of a piece of evidence is kept."""
    return each.name if each.kind == "test" else f"{each.kind}:{each.name}"


def page(all_of_them: Requirements, found: Found, results: Mapping[str, Last]) -> str:
    """The page, without an end."""
    lacking = [each for each in all_of_them.all if not found[each.number]]
    toothless = [
        each
        for each in all_of_them.all
        if found[each.number] and not any(part.bites for part in found[each.number])
    ]
    return "\n".join(
        [
            "# Sign-off of the harness",
            "",
            *_introduction(all_of_them, found, results),
            "## Requirements without evidence",
            "",
            *(_list(lacking) or ["None."]),
            *_unnumbered(all_of_them),
            "",
            "## Requirements whose evidence no fault has tried",
            "",
            _filled(
                "A test or a set of bins is there, but no deliberate fault, proof or mutant of the "
                "campaign shows that it can fail."
            ),
            *(_list(toothless) or ["None."]),
            *_groups(all_of_them, found, results),
            "",
        ]
    )


def _introduction(
    all_of_them: Requirements, found: Found, results: Mapping[str, Last]
) -> list[str]:
    parts = {kept_as(each): each for several in found.values() for each in several}
    kinds = [each.kind for each in parts.values()]
    shown = sum(bool(several) for several in found.values())
    text = (
        "This page lists each requirement of the RTL, its evidence, and the last result of that. "
        "The statements are those of the pages that they link to; "
        "`tests/signoff/requirements.toml` numbers them and names the evidence. `make docs` writes "
        "this page; `make rtl-signoff RUN=FILE` notes down what a run said: a JUnit file of "
        "pytest, the JSON of `python -m tests.formal --json`, or the folder of "
        "`make rtl-coverage`.\n\n"
        f"{shown} of {len(all_of_them.all)} requirements have evidence: {kinds.count('test')} "
        f"tests, {kinds.count('proof')} proved properties, {kinds.count('bins')} sets of bins, "
        f"{kinds.count('fault')} deliberate faults. A proof has a fault of its own for each "
        "property. The mutants are those of the [campaign](rtl-faults.md#mutation-campaign) that "
        "the tests of a row caught.\n\n"
        "The last column says how many pieces passed the last run that was noted down, and when: "
        f"{len(parts.keys() & results)} of {len(parts)} are noted down. The others are no "
        "failures: no such run had them. Deliberate faults are tried at night, whatever the "
        "column before says of the tests."
    )
    return [_filled(part) for part in text.split("\n\n")]


def _filled(text: str) -> str:
    return f"{fill(text, 118, break_long_words=False, break_on_hyphens=False)}\n"


def _list(several: Iterable[Requirement]) -> list[str]:
    return [f"- **{each.number}** {_link(each)}: {_words(each)}" for each in several]


def _unnumbered(all_of_them: Requirements) -> list[str]:
    if not all_of_them.unnumbered:
        return []
    return [
        "",
        "These statements have no number yet:",
        "",
        *(f"- [{each.page}]({each.page}): {each.text}" for each in all_of_them.unnumbered),
    ]


def _groups(all_of_them: Requirements, found: Found, results: Mapping[str, Last]) -> Iterator[str]:
    for group, title in TITLES.items():
        yield from ("", f"## {title}", "", *_HEAD)
        for each in all_of_them.all:
            if each.group == group:
                yield _row(each, found[each.number], results)


def _row(requirement: Requirement, found: Sequence[Evidence], results: Mapping[str, Last]) -> str:
    anchor = f'<a id="{requirement.number.lower()}"></a>{requirement.number}'
    shown = [f"{_KINDS[each.kind]}`{each.shown}`" for each in found if each.kind in _KINDS]
    faults = [f"`{each.shown}`" for each in found if each.kind == "fault"]
    proofs = sum(each.kind == "proof" for each in found)
    mutants = sum(each.bites for each in found if each.kind == "test")
    faults += [f"{proofs} of proofs"] * bool(proofs) + [f"{mutants} mutants"] * bool(mutants)
    when = {part for each in found if each.kind in ("test", "proof") for part in each.when}
    times = ", ".join(part for part in (GATE, NIGHT) if part in when)
    cells = [
        anchor,
        f"{_words(requirement)} {_link(requirement)}",
        "<br>".join(shown),
        ", ".join(faults),
        times,
        _last(found, results),
    ]
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


_KINDS = {"test": "", "proof": "proof ", "bins": "bins "}


def _words(requirement: Requirement) -> str:
    return shorten("; ".join(each.text.rstrip(".:") for each in requirement.statements), _LONGEST)


def _link(requirement: Requirement) -> str:
    page = requirement.statements[0].page
    return f"([{page}]({page}))"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _last(found: Sequence[Evidence], results: Mapping[str, Last]) -> str:
    """What the pieces said last; those that failed by name."""
    known = [(each, results[kept_as(each)]) for each in found if kept_as(each) in results]
    bad = [f"**{each.shown} {last.said}** {last.date}" for each, last in known if not last.good]
    good = [last for _, last in known if last.good]
    words = [f"{len(good)} of {len(known)} good"] if known else []
    lacking = len(found) - len(known)
    words += [f"{lacking} not noted down"] * bool(lacking)
    if good:
        first, latest = min(each.date for each in good), max(each.date for each in good)
        words.append(first if first == latest else f"{first} to {latest}")
    return ", ".join([*bad, *words])


def names_of_results(found: Found) -> dict[str, list[str]]:
    """For each name under which results are kept: the outcomes of a run that it stands for."""
    names: dict[str, list[str]] = {}
    for each in (part for several in found.values() for part in several):
        if each.kind == "test":
            names[kept_as(each)] = cases_of(each.name)
        elif each.kind == "proof":
            wrapper = f"{each.name.partition('.')[0]}_proof"
            names[kept_as(each)] = [
                f"proof:{proof.name}" for proof in PROOFS if proof.wrapper == wrapper
            ]
        else:
            names[kept_as(each)] = [kept_as(each)]
    return names


def record(runs: Iterable[Path], found: Found) -> int:
    """Note down what runs have said; how many pieces of evidence they said something of."""
    names = names_of_results(found)
    results = {name: last for name, last in kept().items() if name in names}
    date = time.strftime("%Y-%m-%d")
    new: dict[str, Last] = {}
    for run in runs:
        new |= by_evidence(outcomes(run), names, date, commit())
    keep(results | new)
    return len(new)


def found_evidence(all_of_them: Requirements) -> Found:
    """The evidence of every requirement; raises ``KeyError`` for a name that stands for nothing."""
    return {each.number: evidence(each) for each in all_of_them.all}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.signoff",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="fail if the page is not up to date")
    parser.add_argument("--record", action="store_true", help="the paths are runs")
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="the page, or runs")
    options = parser.parse_args(arguments)
    try:
        all_of_them = requirements()
        found = found_evidence(all_of_them)
        if options.record:
            print(f"noted down: {record(options.paths, found)} results")
            return 0
    except (RecordRefused, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    (path,) = options.paths
    written = page(all_of_them, found, kept())
    if options.check:
        if not path.exists() or path.read_text() != written:
            print(f"{path} is not up to date: make docs")
            return 1
        return 0
    path.write_text(written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
