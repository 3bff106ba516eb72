"""Which tests there are, and whether they belong to the gate or the night: pytest is asked.

This module is the plugin with which pytest answers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parents[2]
_ANSWER = "DARWINN_SIGNOFF_TESTS"
FOLDERS = ("tests/rtl", "tests/formal")
"""Where tests of the RTL are."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Write down each test and whether it is one of the night, before any is left out."""
    found = {item.nodeid: item.get_closest_marker("nightly") is not None for item in items}
    Path(os.environ[_ANSWER]).write_text(json.dumps(found))


@cache
def collected() -> Mapping[str, bool]:
    """The whole name of each test of the RTL; true for those of the night.

    Raises ``RuntimeError`` if the tests cannot be collected.
    """
    with TemporaryDirectory() as folder:
        answer = Path(folder) / "tests.json"
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist"),
                *("-p", "tests.signoff.collected", "-p", "no:cacheprovider"),
                *("-o", "addopts=--import-mode=importlib", *FOLDERS),
            ],
            cwd=ROOT,
            env={**os.environ, _ANSWER: str(answer), "PYTHONPATH": _path()},
            capture_output=True,
            text=True,
            check=False,
        )
        if not answer.exists():
            raise RuntimeError(f"the tests cannot be collected:\n{done.stdout}{done.stderr}")
        found: dict[str, bool] = json.loads(answer.read_text())
        return found


def _path() -> str:
    folders = [str(ROOT / each) for each in ("formats", "sim", "testbench", "tests/support", ".")]
    return os.pathsep.join([*folders, *filter(None, [os.environ.get("PYTHONPATH")])])
