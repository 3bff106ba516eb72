// A host memory with pins, so that a test drives its port in ways that no DMA engine of ours does.

module memory_bench
  import dma_pkg::*;
#(
    parameter int DataBytes = harness_pkg::DataBytes,
    parameter int Latency = harness_pkg::MemoryLatency,
    parameter int Requests = harness_pkg::MemoryRequests,
    parameter int Unruly = 0  // 1: unruly_memory
) (
    input logic       clk,
    input logic       rst_n,
    input logic [4:0] stall,

    input  logic [            1:0] arid,
    input  logic [AddressBits-1:0] araddr,
    input  logic [            7:0] arlen,
    input  logic                   arvalid,
    output logic                   arready,
    output logic [            1:0] rid,
    output logic [8*DataBytes-1:0] rdata,
    output logic [            1:0] rresp,
    output logic                   rlast,
    output logic                   rvalid,
    input  logic                   rready,
    input  logic [            1:0] awid,
    input  logic [AddressBits-1:0] awaddr,
    input  logic                   awvalid,
    output logic                   awready,
    input  logic [8*DataBytes-1:0] wdata,
    input  logic [  DataBytes-1:0] wstrb,
    input  logic                   wlast,
    input  logic                   wvalid,
    output logic                   wready,
    output logic [            1:0] bid,
    output logic [            1:0] bresp,
    output logic                   bvalid,
    input  logic                   bready
);

  axi_read #(.DataBytes(DataBytes)) m_axi_read ();
  axi_write #(.DataBytes(DataBytes)) m_axi_write ();

  assign m_axi_read.arid = arid;
  assign m_axi_read.araddr = araddr;
  assign m_axi_read.arlen = arlen;
  assign m_axi_read.arsize = 3'($clog2(DataBytes));
  assign m_axi_read.arburst = 2'b01;
  assign m_axi_read.arvalid = arvalid;
  assign arready = m_axi_read.arready;
  assign rid = m_axi_read.rid;
  assign rdata = m_axi_read.rdata;
  assign rresp = m_axi_read.rresp;
  assign rlast = m_axi_read.rlast;
  assign rvalid = m_axi_read.rvalid;
  assign m_axi_read.rready = rready;

  assign m_axi_write.awid = awid;
  assign m_axi_write.awaddr = awaddr;
  assign m_axi_write.awlen = '0;  // which neither memory looks at
  assign m_axi_write.awsize = 3'($clog2(DataBytes));
  assign m_axi_write.awburst = 2'b01;
  assign m_axi_write.awvalid = awvalid;
  assign awready = m_axi_write.awready;
  assign m_axi_write.wdata = wdata;
  assign m_axi_write.wstrb = wstrb;
  assign m_axi_write.wlast = wlast;
  assign m_axi_write.wvalid = wvalid;
  assign wready = m_axi_write.wready;
  assign bid = m_axi_write.bid;
  assign bresp = m_axi_write.bresp;
  assign bvalid = m_axi_write.bvalid;
  assign m_axi_write.bready = bready;

  if (Unruly == 0) begin : gen_in_order
    host_memory #(
        .DataBytes(DataBytes),
        .Latency  (Latency),
        .Requests (Requests)
    ) memory (
        .*
    );
  end else begin : gen_unruly
    unruly_memory #(
        .DataBytes(DataBytes),
        .Requests (Requests)
    ) memory (
        .*
    );
    logic unused;
    assign unused = &{1'b0, stall};
  end

endmodule : memory_bench
