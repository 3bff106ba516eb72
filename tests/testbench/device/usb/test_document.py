"""What docs/device.md and docs/host-interface.md say of USB can be typed as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from darwinn_sim.accelerator import Accelerator
from darwinn_testbench.chip.model import open_models

pytest.importorskip("usb.core", reason="PyUSB is not installed")

DOCUMENTS = Path(__file__).parents[4] / "docs"
PAGE = DOCUMENTS / "device.md"
SESSION = DOCUMENTS / "host-interface.md"
SAID = "scu_ctrl_3 50c5025c\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the pages show, and the command `darwinn` in the folder `bin`."""
    pages = PAGE.read_text() + SESSION.read_text()
    for block in re.findall(r"```python\n(# .*?)```", pages, re.DOTALL):
        name = block.partition("\n")[0].removeprefix("# ")
        (tmp_path / name).write_text(block)
    programs = tmp_path / "bin"
    programs.mkdir()
    command = "-c 'from darwinn_testbench.cli import main; main()'"
    for program, words in (("darwinn", command), ("python3", "")):
        path = programs / program
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        path.chmod(0o755)
    return tmp_path


def typed(folder: Path, command: str) -> str:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": path},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return ran.stdout


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_commands_of_the_page_run(folder: Path) -> None:
    (block,) = re.findall(r"```sh\n(darwinn device.*?)```", PAGE.read_text(), re.DOTALL)
    first, recorded, replayed = (typed(folder, line) for line in block.splitlines())
    assert first == recorded == SAID
    assert replayed.splitlines()[-1] == "pass  session.trace: 1 event, no difference"
    (table,) = re.findall(r"```text\n(answers from.*?)```", PAGE.read_text(), re.DOTALL)
    shown = [line.rstrip() for line in replayed.splitlines()]
    assert [line for line in shown if line in table.splitlines()] == table.splitlines()


def test_the_program_in_one_process_runs(folder: Path) -> None:
    assert typed(folder, "python3 in_process.py") == SAID


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_the_session_of_the_page_infers(folder: Path) -> None:
    (block,) = re.findall(r"```console\n(.*?)```", SESSION.read_text(), re.DOTALL)
    sampled, ran = (typed(folder, line.removeprefix("$ ")) for line in block.splitlines())
    assert sampled
    (model,) = open_models(folder / "sample" / "dense_edgetpu.tflite")
    accelerator, compiled = Accelerator(), model.compiled
    assert compiled.caching is not None
    accelerator.run(compiled.caching, {})
    (layer,) = compiled.inference.input_layers
    result = accelerator.run(compiled.inference, {layer.name: bytes(layer.size_bytes)})
    (place,) = compiled.inference.output_layers
    name, digits = ran.split()
    assert name == place.name
    assert bytes.fromhex(digits)[: len(result.outputs[name])] == result.outputs[name]
