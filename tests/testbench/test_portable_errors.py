"""Errors can be sent to another process: one that cannot be made again there is never heard of."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import darwinn_formats
import darwinn_reference
import darwinn_rtl
import darwinn_sim
import darwinn_testbench
import pytest
from darwinn_formats.errors import FormatError, Portable, TextError
from darwinn_reference.errors import ModelError, Unsupported
from darwinn_sim import errors as faults
from darwinn_sim.units.tensor_plan import PlanTooLong

ERRORS = (
    FormatError("Package.signature", "is too short", offset=12, file="a"),
    TextError("a.bef.txt", 3, 4, "is no operation"),
    PlanTooLong(7),
    faults.Deadlock(("tile 3 waits", "tile 4 waits")),
    faults.NotEnded("3 steps", ("tile 3 moved",)),
    faults.IncompleteProgram(3),
    faults.PageFault(0x1000, 64),
    faults.MemoryFault("narrow", 0x1000, 64, "is outside"),
    faults.UninitialisedRead("tile 3", 0x1000, 4),
    faults.ChipFault("wide", "is outside", 1, 2, 3, 4),
    ModelError("a.tflite", "is damaged"),
    Unsupported("operators", ["b", "a"]),
)


def modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.endswith("__main__"):
            try:
                yield importlib.import_module(found.name)
            except ImportError:
                continue  # an extra that is not installed


def test_every_error_with_arguments_of_its_own_is_portable() -> None:
    packages = (darwinn_formats, darwinn_sim, darwinn_reference, darwinn_rtl, darwinn_testbench)
    own = {
        each
        for package in packages
        for module in modules(package)
        for each in vars(module).values()
        if inspect.isclass(each) and issubclass(each, Exception) and "__init__" in vars(each)
        if each.__module__.startswith("darwinn_")
    }
    assert len(own) >= len(ERRORS)
    assert [each for each in own if not issubclass(each, Portable)] == []


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_there(error: Any) -> None:
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)
    assert found.args == error.args
