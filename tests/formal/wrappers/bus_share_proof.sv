// bus_share: two that keep the rules of a channel keep them together, the words of a write follow its
// address before another's, and nothing is lost, doubled, or given to the other.

module bus_share_proof
  import dma_pkg::*;
(
    input logic clk,
    input logic rst_n,
    // What each offers, until it is taken, and when.
    input logic [1:0] asks_read,
    input logic [1:0][AddressBits-1:0] read_address,
    input logic [1:0] asks_write,
    input logic [1:0][AddressBits-1:0] write_address,
    input logic [1:0] has_word,
    input logic [1:0][7:0] word,
    input logic [1:0] last_word,
    input logic [1:0] takes_read,
    input logic [1:0] takes_answer,
    input logic arready,
    input logic awready,
    input logic wready,
    input logic rvalid,
    input logic [1:0] rid,
    input logic bvalid,
    input logic [1:0] bid
);

  localparam int DataBytes = harness_pkg::DataBytes;

  axi_read dma_read ();
  axi_write dma_write ();
  axi_read queue_read ();
  axi_write queue_write ();
  axi_read m_axi_read ();
  axi_write m_axi_write ();
  bus_share share (.*);
  resets_first resets (.*);

  // Both as the rules want them, and as they are: the DMA engine offers a burst's address and words
  // together, and has all words; the queue offers its words with the address or later, and may pause.
  logic [1:0] arvalid, awvalid, wvalid, wlast, writing;
  logic [1:0] ar_taken, aw_taken, w_taken;
  logic [1:0][AddressBits-1:0] araddr, awaddr;
  logic [1:0][7:0] wdata;
  for (genvar i = 0; i < 2; i++) begin : g_side
    always_ff @(posedge clk) begin
      if (!rst_n) begin
        arvalid[i] <= 1'b0;
        awvalid[i] <= 1'b0;
        wvalid[i]  <= 1'b0;
        wlast[i]   <= 1'b0;
        writing[i] <= 1'b0;
      end else begin
        if (!arvalid[i] || ar_taken[i]) begin
          arvalid[i] <= asks_read[i];
          araddr[i]  <= read_address[i];
        end
        if (!writing[i] && !awvalid[i]) begin
          awvalid[i] <= asks_write[i];
          writing[i] <= asks_write[i];
          awaddr[i]  <= write_address[i];
          wvalid[i]  <= asks_write[i] && (i == 0 || has_word[i]);
          wdata[i]   <= word[i];
          wlast[i]   <= last_word[i];
        end else begin
          if (aw_taken[i]) awvalid[i] <= 1'b0;
          if (w_taken[i] && wlast[i]) begin
            writing[i] <= 1'b0;
            wvalid[i]  <= 1'b0;
          end else if (writing[i] && (!wvalid[i] || w_taken[i])) begin
            wvalid[i] <= i == 0 || has_word[i];
            wdata[i]  <= word[i];
            wlast[i]  <= last_word[i];
          end
        end
      end
    end
  end

  assign dma_read.arvalid = arvalid[0];
  assign dma_read.arid = 2'd1;
  assign dma_read.araddr = araddr[0];
  assign dma_read.arlen = 8'd3;
  assign dma_read.arsize = 3'd3;
  assign dma_read.arburst = 2'b01;
  assign dma_read.rready = takes_read[0];
  assign queue_read.arvalid = arvalid[1];
  assign queue_read.arid = 2'(ReadStreams);
  assign queue_read.araddr = araddr[1];
  assign queue_read.arlen = 8'd1;
  assign queue_read.arsize = 3'd3;
  assign queue_read.arburst = 2'b01;
  assign queue_read.rready = takes_read[1];
  assign dma_write.awvalid = awvalid[0];
  assign dma_write.awid = 2'(isa_pkg::DESCRIPTOR_TAG_OUTPUT);
  assign dma_write.awaddr = awaddr[0];
  assign dma_write.awlen = 8'd3;
  assign dma_write.awsize = 3'd3;
  assign dma_write.awburst = 2'b01;
  assign dma_write.wvalid = wvalid[0];
  assign dma_write.wdata = (8 * DataBytes)'(wdata[0]);
  assign dma_write.wstrb = DataBytes'(1);
  assign dma_write.wlast = wlast[0];
  assign dma_write.bready = takes_answer[0];
  assign queue_write.awvalid = awvalid[1];
  assign queue_write.awid = 2'd0;
  assign queue_write.awaddr = awaddr[1];
  assign queue_write.awlen = 8'd1;
  assign queue_write.awsize = 3'd3;
  assign queue_write.awburst = 2'b01;
  assign queue_write.wvalid = wvalid[1];
  assign queue_write.wdata = (8 * DataBytes)'(wdata[1]);
  assign queue_write.wstrb = DataBytes'(2);
  assign queue_write.wlast = wlast[1];
  assign queue_write.bready = takes_answer[1];
  assign m_axi_read.arready = arready;
  assign m_axi_read.rvalid = rvalid;
  assign m_axi_read.rid = rid;
  assign m_axi_read.rdata = '0;
  assign m_axi_read.rresp = '0;
  assign m_axi_read.rlast = 1'b0;
  assign m_axi_write.awready = awready;
  assign m_axi_write.wready = wready;
  assign m_axi_write.bvalid = bvalid;
  assign m_axi_write.bid = bid;
  assign m_axi_write.bresp = '0;
  assign ar_taken = {
    queue_read.arvalid && queue_read.arready, dma_read.arvalid && dma_read.arready
  };
  assign aw_taken = {
    queue_write.awvalid && queue_write.awready, dma_write.awvalid && dma_write.awready
  };
  assign w_taken = {queue_write.wvalid && queue_write.wready, dma_write.wvalid && dma_write.wready};

  // What stood on the bus and was not taken.
  logic ar_waited, aw_waited, w_waited;
  logic [AddressBits+9:0] ar, ar_was, aw, aw_was;
  logic [9*DataBytes:0] w, w_was;
  assign ar = {m_axi_read.arid, m_axi_read.araddr, m_axi_read.arlen};
  assign aw = {m_axi_write.awid, m_axi_write.awaddr, m_axi_write.awlen};
  assign w  = {m_axi_write.wdata, m_axi_write.wstrb, m_axi_write.wlast};
  always_ff @(posedge clk) begin
    ar_waited <= rst_n && m_axi_read.arvalid && !arready;
    aw_waited <= rst_n && m_axi_write.awvalid && !awready;
    w_waited <= rst_n && m_axi_write.wvalid && !wready;
    ar_was <= ar;
    aw_was <= aw;
    w_was <= w;
  end

  logic of_queue;  // the address of a write on the bus is
  assign of_queue = m_axi_write.awid != 2'(isa_pkg::DESCRIPTOR_TAG_OUTPUT);

  logic owner;
  logic owned;  // the owner has written a word, and not its last
  always_ff @(posedge clk) begin
    if (!rst_n) owned <= 1'b0;
    else if (w_taken != '0) begin
      owned <= !m_axi_write.wlast;
      owner <= w_taken[1];
    end
  end

  always_ff @(posedge clk) begin
    if (rst_n) begin
      assert_address_of_reads_stays : assert (!ar_waited || (m_axi_read.arvalid && ar == ar_was));
      assert_address_of_writes_stays : assert (!aw_waited || (m_axi_write.awvalid && aw == aw_was));
      assert_word_stays : assert (!w_waited || (m_axi_write.wvalid && w == w_was));
      assert_one_is_taken :
      assert ((ar_taken != 2'b11) && (aw_taken != 2'b11) && (w_taken != 2'b11) &&
              (ar_taken != '0) == (m_axi_read.arvalid && arready) &&
              (aw_taken != '0) == (m_axi_write.awvalid && awready) &&
              (w_taken != '0) == (m_axi_write.wvalid && wready));
      assert_taken_as_it_is :
      assert ((!ar_taken[0] || ar == {2'd1, araddr[0], 8'd3}) &&
              (!ar_taken[1] || ar == {2'(ReadStreams), araddr[1], 8'd1}) &&
              (!aw_taken[0] || aw == {2'(isa_pkg::DESCRIPTOR_TAG_OUTPUT), awaddr[0], 8'd3}) &&
              (!aw_taken[1] || aw == {2'd0, awaddr[1], 8'd1}) &&
              (!w_taken[0] || w == {(8 * DataBytes)'(wdata[0]), DataBytes'(1), wlast[0]}) &&
              (!w_taken[1] || w == {(8 * DataBytes)'(wdata[1]), DataBytes'(2), wlast[1]}));
      // Whose address is on the bus, its word is as well: memory may wait for both.
      assert_word_beside_its_address :
      assert (!m_axi_write.awvalid || m_axi_write.wvalid == wvalid[of_queue]);
      // What has waited stays; else the queue's comes when the engine has none.
      assert_engine_goes_first :
      assert ((ar_waited || !arvalid[0] || !m_axi_read.arvalid || m_axi_read.arid == 2'd1) &&
              (aw_waited || !m_axi_write.awvalid || !of_queue || !(awvalid[0] || wvalid[0])));
      // While one has written a part of its burst, the other waits.
      assert_words_stay_together : assert (!owned || !w_taken[!owner]);
      assert_answers_find_their_side :
      assert (dma_read.rvalid == (rvalid && rid != 2'(ReadStreams)) &&
              queue_read.rvalid == (rvalid && rid == 2'(ReadStreams)) &&
              dma_write.bvalid == (bvalid && bid == 2'(isa_pkg::DESCRIPTOR_TAG_OUTPUT)) &&
              queue_write.bvalid == (bvalid && bid != 2'(isa_pkg::DESCRIPTOR_TAG_OUTPUT)));
      assert_answers_wait_for_their_side :
      assert ((!rvalid || m_axi_read.rready == takes_read[queue_read.rvalid]) &&
              (!bvalid || m_axi_write.bready == takes_answer[queue_write.bvalid]));
      lemma_asked :
      assert (!share.queue_asked || (ar_waited && ar_was[AddressBits+9-:2] == 2'(ReadStreams)));
      lemma_asked_dma :
      assert (!ar_waited || share.queue_asked == (ar_was[AddressBits+9-:2] == 2'(ReadStreams)));
      lemma_arvalid : assert (!ar_waited || arvalid[share.queue_asked]);
      lemma_wrote :
      assert ((!wvalid[1] || writing[1]) && wvalid[0] == writing[0] && (!owned || writing[owner]));
      // Nothing of a write of the queue has been taken before it has the bus.
      lemma_begun :
      assert (share.queue_wrote ? awvalid[1] || writing[1] : awvalid[1] == writing[1]);
      lemma_taken :
      assert (share.took_address == (share.queue_wrote && !awvalid[1]) &&
              share.took_words == (share.queue_wrote && !writing[1]));
      lemma_aw_waited :
      assert (!aw_waited || (awvalid[share.queue_wrote] && share.queue_wrote ==
              (aw_was[AddressBits+9-:2] != 2'(isa_pkg::DESCRIPTOR_TAG_OUTPUT))));
      lemma_w_waited : assert (!w_waited || wvalid[share.queue_wrote]);
      lemma_owned : assert (!owned || share.queue_wrote == owner);
      cover_both_read : cover (arvalid == 2'b11 && ar_taken[1]);
      cover_both_write : cover (awvalid[0] && w_taken[1] && wlast[1]);
      cover_words_first : cover (aw_waited && awvalid[0] && awvalid[1] && !writing[1]);
    end
  end

endmodule : bus_share_proof
