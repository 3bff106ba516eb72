"""One unit of work of a regression: a case with one seed on one engine, and what came of it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from darwinn_formats.files import digest_of, is_there
from darwinn_sim.isa.grading import Assumption

from darwinn_testbench.comparison.asked import Asked
from darwinn_testbench.comparison.verify import answer
from darwinn_testbench.engine import Engine
from darwinn_testbench.programs import natives
from darwinn_testbench.programs.formats import format_of
from darwinn_testbench.regression.manifest import SETTINGS, Case, EngineName, settings_of
from darwinn_testbench.regression.pool import ChipWork
from darwinn_testbench.regression.program import program
from darwinn_testbench.report import Report, Row, Verdict, is_of_the_machine, judged, passed_limit
from darwinn_testbench.request.record import command_line, made
from darwinn_testbench.request.records import Verification
from darwinn_testbench.request.setting import Use

_MISSING = "missing"


@dataclass(frozen=True)
class Task(ChipWork):
    """``key`` changes with anything that the outcome depends on: files, options, this program."""

    key: str
    case: Case
    engine: EngineName
    seed: int

    @property
    def timeout(self) -> float:
        """Seconds that it may take."""
        return self.case.timeout

    def prepare(self) -> None:
        """Compile kernels, if it is for the chip."""
        if runs_on_chip(self):
            super().prepare()

    def perform(self) -> Outcome:
        """Do it; whatever goes wrong is a verdict, never an exception."""
        begin = time.perf_counter()
        figures: dict[str, Any] = {}
        try:
            verdict, message, figures = _verify(self)
            conclusive = is_conclusive(verdict, message)
        except Exception as error:
            verdict, message = judged(error)
            conclusive = not is_of_the_machine(error)
        spent = round(time.perf_counter() - begin, 3)
        return outcome_of(self, verdict, message, **figures, conclusive=conclusive, seconds=spent)

    def failed(self, message: str) -> Outcome:
        """The outcome where the process that did it gave none."""
        return outcome_of(self, Verdict.FAULT, message, conclusive=False)


@dataclass(frozen=True, kw_only=True)
class Outcome(Row):
    """The verdict of a task. ``seconds`` are of this machine, not of the chip, and without the
    compilation of kernels, 0 where nobody is left who could say; ``command`` is what does the task
    alone. ``conclusive`` is False where the machine and not the program is to blame (too little
    time or memory, something that is not installed): the task is done again in the next call."""

    key: str
    file: str
    engine: str
    seed: int
    command: str
    inferences: int = 0
    conclusive: bool = True
    seconds: float = 0.0
    assumptions: tuple[Assumption, ...] = ()

    @property
    def case(self) -> str:
        """Case, engine and seed."""
        return f"{self.name} [{self.engine}, seed {self.seed}]"

    @property
    def duration(self) -> float:
        """Seconds of the task."""
        return self.seconds


def tasks_of(cases: Sequence[Case]) -> tuple[Task, ...]:
    """Every task of ``cases``, in their order."""
    hashes: dict[str, str] = {}
    return tuple(task for case in cases for task in of_case(case, hashes))


def of_case(case: Case, hashes: dict[str, str]) -> Iterator[Task]:
    """Every task of a case; ``hashes`` keeps those of files by path from one call to the next."""
    # The other seeds and engines of a case are not of a task: it is the same one where they change,
    # and of thousands of seeds each task would take all of them along.
    alone = msgspec.structs.replace(case, seeds=(), engines=())
    described = _described(alone, hashes)
    for engine in case.engines:
        for seed in case.seeds:
            key = hashlib.sha256(described + msgspec.json.encode([engine, seed])).hexdigest()
            yield Task(key, alone, engine, seed)


def runs_on_chip(task: Task) -> bool:
    """Whether the task's file is for the chip, as far as its first bytes say."""
    try:
        return format_of(task.case.file) is None
    except OSError:
        return False


def outcome_of(task: Task, verdict: Verdict, message: str, **figures: Any) -> Outcome:
    """The outcome of ``task``, however it came about."""
    return Outcome(
        name=task.case.name,
        verdict=verdict,
        message=message,
        key=task.key,
        file=task.case.file,
        engine=task.engine,
        seed=task.seed,
        command=command_of(task),
        **figures,
    )


def command_of(task: Task) -> str:
    """The `darwinn verify` that does the task alone."""
    plain = settings_of(task.case) | {"engine": task.engine, "seed": task.seed}
    return command_line("verify", task.case.file, Verification, plain, always=("seed",))


def _verify(task: Task) -> tuple[Verdict, str, dict[str, Any]]:
    report = verified(task.case, Engine(task.engine), task.seed)
    figures = {
        "inferences": report.figures["inferences"],
        "assumptions": report.assumptions,
    }
    return report.verdict, told(report), figures


def is_conclusive(verdict: Verdict, message: str) -> bool:
    """Whether a verification would say the same on another machine, within other limits."""
    return verdict is not Verdict.FAULT or not passed_limit(message)


def told(report: Report[Row]) -> str:
    """What a verification says, in one line, with the first output that does not pass."""
    failed = next((row for row in report.rows if row.verdict.failed), None)
    said = "; ".join(filter(None, (report.qualification, report.message)))
    return said + (f"; {failed.case}: {failed.why}" if failed else "")


def verified(case: Case, engine: Engine, seed: int) -> Report[Row]:
    """The verification that a case asks for, on one engine with one seed; raises as it does."""
    plain = settings_of(case) | {"engine": engine, "seed": seed}
    return answer(made(Asked, plain, source=case.file))


def _described(case: Case, hashes: dict[str, str]) -> bytes:
    """What the outcomes of a case depend on."""
    described = {
        "program": program(),
        "case": msgspec.to_builtins(case),
        "files": [_hash(file, hashes) for file in _files(case)],
    }
    return msgspec.json.encode(described, order="sorted")


def _files(case: Case) -> Iterator[str]:
    yield case.file
    for name, entry in SETTINGS.items():
        value = getattr(case, name)
        if entry.setting.use is Use.FILE and value is not None:
            for text in value if entry.is_list else [value]:
                # An input may be NAME=PATH, or a path with an equals sign in it.
                yield text if is_there(text) else text.rpartition("=")[2]
        elif entry.setting.use is Use.MODULE and value is not None:
            yield from filter(None, [natives.source_of(value)])


def _hash(file: str, hashes: dict[str, str]) -> str:
    if file not in hashes:
        hashes[file] = digest_of(file) or _MISSING
    return hashes[file]
