"""A plugin of pytest for a job that may be too short for its tests: none begins after the second
that DARWINN_NIGHTLY_END names, and each night begins with another, that short ones reach all."""

from __future__ import annotations

import os
import time
from random import Random

import pytest

END_VARIABLE = "DARWINN_NIGHTLY_END"
"""Environment variable: a time as ``time.time`` has it."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin where the seed of the night says; those before come last."""
    begin = Random(os.environ.get("DARWINN_NIGHTLY_SEED")).randrange(len(items) or 1)
    items[:] = items[begin:] + items[:begin]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Skip what would begin too late."""
    if time.time() > float(os.environ.get(END_VARIABLE, "inf")):
        pytest.skip("the time of the night is over")
