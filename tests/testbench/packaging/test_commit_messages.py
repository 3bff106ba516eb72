"""`.ci/commit_message.py` refuses messages, in a file or in the history since the last release."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / ".ci" / "commit_message.py"
NOBODY = {
    **{f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}
LONG = "x" * 73
FAULTS = {
    LONG: "73 characters",
    f"{LONG}\n\nbody": "73 characters",
    "Do it.": "full stop",
    "Do it\nwithout a blank line": "second line",
    "": "missing",
    "# only a comment\n": "missing",
}
GOOD = [
    "x" * 72,
    "Do it\n\nBecause of this.\n\nAnd this.\n",
    f"\n# a comment\nDo it\n\nbody\n# {LONG}.\n",
    f"Do it\n# ------------------------ >8 ------------------------\ndiff\n+{LONG}\n",
    f"fixup! {'x' * 72}",
]


def check(*words: str | Path, script: Path = SCRIPT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, script, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("message", FAULTS)
def test_a_bad_message_is_refused(message: str, tmp_path: Path) -> None:
    (tmp_path / "message").write_text(message)
    checked = check(tmp_path / "message")
    assert checked.returncode == 1
    assert FAULTS[message] in checked.stderr


@pytest.mark.parametrize("message", GOOD)
def test_a_good_message_is_taken(message: str, tmp_path: Path) -> None:
    (tmp_path / "message").write_text(message)
    checked = check(tmp_path / "message")
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The script in a folder that is no part of a repository."""
    copy = tmp_path / ".ci" / SCRIPT.name
    copy.parent.mkdir()
    shutil.copy(SCRIPT, copy)
    return copy


def test_a_tree_without_history_passes_and_says_so(script: Path) -> None:
    checked = check("--log", script=script)
    assert checked.returncode == 0
    assert "not checked" in checked.stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="git is missing")
def test_commits_since_the_last_tag_are_checked(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in NOBODY.items():
        monkeypatch.setenv(name, value)

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True)

    def commit(message: str) -> None:
        git("commit", "--allow-empty", "--message", message)

    git("init", "--initial-branch", "main")
    commit(LONG)
    assert "not checked" in check("--log", script=script).stdout
    git("tag", "v0.1.0")
    commit("Do it\n\nBecause.")
    assert check("--log", script=script).stdout == ""
    commit("Do more.")
    checked = check("--log", script=script)
    assert checked.returncode == 1
    assert checked.stderr.count("\n") == 1
    assert "ends with a full stop: Do more." in checked.stderr
