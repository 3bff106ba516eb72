"""Which faults of executables verification finds: weights, scales, tables, addresses, by kind.

    python -m benchmarks.faults [FILE ...] [--faults N] [--seed N] [--only WORD] [--seconds S]
                                [--json]

N faults of each kind (``tests/support/executable_faults.py``) are made of each compiled model FILE,
which lies beside its model before compilation; without files, of one sample and some models of
DARWINN_CORPUS, DARWINN_WILD and DARWINN_WILD2. Each judge of ``JUDGES`` verifies each of them.

A fault is equivalent where an argument says that it changes nothing for any input
(``tests/support/equivalence.py``: of the programs as they are lifted, never of samples); different
where a judge finds it or an input shows it; else undecided, and counted apart. Exits with 1 where
the default verification has a wrong output though an argument says that none is.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from darwinn_formats.errors import FormatError
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

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from equivalence import ARGUMENTS, Computed, Truth, computed, truth
from executable_faults import KINDS, Fault, FaultKind, Subject, drawn, faulty, faulty_file


@dataclass(frozen=True)
class Judge:
    """Somebody who is asked: a name, and the options of ``verify``."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


JUDGES = (
    Judge("verify"),
    Judge("--no-proof", {"proof": False, "runs": 5}),
    Judge("--no-proof --layers", {"proof": False, "layers": True, "runs": 5}),
    Judge("--no-proof --schedules", {"proof": False, "schedules": 5, "runs": 5}),
)
"""Each of these judges every fault, the default verification first; the table has a column for
each."""

SAMPLE = "sample convolution"
MODELS = (
    *("mobilenet_v1_0.25_128_quant", "looming_64x64_3x3", "color_red_64x64", "bright_16x16"),
    *("classifier_2022", "conv_chain_two_32"),
)
"""Models of the folders of real ones of which faults are made; those that are not here are left
out."""


@dataclass(frozen=True)
class Outcome:
    """A judged fault: it has what is known of the fault, why, and the verdict of each judge."""

    model: str
    kind: str
    where: str
    known: Truth
    why: str
    verdicts: Mapping[str, str]
    found_by: tuple[str, ...]
    wrong_output: bool
    seconds: float

    @property
    def contradicts(self) -> bool:
        """An output of the default verification is wrong, and an argument says it cannot be. What
        else is found is no contradiction: an entry of a table that no sum reaches, a tensor within
        that no output needs, another order of the units."""
        return self.known is Truth.EQUIVALENT and self.wrong_output

    @property
    def remark(self) -> str:
        """The reason why a reader has to look at this fault; empty where there is none."""
        if self.contradicts:
            return "CONTRADICTION"
        if self.known is Truth.EQUIVALENT and self.found_by:
            return f"equivalent, found by {', '.join(self.found_by)}"
        return "not found" if self.counted is Truth.DIFFERENT and not self.found_by else ""

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

    def known(self, fault: Fault) -> tuple[Truth, str]:
        """The equivalence that arguments and inputs show of a fault, without any judge."""
        if self.right is None:
            return Truth.UNDECIDED, self.reason
        return truth(self.right, faulty(self.bound.compiled, fault))

    def judge(self, fault: Fault, judge: Judge) -> tuple[Verdict, bool]:
        """The verdict of a judge, and whether an output is wrong."""
        data = faulty_file(self.data, self.bound.compiled, fault)
        try:
            report = verify(data, self.reference, **judge.options)
        except (SimulationError, DecodeError, FormatError, InputError) as error:
            return judged(error)[0], False
        return report.verdict, any(row.verdict.failed for row in report.rows)

    def outcome(self, fault: Fault) -> Outcome:
        """Every judge verifies a fault: this is the outcome."""
        begin = time.process_time()
        known, why = self.known(fault)
        asked = {judge.name: self.judge(fault, judge) for judge in JUDGES}
        return Outcome(
            model=self.name,
            kind=fault.kind,
            where=fault.where,
            known=known,
            why=why,
            verdicts={name: verdict.value for name, (verdict, _) in asked.items()},
            found_by=tuple(name for name, (verdict, _) in asked.items() if verdict.failed),
            wrong_output=asked[JUDGES[0].name][1],
            seconds=round(time.process_time() - begin, 3),
        )


def places(files: Sequence[Path], samples: Path) -> dict[str, tuple[Path, Path]]:
    """Compiled models and those before compilation, by name."""
    if files:
        found = {path.stem.removesuffix("_edgetpu"): path for path in files}
    else:
        sample(samples)
        found = {SAMPLE: samples / "convolution_edgetpu.tflite"}
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


def outcomes(
    models: Mapping[str, tuple[Path, Path]],
    kinds: Sequence[FaultKind],
    number: int,
    seed: int,
    seconds: float | None,
) -> Iterator[Outcome]:
    """The outcomes of all faults, as far as there is time."""
    end = None if seconds is None else time.monotonic() + seconds
    for name, (path, reference) in models.items():
        model = Model(name, path, reference)
        for kind in kinds:
            for fault in drawn(model.subject, kind, f"{seed}/{name}", number):
                if end is not None and time.monotonic() > end:
                    return
                yield model.outcome(fault)


def table(found: Sequence[Outcome]) -> list[str]:
    """A row for each kind, and one for all."""
    names = [judge.name for judge in JUDGES]
    columns = ("kind", "faults", *map(str, Truth), *names, "all")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    groups = [(kind.name, [each for each in found if each.kind == kind.name]) for kind in KINDS]
    for name, group in [*groups, ("all", list(found))]:
        known = Counter(each.counted for each in group)
        by = [sum(judge in each.found_by for each in group) for judge in names]
        counts = [len(group), *(known[each] for each in Truth), *by]
        counts.append(sum(bool(each.found_by) for each in group))
        lines.append(f"| {name} | {' | '.join(map(str, counts))} |")
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


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("files", nargs="*", type=existing_file, metavar="FILE")
    options.add_argument("--faults", type=positive, default=4, metavar="N")
    options.add_argument("--seed", type=int, default=0, metavar="N")
    options.add_argument("--only", default="", metavar="WORD", help="kinds with it in their name")
    options.add_argument("--seconds", type=float, metavar="S")
    options.add_argument("--json", action="store_true")
    return options.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = options_of(arguments)
    kinds = with_word(options.only, KINDS, lambda kind: kind.name)
    with tempfile.TemporaryDirectory() as samples:
        models = places(options.files, Path(samples))
        found = []
        for each in outcomes(models, kinds, options.faults, options.seed, options.seconds):
            found.append(each)
            print(f"\r{len(found)}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    wrong = [each for each in found if each.contradicts]
    if options.json:
        judges = {judge.name: dict(judge.options) for judge in JUDGES}
        told = {"machine": machine(), "seed": options.seed, "models": list(models)}
        rows = [{**asdict(each), "counted": each.counted} for each in found]
        print(json.dumps({**told, "judges": judges, "outcomes": rows}, indent=2))
    else:
        print(machine())
        print(f"{', '.join(models)}: {options.faults} faults of each kind, seed {options.seed}")
        print(*table(found), *arguments_of(found), sep="\n")
        for each in found:
            if said := each.remark:
                print(f"{said}: {each.model}, {each.kind}: {each.where} ({each.why})")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
