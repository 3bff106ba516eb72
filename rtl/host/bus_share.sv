// Puts the accesses of the instruction queue beside those of the DMA engine on one bus to host memory.
// The DMA engine goes first; a request that is on the bus stays there until it is taken, and the words
// of a write stay together with it. Answers are told apart by their identifiers.

module bus_share
  import dma_pkg::*;
(
    input logic clk,
    input logic rst_n,

    axi_read.target     dma_read,
    axi_write.target    dma_write,
    axi_read.target     queue_read,
    axi_write.target    queue_write,
    axi_read.initiator  m_axi_read,
    axi_write.initiator m_axi_write
);

  // Reads.
  logic queue_asks, queue_asked;
  assign queue_asks = queue_read.arvalid && (queue_asked || !dma_read.arvalid);
  always_ff @(posedge clk) queue_asked <= rst_n && queue_asks && !m_axi_read.arready;

  assign m_axi_read.arvalid = queue_asks || dma_read.arvalid;
  assign m_axi_read.arid = queue_asks ? queue_read.arid : dma_read.arid;
  assign m_axi_read.araddr = queue_asks ? queue_read.araddr : dma_read.araddr;
  assign m_axi_read.arlen = queue_asks ? queue_read.arlen : dma_read.arlen;
  assign m_axi_read.arsize = dma_read.arsize;
  assign m_axi_read.arburst = dma_read.arburst;
  assign dma_read.arready = m_axi_read.arready && !queue_asks;
  assign queue_read.arready = m_axi_read.arready && queue_asks;

  logic for_queue;
  assign for_queue = m_axi_read.rid == 2'(ReadStreams);
  assign m_axi_read.rready = for_queue ? queue_read.rready : dma_read.rready;
  assign dma_read.rvalid = m_axi_read.rvalid && !for_queue;
  assign dma_read.rid = m_axi_read.rid;
  assign dma_read.rdata = m_axi_read.rdata;
  assign dma_read.rresp = m_axi_read.rresp;
  assign dma_read.rlast = m_axi_read.rlast;
  assign queue_read.rvalid = m_axi_read.rvalid && for_queue;
  assign queue_read.rid = m_axi_read.rid;
  assign queue_read.rdata = m_axi_read.rdata;
  assign queue_read.rresp = m_axi_read.rresp;
  assign queue_read.rlast = m_axi_read.rlast;

  // Writes: the queue has the bus until its address and its last word have been taken, in any order.
  logic queue_writes, queue_wrote, address_taken, words_taken, took_address, took_words;
  assign queue_writes = queue_wrote ||
      (queue_write.awvalid && !dma_write.awvalid && !dma_write.wvalid);
  assign address_taken = took_address || (m_axi_write.awvalid && m_axi_write.awready);
  assign words_taken = took_words ||
      (m_axi_write.wvalid && m_axi_write.wready && m_axi_write.wlast);
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      queue_wrote  <= 1'b0;
      took_address <= 1'b0;
      took_words   <= 1'b0;
    end else begin
      queue_wrote  <= queue_writes && !(address_taken && words_taken);
      took_address <= queue_writes && address_taken && !words_taken;
      took_words   <= queue_writes && words_taken && !address_taken;
    end
  end

  assign m_axi_write.awvalid = queue_writes ? queue_write.awvalid : dma_write.awvalid;
  assign m_axi_write.awid = queue_writes ? queue_write.awid : dma_write.awid;
  assign m_axi_write.awaddr = queue_writes ? queue_write.awaddr : dma_write.awaddr;
  assign m_axi_write.awlen = queue_writes ? queue_write.awlen : dma_write.awlen;
  assign m_axi_write.awsize = dma_write.awsize;
  assign m_axi_write.awburst = dma_write.awburst;
  assign m_axi_write.wvalid = queue_writes ? queue_write.wvalid : dma_write.wvalid;
  assign m_axi_write.wdata = queue_writes ? queue_write.wdata : dma_write.wdata;
  assign m_axi_write.wstrb = queue_writes ? queue_write.wstrb : dma_write.wstrb;
  assign m_axi_write.wlast = queue_writes ? queue_write.wlast : dma_write.wlast;
  assign dma_write.awready = m_axi_write.awready && !queue_writes;
  assign dma_write.wready = m_axi_write.wready && !queue_writes;
  assign queue_write.awready = m_axi_write.awready && queue_writes;
  assign queue_write.wready = m_axi_write.wready && queue_writes;

  logic answers_queue;
  assign answers_queue = m_axi_write.bid != 2'(isa_pkg::DESCRIPTOR_TAG_OUTPUT);
  assign m_axi_write.bready = answers_queue ? queue_write.bready : dma_write.bready;
  assign dma_write.bvalid = m_axi_write.bvalid && !answers_queue;
  assign dma_write.bid = m_axi_write.bid;
  assign dma_write.bresp = m_axi_write.bresp;
  assign queue_write.bvalid = m_axi_write.bvalid && answers_queue;
  assign queue_write.bid = m_axi_write.bid;
  assign queue_write.bresp = m_axi_write.bresp;

endmodule : bus_share
