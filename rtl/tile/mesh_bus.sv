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

  logic read_valid, write_valid;
  logic [15:0] read_address, write_address;
  logic [1:0][15:0] begins;
  logic [15:0] read_ended, write_ended;
  logic [1:0] pass, take;

  logic signed [Loops-1:0][16:0] read_stride, write_stride;
  logic [Loops-1:0][15:0] read_limit, write_limit;

  // A side whose first stride and limits are all 0 is off; an immediate is written all the same.
  logic read_on, write_on;
  assign read_on  = read_stride[0] != '0 || read_limit != '0;
  assign write_on = write_stride[0] != '0 || write_limit != '0 || instruction.immediate_valid;

  // A word that may be sent may still have to wait for room at the neighbour.
  logic read_passed, sends, receives;
  assign unit2neighbour_word_valid = read_valid && (read_passed || pass[0]);
  assign unit2neighbour_word_data = narrow2unit_read_data;
  assign sends = unit2neighbour_word_valid && unit2neighbour_word_ready;

  logic arrived_valid;
  logic [31:0] arrived;
  assign receives = write_valid && pass[1] && (instruction.immediate_valid || arrived_valid);
  assign take = {receives, read_valid && !read_passed && pass[0]};

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
  assign unit2fence_idle = !starting && !read_valid && !write_valid;

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
  assign unit2narrow_write_valid = receives;
  assign unit2narrow_write_address = {write_address, 2'b00};
  assign unit2narrow_write_data = instruction.immediate_valid ? instruction.immediate : arrived;
  assign unit2flags_outbound = produce(
      sends && read_ended[4'(instruction.read_producer_depth)],
      instruction.read_producer_increment,
      OutboundFlags[Link]
  );
  assign unit2flags_inbound = produce(
      receives && write_ended[4'(instruction.write_producer_depth)],
      instruction.write_producer_increment,
      InboundFlags[Link]
  );

  logic [Watchers-1:0] watcher_valid, watcher_side;
  logic [Watchers-1:0][FlagBits-1:0] watcher_flag;
  logic [Watchers-1:0][1:0] watcher_depth;
  logic [Watchers-1:0][15:0] watcher_expected, watcher_stride;

  for (genvar k = 0; k < Loops; k++) begin : gen_loop
    assign read_stride[k]  = instruction.narrow_read_loop[k].stride;
    assign read_limit[k]   = instruction.narrow_read_loop[k].limit;
    assign write_stride[k] = instruction.narrow_write_loop[k].stride;
    assign write_limit[k]  = instruction.narrow_write_loop[k].limit;
  end
  for (genvar k = 0; k < Watchers; k++) begin : gen_watcher
    assign watcher_valid[k] = instruction.watcher[k].valid;
    assign watcher_side[k] = instruction.watcher[k].side;
    assign watcher_flag[k] = instruction.watcher[k].flag;
    assign watcher_depth[k] = instruction.watcher[k].depth;
    assign watcher_expected[k] = instruction.watcher[k].expected;
    assign watcher_stride[k] = instruction.watcher[k].stride;
  end

  traversal #(
      .Loops(Loops)
  ) read (
      .clk,
      .rst_n,
      .base(instruction.narrow_read_base),
      .stride(read_stride),
      .limit(read_limit),
      .double_loop(instruction.narrow_read_double_loop),
      .double_offset(instruction.narrow_read_double_offset),
      .double_start(instruction.narrow_read_double_start),
      .alternate_limit(instruction.narrow_read_alternate_limit),
      .alternate_loop(instruction.narrow_read_alternate_loop),
      .alternate_reset(instruction.narrow_read_alternate_reset),
      .start(starting && read_on),
      .advance(sends),
      .valid(read_valid),
      .address(read_address),
      .begins(begins[0]),
      .ended(read_ended)
  );

  traversal #(
      .Loops(Loops)
  ) write (
      .clk,
      .rst_n,
      .base(instruction.narrow_write_base),
      .stride(write_stride),
      .limit(write_limit),
      .double_loop(instruction.narrow_write_double_loop),
      .double_offset(instruction.narrow_write_double_offset),
      .double_start(instruction.narrow_write_double_start),
      .alternate_limit(instruction.narrow_write_alternate_limit),
      .alternate_loop(instruction.narrow_write_alternate_loop),
      .alternate_reset(instruction.narrow_write_alternate_reset),
      .start(starting && write_on),
      .advance(receives),
      .valid(write_valid),
      .address(write_address),
      .begins(begins[1]),
      .ended(write_ended)
  );

  watchers #(
      .Watchers (Watchers),
      .DepthBits(2)
  ) guards (
      .clk,
      .rst_n,
      .valid(watcher_valid),
      .side(watcher_side),
      .flag(watcher_flag),
      .depth(watcher_depth),
      .expected(watcher_expected),
      .stride(watcher_stride),
      .flags2watchers_values(flags2unit_values),
      .start(starting),
      .begins,
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
