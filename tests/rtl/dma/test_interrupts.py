"""Interrupt lines, masks, counts, errors and strobes of the host interface."""

from __future__ import annotations

import pytest
from harness_runs import design, failures

TESTS = (
    "HostLines",
    "QueueMask",
    "CountsBeyondAByte",
    "ErrorDescriptor",
    "DecodeErrors",
    "Heads",
    "ByteStrobes",
    "PausedBehindTheLastAnswer",
)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of each test, why it has failed; all share a simulation."""
    work = tmp_path_factory.mktemp("interrupts_tests")
    return failures(design(DataBytes=8), "interrupts_tests", TESTS, work, seed=1)


@pytest.mark.parametrize("test", TESTS)
def test_interrupts(test: str, failed: dict[str, str]) -> None:
    assert not failed[test], failed[test]
