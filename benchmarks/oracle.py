"""Seconds of the arithmetic that outputs are compared with, beside the run that it judges.

    python -m benchmarks.oracle [--repeat N] [--only WORD]

For each compiled model of DARWINN_CORPUS, DARWINN_WILD and DARWINN_WILD2 that lies beside its model
before compilation: processor time of one inference on the simulated chip, of the chip's arithmetic
on the CPU (of the whole network, the host's operators included), and of LiteRT with one thread;
each the least of N. Models of several programs, those that cannot be read, and those whose network
the oracle does not compute, are named. Exits with 1 where the oracle takes
longer than the chip's run, also in three more processes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from darwinn_formats.errors import FormatError
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.session import Session
from darwinn_testbench.comparison.expectation import References, device_inputs
from darwinn_testbench.errors import InputError

from benchmarks.common import (
    REAL_MODELS,
    STARTS,
    alone,
    machine,
    parser,
    real_folders,
    refuse,
    with_word,
)
from benchmarks.many_inputs import best, litert

ENOUGH = 2.0
"""Seconds after which nothing is repeated."""
SHORT = 0.01
"""Seconds below which a run is all overhead: no oracle fails there."""


@dataclass(frozen=True)
class Times:
    """Seconds of one inference of each; None where LiteRT is not installed."""

    chip: float
    oracle: float
    litert: float | None

    @property
    def ratio(self) -> float:
        """The oracle's time in that of the chip's run."""
        return self.oracle / self.chip

    @property
    def longer(self) -> bool:
        """The oracle takes longer, and not only because of overhead."""
        return self.ratio > 1 and self.oracle > SHORT


def pairs() -> Iterator[tuple[str, Path, Path]]:
    """Name, compiled model and model before compilation, of all folders."""
    for root in real_folders():
        for path in sorted((root / "darwinn").glob("*_edgetpu.tflite")):
            name = path.name.removesuffix("_edgetpu.tflite")
            original = root / "tflite" / f"{name}.tflite"
            if original.exists():
                yield name, path, original


def _least(actions: Sequence[Callable[[], object]], repeat: int) -> list[float]:
    """Processor seconds of the quickest of some calls of each; all take turns."""

    def each() -> list[float]:
        return [best(action, 1) for action in actions]

    found = [each()]
    if sum(found[0]) < ENOUGH:
        found += [each() for _ in range(repeat)]
    return [min(column) for column in zip(*found, strict=True)]


def measure(path: Path, original: Path, repeat: int) -> Times | str:
    """The times of a pair, or why there are none."""
    try:
        (model, *more) = open_models(path)
        if more:
            return f"{1 + len(more)} programs"
        references = References(original, model)
    except (FormatError, InputError) as error:
        return str(error).split(": ", 1)[-1]
    (tensors,) = random_inputs(references.ports, seed=0, runs=1)
    inputs = list(tensors.values())
    session = Session(model, lifts=False)
    given = device_inputs(model.ports, tensors, references.expect(tensors, session.states))
    session.infer(given)
    ways = (lambda: session.infer(given), lambda: references.cpu.chip.run(inputs))
    chip, oracle = _least(ways, repeat)
    return Times(chip, oracle, litert(original, repeat))


def _measured(path: Path, original: Path, repeat: int) -> Times | str:
    """The times of a pair; what seems to take longer is measured anew."""
    found = alone(measure, path, original, repeat)
    for _ in range(STARTS - 1):
        if isinstance(found, str) or not found.longer:
            break
        again = alone(measure, path, original, repeat)
        if isinstance(again, Times):
            chip, oracle = min(found.chip, again.chip), min(found.oracle, again.oracle)
            found = replace(found, chip=chip, oracle=oracle)
    return found


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("--only", default="", metavar="WORD", help="models with this word")
    options = arguments.parse_args()
    if not (there := list(pairs())):
        refuse(f"{', '.join(REAL_MODELS)} have no model compiled and before")
    chosen = with_word(options.only, there, lambda each: each[0])
    print(machine())
    print(f"{'model':<50} {'chip ms':>9} {'oracle ms':>9} {'ratio':>6} {'LiteRT ms':>9}")
    ratios, late = [], 0
    for name, path, original in chosen:
        found = _measured(path, original, options.repeat)
        if isinstance(found, str):
            print(f"{name:<50} not measured: {found}", flush=True)
            continue
        ratios.append(found.ratio)
        late += found.longer
        litert = "" if found.litert is None else f"{1e3 * found.litert:9.2f}"
        print(
            f"{name:<50} {1e3 * found.chip:9.2f} {1e3 * found.oracle:9.2f} {found.ratio:6.2f} "
            f"{litert:>9}{'  LONGER' if found.longer else ''}",
            flush=True,
        )
    print(f"{len(ratios)} models, median ratio {np.median(ratios):.2f}, longer: {late}")
    return int(bool(late))


if __name__ == "__main__":
    sys.exit(main())
