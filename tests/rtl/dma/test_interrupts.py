"""Interrupt lines, masks, counts, errors and strobes of the host interface."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_runs import design, run


@pytest.mark.parametrize(
    "test",
    [
        "HostLines",
        "QueueMask",
        "CountsBeyondAByte",
        "ErrorDescriptor",
        "DecodeErrors",
        "Heads",
        "ByteStrobes",
        "PausedBehindTheLastAnswer",
    ],
)
def test_interrupts(test: str, tmp_path: Path) -> None:
    run(design(DataBytes=8), "interrupts_tests", test, tmp_path, seed=1)
