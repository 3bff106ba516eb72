"""A chip of four tiles in Icarus Verilog, driven as Verilator was: outputs are the same in every
cycle of a sample's parameters and inference."""

from __future__ import annotations

from pathlib import Path

import pytest
from darwinn_rtl.source_files import SOURCES_VARIABLE, source
from harness_runs import require_toolchain
from nightly import note
from other_chip import command, report
from second_simulator import (
    INPUTS,
    OUTPUTS,
    Port,
    check_outputs,
    ports,
    replay_netlist,
    require_second_simulator,
)

TOP = "chip_pins"
WIDTHS = "widths.txt"
_READ_CHANNELS = ("m_axi_ar", "m_axi_r")

_RECORDER = """
  int given, found, widths;
  initial begin
    given = $fopen("{folder}/{inputs_file}", "w");
    found = $fopen("{folder}/{outputs_file}", "w");
    widths = $fopen("{folder}/{widths_file}", "w");
{widths}
    $fclose(widths);
  end
  always @(posedge clk) begin
    $fwrite(given, "%b\\n", {{{inputs}}});
    $fwrite(found, "%b\\n", {{{outputs}}});
    $fflush(given);
    $fflush(found);
  end

endmodule : chip_player
"""


def in_player(port: Port) -> str:
    """What a pin of the chip is called in the player, where the memory's bus is an interface."""
    if not port.name.startswith("m_axi_"):
        return port.name
    bus = "read" if port.name.startswith(_READ_CHANNELS) else "write"
    return f"m_axi_{bus}.{port.name.removeprefix('m_axi_')}"


def recording_player(folder: Path) -> str:
    """The player that also writes the chip's pins as they are before each edge of the clock."""
    pins = ports(TOP)
    sizes = (f'    $fwrite(widths, "{pin.name} %0d\\n", $bits({in_player(pin)}));' for pin in pins)
    recorder = _RECORDER.format(
        folder=folder,
        inputs_file=INPUTS,
        outputs_file=OUTPUTS,
        widths_file=WIDTHS,
        widths="\n".join(sizes),
        inputs=", ".join(in_player(pin) for pin in pins if pin.is_input),
        outputs=", ".join(in_player(pin) for pin in pins if not pin.is_input),
    )
    text, _, _ = source("chip_player.sv").read_text().rpartition("\nendmodule")
    return text + recorder


@pytest.mark.nightly
def test_icarus_sees_what_verilator_sees_of_a_chip(tmp_path: Path) -> None:
    require_toolchain()
    require_second_simulator()
    own = tmp_path / "own"
    own.mkdir()
    (own / "chip_player.sv").write_text(recording_player(tmp_path))
    report("sample", tmp_path)
    words = ("--engine", "rtl", "--runs", "1", "--no-hazards", "--no-proof", "--reference")
    compiled = tmp_path / "dense_edgetpu.tflite"
    (row,) = report(
        "verify", compiled, *words, tmp_path / "dense.tflite", **{SOURCES_VARIABLE: str(own)}
    )["rows"]
    assert row["rtl"]["differing"] == 0
    exported = command("harness", "export", tmp_path / "plain", "--top", TOP, "--plain")
    assert exported.returncode == 0, exported.stderr
    lines = (tmp_path / WIDTHS).read_text().splitlines()
    widths = {name: int(width) for name, width in (line.split() for line in lines)}
    netlist = tmp_path / "plain" / f"{TOP}.v"
    icarus = replay_netlist(TOP, netlist, widths, tmp_path)
    cycles = check_outputs(TOP, widths, tmp_path, icarus)
    assert cycles > row["rtl_cycles"] > 1000
    note("cycles of a chip in Icarus", cycles, 0)
