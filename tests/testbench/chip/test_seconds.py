"""Seconds of an inference: what is done once for all inferences is no part of any of them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from darwinn_sim import accelerator
from darwinn_sim.kernel.compiling import announced
from darwinn_testbench.chip import session
from darwinn_testbench.chip.session import Device
from darwinn_testbench.comparison.verify import verify


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done, in order; ``clock`` stands for a look at the clock."""
    done: list[str] = []

    def noted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            done.append(name)
            return function(*arguments, **named)

        return call

    for where, name in (
        (session, "compile_kernels"),
        (accelerator, "lower"),
        (Device, "cache"),
        (accelerator.Accelerator, "run"),
    ):
        monkeypatch.setattr(where, name, noted(name, getattr(where, name)))
    monkeypatch.setattr("time.perf_counter", noted("clock", time.perf_counter))
    return done


def spans(log: list[str]) -> list[list[str]]:
    """What was done between one look at the clock and the next, where the chip ran."""
    parts = [part.split() for part in " ".join(log).split("clock")]
    return [part for part in parts if "run" in part]


def test_an_inference_is_timed_without_what_precedes_it(samples: Path, log: list[str]) -> None:
    verify(samples / "dense_edgetpu.tflite", runs=2)
    loading, *inferences = spans(log)
    assert {"cache", "lower", "run"} <= set(loading)
    assert inferences == [["run"], ["run"]]


def test_a_chip_beside_another_program_is_timed_alike(samples: Path, log: list[str]) -> None:
    verify(samples / "dense_edgetpu.tflite", samples / "dense.pte", None, runs=2)
    loading, *inferences = spans(log)
    assert {"compile_kernels", "cache", "lower", "run"} <= set(loading)
    assert inferences == [["run"], ["run"]]


COMPILES = """
import sys
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.kernel.compiling import announced
from darwinn_sim.units.mesh_bus import neighbour
from darwinn_sim.kernel.sync import reached
with announced(lambda: print("compiling")):
    reached(1, 1)
    neighbour(5, 0)
"""


def test_compilation_is_announced_once_and_the_cache_is_not(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, "-c", COMPILES],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout.split()
        for _ in range(2)
    ]
    assert said == [["compiling"], []]


def test_nothing_is_announced_afterwards() -> None:
    said: list[str] = []
    with announced(lambda: said.append("compiling")):
        pass
    accelerator.compile_kernels()
    assert not said
