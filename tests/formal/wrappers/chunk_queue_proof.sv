// chunk_queue: whatever the host writes into its registers, and whenever, what is on the bus stays until
// it is taken, an access has as many words as it says, an entry of the ring is read where it stands, and
// the status block says what is done.

module chunk_queue_proof
  import dma_pkg::*;
#(
    parameter int DataBytes = harness_pkg::DataBytes
) (
    input logic clk,
    input logic rst_n,
    input queue_settings_t settings,
    input logic pause,
    input logic [63:0] completed_head,
    input logic [63:0] table2queue_entry,
    input logic core2queue_chunk_valid,
    input logic queue2dma_descriptor_ready,
    input logic chunk_done,
    input logic arready,
    input logic awready,
    input logic wready,
    input logic rvalid,
    input logic [8*DataBytes-1:0] rdata,
    input logic [1:0] rresp,
    input logic bvalid,
    input logic [1:0] bresp
);

  localparam int Words = (16 > DataBytes) ? 16 / DataBytes : 1;

  logic busy, idle, enabled, queue2core_chunk_waits, core2queue_chunk_ready;
  logic queue2dma_descriptor_valid, chunk_told;
  queue_errors_t errors;
  logic [63:0] fault_address;
  logic [12:0] queue2table_entry;
  logic [31:0] queue2core_chunk_size;
  descriptor_t queue2dma_descriptor_data;
  axi_read #(.DataBytes(DataBytes)) m_axi_read ();
  axi_write #(.DataBytes(DataBytes)) m_axi_write ();
  chunk_queue #(
      .DataBytes(DataBytes),
      .Ahead(2)
  ) queue (
      .*
  );
  resets_first resets (.*);

  // Memory answers what was asked, with as many words, and no sooner. It takes the address and the
  // words of a write in any order.
  logic reading, took_address, took_words, answering;
  logic [7:0] words, written;
  logic read, wrote, address_taken, words_taken;
  assign m_axi_read.arready = arready;
  assign m_axi_read.rvalid = rvalid && reading;
  assign m_axi_read.rid = 2'(ReadStreams);
  assign m_axi_read.rdata = rdata;
  assign m_axi_read.rresp = rresp;
  assign m_axi_read.rlast = words == 8'(Words - 1);
  assign m_axi_write.awready = awready;
  assign m_axi_write.wready = wready;
  assign m_axi_write.bvalid = bvalid && answering;
  assign m_axi_write.bid = '0;
  assign m_axi_write.bresp = bresp;
  assign read = m_axi_read.rvalid && m_axi_read.rready;
  assign wrote = m_axi_write.wvalid && m_axi_write.wready;
  assign address_taken = took_address || (m_axi_write.awvalid && awready);
  assign words_taken = took_words || (wrote && m_axi_write.wlast);
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      reading <= 1'b0;
      took_address <= 1'b0;
      took_words <= 1'b0;
      answering <= 1'b0;
      words <= '0;
      written <= '0;
    end else begin
      reading <= (m_axi_read.arvalid && arready) || (reading && !(read && m_axi_read.rlast));
      took_address <= address_taken && !words_taken;
      took_words <= words_taken && !address_taken;
      answering <= (address_taken && words_taken) || (answering && !m_axi_write.bvalid);
      if (m_axi_read.arvalid && arready) words <= '0;
      else if (read) words <= words + 8'd1;
      if (address_taken && words_taken) written <= '0;
      else if (wrote) written <= written + 8'd1;
    end
  end

  logic ar_waited, aw_waited, w_waited;
  logic [AddressBits+7:0] ar, ar_was, aw, aw_was;
  logic [9*DataBytes:0] w, w_was;
  assign ar = {m_axi_read.araddr, m_axi_read.arlen};
  assign aw = {m_axi_write.awaddr, m_axi_write.awlen};
  assign w  = {m_axi_write.wdata, m_axi_write.wstrb, m_axi_write.wlast};
  always_ff @(posedge clk) begin
    ar_waited <= rst_n && m_axi_read.arvalid && !arready;
    aw_waited <= rst_n && m_axi_write.awvalid && !awready;
    w_waited <= rst_n && m_axi_write.wvalid && !wready;
    ar_was <= ar;
    aw_was <= aw;
    w_was <= w;
  end

  // The place of the next entry: those that have come since the queue is on, around the ring.
  logic begins, stale;
  logic [63:0] place, begins_at;
  assign begins = !busy && queue.begins_read;
  always_ff @(posedge clk) begin
    begins_at <= settings.base + 64'd16 * place;
    if (!rst_n) begin
      place <= '0;
      stale <= 1'b0;
    end else begin
      stale <= busy && (stale || !enabled);
      if (!enabled) place <= '0;
      else if (read && m_axi_read.rlast && !stale)
        place <= (place + 64'd1 < settings.size) ? place + 64'd1 : '0;
    end
  end
  logic began;
  always_ff @(posedge clk) began <= rst_n && begins;

  // What the words of the status block are: the head, and zeros. It is a part of a wide word.
  localparam int PlaceBits = $clog2(DataBytes);
  logic [PlaceBits-1:0] first;  // of its bytes in a word
  logic [DataBytes-1:0] strobes;
  assign first   = (Words == 1) ? queue.bus_address[PlaceBits-1:0] : '0;
  assign strobes = (Words == 1) ? DataBytes'(16'hFFFF) << first : '1;
  logic writing;  // the queue offers it, or could
  assign writing = queue.writes && (queue.state == 3'd2 || queue.state == 3'd3);
  logic [127:0] block;
  always_ff @(posedge clk) begin
    if (!m_axi_write.awvalid && !took_address) block <= 128'(completed_head[31:0]);
    else if (wrote) block <= block >> (8 * DataBytes);
  end

  always_ff @(posedge clk) begin
    if (rst_n) begin
      assert_address_of_reads_stays : assert (!ar_waited || (m_axi_read.arvalid && ar == ar_was));
      assert_address_of_writes_stays : assert (!aw_waited || (m_axi_write.awvalid && aw == aw_was));
      assert_word_stays : assert (!w_waited || (m_axi_write.wvalid && w == w_was));
      assert_words_with_their_address :
      assert (m_axi_write.wvalid == ((m_axi_write.awvalid || took_address) && !took_words));
      assert_as_many_words_as_it_says :
      assert (!m_axi_write.wvalid || m_axi_write.wlast == (written == 8'(Words - 1)));
      assert_within_4_kib :
      assert (16'(m_axi_read.araddr[11:0]) + 16'(Words * DataBytes) <= 16'd4096 || !m_axi_read.arvalid);
      assert_reads_its_entry : assert (!began || queue.device_address == begins_at);
      assert_head_in_the_block :
      assert (!m_axi_write.wvalid || m_axi_write.wdata == (8 * DataBytes)'(block) << (8 * first));
      assert_strobes : assert (!m_axi_write.wvalid || m_axi_write.wstrb == strobes);
      lemma_place : assert (queue.next == place && queue.stale == stale);
      lemma_block :
      assert (!writing || block == 128'(queue.head) >> (8 * DataBytes * 32'(written)));
      lemma_state :
      assert (reading == (queue.state == 3'd3 && !queue.writes) &&
              took_address == (queue.state == 3'd3 && queue.writes) &&
              took_words == (queue.state == 3'd2 && queue.writes && written == 8'(Words)) &&
              answering == (queue.state == 3'd4) && queue.state <= 3'd4);
      lemma_words : assert (!reading || 8'(queue.word) == words);
      lemma_written : assert (written == (writing ? 8'(queue.word) : '0) && written <= 8'(Words));
      lemma_begins :
      assert (queue.state != 3'd1 && queue.state != 3'd2 || queue.word == '0 || writing);
      lemma_kept : assert (!queue.on_bus || queue.kept_address[3:0] == '0);
      lemma_on_bus :
      assert ((queue.state != 3'd3 || (queue.on_bus && 32'(queue.word) < 32'(Words))) &&
              (queue.state != 3'd2 || queue.word == '0 || queue.on_bus));
      cover_reads : cover (queue2dma_descriptor_valid && queue2dma_descriptor_ready);
      cover_waits : cover (aw_waited && settings.window_base != 64'd0);
      cover_early_words : cover (took_words && aw_waited);
      cover_tells : cover (chunk_told && enabled && settings.status_block);
    end
  end

endmodule : chunk_queue_proof
