"""pyproject.toml has ranges, constraints.txt versions in them, `.ci/oldest.py` the lower ends."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
RANGES = [
    Requirement(text)
    for name in ("", "pictures", "timeline", "litert", "usb")
    for text in (EXTRAS[name] if name else PROJECT["dependencies"])
]
PINNED = [
    Requirement(text)
    for name in ("dev", "rtl", "cluster")
    for text in EXTRAS[name]
    if not text.startswith("darwinn-testbench")
]


def versions(text: str) -> dict[str, Version]:
    found = [Requirement(line) for line in text.splitlines() if line and line[0] != "#"]
    return {canonicalize_name(each.name): version_of(each) for each in found}


def version_of(pinned: Requirement) -> Version:
    (only,) = pinned.specifier
    assert only.operator == "==", pinned
    return Version(only.version)


@pytest.fixture(scope="module")
def locked() -> dict[str, Version]:
    return versions((ROOT / "constraints.txt").read_text())


@pytest.fixture(scope="module")
def oldest() -> dict[str, Version]:
    command = [sys.executable, str(ROOT / ".ci" / "oldest.py")]
    return versions(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("requirement", [*RANGES, *PINNED], ids=lambda each: each.name)
def test_what_is_tested_is_allowed(requirement: Requirement, locked: dict[str, Version]) -> None:
    assert locked[canonicalize_name(requirement.name)] in requirement.specifier


@pytest.mark.parametrize("requirement", RANGES, ids=lambda each: each.name)
def test_ranges_have_two_ends_that_differ(
    requirement: Requirement, locked: dict[str, Version], oldest: dict[str, Version]
) -> None:
    assert sorted(each.operator for each in requirement.specifier) == ["<", ">="]
    name = canonicalize_name(requirement.name)
    assert oldest[name] in requirement.specifier
    assert oldest[name] < locked[name]


@pytest.mark.parametrize("requirement", PINNED, ids=lambda each: each.name)
def test_tools_have_one_version(requirement: Requirement) -> None:
    assert version_of(requirement)
