// The tiles of a chip, bit or entry t of every port for tile t. What all of them see, each takes when
// its own valid says so.

module tile_array
  import isa_pkg::*;
  import tile_pkg::flags_t;
  import tile_pkg::ring_row_t;
  import tile_pkg::row_t;
  import tile_pkg::CountBits;
  import tile_pkg::Links;
  import tile_pkg::Units;
#(
    parameter int Tiles = chip_pkg::Tiles
) (
    input logic clk,
    input logic clk_memory,
    input logic rst_n,

    input  logic [      Tiles-1:0] core2tiles_instruction_valid,
    output logic [      Tiles-1:0] core2tiles_instruction_ready,
    input  logic [LongestBits-1:0] core2tiles_instruction_data,
    input  logic                   core2tiles_base_valid,
    input  logic [           31:0] core2tiles_base,

    output logic   [Tiles-1:0]            tiles2fence_passed_valid,
    output logic   [Tiles-1:0]            tiles2monitor_idle,
    output logic   [Tiles-1:0][Units-1:0] tiles2monitor_units,
    output flags_t [Tiles-1:0]            tiles2monitor_flags,

    output logic      [Tiles-1:0] tiles2ring_row_valid,
    input  logic      [Tiles-1:0] tiles2ring_row_ready,
    output ring_row_t             tiles2ring_row_data [Tiles],

    input  logic [    Tiles-1:0][1:0] ring2tiles_row_valid,   // one bit for each channel
    output logic [    Tiles-1:0][1:0] ring2tiles_row_ready,
    input  row_t                      ring2tiles_row_data,
    input  logic [CountBits-1:0]      ring2tiles_row_words,
    input  logic [          1:0]      ring2tiles_token_valid,

    // Bit k: link k, to the neighbour in its direction, and from the opposite neighbour.
    output logic [Tiles-1:0][Links-1:0]       tiles2mesh_word_valid,
    input  logic [Tiles-1:0][Links-1:0]       tiles2mesh_word_ready,
    output logic [Tiles-1:0][Links-1:0][31:0] tiles2mesh_word_data,
    input  logic [Tiles-1:0][Links-1:0]       mesh2tiles_word_valid,
    output logic [Tiles-1:0][Links-1:0]       mesh2tiles_word_ready,
    input  logic [Tiles-1:0][Links-1:0][31:0] mesh2tiles_word_data
);

  // This array does without gates in the clocks of its tiles.
  logic [Tiles-1:0] tiles2clock_enable;
  logic unused;
  assign unused = &{1'b0, tiles2clock_enable};

  for (genvar t = 0; t < Tiles; t++) begin : gen_tile
    tile tile (
        .clk,
        .clk_memory,
        .rst_n,
        .core2tile_instruction_valid(core2tiles_instruction_valid[t]),
        .core2tile_instruction_ready(core2tiles_instruction_ready[t]),
        .core2tile_instruction_data(core2tiles_instruction_data),
        .core2tile_base_valid(core2tiles_base_valid),
        .core2tile_base(core2tiles_base),
        .tile2core_fence_valid(tiles2fence_passed_valid[t]),
        .tile2core_units_idle(tiles2monitor_units[t]),
        .tile2core_idle(tiles2monitor_idle[t]),
        .tile2core_flags(tiles2monitor_flags[t]),
        .tile2clock_enable(tiles2clock_enable[t]),
        .tile2ring_row_valid(tiles2ring_row_valid[t]),
        .tile2ring_row_ready(tiles2ring_row_ready[t]),
        .tile2ring_row_data(tiles2ring_row_data[t]),
        .ring2tile_row_valid(ring2tiles_row_valid[t]),
        .ring2tile_row_ready(ring2tiles_row_ready[t]),
        .ring2tile_row_data(ring2tiles_row_data),
        .ring2tile_row_words(ring2tiles_row_words),
        .ring2tile_token_valid(ring2tiles_token_valid),
        .tile2mesh_word_valid(tiles2mesh_word_valid[t]),
        .tile2mesh_word_ready(tiles2mesh_word_ready[t]),
        .tile2mesh_word_data(tiles2mesh_word_data[t]),
        .mesh2tile_word_valid(mesh2tiles_word_valid[t]),
        .mesh2tile_word_ready(mesh2tiles_word_ready[t]),
        .mesh2tile_word_data(mesh2tiles_word_data[t])
    );
  end

endmodule : tile_array
