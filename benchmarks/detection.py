"""Which faults of executables verification finds, by kind: data, addresses, shapes, order.

    python -m benchmarks.detection [FILE ...] [--faults N] [--seed N] [--only WORD] [--jobs N]
                                   [--seconds S] [--out FOLDER] [--json]

N faults of each kind (``tests/support/executable_faults.py``) are made of each compiled model FILE,
which lies beside its model before compilation; without files, of the samples and some models of
DARWINN_CORPUS, DARWINN_WILD and DARWINN_WILD2. Each judge of ``JUDGES`` verifies each of them.

A fault is equivalent where an argument says that it changes nothing for any input
(``tests/support/equivalence.py``: of the programs as they are lifted, never of samples). It is
different where an input, a legal order of the units or a failure shows it, or where a judge finds
it; else it is undecided, and counted apart. No argument is known for faults of synchronisation.

Each outcome is a line of FOLDER/detection.jsonl at once: the same command goes on there. Exits with
1 where the default verification finds a wrong output though an argument says that none is, or
proves a program that is known to be different.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from darwinn_formats.errors import FormatError
from darwinn_sim.accelerator import compile_kernels
from darwinn_sim.errors import SimulationError
from darwinn_sim.isa.codec import DecodeError
from darwinn_sim.lifting.walk import NotLifted
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler.files import sample
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Verdict, judged
from darwinn_testbench.survey.pairs import reference_of

from benchmarks.common import existing_file, machine, positive, real_folders, refuse, with_word
from benchmarks.figures import keep_figures

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from equivalence import ARGUMENTS, Computed, Truth, computed, reordered, truth
from executable_faults import KINDS, Fault, FaultKind, Subject, drawn, faulty, faulty_file


@dataclass(frozen=True)
class Judge:
    """Somebody who is asked: a name, and the options of ``verify``."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


JUDGES = (
    Judge("verify"),
    Judge("five samples", {"proof": False, "hazards": False, "runs": 5}),
)
"""Each of these judges every fault, the default verification first; the table has a column for
each."""

SAMPLES = ("dense", "convolution")
MODELS = (
    *("mobilenet_v1_0.25_128_quant", "looming_64x64_3x3", "color_red_64x64", "bright_16x16"),
    *("classifier_2022", "conv_chain_two_32"),
)
"""Models of the folders of real ones of which faults are made; those that are not here are left
out."""


@dataclass(frozen=True)
class Task:
    """The fault of this number, of a kind and a model, drawn from a seed."""

    model: str
    kind: str
    number: int
    seed: int

    @property
    def key(self) -> str:
        """Its name in the file of outcomes."""
        return f"{self.model}/{self.kind}/{self.number}/{self.seed}"


@dataclass(frozen=True)
class Outcome:
    """A judged fault: what is known of it, why, and the verdict of each judge. ``sampled`` are the
    operators that the default verification only samples. A kind that has no place for as many
    faults has an empty ``where``."""

    key: str
    model: str
    kind: str
    where: str
    known: Truth
    why: str
    verdicts: Mapping[str, str]
    found_by: Sequence[str]
    wrong_output: bool
    sampled: Sequence[str]
    seconds: float

    @property
    def contradicts(self) -> bool:
        """An output of the default verification is wrong, and an argument says it cannot be; or all
        is proved, and something shows a difference. Other findings are no contradiction: an
        entry of a table that no sum reaches, a tensor within that no output needs."""
        proved = self.verdicts.get(JUDGES[0].name) == Verdict.PROVED
        if self.known is Truth.EQUIVALENT:
            return self.wrong_output
        return proved and self.known is Truth.DIFFERENT

    @property
    def missed(self) -> bool:
        """It is different, and the default verification does not find it."""
        return self.counted is Truth.DIFFERENT and JUDGES[0].name not in self.found_by

    @property
    def remark(self) -> str:
        """The reason why a reader has to look at this fault; empty where there is none."""
        if self.contradicts:
            return "CONTRADICTION"
        if self.known is Truth.EQUIVALENT and self.found_by:
            return f"equivalent, found by {', '.join(self.found_by)}"
        if self.missed:
            return f"not found, sampled: {', '.join(self.sampled) or 'nothing'}"
        return ""

    @property
    def counted(self) -> Truth:
        """The fault counts as this: one that a judge finds is different."""
        found = self.known is Truth.UNDECIDED and self.found_by
        return Truth.DIFFERENT if found else self.known


