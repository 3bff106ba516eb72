"""A plugin of pytest: no test begins after the second that DARWINN_NIGHTLY_END names."""

from __future__ import annotations

import os
import time

import pytest

END_VARIABLE = "DARWINN_NIGHTLY_END"
"""Environment variable: a time as ``time.time`` has it."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Skip what would begin too late."""
    if time.time() > float(os.environ.get(END_VARIABLE, "inf")):
        pytest.skip("the time of the night is over")
