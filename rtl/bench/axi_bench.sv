// One AXI4 port (with `lite` AXI4-Lite), for tests of its checker: the test drives both sides. Beside it
// a single channel, which offers the data of writes.

module axi_bench
  import dma_pkg::*;
#(
    parameter int DataBytes = 8
) (
    input logic clk,
    input logic rst_n,

    input logic                   arvalid,
    input logic                   arready,
    input logic [            1:0] arid,
    input logic [AddressBits-1:0] araddr,
    input logic [            7:0] arlen,
    input logic [            2:0] arsize,
    input logic [            1:0] arburst,
    input logic                   rvalid,
    input logic                   rready,
    input logic [            1:0] rid,
    input logic [8*DataBytes-1:0] rdata,
    input logic [            1:0] rresp,
    input logic                   rlast,
    input logic                   awvalid,
    input logic                   awready,
    input logic [            1:0] awid,
    input logic [AddressBits-1:0] awaddr,
    input logic [            7:0] awlen,
    input logic [            2:0] awsize,
    input logic [            1:0] awburst,
    input logic                   wvalid,
    input logic                   wready,
    input logic [8*DataBytes-1:0] wdata,
    input logic [  DataBytes-1:0] wstrb,
    input logic                   wlast,
    input logic                   bvalid,
    input logic                   bready,
    input logic [            1:0] bid,
    input logic [            1:0] bresp,
    input logic                   lite,
    input logic                   offered,
    input logic                   taken
);

  axi_read #(.DataBytes(DataBytes)) read ();
  axi_write #(.DataBytes(DataBytes)) write ();
  assign read.arvalid = arvalid && !lite;
  assign read.arready = arready;
  assign read.arid = arid;
  assign read.araddr = araddr;
  assign read.arlen = arlen;
  assign read.arsize = arsize;
  assign read.arburst = arburst;
  assign read.rvalid = rvalid && !lite;
  assign read.rready = rready;
  assign read.rid = rid;
  assign read.rdata = rdata;
  assign read.rresp = rresp;
  assign read.rlast = rlast;
  assign write.awvalid = awvalid && !lite;
  assign write.awready = awready;
  assign write.awid = awid;
  assign write.awaddr = awaddr;
  assign write.awlen = awlen;
  assign write.awsize = awsize;
  assign write.awburst = awburst;
  assign write.wvalid = wvalid && !lite;
  assign write.wready = wready;
  assign write.wdata = wdata;
  assign write.wstrb = wstrb;
  assign write.wlast = wlast;
  assign write.bvalid = bvalid && !lite;
  assign write.bready = bready;
  assign write.bid = bid;
  assign write.bresp = bresp;

  axi_check #(
      .DataBytes(DataBytes),
      .MaxReads (4),
      .MaxWrites(4)
  ) port (
      .clk,
      .rst_n,
      .read,
      .write
  );

  axi_lite_check lite_port (
      .clk,
      .rst_n,
      .s_axil_awaddr (awaddr[18:0]),
      .s_axil_awprot ('0),
      .s_axil_awvalid(awvalid && lite),
      .s_axil_awready(awready),
      .s_axil_wdata  (wdata),
      .s_axil_wstrb  (wstrb),
      .s_axil_wvalid (wvalid && lite),
      .s_axil_wready (wready),
      .s_axil_bresp  (bresp),
      .s_axil_bvalid (bvalid && lite),
      .s_axil_bready (bready),
      .s_axil_araddr (araddr[18:0]),
      .s_axil_arprot ('0),
      .s_axil_arvalid(arvalid && lite),
      .s_axil_arready(arready),
      .s_axil_rdata  (rdata),
      .s_axil_rresp  (rresp),
      .s_axil_rvalid (rvalid && lite),
      .s_axil_rready (rready)
  );

  handshake_check #(
      .Width(8 * DataBytes)
  ) channel (
      .clk,
      .rst_n,
      .valid  (offered),
      .ready  (taken),
      .payload(wdata)
  );

endmodule : axi_bench
