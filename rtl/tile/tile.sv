// A tile: a queue of instructions, ten units that execute them, the memories and sync flags between
// them, and their ends of the ring bus and of the mesh.

module tile
  import isa_pkg::*;
  import tile_pkg::*;
#(
    parameter int MemoryClockRatio = harness_pkg::MemoryClockRatio
) (
    input logic clk,
    input logic clk_memory,  // of block RAM, MemoryClockRatio cycles in one of clk; with 1 not used
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

    // 0: nothing that the tile holds changes at the next edge but by what comes from outside then: a
    // reset, an instruction, a row, a token, a word, or that the ring or a neighbour takes one.
    output logic tile2clock_enable,

    output logic      tile2ring_row_valid,
    input  logic      tile2ring_row_ready,
    output ring_row_t tile2ring_row_data,

    input  logic [          1:0] ring2tile_row_valid,   // one bit for each channel
    output logic [          1:0] ring2tile_row_ready,
    input  row_t                 ring2tile_row_data,
    input  logic [CountBits-1:0] ring2tile_row_words,
    input  logic [          1:0] ring2tile_token_valid,

    // Bit k: link k, to the neighbour in its direction, and from the opposite neighbour.
    output logic [Links-1:0]       tile2mesh_word_valid,
    input  logic [Links-1:0]       tile2mesh_word_ready,
    output logic [Links-1:0][31:0] tile2mesh_word_data,
    input  logic [Links-1:0]       mesh2tile_word_valid,
    output logic [Links-1:0]       mesh2tile_word_ready,
    input  logic [Links-1:0][31:0] mesh2tile_word_data
);

  localparam int UnitQueue = harness_pkg::UnitQueue - 1;  // one more waits at the exit

  // Ports of the memories, by unit.
  localparam int NarrowTensor = 0, NarrowPacker = 1, NarrowMesh = 2;  // the mesh has four
  localparam int NarrowPorts = NarrowMesh + Links;
  localparam int WideTensor = 0;  // four reads, one write
  localparam int WideReadSpreader = 4, WideReadRing = 5, WideReadPorts = 6;
  localparam int WideWritePacker = 1, WideWriteRing = 2, WideWritePorts = 4;

  logic [Units-1:0] queue2units_instruction_valid, queue2units_instruction_ready;
  logic [LongestBits-1:0] queue2units_instruction_data;
  logic queue2units_base_valid;
  logic [31:0] queue2units_base;
  logic queue2fence_instruction_valid, queue2fence_instruction_ready;
  tile_fence_t queue2fence_instruction_data;
  logic queue_idle;

  tile_queue queue (
      .clk,
      .rst_n,
      .core2tile_instruction_valid,
      .core2tile_instruction_ready,
      .core2tile_instruction_data,
      .core2tile_base_valid,
      .core2tile_base,
      .queue2units_instruction_valid,
      .queue2units_instruction_ready,
      .queue2units_instruction_data,
      .queue2units_base_valid,
      .queue2units_base,
      .queue2fence_instruction_valid,
      .queue2fence_instruction_ready,
      .queue2fence_instruction_data,
      .queue2core_idle(queue_idle)
  );

  // The queues of the units; of an instruction each keeps what its unit's instructions have.
  logic [Units-1:0] instruction_valid, instruction_ready, unit_idle, unit_enable;
  logic [$bits(tensor_mac_t)-1:0] tensor_instruction;
  ring_producer_t ring_producer_instruction;
  ring_consumer_a_t [1:0] ring_consumer_instruction;
  narrow_to_wide_t narrow_to_wide_instruction;
  logic narrow_to_wide_base_valid;
  logic [31:0] narrow_to_wide_base;
  wide_to_narrow_t wide_to_narrow_instruction;
  mesh_south_t [Links-1:0] mesh_instruction;

  instruction_queue #(
      .Bits (LongestBits),
      .Depth(UnitQueue)
  ) tensor_queue (
      .clk,
      .rst_n,
      .in_valid (queue2units_instruction_valid[TILE_UNIT_TENSOR]),
      .in_ready (queue2units_instruction_ready[TILE_UNIT_TENSOR]),
      .in_data  (queue2units_instruction_data),
      .out_valid(instruction_valid[TILE_UNIT_TENSOR]),
      .out_ready(instruction_ready[TILE_UNIT_TENSOR]),
      .out_data (tensor_instruction)
  );

  instruction_queue #(
      .Bits ($bits(ring_producer_t)),
      .Depth(UnitQueue)
  ) ring_producer_queue (
      .clk,
      .rst_n,
      .in_valid (queue2units_instruction_valid[TILE_UNIT_RING_PRODUCER]),
      .in_ready (queue2units_instruction_ready[TILE_UNIT_RING_PRODUCER]),
      .in_data  (queue2units_instruction_data[$bits(ring_producer_t)-1:0]),
      .out_valid(instruction_valid[TILE_UNIT_RING_PRODUCER]),
      .out_ready(instruction_ready[TILE_UNIT_RING_PRODUCER]),
      .out_data (ring_producer_instruction)
  );

  instruction_queue #(
      .Bits ($bits(narrow_to_wide_t) + 33),
      .Depth(UnitQueue)
  ) narrow_to_wide_queue (
      .clk,
      .rst_n,
      .in_valid(queue2units_instruction_valid[TILE_UNIT_NARROW_TO_WIDE]),
      .in_ready(queue2units_instruction_ready[TILE_UNIT_NARROW_TO_WIDE]),
      .in_data({
        queue2units_base_valid,
        queue2units_base,
        queue2units_instruction_data[$bits(narrow_to_wide_t)-1:0]
      }),
      .out_valid(instruction_valid[TILE_UNIT_NARROW_TO_WIDE]),
      .out_ready(instruction_ready[TILE_UNIT_NARROW_TO_WIDE]),
      .out_data({narrow_to_wide_base_valid, narrow_to_wide_base, narrow_to_wide_instruction})
  );

  instruction_queue #(
      .Bits ($bits(wide_to_narrow_t)),
      .Depth(UnitQueue)
  ) wide_to_narrow_queue (
      .clk,
      .rst_n,
      .in_valid (queue2units_instruction_valid[TILE_UNIT_WIDE_TO_NARROW]),
      .in_ready (queue2units_instruction_ready[TILE_UNIT_WIDE_TO_NARROW]),
      .in_data  (queue2units_instruction_data[$bits(wide_to_narrow_t)-1:0]),
      .out_valid(instruction_valid[TILE_UNIT_WIDE_TO_NARROW]),
      .out_ready(instruction_ready[TILE_UNIT_WIDE_TO_NARROW]),
      .out_data (wide_to_narrow_instruction)
  );

  // Memories and flags.
  logic [NarrowPorts-1:0][NarrowAddressBits-1:0] narrow_read_address, narrow_write_address;
  logic [NarrowPorts-1:0][31:0] narrow_read_data, narrow_write_data;
  logic [NarrowPorts-1:0] narrow_write_valid;
  logic [WideReadPorts-1:0][RowBits-1:0] wide_read_row;
  row_t [WideReadPorts-1:0] wide_read_data;
  logic [WideWritePorts-1:0] wide_write_valid;
  logic [WideWritePorts-1:0][RowBits-1:0] wide_write_row;
  logic [WideWritePorts-1:0][CountBits-1:0] wide_write_count;
  row_t [WideWritePorts-1:0] wide_write_data;

  narrow_memory #(
      .Bytes(NarrowBytes),
      .ReadPorts(NarrowPorts),
      .WritePorts(NarrowPorts),
      .ClockRatio(MemoryClockRatio)
  ) narrow (
      .clk,
      .clk_memory,
      .rst_n,
      .units2narrow_read_address (narrow_read_address),
      .narrow2units_read_data    (narrow_read_data),
      .units2narrow_write_valid  (narrow_write_valid),
      .units2narrow_write_address(narrow_write_address),
      .units2narrow_write_data   (narrow_write_data)
  );

  wide_memory #(
      .Rows(WideRows),
      .Words(RowWords),
      .ReadPorts(WideReadPorts),
      .WritePorts(WideWritePorts),
      .ClockRatio(MemoryClockRatio)
  ) wide (
      .clk,
      .clk_memory,
      .rst_n,
      .units2wide_read_row(wide_read_row),
      .wide2units_read_data(wide_read_data),
      .units2wide_write_valid(wide_write_valid),
      .units2wide_write_row(wide_write_row),
      .units2wide_write_count(wide_write_count),
      .units2wide_write_data(wide_write_data)
  );

  localparam int Producers = 10 + 2 * Links;
  localparam int MeshProducers = 9;
  flags_t flags;
  produce_t [Producers-1:0] increments;
  logic load_valid;
  logic [Flags-1:0] load_mask;
  logic [15:0] load_value;

  sync_flags #(
      .Flags(Flags),
      .Producers(Producers)
  ) sync (
      .clk,
      .rst_n,
      .units2flags_produce(increments),
      .fence2flags_load_valid(load_valid),
      .fence2flags_load_mask(load_mask),
      .fence2flags_load_value(load_value),
      .flags2units_values(flags)
  );

  assign increments[7] = '{
          valid: ring2tile_token_valid[0],
          flag: TILE_FLAG_RING_PRODUCER_A,
          amount: 16'd1
      };
  assign increments[8] = '{
          valid: ring2tile_token_valid[1],
          flag: TILE_FLAG_RING_PRODUCER_B,
          amount: 16'd1
      };

  tile_fence fence (
      .clk,
      .rst_n,
      .queue2fence_instruction_valid,
      .queue2fence_instruction_ready,
      .queue2fence_instruction_data,
      .units2fence_idle(tile2core_units_idle),
      .flags2fence_tokens({flags[TILE_FLAG_RING_PRODUCER_B], flags[TILE_FLAG_RING_PRODUCER_A]}),
      .fence2flags_load_valid(load_valid),
      .fence2flags_load_mask(load_mask),
      .fence2flags_load_value(load_value),
      .fence2core_count_valid(tile2core_fence_valid)
  );

  assign tile2core_units_idle = unit_idle & ~instruction_valid;
  assign tile2core_flags = flags;
  assign tile2core_idle = queue_idle && tile2core_units_idle == '1;

  // Flags and memories change only where a unit goes on, a fence passes, or a token comes.
