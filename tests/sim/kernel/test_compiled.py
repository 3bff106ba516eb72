"""Where compiled kernels are cached: a changed source must never meet kernels of before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PRINT_FOLDER = """
import darwinn_sim.kernel.sync
print(darwinn_sim.kernel.sync.reached._cache.cache_path)
"""


def folder_with(**variables: str) -> Path:
    environment = {**os.environ, **variables}
    command = [sys.executable, "-c", PRINT_FOLDER]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return Path(printed.stdout.strip())


def test_a_folder_of_the_user_holds_one_for_each_state_of_the_sources(tmp_path: Path) -> None:
    own = folder_with(NUMBA_CACHE_DIR="")
    given = folder_with(NUMBA_CACHE_DIR=str(tmp_path))
    assert given.parent == tmp_path
    assert given.name == own.name
    assert own.parent != tmp_path


OVERRUN = """
import sys
import numpy as np
from darwinn_sim.kernel.compiled import compiled, copy, unchecked

@unchecked
def read(array, index):
    return array[index]

@compiled
def checked(array, index):
    return array[index]

@compiled
def not_checked(array, index):
    return read(array, index)

@compiled
def copied(array, index):
    copy(array, 0, array, index, 2)
    return array[0]

array = np.arange(4)
for name in ("checked", "not_checked", "copied"):
    for index in (2, 3, 4, -5):
        try:
            globals()[name](array, index)
        except IndexError:
            print(name, index)
"""
CAUGHT = ["checked 4", "checked -5", "copied 3", "copied 4", "copied -5"]
ALWAYS = ["not_checked 4", "not_checked -5"]


def test_a_planted_overrun_is_caught_and_where_it_is_not_by_the_variable(tmp_path: Path) -> None:
    """Each way has kernels of its own in the cache, which is warm at its second time."""
    script = tmp_path / "overrun.py"
    script.write_text(OVERRUN)
    for _ in range(2):
        for asked, caught in (({}, CAUGHT), ({"NUMBA_BOUNDSCHECK": "1"}, CAUGHT + ALWAYS)):
            variables = {"NUMBA_CACHE_DIR": str(tmp_path), **asked}
            printed = subprocess.run(
                [sys.executable, str(script)],
                env={**os.environ, **variables},
                capture_output=True,
                text=True,
                check=True,
            )
            assert sorted(printed.stdout.splitlines()) == sorted(caught)
            assert not printed.stderr
