"""Files that other programs read of the project say what the project says."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import yaml
from darwinn_testbench.version import __version__

ROOT = Path(__file__).parents[3]
YAML = [
    *(ROOT / ".github").rglob("*.yml"),
    ROOT / ".pre-commit-config.yaml",
    ROOT / "CITATION.cff",
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
    assert ".ci/run" in runs
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert os.access(ROOT / ".ci" / "dist", os.X_OK)


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


def test_each_issue_form_asks_for_something() -> None:
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text())
        assert {"name", "description", "body"} <= set(form)
        required = [each.get("validations", {}).get("required") for each in form["body"]]
        assert True in required
