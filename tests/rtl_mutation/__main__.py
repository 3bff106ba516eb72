"""Small faults of the RTL: each has to make a test fail.

    make rtl-campaign [MUTANTS=30] [SEED=N] [ONLY=WORD] [SECONDS=S] [JOBS=N] [OUT=FOLDER]

Mutants of every source of the harness are drawn by seed, so many of each: stuck bits, inverted and
dropped conditions, constants off by one, other operators, lost resets and assignments, wrong
indices, widths, signs, priorities. Where the gate has proofs of a module (tests/formal), they are
asked first. What those let pass is compiled into one copy of the RTL, in which a simulation chooses
a mutant, and each is tried on the tests of its source, the nearest first, and of those the ones
that have caught the most. What came of it is kept in OUT: the same command goes on there, and more
mutants of a seed are the same ones and others. With --record what was caught goes into record.json
as well, from which every later run begins. What a test or a proof has caught is tried again when
its file or that test has changed, other mutants when any test that was asked has. Those of which
equivalents.toml says why nothing can tell them from the original do not count.

Scores are of what is judged. What is caught is known before what survives, so as long as drawn ones
are not judged they are too good; how many of each source there are is said.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import multiprocessing
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import SystemRandom

from darwinn_rtl.build_folders import build_root, locked
from darwinn_rtl.source_files import source_folder
from weaving import sources_in, write_copy

from tests.formal.yosys import WRAPPERS
from tests.mutation.mutants import Mutant, drawn
from tests.mutation.results import (
    CAUGHT,
    RESULTS,
    SURVIVED,
    TOTAL,
    BadEquivalent,
    Judged,
    Kept,
    Outcome,
    all_judged,
    equivalents,
    report,
    total_of,
)
from tests.rtl_mutation.asked import asked_about
from tests.rtl_mutation.elaborated import CannotElaborate, Elaborated
from tests.rtl_mutation.moments import CHECK, Moments
from tests.rtl_mutation.mutants import Finder, changes_of, mutants_of
from tests.rtl_mutation.proving import PROVED_BY, broken_by, proof_named
from tests.rtl_mutation.record import Catch, Record
from tests.rtl_mutation.runner import ToolError, prepare, run

ROOT = Path(__file__).parents[2]
EQUIVALENTS = Path(__file__).with_name("equivalents.toml")
SECOND_EQUIVALENTS = Path(__file__).with_name("second.toml")
RECORD = Path(__file__).with_name("record.json")
SECOND_RECORD = Path(__file__).with_name("second.json")

GOAL, GOAL_OF_SOURCE, ENOUGH = 0.97, 0.90, 20
"""Shares of the mutants that are not equivalent that have to be caught: in all, and in each source
with enough of them."""

BATCH = 700
"""So many mutants are compiled together; all are asked the near tests, then some the far ones."""
FIRST = 3
"""So many tests that have caught others of a source are asked before all others."""
CPU_SECONDS, SECONDS = 200, 7200
"""So long may the tests of a mutant take: each process, and all together; without one they take a
minute. Building, which only the first run does, takes longer."""
_BENCH, _MEMORIES = "bench", ("host_memory.sv", "unruly_memory.sv")
"""The folder whose sources are not the harness, but what plays it; those of them that are judged
all the same."""


@dataclass(frozen=True)
class Project:
    """Sources by their names, and all mutants of them."""

    sources: dict[str, bytes]
    mutants: list[Mutant]

    @classmethod
    def read(cls, *, second: bool = False) -> Project:
        """All mutants of the first generator, or those of the second, which has checkers too, and
        knows no plain Verilog."""
        sources = {
            path.relative_to(ROOT).as_posix(): path.read_bytes()
            for path in sorted(source_folder().rglob("*.sv" if second else "*.*v"))
            if (path.parent.name != _BENCH or (path.name in _MEMORIES and not second))
            and (second or not path.name.endswith(CHECK))
        }
        kinds = Moments if second else Finder
        return cls(sources, mutants_of(Elaborated.harness(source_folder()), sources, ROOT, kinds))

    def texts(self) -> dict[str, str]:
        """The texts of all files of the RTL, by file name."""
        own = {Path(name).name: text.decode() for name, text in self.sources.items()}
        return sources_in(source_folder()) | own

    def key(self, mutant: Mutant) -> str:
        """What a mutant is in the file of results: it, and the source that it is made of."""
        source = hashlib.sha256(self.sources[mutant.file]).hexdigest()
        place = f"{mutant.start}-{mutant.end}: {mutant.replacement}"
        return hashlib.sha256(f"{mutant.file}/{source}/{place}".encode()).hexdigest()[:24]

    def sample(self, options: argparse.Namespace) -> list[Mutant]:
        """The mutants that the options ask for: so many of each source, in turns."""
        by_file: dict[str, list[Mutant]] = defaultdict(list)
        chosen = self.mutants if options.every else drawn(self.mutants, options.seed)
        for mutant in chosen:
            place = f"{mutant.file}:{mutant.line}: {mutant.kind}: {mutant.before} -> {mutant.after}"
            chosen_here = any(word in place for word in options.only)
            if chosen_here and len(by_file[mutant.file]) < options.mutants:
                by_file[mutant.file].append(mutant)
        turns = ((n, each) for some in by_file.values() for n, each in enumerate(some))
        return [each for _, each in sorted(turns, key=lambda turn: (turn[0], turn[1].file))]


@cache
def _digest_of(files: frozenset[str]) -> str:
    contents = hashlib.sha256()
    for name in sorted(files):
        contents.update(name.encode() + (ROOT / name).read_bytes())
    return contents.hexdigest()[:24]


@cache
def _support() -> frozenset[str]:
    folders = ("tests/support", "tests/rtl")
    files = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return frozenset(path.relative_to(ROOT).as_posix() for path in files)


@cache
def _digest_of_test(file: str, name: str) -> str:
    """Of one test function: what is added beside it changes nothing that it has said."""
    text = (ROOT / file).read_text()
    found = (each for each in ast.parse(text).body if getattr(each, "name", "") == name)
    own = ast.get_source_segment(text, next(found)) or ""
    return hashlib.sha256(f"{file}/{own}".encode()).hexdigest()[:24]


def _digest_of_proof(by: str) -> str:
    proof = proof_named(by)
    said = f"{proof.name} {dict(proof.parameters)} {proof.bound}"
    return hashlib.sha256(
        (WRAPPERS / f"{proof.wrapper}.sv").read_bytes() + said.encode()
    ).hexdigest()[:24]


def digest(tests: Sequence[str], by: str) -> str:
    """Of what has decided about a mutant: the test that caught it, or all that were asked and what
    they are made of.

    Raises ``OSError`` or ``StopIteration`` if that test is not there any more.
    """
    if by.startswith(PROVED_BY):
        return _digest_of_proof(by)
    if "::" in by:
        file, _, name = by.partition("::")
        return _digest_of_test(file, name.partition("[")[0])
    return _digest_of(_support() | {test.partition("::")[0] for test in tests})


class Campaign:
    """Mutants in copies of the RTL, tried by as many processes as there are jobs."""

    def __init__(self, project: Project, options: argparse.Namespace) -> None:
        self._project = project
        self._kept = Kept(options.out / "rtl-mutations.jsonl")
        self._record = Record(SECOND_RECORD if options.second else RECORD)
        self._end = None if options.seconds is None else time.monotonic() + options.seconds
        self._jobs: int = options.jobs
        self._near: bool = options.near
        self._proofs_alone: bool = options.proofs
        self._fresh: bool = options.fresh
        self.known = 0
        """Of those judged: how many were known."""

    def judged(self, mutants: Sequence[Mutant]) -> Iterator[Outcome]:
        """Outcomes of the mutants, as far as there is time: what is known first."""
        left = []
        for mutant in mutants:
            known = self._known(mutant)
            if known is None:
                left.append(mutant)
            else:
                self.known += 1
                yield known
        unproved = []
        for number, (mutant, by, seconds) in enumerate(self._proofs(left), 1):
            if by:
                yield self._outcome(mutant, by, seconds, f"{number} of {len(left)}")
            else:
                unproved.append(mutant)
        if self._proofs_alone:
            return
        proved = len(left) - len(unproved)
        for first in range(0, len(unproved), BATCH):
            if self._late():
                return
            yield from self._batch(unproved[first : first + BATCH], proved + first, len(left))

    def _proofs(self, mutants: Sequence[Mutant]) -> Iterator[tuple[Mutant, str, float]]:
        """Each, the proof that it breaks, and the seconds: a proof needs no build, and is asked
        before all tests."""

        def asked(mutant: Mutant) -> tuple[Mutant, str, float]:
            begin = time.monotonic()
            by = "" if self._late() else broken_by(mutant, self._project.sources[mutant.file])
            return mutant, by, time.monotonic() - begin

        with ThreadPoolExecutor(self._jobs) as pool:
            yield from pool.map(asked, mutants)

    def _late(self) -> bool:
        return self._end is not None and time.monotonic() > self._end

    def _known(self, mutant: Mutant) -> Outcome | None:
        """What was found before, if it would be found again."""
        if self._fresh:
            return None
        key = self._project.key(mutant)
        recorded = self._record.get(key)
        known = self._kept.get(key) or (
            recorded
            and Outcome(key, recorded.digest, mutant.name, CAUGHT, recorded.by, seconds=0.0)
        )
        if known is None or known.result not in RESULTS:
            return None
        try:
            now = digest(asked_about(mutant.file).all, known.by)
        except (OSError, StopIteration):
            return None
        return known if known.tests == now else None

    def _batch(self, mutants: Sequence[Mutant], before: int, total: int) -> Iterator[Outcome]:
        numbered = dict(enumerate(mutants, 1))
        asked = {number: asked_about(each.file) for number, each in numbered.items()}
        with locked(build_root() / "campaign"):
            folder = build_root() / "campaign" / source_folder().name
            write_copy(source_folder(), folder, self._project.texts(), changes_of(numbered))
            done, passed = before, {}
            near = {
                number: quickest_first(each.near, self._record.tests_of(numbered[number].file))
                for number, each in asked.items()
            }
            end = self._end if self._near else self._middle()
            for number, by, seconds in self._tried(folder, near, end):
                if by or self._near or not asked[number].far:
                    done += 1
                    yield self._outcome(numbered[number], by, seconds, f"{done} of {total}")
                else:
                    passed[number] = seconds
                    _say(f"passes the near tests: {numbered[number].name}", stays=True)
            far = {number: asked[number].far for number in passed}
            for number, by, seconds in self._tried(folder, far, self._end):
                done += 1
                taken = passed[number] + seconds
                yield self._outcome(numbered[number], by, taken, f"{done} of {total}")

    def record(self, mutants: Sequence[Mutant], outcomes: Sequence[Outcome]) -> None:
        """Keep in the repository which of these were caught, and how."""
        files = {self._project.key(each): each.file for each in mutants}
        catches = [
            Catch(files[each.key], each.key, each.by, each.tests)
            for each in outcomes
            if each.result == CAUGHT
        ]
        self._record.write(catches, {self._project.key(each) for each in self._project.mutants})

    def _middle(self) -> float | None:
        """When the near tests have had their share of the time."""
        return (
            None if self._end is None else time.monotonic() + 0.6 * (self._end - time.monotonic())
        )

    def _tried(
        self, folder: Path, tests: dict[int, tuple[str, ...]], end: float | None
    ) -> Iterator[tuple[int, str, float]]:
        """The numbers of mutants that are begun before ``end``, how each was caught by these tests,
        and the seconds.
        """
        every = list(dict.fromkeys(test for some in tests.values() for test in some))
        if not every or self._late():
            return
        prepare(folder, every)
        _say("building, and running the tests without a mutant")
        ran = run(0, every, cpu_seconds=12 * CPU_SECONDS, seconds=SECONDS)
        if ran.caught:
            raise ToolError(f"without a mutant {ran.caught} fails:\n{ran.output[-4000:]}")
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(self._jobs, mp_context=context) as pool:
            futures = {
                pool.submit(_attempt, number, some, end): number for number, some in tests.items()
            }
            for future in as_completed(futures):
                found = future.result()
                if found is not None:
                    yield futures[future], *found

    def _outcome(self, mutant: Mutant, by: str, seconds: float, progress: str) -> Outcome:
        tests = asked_about(mutant.file).all
        outcome = Outcome(
            key=self._project.key(mutant),
            tests=digest(tests, by),
            name=mutant.name,
            result=CAUGHT if by else SURVIVED,
            by=by or f"{len(tests)} tests pass",
            seconds=round(seconds, 1),
        )
        if by or not self._near:
            self._kept.add(outcome)
        _say(f"{progress}: {outcome.result} {outcome.name}", stays=outcome.result == SURVIVED)
        return outcome


def quickest_first(tests: Sequence[str], catchers: Sequence[str]) -> tuple[str, ...]:
    """``tests`` behind those functions of them that caught the most; pytest runs none twice."""
    within = [
        each
        for each in catchers
        if any(each == test or each.startswith(f"{test}::") for test in tests)
    ]
    return (*within[:FIRST], *tests)


def unjudged(sample: Sequence[Mutant], judged: Sequence[Judged]) -> dict[str, int]:
    """Of each source how many mutants of the sample are not judged, where there are any."""
    known = {each.mutant for each in judged}
    return dict(Counter(each.file for each in sample if each not in known))


def _attempt(number: int, tests: Sequence[str], end: float | None) -> tuple[str, float] | None:
    """In a process of the pool: how a mutant was caught, and the seconds that it took."""
    if end is not None and time.monotonic() > end:
        return None
    begin = time.monotonic()
    by = run(number, tests, cpu_seconds=CPU_SECONDS, seconds=SECONDS).caught
    return by, time.monotonic() - begin


def _say(text: str, *, stays: bool = False) -> None:
    print(f"\r\033[K{text}", end="\n" if stays else "", file=sys.stderr, flush=True)


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    options = argparse.ArgumentParser(
        prog="python -m tests.rtl_mutation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--mutants", type=int, default=30, metavar="N", help="of each source")
    options.add_argument("--seed", type=int, metavar="N", help="drawn and printed without")
    options.add_argument(
        "--only",
        nargs="+",
        default=[""],
        metavar="WORD",
        help='those with one of them in "FILE:LINE: KIND: BEFORE -> AFTER"',
    )
    options.add_argument(
        "--near", action="store_true", help="ask the benches of units alone, and keep no survivors"
    )
    options.add_argument("--proofs", action="store_true", help="ask the proofs of the gate alone")
    options.add_argument("--record", action="store_true", help=f"keep catches in {RECORD.name}")
    options.add_argument(
        "--second",
        action="store_true",
        help="the kinds of the second generator (moments.py), with a record of its own",
    )
    options.add_argument(
        "--fresh",
        action="store_true",
        help="ask again what is known of an earlier call or recorded",
    )
    options.add_argument(
        "--every", action="store_true", help="every mutant of a place, not one that is drawn"
    )
    options.add_argument("--list", action="store_true", help="say which there are, and try none")
    options.add_argument("--seconds", type=float, metavar="S", help="begin none after so long")
    options.add_argument("--jobs", type=int, default=1, metavar="N", help="at a time")
    options.add_argument(
        "--out",
        type=Path,
        default=ROOT / "build" / "rtl-mutation",
        metavar="FOLDER",
        help="keeps what is found, so that the next call goes on (build/rtl-mutation)",
    )
    options.add_argument("--json", action="store_true", help="print what came out as JSON")
    found = options.parse_args(arguments)
    if found.jobs < 1 or found.mutants < 1:
        options.error("there is at least one job and one mutant")
    if found.seed is None:
        found.seed = SystemRandom().randrange(1 << 31)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    options = options_of(arguments)
    os.chdir(ROOT)
    project = Project.read(second=options.second)
    arguments_of = SECOND_EQUIVALENTS if options.second else EQUIVALENTS
    argued = equivalents(arguments_of, project.mutants)
    sample = project.sample(options)
    if not sample:
        print(f"rtl-campaign: no mutant has {' or '.join(options.only)} in it", file=sys.stderr)
        return 2
    same = {each for each in sample if any(entry.matches(each) for entry in argued)}
    if options.list:
        for each in sample:
            print(f"{each.file}:{each.line}: {each.kind}: {each.before} -> {each.after}")
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(project, options)
    outcomes = list(campaign.judged([each for each in sample if each not in same]))
    if options.record:
        campaign.record(sample, outcomes)
    judged = all_judged(sample, outcomes, same)
    places = len(drawn(project.mutants, options.seed))
    found = report(
        judged, project.sources, options.seed, places, arguments_of, as_json=options.json
    )
    if campaign.known and not options.json:
        print(f"{campaign.known} of them were known before; --fresh asks them again")
    left = unjudged(sample, judged)
    if left and not options.json:
        print(f"{sum(left.values())} drawn ones are not judged, so the shares are too good:")
        print(*(f"  {file} {count}" for file, count in sorted(left.items())), sep="\n")
    total = total_of(found)
    weak = [
        each.package
        for each in found
        if each.package != TOTAL
        and each.real >= ENOUGH
        and each.caught < GOAL_OF_SOURCE * each.real
    ]
    if weak:
        print(f"under {GOAL_OF_SOURCE:.0%}: {', '.join(weak)}", file=sys.stderr)
    return 0 if total.caught >= GOAL * total.real and not weak else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BadEquivalent, CannotElaborate, ToolError) as error:
        print(f"rtl-campaign: {error}", file=sys.stderr)
        sys.exit(2)
