"""Interrupts, errors, reset and pause of the DMA engine."""

from __future__ import annotations

import pytest
from harness_runs import names_of_tests, shared_simulation

TESTS = names_of_tests("dma_events_tests")

failed = shared_simulation("dma_events_tests")


@pytest.mark.parametrize("test", TESTS)
def test_event(test: str, failed: dict[str, str]) -> None:
    assert not failed[test], failed[test]
