"""Proves properties of the RTL: for every input and every history, not for those that tests draw.

    make rtl-formal [ONLY="fifo ring"] [NIGHTLY=1] [JOBS=N] [OUT=FOLDER]

Each proof holds a module of rtl/ in a wrapper (tests/formal/wrappers) whose assertions are proved
by yosys with MiniSat, by induction (for ever) or up to a number of cycles, which is said. That a
proof can fail is shown by a fault in the RTL for each property, and that it is not empty by covers,
which must be reached. docs/rtl-proofs.md has the list.

Exits with 1 if a property does not hold, a fault is not found or a cover not reached, with 2 if
there is no such proof or no yosys. OUT gets the waves of what was reached or does not hold.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import chain
from math import inf
from pathlib import Path

from darwinn_rtl.source_files import source
from darwinn_rtl.yosys import DesignRefused, is_installed

from benchmarks.figures import keep_figures
from tests.formal.proofs import INDUCTION, PROOFS, Proof
from tests.formal.yosys import Answer, Question, Reply, ask, assertions
from tests.nightly.deadline import from_another


@dataclass(frozen=True)
class Result:
    """What came of a proof.

    ``holds`` says how its properties were proved, ``depth`` after how many cycles: the length of
    the induction, or the bound. ``missed`` are properties whose fault was not found, ``unreached``
    covers. ``seconds`` are of processor time.
    """

    name: str
    module: str
    properties: int
    holds: Answer
    depth: int
    missed: tuple[str, ...]
    unreached: tuple[str, ...]
    seconds: float

    @property
    def good(self) -> bool:
        """Whether everything is as it should be."""
        proved = self.holds in (Answer.PROVED, Answer.BOUNDED)
        return proved and not self.missed and not self.unreached

    def line(self) -> str:
        """As it is printed."""
        how = {
            Answer.PROVED: f"always, by induction over {self.depth}",
            Answer.BOUNDED: f"in the first {self.depth} cycles",
            Answer.FOUND: f"DOES NOT HOLD in cycle {self.depth}",
            Answer.UNKNOWN: f"NOT PROVED by induction over {self.depth}",
        }[self.holds]
        bad = [f"not found: the fault of {label}" for label in self.missed]
        bad += [f"not reached: {label}" for label in self.unreached]
        words = f"{self.name:<22} {self.properties:>2} properties  {how:<32} {self.seconds:6.1f} s"
        return "\n".join([words, *(f"{'':<22} {each.upper()[0]}{each[1:]}" for each in bad)])


def _asked(proof: Proof) -> list[Question]:
    """The questions whose answers prove ``proof``."""
    if not proof.apart:
        return [Question("prove", "", proof.bound or INDUCTION, induction=not proof.bound)]
    labels = assertions(proof.wrapper)
    return [
        Question("prove", "", 1),
        *(Question("follow", label, 1, given=labels) for label in labels),
    ]


def _joined(replies: Sequence[Reply]) -> Reply:
    """One for all: what begins well and follows in each part holds always."""
    first, *steps = replies
    if first.answer == Answer.BOUNDED and steps:
        good = all(step.answer == Answer.PROVED for step in steps)
        return Reply(Answer.PROVED if good else Answer.UNKNOWN, first.cycles)
    return first


def perform(proof: Proof, out: Path | None = None, *, alone: bool = False) -> Result:
    """Prove a proof's properties; if not ``alone``, reach its covers and find its faults."""
    if alone:
        proof = replace(proof, covers=())
    with tempfile.TemporaryDirectory() as folder:
        asked = _asked(proof)
        covers = [Question("reach", label, proof.within) for label in proof.covers]
        work = out / proof.name if out else Path(folder) / "proof"
        replies, seconds = ask(
            proof.wrapper, proof.parameters, [*asked, *covers], work, traces=out is not None
        )
        proved, reached = _joined(replies[: len(asked)]), replies[len(asked) :]
        missed = []
        for number, each in enumerate(() if alone else proof.properties):
            text = source(each.fault.file).read_text()
            begin, end = each.fault.span(text)
            (found,), took = ask(
                proof.wrapper,
                proof.parameters,
                [Question("refute", each.label, proof.within)],
                Path(folder) / str(number),
                changed={each.fault.file: text[:begin] + each.fault.replacement + text[end:]},
            )
            seconds += took
            if found.answer != Answer.FOUND:
                missed.append(each.label)
    return Result(
        proof.name,
        proof.module,
        len(proof.properties),
        proved.answer,
        proved.cycles,
        tuple(missed),
        tuple(
            label
            for label, reply in zip(proof.covers, reached, strict=True)
            if reply.answer != Answer.FOUND
        ),
        round(seconds, 2),
    )


