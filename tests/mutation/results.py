"""What came of mutants: kept in a file, counted, and told."""

from __future__ import annotations

import difflib
import json
import math
import os
import sys
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.figures import keep_figures
from tests.mutation.mutants import Mutant

CAUGHT, SURVIVED, EQUIVALENT = "caught", "SURVIVED", "equivalent"
RESULTS = (CAUGHT, SURVIVED)

_CONFIDENCE = 1.96
"""Standard deviations within which 95 % lie."""


class BadEquivalent(Exception):
    """An entry of the file of equivalents that is wrong; the text says which, and how."""


@dataclass(frozen=True)
class Outcome:
    """What came of a mutant (``key``: of which source) when ``tests`` (a digest) were asked.

    ``by``: the test that has caught it, or how else it ended.
    """

    key: str
    tests: str
    name: str
    result: str
    by: str
    seconds: float


class Kept:
    """Outcomes in a file: a line each, written at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Outcome] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                outcome = Outcome(**json.loads(line))
            except (ValueError, TypeError):
                continue  # was not written to its end
            self._known[outcome.key] = outcome

    def get(self, key: str) -> Outcome | None:
        """The last outcome of a mutant, whichever tests were asked."""
        return self._known.get(key)

    def add(self, outcome: Outcome) -> None:
        """Keep one."""
        self._known[outcome.key] = outcome
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")


@dataclass(frozen=True)
class Equivalent:
    """Why nothing can catch the mutant that makes ``mutated`` of the line ``original``."""

    file: str
    function: str
    original: str
    mutated: str
    reason: str

    def matches(self, mutant: Mutant) -> bool:
        """Whether it speaks of this mutant."""
        mine = (self.file, self.function, self.original, self.mutated)
        return mine == (mutant.file, mutant.function, mutant.before, mutant.after)


def equivalents(path: Path, mutants: Collection[Mutant]) -> list[Equivalent]:
    """The entries of a file; raises :class:`BadEquivalent` for one that speaks of no mutant."""
    found = []
    known = {(each.file, each.function, each.before, each.after) for each in mutants}
    for entry in tomllib.loads(path.read_text()).get("equivalent", ()):
        try:
            each = Equivalent(**entry)
        except TypeError as error:
            raise BadEquivalent(f"{path.name}: {entry}: {error}") from error
        if (each.file, each.function, each.original, each.mutated) not in known:
            raise BadEquivalent(
                f"{path.name}: no mutant of {each.function} in {each.file} "
                f"makes {each.mutated!r} of {each.original!r}"
            )
        if not each.reason.strip():
            raise BadEquivalent(f"{path.name}: {each.original!r} gives no reason")
        found.append(each)
    return found


@dataclass(frozen=True)
class Judged:
    """A mutant and what came of it."""

    mutant: Mutant
    result: str
    by: str
    seconds: float

    def row(self) -> dict[str, object]:
        """For JSON."""
        mutant = self.mutant
        return {
            "file": mutant.file,
            "line": mutant.line,
            "function": mutant.function,
            "package": package_of(mutant.file),
            "kind": mutant.kind,
            "before": mutant.before,
            "after": mutant.after,
            "result": self.result,
            "by": self.by,
            "seconds": self.seconds,
        }


def all_judged(
    sample: Sequence[Mutant], outcomes: Iterable[Outcome], argued: Iterable[Mutant]
) -> list[Judged]:
    """Those of a sample that were tried, and those that are argued to be equivalent."""
    known = {each.name: each for each in outcomes}
    tried = [(each, known[each.name]) for each in sample if each.name in known]
    return [
        *(Judged(each, found.result, found.by, found.seconds) for each, found in tried),
        *(Judged(each, EQUIVALENT, "", 0.0) for each in argued),
    ]


def package_of(file: str) -> str:
    """The folder that a file is counted with."""
    parts = Path(file).parts
    return ".".join(parts[1:3]).removesuffix(".py").removesuffix(".sv")


def wilson(part: int, whole: int) -> tuple[float, float]:
    """The interval in which the share lies, with 95 % confidence, of which a sample has ``part``
    of ``whole`` (Wilson, 1927)."""
    if whole == 0:
        return 0.0, 1.0
    z, share = _CONFIDENCE, part / whole
    middle = share + z * z / (2 * whole)
    around = z * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole))
    scale = 1 + z * z / whole
    return max(0.0, (middle - around) / scale), min(1.0, (middle + around) / scale)


@dataclass(frozen=True)
class Score:
    """How many mutants there were of a package, and what came of them."""

    package: str
    mutants: int
    caught: int
    equivalent: int

    @property
    def real(self) -> int:
        """Those that are not equivalent."""
        return self.mutants - self.equivalent

    def row(self) -> str:
        """A line of the table."""
        share = f"{100 * self.caught / self.real:.1f} %" if self.real else "-"
        low, high = wilson(self.caught, self.real)
        between = f"{100 * low:.0f}-{100 * high:.0f} %"
        return (
            f"{self.package:<28} {self.mutants:>7} {self.caught:>7} {self.equivalent:>10} "
            f"{share:>8} {between:>9}"
        )


TOTAL = "in all"


def scores(judged: Iterable[Judged]) -> list[Score]:
    """Of each package, and in all."""
    by_package: dict[str, list[str]] = defaultdict(list)
    for each in judged:
        by_package[package_of(each.mutant.file)].append(each.result)
    everything = [result for results in by_package.values() for result in results]
    groups = [*sorted(by_package.items()), (TOTAL, everything)]
    return [
        Score(name, len(results), results.count(CAUGHT), results.count(EQUIVALENT))
        for name, results in groups
    ]


def total_of(found: Iterable[Score]) -> Score:
    """The one of all packages."""
    return next(each for each in found if each.package == TOTAL)


def figures(found: Iterable[Score]) -> dict[str, float]:
    """Of all: how many were judged, and the share that was caught, with its interval."""
    total = total_of(found)
    low, high = (100 * each for each in wilson(total.caught, total.real))
    share = 100 * total.caught / total.real if total.real else 100.0
    return {
        "mutants": total.mutants,
        "caught, %": share,
        "caught at least, %": low,
        "caught at most, %": high,
    }


def table(found: Sequence[Score]) -> list[str]:
    """Lines that show them."""
    head = f"{'':<28} mutants  caught equivalent    share      95 %"
    return [head, *(each.row() for each in found)]


def report(
    judged: Sequence[Judged],
    sources: Mapping[str, bytes],
    seed: int,
    places: int,
    argued: Path,
    *,
    as_json: bool,
) -> list[Score]:
    """Print what came of mutants, and keep their figures; the scores.

    ``places`` is how many there are to draw mutants of, ``argued`` the file of equivalents.
    """
    found = scores(judged)
    keep_figures(figures(found))
    print(file=sys.stderr)
    if as_json:
        print(json.dumps({"seed": seed, "mutants": [each.row() for each in judged]}, indent=2))
        return found
    for each in judged:
        if each.result == SURVIVED:
            print(*shown(each.mutant, sources[each.mutant.file]), sep="\n")
            print(f"    {each.by}\n")
    print(*table(found), sep="\n")
    total = total_of(found)
    print(
        f"seed {seed}, {total.mutants} of {places} places; each that survives wants a test, or a "
        f"reason in {os.path.relpath(argued)}"
    )
    return found


def shown(mutant: Mutant, source: bytes) -> list[str]:
    """Where a mutant is, and what it changes."""
    old, new = (text.decode().splitlines(keepends=True) for text in (source, mutant.apply(source)))
    diff = difflib.unified_diff(old, new, mutant.file, mutant.file, n=1)
    return [
        f"{mutant.file}:{mutant.line}: {mutant.kind} in {mutant.function}",
        *("    " + line.rstrip("\n") for line in list(diff)[2:]),
    ]
