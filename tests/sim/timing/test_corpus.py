"""The event model on real executables: nothing is forced, nothing gets stuck, figures stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from darwinn_formats.darwinn import load
from darwinn_sim import timing
from darwinn_sim.machine.lowering import lower
from darwinn_testbench.accuracy import check_accuracy, page, published

DOCUMENT = Path(__file__).parents[3] / "docs" / "accuracy.md"
SMALL_FILE = 1 << 20
"""Bytes of the files that are timed in the gate; larger ones take up to ten seconds each."""


def time_all(path: Path) -> None:
    for executable in load(path).executables:
        chunks = [bytes(part.bitstream) for part in executable.instruction_bitstreams]
        sizes = [len(chunk) for chunk in chunks]
        program = lower(chunks)
        host = timing.host_link("usb3")
        result = timing.simulate_program(program, sizes, host=host)
        bound = timing.static_bound(program, sizes, result.chip, host)
        assert bound.lower <= result.cycles
        assert (result.tile_usage.sum(axis=2) == result.cycles).all()
        assert all(transfer.end >= 0 for transfer in result.transfers)


def test_small_executables_run_to_their_end(corpus: Path) -> None:
    paths = [p for p in (corpus / "darwinn").iterdir() if p.stat().st_size < SMALL_FILE]
    assert len(paths) > 5
    for path in sorted(paths):
        time_all(path)


@pytest.mark.nightly
def test_every_executable_runs_to_its_end(corpus: Path) -> None:
    for path in sorted((corpus / "darwinn").iterdir()):
        time_all(path)


def test_the_page_of_predictions_is_up_to_date(corpus: Path) -> None:
    report = check_accuracy([published()], corpus / "darwinn")
    assert page(report) == DOCUMENT.read_text()
    assert report.figures["mean_error"] < 0.10
    assert report.figures["mean_error"] < report.figures["mean_roofline_error"] / 2