def table() -> str:
    """What is proved, as a table of Markdown: a line for each wrapper."""
    by_wrapper: dict[str, list[Proof]] = {}
    for proof in PROOFS:
        by_wrapper.setdefault(proof.wrapper, []).append(proof)
    lines = ["| `ONLY` | module | properties | how | sizes |", "|---|---|---|---|---|"]
    for proofs in by_wrapper.values():
        first = max(proofs, key=lambda proof: len(proof.properties))
        every = chain(first.properties, *(proof.properties for proof in proofs))
        says = "; ".join(dict.fromkeys(each.says for each in every))
        how = f"{first.bound} cycles" if first.bound else "always"
        given = "; ".join(filter(None, map(_given, proofs)))
        word = first.wrapper.removesuffix("_proof")
        lines.append(f"| `{word}` | `{first.module}` | {says} | {how} | {given} |")
    return "\n".join(lines)


def _given(proof: Proof) -> str:
    """Parameters of a proof, and what of it is of the night."""
    parameters = ", ".join(f"{name} {value}" for name, value in proof.parameters.items())
    night = "(faults at night)" if proof.quick else "(at night)"
    return f"{parameters} {night}".lstrip() if proof.nightly else parameters


def figures(results: Sequence[Result]) -> dict[str, float]:
    """How many proofs and properties hold, and the time that they took."""
    good = [each for each in results if each.good]
    return {
        "proofs": len(results),
        "proofs that hold": len(good),
        "properties that hold": sum(each.properties for each in good),
        "processor time, s": sum(each.seconds for each in results),
    }


def perform_all(
    proofs: Sequence[Proof], jobs: int, out: Path | None, seconds: float = inf
) -> Iterator[Result]:
    """Results in the order of ``proofs``, without those that would begin after so many seconds."""
    end = time.monotonic() + seconds

    def perform_in_time(proof: Proof) -> Result | None:
        return perform(proof, out) if time.monotonic() < end else None

    with ThreadPoolExecutor(jobs) as pool:
        yield from filter(None, pool.map(perform_in_time, proofs))


def main(arguments: Sequence[str] | None = None) -> int:
    """Perform the proofs that are asked for, and print what came of them."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.formal",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("only", nargs="*", metavar="WORD", help="proofs with this in their name")
    parser.add_argument("--nightly", action="store_true", help="those that take minutes as well")
    parser.add_argument("--list", action="store_true", help="print what is proved, and go")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many at once (1)")
    parser.add_argument("--seconds", type=float, default=inf, help="none begins after so many")
    parser.add_argument("--seed", type=int, metavar="N", help="begin with another, by this number")
    parser.add_argument("--json", action="store_true", help="print JSON, a list of results")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="keep waves of what fails there")
    options = parser.parse_args(arguments)
    if options.list:
        print(table())
        return 0
    if not is_installed():
        print("no yosys: pip install 'darwinn-testbench[dev]'", file=sys.stderr)
        return 2
    unknown = [word for word in options.only if not any(word in each.name for each in PROOFS)]
    if unknown:
        names = " ".join(each.name for each in PROOFS)
        print(f"no proof has {unknown[0]} in its name; there are: {names}", file=sys.stderr)
        return 2
    chosen = [
        each
        for each in PROOFS
        if (
            any(word in each.name for word in options.only)
            if options.only
            else options.nightly or not each.nightly
        )
    ]
    if options.seed is not None:
        chosen = from_another(chosen, options.seed)
    results = []
    try:
        for result in perform_all(chosen, max(1, options.jobs), options.out, options.seconds):
            results.append(result)
            if not options.json:
                print(result.line(), flush=True)
    except DesignRefused as refused:
        print(f"yosys cannot read a design:\n{refused}", file=sys.stderr)
        return 1
    keep_figures(figures(results))
    if options.json:
        print(json.dumps([{**asdict(each), "good": each.good} for each in results], indent=1))
    else:
        bad = sum(not each.good for each in results)
        properties = sum(each.properties for each in results)
        faults = properties - len(list(chain.from_iterable(each.missed for each in results)))
        print(
            f"{len(results) - bad} of {len(results)} proofs hold: {properties} properties, "
            f"{faults} of {properties} faults found, "
            f"{sum(each.seconds for each in results):.0f} s of processor time"
            + f"; no time for {len(chosen) - len(results)}"
            * (len(results) < len(chosen))
        )
    return int(not all(each.good for each in results))


if __name__ == "__main__":
    sys.exit(main())
