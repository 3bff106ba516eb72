"""Parts of the model, each with kernels of its own, and runs of the sample that call them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path

from darwinn_testbench.chip.ahead import LEAST_INPUTS
from darwinn_testbench.chip.any_timing import judge
from darwinn_testbench.chip.cycles import measure
from darwinn_testbench.chip.dma_check import check_dma
from darwinn_testbench.chip.execution import run
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.chip.session import Session
from darwinn_testbench.comparison.expectation import References
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import sample
from darwinn_testbench.layers.view import view_layers
from darwinn_testbench.proof.prove import prove
from darwinn_testbench.report import Report, Row

_NATIVES = "darwinn_testbench.compiler.natives"


class Part(Enum):
    """A part of the model: what is compiled once for all commands that need it."""

    FUNCTION = "function"
    """What the chip computes."""
    TIME = "time"
    """How long it takes."""
    HAZARDS = "hazards"
    """What the checker of hazards looks at."""
    PROOF = "proof"
    """What a proof of function follows beside the bytes."""
    LIFTED = "lifted"
    """What the chip computes, for many inputs."""


def exercise(part: Part) -> None:
    """Call all kernels of ``part``, and see that they give what they should.

    Raises:
        AssertionError: they do not: a defect of the model, or of what has compiled it.
    """
    with tempfile.TemporaryDirectory(prefix="darwinn-") as folder:
        sample(folder)
        for report in _EXERCISES[part](Path(folder)):
            if not report.verdict.passed:
                raise AssertionError(f"{part.value}: {report.file}: {report.headline}")


def _function(folder: Path) -> list[Report[Row]]:
    return [
        *(_verified(folder, name, schedules=1) for name in ("dense", "convolution")),
        check_dma(folder / "dense_edgetpu.tflite"),
        view_layers(folder / "dense_edgetpu.tflite"),
    ]


def _time(folder: Path) -> list[Report[Row]]:
    return [measure(folder / f"{name}_edgetpu.tflite") for name in ("dense", "convolution")]


def _hazards(folder: Path) -> list[Report[Row]]:
    """Judged here, whatever was kept: that calls no kernels."""
    for name in ("dense", "convolution"):
        path = folder / f"{name}_edgetpu.tflite"
        (model,) = open_models(path)
        judged = judge(Pipeline([Session(model)]))
        if not judged.holds or any(each.found for each in judged.found):
            raise AssertionError(f"{Part.HAZARDS.value}: {path}: {judged}")
    return []


def _proof(folder: Path) -> list[Report[Row]]:
    """Proved here, whatever was kept."""
    for name in ("dense", "convolution"):
        path = folder / f"{name}_edgetpu.tflite"
        (model,) = open_models(path)
        found = prove(Session(model), References(folder / f"{name}.tflite", model).uncompiled)
        if not found.proved:
            raise AssertionError(f"{Part.PROOF.value}: {path}: {found}")
    return []


def _lifted(folder: Path) -> list[Report[Row]]:
    """Compared with an inference that is run, when they are lifted (``chip.ahead``)."""
    for name in ("dense", "convolution"):
        report = run(folder / f"{name}_edgetpu.tflite", runs=LEAST_INPUTS, hazards=False)
        if reason := report.figures["lifted"].reason:
            raise AssertionError(f"{Part.LIFTED.value}: {report.file}: {reason}")
    return []


def _verified(folder: Path, name: str, *, schedules: int) -> Report[Row]:
    """Against native functions, which are part of the project: no other runtime has to be there."""
    return verify(
        folder / f"{name}_edgetpu.tflite",
        folder / f"{name}.bef",
        natives=_NATIVES,
        schedules=schedules,
        hazards=False,
        runs=1,
    )


_EXERCISES: Mapping[Part, Callable[[Path], list[Report[Row]]]] = {
    Part.FUNCTION: _function,
    Part.TIME: _time,
    Part.HAZARDS: _hazards,
    Part.PROOF: _proof,
    Part.LIFTED: _lifted,
}
