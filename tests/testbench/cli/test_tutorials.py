"""The tutorials can be typed as they stand there, and print what they show."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from shown_output import lines

TUTORIALS = sorted((Path(__file__).parents[3] / "docs" / "tutorials").glob("*.md"))
_BLOCK = re.compile(r"```(console|python|toml)\n(.*?)```", re.S)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    if page.stem == "answers":
        pytest.importorskip("PIL", reason="pictures are an extra")
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
            assert lines(typed(command, tmp_path)) == lines(shown), command
            calls += 1
    assert calls >= 3


def typed(command: str, folder: Path) -> str:
    """What a shell prints on standard output, with `darwinn` and `python3` of these sources."""
    programs = folder / ".bin"
    programs.mkdir(exist_ok=True)
    for name, words in (("darwinn", " -m darwinn_testbench"), ("python3", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable}{words} "$@"\n')
        (programs / name).chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    mismatch = "\nmismatch " in f"\n{done.stdout}"
    assert done.returncode == int(mismatch), done.stderr
    return done.stdout


def test_there_are_tutorials() -> None:
    assert len(TUTORIALS) >= 6