class Model:
    """A compiled model of which faults are made, and the one before compilation."""

    def __init__(self, name: str, path: Path, reference: Path) -> None:
        self.name, self.data, self.reference = name, path.read_bytes(), reference
        (self.bound, *_) = open_models(path)
        self.subject = Subject(self.bound.compiled)
        self.right: Computed | None = None
        self.reason = ""
        try:
            self.right = computed(self.bound.compiled)
        except (NotLifted, SimulationError) as error:
            self.reason = f"the program is not lifted: {error}"

    def known(self, fault: Fault, kind: FaultKind) -> tuple[Truth, str]:
        """Arguments, inputs and orders say, without any judge, whether a fault is equivalent."""
        model = faulty(self.bound.compiled, fault)
        found = (Truth.UNDECIDED, self.reason) if self.right is None else truth(self.right, model)
        if not kind.reorders or found[0] is Truth.DIFFERENT:
            return found
        # The lifted program is the one of the fixed order, and says nothing of others.
        return reordered(self.bound.compiled, model)

    def judge(self, fault: Fault, judge: Judge) -> tuple[Verdict, bool, tuple[str, ...]]:
        """The verdict of a judge, whether an output is wrong, and what is only sampled."""
        data = faulty_file(self.data, self.bound.compiled, fault)
        try:
            report = verify(data, self.reference, **judge.options)
        except (SimulationError, DecodeError, FormatError, InputError) as error:
            return judged(error)[0], False, ()
        proof = report.figures.get("proof")
        sampled = tuple(dict.fromkeys(each.name for each in getattr(proof, "sampled", ())))
        return report.verdict, any(row.verdict.failed for row in report.rows), sampled

    def outcome(self, fault: Fault, kind: FaultKind, key: str = "") -> Outcome:
        """Every judge verifies a fault: this is the outcome."""
        begin = time.process_time()
        known, why = self.known(fault, kind)
        asked = {judge.name: self.judge(fault, judge) for judge in JUDGES}
        return Outcome(
            key=key,
            model=self.name,
            kind=kind.name,
            where=fault.where,
            known=known,
            why=why,
            verdicts={name: verdict.value for name, (verdict, *_) in asked.items()},
            found_by=tuple(name for name, (verdict, *_) in asked.items() if verdict.failed),
            wrong_output=asked[JUDGES[0].name][1],
            sampled=asked[JUDGES[0].name][2],
            seconds=round(time.process_time() - begin, 3),
        )


Places = Mapping[str, tuple[Path, Path]]
"""Compiled models and those before compilation, by name."""


def places(files: Sequence[Path], samples: Path) -> Places:
    """The models of which faults are made."""
    if files:
        found = {path.stem.removesuffix("_edgetpu"): path for path in files}
    else:
        sample(samples)
        found = {f"sample {name}": samples / f"{name}_edgetpu.tflite" for name in SAMPLES}
        paths = [
            (name, each / "darwinn" / f"{name}_edgetpu.tflite")
            for name in MODELS
            for each in real_folders()
        ]
        found |= {name: path for name, path in paths if path.exists()}
    twins = {name: (path, reference_of(path)) for name, path in found.items()}
    if lacking := [name for name, (_, twin) in twins.items() if twin is None]:
        refuse(f"no model before compilation beside {', '.join(lacking)}")
    return {name: (path, twin) for name, (path, twin) in twins.items() if twin is not None}


@cache
def _model(name: str, path: Path, reference: Path) -> Model:
    return Model(name, path, reference)


def look_at(task: Task, models: Places) -> Outcome:
    """Make a fault, and ask every judge."""
    model = _model(task.model, *models[task.model])
    (kind,) = (each for each in KINDS if each.name == task.kind)
    faults = drawn(model.subject, kind, f"{task.seed}/{task.model}", task.number + 1)
    if len(faults) <= task.number:
        nothing = Truth.UNDECIDED, "no place", dict[str, str](), (), False, ()
        return Outcome(task.key, task.model, task.kind, "", *nothing, 0.0)
    return model.outcome(faults[task.number], kind, task.key)


def _look_at(arguments: tuple[Task, Places]) -> Outcome:
    return look_at(*arguments)


def known_outcomes(path: Path) -> dict[str, Outcome]:
    """The outcomes of a file, by key; a line that was not written to its end is left out."""
    known = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            outcome = Outcome(**json.loads(line))
        except (ValueError, TypeError):
            continue
        known[outcome.key] = Outcome(**{**asdict(outcome), "known": Truth(outcome.known)})
    return known


def outcomes_of(
    tasks: Sequence[Task], models: Places, path: Path, jobs: int, seconds: float | None
) -> Iterator[Outcome]:
    """The outcomes of the tasks, as far as there is time; each is kept in the file at once."""
    known = known_outcomes(path)
    yield from (known[task.key] for task in tasks if task.key in known)
    left = [task for task in tasks if task.key not in known]
    end = None if seconds is None else time.monotonic() + seconds
    compile_kernels()
    compile_kernels(hazards=True)
    with path.open("a") as file, get_context("spawn").Pool(jobs) as pool:
        results = pool.imap_unordered(_look_at, [(task, models) for task in left])
        for number, outcome in enumerate(results, 1):
            file.write(json.dumps(asdict(outcome)) + "\n")
            file.flush()
            print(f"\r{len(known)} + {number} of {len(tasks)}", end="", file=sys.stderr, flush=True)
            yield outcome
            if end is not None and time.monotonic() > end:
                break
        print(file=sys.stderr)


