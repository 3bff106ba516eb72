"""A program in our reference and in the original runtime, in a process that may crash."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_reference.errors import Unsupported
from darwinn_reference.protocol import Reference
from darwinn_testbench.comparison.compare import compare
from darwinn_testbench.policy import NAMED

from benchmarks.conformance.executorch_programs import programs
from benchmarks.conformance.iree_modules import modules
from benchmarks.conformance.subject import Maker, Subject

Open = Callable[[Path, Sequence[Path]], Reference]

EQUAL, DIFFERENT, REFUSED, BROKEN = "equal", "different", "refused here", "fails here"
BOTH, THEIRS, UNMADE = "refused by both", "refused by the original", "not made"
FAILURES = (DIFFERENT, REFUSED, BROKEN)


@dataclass(frozen=True)
class Row:
    """What came of a program. ``worst`` is the largest difference, relative above 1;
    ``ours`` and ``theirs`` are milliseconds of the fastest call.
    """

    format: str
    name: str
    outcome: str
    worst: float | None = None
    ours: float | None = None
    theirs: float | None = None
    reason: str = ""


def _executorch(path: Path, beside: Sequence[Path]) -> Reference:
    from darwinn_formats import executorch
    from darwinn_reference.executorch import ExecutorchReference

    return ExecutorchReference(executorch.load(path, external=beside))


def _executorch_original(path: Path, beside: Sequence[Path]) -> Reference:
    from darwinn_reference.executorch.original import OriginalRuntime

    return OriginalRuntime(path, beside)


def _iree(path: Path, beside: Sequence[Path]) -> Reference:
    from darwinn_reference.iree import IreeReference

    return IreeReference(path)


def _iree_original(path: Path, beside: Sequence[Path]) -> Reference:
    from darwinn_reference.iree import OriginalIree

    return OriginalIree(path)


def _no_executorch() -> str:
    from darwinn_reference.executorch.original import unavailable

    return unavailable()


def _no_iree() -> str:
    from darwinn_reference.iree import why_not

    try:
        import iree.compiler  # noqa: F401
    except ImportError as error:
        return f"the compiler of IREE modules is not installed (extra 'iree'): {error}"
    return why_not() or ""


@dataclass(frozen=True)
class Format:
    """A format: its programs, both ways of running them, why it cannot be compared."""

    makers: Callable[[], dict[str, Maker]]
    ours: Open
    theirs: Open
    missing: Callable[[], str]


FORMATS = {
    "executorch": Format(programs, _executorch, _executorch_original, _no_executorch),
    "iree": Format(modules, _iree, _iree_original, _no_iree),
}


def _results(opened: Open, path: Path, beside: Sequence[Path], subject: Subject) -> Any:
    """Outputs of all calls with the fastest call's milliseconds, or why there are none."""
    try:
        reference = opened(path, beside)
        outputs, times = [], []
        for call in subject.calls:
            begin = time.perf_counter()
            found = reference.run(call.inputs, function=call.function)
            times.append(1000 * (time.perf_counter() - begin))
            outputs.append([np.asarray(entry.data) for entry in found])
    except (Unsupported, ExecutionError, FormatError) as error:
        return f"{type(error).__name__}: {error}", None
    return outputs, min(times)


def _difference(ours: Any, theirs: Any, policy: str) -> tuple[float, str]:
    """The largest difference of two arrays, and why they do not agree, or nothing."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        kinds = f"{ours.dtype}{list(ours.shape)} here, {theirs.dtype}{list(theirs.shape)} there"
        return np.inf, kinds
    verdict = compare(ours, theirs, NAMED[policy if theirs.dtype.kind == "f" else "exact"])
    left, right = ours.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.abs(left - right) / np.maximum(1, np.abs(right))
    apart = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0, apart)
    return float(apart.max(initial=0)), "" if verdict.passed else verdict.reason


def examine(kind: str, name: str) -> Row:
    """Make a program, run it in both, compare."""
    chosen = FORMATS[kind]
    try:
        subject = chosen.makers()[name]()
    except Exception as error:  # whatever an exporter raises
        return Row(kind, name, UNMADE, reason=f"{type(error).__name__}: {error}"[:300])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program"
        path.write_bytes(subject.data)
        beside = []
        for key, content in subject.beside.items():
            beside.append(Path(folder) / key)
            beside[-1].write_bytes(content)
        theirs, their_time = _results(chosen.theirs, path, beside, subject)
        try:
            ours, our_time = _results(chosen.ours, path, beside, subject)
        except Exception as error:  # no error of ours ends the table
            return Row(kind, name, BROKEN, reason=f"{type(error).__name__}: {error}"[:300])
    if isinstance(theirs, str):
        outcome = BOTH if isinstance(ours, str) else THEIRS
        return Row(kind, name, outcome, ours=our_time, reason=theirs)
    if isinstance(ours, str):
        return Row(kind, name, REFUSED, theirs=their_time, reason=ours)
    worst, reason = 0.0, ""
    for left, right in zip(ours, theirs, strict=True):
        if len(left) != len(right):
            reason = reason or f"{len(left)} outputs here, {len(right)} there"
        for mine, other in zip(left, right, strict=False):
            apart, why = _difference(mine, other, subject.policy)
            worst, reason = max(worst, apart), reason or why
    return Row(kind, name, DIFFERENT if reason else EQUAL, worst, our_time, their_time, reason)


def _quiet() -> None:
    """Exporters and runtimes say a lot; what counts is in the table."""
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)


class Worker:
    """A process that examines, started anew when it dies or does not end."""

    def __init__(self, seconds: float, what: Callable[[str, str], Row] = examine) -> None:
        self.seconds = seconds
        self._what = what
        self._pool = self._new()

    def _new(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _quiet)

    def __call__(self, kind: str, name: str) -> Row:
        try:
            return self._pool.submit(self._what, kind, name).result(self.seconds)
        except BrokenProcessPool:
            reason = "the process ended: a runtime crashed"
        except TimeoutError:
            reason = f"not done after {self.seconds:g} s"
            for process in self._pool._processes.values():
                process.kill()
        self._pool = self._new()
        return Row(kind, name, UNMADE, reason=reason)

    def close(self) -> None:
        self._pool.shutdown()
