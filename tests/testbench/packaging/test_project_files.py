"""Files that other programs read of the project say what the project says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from darwinn_testbench.version import __version__

ROOT = Path(__file__).parents[3]
YAML = [
    *(ROOT / ".github").rglob("*.yml"),
    ROOT / ".pre-commit-config.yaml",
    ROOT / "CITATION.cff",
    ROOT / "action.yml",
]


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_it_is_yaml(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_the_version_is_cited() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == __version__
    assert cited["license"] == "Apache-2.0"
    assert {"cff-version", "message", "title", "authors"} <= set(cited)


def test_hooks_fetch_nothing() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    assert all(hook["language"] == "system" for hook in repository["hooks"])


def test_scripts_that_are_called_are_there() -> None:
    called = yaml.safe_load((ROOT / ".github" / "workflows" / "gate.yml").read_text())["jobs"]
    runs = [step.get("run", "") for job in called.values() for step in job["steps"]]
    assert {".ci/run", "make test-oldest"} <= set(runs)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert os.access(ROOT / ".ci" / "dist", os.X_OK)


def _action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return found


@pytest.mark.parametrize(
    ("words", "code"), [("--version", 0), ("inspect *.toml", 2), ("inspect nothing.tflite", 2)]
)
def test_the_action_runs_a_command_and_tells_its_exit_code(
    words: str, code: int, tmp_path: Path
) -> None:
    (tmp_path / "settings.toml").write_text("[darwinn]\n")
    (step,) = (each for each in _action()["runs"]["steps"] if each.get("id") == "darwinn")
    told = tmp_path / "told"
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "WORDS": words,
        "GITHUB_OUTPUT": str(told),
    }
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    assert told.read_text() == f"exit-code={code}\n"
    assert "settings.toml" in done.stderr or "*" not in words


def test_the_manual_gives_the_action_what_it_takes() -> None:
    page = (ROOT / "docs" / "ci.md").read_text()
    (example,) = re.findall(r"```yaml\n(# .github.*?)```", page, re.S)
    steps = yaml.safe_load(example)["jobs"]["verify"]["steps"]
    calls = [each for each in steps if each["uses"] == "./darwinn-testbench"]
    inputs = _action()["inputs"]
    assert len(calls) == 2
    assert all("run" in each["with"] and set(each["with"]) <= set(inputs) for each in calls)
    assert all(f"| `{name}` |" in page for name in inputs)


def test_the_wheel_of_a_commit_is_built_once(tmp_path: Path) -> None:
    """By a stand-in for Python, which notes its words, and puts a file where a wheel goes."""
    stand_in, said = tmp_path / "python", tmp_path / "said"
    stand_in.write_text(
        f'#!/bin/sh\necho "$@" >> {said}\n'
        '[ "$1" = -c ] && echo 3.12\n'
        '[ "$3" = wheel ] && mkdir -p "$6" && touch "$6/some.whl"\nexit 0\n'
    )
    stand_in.chmod(0o755)
    for _ in range(2):
        done = subprocess.run(
            [ROOT / ".ci" / "install", tmp_path / "kept", "litert"],
            env={**os.environ, "PYTHON": str(stand_in)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
    calls = said.read_text().splitlines()
    assert sum("pip wheel" in each for each in calls) == 1
    assert sum("pip install" in each and "some.whl[litert]" in each for each in calls) == 2


def test_targets_of_make_that_are_named_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    texts = [
        container["postCreateCommand"],
        (ROOT / ".pre-commit-config.yaml").read_text(),
        (ROOT / ".ci" / "run").read_text(),
    ]
    named = {each for text in texts for each in re.findall(r"(?:^|\s)make ([a-z-]+)", text)}
    assert named - targets == set()
    assert {"lint", "test"} <= named


def test_the_demo_installs_no_tools_of_development(tmp_path: Path) -> None:
    done = subprocess.run(
        ["make", "-n", "demo", f"VENV={tmp_path}", f"PYTHON={sys.executable}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--editable '.[full,rtl]'" in done.stdout
    assert ".[dev]" not in done.stdout
    assert "warm-up function hazards proof" in done.stdout


def test_each_issue_form_asks_for_something() -> None:
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text())
        assert {"name", "description", "body"} <= set(form)
        required = [each.get("validations", {}).get("required") for each in form["body"]]
        assert True in required
