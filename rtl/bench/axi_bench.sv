// One AXI4 port (with `lite` AXI4-Lite), for tests of its checker: the test drives both sides. Beside it
// a single channel, which offers the data of writes.

module axi_bench
  import dma_pkg::*;
#(
    parameter int DataBytes = 8,
    parameter int LongestWait = 400,
    parameter int LongestAnswer = 300
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
    input logic                   taken,
    input logic                   ended
);

  axi_port_check #(
      .AddressBits  (AddressBits),
      .DataBytes    (DataBytes),
      .IdBits       (2),
      .MaxReads     (4),
      .MaxWrites    (4),
      .LongestWait  (LongestWait),
      .LongestAnswer(LongestAnswer)
  ) port (
      .*,
      .at_end (ended),
      .arvalid(arvalid && !lite),
      .rvalid (rvalid && !lite),
      .awvalid(awvalid && !lite),
      .wvalid (wvalid && !lite),
      .bvalid (bvalid && !lite)
  );

  axi_read #(.DataBytes(RegisterBytes)) lite_read ();
  axi_write #(.DataBytes(RegisterBytes)) lite_write ();
  assign lite_read.arready = arready;
  assign lite_read.rdata = rdata;
  assign lite_read.rresp = rresp;
  assign lite_read.rvalid = rvalid && lite;
  assign lite_read.rid = '0;
  assign lite_read.rlast = 1'b1;
  assign lite_write.awready = awready;
  assign lite_write.wready = wready;
  assign lite_write.bresp = bresp;
  assign lite_write.bvalid = bvalid && lite;
  assign lite_write.bid = '0;
  logic [72:0] unused;
  axi_lite lite_port (
      .clk,
      .rst_n,
      .s_axil_awaddr(awaddr[18:0]),
      .s_axil_awprot('0),
      .s_axil_awvalid(awvalid && lite),
      .s_axil_awready(unused[0]),
      .s_axil_wdata(wdata),
      .s_axil_wstrb(wstrb),
      .s_axil_wvalid(wvalid && lite),
      .s_axil_wready(unused[1]),
      .s_axil_bresp(unused[2+:2]),
      .s_axil_bvalid(unused[4]),
      .s_axil_bready(bready),
      .s_axil_araddr(araddr[18:0]),
      .s_axil_arprot('0),
      .s_axil_arvalid(arvalid && lite),
      .s_axil_arready(unused[5]),
      .s_axil_rdata(unused[6+:64]),
      .s_axil_rresp(unused[70+:2]),
      .s_axil_rvalid(unused[72]),
      .s_axil_rready(rready),
      .s_axil_read(lite_read),
      .s_axil_write(lite_write)
  );

  handshake_check #(
      .Width      (8 * DataBytes),
      .LongestWait(LongestWait)
  ) channel (
      .clk,
      .rst_n,
      .valid  (offered),
      .ready  (taken),
      .payload(wdata)
  );

endmodule : axi_bench
