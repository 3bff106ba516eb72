"""What works without the libraries of extras, and what is said where one is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from darwinn_testbench.compiler.files import sample
from darwinn_testbench.extras import _EXTRAS

WITHOUT = f"""
import sys
sys.modules.update(dict.fromkeys({list(_EXTRAS)!r}))
from darwinn_testbench.cli import main
main()
"""
"""The command where no library of an extra can be imported."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    sample(folder)
    return folder


def without(folder: Path, *words: str) -> tuple[int, str]:
    """Exit code and last line of the command's output."""
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT, *words],
        cwd=folder,
        text=True,
        capture_output=True,
        check=False,
        timeout=300,
    )
    return ended.returncode, (ended.stderr or ended.stdout).strip().splitlines()[-1]


@pytest.mark.parametrize("command", ["inspect", "disasm", "dma", "run", "cycles", "layers"])
def test_the_core_needs_none(folder: Path, command: str) -> None:
    assert without(folder, command, "dense_edgetpu.tflite")[0] == 0


def test_outputs_that_are_given_are_compared(folder: Path) -> None:
    assert without(folder, "run", "dense_edgetpu.tflite", "--output", "given.npz")[0] == 0
    given = ("verify", "dense_edgetpu.tflite", "--expected", "given.npz")
    assert without(folder, *given, "--runs", "1")[0] == 0
    assert without(folder, *given, "--runs", "1", "--seed", "7")[0] == 1


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
def test_what_needs_one_names_it(folder: Path, words: tuple[str, ...], extra: str) -> None:
    code, line = without(folder, *words)
    assert code == 3
    assert line.endswith(f"pip install 'darwinn-testbench[{extra}]'")
    assert "refused" in line


def test_a_page_is_written_without_charts(folder: Path) -> None:
    page = folder / "page.html"
    assert without(folder, "report", "dense_edgetpu.tflite", "--output", str(page))[0] == 0
    text = page.read_text()
    assert "pip install &#39;darwinn-testbench[pictures]&#39;" in text
    assert "<h2>Layers</h2>" in text
    assert 'class="chart"' not in text


@pytest.mark.parametrize("command", ["classify", "evaluate"])
def test_help_needs_none(folder: Path, command: str) -> None:
    assert without(folder, command, "--help")[0] == 0


def test_the_package_is_the_command_too(folder: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "darwinn_testbench", "--version"],
        text=True,
        capture_output=True,
        check=True,
    )
    assert ended.stdout.strip()
