"""Interrupts, errors, reset and pause of the DMA engine."""

from __future__ import annotations

import pytest
from harness_runs import shared_simulation, tests_of

TESTS = tests_of("dma_events_tests")

failed = shared_simulation("dma_events_tests")


@pytest.mark.parametrize("test", TESTS)
def test_event(test: str, failed: dict[str, str]) -> None:
    assert not failed[test], failed[test]
