"""A chip of four tiles in RTL: bytes and cycles of the models that have the same description."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from darwinn_formats.darwinn import load
from darwinn_rtl.player import STANDSTILL
from darwinn_sim.isa.codec import decode
from darwinn_sim.isa.table import BY_NAME
from darwinn_testbench.compiler.random_networks import RandomNetwork
from harness_runs import require_toolchain
from other_chip import report

SAMPLED = ("--no-hazards", "--no-proof")


@pytest.mark.nightly
@pytest.mark.parametrize("network", ["dense", "convolution"])
def test_samples_run_on_four_tiles(tmp_path: Path, network: str) -> None:
    """The RTL has a grid of 2 x 2 on a torus, and the memories of the description."""
    require_toolchain()
    report("sample", tmp_path)
    compiled, reference = tmp_path / f"{network}_edgetpu.tflite", tmp_path / f"{network}.tflite"
    words = ("--reference", reference, "--engine", "rtl", "--runs", "2", *SAMPLED)
    rows = report("verify", compiled, *words)["rows"]
    assert len(rows) == 2
    for row in rows:
        assert row["rtl"]["elements"] > 0 and row["rtl"]["differing"] == 0
        assert row["chip_arithmetic"]["differing"] == 0
    predicted = report("cycles", compiled)["rows"][0]
    assert predicted["name"] == "executable 0"
    assert [row["rtl_cycles"] for row in rows] == [predicted["cycles"]] * 2


@pytest.mark.nightly
def test_an_instruction_longer_than_a_standstill_ends(tmp_path: Path) -> None:
    """A convolution of 7 x 7 on four tiles: one tensor instruction is at work for longer than
    the RTL may stand still, and the program ends all the same, in the predicted cycles."""
    require_toolchain()
    network = RandomNetwork(3, (1, 64, 64, 24), signed=True)
    network.layer(network.values[0], 4, 7)
    reference, compiled = tmp_path / "long.tflite", tmp_path / "long_edgetpu.tflite"
    reference.write_bytes(network.finish())
    report("compile", reference, "--no-check")
    assert longest_instruction(compiled) > STANDSTILL
    words = ("--reference", reference, "--engine", "rtl", "--runs", "1", *SAMPLED)
    (row,) = report("verify", compiled, *words)["rows"]
    assert row["rtl"]["elements"] > 0 and row["rtl"]["differing"] == 0
    assert row["rtl_cycles"] == report("cycles", compiled)["rows"][0]["cycles"]


def longest_instruction(compiled: Path) -> int:
    """Iterations of the longest tensor instruction of an inference."""
    (model,) = load(compiled).models
    opcode = BY_NAME["TensorMac"].opcode
    chunks = [decode(bytes(part.bitstream)) for part in model.inference.instruction_bitstreams]
    limits = [chunk.columns[opcode]["main_limit"] for chunk in chunks if opcode in chunk.columns]
    return int((np.concatenate(limits).astype(np.int64) + 1).prod(axis=1).max())
