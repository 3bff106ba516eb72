// A tile whose clock enable is 0 and to which nothing comes from outside: nothing that it holds
// changes at the next edge. Its registers have any values; clock_enable.py asks each for its input.

module tile_clock
  import isa_pkg::*;
  import tile_pkg::*;
(
    input logic                         clk,
    input logic                         rst_n,
    input logic                         core2tile_instruction_valid,
    input logic [LongestBits-1:0]       core2tile_instruction_data,
    input logic                         core2tile_base_valid,
    input logic [           31:0]       core2tile_base,
    input logic                         tile2ring_row_ready,
    input logic [            1:0]       ring2tile_row_valid,
    input row_t                         ring2tile_row_data,
    input logic [  CountBits-1:0]       ring2tile_row_words,
    input logic [            1:0]       ring2tile_token_valid,
    input logic [      Links-1:0]       tile2mesh_word_ready,
    input logic [      Links-1:0]       mesh2tile_word_valid,
    input logic [      Links-1:0][31:0] mesh2tile_word_data,

    // What is put out makes registers count that nothing within reads.
    output logic                        core2tile_instruction_ready,
    output logic                        tile2core_fence_valid,
    output logic                        tile2core_idle,
    output logic                        tile2clock_enable,
    output logic      [Units-1:0]       tile2core_units_idle,
    output flags_t                      tile2core_flags,
    output logic                        tile2ring_row_valid,
    output ring_row_t                   tile2ring_row_data,
    output logic      [      1:0]       ring2tile_row_ready,
    output logic      [Links-1:0]       tile2mesh_word_valid,
    output logic      [Links-1:0]       mesh2tile_word_ready,
    output logic      [Links-1:0][31:0] tile2mesh_word_data
);

  tile tile (
      .*,
      .clk_memory(1'b0)
  );

  // An instruction waits behind the exit of its queue only when one stands there; proved of
  // instruction_queue.
  logic [10:0] queues_in_order;
  assign queues_in_order[0] = tile.queue.queue.out_valid || tile.queue.queue.stored == '0;
  assign queues_in_order[1] = tile.tensor_queue.out_valid || tile.tensor_queue.stored == '0;
  assign queues_in_order[2] =
      tile.ring_producer_queue.out_valid || tile.ring_producer_queue.stored == '0;
  assign queues_in_order[3] =
      tile.narrow_to_wide_queue.out_valid || tile.narrow_to_wide_queue.stored == '0;
  assign queues_in_order[4] =
      tile.wide_to_narrow_queue.out_valid || tile.wide_to_narrow_queue.stored == '0;
  for (genvar c = 0; c < 2; c++) begin : gen_channel
    assign queues_in_order[5+c] = tile.gen_channel[c].channel_queue.out_valid ||
        tile.gen_channel[c].channel_queue.stored == '0;
  end
  for (genvar k = 0; k < Links; k++) begin : gen_link
    assign queues_in_order[7+k] = tile.gen_link[k].link_queue.out_valid ||
        tile.gen_link[k].link_queue.stored == '0;
  end

  always_comb begin
    assume_enable_is_0 : assume (!tile2clock_enable);
    assume_queues_in_order : assume (queues_in_order == '1);
    // What tile_models.cpp looks for in what comes from outside.
    assume_nothing_comes :
    assume (rst_n && ring2tile_row_valid == '0 && ring2tile_token_valid == '0);
    assume_nothing_is_handed_over :
    assume (!(core2tile_instruction_valid && core2tile_instruction_ready) &&
        !(tile2ring_row_valid && tile2ring_row_ready) &&
        (tile2mesh_word_valid & tile2mesh_word_ready) == '0 &&
        (mesh2tile_word_valid & mesh2tile_word_ready) == '0);
  end

endmodule : tile_clock
