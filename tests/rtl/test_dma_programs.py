"""Random descriptor programs through the DMA engine, on buses of all widths."""

from __future__ import annotations

import pytest
from harness_runs import design, run


@pytest.mark.parametrize(("data_bytes", "programs"), [(8, 60)])
def test_random_programs_equal_the_model(data_bytes, programs, tmp_path):
    run(
        design(DataBytes=data_bytes),
        "dma_programs_tests",
        "RandomPrograms",
        tmp_path,
        seed=1,
        DARWINN_PROGRAMS=programs,
    )
