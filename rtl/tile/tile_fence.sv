// Tile fence: passes when all the units that it names are idle and the tokens that it counts are as
// many as it says, and then loads flags. It takes one cycle; what stands behind it in the queue
// leaves from the next one on.

module tile_fence
  import isa_pkg::*;
  import tile_pkg::*;
(
    input logic clk,   // clock and reset are for the rule below alone
    input logic rst_n,

    input  logic        queue2fence_instruction_valid,
    output logic        queue2fence_instruction_ready,
    input  tile_fence_t queue2fence_instruction_data,

    input logic [Units-1:0] units2fence_idle,  // nothing is executed and nothing queued
    input logic [1:0][15:0] flags2fence_tokens,  // of the ring's channels A and B

    output logic             fence2flags_load_valid,
    output logic [Flags-1:0] fence2flags_load_mask,
    output logic [     15:0] fence2flags_load_value,

    output logic fence2core_count_valid  // event: a fence that counts has been passed
);

  tile_fence_t instruction;
  logic counted, reached, passed;

  assign instruction = queue2fence_instruction_data;

  // Tokens of ring producers: one bit and one flag for each channel. Neither fewer nor more pass.
  always_comb begin
    counted = 1'b1;
    for (int c = 0; c < 2; c++) begin
      if (instruction.producer_count_valid[c] &&
          flags2fence_tokens[c] != instruction.producer_count) begin
        counted = 1'b0;
      end
    end
  end

  assign reached = (instruction.wait_idle & ~units2fence_idle) == '0 && counted;
  assign queue2fence_instruction_ready = reached;
  assign passed = queue2fence_instruction_valid && queue2fence_instruction_ready;

  assign fence2flags_load_valid = passed;
  assign fence2flags_load_mask = instruction.reset_flags;
  assign fence2flags_load_value = instruction.reset_value;
  assign fence2core_count_valid = passed && instruction.increment;

`ifndef SYNTHESIS
  assert_fence_order :
  assert property (@(posedge clk) disable iff (!rst_n) passed |-> reached)
  else $error("a fence has been passed by units that still work, or at another count of tokens");
`endif

endmodule : tile_fence
