"""How many faults of real programs are found: single mutations, and what catches each of them.

    python -m benchmarks.detection [--mutants N] [--schedules N] [--seed N] [--only WORD]
                                   [--jobs N] [--seconds S] [--out FOLDER] [--json]

N mutations of each kind (``tests/support/program_faults.py``) are made of each program, by seed.
A mutant is caught where it is refused, faults, waits for ever, or gives other bytes than the
program, in strict mode on the inputs that ``verify`` draws by default; where one of its function
tables is wrong; where its DMA is not as its hints say; or where it gives other bytes in one of the
schedules. What nothing catches is looked at more closely: of a mutation of synchronisation 100
schedules, of another one 50 inputs of all kinds. If these give the same bytes, and there is no
hazard, it is equivalent, else missed. Of a wrong table entry bytes say nothing, since the oracle
takes tables from the program: only what finds the entry itself counts.

Programs are the project's samples, and those of DARWINN_CORPUS and DARWINN_WILD. What came of a
mutant is a line of FOLDER/detection.jsonl at once: the same command goes on there. Exits with 1 if
less than 99 % of what is not equivalent is caught, of synchronisation or of values.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from darwinn_formats.errors import FormatError
from darwinn_sim.accelerator import Accelerator, compile_kernels
from darwinn_sim.errors import Deadlock, SimulationError
from darwinn_sim.isa.codec import DecodeError
from darwinn_testbench.chip.any_timing import judge
from darwinn_testbench.chip.dma_check import dma_figures
from darwinn_testbench.chip.input_kinds import InputKind
from darwinn_testbench.chip.inputs import TensorMap, choose_inputs, further_runs
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.chip.session import Device, Session
from darwinn_testbench.comparison.function_tables import FunctionTables
from darwinn_testbench.compiler.files import sample
from darwinn_testbench.report import Verdict, one_line, verdict_of

from benchmarks.common import machine, positive, with_word
from benchmarks.figures import keep_figures

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from program_faults import (
    SYNCHRONISATION,
    VALUES,
    Kind,
    Mutation,
    draw,
    mutated_model,
    programs_of,
)

GROUPS = (("synchronisation", SYNCHRONISATION), ("values", VALUES))
"""Kinds of mutants that are counted together, with their name."""

GOAL = 0.99
"""Share of what is not equivalent that has to be caught, of synchronisation and of values."""

CLOSER_SCHEDULES = 100
CLOSER_INPUTS = 50
PATIENCE = 60
"""Seconds of work that `verify` may take for a mutant; one that takes more waits for ever."""

WORK_FACTOR = 20
"""A mutant may do so many times the work of its program."""

_TRIES = 10
"""So often is a mutation drawn for each that is wanted."""

SAMPLE = "sample"
PROGRAMS = {
    "sample convolution": (SAMPLE, "convolution_edgetpu.tflite"),
    "sample dense": (SAMPLE, "dense_edgetpu.tflite"),
    "bright_16x16": ("DARWINN_CORPUS", "darwinn/bright_16x16_edgetpu.tflite"),
    "looming_64x64": ("DARWINN_CORPUS", "darwinn/looming_64x64_3x3_edgetpu.tflite"),
    "keras_lstm": ("DARWINN_CORPUS", "darwinn/keras_lstm_mnist_ptq_edgetpu.tflite"),
    "mnist_lenet": ("DARWINN_WILD", "darwinn/mnist_lenet_quant_edgetpu.tflite"),
}
"""Where each program is: in the folder of samples, or in one that a variable names."""

FURTHER_PROGRAMS = {
    Kind.TABLE: {
        "color_red_64x64": ("DARWINN_CORPUS", "darwinn/color_red_64x64_edgetpu.tflite"),
        "mobilenet_v1_0.25_128": (
            "DARWINN_CORPUS",
            "darwinn/mobilenet_v1_0.25_128_quant_edgetpu.tflite",
        ),
    }
}
"""Programs of which mutations of a kind alone are made: half of the others have no tables."""

BYTES, REFUSED, FAULT, DEADLOCK, TABLES, DMA, SCHEDULES, HAZARDS = CAUGHT = (
    "bytes",
    "refused",
    "fault",
    "deadlock",
    "tables",
    "DMA",
    "schedules",
    "hazards",
)
"""What catches a mutant, in the order in which it is asked."""

BY_VERIFY = frozenset((BYTES, REFUSED, FAULT, DEADLOCK, TABLES))
EQUIVALENT, MISSED, NOTHING = "equivalent", "MISSED", "no place"


@dataclass(frozen=True)
class Task:
    """The mutant of this number, of a kind and a program, and how it is looked at."""

    program: str
    kind: Kind
    number: int
    seed: int
    schedules: int

    @property
    def key(self) -> str:
        """What it is in the file of results."""
        return f"{self.program}/{self.kind}/{self.number}/{self.seed}/{self.schedules}"


@dataclass(frozen=True)
class Outcome:
    """What came of a mutant: the result, and in a few words why."""

    key: str
    program: str
    kind: str
    result: str
    mutation: str
    detail: str
    seconds: float


class _Impatient(Exception):
    """A mutant has taken too long."""


class Program:
    """A program, what it gives on the inputs of ``verify``, and on more of them."""

    def __init__(self, name: str, seed: int, samples: str) -> None:
        folder, path = _places()[name]
        root = samples if folder == SAMPLE else os.environ[folder]
        (self.bound,) = open_models(Path(root) / path)
        self.decoded = programs_of(self.bound.compiled)
        kinds = len(InputKind)
        self.inputs = choose_inputs(None, self.bound.ports, seed=seed, runs=kinds)
        more = choose_inputs(None, self.bound.ports, seed=seed + 1, runs=CLOSER_INPUTS)
        self.more_inputs = more
        session = Session(self.bound, strict=True)
        self.expected = [_outputs(session, each) for each in self.inputs]
        work = int(session.accelerator.chip.core["work"])
        runs = kinds + further_runs(work)
        self.inputs = choose_inputs(None, self.bound.ports, seed=seed, runs=runs)
        self.expected += [_outputs(session, self.inputs[k]) for k in range(kinds, runs)]
        self.work_limit = WORK_FACTOR * work + (1 << 18)
        self._more: list[bytes] = []

    @property
    def more_expected(self) -> list[bytes]:
        """What it gives on ``more_inputs``."""
        if not self._more:
            session = Session(self.bound)
            self._more = [_outputs(session, each) for each in self.more_inputs]
        return self._more

    def chip(self, mutation: Mutation, **options: Any) -> Session:
        """A mutant on a chip of its own."""
        model = replace(self.bound, compiled=mutated_model(self.bound.compiled, mutation))
        accelerator = Accelerator(work_limit=self.work_limit, **options)
        return Session(model, device=Device(accelerator=accelerator))


def _outputs(session: Session, tensors: TensorMap) -> bytes:
    """The outputs of an inference, one behind the other."""
    session.reset_states()
    results = session.infer(tensors).outputs
    return b"".join(results[name].tobytes() for name in sorted(results))


@cache
def _places() -> dict[str, tuple[str, str]]:
    """Where each program is that mutations of any kind are made of."""
    found = dict(PROGRAMS)
    for more in FURTHER_PROGRAMS.values():
        found |= more
    return found


@cache
def program_of(name: str, seed: int, samples: str) -> Program:
    return Program(name, seed, samples)


def mutation_of(program: Program, task: Task) -> Mutation | None:
    """The mutation of a task, none of which is made twice; None if there are not so many."""
    random = Random(f"{task.program}/{task.kind}/{task.seed}")
    found: dict[str, Mutation] = {}
    for _ in range(_TRIES * (task.number + 1)):
        mutation = draw(random, program.decoded, task.kind)
        if mutation is None:
            return None
        found.setdefault(str(mutation), mutation)
        if len(found) > task.number:
            return mutation
    return None


def look_at(task: Task, samples: str) -> Outcome:
    """Make a mutant, and ask everything what may catch it."""
    begin = time.perf_counter()
    program = program_of(task.program, task.seed, samples)
    mutation = mutation_of(program, task)
    result, detail = NOTHING, ""
    if mutation is not None:
        result, detail = _judged(program, mutation, task)
    return Outcome(
        task.key,
        task.program,
        task.kind,
        result,
        str(mutation),
        detail,
        round(time.perf_counter() - begin, 3),
    )


def _judged(program: Program, mutation: Mutation, task: Task) -> tuple[str, str]:
    everything = (_verified, _tabulated, _reordered, _hazardous, _looked_at_closely)
    of_tables = (_tabulated, _looked_at_closely)
    for asked in of_tables if mutation.kind is Kind.TABLE else everything:
        found = asked(program, mutation, task)
        if found is not None:
            return found
    return EQUIVALENT, ""


@contextmanager
def _patience(seconds: int) -> Iterator[None]:
    """Within, ``_Impatient`` is raised after so many seconds of work of this process."""

    def impatient(number: int, frame: FrameType | None) -> None:
        raise _Impatient

    signal.signal(signal.SIGPROF, impatient)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


Found = tuple[str, str] | None


def _failure(error: SimulationError | DecodeError | FormatError) -> tuple[str, str]:
    if isinstance(error, Deadlock):
        return DEADLOCK, one_line(error)
    refused = verdict_of(error) in (Verdict.REFUSED, Verdict.BAD_INPUT)
    return (REFUSED if refused else FAULT), one_line(error)


def _verified(program: Program, mutation: Mutation, task: Task) -> Found:
    """What `verify` finds on its default inputs in strict mode, and what the DMA hints do."""
    try:
        with _patience(PATIENCE):
            return _compared(program, program.chip(mutation, strict=True))
    except _Impatient:
        return DEADLOCK, f"it has not ended in {PATIENCE} s"
    except (SimulationError, DecodeError, FormatError) as error:
        return _failure(error)


def _compared(program: Program, session: Session) -> Found:
    """The bytes that differ, or DMA that is not as hinted."""
    dma: Found = None
    for number, (tensors, expected) in enumerate(
        zip(program.inputs, program.expected, strict=True)
    ):
        session.reset_states()
        inference = session.infer(tensors)
        results = inference.outputs
        if b"".join(results[name].tobytes() for name in sorted(results)) != expected:
            return BYTES, f"inputs {number}"
        moved = [(session.model.compiled.inference, inference.result.transfers)]
        caching = session.model.compiled.caching
        if caching is not None and session.caching is not None:
            moved.append((caching, session.caching.transfers))
        for executable, transfers in moved:
            figures = dma_figures(executable, transfers, "inference")
            if figures.verdict.failed:
                dma = DMA, figures.message
    return dma


def _tabulated(program: Program, mutation: Mutation, task: Task) -> Found:
    """What `verify` finds in the function tables."""
    model = mutated_model(program.bound.compiled, mutation)
    wrong = FunctionTables.of(model.inference).wrong
    return (TABLES, str(wrong[0])) if wrong else None


def _reordered(program: Program, mutation: Mutation, task: Task, first: int = 0) -> Found:
    """What the schedules find, each with the next of the inputs."""
    count = task.schedules if first == 0 else CLOSER_SCHEDULES
    session = program.chip(mutation, strict=True)
    for number in range(first, count):
        session.accelerator.schedule = task.seed + number
        session.accelerator.power_up()
        which = number % len(program.inputs)
        try:
            if _outputs(session, program.inputs[which]) != program.expected[which]:
                return SCHEDULES, f"schedule {task.seed + number}, inputs {which}"
        except (SimulationError, DecodeError) as error:
            return SCHEDULES, f"schedule {task.seed + number}: {_failure(error)[1]}"
    return None


def _hazardous(program: Program, mutation: Mutation, task: Task) -> Found:
    """What the checker of hazards finds."""
    try:
        judged = judge(Pipeline([program.chip(mutation)]))
    except DecodeError as error:
        return HAZARDS, one_line(error)
    found = [str(hazard) for chip in judged.found for hazard in chip.found]
    told = [judged.fault] * bool(judged.fault) + found
    return (HAZARDS, told[0]) if told else None


def _looked_at_closely(program: Program, mutation: Mutation, task: Task) -> Found:
    """Whether a mutant that nothing catches is one that nothing can catch."""
    if mutation.kind in SYNCHRONISATION:
        found = _reordered(program, mutation, task, task.schedules)
        return None if found is None else (MISSED, found[1])
    session = program.chip(mutation)
    for number, tensors in enumerate(program.more_inputs):
        try:
            if _outputs(session, tensors) != program.more_expected[number]:
                return MISSED, f"further inputs {number} differ"
        except (SimulationError, DecodeError) as error:
            return MISSED, f"further inputs {number}: {_failure(error)[1]}"
    return None


def known_outcomes(path: Path) -> dict[str, Outcome]:
    """What a file of results holds; a line that was not written to its end is left out."""
    if not path.exists():
        return {}
    known = {}
    for line in path.read_text().splitlines():
        try:
            outcome = Outcome(**json.loads(line))
        except (ValueError, TypeError):
            continue
        known[outcome.key] = outcome
    return known


def outcomes_of(
    tasks: Sequence[Task], path: Path, jobs: int, seconds: float | None
) -> Iterator[Outcome]:
    """The outcomes of the tasks, as far as there is time; each is kept in the file at once."""
    known = known_outcomes(path)
    yield from (known[task.key] for task in tasks if task.key in known)
    left = [task for task in tasks if task.key not in known]
    end = None if seconds is None else time.monotonic() + seconds
    compile_kernels()
    compile_kernels(hazards=True)
    with (
        tempfile.TemporaryDirectory() as samples,
        path.open("a") as file,
        get_context("spawn").Pool(jobs) as pool,
    ):
        sample(samples)
        results = pool.imap_unordered(_look_at, [(task, samples) for task in left])
        for number, outcome in enumerate(results, 1):
            file.write(json.dumps(asdict(outcome)) + "\n")
            file.flush()
            print(f"\r{len(known)} + {number} of {len(tasks)}", end="", file=sys.stderr, flush=True)
            yield outcome
            if end is not None and time.monotonic() > end:
                break
        print(file=sys.stderr)


def _look_at(arguments: tuple[Task, str]) -> Outcome:
    return look_at(*arguments)


def share(outcomes: Sequence[Outcome], by: Sequence[str]) -> tuple[int, int]:
    """How many of the mutants that are not equivalent ``by`` has caught, and how many there are."""
    real = [each for each in outcomes if each.result not in (EQUIVALENT, NOTHING)]
    return sum(each.result in by for each in real), len(real)


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """A row for each kind, one for synchronisation and one for values."""
    columns = (*CAUGHT, EQUIVALENT, MISSED)
    head = f"| {'kind':28} | mutants | {' | '.join(columns)} | verify alone | all |"
    lines = [head, "|---|" + "---|" * (len(columns) + 3)]
    groups: list[tuple[str, Sequence[Outcome]]] = [
        (kind.value, [each for each in outcomes if each.kind == kind]) for kind in Kind
    ]
    groups += [(name, [each for each in outcomes if each.kind in kinds]) for name, kinds in GROUPS]
    for name, group in groups:
        made = [each for each in group if each.result != NOTHING]
        counts = Counter(each.result for each in made)
        cells = [str(counts[each]) for each in columns]
        alone, everything = share(made, tuple(BY_VERIFY)), share(made, CAUGHT)
        lines.append(
            f"| {name:28} | {len(made)} | {' | '.join(cells)} "
            f"| {percent(*alone)} | {percent(*everything)} |"
        )
    return lines


def missed(outcomes: Sequence[Outcome]) -> list[str]:
    """What was missed, a line each."""
    return [
        f"{each.program}: {each.mutation}: {each.detail}"
        for each in sorted(outcomes, key=lambda each: each.key)
        if each.result == MISSED
    ]


def caught_of(outcomes: Sequence[Outcome]) -> dict[str, tuple[int, int]]:
    """Of synchronisation and of values: how many are caught, of how many."""
    return {
        name: share([each for each in outcomes if each.kind in kinds], CAUGHT)
        for name, kinds in GROUPS
    }


def reached(outcomes: Sequence[Outcome]) -> bool:
    """Whether as many are caught as should be."""
    return all(caught >= GOAL * real for caught, real in caught_of(outcomes).values())


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Of both groups: how many are not equivalent, and the share of them that is caught."""
    found: dict[str, float] = {}
    for name, (caught, real) in caught_of(outcomes).items():
        found[f"{name}: not equivalent"] = real
        found[f"{name}: caught, %"] = 100 * caught / real if real else 100.0
    return found


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--mutants", type=positive, default=10, metavar="N")
    options.add_argument("--schedules", type=int, default=20, metavar="N")
    options.add_argument("--seed", type=int, default=0, metavar="N")
    options.add_argument(
        "--only", default="", metavar="WORD", help="programs or kinds with it in their name"
    )
    options.add_argument("--jobs", type=positive, default=os.cpu_count(), metavar="N")
    options.add_argument("--seconds", type=float, metavar="S")
    options.add_argument("--out", type=Path, default=Path("build/detection"), metavar="FOLDER")
    options.add_argument("--json", action="store_true")
    return options.parse_args(arguments)


