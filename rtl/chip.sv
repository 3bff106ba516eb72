// The chip without the scalar core's own instructions: harness, the scalar core's units, ring bus
// and tiles. Whoever drives it hands over instructions and descriptors in program order.

module chip
  import dma_pkg::*;
  import isa_pkg::*;
  import scalar_pkg::handover_t;
  import tile_pkg::produce_t;
  import tile_pkg::ring_row_t;
  import tile_pkg::row_t;
#(
    parameter int Tiles = chip_pkg::Tiles,
    parameter int DataBytes = harness_pkg::DataBytes,
    parameter int RingCyclesPerRow = harness_pkg::RingRowCycles,
    localparam int CountBits = $clog2(DataBytes + 1)
) (
    input logic clk,
    input logic clk_memory,  // see tile.sv
    input logic rst_n,

    // Registers, for the host: bursts of one whole word and one identifier.
    axi_read.target  s_axil_read,
    axi_write.target s_axil_write,
    output logic [ 5:0] dma2host_interrupt,

    // The host's instruction queue: the scalar core asks for a chunk, whose bytes then come.
    output logic        queue2core_chunk_waits,
    input  logic        core2queue_chunk_valid,
    output logic        core2queue_chunk_ready,
    output logic [31:0] queue2core_chunk_size,

    // The scalar core.
    input  logic                          core2units_instruction_valid,
    output logic                          core2units_instruction_ready,
    input  handover_t                     core2units_instruction_data,
    input  logic                          core2dma_descriptor_valid,
    output logic                          core2dma_descriptor_ready,
    input  descriptor_t                   core2dma_descriptor_data,
    input  logic                          core2output_word_valid,
    output logic                          core2output_word_ready,
    input  logic        [           31:0] core2output_word_data,
    output logic                          dma2core_instruction_valid,
    input  logic                          dma2core_instruction_ready,
    output logic        [8*DataBytes-1:0] dma2core_instruction_data,
    output logic        [  CountBits-1:0] dma2core_instruction_count,

    // What the monitors watch. Idle: no unit of the scalar core, or no tile, has anything to do; the
    // instruction queue is not on the bus.
    output logic queue2monitor_idle,
    output logic [scalar_pkg::IdleBits-1:0] units2monitor_idle,
    output scalar_pkg::flags_t flags2monitor_values,
    output logic [Tiles-1:0] tiles2monitor_idle,
    output logic [Tiles-1:0][tile_pkg::Units-1:0] tiles2monitor_units,
    output tile_pkg::flags_t [Tiles-1:0] tiles2monitor_flags,
    output logic ring2monitor_row_valid,
    output logic dma2monitor_start_valid,
    output logic [31:0] dma2monitor_start_index,
    output outcome_e dma2monitor_start_outcome,
    output logic [DoneEvents-1:0] dma2monitor_done_valid,
    output logic [32*DoneEvents-1:0] dma2monitor_done_index,
    output logic dma2interrupts_raise_valid,
    output logic [1:0] dma2interrupts_raise_data,

    // Host memory.
    axi_read.initiator  m_axi_read,
    axi_write.initiator m_axi_write
);

  // Streams of the DMA engine.
  logic dma2input_activation_valid;
  logic dma2input_activation_ready;
  logic [8*DataBytes-1:0] dma2input_activation_data;
  logic [CountBits-1:0] dma2input_activation_count;
  logic dma2input_parameter_valid;
  logic dma2input_parameter_ready;
  logic [8*DataBytes-1:0] dma2input_parameter_data;
  logic [CountBits-1:0] dma2input_parameter_count;
  logic outfeed2dma_output_valid;
  logic outfeed2dma_output_ready;
  logic [8*DataBytes-1:0] outfeed2dma_output_data;
  logic [CountBits-1:0] outfeed2dma_output_count;

  logic bus2output_word_valid, bus2output_word_last, bus2output_answer_valid;
  logic [DataBytes-1:0] bus2output_word_strobes;

  host_interface #(.DataBytes(DataBytes)) host (.*);

  // Instructions.
  logic core2activation_instruction_valid;
  logic core2activation_instruction_ready;
  logic core2parameter_instruction_valid;
  logic core2parameter_instruction_ready;
  logic core2infeed_instruction_valid;
  logic core2infeed_instruction_ready;
  logic core2outfeed_instruction_valid;
  logic core2outfeed_instruction_ready;
  logic core2fence_instruction_valid;
  logic core2fence_instruction_ready;
  logic [Tiles-1:0] core2tiles_instruction_valid;
  logic [Tiles-1:0] core2tiles_instruction_ready;
  instruction_dispatch #(.Tiles(Tiles)) dispatch (.*);

  pop_input_t pop;
  ring_infeed_t infeed_instruction;
  ring_outfeed_t outfeed_instruction;
  scalar_fence_t fence_instruction;
  assign pop = pop_input_t'(core2units_instruction_data.bits[$bits(pop_input_t)-1:0]);
  assign infeed_instruction = ring_infeed_t'(core2units_instruction_data.bits[$bits(
      ring_infeed_t
  )-1:0]);
  assign outfeed_instruction = ring_outfeed_t'(core2units_instruction_data.bits[$bits(
      ring_outfeed_t
  )-1:0]);
  assign fence_instruction = scalar_fence_t'(core2units_instruction_data.bits[$bits(
      scalar_fence_t
  )-1:0]);

  // Sync flags of the scalar core.
  scalar_pkg::flags_t flags;
  produce_t activation_produce, parameter_produce, infeed_produce, outfeed_produce;
  produce_t [1:0] ring_produce;
  logic fence_load_valid;
  logic [scalar_pkg::Flags-1:0] fence_load_mask;
  logic [15:0] fence_load_value;
  sync_flags #(
      .Flags(scalar_pkg::Flags),
      .Producers(6)
  ) scalar_flags (
      .clk,
      .rst_n,
      .units2flags_produce({
        activation_produce, parameter_produce, infeed_produce, outfeed_produce, ring_produce
      }),
      .fence2flags_load_valid(fence_load_valid),
      .fence2flags_load_mask(fence_load_mask),
      .fence2flags_load_value(fence_load_value),
      .flags2units_values(flags)
  );
  assign flags2monitor_values = flags;

  // From the host into the buffers.
  localparam int ActivationBits = $clog2(scalar_pkg::ActivationUnits);
  localparam int ParameterBits = $clog2(scalar_pkg::ParameterUnits);
  logic activation_idle, parameter_idle;
  logic activation_write_valid, parameter_write_valid;
  logic [ActivationBits-1:0] activation_write_address, activation_read_address;
  logic [ParameterBits-1:0] parameter_write_address, parameter_read_address;
  logic [8*scalar_pkg::ActivationUnitBytes-1:0] activation_write_data, activation_read_data;
  logic [8*scalar_pkg::ParameterUnitBytes-1:0] parameter_write_data, parameter_read_data;
  input_pop #(
      .DataBytes(DataBytes),
      .UnitBytes(scalar_pkg::ActivationUnitBytes),
      .Units(scalar_pkg::ActivationUnits),
      .Flag(SCALAR_FLAG_AV_POP)
  ) activation_pop (
      .clk,
      .rst_n,
      .core2input_instruction_valid(core2activation_instruction_valid),
      .core2input_instruction_ready(core2activation_instruction_ready),
      .core2input_instruction_data(pop),
      .input2core_idle(activation_idle),
      .dma2input_unit_valid(dma2input_activation_valid),
      .dma2input_unit_ready(dma2input_activation_ready),
      .dma2input_unit_data(dma2input_activation_data),
      .dma2input_unit_count(dma2input_activation_count),
      .flags2input_values(flags),
      .input2flags_produce(activation_produce),
      .input2buffer_write_valid(activation_write_valid),
      .input2buffer_write_address(activation_write_address),
      .input2buffer_write_data(activation_write_data)
  );
  input_pop #(
      .DataBytes(DataBytes),
      .UnitBytes(scalar_pkg::ParameterUnitBytes),
      .Units(scalar_pkg::ParameterUnits),
      .Flag(SCALAR_FLAG_PARAMETER_POP)
  ) parameter_pop (
      .clk,
      .rst_n,
      .core2input_instruction_valid(core2parameter_instruction_valid),
      .core2input_instruction_ready(core2parameter_instruction_ready),
      .core2input_instruction_data(pop),
      .input2core_idle(parameter_idle),
      .dma2input_unit_valid(dma2input_parameter_valid),
      .dma2input_unit_ready(dma2input_parameter_ready),
      .dma2input_unit_data(dma2input_parameter_data),
      .dma2input_unit_count(dma2input_parameter_count),
      .flags2input_values(flags),
      .input2flags_produce(parameter_produce),
      .input2buffer_write_valid(parameter_write_valid),
      .input2buffer_write_address(parameter_write_address),
      .input2buffer_write_data(parameter_write_data)
  );
  input_buffer #(
      .UnitBytes(scalar_pkg::ActivationUnitBytes),
      .Units(scalar_pkg::ActivationUnits)
  ) activation_buffer (
      .clk,
      .input2buffer_write_valid  (activation_write_valid),
      .input2buffer_write_address(activation_write_address),
      .input2buffer_write_data   (activation_write_data),
      .infeed2buffer_read_address(activation_read_address),
      .buffer2infeed_read_data   (activation_read_data)
  );
  input_buffer #(
      .UnitBytes(scalar_pkg::ParameterUnitBytes),
      .Units(scalar_pkg::ParameterUnits)
  ) parameter_buffer (
      .clk,
      .input2buffer_write_valid  (parameter_write_valid),
      .input2buffer_write_address(parameter_write_address),
      .input2buffer_write_data   (parameter_write_data),
      .infeed2buffer_read_address(parameter_read_address),
      .buffer2infeed_read_data   (parameter_read_data)
  );

  // Between the buffers, scalar memory, the ring and the host.
  logic infeed_idle, outfeed_idle, output_idle;
  logic infeed2ring_row_valid;
  logic infeed2ring_row_ready;
  ring_row_t infeed2ring_row_data;
  logic infeed2ring_token_valid;
  logic infeed2ring_token_ready;
  logic infeed2ring_token_channel;
  logic ring2outfeed_row_valid;
  logic ring2outfeed_row_ready;
  row_t ring_row;
  logic outfeed2output_unit_valid;
  logic outfeed2output_unit_ready;
  logic [63:0] outfeed2output_unit_data;
  logic outfeed2memory_write_valid;
  logic [scalar_pkg::MemoryBits-1:0] outfeed2memory_write_address;
  logic [31:0] outfeed2memory_write_data;
  logic [scalar_pkg::MemoryBits-1:0] infeed2memory_read_address;
  logic [31:0] memory2infeed_read_data;

  ring_infeed infeed (
      .*,
      .core2infeed_instruction_data(infeed_instruction),
      .infeed2core_idle(infeed_idle),
      .flags2infeed_values(flags),
      .infeed2flags_produce(infeed_produce),
      .infeed2activations_read_address(activation_read_address),
      .activations2infeed_read_data(activation_read_data),
      .infeed2parameters_read_address(parameter_read_address),
      .parameters2infeed_read_data(parameter_read_data)
  );
  ring_outfeed outfeed (
      .*,
      .core2outfeed_instruction_data(outfeed_instruction),
      .outfeed2core_idle(outfeed_idle),
      .flags2outfeed_values(flags),
      .outfeed2flags_produce(outfeed_produce),
      .ring2outfeed_row_data(ring_row)
  );
  scalar_memory memory (.*);
  host_output #(
      .DataBytes(DataBytes)
  ) output_bytes (
      .*,
      .output2dma_byte_valid(outfeed2dma_output_valid),
      .output2dma_byte_ready(outfeed2dma_output_ready),
      .output2dma_byte_data(outfeed2dma_output_data),
      .output2dma_byte_count(outfeed2dma_output_count),
      .output2core_idle(output_idle)
  );

  // In the order of ScalarFence.wait_idle; output is delivered when the outfeed gives no more.
  logic [Tiles-1:0] tiles2fence_passed_valid;
  assign units2monitor_idle = {
    output_idle && outfeed_idle, outfeed_idle, infeed_idle, parameter_idle, activation_idle
  };
  scalar_fence #(
      .Tiles(Tiles)
  ) fence (
      .*,
      .core2fence_instruction_data(fence_instruction),
      .units2fence_idle(units2monitor_idle),
      .flags2fence_values(flags),
      .fence2flags_load_valid(fence_load_valid),
      .fence2flags_load_mask(fence_load_mask),
      .fence2flags_load_value(fence_load_value)
  );

  // Ring bus.
  logic [Tiles-1:0] tiles2ring_row_valid;
  logic [Tiles-1:0] tiles2ring_row_ready;
  ring_row_t tiles2ring_row_data[Tiles];
  logic [Tiles-1:0][1:0] ring2tiles_row_valid;
  logic [Tiles-1:0][1:0] ring2tiles_row_ready;
  logic [tile_pkg::CountBits-1:0] ring_words;
  logic [1:0] ring2tiles_token_valid;
  ring_bus #(
      .Tiles(Tiles),
      .CyclesPerRow(RingCyclesPerRow)
  ) ring (
      .*,
      .ring2tiles_row_data (ring_row),
      .ring2tiles_row_words(ring_words),
      .ring2flags_produce  (ring_produce)
  );
  assign ring2monitor_row_valid = ring2outfeed_row_valid || ring2tiles_row_valid != '0;

  // Tiles, and the mesh between them: a torus. Links to tiles that this build lacks take
  // nothing and give nothing.
  localparam int Rows = chip_pkg::GridRows;
  localparam int Columns = chip_pkg::GridColumns;
  logic [Tiles-1:0][tile_pkg::Links-1:0] sent_valid, sent_ready, received_valid, received_ready;
  logic [Tiles-1:0][tile_pkg::Links-1:0][31:0] sent_data, received_data;

  function automatic int neighbour(input int number, input int link);
    int row_number, column;
    row_number = number / Columns;
    column = number % Columns;
    case (link)
      0: row_number = (row_number + 1) % Rows;
      1: column = (column + Columns - 1) % Columns;
      2: row_number = (row_number + Rows - 1) % Rows;
      default: column = (column + 1) % Columns;
    endcase
    return Columns * row_number + column;
  endfunction

  for (genvar t = 0; t < Tiles; t++) begin : gen_tile
    for (genvar k = 0; k < tile_pkg::Links; k++) begin : gen_link
      // What arrives on a link comes from the neighbour on the opposite side.
      localparam int Source = neighbour(t, k ^ 2);
      if (Source < Tiles) begin : gen_present
        assign received_valid[t][k] = sent_valid[Source][k];
        assign received_data[t][k] = sent_data[Source][k];
        assign sent_ready[Source][k] = received_ready[t][k];
      end else begin : gen_absent
        assign received_valid[t][k] = 1'b0;
        assign received_data[t][k]  = '0;
      end
      if (neighbour(t, k) >= Tiles) begin : gen_edge
        assign sent_ready[t][k] = 1'b0;
      end
    end
  end
  logic unused;
  assign unused = &{1'b0, received_ready, sent_valid, sent_data};

`ifdef TILE_MODELS
  tile_models
`else
  tile_array
`endif
  #(
      .Tiles(Tiles)
  ) tiles (
      .*,
      .core2tiles_instruction_data(core2units_instruction_data.bits),
      .core2tiles_base_valid(core2units_instruction_data.base_valid),
      .core2tiles_base(core2units_instruction_data.base),
      .ring2tiles_row_data(ring_row),
      .ring2tiles_row_words(ring_words),
      .tiles2mesh_word_valid(sent_valid),
      .tiles2mesh_word_ready(sent_ready),
      .tiles2mesh_word_data(sent_data),
      .mesh2tiles_word_valid(received_valid),
      .mesh2tiles_word_ready(received_ready),
      .mesh2tiles_word_data(received_data)
  );

endmodule : chip
