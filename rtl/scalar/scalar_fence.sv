// ScalarFence: answers when flags, units and tile fences are as the instruction wants them, and
// then loads flags and forgets tile fences. Fences of tiles that this build lacks count as reached.

module scalar_fence
  import isa_pkg::*;
  import scalar_pkg::*;
#(
    parameter int Tiles = chip_pkg::Tiles
) (
    input logic clk,
    input logic rst_n,

    input  logic          core2fence_instruction_valid,
    output logic          core2fence_instruction_ready,
    input  scalar_fence_t core2fence_instruction_data,

    input logic   [   Tiles-1:0] tiles2fence_passed_valid,
    input logic   [IdleBits-1:0] units2fence_idle,
    input flags_t                flags2fence_values,

    output logic             fence2flags_load_valid,
    output logic [Flags-1:0] fence2flags_load_mask,
    output logic [     15:0] fence2flags_load_value
);

  logic [Tiles-1:0][31:0] counts;  // fences that each tile has passed since it was last forgotten
  logic reached, passed;

  always_comb begin
    reached = (core2fence_instruction_data.wait_idle & ~units2fence_idle) == '0;
    for (int f = 0; f < Flags; f++) begin
      if (core2fence_instruction_data.expected_valid[f] &&
          (flags2fence_values[f] - core2fence_instruction_data.expected[f]) >= 16'h8000) begin
        reached = 1'b0;
      end
    end
    for (int t = 0; t < Tiles; t++) begin
      if (core2fence_instruction_data.tile_fence_valid[t] &&
          counts[t] < 32'(core2fence_instruction_data.tile_fence_count)) begin
        reached = 1'b0;
      end
    end
  end

  assign core2fence_instruction_ready = reached;
  assign passed = core2fence_instruction_valid && core2fence_instruction_ready;
  assign fence2flags_load_valid = passed;
  assign fence2flags_load_mask = core2fence_instruction_data.reset_flags;
  assign fence2flags_load_value = core2fence_instruction_data.reset_value;

  always_ff @(posedge clk) begin
    for (int t = 0; t < Tiles; t++) begin
      if (!rst_n) begin
        counts[t] <= '0;
      end else if (passed && core2fence_instruction_data.reset_tile_fences[t]) begin
        counts[t] <= 32'(tiles2fence_passed_valid[t]);
      end else begin
        counts[t] <= counts[t] + 32'(tiles2fence_passed_valid[t]);
      end
    end
  end

  logic unused;
  assign unused = &{1'b0, core2fence_instruction_data};

`ifndef SYNTHESIS
  assert_fence_order :
  assert property (@(posedge clk) disable iff (!rst_n) passed |-> reached)
  else $error("the scalar core has passed a fence whose flags, units or tiles are not as it wants");
`endif

endmodule : scalar_fence
