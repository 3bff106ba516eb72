"""`make release`, in a repository with the files that it changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

pytest.importorskip("towncrier")
if shutil.which("git") is None:
    pytest.skip("git is missing", allow_module_level=True)

ROOT = Path(__file__).parents[3]
VERSION = Path("testbench", "darwinn_testbench", "version.py")
NEEDED = (Path(".ci", "release"), Path("pyproject.toml"), Path("CITATION.cff"), VERSION)
CHANGELOG = "# Changes\n\n<!-- releases -->\n\n## 0.2.0 - 2026-11-22\n\n- old\n"


ENVIRONMENT = {
    **os.environ,
    **{f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


class Clone:
    """A repository on main whose version is 0.2.0."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for path in NEEDED:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / path)
        text = (folder / VERSION).read_text().splitlines()
        lines = ['__version__ = "0.2.0"' if "__version__ =" in each else each for each in text]
        self.write(str(VERSION), "\n".join(lines) + "\n")
        self.write("CHANGELOG.md", CHANGELOG)
        self.write("changes/README.md", "how to\n")
        self.write("changes/7.added.md", "`run`: something new.\n")
        self.write("docs/schemas/gone.json", "{}\n")
        self.git("init", "--quiet", "--initial-branch", "main")
        self.commit()

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
        )

    def git(self, *words: str) -> str:
        done = self.run("git", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Change it")

    def release(self, version: str) -> subprocess.CompletedProcess[str]:
        return self.run(str(self.folder / ".ci" / "release"), sys.executable, version)


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_a_release_is_one_commit_with_an_annotated_tag(clone: Clone) -> None:
    released = clone.release("0.3.0")
    assert released.returncode == 0, released.stderr
    assert clone.git("log", "--format=%s").splitlines() == ["Release 0.3.0", "Change it"]
    assert clone.git("cat-file", "-t", "v0.3.0") == "tag\n"
    assert clone.git("rev-parse", "v0.3.0^{commit}") == clone.git("rev-parse", "HEAD")
    assert clone.git("status", "--porcelain") == ""
    changelog = clone.read("CHANGELOG.md")
    heading = next(each for each in changelog.splitlines() if each.startswith("## "))
    assert heading.startswith("## 0.3.0 - 20")
    assert "### Added\n\n- `run`: something new. (#7)\n" in changelog
    assert "## 0.2.0 - 2026-11-22\n\n- old\n" in changelog
    assert [each.name for each in (clone.folder / "changes").iterdir()] == ["README.md"]
    assert '\n__version__ = "0.3.0"\n' in clone.read(str(VERSION))
    cited = yaml.safe_load(clone.read("CITATION.cff"))
    assert cited["version"] == "0.3.0"
    assert str(cited["date-released"]) == heading.removeprefix("## 0.3.0 - ")
    schemas = {each.name for each in (clone.folder / "docs" / "schemas").iterdir()}
    assert "verify.json" in schemas
    assert "gone.json" not in schemas


def test_a_section_that_was_written_by_hand_is_kept_with_its_date(clone: Clone) -> None:
    written = CHANGELOG.replace("## 0.2.0", "## 0.3.0 - 2026-11-28\n\n- by hand\n\n## 0.2.0")
    clone.write("CHANGELOG.md", written)
    (clone.folder / "changes" / "7.added.md").unlink()
    clone.commit()
    assert clone.release("0.3.0").returncode == 0
    assert clone.read("CHANGELOG.md") == written
    assert "date-released: 2026-11-28\n" in clone.read("CITATION.cff")


def change(clone: Clone) -> None:
    clone.write("new", "")


def leave_main(clone: Clone) -> None:
    clone.git("switch", "--quiet", "--create", "other")


def tag(clone: Clone) -> None:
    clone.git("tag", "v0.3.0")


def remove_fragments(clone: Clone) -> None:
    (clone.folder / "changes" / "7.added.md").unlink()
    clone.commit()


def write_section(clone: Clone) -> None:
    clone.write("CHANGELOG.md", CHANGELOG.replace("## 0.2.0", "## 0.3.0 - x\n\n## 0.2.0"))
    clone.commit()


def nothing(clone: Clone) -> None:
    pass


@pytest.mark.parametrize(
    ("prepare", "version", "reason"),
    [
        (nothing, "", "say which version"),
        (nothing, "0.3", "say which version"),
        (nothing, "0.2.0", "not newer"),
        (nothing, "0.1.9", "not newer"),
        (change, "0.3.0", "commit or remove"),
        (leave_main, "0.3.0", "branch main"),
        (tag, "0.3.0", "tag v0.3.0 exists"),
        (remove_fragments, "0.3.0", "no fragments"),
        (write_section, "0.3.0", "has 0.3.0 already"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_what_is_not_ready_is_refused_and_left_alone(
    prepare: Callable[[Clone], None], version: str, reason: str, clone: Clone
) -> None:
    prepare(clone)
    before = clone.git("rev-parse", "HEAD"), clone.git("status", "--porcelain")
    released = clone.release(version)
    assert released.returncode == 1
    assert reason in released.stderr
    assert (clone.git("rev-parse", "HEAD"), clone.git("status", "--porcelain")) == before


def test_a_fragment_of_an_unknown_type_stops_the_release(clone: Clone) -> None:
    clone.write("changes/8.aded.md", "x\n")
    clone.commit()
    released = clone.release("0.3.0")
    assert released.returncode == 1
    assert "8.aded.md" in released.stderr
    assert "git reset --hard" in released.stderr
    assert clone.git("tag") == ""