def programs_for(kind: Kind) -> list[str]:
    """Programs that are here and of which mutations of a kind are made."""
    programs = PROGRAMS | FURTHER_PROGRAMS.get(kind, {})
    return [
        name for name, (folder, _) in programs.items() if folder == SAMPLE or os.environ.get(folder)
    ]


def tasks_of(options: argparse.Namespace) -> list[Task]:
    """What is to be done, of the programs or kinds that are asked for."""
    programs = dict.fromkeys(name for kind in Kind for name in programs_for(kind))
    asked = with_word(options.only, [*programs, *Kind])
    return [
        Task(name, kind, number, options.seed, options.schedules)
        for number in range(options.mutants)
        for kind in Kind
        for name in programs_for(kind)
        if name in asked or kind in asked
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    options = options_of(arguments)
    tasks = tasks_of(options)
    names = list(dict.fromkeys(task.program for task in tasks))
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "detection.jsonl"
    outcomes = list(outcomes_of(tasks, file, options.jobs, options.seconds))
    keep_figures(figures(outcomes))
    told = {
        "machine": machine(),
        "seed": options.seed,
        "schedules": options.schedules,
        "programs": names,
        "done": len(outcomes),
        "of": len(tasks),
        "reached": reached(outcomes),
        "missed": missed(outcomes),
    }
    if options.json:
        print(json.dumps({**told, "outcomes": [asdict(each) for each in outcomes]}, indent=2))
    else:
        print(told["machine"])
        print(f"{', '.join(names)}: {options.mutants} mutants of each kind, seed {options.seed};")
        print(f"{options.schedules} schedules; {len(outcomes)} of {len(tasks)} mutants looked at")
        print(*table(outcomes), *missed(outcomes), sep="\n")
    return 0 if told["reached"] else 1


if __name__ == "__main__":
    sys.exit(main())
