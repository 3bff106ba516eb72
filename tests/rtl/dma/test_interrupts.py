"""Interrupt lines, masks, counts, errors and strobes of the host interface."""

from __future__ import annotations

import pytest
from harness_runs import names_of_tests, shared_simulation

TESTS = names_of_tests("interrupts_tests")

failed = shared_simulation("interrupts_tests")


@pytest.mark.parametrize("test", TESTS)
def test_interrupts(test: str, failed: dict[str, str]) -> None:
    assert not failed[test], failed[test]
