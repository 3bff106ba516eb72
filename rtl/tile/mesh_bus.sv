// Mesh port of a tile: one side reads narrow words for the neighbour that the link leads to, the
// other writes those that come from the opposite neighbour, or an immediate; each one word a cycle.

module mesh_bus
  import isa_pkg::*;
  import tile_pkg::*;
#(
    parameter int Link = 0,  // 0 south, 1 west, 2 north, 3 east
    parameter int Words = harness_pkg::MeshFifoWords  // that have arrived and wait
) (
    input logic clk,
    input logic rst_n,

    input  logic        queue2unit_instruction_valid,
    output logic        queue2unit_instruction_ready,
    input  mesh_south_t queue2unit_instruction_data,   // the four directions have the same fields
    output logic        unit2fence_idle,
    output logic        unit2clock_enable,             // see tile.sv

    input  flags_t   flags2unit_values,
    output produce_t unit2flags_inbound,
    output produce_t unit2flags_outbound,

    output logic [NarrowAddressBits-1:0] unit2narrow_read_address,
    input  logic [                 31:0] narrow2unit_read_data,

    output logic                         unit2narrow_write_valid,
    output logic [NarrowAddressBits-1:0] unit2narrow_write_address,
    output logic [                 31:0] unit2narrow_write_data,

    output logic        unit2neighbour_word_valid,
    input  logic        unit2neighbour_word_ready,
    output logic [31:0] unit2neighbour_word_data,

    input  logic        neighbour2unit_word_valid,
    output logic        neighbour2unit_word_ready,
    input  logic [31:0] neighbour2unit_word_data
);

  localparam int Loops = 4;
  localparam int Watchers = 6;

  localparam logic [3:0][FlagBits-1:0] InboundFlags = {
    TILE_FLAG_MESH_INBOUND_FROM_WEST,
    TILE_FLAG_MESH_INBOUND_FROM_SOUTH,
    TILE_FLAG_MESH_INBOUND_FROM_EAST,
    TILE_FLAG_MESH_INBOUND_FROM_NORTH
  };
  localparam logic [3:0][FlagBits-1:0] OutboundFlags = {
    TILE_FLAG_MESH_OUTBOUND_FOR_EAST,
    TILE_FLAG_MESH_OUTBOUND_FOR_NORTH,
    TILE_FLAG_MESH_OUTBOUND_FOR_WEST,
    TILE_FLAG_MESH_OUTBOUND_FOR_SOUTH
  };

  mesh_south_t instruction;
  logic starting;

  step_t read_step, write_step;
  logic [15:0] read_address, write_address;
  logic [1:0] pass, take;

  // A side whose first stride and limits are all 0 is off; an immediate is written all the same.
  function automatic logic moves(input traversal_4x16_t walk);
    moves = walk.loop[0].stride != '0;
    for (int k = 0; k < Loops; k++) moves = moves || walk.loop[k].limit != '0;
  endfunction

  logic read_on, write_on;
  assign read_on  = moves(instruction.narrow_read);
  assign write_on = moves(instruction.narrow_write) || instruction.immediate_valid;

  // A word that may be sent may still have to wait for room at the neighbour.
  logic read_passed, sends, receives;
  assign unit2neighbour_word_valid = read_step.valid && (read_passed || pass[0]);
  assign unit2neighbour_word_data = narrow2unit_read_data;
  assign sends = unit2neighbour_word_valid && unit2neighbour_word_ready;

  logic arrived_valid;
  logic [31:0] arrived;
  assign receives = write_step.valid && pass[1] && (instruction.immediate_valid || arrived_valid);
  assign take = {receives, read_step.valid && !read_passed && pass[0]};

  descriptor_fifo #(
      .Width(32),
      .Depth(Words)
  ) arrivals (
      .clk,
      .rst_n,
      .push_valid(neighbour2unit_word_valid),
      .push_ready(neighbour2unit_word_ready),
      .push_data (neighbour2unit_word_data),
      .pop_valid (arrived_valid),
      .pop_ready (receives && !instruction.immediate_valid),
      .pop_data  (arrived)
  );

  logic accepts;
  assign queue2unit_instruction_ready = unit2fence_idle;
  assign accepts = queue2unit_instruction_valid && queue2unit_instruction_ready;
  assign unit2fence_idle = !starting && !read_step.valid && !write_step.valid;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      starting <= 1'b0;
      read_passed <= 1'b0;
    end else begin
      starting <= accepts;
      read_passed <= unit2neighbour_word_valid && !unit2neighbour_word_ready;
    end
    if (accepts) instruction <= queue2unit_instruction_data;
  end

  assign unit2narrow_read_address = {read_address, 2'b00};
  assign unit2clock_enable = starting || receives || read_passed != unit2neighbour_word_valid;
  assign unit2narrow_write_valid = receives;
  assign unit2narrow_write_address = {write_address, 2'b00};
  assign unit2narrow_write_data = instruction.immediate_valid ? instruction.immediate : arrived;
  assign unit2flags_outbound = produce(
      sends && read_step.ended[4'(instruction.read_producer_depth)],
      instruction.read_producer_increment,
      OutboundFlags[Link]
  );
  assign unit2flags_inbound = produce(
      receives && write_step.ended[4'(instruction.write_producer_depth)],
      instruction.write_producer_increment,
      InboundFlags[Link]
  );

  traversal #(
      .walk_t(traversal_4x16_t),
      .Loops (Loops)
  ) reading (
      .clk,
      .rst_n,
      .walk(instruction.narrow_read),
      .alternate_target(1'b0),
      .start(starting && read_on),
      .advance(sends),
      .step(read_step),
      .address(read_address)
  );

  traversal #(
      .walk_t(traversal_4x16_t),
      .Loops (Loops)
  ) writing (
      .clk,
      .rst_n,
      .walk(instruction.narrow_write),
      .alternate_target(1'b0),
      .start(starting && write_on),
      .advance(receives),
      .step(write_step),
      .address(write_address)
  );

  watchers #(
      .watcher_t(watcher_5x2_side_t),
      .Watchers(Watchers),
      .Sides(2)
  ) guards (
      .clk,
      .rst_n,
      .watcher(instruction.watcher),
      .flags2watchers_values(flags2unit_values),
      .start(starting),
      .begins({write_step.begins, read_step.begins}),
      .take,
      .pass
  );

  // The word is read anew in each cycle, so its address stands for it.
  handshake_check #(
      .Width(16)
  ) outgoing (
      .clk,
      .rst_n,
      .valid  (unit2neighbour_word_valid),
      .ready  (unit2neighbour_word_ready),
      .payload(read_address)
  );

`ifndef SYNTHESIS
  assert_read_inside_narrow_memory :
  assert property (@(posedge clk) disable iff (!rst_n)
      sends |-> int'(unit2narrow_read_address) + 4 <= NarrowBytes)
  else $error("word outside narrow memory");
  assert_write_inside_narrow_memory :
  assert property (@(posedge clk) disable iff (!rst_n)
      receives |-> int'(unit2narrow_write_address) + 4 <= NarrowBytes)
  else $error("word outside narrow memory");
  assert_words_are_not_invented :
  assert property (@(posedge clk) disable iff (!rst_n)
      receives |-> instruction.immediate_valid || arrived_valid)
  else $error("a word is taken that has not arrived");
`endif

endmodule : mesh_bus
