"""Waves: what the model writes is what the RTL does, signal by signal and cycle by cycle."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from darwinn_rtl.dma.timing import DmaStep, predict
from darwinn_sim import chip
from darwinn_sim.isa.codes import TileFlag
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.engine import Engine
from darwinn_testbench.report import Verdict
from harness_runs import require_toolchain
from sample_files import sample

WORD_BYTES = 8


def test_changes_of_a_read_and_an_interrupt() -> None:
    require_toolchain()
    from darwinn_rtl.dma.waves import changes

    steps = [DmaStep(0, 0, 8), DmaStep(4)]
    found = list(changes(steps, predict(steps, output_bytes=0)))
    assert [entry for entry in found if entry[1] == "dma2core_instruction_valid"] == [
        (11, "dma2core_instruction_valid", 1),
        (12, "dma2core_instruction_valid", 0),
    ]
    assert [entry for entry in found if entry[1] == "dma2monitor_done_valid"] == [
        (4, "dma2monitor_done_valid", 8),
        (5, "dma2monitor_done_valid", 0),
        (11, "dma2monitor_done_valid", 1),
        (12, "dma2monitor_done_valid", 0),
    ]


def signals(path: Path) -> dict[str, Any]:
    from pywellen import Waveform

    return {variable.full_name: variable.signal for variable in Waveform(str(path)).all_vars()}


def first_cycle(rtl: dict[str, Any], scope: str, period: int) -> int:
    """Time at which cycle 0 ends in the RTL's dump: the first descriptor is offered in cycle 1."""
    offered, time = rtl[f"{scope}.core2dma_descriptor_valid"], 0
    while not offered.value_at(time):
        time += period
    return time - period


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [1, 2])
def test_both_sides_are_equal(seed: int, tmp_path: Path) -> None:
    require_toolchain(waves=True)
    from darwinn_rtl.dma.programs import Pressure, ProgramGenerator
    from darwinn_rtl.dma.runs import HARNESS
    from darwinn_rtl.dma.waves import PERIOD_PS, SCOPE, SIGNALS, write_waves
    from darwinn_rtl.dma.workload import workload_of
    from darwinn_rtl.dma.workload_check import predicted

    pressure = Pressure(0.3, 0.3, 0.3) if seed % 2 else Pressure()
    program = ProgramGenerator(Random(seed), WORD_BYTES, 16).program(longest=40, pressure=pressure)
    workload = workload_of(program, WORD_BYTES, seed)
    files = write_waves(workload, tmp_path, "program", seed=seed)
    rtl, model = map(signals, files)
    begin = first_cycle(rtl, SCOPE, PERIOD_PS)
    for name in SIGNALS:
        full = f"{SCOPE}.{name}"
        for cycle in range(predicted(workload, HARNESS).cycles + 2):
            time = begin + cycle * PERIOD_PS
            found = rtl[full].value_at(time), model[full].value_at(time)
            assert found[0] == found[1], f"{name} in cycle {cycle}: RTL and model {found}"
    for path in files:
        groups = path.with_suffix(".gtkw").read_text()
        assert "-AXI read address\n" in groups
        assert f"{SCOPE}.m_axi_read.arvalid\n" in groups


@pytest.mark.nightly
def test_waves_of_the_whole_chip(tmp_path: Path) -> None:
    """Instructions, rows and transfers can be seen, and each tile's units and flags by name."""
    require_toolchain(waves=True)
    sample(tmp_path)
    dump = tmp_path / "chip.fst"
    report = verify(tmp_path / "dense_edgetpu.tflite", engine=Engine.RTL, waves=dump)
    assert report.verdict is Verdict.PASS, report.message
    found = signals(dump)

    def values(name: str) -> list[int]:
        signal = found[f"chip_player.{name}"]
        return [signal.value_at(time) for time in range(20, 60_000, 2)]

    assert sum(values("core2units_instruction_valid")) > 10
    assert sum(values("chip.host.dma2monitor_start_valid")) > 3
    # Three tiles have work; the turn on the ring is told to all.
    for tile in range(chip.TILES):
        scope = f"gen_tile_view[{tile}]"
        assert set(values(f"{scope}.idle.[0]")) == ({0, 1} if tile < 3 else {1})
        assert max(values(f"{scope}.flags.[{int(TileFlag.RING_PRODUCER_A)}]")) > 0
    groups = dump.with_suffix(".gtkw").read_text()
    for text in ("-AXI read address\n", "-tile 15\n", "+{tensor unit idle} chip_player."):
        assert text in groups
