"""Conditions and handshakes of the host's side that come together: programs are drawn towards the
pairs that are missing, on a narrow bus with small queues.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_runs import run
from host_coincidences import small_host
from nightly import nightly_seed, note

GATE = 12
NIGHT = 800
"""Programs of a run."""


def run_towards(least: float, programs: int, seed: int, work: Path) -> None:
    run(
        *(small_host(), "coincidences_tests", "Coincidences", work),
        seed=seed,
        DARWINN_PROGRAMS=programs,
        DARWINN_LEAST=least,
    )


def test_whatever_comes_together_changes_no_byte(tmp_path: Path) -> None:
    run_towards(0.35, GATE, 1, tmp_path)


@pytest.mark.nightly
def test_everything_that_may_come_together_has_come_together(tmp_path: Path) -> None:
    chosen = nightly_seed()
    run_towards(0.97, NIGHT, chosen, tmp_path)
    note("programs towards conditions and handshakes of the host's side", NIGHT, chosen)
