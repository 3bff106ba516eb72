"""The checkers of handshakes and AXI ports stand alone: no package, other widths, and
signals that a port lacks; in Verilator, and in Icarus, which runs them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from darwinn_rtl.source_files import source
from harness_runs import require_toolchain
from second_simulator import require_icarus

PORTS: tuple[Mapping[str, int], ...] = (
    {},
    {"AddressBits": 64, "DataBytes": 16, "IdBits": 5, "LongestWait": 10, "LongestAnswer": 7},
    {"AddressBits": 19, "DataBytes": 4, "HasIds": 0, "HasBursts": 0, "HasStrobes": 0},
    {"AddressBits": 12, "DataBytes": 1, "MaxReads": 1, "MaxWrites": 1, "HasResponses": 0},
    {"DataBytes": 128, "MaxReads": 256, "MaxWrites": 3},
)
CHANNELS: tuple[Mapping[str, int], ...] = ({}, {"Width": 300, "LongestWait": 5})


@pytest.mark.parametrize(
    ("module", "given"),
    [
        *(("axi_port_check", each) for each in PORTS),
        *(("handshake_check", each) for each in CHANNELS),
    ],
)
def test_a_checker_is_clean_by_itself(module: str, given: Mapping[str, int]) -> None:
    require_toolchain()
    from darwinn_rtl import toolchain

    toolchain.use_wheel_programs()
    words = [f"-G{name}={value}" for name, value in given.items()]
    done = subprocess.run(
        [
            *("verilator", "--lint-only", "-Wall", "--assert", "--quiet-stats", "--quiet"),
            *("--top-module", module, *words, str(source(f"{module}.sv"))),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


BENCH = """
module bench;
  logic clk = 0;
  logic rst_n = 0;
  logic at_end = 0;
  logic arvalid = 0, arready = 0, rvalid = 0, rready = 1, rlast = 0;
  logic [4:0] arid = 0, rid = 0;
  logic [63:0] araddr = 0;
  logic [7:0] arlen = 0;
  logic [127:0] rdata = 0;
  axi_port_check #(
      .AddressBits(64), .DataBytes(16), .IdBits(5), .MaxReads(2), .LongestWait(10),
      .LongestAnswer(7), .HasStrobes(0), .HasResponses(0)
  ) port (
      .clk(clk), .rst_n(rst_n), .at_end(at_end),
      .arvalid(arvalid), .arready(arready), .arid(arid), .araddr(araddr), .arlen(arlen),
      .arsize(3'd4), .arburst(2'b01),
      .rvalid(rvalid), .rready(rready), .rid(rid), .rdata(rdata), .rresp(2'b11), .rlast(rlast),
      .awvalid(1'b0), .awready(1'b0), .awid(5'd0), .awaddr(64'd0), .awlen(8'd0), .awsize(3'd0),
      .awburst(2'b00), .wvalid(1'b0), .wready(1'b0), .wdata(128'd0), .wstrb(16'd0), .wlast(1'b0),
      .bvalid(1'b0), .bready(1'b0), .bid(5'd0), .bresp(2'b00)
  );
  always #1 clk = !clk;
  task step; @(negedge clk); endtask
  task ask(input [4:0] id, input [63:0] address, input [7:0] length);
    begin
      arvalid = 1; arready = 1; arid = id; araddr = address; arlen = length; step;
      arvalid = 0;
    end
  endtask
  task give(input [4:0] id, input last);
    begin rvalid = 1; rid = id; rlast = last; rdata = rdata + 1; step; rvalid = 0; end
  endtask
  initial begin
    step; step; rst_n = 1; step;
    ask(5'd17, 64'h8000_0000_0000_0F00, 8'd15);  // the longest that ends at 4 KiB
    repeat (15) give(5'd17, 0);
    give(5'd17, 1);
    repeat (9) step;
    BREAK
    $display("over");
    $finish;
  end
endmodule
"""
"""Sixteen-byte words, five bits of identifier, no strobes and no responses; a legal burst first."""

BROKEN = {
    "": "step;",
    "ar_boundary": "ask(5'd17, 64'h8000_0000_0000_0F10, 8'd15); repeat (15) give(5'd17, 0); "
    "give(5'd17, 1);",
    "ar_wait": "arvalid = 1; arready = 0; arlen = 0; repeat (11) step; arready = 1; step; "
    "arvalid = 0; give(5'd17, 1);",
    "ar_outstanding": "ask(5'd1, 64'd0, 8'd0); ask(5'd2, 64'd0, 8'd0); ask(5'd30, 64'd0, 8'd0);",
    "r_request": "give(5'd16, 1);",
    "r_late": "ask(5'd3, 64'd0, 8'd0); repeat (8) step; give(5'd3, 1);",
    "r_end": "ask(5'd3, 64'd0, 8'd0); at_end = 1; step; step;",
    "r_last": "ask(5'd3, 64'd0, 8'd1); give(5'd3, 1); give(5'd3, 1);",
}
"""What is done behind the legal burst, by the rule that it breaks."""


def _tells(text: str, rule: str, work: Path) -> None:
    """A bench in Icarus ends, and tells that the rule is broken (none: nothing)."""
    require_icarus()
    bench, program = work / "bench.sv", work / "bench.vvp"
    bench.write_text(text)
    sources = [str(bench), str(source("axi_port_check.sv"))]
    built = subprocess.run(
        ["iverilog", "-g2012", "-Wall", "-s", "bench", "-o", str(program), *sources],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "axi_port_check.sv" not in built.stderr, built.stderr
    ran = subprocess.run(["vvp", str(program)], capture_output=True, text=True, check=True)
    told = [line for line in ran.stdout.splitlines() if "ERROR" in line]
    assert "over" in ran.stdout
    assert len(told) == (1 if rule else 0), ran.stdout
    assert all(f": {rule}: " in line for line in told)


@pytest.mark.parametrize("rule", BROKEN)
def test_a_checker_of_other_widths_tells_in_icarus(rule: str, tmp_path: Path) -> None:
    _tells(BENCH.replace("BREAK", BROKEN[rule]), rule, tmp_path)


BARE = """
module bench;
  logic clk = 0;
  logic rst_n = 0;
  logic at_end = 0;
  logic arvalid = 0, rvalid = 0, awvalid = 0, wvalid = 0, bvalid = 0;
  logic [18:0] araddr = 0, awaddr = 0;
  axi_port_check #(
      .AddressBits(19), .DataBytes(4), .HasIds(0), .HasBursts(0), .HasStrobes(0), .HasResponses(0)
  ) port (
      .clk(clk), .rst_n(rst_n), .at_end(at_end),
      .arvalid(arvalid), .arready(1'b1), .arid(OTHER), .araddr(araddr), .arlen({8{OTHER}}),
      .arsize({3{OTHER}}), .arburst({2{OTHER}}),
      .rvalid(rvalid), .rready(1'b1), .rid(!OTHER), .rdata(32'd0), .rresp({1'b0, OTHER}),
      .rlast(OTHER),
      .awvalid(awvalid), .awready(1'b1), .awid(OTHER), .awaddr(awaddr), .awlen({8{OTHER}}),
      .awsize({3{OTHER}}), .awburst({2{OTHER}}), .wvalid(wvalid), .wready(1'b1), .wdata(32'd0),
      .wstrb({4{OTHER}}), .wlast(OTHER),
      .bvalid(bvalid), .bready(1'b1), .bid(!OTHER), .bresp({1'b0, OTHER})
  );
  always #1 clk = !clk;
  task step; @(negedge clk); endtask
  initial begin
    step; step; rst_n = 1; step;
    repeat (3) begin
      arvalid = 1; awvalid = 1; araddr = araddr + 4093; awaddr = awaddr + 4093; step;
      arvalid = 0; awvalid = 0; rvalid = 1; wvalid = 1; step;
      rvalid = 0; wvalid = 0; bvalid = 1; step;
      bvalid = 0;
    end
    at_end = 1; step; step; at_end = 0;
    BREAK
    $display("over");
    $finish;
  end
endmodule
"""
"""A port without identifiers, bursts, strobes and responses, whatever stands in their places."""

BREAKS = {
    "": "step;",
    "r_request": "rvalid = 1; step;",
    "b_early": "awvalid = 1; step; awvalid = 0; bvalid = 1; step;",
    "w_end": "wvalid = 1; step; wvalid = 0; at_end = 1; step; step;",
    "r_end": "arvalid = 1; step; arvalid = 0; at_end = 1; step; step;",
}


@pytest.mark.parametrize("other", [0, 1])
@pytest.mark.parametrize("rule", BREAKS)
def test_what_a_port_lacks_does_not_count(rule: str, other: int, tmp_path: Path) -> None:
    bench = BARE.replace("BREAK", BREAKS[rule]).replace("OTHER", f"1'b{other}")
    _tells(bench, rule, tmp_path)
