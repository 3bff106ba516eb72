"""Interrupt lines, masks, counts, errors and strobes of the host interface."""

from __future__ import annotations

import pytest
from harness_runs import shared_simulation

TESTS = (
    "HostLines",
    "ClearedMeanwhile",
    "QueueMask",
    "CountsBeyondAByte",
    "ErrorDescriptor",
    "ErrorsAtOnce",
    "FirstError",
    "DecodeErrors",
    "LastErrorDescriptor",
    "Heads",
    "ByteStrobes",
    "PausedBehindTheLastAnswer",
)

failed = shared_simulation("interrupts_tests", TESTS)


@pytest.mark.parametrize("test", TESTS)
def test_interrupts(test: str, failed: dict[str, str]) -> None:
    assert not failed[test], failed[test]
