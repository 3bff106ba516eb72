"""Interrupts, errors, reset and pause of the DMA engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_runs import design, run


@pytest.mark.parametrize(
    "test",
    [
        "InterruptStorm",
        "FatalErrorInterrupt",
        "ResetInTransfer",
        "Pause",
        "InstructionQueue",
        "StreamsAreIndependent",
    ],
)
def test_event(test: str, tmp_path: Path) -> None:
    run(design(DataBytes=8), "dma_events_tests", test, tmp_path, seed=1)
