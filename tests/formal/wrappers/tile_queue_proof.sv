// tile_queue and tile_fence: instructions leave in order, each to one unit or to the fence; while a
// fence stands at the exit nothing goes to any unit, and it goes when its units are idle and its
// tokens as many as it says.

module tile_queue_proof
  import isa_pkg::*;
  import tile_pkg::*;
#(
    parameter int Depth = 4
) (
    input logic clk,
    input logic rst_n,
    input logic core2tile_instruction_valid,
    // A fence has no more bits; what is behind them the queue carries and nobody here reads.
    input logic [BundleBits-1:0] instruction,
    input logic core2tile_base_valid,
    input logic [31:0] core2tile_base,
    input logic [Units-1:0] queue2units_instruction_ready,
    input logic [Units-1:0] units2fence_idle,
    input logic [1:0][15:0] flags2fence_tokens
);

  logic [LongestBits-1:0] core2tile_instruction_data;
  assign core2tile_instruction_data = LongestBits'(instruction);
  logic core2tile_instruction_ready, queue2units_base_valid, queue2core_idle;
  logic [Units-1:0] queue2units_instruction_valid;
  logic [LongestBits-1:0] queue2units_instruction_data;
  logic [31:0] queue2units_base;
  logic queue2fence_instruction_valid, queue2fence_instruction_ready;
  tile_fence_t queue2fence_instruction_data;
  tile_queue #(.Depth(Depth)) queue (.*);

  logic fence2flags_load_valid, fence2core_count_valid;
  logic [Flags-1:0] fence2flags_load_mask;
  logic [15:0] fence2flags_load_value;
  tile_fence fence (.*);
  resets_first resets (.*);

  // The fence that stands at the exit, read once more from the bits that entered.
  tile_fence_t told;
  logic waits, goes, idle_units, tokens;
  assign told = tile_fence_t'(queue2units_instruction_data[BundleBits-1:0]);
  assign waits = !queue2core_idle && told.opcode == OPCODE_TILE_FENCE;
  assign idle_units = (told.wait_idle | units2fence_idle) == units2fence_idle;
  assign tokens = (!told.producer_count_valid[0] || flags2fence_tokens[0] == told.producer_count) &&
      (!told.producer_count_valid[1] || flags2fence_tokens[1] == told.producer_count);
  assign goes = waits && idle_units && tokens;

  logic waited;
  always_ff @(posedge clk) waited <= rst_n && waits && !goes;

  always_ff @(posedge clk) begin
    if (rst_n) begin
      assert_nothing_passes_a_fence : assert (!waits || queue2units_instruction_valid == '0);
      assert_one_unit :
      assert ((queue2units_instruction_valid & (queue2units_instruction_valid - 1'b1)) == '0);
      assert_fence_waits : assert (!fence2flags_load_valid || goes);
      assert_fence_goes : assert (!goes || fence2flags_load_valid);
      assert_loads :
      assert (!goes || (fence2flags_load_mask == told.reset_flags &&
              fence2flags_load_value == told.reset_value &&
              fence2core_count_valid == told.increment));
      cover_waited :
      cover (waited && goes && told.wait_idle != '0 && told.producer_count_valid == '1);
      cover_unit_behind : cover (queue2units_instruction_valid[3]);
    end
  end

endmodule : tile_queue_proof
