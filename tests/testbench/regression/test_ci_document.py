"""The workflows of docs/ci.md: their commands are run, in order, in a repository of models."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.regression.manifest import Case
from sample_files import sample

yaml = pytest.importorskip("yaml", reason="PyYAML comes with the extra 'cluster'")

DOCUMENT = (Path(__file__).parents[3] / "docs" / "ci.md").read_text()
NAMES = ("dense", "convolution")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)


GITHUB, GITLAB, SESSIONS = (yaml.safe_load(block) for block in blocks("yaml"))


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the page says that a user's repository holds, after the steps for GitHub."""
    folder = tmp_path_factory.mktemp("repository")
    models = folder / "models"
    everything = folder / "everything"
    sample(everything)
    models.mkdir()
    for name in NAMES:
        for suffix in ("_edgetpu.tflite", ".tflite"):
            (everything / (name + suffix)).rename(models / (name + suffix))
    (folder / "nightly.toml").write_text(
        blocks("toml")[0].replace('engines = ["model", "rtl"]', 'engines = ["model"]')
    )
    step(folder, update_command())
    (job,) = GITHUB["jobs"].values()
    lines = list(steps(job))
    assert len(lines) == 2
    for line in lines:
        step(folder, line)
    return folder


@pytest.fixture
def repository(verified: Path, tmp_path: Path) -> Path:
    """A copy with what the server caches, for a test to go on with; without reports."""
    folder = Path(shutil.copytree(verified, tmp_path / "repository"))
    for pattern in ("*.xml", "*.sarif"):
        for report in folder.glob(pattern):
            report.unlink()
    return folder


def update_command() -> str:
    (line,) = re.findall(r"^    (darwinn cycles .* --update .*)$", DOCUMENT, re.MULTILINE)
    return str(line)


def step(folder: Path, line: str, expected: int = 0) -> str:
    """Run ``line``, a call of `darwinn`, as a step in ``folder``; returns standard output.

    It is called here, where the model of the chip is loaded once for all steps.
    """
    command, *words = in_shell(folder, f"printf '%s\\n' {line}").splitlines()
    assert command == "darwinn"
    with chdir(folder), redirect_stdout(StringIO()) as printed:
        code = run_command_line(words)
    assert code == expected, f"{line}\n{printed.getvalue()}"
    return printed.getvalue()


def in_shell(folder: Path, line: str, expected: int = 0) -> str:
    """Run ``line`` as a server's shell does; returns standard output."""
    start = "from darwinn_testbench.cli import main; main()"
    script = f'darwinn() {{ "{sys.executable}" -c "{start}" "$@"; }}\n{line}\n'
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == expected, f"{line}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def steps(job: dict[str, Any]) -> Iterator[str]:
    """What the action is given to run."""
    for each in job["steps"]:
        if each["uses"] == "./darwinn-testbench":
            yield f"darwinn {each['with']['run']}"


def test_gitlab_keeps_the_wheel_that_it_installs() -> None:
    """``tests/testbench/packaging`` runs the script, and the steps of the action."""
    job = GITLAB["verify"]
    ((script, folder),) = (line.split() for line in job["before_script"])
    assert (Path(__file__).parents[3] / script.removeprefix("darwinn-testbench/")).is_file()
    assert any(folder.startswith(f"{path}/") for path in job["cache"]["paths"])


def test_github_runs_and_leaves_what_the_next_steps_take(verified: Path) -> None:
    (job,) = GITHUB["jobs"].values()
    for step in job["steps"]:
        using = step.get("uses", "")
        paths = step.get("with", {}).get("path", step.get("with", {}).get("sarif_file", ""))
        if "upload" in using:
            assert all((verified / path).exists() for path in paths.split())


@pytest.mark.usefixtures("tasks_performed_here")
def test_github_shows_a_regression(repository: Path) -> None:
    (job,) = GITHUB["jobs"].values()
    everything = repository / "everything"
    sample(everything, seed=3)
    (everything / "convolution_edgetpu.tflite").rename(
        repository / "models" / "dense_edgetpu.tflite"
    )
    outputs, cycles = steps(job)
    step(repository, outputs, expected=2)
    printed = step(repository, cycles, expected=1)
    assert "::error file=" in printed


@pytest.mark.usefixtures("tasks_performed_here")
def test_gitlab_runs_and_leaves_its_reports(repository: Path) -> None:
    job = GITLAB["verify"]
    for line in job["script"]:
        step(repository, line)
    assert all((repository / path).exists() for path in job["artifacts"]["reports"]["junit"])


def test_recorded_sessions_are_played(tmp_path: Path) -> None:
    _, playing = (step["run"] for step in SESSIONS)
    session = tmp_path / "sessions" / "driver.trace"
    session.parent.mkdir()
    session.write_bytes(gzip.compress(b'["out", 1, {"b": ""}]\n'))
    assert "1 event, no difference" in in_shell(tmp_path, playing)
    session.write_bytes(b"no session")
    in_shell(tmp_path, playing, expected=1)


def test_every_key_of_a_case_is_described() -> None:
    described = set(re.findall(r"`(\w+)`", DOCUMENT))
    keys = {field.encode_name for field in msgspec.structs.fields(Case)}
    assert keys <= described
    for block in blocks("toml"):
        for case in tomllib.loads(block)["case"]:
            assert set(case) <= keys


def test_options_of_the_page_exist(capfd: pytest.CaptureFixture[str]) -> None:
    mentioned = set(re.findall(r"`(--[a-z]+)", DOCUMENT))
    known: set[str] = set()
    for command in ("verify", "regress", "survey", "cycles"):
        assert run_command_line([command, "--help"]) == 0
        known |= set(re.findall(r"--[a-z]+", capfd.readouterr().out))
    assert mentioned <= known
