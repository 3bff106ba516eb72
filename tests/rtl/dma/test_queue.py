"""The host's instruction queue."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_runs import design, run, shared_simulation
from nightly import nightly_seed, note

TESTS = (
    "RingOfChunks",
    "QueueErrors",
    "QueueStandsStill",
    "ToldBehindTheBlock",
    "StoppedUntilOff",
    "LongRing",
)

failed = shared_simulation("queue_tests", TESTS)


@pytest.mark.parametrize("test", TESTS)
def test_queue(test: str, failed: dict[str, str]) -> None:
    assert not failed[test], failed[test]


@pytest.mark.parametrize(("data_bytes", "programs"), [(8, 40), (32, 20)])
def test_transfers_beside_the_queue(data_bytes: int, programs: int, tmp_path: Path) -> None:
    run_beside(data_bytes, programs, 1, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("data_bytes", [4, 8, 16, 32])
def test_many_transfers_beside_the_queue(data_bytes: int, tmp_path: Path) -> None:
    programs, chosen = 300, nightly_seed() + data_bytes
    run_beside(data_bytes, programs, chosen, tmp_path)
    note(f"DMA programs beside the queue, {8 * data_bytes}-bit bus", programs, chosen)


def run_beside(data_bytes: int, programs: int, seed: int, work: Path) -> None:
    chosen = design(DataBytes=data_bytes)
    run(chosen, "beside_tests", "Beside", work, seed=seed, DARWINN_PROGRAMS=programs)
