"""The harness in Icarus Verilog, driven as Verilator was: outputs are the same in every cycle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness_runs import design, run
from nightly import nightly_seed, note
from second_simulator import check_outputs, replay, require_second_simulator


def compare(data_bytes: int, programs: int, seed: int, work: Path) -> int:
    """Compare the traces of random programs; the number of cycles."""
    require_second_simulator()
    chosen = design(DataBytes=data_bytes)
    run(
        chosen,
        "recorded_tests",
        "RecordedPrograms",
        work,
        seed=seed,
        DARWINN_PROGRAMS=programs,
        DARWINN_TRACE=work,
    )
    widths = json.loads((work / "widths.json").read_text())
    return check_outputs(chosen.top, widths, work, replay(chosen, widths, work))


def test_icarus_sees_what_verilator_sees(tmp_path: Path) -> None:
    assert compare(8, 6, 1, tmp_path) > 1000


@pytest.mark.nightly
@pytest.mark.parametrize("data_bytes", [4, 8, 16, 32])
def test_icarus_sees_what_verilator_sees_of_many_programs(data_bytes: int, tmp_path: Path) -> None:
    seed = nightly_seed() + data_bytes
    note("cycles in Icarus", compare(data_bytes, 150, seed, tmp_path), seed)
