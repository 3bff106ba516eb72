"""What docs/device.md says can be typed as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from darwinn_testbench.cli.application import run_command_line

PAGE = Path(__file__).parents[3] / "docs" / "device.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_python_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["sample", "sample"]) == 0
    alone = [block for block in blocks("python") if not block.startswith("# ")]
    assert alone
    for block in alone:
        exec(compile(block, PAGE.name, "exec"), {})


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_commands_of_the_page_run(tmp_path: Path) -> None:
    """In a shell, in order, beside the files that the page shows under their names."""
    for block in blocks("python"):
        name, _, _ = block.partition("\n")
        if name.startswith("# "):
            (tmp_path / name.removeprefix("# ")).write_text(block)
    programs = tmp_path / "bin"
    programs.mkdir()
    command = "from darwinn_testbench.cli import main; main()"
    for program, words in (("darwinn", ["-c", f"'{command}'"]), ("python3", [])):
        path = programs / program
        path.write_text(f'#!/bin/sh\nexec {" ".join([sys.executable, *words])} "$@"\n')
        path.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    commands = [
        line for block in blocks("console") for line in re.findall(r"^\$ (.+)", block, re.M)
    ]
    runs = [
        subprocess.run(
            each, shell=True, cwd=tmp_path, env=environment, check=True, capture_output=True
        )
        for each in commands
    ]
    outputs, errors = [run.stdout for run in runs], [run.stderr for run in runs]
    shown = blocks("text")
    array = next(block for block in shown if block.startswith("[["))
    assert outputs[1].decode() == outputs[2].decode() == array
    assert "read 48578 instruction_queue_descriptor_size -> 10" in errors[-2].decode()
