// The read channels of AXI4, between the DMA engine and host memory.

interface axi_read
  import dma_pkg::*;
#(
    parameter int DataBytes = harness_pkg::DataBytes
);

  logic arvalid, arready;
  logic [1:0] arid;
  logic [AddressBits-1:0] araddr;
  logic [7:0] arlen;
  logic [2:0] arsize;
  logic [1:0] arburst;

  logic rvalid, rready, rlast;
  logic [1:0] rid;
  logic [8*DataBytes-1:0] rdata;
  logic [1:0] rresp;

  modport initiator(
      output arvalid, arid, araddr, arlen, arsize, arburst, rready,
      input arready, rvalid, rid, rdata, rresp, rlast
  );
  modport target(
      input arvalid, arid, araddr, arlen, arsize, arburst, rready,
      output arready, rvalid, rid, rdata, rresp, rlast
  );
  modport monitor(
      input arvalid, arid, araddr, arlen, arsize, arburst, rready,
      input arready, rvalid, rid, rdata, rresp, rlast
  );

endinterface : axi_read
