"""The cocotb test in docs/rtl-own-test.md runs as it stands, and with each option named there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from harness_runs import design, require_toolchain, run

PAGE = Path(__file__).parents[3] / "docs" / "rtl-own-test.md"


OWN = """
    import ctypes

    assert not hasattr(ctypes.CDLL(None), "simulation_clock")
"""
"""What holds where the program around the simulation is not ours."""

INSIDE = "    assert dut.host.dma.completed.value == 1\n"
"""What holds where signals within the design are seen."""

OUTSIDE = """
    try:
        dut.host.dma.completed
    except AttributeError:
        return
    raise AssertionError("a signal within the design is seen")
"""
"""What holds where only ports are seen."""


def perform(folder: Path, more: str = "", options: str = "", right: bool = True) -> str:
    """Run the test of the page, with ``more`` in it and ``options`` of the design; what it says if
    it fails."""
    require_toolchain()
    chapter = PAGE.read_text().partition("## With cocotb alone\n")[2].partition("\n#")[0]
    test, run = re.findall(r"```python\n(.*?)```", chapter, re.DOTALL)
    if not right:
        test = test.replace("got == bytes(range(50))", "got == bytes(50)")
    assert "registers=True)" in run
    (folder / "my_test.py").write_text(test + more)
    (folder / "run.py").write_text(run.replace("registers=True)", f"registers=True{options})"))
    path = os.pathsep.join([str(folder), *sys.path])
    done = subprocess.run(
        [sys.executable, "run.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    return done.stderr if done.returncode else ""


def test_it_runs_as_it_stands_and_sees_ports_alone(tmp_path: Path) -> None:
    assert perform(tmp_path, OUTSIDE) == ""


def test_it_notices_a_wrong_byte(tmp_path: Path) -> None:
    assert "SimulationFailed" in perform(tmp_path, right=False)


@pytest.mark.nightly
def test_signals_within_are_seen_if_that_is_asked_for(tmp_path: Path) -> None:
    assert perform(tmp_path, INSIDE, ", internals=True") == ""


@pytest.mark.nightly
def test_it_leaves_waves_if_that_is_asked_for(tmp_path: Path) -> None:
    require_toolchain(waves=True)
    assert perform(tmp_path, options=", waves=True") == ""
    assert (tmp_path / "work" / "harness-reads_activations.fst").stat().st_size > 0
    assert (tmp_path / "work" / "harness-reads_activations.gtkw").exists()


@pytest.mark.nightly
def test_it_runs_in_the_program_of_cocotb(tmp_path: Path) -> None:
    assert perform(tmp_path, OWN, ", stock_main=True") == ""
    assert "AssertionError" in perform(tmp_path, OWN)


@pytest.mark.nightly
def test_the_bench_has_a_clock_in_the_program_of_cocotb(tmp_path: Path) -> None:
    """The host's queue, with agents, monitors and a reset; with the very cycles of our program."""
    design_of_cocotb = replace(design(DataBytes=8), stock_main=True)
    for each in (design(DataBytes=8), design_of_cocotb):
        run(each, "queue_tests", "RingOfChunks", tmp_path / each.key, seed=1)
    ours, theirs = (
        ElementTree.parse(tmp_path / each.key / "RingOfChunks.xml").iter("testcase")
        for each in (design(DataBytes=8), design_of_cocotb)
    )
    assert [case.get("sim_time_ns") for case in ours] == [
        case.get("sim_time_ns") for case in theirs
    ]
