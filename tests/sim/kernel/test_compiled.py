"""Where compiled kernels are cached: a changed source must never meet kernels of before."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import darwinn_sim
import pytest

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


ENTERED = """
from darwinn_sim.kernel.compiled import DECORATOR, inner
from darwinn_sim.kernel.compiling import announced

@inner
def square(number):
    return number * number

@DECORATOR
def squares(numbers):
    total = 0
    for number in range(numbers):
        total += square(number)
    return total

with announced(lambda: print("compiling")):
    print(squares(5))
"""


@pytest.mark.parametrize("decorator", ["compiled", "entry"])
def test_a_stored_kernel_is_not_compiled_again(tmp_path: Path, decorator: str) -> None:
    script = tmp_path / "entered.py"
    script.write_text(ENTERED.replace("DECORATOR", decorator))
    printed = [
        subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for _ in range(2)
    ]
    assert printed == [["compiling", "30"], ["30"]]


def kernels() -> Iterator[Any]:
    """Every kernel of the package, once for each module that has it by a name."""
    for found in pkgutil.walk_packages(darwinn_sim.__path__, "darwinn_sim."):
        module = importlib.import_module(found.name)
        yield from (each for each in vars(module).values() if hasattr(each, "py_func"))


def called(kernel: Any) -> Iterator[Any]:
    """The kernels that a kernel names in its calls."""
    function = kernel.py_func
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            try:
                target = eval(ast.unparse(node.func), function.__globals__)
            except (NameError, AttributeError):
                continue  # A local name, or a method of one.
            if hasattr(target, "py_func"):
                yield target


def test_no_kernel_calls_one_that_is_stored_for_python_alone() -> None:
    found = set(kernels())
    entries = {each for each in found if not each._cache.callable_by_kernels}
    assert {each.py_func.__module__ for each in entries} >= {
        "darwinn_sim.machine.schedule",
        "darwinn_sim.timing.engine",
    }
    calls = {target for each in found for target in called(each)}
    assert len(calls) > 100
    assert not entries & calls
