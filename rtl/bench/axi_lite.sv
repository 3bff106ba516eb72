// The registers' port with the pins of AXI4-Lite, which is AXI4 with bursts of one whole word and one
// identifier; and its checker.

module axi_lite
  import dma_pkg::*;
(
    input logic clk,
    input logic rst_n,

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

    axi_read  s_axil_read,
    axi_write s_axil_write
);

  assign s_axil_write.awaddr = AddressBits'(s_axil_awaddr);
  assign s_axil_write.awvalid = s_axil_awvalid;
  assign s_axil_awready = s_axil_write.awready;
  assign s_axil_write.wdata = s_axil_wdata;
  assign s_axil_write.wstrb = s_axil_wstrb;
  assign s_axil_write.wvalid = s_axil_wvalid;
  assign s_axil_wready = s_axil_write.wready;
  assign s_axil_bresp = s_axil_write.bresp;
  assign s_axil_bvalid = s_axil_write.bvalid;
  assign s_axil_write.bready = s_axil_bready;
  assign s_axil_read.araddr = AddressBits'(s_axil_araddr);
  assign s_axil_read.arvalid = s_axil_arvalid;
  assign s_axil_arready = s_axil_read.arready;
  assign s_axil_rdata = s_axil_read.rdata;
  assign s_axil_rresp = s_axil_read.rresp;
  assign s_axil_rvalid = s_axil_read.rvalid;
  assign s_axil_read.rready = s_axil_rready;

  assign s_axil_write.awid = '0;
  assign s_axil_write.awlen = '0;
  assign s_axil_write.awsize = 3'($clog2(RegisterBytes));
  assign s_axil_write.awburst = 2'b01;
  assign s_axil_write.wlast = 1'b1;
  assign s_axil_read.arid = '0;
  assign s_axil_read.arlen = '0;
  assign s_axil_read.arsize = 3'($clog2(RegisterBytes));
  assign s_axil_read.arburst = 2'b01;

  axi_check #(
      .DataBytes(RegisterBytes),
      .MaxReads (4),
      .MaxWrites(4)
  ) check (
      .clk,
      .rst_n,
      .read (s_axil_read),
      .write(s_axil_write)
  );

  logic unused;
  assign unused = &{1'b0, s_axil_awprot, s_axil_arprot};

endmodule : axi_lite
