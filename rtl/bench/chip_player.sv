// The chip with host memory in C++ (DPI), for whole programs. chip_player.cpp, a library that Python
// opens, or cocotb drives the host's registers, watches its interrupt lines, and drives the scalar
// core's side.

module chip_player
  import dma_pkg::*;
#(
    parameter int Tiles = chip_pkg::Tiles,
    parameter int DataBytes = harness_pkg::DataBytes,
    parameter int RingCyclesPerRow = harness_pkg::RingRowCycles,
    parameter int Unruly = 0,  // 1: memory does everything that AXI4 allows
    parameter int Latency = harness_pkg::MemoryLatency,
    localparam int CountBits = $clog2(DataBytes + 1)
) (
    input logic clk,
    input logic rst_n,

    // Registers, for the host.
    input  logic [18:0] s_axil_awaddr,
    input  logic [ 2:0] s_axil_awprot,
    input  logic        s_axil_awvalid,
    output logic        s_axil_awready,
    input  logic [63:0] s_axil_wdata,
    input  logic [ 7:0] s_axil_wstrb,
    input  logic        s_axil_wvalid,
    output logic        s_axil_wready,
    output logic [ 1:0] s_axil_bresp,
    output logic        s_axil_bvalid,
    input  logic        s_axil_bready,
    input  logic [18:0] s_axil_araddr,
    input  logic [ 2:0] s_axil_arprot,
    input  logic        s_axil_arvalid,
    output logic        s_axil_arready,
    output logic [63:0] s_axil_rdata,
    output logic [ 1:0] s_axil_rresp,
    output logic        s_axil_rvalid,
    input  logic        s_axil_rready,
    output logic [ 5:0] dma2host_interrupt,

    // The scalar core.
    output logic        queue2core_chunk_waits,
    input  logic        core2queue_chunk_valid,
    output logic        core2queue_chunk_ready,
    output logic [31:0] queue2core_chunk_size,

    input  logic                            core2units_instruction_valid,
    output logic                            core2units_instruction_ready,
    input  logic [     tile_pkg::Tiles-1:0] core2units_instruction_tiles,
    input  logic                            core2units_instruction_base_valid,
    input  logic [                    31:0] core2units_instruction_base,
    input  logic [isa_pkg::LongestBits-1:0] core2units_instruction_bits,

    input  logic        core2dma_descriptor_valid,
    output logic        core2dma_descriptor_ready,
    input  logic        core2dma_descriptor_fence,
    input  logic [ 3:0] core2dma_descriptor_tag,
    input  logic [31:0] core2dma_descriptor_size,
    input  logic [63:0] core2dma_descriptor_address,

    input  logic        core2output_word_valid,
    output logic        core2output_word_ready,
    input  logic [31:0] core2output_word_data,

    output logic                   dma2core_instruction_valid,
    output logic [8*DataBytes-1:0] dma2core_instruction_data,
    output logic [  CountBits-1:0] dma2core_instruction_count,

    // What the monitors watch.
    output logic                                                       queue2monitor_idle,
    output logic [scalar_pkg::IdleBits-1:0]                            units2monitor_idle,
    output logic                                                       units2monitor_all_idle,
    output logic [   scalar_pkg::Flags-1:0][               15:0]       flags2monitor_values,
    output logic [               Tiles-1:0]                            tiles2monitor_idle,
    output logic [               Tiles-1:0][tile_pkg::Units-1:0]       tiles2monitor_units,
    output logic [               Tiles-1:0][tile_pkg::Flags-1:0][15:0] tiles2monitor_flags,
    output logic                                                       ring2monitor_row_valid,
    output logic                                                       dma2monitor_start_valid,
    output logic [                    31:0]                            dma2monitor_start_index,
    output logic [                     2:0]                            dma2monitor_start_outcome,
    output logic [          DoneEvents-1:0]                            dma2monitor_done_valid,
    output logic [       32*DoneEvents-1:0]                            dma2monitor_done_index,
    output logic                                                       dma2interrupts_raise_valid,
    output logic [                     1:0]                            dma2interrupts_raise_data,
    output logic                                                       memory2monitor_error_valid
);

  // The registers' port.
  axi_read #(.DataBytes(RegisterBytes)) s_axil_read ();
  axi_write #(.DataBytes(RegisterBytes)) s_axil_write ();
  axi_lite s_axil (.*);

  // Host memory's bus.
  axi_read #(.DataBytes(DataBytes)) m_axi_read ();
  axi_write #(.DataBytes(DataBytes)) m_axi_write ();

  assign units2monitor_all_idle = units2monitor_idle == '1 && tiles2monitor_idle == '1;

  outcome_e outcome;
  assign dma2monitor_start_outcome = outcome;
  assign memory2monitor_error_valid = (m_axi_read.rvalid && m_axi_read.rready && m_axi_read.rresp[1]) ||
      (m_axi_write.bvalid && m_axi_write.bready && m_axi_write.bresp[1]);

  chip #(
      .Tiles(Tiles),
      .DataBytes(DataBytes),
      .RingCyclesPerRow(RingCyclesPerRow)
  ) chip (
      .*,
      .clk_memory(clk),
      .core2units_instruction_data({
        core2units_instruction_tiles,
        core2units_instruction_base_valid,
        core2units_instruction_base,
        core2units_instruction_bits
      }),
      .core2dma_descriptor_data({
        core2dma_descriptor_fence,
        core2dma_descriptor_tag,
        core2dma_descriptor_size,
        core2dma_descriptor_address
      }),
      .dma2core_instruction_ready(1'b1),
      .dma2monitor_start_outcome(outcome)
  );

  // The instruction queue has one access at a time beside the DMA engine's.
  axi_check #(
      .DataBytes(DataBytes),
      .MaxReads (harness_pkg::OutstandingReads + 1),
      .MaxWrites(harness_pkg::OutstandingWrites + 1)
  ) check_m_axi (
      .clk,
      .rst_n,
      .read (m_axi_read),
      .write(m_axi_write)
  );

  // For waves: a signal of its own for each unit and each flag.
  /* verilator lint_off UNUSEDSIGNAL */
  for (genvar t = 0; t < Tiles; t++) begin : gen_tile_view
    logic idle[tile_pkg::Units];
    logic [15:0] flags[tile_pkg::Flags];
    for (genvar k = 0; k < tile_pkg::Units; k++) begin : gen_unit
      assign idle[k] = tiles2monitor_units[t][k];
    end
    for (genvar k = 0; k < tile_pkg::Flags; k++) begin : gen_flag
      assign flags[k] = tiles2monitor_flags[t][k];
    end
  end
  logic [15:0] scalar_flags[scalar_pkg::Flags];
  for (genvar k = 0; k < scalar_pkg::Flags; k++) begin : gen_scalar_flag
    assign scalar_flags[k] = flags2monitor_values[k];
  end
  /* verilator lint_on UNUSEDSIGNAL */

  if (Unruly != 0) begin : gen_unruly
    unruly_memory #(.DataBytes(DataBytes)) memory (.*);
  end else begin : gen_in_order
    host_memory #(
        .DataBytes(DataBytes),
        .Latency  (Latency)
    ) memory (
        .*,
        .stall('0)
    );
  end

endmodule : chip_player