`ifdef STALLS
  assign tile2clock_enable = 1'b1;  // what holds units back is drawn in every cycle
  logic unused_enable;
  assign unused_enable = &{1'b0, unit_enable};
`else
  assign tile2clock_enable = unit_enable != '0 || (instruction_valid & instruction_ready) != '0 ||
      (queue2units_instruction_valid & queue2units_instruction_ready) != '0 ||
      (queue2fence_instruction_valid && queue2fence_instruction_ready);
`endif

  // The units.
  logic scale_write_valid;
  logic [6:0] scale_write_step;
  logic [63:0] scale_write_data;
  logic scale_half;
  row_t scales, biases;

  scale_bias_buffer scale_bias (
      .clk,
      .unit2scale_write_valid(scale_write_valid),
      .unit2scale_write_step (scale_write_step),
      .unit2scale_write_data (scale_write_data),
      .tensor2scale_half     (scale_half),
      .scale2tensor_scales   (scales),
      .scale2tensor_biases   (biases)
  );

  tensor_unit tensor (
      .clk,
      .rst_n,
      .queue2unit_instruction_valid(instruction_valid[TILE_UNIT_TENSOR]),
      .queue2unit_instruction_ready(instruction_ready[TILE_UNIT_TENSOR]),
      .queue2unit_instruction_data(tensor_instruction),
      .unit2fence_idle(unit_idle[TILE_UNIT_TENSOR]),
      .unit2clock_enable(unit_enable[TILE_UNIT_TENSOR]),
      .flags2unit_values(flags),
      .unit2flags_produce(increments[2:0]),
      .unit2narrow_read_address(narrow_read_address[NarrowTensor]),
      .narrow2unit_read_data(narrow_read_data[NarrowTensor]),
      .unit2narrow_write_valid(narrow_write_valid[NarrowTensor]),
      .unit2narrow_write_address(narrow_write_address[NarrowTensor]),
      .unit2narrow_write_data(narrow_write_data[NarrowTensor]),
      .unit2wide_read_row(wide_read_row[WideTensor+:4]),
      .wide2unit_read_data(wide_read_data[WideTensor+:4]),
      .unit2wide_write_valid(wide_write_valid[WideTensor]),
      .unit2wide_write_row(wide_write_row[WideTensor]),
      .unit2wide_write_count(wide_write_count[WideTensor]),
      .unit2wide_write_data(wide_write_data[WideTensor]),
      .unit2scale_half(scale_half),
      .scale2unit_scales(scales),
      .scale2unit_biases(biases)
  );

  ring_producer sender (
      .clk,
      .rst_n,
      .queue2unit_instruction_valid(instruction_valid[TILE_UNIT_RING_PRODUCER]),
      .queue2unit_instruction_ready(instruction_ready[TILE_UNIT_RING_PRODUCER]),
      .queue2unit_instruction_data(ring_producer_instruction),
      .unit2fence_idle(unit_idle[TILE_UNIT_RING_PRODUCER]),
      .unit2clock_enable(unit_enable[TILE_UNIT_RING_PRODUCER]),
      .fence2unit_restart(load_valid && load_mask[TILE_FLAG_RING_BUS_WRITE]),
      .flags2unit_values(flags),
      .unit2flags_produce(increments[3]),
      .unit2wide_read_row(wide_read_row[WideReadRing]),
      .wide2unit_read_data(wide_read_data[WideReadRing]),
      .unit2ring_row_valid(tile2ring_row_valid),
      .unit2ring_row_ready(tile2ring_row_ready),
      .unit2ring_row_data(tile2ring_row_data)
  );

  for (genvar c = 0; c < 2; c++) begin : gen_channel
    instruction_queue #(
        .Bits ($bits(ring_consumer_a_t)),
        .Depth(UnitQueue)
    ) channel_queue (
        .clk,
        .rst_n,
        .in_valid (queue2units_instruction_valid[TILE_UNIT_RING_CONSUMER_A+c]),
        .in_ready (queue2units_instruction_ready[TILE_UNIT_RING_CONSUMER_A+c]),
        .in_data  (queue2units_instruction_data[$bits(ring_consumer_a_t)-1:0]),
        .out_valid(instruction_valid[TILE_UNIT_RING_CONSUMER_A+c]),
        .out_ready(instruction_ready[TILE_UNIT_RING_CONSUMER_A+c]),
        .out_data (ring_consumer_instruction[c])
    );

    ring_consumer #(
        .Channel(c)
    ) receiver (
        .clk,
        .rst_n,
        .queue2unit_instruction_valid(instruction_valid[TILE_UNIT_RING_CONSUMER_A+c]),
        .queue2unit_instruction_ready(instruction_ready[TILE_UNIT_RING_CONSUMER_A+c]),
        .queue2unit_instruction_data(ring_consumer_instruction[c]),
        .unit2fence_idle(unit_idle[TILE_UNIT_RING_CONSUMER_A+c]),
        .unit2clock_enable(unit_enable[TILE_UNIT_RING_CONSUMER_A+c]),
        .flags2unit_values(flags),
        .unit2flags_produce(increments[4+c]),
        .ring2unit_row_valid(ring2tile_row_valid[c]),
        .ring2unit_row_ready(ring2tile_row_ready[c]),
        .ring2unit_row_data(ring2tile_row_data),
        .ring2unit_row_words(ring2tile_row_words),
        .unit2wide_write_valid(wide_write_valid[WideWriteRing+c]),
        .unit2wide_write_row(wide_write_row[WideWriteRing+c]),
        .unit2wide_write_count(wide_write_count[WideWriteRing+c]),
        .unit2wide_write_data(wide_write_data[WideWriteRing+c])
    );
  end

  narrow_to_wide packer (
      .clk,
      .rst_n,
      .queue2unit_instruction_valid(instruction_valid[TILE_UNIT_NARROW_TO_WIDE]),
      .queue2unit_instruction_ready(instruction_ready[TILE_UNIT_NARROW_TO_WIDE]),
      .queue2unit_instruction_data(narrow_to_wide_instruction),
      .queue2unit_base_valid(narrow_to_wide_base_valid),
      .queue2unit_base(narrow_to_wide_base),
      .unit2fence_idle(unit_idle[TILE_UNIT_NARROW_TO_WIDE]),
      .unit2clock_enable(unit_enable[TILE_UNIT_NARROW_TO_WIDE]),
      .fence2unit_restart(load_valid && load_mask[TILE_FLAG_NARROW_TO_WIDE_WRITE]),
      .flags2unit_values(flags),
      .unit2flags_produce(increments[6]),
      .unit2narrow_read_address(narrow_read_address[NarrowPacker]),
      .narrow2unit_read_data(narrow_read_data[NarrowPacker]),
      .unit2wide_write_valid(wide_write_valid[WideWritePacker]),
      .unit2wide_write_row(wide_write_row[WideWritePacker]),
      .unit2wide_write_count(wide_write_count[WideWritePacker]),
      .unit2wide_write_data(wide_write_data[WideWritePacker])
  );

  wide_to_narrow spreader (
      .clk,
      .rst_n,
      .queue2unit_instruction_valid(instruction_valid[TILE_UNIT_WIDE_TO_NARROW]),
      .queue2unit_instruction_ready(instruction_ready[TILE_UNIT_WIDE_TO_NARROW]),
      .queue2unit_instruction_data(wide_to_narrow_instruction),
      .unit2fence_idle(unit_idle[TILE_UNIT_WIDE_TO_NARROW]),
      .unit2clock_enable(unit_enable[TILE_UNIT_WIDE_TO_NARROW]),
      .flags2unit_values(flags),
      .unit2flags_produce(increments[MeshProducers+2*Links]),
      .unit2wide_read_row(wide_read_row[WideReadSpreader]),
      .wide2unit_read_data(wide_read_data[WideReadSpreader]),
      .unit2narrow_write_valid(narrow_write_valid[NarrowPacker]),
      .unit2narrow_write_address(narrow_write_address[NarrowPacker]),
      .unit2narrow_write_data(narrow_write_data[NarrowPacker]),
      .unit2scale_write_valid(scale_write_valid),
      .unit2scale_write_step(scale_write_step),
      .unit2scale_write_data(scale_write_data)
  );

  for (genvar k = 0; k < Links; k++) begin : gen_link
    instruction_queue #(
        .Bits ($bits(mesh_south_t)),
        .Depth(UnitQueue)
    ) link_queue (
        .clk,
        .rst_n,
        .in_valid (queue2units_instruction_valid[TILE_UNIT_MESH_SOUTH+k]),
        .in_ready (queue2units_instruction_ready[TILE_UNIT_MESH_SOUTH+k]),
        .in_data  (queue2units_instruction_data[$bits(mesh_south_t)-1:0]),
        .out_valid(instruction_valid[TILE_UNIT_MESH_SOUTH+k]),
        .out_ready(instruction_ready[TILE_UNIT_MESH_SOUTH+k]),
        .out_data (mesh_instruction[k])
    );

    mesh_bus #(
        .Link(k)
    ) link (
        .clk,
        .rst_n,
        .queue2unit_instruction_valid(instruction_valid[TILE_UNIT_MESH_SOUTH+k]),
        .queue2unit_instruction_ready(instruction_ready[TILE_UNIT_MESH_SOUTH+k]),
        .queue2unit_instruction_data(mesh_instruction[k]),
        .unit2fence_idle(unit_idle[TILE_UNIT_MESH_SOUTH+k]),
        .unit2clock_enable(unit_enable[TILE_UNIT_MESH_SOUTH+k]),
        .flags2unit_values(flags),
        .unit2flags_inbound(increments[MeshProducers+2*k]),
        .unit2flags_outbound(increments[MeshProducers+2*k+1]),
        .unit2narrow_read_address(narrow_read_address[NarrowMesh+k]),
        .narrow2unit_read_data(narrow_read_data[NarrowMesh+k]),
        .unit2narrow_write_valid(narrow_write_valid[NarrowMesh+k]),
        .unit2narrow_write_address(narrow_write_address[NarrowMesh+k]),
        .unit2narrow_write_data(narrow_write_data[NarrowMesh+k]),
        .unit2neighbour_word_valid(tile2mesh_word_valid[k]),
        .unit2neighbour_word_ready(tile2mesh_word_ready[k]),
        .unit2neighbour_word_data(tile2mesh_word_data[k]),
        .neighbour2unit_word_valid(mesh2tile_word_valid[k]),
        .neighbour2unit_word_ready(mesh2tile_word_ready[k]),
        .neighbour2unit_word_data(mesh2tile_word_data[k])
    );
  end

endmodule : tile
