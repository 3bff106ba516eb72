// Queue of a tile: instructions enter in the order of the program and leave in that order, each to
// its unit's queue or to the tile fence, which holds back whatever comes behind it.

module tile_queue
  import isa_pkg::*;
  import tile_pkg::*;
#(
    parameter int Depth = harness_pkg::TileQueue - 1  // one more waits at the exit
) (
    input logic clk,
    input logic rst_n,

    input  logic                   core2tile_instruction_valid,
    output logic                   core2tile_instruction_ready,
    input  logic [LongestBits-1:0] core2tile_instruction_data,
    input  logic                   core2tile_base_valid,
    input  logic [           31:0] core2tile_base,

    output logic [      Units-1:0] queue2units_instruction_valid,
    input  logic [      Units-1:0] queue2units_instruction_ready,
    output logic [LongestBits-1:0] queue2units_instruction_data,
    output logic                   queue2units_base_valid,
    output logic [           31:0] queue2units_base,

    output logic        queue2fence_instruction_valid,
    input  logic        queue2fence_instruction_ready,
    output tile_fence_t queue2fence_instruction_data,

    output logic queue2core_idle
);

  logic leaving, left;

  instruction_queue #(
      .Bits (LongestBits + 33),
      .Depth(Depth)
  ) queue (
      .clk,
      .rst_n,
      .in_valid (core2tile_instruction_valid),
      .in_ready (core2tile_instruction_ready),
      .in_data  ({core2tile_base_valid, core2tile_base, core2tile_instruction_data}),
      .out_valid(leaving),
      .out_ready(left),
      .out_data ({queue2units_base_valid, queue2units_base, queue2units_instruction_data})
  );

  // Every instruction begins with the same header.
  no_op_t header;
  assign header = no_op_t'(queue2units_instruction_data[BundleBits-1:0]);
  assign queue2fence_instruction_data = tile_fence_t'(queue2units_instruction_data[BundleBits-1:0]);

  logic [Units-1:0] unit;
  logic fence;
  always_comb begin
    unit  = '0;
    fence = 1'b0;
    case (header.opcode)
      OPCODE_TENSOR_MAC, OPCODE_TENSOR_MAX, OPCODE_TENSOR_SUM, OPCODE_TENSOR_INTERPOLATE,
      OPCODE_COEFFICIENT_TABLE:
      unit[TILE_UNIT_TENSOR] = 1'b1;
      OPCODE_RING_PRODUCER: unit[TILE_UNIT_RING_PRODUCER] = 1'b1;
      OPCODE_RING_CONSUMER_A: unit[TILE_UNIT_RING_CONSUMER_A] = 1'b1;
      OPCODE_RING_CONSUMER_B: unit[TILE_UNIT_RING_CONSUMER_B] = 1'b1;
      OPCODE_NARROW_TO_WIDE: unit[TILE_UNIT_NARROW_TO_WIDE] = 1'b1;
      OPCODE_WIDE_TO_NARROW: unit[TILE_UNIT_WIDE_TO_NARROW] = 1'b1;
      OPCODE_MESH_SOUTH: unit[TILE_UNIT_MESH_SOUTH] = 1'b1;
      OPCODE_MESH_WEST: unit[TILE_UNIT_MESH_WEST] = 1'b1;
      OPCODE_MESH_NORTH: unit[TILE_UNIT_MESH_NORTH] = 1'b1;
      OPCODE_MESH_EAST: unit[TILE_UNIT_MESH_EAST] = 1'b1;
      OPCODE_TILE_FENCE: fence = 1'b1;
      default: ;
    endcase
  end

  assign queue2units_instruction_valid = leaving ? unit : '0;
  assign queue2fence_instruction_valid = leaving && fence;
  assign left = fence ? queue2fence_instruction_ready : |(unit & queue2units_instruction_ready);
  assign queue2core_idle = !leaving;

`ifndef SYNTHESIS
  assert_instruction_of_a_tile :
  assert property (@(posedge clk) disable iff (!rst_n) leaving |-> fence || unit != '0)
  else $error("an instruction that no unit of a tile executes");
`endif

endmodule : tile_queue
