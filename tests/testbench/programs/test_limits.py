"""A file with one byte changed opens and runs, or fails, within its limits; so do endless ones."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_formats.files import Content
from darwinn_formats.limits import Limits, limited
from darwinn_reference.errors import ModelError
from darwinn_sim.errors import SimulationError
from darwinn_sim.isa.codec import DecodeError
from darwinn_testbench.chip.execution import run
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler.natives import NATIVES
from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.run import run_program
from sample_files import sample

CHANGES = 300
CHANGES_OF_EXECUTABLES = 40
"""A run on the chip takes a fifth of a second; nightly as many as of the others."""

HOW_MANY = [CHANGES_OF_EXECUTABLES, pytest.param(CHANGES, marks=pytest.mark.nightly)]
LIMITS = Limits(seconds=0.5, memory=256 << 20)
SECONDS = 2.0 + LIMITS.seconds
TYPED = (FormatError, ModelError, InputError, ExecutionError, SimulationError, DecodeError)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("limits")
    sample(found)
    return found


def assert_bounded(
    data: bytes, seed: str, use: Callable[[Content], object], changes: int = CHANGES
) -> None:
    """Each change is a result or one of the errors that have a type, in its time."""
    chosen = random.Random(seed)
    # What is compiled, imported and cached is so before the clock begins.
    use(Content(data, seed))
    for _ in range(changes):
        changed = bytearray(data)
        place = chosen.randrange(len(data))
        changed[place] = (changed[place] + chosen.randrange(1, 256)) % 256
        begin = time.thread_time()
        with limited(LIMITS), suppress(*TYPED):
            use(Content(bytes(changed), seed))
        took = time.thread_time() - begin
        assert took < SECONDS, f"byte {place} of {seed} became {changed[place]}: {took} s"


@pytest.mark.parametrize("name", ["convolution.pte", "convolution.bef"])
def test_changed_programs_of_other_formats(name: str, folder: Path) -> None:
    (model,) = open_models(str(folder / "convolution_edgetpu.tflite"))
    (port,) = model.ports
    image = np.zeros(port.shape, port.dtype)
    given = None if name.endswith(".pte") else [{"arg0": image}]
    use = partial(run_program, inputs=given, natives=NATIVES)
    assert_bounded((folder / name).read_bytes(), name, use)


@pytest.mark.parametrize("name", ["v17/add.vmvx", "v17/scalar_ctl.vmvx", "v15/add.vmvx"])
def test_changed_modules(name: str, corpus: Path) -> None:
    """Of those of ``add`` one goes on for ever, and each call of it would."""
    calls = str(corpus / "vmfb" / f"{name}.npz")
    use = partial(verify, expected=calls)
    assert_bounded((corpus / "vmfb" / f"{name}.vmfb").read_bytes(), name, use)


@pytest.mark.parametrize("changes", HOW_MANY)
def test_a_changed_network(changes: int, folder: Path) -> None:
    compiled = str(folder / "convolution_edgetpu.tflite")
    use = partial(verify, compiled, runs=1)
    data = (folder / "convolution.tflite").read_bytes()
    assert_bounded(data, "convolution.tflite", use, changes)


@pytest.mark.parametrize("changes", HOW_MANY)
@pytest.mark.parametrize("name", ["convolution_edgetpu.tflite", "convolution.package"])
def test_changed_executables(name: str, changes: int, folder: Path) -> None:
    assert_bounded((folder / name).read_bytes(), name, run, changes)
