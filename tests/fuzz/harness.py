"""The fuzzer: mutants by number, in processes of their own, and what came of them."""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import msgspec
from darwinn_testbench.confinement import Confinement

from tests.fuzz import ends
from tests.fuzz.ends import Done
from tests.fuzz.formats import BY_NAME, Command
from tests.fuzz.mutants import Mutant, Seeds
from tests.fuzz.mutation import Edit
from tests.fuzz.processes import Process, Write, perform

LIMITS = Confinement(memory=3 << 30, file=256 << 20, seconds=120)
"""Of the process of a mutant: memory that it may write to, used or not; processor time."""


_SHRINK_FACTOR = 4


class Task(NamedTuple):
    """A mutant, and the number that says what is done with it."""

    number: int
    mutant: Mutant


class Outcome(NamedTuple):
    """What was ``done`` with a mutant, and what of it should not have happened."""

    task: Task
    done: list[Done]
    findings: list[str]
    seconds: float
    peak: int


@dataclass(frozen=True)
class Harness:
    """``budget`` are options of commands, ``agree`` compares the two models of the chip.

    A process does ``batch`` mutants. One with a finding is done again alone: if it ends well then,
    the finding says so, since what came before it in its process is the reason.
    """

    seeds: Seeds
    budget: tuple[str, ...] = ()
    agree: bool = True
    jobs: int = 1
    batch: int = 100
    limits: Confinement = field(default_factory=lambda: LIMITS)

    def warm_up(self, mutants: Iterable[Mutant]) -> None:
        """Load what commands need into this process, from which the others are forked.

        With the first of each format everything is done that there is to do.
        """
        known: set[str] = set()
        for mutant in mutants:
            number = 0 if mutant.format in known else ends.EVERYTHING
            known.add(mutant.format)
            self._work(Task(number, mutant), lambda data: None)
        # What is there now stays: a collection in a forked process would only copy its pages.
        gc.collect()
        gc.freeze()

    def outcomes(self, tasks: Iterable[Task]) -> Iterator[Outcome]:
        """The outcome of each, in the order in which they end."""
        work = self._work
        for process in perform(tasks, work, limits=self.limits, jobs=self.jobs, batch=self.batch):
            outcome = self._outcome(process)
            if process.before and outcome.findings:
                alone = self.outcome(process.task).findings
                findings = [
                    each if each in alone else f"{each} (after others)" for each in outcome.findings
                ]
                outcome = outcome._replace(findings=findings)
            yield outcome

    def outcome(self, task: Task) -> Outcome:
        """The outcome of one."""
        (process,) = perform([task], self._work, limits=self.limits)
        return self._outcome(process)

    def shrunk(self, task: Task, finding: str) -> Task:
        """The same finding with fewer and smaller edits, as far as taking away goes, or as it goes
        in a few times the seconds of a mutant: one without end takes all of its own.
        """
        left = _SHRINK_FACTOR * float(self.limits.seconds or 0)
        goes_on = True
        while goes_on:
            goes_on = False
            for mutant in _smaller(task.mutant):
                smaller = task._replace(mutant=mutant)
                outcome = self.outcome(smaller)
                left -= outcome.seconds
                if finding in outcome.findings:
                    task, goes_on = smaller, left > 0
                    break
                if left <= 0:
                    break
        return task

    def _work(self, task: Task, write: Write) -> bool:
        return self._do(ends.commands_for(task.mutant.format, task.number), task, write)

    def _otherwise(self, task: Task, write: Write) -> bool:
        return self._do(ends.OTHERWISE, task, write)

    def _do(self, todo: Sequence[Command], task: Task, write: Write) -> bool:
        folder = self._folder(os.getpid())
        folder.mkdir(exist_ok=True)
        path = folder.with_suffix(task.mutant.suffix)
        path.write_bytes(self.seeds.changed(task.mutant))
        try:
            with (
                contextlib.chdir(folder),
                patch.object(tempfile, "tempdir", str(folder)),
                patch.dict(os.environ, TMPDIR=str(folder)),
            ):
                return ends.do_all(todo, path, self.seeds.folder, self.budget, write)
        finally:
            path.unlink()

    def _folder(self, process: int) -> Path:
        """Of a process: where it is, and its temporary files are; its mutants lie beside it."""
        return self.seeds.folder / f"mutant-{process}"

    def _outcome(self, process: Process[Task]) -> Outcome:
        if process.signal or process.code:
            self._folder(process.number).with_suffix(process.task.mutant.suffix).unlink(True)
        done, findings = ends.outcome_of(process)
        if self.agree and not findings and (found := ends.difference(done)):
            both = BY_NAME[process.task.mutant.format].both
            if both is not None and both(self.seeds.changed(process.task.mutant)):
                findings += [] if self.is_undecided(process.task) else [found]
        return Outcome(process.task, done, findings, process.seconds, process.peak)

    def is_undecided(self, task: Task) -> bool:
        """Whether a program ends otherwise in another legal order of the chip's units, or with its
        buffers elsewhere.
        """
        (process,) = perform([task], self._otherwise, limits=self.limits)
        done, findings = ends.outcome_of(process)
        return not findings and ends.is_undecided(done)


def _smaller(mutant: Mutant) -> Iterator[Mutant]:
    """The mutant without one of its edits, and with one of them made simpler."""
    for name in ("edits", "patches"):
        edits: Sequence[Edit] = getattr(mutant, name)
        for k, edit in enumerate(edits):
            for instead in ((), *((simple,) for simple in _simpler(edit))):
                changed = (*edits[:k], *instead, *edits[k + 1 :])
                yield msgspec.structs.replace(mutant, **{name: changed})


def _simpler(edit: Edit) -> Iterator[Edit]:
    """The edit with a smaller number as its last argument, which is the value or how often."""
    if edit.arguments and edit.what in ("set", "field"):
        *others, value = edit.arguments
        if isinstance(value, int) and not isinstance(value, bool):
            for smaller in sorted({0, 1, value // 2}):
                if abs(smaller) < abs(value):
                    yield msgspec.structs.replace(edit, arguments=(*others, smaller))
