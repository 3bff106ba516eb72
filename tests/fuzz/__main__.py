"""Mutated files of every format through the command: every one has to end as documented.

    make fuzz [SECONDS=60] [SEED=N] [COUNT=N] [JOBS=N] [FORMATS="darwinn iree"]

A mutant follows from its number alone. Allowed ends are success, a verdict, and one error of a kind
that the project raises; an internal error, a signal, more than 2 GiB, or no end is a finding. Each
kind of finding is reduced and kept in build/fuzz, with the command that replays it; the exit code
is then 1. docs/fuzzing.md has more.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

import msgspec
from darwinn_testbench.compiler import sample

from tests.fuzz.formats import BY_NAME
from tests.fuzz.harness import Harness, Outcome, Task
from tests.fuzz.mutants import Seeds

_BUDGET = ("--max-seconds=1", "--max-memory=1024")
"""Of a program, which may take 30 times these seconds if the host sees it going on."""
_PROGRESS_SECONDS = 60.0
_SHRINK_AT_MOST = 3
"""Findings of one kind of which the mutant is kept."""


@dataclass
class Tally:
    """What came of the mutants of one format."""

    mutants: int = 0
    seconds: float = 0.0
    peak: int = 0
    ends: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Count one more."""
        self.mutants += 1
        self.seconds += outcome.seconds
        self.peak = max(self.peak, outcome.peak)
        self.ends.update(f"{each.command} {each.end}" for each in outcome.done)


@dataclass
class Session:
    """A run of the fuzzer: what was counted, and the first mutants of each kind of finding."""

    harness: Harness
    formats: tuple[str, ...]
    folder: Path
    replay: str
    tallies: dict[str, Tally] = field(default_factory=dict)
    findings: Counter[str] = field(default_factory=Counter)

    def take(self, outcome: Outcome, *, is_seed: bool = False) -> None:
        """Count an outcome; say and keep what it found."""
        self.tallies.setdefault(outcome.task.mutant.format, Tally()).add(outcome)
        for finding in dict.fromkeys(outcome.findings):
            self.findings[finding] += 1
            if self.findings[finding] <= _SHRINK_AT_MOST:
                self._keep(outcome.task, finding, is_seed=is_seed)

    def _keep(self, task: Task, finding: str, *, is_seed: bool) -> None:
        shrunk = self.harness.shrunk(task, finding)
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{task.mutant.format}-{task.number}"
        suffix = task.mutant.suffix
        (self.folder / f"{name}{suffix}").write_bytes(self.harness.seeds.changed(shrunk.mutant))
        (self.folder / f"{name}.json").write_bytes(msgspec.json.encode(shrunk.mutant))
        print(f"FOUND {finding}", flush=True)
        print(f"  {'a seed' if is_seed else f'{self.replay} SEED={task.number} COUNT=1'}")
        print(f"  {self.folder / name}{suffix}: {msgspec.json.encode(shrunk.mutant).decode()}")

    def print_tallies(self) -> None:
        """A line for each format, and one for each kind of finding."""
        print(f"{'format':<12} {'mutants':>8} {'s each':>7} {'MiB':>5}  ends")
        for name, tally in sorted(self.tallies.items()):
            shares = ", ".join(
                f"{end} {100 * count / tally.mutants:.1f} %"
                for end, count in tally.ends.most_common(12)
            )
            each = tally.seconds / tally.mutants
            print(f"{name:<12} {tally.mutants:8,} {each:7.3f} {tally.peak >> 20:5}  {shares}")
        for finding, count in self.findings.most_common():
            print(f"{count:8,} x {finding}")


def main() -> int:
    """Fuzz as the arguments say; 1 if there is a finding."""
    options = _options()
    formats = tuple(options.formats)
    words = [f'FORMATS="{" ".join(formats)}"'] if formats else []
    replay = " ".join(["make fuzz", *words])
    with tempfile.TemporaryDirectory(prefix="darwinn-fuzz-") as name:
        folder = Path(name)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            sample(folder)
            seeds = Seeds(folder)
        budget = () if options.defaults else _BUDGET
        harness = Harness(seeds, budget, agree=options.agree, jobs=options.jobs)
        session = Session(harness, formats, options.keep, replay)
        _fuzz(session, options)
    session.print_tallies()
    return int(bool(session.findings))


def _fuzz(session: Session, options: argparse.Namespace) -> None:
    print(f"fuzz: numbers from {options.seed}, {options.jobs} at a time", flush=True)
    harness = session.harness
    wanted = [each for each in harness.seeds.all() if each.format in (session.formats or BY_NAME)]
    # Here, before anything is forked: compiled kernels and modules that a command loads.
    harness.warm_up(wanted)
    if options.count is None:
        for outcome in harness.outcomes(Task(0, mutant) for mutant in wanted):
            session.take(outcome, is_seed=True)
    session.tallies.clear()
    begin = said = time.monotonic()
    done = 0

    def tasks() -> Iterator[Task]:
        for number in itertools.count(options.seed):
            if options.count is not None and number >= options.seed + options.count:
                return
            if options.count is None and time.monotonic() - begin > options.seconds:
                return
            yield Task(number, harness.seeds.drawn(number, session.formats))

    for outcome in harness.outcomes(tasks()):
        session.take(outcome)
        done += 1
        if time.monotonic() - said > _PROGRESS_SECONDS:
            said = time.monotonic()
            print(f"fuzz: {done:,} mutants in {said - begin:.0f} s", flush=True)
    seconds = time.monotonic() - begin
    print(
        f"fuzz: {done:,} mutants, numbers {options.seed} to {options.seed + done - 1}, "
        f"in {seconds:.0f} s ({done / seconds:.1f}/s)"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(1 << 31))
    parser.add_argument("--count", type=int)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--formats", nargs="*", default=(), choices=sorted(BY_NAME))
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--defaults", action="store_true", help="no smaller budgets than usual")
    parser.add_argument("--no-agree", dest="agree", action="store_false")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
