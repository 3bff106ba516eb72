"""Interrupts, errors, reset and pause of the DMA engine."""

from __future__ import annotations

import pytest
from harness_runs import design, failures

TESTS = (
    "InterruptStorm",
    "FatalErrorInterrupt",
    "ResetInTransfer",
    "Pause",
    "InstructionQueue",
    "StreamsAreIndependent",
)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of each test, why it has failed; all share a simulation."""
    work = tmp_path_factory.mktemp("dma_events_tests")
    return failures(design(DataBytes=8), "dma_events_tests", TESTS, work, seed=1)


@pytest.mark.parametrize("test", TESTS)
def test_event(test: str, failed: dict[str, str]) -> None:
    assert not failed[test], failed[test]
