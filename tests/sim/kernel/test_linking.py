"""Kernels that only kernels call are linked into their callers, also those stored before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CALLERS = """
import sys
from darwinn_sim.kernel import store
from darwinn_sim.kernel.compiled import entry, inner

@inner
def square(number):
    return number * number

@inner
def fourth(number):
    return square(square(number))

@entry
def squares(number):
    return square(number) + 1

@entry
def fourths(number):
    return fourth(number) + square(number)

@inner
def told(number):
    print("a number:", number)
    return number

@entry
def tells(number):
    return told(number)

print(globals()[sys.argv[1]](3))
for kernel in (square, fourth):
    for compiled in kernel.overloads.values():
        print(type(compiled.library).__name__)
print(sorted(path.name.split(".")[1] for path in store.loaded), "loaded")
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "callers.py"
    path.write_text(CALLERS)
    return path


def run(script: Path, name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(script), name],
        env={**os.environ, "NUMBA_CACHE_DIR": str(script.parent / "cache")},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_stored_kernel_is_linked_into_a_caller_that_is_compiled_later(script: Path) -> None:
    assert run(script, "squares").stdout.splitlines() == ["10", "LinkedLibrary", "[] loaded"]
    later = run(script, "fourths").stdout.splitlines()
    assert later == ["90", "LinkedLibrary", "LinkedLibrary", "['square'] loaded"]
    assert run(script, "fourths").stdout.splitlines() == ["90", "['fourths'] loaded"]


def test_a_linked_kernel_can_print_where_it_is_compiled(script: Path) -> None:
    assert run(script, "tells").stdout.splitlines() == ["a number: 3", "3", "[] loaded"]