def found_by(outcomes: Sequence[Outcome], judge: str) -> tuple[int, int]:
    """How many of the different faults a judge finds, and how many there are."""
    different = [each for each in outcomes if each.counted is Truth.DIFFERENT]
    return sum(judge in each.found_by for each in different), len(different)


def share(outcomes: Sequence[Outcome], judge: str) -> str:
    """The share of different faults that a judge finds, in words."""
    by, different = found_by(outcomes, judge)
    return f"{by} ({100 * by / different:.1f} %)" if different else "-"


def table(found: Sequence[Outcome]) -> list[str]:
    """A row for each kind, and one for all."""
    names = [judge.name for judge in JUDGES]
    lines = [f"| {' | '.join(('kind', 'faults', *map(str, Truth), *names))} |"]
    lines.append("|---" * (2 + len(Truth) + len(names)) + "|")
    groups = [(kind.name, [each for each in found if each.kind == kind.name]) for kind in KINDS]
    for name, group in [*groups, ("all", list(found))]:
        known = Counter(each.counted for each in group)
        counts = [len(group), *(known[each] for each in Truth)]
        cells = [*map(str, counts), *(share(group, judge) for judge in names)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def arguments_of(found: Sequence[Outcome]) -> list[str]:
    """How many faults each argument decides, by kind."""
    equivalent = [each for each in found if each.known is Truth.EQUIVALENT]
    counts = Counter((part, each.kind) for each in equivalent for part in each.why.split("; "))
    return [
        f"equivalent, {argument}: "
        + ", ".join(f"{count} {kind}" for (part, kind), count in counts.items() if part == argument)
        for argument in ARGUMENTS
        if any(part == argument for part, _ in counts)
    ]


def remarks_of(found: Sequence[Outcome]) -> list[str]:
    """The faults that a reader has to look at, a line each."""
    return [
        f"{each.remark}: {each.model}, {each.kind}: {each.where} ({each.why})"
        for each in sorted(found, key=lambda each: each.key)
        if each.remark
    ]


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """How many faults are different, and the share of them that each judge finds."""
    figures: dict[str, float] = {"different": found_by(outcomes, JUDGES[0].name)[1]}
    for judge in JUDGES:
        by, different = found_by(outcomes, judge.name)
        figures[f"found by {judge.name}, %"] = 100 * by / different if different else 100.0
    return figures


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("files", nargs="*", type=existing_file, metavar="FILE")
    options.add_argument("--faults", type=positive, default=2, metavar="N")
    options.add_argument("--seed", type=int, default=0, metavar="N")
    options.add_argument(
        "--only", default="", metavar="WORD", help="models or kinds with it in their name"
    )
    options.add_argument("--jobs", type=positive, default=os.cpu_count(), metavar="N")
    options.add_argument("--seconds", type=float, metavar="S")
    options.add_argument("--out", type=Path, default=Path("build/detection"), metavar="FOLDER")
    options.add_argument("--json", action="store_true")
    return options.parse_args(arguments)


def tasks_of(options: argparse.Namespace, models: Places) -> list[Task]:
    """The tasks of the models or kinds that are asked for; first one fault of each."""
    kinds = [kind.name for kind in KINDS]
    asked = with_word(options.only, [*models, *kinds])
    return [
        Task(model, kind, number, options.seed)
        for number in range(options.faults)
        for kind in kinds
        for model in models
        if model in asked or kind in asked
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    options = options_of(arguments)
    with tempfile.TemporaryDirectory() as samples:
        models = places(options.files, Path(samples))
        tasks = tasks_of(options, models)
        options.out.mkdir(parents=True, exist_ok=True)
        file = options.out / "detection.jsonl"
        looked_at = list(outcomes_of(tasks, models, file, options.jobs, options.seconds))
    found = [each for each in looked_at if each.where]
    keep_figures(figures(found))
    if options.json:
        judges = {judge.name: dict(judge.options) for judge in JUDGES}
        told = {"machine": machine(), "seed": options.seed, "models": list(models)}
        told |= {"done": len(looked_at), "of": len(tasks), "remarks": remarks_of(found)}
        rows = [{**asdict(each), "counted": each.counted} for each in found]
        print(json.dumps({**told, "judges": judges, "outcomes": rows}, indent=2))
    else:
        print(machine())
        print(f"{', '.join(models)}: {options.faults} faults of each kind, seed {options.seed};")
        print(f"{len(looked_at)} of {len(tasks)} looked at, {len(found)} have a place")
        print(*table(found), *arguments_of(found), *remarks_of(found), sep="\n")
    return int(any(each.contradicts for each in found))


if __name__ == "__main__":
    sys.exit(main())
