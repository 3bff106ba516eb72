"""A plugin of pytest for a job that may be too short for its tests: none begins after the second
that DARWINN_NIGHTLY_END names, and each night begins with another, that short ones reach all."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from random import Random
from typing import TypeVar

import pytest

END_VARIABLE = "DARWINN_NIGHTLY_END"
"""Environment variable: a time as ``time.time`` has it."""
_Item = TypeVar("_Item")


def is_over() -> bool:
    """Whether the time of the job is over; without the variable it never is."""
    return time.time() > float(os.environ.get(END_VARIABLE, "inf"))


def from_another(items: Sequence[_Item], seed: int | str | None) -> list[_Item]:
    """Begin where the seed of the night says; those before come last."""
    begin = Random(seed).randrange(len(items) or 1)
    return [*items[begin:], *items[:begin]]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with another test each night."""
    items[:] = from_another(items, os.environ.get("DARWINN_NIGHTLY_SEED"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Skip what would begin too late."""
    if is_over():
        pytest.skip("the time of the night is over")
