// Checks the port of the registers: AXI4-Lite is AXI4 with bursts of one whole word and one identifier.

module axi_lite_check
  import dma_pkg::*;
(
    input logic clk,
    input logic rst_n,

    input logic [18:0] s_axil_awaddr,
    input logic [ 2:0] s_axil_awprot,
    input logic        s_axil_awvalid,
    input logic        s_axil_awready,
    input logic [63:0] s_axil_wdata,
    input logic [ 7:0] s_axil_wstrb,
    input logic        s_axil_wvalid,
    input logic        s_axil_wready,
    input logic [ 1:0] s_axil_bresp,
    input logic        s_axil_bvalid,
    input logic        s_axil_bready,
    input logic [18:0] s_axil_araddr,
    input logic [ 2:0] s_axil_arprot,
    input logic        s_axil_arvalid,
    input logic        s_axil_arready,
    input logic [63:0] s_axil_rdata,
    input logic [ 1:0] s_axil_rresp,
    input logic        s_axil_rvalid,
    input logic        s_axil_rready
);

  localparam int RegisterBytes = 8;

  axi_read #(.DataBytes(RegisterBytes)) read ();
  axi_write #(.DataBytes(RegisterBytes)) write ();
  assign write.awaddr = AddressBits'(s_axil_awaddr);
  assign write.awvalid = s_axil_awvalid;
  assign write.awready = s_axil_awready;
  assign write.wdata = s_axil_wdata;
  assign write.wstrb = s_axil_wstrb;
  assign write.wvalid = s_axil_wvalid;
  assign write.wready = s_axil_wready;
  assign write.bresp = s_axil_bresp;
  assign write.bvalid = s_axil_bvalid;
  assign write.bready = s_axil_bready;
  assign read.araddr = AddressBits'(s_axil_araddr);
  assign read.arvalid = s_axil_arvalid;
  assign read.arready = s_axil_arready;
  assign read.rdata = s_axil_rdata;
  assign read.rresp = s_axil_rresp;
  assign read.rvalid = s_axil_rvalid;
  assign read.rready = s_axil_rready;
  assign read.arid = '0;
  assign read.arlen = '0;
  assign read.arsize = 3'($clog2(RegisterBytes));
  assign read.arburst = 2'b01;
  assign read.rid = '0;
  assign read.rlast = 1'b1;
  assign write.awid = '0;
  assign write.awlen = '0;
  assign write.awsize = 3'($clog2(RegisterBytes));
  assign write.awburst = 2'b01;
  assign write.wlast = 1'b1;
  assign write.bid = '0;

  axi_check #(
      .DataBytes(RegisterBytes),
      .MaxReads (4),
      .MaxWrites(4)
  ) check (
      .clk,
      .rst_n,
      .read,
      .write
  );

  logic unused;
  assign unused = &{1'b0, s_axil_awprot, s_axil_arprot};

endmodule : axi_lite_check
