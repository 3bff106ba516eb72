"""The whole DMA program of real executables, performed by the harness: bytes and cycles equal
the models', free and under back-pressure.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_runs import require_toolchain


def perform(paths: list[Path]) -> None:
    require_toolchain()
    from darwinn_rtl.dma.runs import HEADING, run_files, table_row

    runs = run_files(paths)
    print("\n".join([HEADING, *map(table_row, runs)]))
    different = [f"{run.name}: {run.comparison.first}" for run in runs if run.comparison.difference]
    assert not different, "\n".join(different)


def models(corpus: Path) -> list[Path]:
    return sorted(corpus.rglob("*_edgetpu.tflite"), key=lambda path: path.stat().st_size)


def test_dma_programs_of_the_smallest_models(corpus: Path) -> None:
    perform(models(corpus)[:4])


@pytest.mark.nightly
@pytest.mark.parametrize("place", range(4, 21))
def test_dma_programs_of_all_models(corpus: Path, place: int) -> None:
    perform(models(corpus)[place : place + 1])
