// The host interface with flat ports: cocotb or harness_player.cpp drives the scalar core's and the units'
// side. Whoever drives it is host memory, or that is in C++ (DPI).

module harness
  import dma_pkg::*;
#(
    parameter int DataBytes = harness_pkg::DataBytes,
    parameter int MaxBurst = harness_pkg::BurstWords,
    parameter int BufferBeats = harness_pkg::BufferWords,
    parameter int FifoDepth = harness_pkg::FifoDepth,
    parameter int QueueDepth = harness_pkg::QueueDepth,
    parameter int OutstandingReads = harness_pkg::OutstandingReads,
    parameter int OutstandingWrites = harness_pkg::OutstandingWrites,
    parameter int Memory = 0,  // 0: the ports; 1: host_memory; 2: unruly_memory
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
    input  logic        core2dma_descriptor_valid,
    output logic        core2dma_descriptor_ready,
    input  logic        core2dma_descriptor_fence,
    input  logic [ 3:0] core2dma_descriptor_tag,
    input  logic [31:0] core2dma_descriptor_size,
    input  logic [63:0] core2dma_descriptor_address,
    output logic        queue2core_chunk_waits,
    input  logic        core2queue_chunk_valid,
    output logic        core2queue_chunk_ready,
    output logic [31:0] queue2core_chunk_size,

    // Byte streams.
    output logic                   dma2core_instruction_valid,
    input  logic                   dma2core_instruction_ready,
    output logic [8*DataBytes-1:0] dma2core_instruction_data,
    output logic [  CountBits-1:0] dma2core_instruction_count,
    output logic                   dma2input_activation_valid,
    input  logic                   dma2input_activation_ready,
    output logic [8*DataBytes-1:0] dma2input_activation_data,
    output logic [  CountBits-1:0] dma2input_activation_count,
    output logic                   dma2input_parameter_valid,
    input  logic                   dma2input_parameter_ready,
    output logic [8*DataBytes-1:0] dma2input_parameter_data,
    output logic [  CountBits-1:0] dma2input_parameter_count,
    input  logic                   outfeed2dma_output_valid,
    output logic                   outfeed2dma_output_ready,
    input  logic [8*DataBytes-1:0] outfeed2dma_output_data,
    input  logic [  CountBits-1:0] outfeed2dma_output_count,

    output logic                 bus2output_word_valid,
    output logic [DataBytes-1:0] bus2output_word_strobes,
    output logic                 bus2output_word_last,
    output logic                 bus2output_answer_valid,

    // What the monitors watch.
    output logic                         dma2monitor_start_valid,
    output logic     [             31:0] dma2monitor_start_index,
    output outcome_e                     dma2monitor_start_outcome,
    output logic     [   DoneEvents-1:0] dma2monitor_done_valid,
    output logic     [32*DoneEvents-1:0] dma2monitor_done_index,
    output logic                         dma2interrupts_raise_valid,
    output logic     [              1:0] dma2interrupts_raise_data,
    output logic                         queue2monitor_idle,

    // Host memory: what there is in C++ drives the bus in place of the inputs, and is held back.
    input  logic [            4:0] memory_stall,
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

  host_interface #(
      .DataBytes(DataBytes),
      .MaxBurst(MaxBurst),
      .BufferBeats(BufferBeats),
      .FifoDepth(FifoDepth),
      .QueueDepth(QueueDepth),
      .OutstandingReads(OutstandingReads),
      .OutstandingWrites(OutstandingWrites)
  ) host (
      .*,
      .core2dma_descriptor_data({
        core2dma_descriptor_fence,
        core2dma_descriptor_tag,
        core2dma_descriptor_size,
        core2dma_descriptor_address
      })
  );

  // The instruction queue has one access at a time beside the DMA engine's.
  axi_check #(
      .DataBytes(DataBytes),
      .MaxReads (OutstandingReads + 1),
      .MaxWrites(OutstandingWrites + 1)
  ) check_m_axi (
      .clk,
      .rst_n,
      .read (m_axi_read),
      .write(m_axi_write)
  );

  if (Memory == 0) begin : gen_ports
    assign m_axi_read.arready = m_axi_arready;
    assign m_axi_read.rvalid = m_axi_rvalid;
    assign m_axi_read.rid = m_axi_rid;
    assign m_axi_read.rdata = m_axi_rdata;
    assign m_axi_read.rresp = m_axi_rresp;
    assign m_axi_read.rlast = m_axi_rlast;
    assign m_axi_write.awready = m_axi_awready;
    assign m_axi_write.wready = m_axi_wready;
    assign m_axi_write.bvalid = m_axi_bvalid;
    assign m_axi_write.bid = m_axi_bid;
    assign m_axi_write.bresp = m_axi_bresp;
    logic unused;
    assign unused = &{1'b0, memory_stall};
  end else begin : gen_memory
    if (Memory == 1) begin : gen_in_order
      host_memory #(
          .DataBytes(DataBytes),
          .Latency  (Latency)
      ) memory (
          .*,
          .stall(memory_stall)
      );
    end else begin : gen_unruly
      unruly_memory #(.DataBytes(DataBytes)) memory (.*);
    end
    logic unused;
    assign unused = &{1'b0, memory_stall, m_axi_arready, m_axi_rvalid, m_axi_rid, m_axi_rdata, m_axi_rresp, m_axi_rlast, m_axi_awready, m_axi_wready, m_axi_bvalid, m_axi_bid, m_axi_bresp};
  end

endmodule : harness
