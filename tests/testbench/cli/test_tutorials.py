"""The tutorials can be typed as they stand there, and print what they show."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from darwinn_testbench.cli.application import run_command_line
from shown_output import lines

TUTORIALS = sorted((Path(__file__).parents[3] / "docs" / "tutorials").glob("*.md"))
_BLOCK = re.compile(r"```(console|python|toml)\n(.*?)```", re.S)


@pytest.mark.usefixtures("tasks_performed_here")
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_prints_what_it_shows(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    python = tmp_path / ".bin" / "python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PATH", f"{python.parent}{os.pathsep}{os.environ['PATH']}")
    if page.stem in ("answers", "tasks"):
        pytest.importorskip("PIL", reason="pictures are an extra")
    if page.stem == "tasks":
        pytest.importorskip("perfetto", reason="timelines are an extra")
    if page.stem == "application" and shutil.which("cc") is None:
        pytest.skip("there is no C compiler to build the delegate with")
    calls = 0
    for kind, text in _BLOCK.findall(page.read_text()):
        if kind != "console":
            name = re.match(r"# (\S+)\n", text)
            assert name is not None, "a file has its name in its first line"
            (tmp_path / name[1]).write_text(text)
            continue
        for call in re.split(r"^\$ ", text, flags=re.M)[1:]:
            command, _, shown = call.partition("\n")
            assert lines(typed(command, capfd)) == lines(shown), command
            calls += 1
    assert calls >= 3


def typed(line: str, capfd: pytest.CaptureFixture[str]) -> str:
    """What a shell prints on standard output.

    `darwinn` is called here, where the model of the chip is loaded once for all that is typed.
    """
    command, _, pipe = line.partition(" | ")
    program, *words = shlex.split(command)
    if program == "darwinn":
        code = run_command_line(words)
        printed, errors = capfd.readouterr()
    else:
        done = shell(command, "")
        code, printed, errors = done.returncode, done.stdout, done.stderr
    assert code == int("\nmismatch " in f"\n{printed}"), errors
    if not pipe:
        return printed
    done = shell(pipe, printed)
    assert done.returncode == 0, done.stderr
    return done.stdout


def shell(command: str, given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_there_are_tutorials() -> None:
    assert len(TUTORIALS) >= 6
