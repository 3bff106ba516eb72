// The DMA engine with flat ports, for the comparison with its netlist (tests/formal/synthesis.py).

module dma_engine_flat
  import dma_pkg::*;
#(
    parameter int DataBytes = 4,
    parameter int MaxBurst = 4,
    parameter int BufferBeats = 8,
    parameter int FifoDepth = 2,
    parameter int QueueDepth = 2,
    localparam int CountBits = $clog2(DataBytes + 1)
) (
    input logic clk,
    input logic rst_n,

    input  logic               pause,
    output logic               paused,
    input  logic               queue_busy,
    input  logic        [63:0] burst_limiter,
    input  logic        [63:0] window_base,
    input  logic        [63:0] window_size,
    output dma_errors_t        errors,
    output logic        [63:0] fault_address,
    output logic        [31:0] error_descriptor,
    output logic        [31:0] completed,

    input  logic        core2dma_descriptor_valid,
    output logic        core2dma_descriptor_ready,
    input  descriptor_t core2dma_descriptor_data,

    output logic [ReadStreams-1:0]                  stream_valid,
    input  logic [ReadStreams-1:0]                  stream_ready,
    output logic [ReadStreams-1:0][8*DataBytes-1:0] stream_data,
    output logic [ReadStreams-1:0][  CountBits-1:0] stream_count,

    input  logic                   outfeed2dma_output_valid,
    output logic                   outfeed2dma_output_ready,
    input  logic [8*DataBytes-1:0] outfeed2dma_output_data,
    input  logic [  CountBits-1:0] outfeed2dma_output_count,

    output logic       dma2interrupts_raise_valid,
    output logic [1:0] dma2interrupts_raise_data,
    output logic       dma2interrupts_chunk_fetched,
    output logic       dma2interrupts_chunk_done,

    output logic                            dma2monitor_start_valid,
    output logic     [          31:0]       dma2monitor_start_index,
    output outcome_e                        dma2monitor_start_outcome,
    output logic     [DoneEvents-1:0]       dma2monitor_done_valid,
    output logic     [DoneEvents-1:0][31:0] dma2monitor_done_index,

    output logic                   arvalid,
    output logic [            1:0] arid,
    output logic [AddressBits-1:0] araddr,
    output logic [            7:0] arlen,
    input  logic                   arready,
    input  logic                   rvalid,
    output logic                   rready,
    input  logic                   rlast,
    input  logic [            1:0] rid,
    input  logic [8*DataBytes-1:0] rdata,
    input  logic [            1:0] rresp,
    output logic                   awvalid,
    output logic [AddressBits-1:0] awaddr,
    output logic [            7:0] awlen,
    input  logic                   awready,
    output logic                   wvalid,
    output logic [8*DataBytes-1:0] wdata,
    output logic [  DataBytes-1:0] wstrb,
    output logic                   wlast,
    input  logic                   wready,
    input  logic                   bvalid,
    output logic                   bready,
    input  logic [            1:0] bid,
    input  logic [            1:0] bresp
);

  axi_read #(.DataBytes(DataBytes)) m_axi_read ();
  assign arvalid = m_axi_read.arvalid;
  assign arid = m_axi_read.arid;
  assign araddr = m_axi_read.araddr;
  assign arlen = m_axi_read.arlen;
  assign rready = m_axi_read.rready;
  assign m_axi_read.arready = arready;
  assign m_axi_read.rvalid = rvalid;
  assign m_axi_read.rlast = rlast;
  assign m_axi_read.rid = rid;
  assign m_axi_read.rdata = rdata;
  assign m_axi_read.rresp = rresp;

  axi_write #(.DataBytes(DataBytes)) m_axi_write ();
  assign awvalid = m_axi_write.awvalid;
  assign awaddr = m_axi_write.awaddr;
  assign awlen = m_axi_write.awlen;
  assign wvalid = m_axi_write.wvalid;
  assign wdata = m_axi_write.wdata;
  assign wstrb = m_axi_write.wstrb;
  assign wlast = m_axi_write.wlast;
  assign bready = m_axi_write.bready;
  assign m_axi_write.awready = awready;
  assign m_axi_write.wready = wready;
  assign m_axi_write.bvalid = bvalid;
  assign m_axi_write.bid = bid;
  assign m_axi_write.bresp = bresp;

  dma_engine #(
      .DataBytes(DataBytes),
      .MaxBurst(MaxBurst),
      .BufferBeats(BufferBeats),
      .FifoDepth(FifoDepth),
      .QueueDepth(QueueDepth)
  ) engine (
      .*
  );

endmodule : dma_engine_flat
