"""Warm inferences of real models in several ways, beside those of `darwinn run`, with their bound.

All ways of a model take turns, so that what else the machine does meets all of them, and each
begins a round in its turn: none always follows the same other one. A way may take FACTOR times what
`darwinn run` takes, and MORE seconds.

What else the machine does only makes an inference longer, so the best of each way counts. Where a
bound is not kept all ways are started anew (``common.STARTS``).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_testbench import Session, open_models

from benchmarks import common
from benchmarks.common import STARTS, compiled, machine_and_load, with_word

MODELS = (
    "dense_256",
    "keras_lstm_mnist_ptq",
    "mobilenet_v1_0.25_128_quant",
    "mobilenet_v2_1.0_224_quant",
    "ssd_mobilenet_v1_coco_quant_postprocess_segment_1_of_2",
    "deeplabv3_mnv2_dm05_pascal_quant",
    "posenet_mobilenet_v1_075_353_481_16_quant_decoder",
)
FACTOR, MORE = 1.2, 0.010

DARWINN = (sys.executable, "-c", "from darwinn_testbench.cli import main; main()")
SUPPORT = Path(__file__).parents[1] / "tests" / "support"
"""Clients of the tests."""

Way = Callable[[], float]
"""Infers once; gives the seconds that it took."""


class OwnRun:
    """Inferences of a model as `darwinn run` does and times them, of ones."""

    def __init__(self, path: Path) -> None:
        (model,) = open_models(path)
        self.session = Session(model, lifts=False)
        self._tensors = {port.name: np.ones(port.shape, port.dtype) for port in model.ports}

    def __call__(self) -> float:
        return self.session.infer(self._tensors).seconds


@contextmanager
def client(*command: str | Path) -> Iterator[Way]:
    """Inferences of a command, which finds what the tests share.

    It prints a line when it is ready. For each line that it gets it infers, and prints by its clock
    when that began and when it ended, in seconds. It ends where the lines end.
    """
    paths = [str(SUPPORT), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    lines, answers = process.stdin, process.stdout

    def seconds() -> float:
        print(file=lines, flush=True)
        begin = float(answers.readline())
        return float(answers.readline()) - begin

    answers.readline()
    yield seconds
    lines.close()
    if process.wait():
        sys.exit("the client has failed")


def options(description: str | None) -> argparse.ArgumentParser:
    """Options of a measurement, which are those of :func:`common.parser` and what to measure."""
    found = common.parser(description)
    found.add_argument("--only", default="", metavar="WORD")
    return found


def measure(
    chosen: argparse.Namespace,
    heads: Iterable[str],
    ways_of: Callable[[Path], AbstractContextManager[Sequence[Way]]],
    models: Sequence[str] = MODELS,
) -> int:
    """Print a line about each model; 0 if all is within the bound, otherwise 1.

    Args:
        chosen: what :func:`options` has found.
        heads: what the ways are called.
        ways_of: the ways to infer with a model; the first is that of `darwinn run`.
        models: names of models, of which those with the word of ``--only`` are measured.
    """
    names = with_word(chosen.only, models)
    print(machine_and_load())
    print(_row("best ms of warm inferences", (*heads, "bound")))
    within = [_measure(name, chosen.repeat, ways_of) for name in names]
    return 0 if all(within) else 1


def _measure(
    name: str, repeat: int, ways_of: Callable[[Path], AbstractContextManager[Sequence[Way]]]
) -> bool:
    starts: list[list[float]] = []
    within = False
    while not within and len(starts) < STARTS:
        with ways_of(compiled(name)) as ways:
            starts.append(_best(ways, repeat))
        best = [min(column) for column in zip(*starts, strict=True)]
        bound = FACTOR * best[0] + MORE
        within = all(each <= bound for each in best)
    shown = [f"{1000 * each:.1f}" for each in (*best, bound)]
    verdict = "ok" if within else "SLOW"
    print(f"{_row(name[:44], shown)}  {verdict}, starts: {len(starts)}", flush=True)
    return within


def _best(ways: Sequence[Way], repeat: int) -> list[float]:
    """Seconds of the best warm inference of each way; all take turns."""
    times: list[list[float]] = [[] for _ in ways]
    for number in range(repeat + 1):
        for place in range(len(ways)):
            which = (place + number) % len(ways)
            times[which].append(ways[which]())
    # The first inference of each is not warm.
    return [min(column[1:]) for column in times]


def _row(name: str, cells: Iterable[Any]) -> str:
    return f"{name:44}  {'  '.join(f'{cell:>9}' for cell in cells)}"
