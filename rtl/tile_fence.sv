// Tile fence: passes when all the units that it names are idle, and then loads flags.
// It takes one cycle; what stands behind it in the queue leaves from the next one on.

module tile_fence
  import isa_pkg::*;
  import mutation_pkg::*;
  import tile_pkg::*;
(
    input logic clk,   // clock and reset are for the rule below alone
    input logic rst_n,

    input  logic        queue2fence_instruction_valid,
    output logic        queue2fence_instruction_ready,
    input  tile_fence_t queue2fence_instruction_data,

    input logic [Units-1:0] units2fence_idle,  // nothing is executed and nothing queued

    output logic             fence2flags_load_valid,
    output logic [Flags-1:0] fence2flags_load_mask,
    output logic [     15:0] fence2flags_load_value,

    output logic fence2core_count_valid  // event: a fence that counts has been passed
);

  tile_fence_t instruction;
  logic passed;

  assign instruction = queue2fence_instruction_data;
  assign queue2fence_instruction_ready = (instruction.wait_idle & ~units2fence_idle) == '0 ||
      mutated[TileFenceIgnored];
  assign passed = queue2fence_instruction_valid && queue2fence_instruction_ready;

  assign fence2flags_load_valid = passed && !mutated[TileFenceLoadsNothing];
  assign fence2flags_load_mask = instruction.reset_flags;
  assign fence2flags_load_value = instruction.reset_value;
  assign fence2core_count_valid = passed && instruction.increment;

`ifndef SYNTHESIS
  assert_fence_order :
  assert property (@(posedge clk) disable iff (!rst_n)
      passed |-> (instruction.wait_idle & ~units2fence_idle) == '0)
  else $error("a fence has been passed by units that still work");
`endif

endmodule : tile_fence
