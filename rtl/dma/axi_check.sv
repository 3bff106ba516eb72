// Checks one AXI4 port of the harness, which is an interface: axi_port_check has the rules.

module axi_check
  import dma_pkg::*;
#(
    parameter int DataBytes = harness_pkg::DataBytes,
    parameter int MaxReads = 8,  // bursts that may wait for an answer
    parameter int MaxWrites = 8
) (
    input logic clk,
    input logic rst_n,
    axi_read.monitor read,
    axi_write.monitor write
);

`ifndef SYNTHESIS
  axi_port_check #(
      .AddressBits(AddressBits),
      .DataBytes  (DataBytes),
      .IdBits     (2),
      .MaxReads   (MaxReads),
      .MaxWrites  (MaxWrites)
  ) port (
      .clk,
      .rst_n,
      .at_end (1'b0),
      .arvalid(read.arvalid),
      .arready(read.arready),
      .arid   (read.arid),
      .araddr (read.araddr),
      .arlen  (read.arlen),
      .arsize (read.arsize),
      .arburst(read.arburst),
      .rvalid (read.rvalid),
      .rready (read.rready),
      .rid    (read.rid),
      .rdata  (read.rdata),
      .rresp  (read.rresp),
      .rlast  (read.rlast),
      .awvalid(write.awvalid),
      .awready(write.awready),
      .awid   (write.awid),
      .awaddr (write.awaddr),
      .awlen  (write.awlen),
      .awsize (write.awsize),
      .awburst(write.awburst),
      .wvalid (write.wvalid),
      .wready (write.wready),
      .wdata  (write.wdata),
      .wstrb  (write.wstrb),
      .wlast  (write.wlast),
      .bvalid (write.bvalid),
      .bready (write.bready),
      .bid    (write.bid),
      .bresp  (write.bresp)
  );
`endif

endmodule : axi_check
