// tile_array: every tile has its own bit or entry of each port, and what all of them see. In the place of
// a tile stands something small whose outputs follow from each bit of its inputs; any tile of the array
// is compared with one more of them, which is wired here.

module tile_array_proof
  import isa_pkg::*;
  import tile_pkg::*;
#(
    parameter int Tiles = 2
) (
    input logic clk,
    input logic clk_memory,
    input logic rst_n,
    input logic [Tiles-1:0] core2tiles_instruction_valid,
    input logic [LongestBits-1:0] core2tiles_instruction_data,
    input logic core2tiles_base_valid,
    input logic [31:0] core2tiles_base,
    input logic [Tiles-1:0] tiles2ring_row_ready,
    input logic [Tiles-1:0][1:0] ring2tiles_row_valid,
    input row_t ring2tiles_row_data,
    input logic [CountBits-1:0] ring2tiles_row_words,
    input logic [1:0] ring2tiles_token_valid,
    input logic [Tiles-1:0][Links-1:0] tiles2mesh_word_ready,
    input logic [Tiles-1:0][Links-1:0] mesh2tiles_word_valid,
    input logic [Tiles-1:0][Links-1:0][31:0] mesh2tiles_word_data,
    input logic [$clog2(Tiles)-1:0] t
);

  logic [Tiles-1:0] core2tiles_instruction_ready, tiles2fence_passed_valid, tiles2monitor_idle;
  logic      [Tiles-1:0][Units-1:0] tiles2monitor_units;
  flags_t    [Tiles-1:0]            tiles2monitor_flags;
  logic      [Tiles-1:0]            tiles2ring_row_valid;
  ring_row_t                        tiles2ring_row_data  [Tiles];
  logic      [Tiles-1:0][      1:0] ring2tiles_row_ready;
  logic [Tiles-1:0][Links-1:0] tiles2mesh_word_valid, mesh2tiles_word_ready;
  logic [Tiles-1:0][Links-1:0][31:0] tiles2mesh_word_data;
  tile_array #(.Tiles(Tiles)) tiles (.*);
  resets_first resets (.*);

  logic instruction_ready, fence_valid, idle, clock_enable, row_valid;
  logic [Units-1:0] units_idle;
  flags_t flags;
  ring_row_t row_data;
  logic [1:0] row_ready;
  logic [Links-1:0] word_valid, word_ready;
  logic [Links-1:0][31:0] word_data;
  tile expected (
      .clk,
      .clk_memory,
      .rst_n,
      .core2tile_instruction_valid(core2tiles_instruction_valid[t]),
      .core2tile_instruction_ready(instruction_ready),
      .core2tile_instruction_data(core2tiles_instruction_data),
      .core2tile_base_valid(core2tiles_base_valid),
      .core2tile_base(core2tiles_base),
      .tile2core_fence_valid(fence_valid),
      .tile2core_units_idle(units_idle),
      .tile2core_idle(idle),
      .tile2core_flags(flags),
      .tile2clock_enable(clock_enable),
      .tile2ring_row_valid(row_valid),
      .tile2ring_row_ready(tiles2ring_row_ready[t]),
      .tile2ring_row_data(row_data),
      .ring2tile_row_valid(ring2tiles_row_valid[t]),
      .ring2tile_row_ready(row_ready),
      .ring2tile_row_data(ring2tiles_row_data),
      .ring2tile_row_words(ring2tiles_row_words),
      .ring2tile_token_valid(ring2tiles_token_valid),
      .tile2mesh_word_valid(word_valid),
      .tile2mesh_word_ready(tiles2mesh_word_ready[t]),
      .tile2mesh_word_data(word_data),
      .mesh2tile_word_valid(mesh2tiles_word_valid[t]),
      .mesh2tile_word_ready(word_ready),
      .mesh2tile_word_data(mesh2tiles_word_data[t])
  );

  always_ff @(posedge clk) begin
    if (rst_n) begin
      assert_core :
      assert (core2tiles_instruction_ready[t] == instruction_ready &&
              tiles2fence_passed_valid[t] == fence_valid && tiles2monitor_idle[t] == idle &&
              tiles2monitor_units[t] == units_idle && tiles2monitor_flags[t] == flags);
      assert_ring :
      assert (tiles2ring_row_valid[t] == row_valid && tiles2ring_row_data[t] == row_data &&
              ring2tiles_row_ready[t] == row_ready);
      assert_mesh :
      assert (tiles2mesh_word_valid[t] == word_valid && tiles2mesh_word_data[t] == word_data &&
              mesh2tiles_word_ready[t] == word_ready);
      cover_last : cover (t == '1 && row_valid && !tiles2ring_row_valid[0]);
    end
  end

endmodule : tile_array_proof

// The ports of a tile, and no tile: each output differs from tile to tile, and every input is in one.
module tile
  import isa_pkg::*;
  import tile_pkg::*;
(
    input logic clk,
    input logic clk_memory,
    input logic rst_n,

    input  logic                   core2tile_instruction_valid,
    output logic                   core2tile_instruction_ready,
    input  logic [LongestBits-1:0] core2tile_instruction_data,
    input  logic                   core2tile_base_valid,
    input  logic [           31:0] core2tile_base,

    output logic               tile2core_fence_valid,
    output logic   [Units-1:0] tile2core_units_idle,
    output logic               tile2core_idle,
    output flags_t             tile2core_flags,
    output logic               tile2clock_enable,

    output logic      tile2ring_row_valid,
    input  logic      tile2ring_row_ready,
    output ring_row_t tile2ring_row_data,

    input  logic [          1:0] ring2tile_row_valid,
    output logic [          1:0] ring2tile_row_ready,
    input  row_t                 ring2tile_row_data,
    input  logic [CountBits-1:0] ring2tile_row_words,
    input  logic [          1:0] ring2tile_token_valid,

    output logic [Links-1:0]       tile2mesh_word_valid,
    input  logic [Links-1:0]       tile2mesh_word_ready,
    output logic [Links-1:0][31:0] tile2mesh_word_data,
    input  logic [Links-1:0]       mesh2tile_word_valid,
    output logic [Links-1:0]       mesh2tile_word_ready,
    input  logic [Links-1:0][31:0] mesh2tile_word_data
);

  assign core2tile_instruction_ready = core2tile_instruction_valid;
  assign tile2core_fence_valid = core2tile_base_valid ^ ring2tile_token_valid[0] ^
      mesh2tile_word_valid[0];
  assign tile2core_idle = clk_memory ^ rst_n ^ ring2tile_token_valid[1] ^ mesh2tile_word_valid[1];
  assign tile2core_units_idle = Units'(ring2tile_row_words) ^ Units'(mesh2tile_word_data);
  assign tile2clock_enable = clk;
  assign tile2ring_row_valid = tile2ring_row_ready;
  assign ring2tile_row_ready = ring2tile_row_valid;
  assign tile2mesh_word_valid = mesh2tile_word_valid;
  assign mesh2tile_word_ready = tile2mesh_word_ready;
  assign tile2mesh_word_data = mesh2tile_word_data;

  // Longer ones are folded: a bit that changes changes a bit of what comes out.
  localparam int FlagBits = $bits(flags_t);
  always_comb begin
    tile2core_flags = FlagBits'({core2tile_base, mesh2tile_word_data});
    for (int b = 0; b < LongestBits; b++)
    tile2core_flags[b%FlagBits] ^= core2tile_instruction_data[b];
    tile2ring_row_data = $bits(ring_row_t)'(ring2tile_row_data);
    tile2ring_row_data.words = ring2tile_row_words;
    tile2ring_row_data.token = tile2mesh_word_ready[0];
  end

endmodule : tile
