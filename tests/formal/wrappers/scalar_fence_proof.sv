// scalar_fence: answers exactly when units, flags and fences of tiles are as the instruction wants,
// and counts the fences of each tile since it was told to forget them. Of all tiles and flags one
// each is looked at, any.

module scalar_fence_proof
  import isa_pkg::*;
  import scalar_pkg::*;
#(
    parameter int Tiles = 16
) (
    input logic clk,
    input logic rst_n,
    input logic core2fence_instruction_valid,
    input scalar_fence_t core2fence_instruction_data,
    input logic [Tiles-1:0] tiles2fence_passed_valid,
    input logic [IdleBits-1:0] units2fence_idle,
    input flags_t flags2fence_values,
    input logic [4:0] any_tile,
    input logic [4:0] any_flag
);

  logic core2fence_instruction_ready, fence2flags_load_valid;
  logic [Flags-1:0] fence2flags_load_mask;
  logic [15:0] fence2flags_load_value;
  scalar_fence #(.Tiles(Tiles)) fence (.*);
  resets_first resets (.*);

  scalar_fence_t told;
  logic [4:0] tile, flag;
  logic [31:0] passed;  // fences of the tile
  logic goes, flag_reached, flag_beyond, tile_reached;
  assign told = core2fence_instruction_data;
  assign goes = core2fence_instruction_valid && core2fence_instruction_ready;
  assign flag_beyond = $signed(flags2fence_values[flag] - told.expected[flag]) >= 16'sd0;
  assign flag_reached = !told.expected_valid[flag] || flag_beyond;
  assign tile_reached = !told.tile_fence_valid[tile] || passed >= 32'(told.tile_fence_count);
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      tile   <= any_tile;
      flag   <= any_flag;
      passed <= '0;
    end else begin
      if (goes && told.reset_tile_fences[tile]) passed <= 32'(tiles2fence_passed_valid[tile]);
      else passed <= passed + 32'(tiles2fence_passed_valid[tile]);
    end
  end

  always_ff @(posedge clk) begin
    if (rst_n) begin
      assume_there : assume (tile < 5'(Tiles) && flag < 5'(Flags));
      assert_waits_for_flags : assert (!goes || flag_reached);
      assert_waits_for_tiles : assert (!goes || tile_reached);
      assert_waits_for_units :
      assert (!goes || (told.wait_idle | units2fence_idle) == units2fence_idle);
      assert_goes :
      assert (!core2fence_instruction_valid || goes || told.expected_valid != '0 ||
              told.tile_fence_valid[Tiles-1:0] != '0 || (told.wait_idle & ~units2fence_idle) != '0);
      assert_goes_for_a_tile :
      assert (!core2fence_instruction_valid || goes || told.expected_valid != '0 ||
              (told.wait_idle & ~units2fence_idle) != '0 ||
              told.tile_fence_valid[Tiles-1:0] != Tiles'(1) << tile || !tile_reached);
      assert_loads_when_it_goes :
      assert (fence2flags_load_valid == goes && fence2flags_load_mask == told.reset_flags &&
              fence2flags_load_value == told.reset_value);
      lemma_count : assert (fence.counts[tile] == passed);
      cover_three :
      cover (goes && told.tile_fence_valid[tile] && told.tile_fence_count == 3 &&
              told.expected_valid[flag]);
      cover_forgets : cover (goes && told.reset_tile_fences[tile] && passed == 32'd2);
    end
  end

endmodule : scalar_fence_proof
