"""Small changes of the project's own Python: each has to make a test fail.

    make mutations [MUTANTS=100] [SEED=N] [ONLY=WORD] [KERNELS=none] [SECONDS=S] [JOBS=N]
        [OUT=FOLDER]

Mutants of `sim` and of the DarwiNN files are drawn by seed: other comparisons, arithmetic,
constants, conditions and results, statements left out. Each is tried in a copy of the tree, without
real models, on the tests that execute its line, the nearest first. What came of it is kept in OUT:
the same command goes on there, and more mutants of a seed are the same ones and others. A mutant is
tried again when its file has changed, or the tests that were asked. Those of which equivalents.toml
says why nothing can tell them from the original do not count.

Exits with 1 if less than 95 % of the others are caught. docs/own-tests.md has more.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import takewhile
from operator import itemgetter
from pathlib import Path
from queue import SimpleQueue
from random import SystemRandom

from tests.mutation.mutants import Mutant, drawn, is_python, mutants_of
from tests.mutation.nearest import Chooser, contents, record
from tests.mutation.recorder import SOURCES
from tests.mutation.results import (
    CAUGHT,
    RESULTS,
    SURVIVED,
    BadEquivalent,
    Kept,
    Outcome,
    all_judged,
    equivalents,
    report,
    total_of,
)
from tests.mutation.tree import ROOT, ToolError, Tree

GOAL = 0.95
"""Share of the mutants that are not equivalent that has to be caught."""

TESTS = (
    "tests/formats/darwinn/test_*.py",
    "tests/formats/flatbuffer/test_*.py",
    "tests/sim/**/test_*.py",
    "tests/testbench/chip/test_*.py",
    "tests/testbench/comparison/test_*.py",
    "tests/testbench/compiler/test_*.py",
    "tests/testbench/device/**/test_*.py",
    "tests/testbench/layers/test_*.py",
    "tests/testbench/profile/test_*.py",
    "tests/testbench/cli/test_commands.py",
)
EQUIVALENTS = Path(__file__).with_name("equivalents.toml")

TEST_SECONDS = 15.0
"""So much do the tests of a mutant take together when nothing is changed."""
MORE_SECONDS = 120.0
"""So much do those that are asked after them, of what is left, and these together."""
_SLOWNESS = 4
"""So many times as long tests may take with kernels that are not optimised."""
_START_SECONDS, _COMPILE_SECONDS = 20, 120
"""Beside twice their time, they may take so much with a mutant; what takes longer is caught."""

_PORTION = 200
"""Mutants whose nearest tests are run without them first, before these are tried."""

_KERNELS = {"too": (False, True), "none": (False,), "only": (True,)}

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_PASSED, _TEST_FAILED, _USAGE, _NONE = 0, 1, 4, 5


@dataclass(frozen=True)
class Project:
    """Sources by their names, and all mutants of them."""

    sources: dict[str, bytes]
    mutants: list[Mutant]

    @classmethod
    def read(cls) -> Project:
        paths = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]
        sources = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths}
        found = [each for name, source in sources.items() for each in mutants_of(name, source)]
        return cls(sources, found)

    def key(self, mutant: Mutant) -> str:
        """What a mutant is in the file of results: it, and the source that it is made of."""
        source = hashlib.sha256(self.sources[mutant.file]).hexdigest()
        place = f"{mutant.start}-{mutant.end}: {mutant.replacement}"
        return hashlib.sha256(f"{mutant.file}/{source}/{place}".encode()).hexdigest()[:24]

    def sample(self, options: argparse.Namespace) -> list[Mutant]:
        """The mutants that the options ask for."""
        chosen: list[Mutant] = []
        for mutant in drawn(self.mutants, options.seed):
            if len(chosen) == options.mutants:
                break
            wanted = options.only in mutant.file and mutant.kernel in _KERNELS[options.kernels]
            if wanted and is_python(mutant.apply(self.sources[mutant.file])):
                chosen.append(mutant)
        return chosen


@dataclass(frozen=True)
class Asked:
    """Tests that are asked about a mutant: ``all`` of them, the ``nearest`` first."""

    nearest: Sequence[str]
    all: Sequence[str]

    @classmethod
    def chosen(cls, chooser: Chooser, mutant: Mutant) -> Asked:
        every = chooser.tests(mutant, MORE_SECONDS)
        return cls(chooser.within(every, TEST_SECONDS), every)


def attempt(tree: Tree, mutant: Mutant, source: bytes, tests: Asked) -> tuple[str, str]:
    """What came of a mutant on these tests, and which test has caught it, or how else."""
    if not tests.all:
        return SURVIVED, "no test executes it"
    nearest = set(tests.nearest)
    further = [each for each in tests.all if each not in nearest]
    # Compiled in a seventh of the time, kernels take three times as long: less in all.
    with tree.mutated(mutant, source, optimised=not mutant.kernel) as variables:
        in_fork = tree.forks(mutant)
        tries = [(tests.nearest, TEST_SECONDS, in_fork), (further, MORE_SECONDS, in_fork)]
        if in_fork:
            # What a process has kept since it has loaded the simulator may hide the mutant.
            tries.append((tests.nearest, TEST_SECONDS, False))
        for some, seconds, forked in filter(itemgetter(0), tries):
            result, by = _asked(tree, mutant, variables, some, seconds, in_fork=forked)
            if result == CAUGHT:
                return result, by
    return SURVIVED, f"{len(tests.all)} tests pass"


def _asked(
    tree: Tree,
    mutant: Mutant,
    variables: Mapping[str, str],
    tests: Sequence[str],
    seconds: float,
    *,
    in_fork: bool,
) -> tuple[str, str]:
    more = _COMPILE_SECONDS if tree.compiles(mutant) else _START_SECONDS
    limit = int(2 * seconds * (_SLOWNESS if mutant.kernel else 1)) + more
    ran = tree.forked(mutant, ["-x", *tests], variables, seconds=limit) if in_fork else None
    if ran is None:
        ran = tree.pytest(["-x", *tests], variables, seconds=limit)
    if ran.code == _PASSED:
        return SURVIVED, ""
    if ran.code in (-signal.SIGTERM, -signal.SIGINT):
        raise ToolError("the tests were ended from outside")
    if ran.code is None:
        return CAUGHT, "the tests do not end"
    if ran.code == _NONE or (ran.code == _USAGE and "not found:" in ran.output):
        raise ToolError(f"the tests of {mutant.name} cannot be found:\n{ran.output[-2000:]}")
    failed = _FAILED.search(ran.output)
    return CAUGHT, failed[1] if failed else f"exit code {ran.code}"


class Campaign:
    """Mutants in as many copies of the tree as there are jobs."""

    def __init__(self, project: Project, options: argparse.Namespace, folder: str) -> None:
        out: Path = options.out
        self._project = project
        self._trees: SimpleQueue[Tree] = SimpleQueue()
        for number in range(options.jobs):
            tree = Tree(Path(folder) / str(number), out)
            self._trees.put(tree)
        self._tree = tree
        self._root = tree.folder
        files = [p.relative_to(ROOT).as_posix() for each in TESTS for p in sorted(ROOT.glob(each))]
        self._end = None if options.seconds is None else time.monotonic() + options.seconds
        self._chooser = Chooser(tree, record(tree, out / "executed", files, self._is_over))
        self._kept = Kept(out / "mutations.jsonl")
        self._controlled: set[tuple[str, bool]] = set()
        self._jobs: int = options.jobs

    def judged(self, mutants: Sequence[Mutant]) -> Iterator[Outcome]:
        """Outcomes of the mutants, as far as there is time: what is known first, kernels last."""
        in_time = takewhile(lambda _: not self._is_over(), mutants)
        tests = {each.name: Asked.chosen(self._chooser, each) for each in in_time}
        left = []
        for mutant in mutants[: len(tests)]:
            known = self._known(mutant, tests[mutant.name].all)
            if known is None:
                left.append(mutant)
            else:
                yield known
        left.sort(key=lambda each: each.kernel)
        done = len(tests) - len(left)
        for first in range(0, len(left), _PORTION):
            portion = left[first : first + _PORTION]
            self._control(portion, tests)
            for outcome in self._attempted(portion, tests):
                done += 1
                self._kept.add(outcome)
                print(
                    f"\r\033[K{done} of {len(mutants)}: {outcome.result} {outcome.name}",
                    end="\n" if outcome.result == SURVIVED else "",
                    file=sys.stderr,
                    flush=True,
                )
                yield outcome

    def _is_over(self) -> bool:
        """Whether nothing more is to begin."""
        return self._end is not None and time.monotonic() > self._end

    def _control(self, mutants: Sequence[Mutant], tests: Mapping[str, Asked]) -> None:
        """The nearest test of each passes; what it compiles, its mutant need not."""
        for optimised in (True, False):
            asked = [each for each in mutants if each.kernel is not optimised]
            nearest = dict.fromkeys(test for each in asked for test in tests[each.name].all[:1])
            new = [test for test in nearest if (test, optimised) not in self._controlled]
            if new and not self._is_over():
                self._tree.control(new, optimised=optimised)
                self._controlled.update((test, optimised) for test in new)

    def _attempted(
        self, mutants: Sequence[Mutant], tests: Mapping[str, Asked]
    ) -> Iterator[Outcome]:
        """Outcomes of those that there is time for."""
        with ThreadPoolExecutor(self._jobs) as pool:
            futures: list[Future[Outcome | None]] = [
                pool.submit(self._attempt, each, tests[each.name]) for each in mutants
            ]
            for future in as_completed(futures):
                if outcome := future.result():
                    yield outcome

    def _known(self, mutant: Mutant, tests: Sequence[str]) -> Outcome | None:
        """What was found before, if it would be found again."""
        known = self._kept.get(self._project.key(mutant))
        if known is None or known.result not in RESULTS:
            return None
        asked = [known.by.partition("[")[0]] if "::" in known.by else tests
        if not all((self._root / each.split("::")[0]).is_file() for each in asked):
            return None
        return known if known.tests == contents(self._root, asked) else None

    def _attempt(self, mutant: Mutant, tests: Asked) -> Outcome | None:
        if self._is_over():
            return None
        begin = time.monotonic()
        tree = self._trees.get()
        try:
            source = self._project.sources[mutant.file]
            result, by = attempt(tree, mutant, source, tests)
        finally:
            self._trees.put(tree)
        asked = [by.partition("[")[0]] if "::" in by else tests.all
        return Outcome(
            key=self._project.key(mutant),
            tests=contents(self._root, asked),
            name=mutant.name,
            result=result,
            by=by,
            seconds=round(time.monotonic() - begin, 1),
        )


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    options = argparse.ArgumentParser(
        prog="python -m tests.mutation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--mutants", type=int, default=100, metavar="N")
    options.add_argument("--seed", type=int, metavar="N", help="drawn and printed without")
    options.add_argument(
        "--only", default="", metavar="WORD", help="of files with it in their path"
    )
    options.add_argument(
        "--kernels", choices=_KERNELS, default="too", help="compiled functions; a mutant takes long"
    )
    options.add_argument("--seconds", type=float, metavar="S", help="begin none after so long")
    options.add_argument("--jobs", type=int, default=1, metavar="N", help="at a time")
    options.add_argument("--out", type=Path, default=ROOT / "build" / "mutation", metavar="FOLDER")
    options.add_argument("--json", action="store_true")
    found = options.parse_args(arguments)
    if found.jobs < 1 or found.mutants < 1:
        options.error("there is at least one job and one mutant")
    if found.seed is None:
        found.seed = SystemRandom().randrange(1 << 31)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    options = options_of(arguments)
    project = Project.read()
    argued = equivalents(EQUIVALENTS, project.mutants)
    sample = project.sample(options)
    same = {each for each in sample if any(entry.matches(each) for entry in argued)}
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.out, prefix="tree-") as folder:
        outcomes = Campaign(project, options, folder).judged(
            [each for each in sample if each not in same]
        )
        judged = all_judged(sample, outcomes, same)
    places = len(drawn(project.mutants, options.seed))
    found = report(judged, project.sources, options.seed, places, EQUIVALENTS, as_json=options.json)
    total = total_of(found)
    return 0 if total.caught >= GOAL * total.real else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BadEquivalent, ToolError) as error:
        print(f"mutations: {error}", file=sys.stderr)
        sys.exit(2)
