// The tiles of a chip, like tile_array, but each tile is a simulation of its own, in C++
// (tile_models.cpp). A tile's outputs depend on its registers alone, so it is evaluated once a cycle,
// at the edge, and only if its clock enable is 1 or an input arrives. A build with TILE_MODELS has
// this in place of tile_array.

module tile_models
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
    input logic clk_memory,  // made for each tile beside clk
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

  // One bit or one entry a tile. A payload is passed on only with its valid. The outputs of a tile are
  // fetched only if it was evaluated, and its row only if `rows` says that the row has changed.
  import "DPI-C" function chandle tile_models_open(
    input int tiles,
    input int memory_clock_ratio
  );
  import "DPI-C" function void tile_models_close(input chandle models);
  import "DPI-C" function void tile_models_instruction(
    input chandle models,
    input int unsigned instruction_valid,
    input bit [LongestBits-1:0] instruction,
    input bit base_valid,
    input int unsigned base
  );
  import "DPI-C" function void tile_models_arrival(
    input chandle models,
    input bit [Tiles-1:0][1:0] row_valid,
    input bit [$bits(row_t)-1:0] row,
    input int unsigned words
  );
  import "DPI-C" function bit tile_models_step(
    input chandle models,
    input bit rst_n,
    input int unsigned instruction_valid,
    input int unsigned row_ready,
    input bit [Tiles-1:0][1:0] row_valid,
    input int unsigned tokens,
    input bit [Tiles-1:0][Links-1:0] word_ready,
    input bit [Tiles-1:0][Links-1:0] word_valid,
    input bit [Tiles-1:0][Links-1:0][31:0] words
  );
  import "DPI-C" function void tile_models_outputs(
    input chandle models,
    output int unsigned instruction_ready,
    output int unsigned passed,
    output int unsigned idle,
    output bit [Tiles-1:0][31:0] units_idle,
    output bit [Tiles-1:0][$bits(flags_t)-1:0] flags,
    output int unsigned row_valid,
    output int unsigned rows,
    output bit [Tiles-1:0][1:0] row_ready,
    output bit [Tiles-1:0][Links-1:0] word_valid,
    output bit [Tiles-1:0][Links-1:0] word_ready,
    output bit [Tiles-1:0][Links-1:0][31:0] words
  );
  import "DPI-C" function void tile_models_row(
    input chandle models,
    input int tile,
    output bit [$bits(ring_row_t)-1:0] row
  );

  logic unused;
  assign unused = &{1'b0, clk_memory};

  chandle models;
  initial models = tile_models_open(Tiles, harness_pkg::MemoryClockRatio);
  final tile_models_close(models);

  always_ff @(posedge clk) begin
    int unsigned instruction_ready, passed, idle, row_valid, rows;
    bit [Tiles-1:0][31:0] units_idle;
    flags_t [Tiles-1:0] flags;
    bit [Tiles-1:0][1:0] row_ready;
    bit [Tiles-1:0][Links-1:0] word_valid, word_ready;
    bit [Tiles-1:0][Links-1:0][31:0] words;
    bit [$bits(ring_row_t)-1:0] row;
    if (core2tiles_instruction_valid != '0) begin
      tile_models_instruction(models, 32'(core2tiles_instruction_valid),
                              core2tiles_instruction_data, core2tiles_base_valid, core2tiles_base);
    end
    if (ring2tiles_row_valid != '0) begin
      tile_models_arrival(models, ring2tiles_row_valid, ring2tiles_row_data,
                          32'(ring2tiles_row_words));
    end
    if (tile_models_step(
            models,
            rst_n,
            32'(core2tiles_instruction_valid),
            32'(tiles2ring_row_ready),
            ring2tiles_row_valid,
            32'(ring2tiles_token_valid),
            tiles2mesh_word_ready,
            mesh2tiles_word_valid,
            mesh2tiles_word_data
        )) begin
      tile_models_outputs(models, instruction_ready, passed, idle, units_idle, flags, row_valid,
                          rows, row_ready, word_valid, word_ready, words);
      core2tiles_instruction_ready <= Tiles'(instruction_ready);
      tiles2fence_passed_valid <= Tiles'(passed);
      tiles2monitor_idle <= Tiles'(idle);
      tiles2monitor_flags <= flags;
      tiles2ring_row_valid <= Tiles'(row_valid);
      ring2tiles_row_ready <= row_ready;
      tiles2mesh_word_valid <= word_valid;
      mesh2tiles_word_ready <= word_ready;
      tiles2mesh_word_data <= words;
      for (int t = 0; t < Tiles; t++) begin
        tiles2monitor_units[t] <= units_idle[t][Units-1:0];
        if (rows[t]) begin
          tile_models_row(models, t, row);
          tiles2ring_row_data[t] <= row;
        end
      end
    end
  end

endmodule : tile_models
