"""Mutated files of every format through the command: every one has to end as documented.

    make fuzz [SECONDS=60] [SEED=N] [COUNT=N] [JOBS=N] [FORMATS="darwinn iree"] [TALLY=FILE]

A mutant follows from its number alone. Allowed ends are success, a verdict, and one error of a kind
that the project raises; an internal error, a signal, more than 2 GiB, or no end is a finding. Each
kind of finding is reduced and kept in build/fuzz, with the command that replays it; the exit code
is then 1. TALLY=FILE adds up what several runs did. docs/fuzzing.md has more.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import SystemRandom

import msgspec
from darwinn_testbench.compiler import sample

from benchmarks.figures import keep_figures
from tests.fuzz.formats import BY_NAME
from tests.fuzz.harness import LIMITS, Harness, Outcome, Task
from tests.fuzz.mutants import Seeds
from tests.fuzz.results import Results

_BUDGET = ("--max-seconds=1", "--max-memory=1024")
"""Of a program, which may take 30 times these seconds if the host sees it going on."""
_LIMITS_OF_DEFAULTS = replace(LIMITS, seconds=900)
"""Three commands, each of which may go on for a minute that the host does not see."""
_PROGRESS_SECONDS = 60.0
_DRAW_SECONDS = 60.0
_SHRINK_AT_MOST = 3
"""Findings of one kind of which the mutant is kept."""


@dataclass
class Session:
    """A run of the fuzzer: what was counted, and the first mutants of each kind of finding.
    ``replay`` is the command that does one again, without its number.
    """

    harness: Harness
    formats: tuple[str, ...]
    folder: Path
    replay: str
    results: Results
    kept: Path | None
    found: int = 0

    def take(self, outcome: Outcome, *, is_seed: bool = False) -> None:
        """Count an outcome; say and keep what it found."""
        if not is_seed:
            self.results.add(outcome)
        for finding in dict.fromkeys(outcome.findings):
            self.found += 1
            if self.results.found(finding, outcome.task.number) <= _SHRINK_AT_MOST:
                self._keep(outcome.task, finding, is_seed=is_seed)

    def save(self) -> None:
        """Keep the results, if they are to be kept."""
        if self.kept:
            self.results.save(self.kept)

    def _keep(self, task: Task, finding: str, *, is_seed: bool) -> None:
        shrunk = self.harness.shrunk(task, finding)
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{task.mutant.format}-{task.number}"
        suffix = task.mutant.suffix
        (self.folder / f"{name}{suffix}").write_bytes(self.harness.seeds.changed(shrunk.mutant))
        (self.folder / f"{name}.json").write_bytes(msgspec.json.encode(shrunk.mutant))
        print(f"FOUND {finding}", flush=True)
        print(f"  {'a seed' if is_seed else self.replay.format(task.number)}")
        print(f"  {self.folder / name}{suffix}: {msgspec.json.encode(shrunk.mutant).decode()}")


def main() -> int:
    """Fuzz as the arguments say; 1 if there is a finding."""
    options = _options()
    formats = tuple(options.formats)
    with tempfile.TemporaryDirectory(prefix="darwinn-fuzz-") as name:
        folder = Path(name)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            sample(folder)
            seeds = Seeds(folder)
        budget, limits = ((), _LIMITS_OF_DEFAULTS) if options.defaults else (_BUDGET, LIMITS)
        harness = Harness(seeds, budget, options.agree, options.jobs, limits=limits)
        results = Results.load(options.tally)
        session = Session(harness, formats, options.keep, _replay(options), results, options.tally)
        _fuzz(session, options)
    results.print()
    return int(bool(session.found))


def _replay(options: argparse.Namespace) -> str:
    if not (options.every_byte or options.endless or options.defaults):
        words = [f'FORMATS="{" ".join(options.formats)}"'] if options.formats else []
        return " ".join(["make fuzz", *words, "SEED={} COUNT=1"])
    words = ["--every-byte"] if options.every_byte else []
    words += ["--defaults"] if options.defaults else []
    words += [f"--endless {options.endless}"] if options.endless else []
    words += [f"--formats {' '.join(options.formats)}"] if options.formats else []
    return " ".join(["python -m tests.fuzz", *words, "--seed {} --count 1"])


def _fuzz(session: Session, options: argparse.Namespace) -> None:
    first = (options.seed or 0) if options.every_byte else _first(session.results, options.seed)
    print(f"fuzz: numbers from {first}, {options.jobs} at a time", flush=True)
    harness = session.harness
    wanted = [each for each in harness.seeds.all() if each.format in (session.formats or BY_NAME)]
    # Here, before anything is forked: compiled kernels and modules that a command loads.
    harness.warm_up(wanted)
    if options.count is None and not options.every_byte:
        for outcome in harness.outcomes(Task(0, mutant) for mutant in wanted):
            session.take(outcome, is_seed=True)
    begin = said = time.monotonic()
    done = 0
    session.results.begin(first)

    def tasks() -> Iterator[Task]:
        if options.every_byte:
            changed = map(Task, itertools.count(), harness.seeds.every_byte(session.formats))
            end = None if options.count is None else first + options.count
            yield from itertools.islice(changed, first, end)
            return
        for number in itertools.count(first):
            if options.count is not None and number >= first + options.count:
                return
            if options.count is None and time.monotonic() - begin > options.seconds:
                return
            with _bounded(number):
                mutant = harness.seeds.drawn(number, session.formats, options.endless)
            yield Task(number, mutant)

    for outcome in harness.outcomes(tasks()):
        session.take(outcome)
        done += 1
        if time.monotonic() - said > _PROGRESS_SECONDS:
            said = time.monotonic()
            print(f"fuzz: {done:,} mutants in {said - begin:.0f} s", flush=True)
            session.save()
    seconds = time.monotonic() - begin
    session.save()
    keep_figures({"mutants": done, "findings": session.found})
    print(
        f"fuzz: {done:,} mutants, numbers {first} to {first + done - 1}, "
        f"in {seconds:.0f} s ({done / seconds:.1f}/s)"
    )


class _NoEnd(BaseException):
    """No exception that any reader or writer would take for its own."""


@contextlib.contextmanager
def _bounded(number: int) -> Iterator[None]:
    """Bound the drawing of a mutant, in which the project's own writers write it."""

    def late(*_: object) -> None:
        raise _NoEnd(f"mutant {number} is not written after {_DRAW_SECONDS:g} s")

    signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, _DRAW_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _first(results: Results, wanted: int | None) -> int:
    """The first number: the ``wanted``, or the one after all that are in ``results``, or any."""
    return next(
        each
        for each in (wanted, results.next_number(), SystemRandom().randrange(1 << 31))
        if each is not None
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="the first number")
    parser.add_argument("--count", type=int)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--formats", nargs="*", default=(), choices=sorted(BY_NAME))
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--tally", type=Path, help="add to the results that this file keeps")
    parser.add_argument("--defaults", action="store_true", help="no smaller budgets than usual")
    parser.add_argument("--endless", type=float, default=0.0, help="share of programs without end")
    parser.add_argument(
        "--every-byte", action="store_true", help="each byte of each seed, from --seed on"
    )
    parser.add_argument("--no-agree", dest="agree", action="store_false")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
