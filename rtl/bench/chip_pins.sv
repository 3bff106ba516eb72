// The chip with pins in the place of interfaces and structures: for plain Verilog, and for tools and
// test benches that know no others.

module chip_pins
  import dma_pkg::*;
#(
    parameter int Tiles = chip_pkg::Tiles,
    parameter int DataBytes = harness_pkg::DataBytes,
    parameter int RingCyclesPerRow = harness_pkg::RingRowCycles,
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

    // Host memory.
    output logic [            1:0] m_axi_arid,
    output logic [AddressBits-1:0] m_axi_araddr,
    output logic [            7:0] m_axi_arlen,
    output logic [            2:0] m_axi_arsize,
    output logic [            1:0] m_axi_arburst,
    output logic                   m_axi_arvalid,
    input  logic                   m_axi_arready,
    input  logic [            1:0] m_axi_rid,
    input  logic [8*DataBytes-1:0] m_axi_rdata,
    input  logic [            1:0] m_axi_rresp,
    input  logic                   m_axi_rlast,
    input  logic                   m_axi_rvalid,
    output logic                   m_axi_rready,
    output logic [            1:0] m_axi_awid,
    output logic [AddressBits-1:0] m_axi_awaddr,
    output logic [            7:0] m_axi_awlen,
    output logic [            2:0] m_axi_awsize,
    output logic [            1:0] m_axi_awburst,
    output logic                   m_axi_awvalid,
    input  logic                   m_axi_awready,
    output logic [8*DataBytes-1:0] m_axi_wdata,
    output logic [  DataBytes-1:0] m_axi_wstrb,
    output logic                   m_axi_wlast,
    output logic                   m_axi_wvalid,
    input  logic                   m_axi_wready,
    input  logic [            1:0] m_axi_bid,
    input  logic [            1:0] m_axi_bresp,
    input  logic                   m_axi_bvalid,
    output logic                   m_axi_bready
);

  // The registers' port.
  axi_read #(.DataBytes(RegisterBytes)) s_axil_read ();
  axi_write #(.DataBytes(RegisterBytes)) s_axil_write ();
  axi_lite s_axil (.*);

  // Host memory's bus.
  axi_read #(.DataBytes(DataBytes)) m_axi_read ();
  assign m_axi_arvalid = m_axi_read.arvalid;
  assign m_axi_arid = m_axi_read.arid;
  assign m_axi_araddr = m_axi_read.araddr;
  assign m_axi_arlen = m_axi_read.arlen;
  assign m_axi_arsize = m_axi_read.arsize;
  assign m_axi_arburst = m_axi_read.arburst;
  assign m_axi_rready = m_axi_read.rready;

  axi_write #(.DataBytes(DataBytes)) m_axi_write ();
  assign m_axi_awvalid = m_axi_write.awvalid;
  assign m_axi_awid = m_axi_write.awid;
  assign m_axi_awaddr = m_axi_write.awaddr;
  assign m_axi_awlen = m_axi_write.awlen;
  assign m_axi_awsize = m_axi_write.awsize;
  assign m_axi_awburst = m_axi_write.awburst;
  assign m_axi_wvalid = m_axi_write.wvalid;
  assign m_axi_wdata = m_axi_write.wdata;
  assign m_axi_wstrb = m_axi_write.wstrb;
  assign m_axi_wlast = m_axi_write.wlast;
  assign m_axi_bready = m_axi_write.bready;

  assign m_axi_read.arready = m_axi_arready;
  assign m_axi_read.rid = m_axi_rid;
  assign m_axi_read.rdata = m_axi_rdata;
  assign m_axi_read.rresp = m_axi_rresp;
  assign m_axi_read.rlast = m_axi_rlast;
  assign m_axi_read.rvalid = m_axi_rvalid;
  assign m_axi_write.awready = m_axi_awready;
  assign m_axi_write.wready = m_axi_wready;
  assign m_axi_write.bid = m_axi_bid;
  assign m_axi_write.bresp = m_axi_bresp;
  assign m_axi_write.bvalid = m_axi_bvalid;

  outcome_e outcome;
  assign dma2monitor_start_outcome = outcome;

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

endmodule : chip_pins
