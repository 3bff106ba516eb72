"""What works without the libraries of extras, and what is said where one is needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from darwinn_formats.extras import _EXTRAS
from forks import Forks
from sample_files import sample


class Command(Protocol):
    """Calls `darwinn`; gives its exit code and the last line of its output."""

    def __call__(self, *words: str) -> tuple[int, str]: ...


WITHOUT = f"""
import sys
sys.modules.update(dict.fromkeys({list(_EXTRAS)!r}))
from contextlib import redirect_stdout
from io import StringIO
from darwinn_sim.accelerator import compile_kernels
from darwinn_testbench.cli.application import run_command_line
import darwinn_testbench.comparison.verify
import darwinn_testbench.profile.profile
with redirect_stdout(StringIO()):
    run_command_line(["inspect", "--help"])
compile_kernels()
"""
"""No library of an extra can be imported; what most commands need is loaded."""


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    with Forks(WITHOUT, tmp_path_factory.mktemp("printed")) as forks:
        yield forks


@pytest.fixture(scope="module")
def without(folder: Path, forks: Forks) -> Command:
    def call(*words: str) -> tuple[int, str]:
        ended = forks.run("from darwinn_testbench.cli import main; main()", words, folder=folder)
        return ended.returncode, (ended.stderr or ended.stdout).strip().splitlines()[-1]

    return call


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    sample(folder)
    return folder


@pytest.mark.parametrize("command", ["inspect", "disasm", "dma", "run", "cycles", "layers"])
def test_the_core_needs_none(without: Command, command: str) -> None:
    assert without(command, "dense_edgetpu.tflite")[0] == 0


def test_outputs_that_are_given_are_compared(without: Command) -> None:
    assert without("run", "dense_edgetpu.tflite", "--output", "given.npz")[0] == 0
    given = ("verify", "dense_edgetpu.tflite", "--expected", "given.npz")
    assert without(*given, "--runs", "1")[0] == 0
    assert without(*given, "--runs", "1", "--seed", "7")[0] == 1


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("verify", "dense_edgetpu.tflite", "--reference", "dense.tflite"), "litert"),
        (("profile", "dense_edgetpu.tflite", "--timeline", "trace.pftrace"), "timeline"),
        (("layers", "dense_edgetpu.tflite", "--graph", "graph.svg"), "pictures"),
        (("classify", "picture.png", "dense_edgetpu.tflite"), "pictures"),
        (("evaluate", "dense_edgetpu.tflite", "."), "pictures"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_what_needs_one_names_it(without: Command, words: tuple[str, ...], extra: str) -> None:
    code, line = without(*words)
    assert code == 3
    assert line.endswith(f"pip install 'darwinn-testbench[{extra}]'")
    assert "refused" in line


def test_a_page_is_written_without_charts(without: Command, folder: Path) -> None:
    page = folder / "page.html"
    assert without("report", "dense_edgetpu.tflite", "--output", str(page))[0] == 0
    text = page.read_text()
    assert "pip install &#39;darwinn-testbench[pictures]&#39;" in text
    assert "<h2>Layers</h2>" in text
    assert 'class="chart"' not in text


@pytest.mark.parametrize("command", ["classify", "evaluate"])
def test_help_needs_none(without: Command, command: str) -> None:
    assert without(command, "--help")[0] == 0


def test_the_package_is_the_command_too(folder: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "darwinn_testbench", "--version"],
        text=True,
        capture_output=True,
        check=True,
    )
    assert ended.stdout.strip()
