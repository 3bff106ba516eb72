"""Random descriptor programs through the DMA engine, on buses of several widths."""

from __future__ import annotations

import pytest
from harness_runs import design, run


@pytest.mark.parametrize(
    ("data_bytes", "programs", "seed"),
    [(8, 200, 1), (8, 200, 4), (32, 100, 2)],
)
def test_random_programs_equal_the_model(data_bytes, programs, seed, tmp_path):
    run(
        design(DataBytes=data_bytes),
        "dma_programs_tests",
        "RandomPrograms",
        tmp_path,
        seed=seed,
        DARWINN_PROGRAMS=programs,
        DARWINN_COMPLETE_COVERAGE=1 if data_bytes == 8 else "",
    )


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 120))
def test_ten_thousand_random_programs_equal_the_model(seed, tmp_path):
    run(
        design(DataBytes=(8, 16, 4, 32)[seed % 4], OutstandingReads=1 + seed % 5),
        "dma_programs_tests",
        "RandomPrograms",
        tmp_path,
        seed=seed,
        DARWINN_PROGRAMS=500,
    )
