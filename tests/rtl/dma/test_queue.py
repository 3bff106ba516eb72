"""The host's instruction queue."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_runs import design, run


@pytest.mark.parametrize(
    "test", ["RingOfChunks", "QueueErrors", "QueueStandsStill", "ToldBehindTheBlock"]
)
def test_queue(test: str, tmp_path: Path) -> None:
    run(design(DataBytes=8), "queue_tests", test, tmp_path, seed=1)
