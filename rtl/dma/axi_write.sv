// The write channels of AXI4, between the DMA engine and host memory.

interface axi_write
  import dma_pkg::*;
#(
    parameter int DataBytes = harness_pkg::DataBytes
);

  logic awvalid, awready;
  logic [1:0] awid;
  logic [AddressBits-1:0] awaddr;
  logic [7:0] awlen;
  logic [2:0] awsize;
  logic [1:0] awburst;

  logic wvalid, wready, wlast;
  logic [8*DataBytes-1:0] wdata;
  logic [  DataBytes-1:0] wstrb;

  logic bvalid, bready;
  logic [1:0] bid;
  logic [1:0] bresp;

  modport initiator(
      output awvalid, awid, awaddr, awlen, awsize, awburst, wvalid, wdata, wstrb, wlast, bready,
      input awready, wready, bvalid, bid, bresp
  );
  modport target(
      input awvalid, awid, awaddr, awlen, awsize, awburst, wvalid, wdata, wstrb, wlast, bready,
      output awready, wready, bvalid, bid, bresp
  );
  modport monitor(
      input awvalid, awid, awaddr, awlen, awsize, awburst, wvalid, wdata, wstrb, wlast, bready,
      input awready, wready, bvalid, bid, bresp
  );

endinterface : axi_write
