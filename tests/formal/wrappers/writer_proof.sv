// dma_writer: the rules of the bus, and that each burst has the words, strobes and bytes that it says.

module writer_proof
  import dma_pkg::*;
#(
    parameter  int DataBytes = 4,
    parameter  int MaxBurst  = 2,
    localparam int BeatBits  = $clog2(MaxBurst + 1),
    localparam int CountBits = $clog2(DataBytes + 1)
) (
    input logic clk,
    input logic rst_n,
    input logic pause,
    input logic [BeatBits-1:0] limit,
    input logic work_valid,
    input work_t work_data,
    input logic stream_valid,
    input logic [8*DataBytes-1:0] stream_data,
    input logic [CountBits-1:0] stream_count,
    input logic awready,
    input logic wready,
    input logic bvalid,
    input logic [1:0] bresp
);

  logic busy, work_ready, stream_ready, done_valid, error_valid, interrupt_valid;
  logic [31:0] done_index, error_index;
  logic [1:0] interrupt_number;
  axi_write #(.DataBytes(DataBytes)) m_axi_write ();
  dma_writer #(
      .DataBytes(DataBytes),
      .MaxBurst(MaxBurst),
      .QueueDepth(2),
      .Outstanding(2)
  ) writer (
      .*
  );
  resets_first resets (.*);

  // Bursts whose last word has been written and that have no answer: memory answers no others.
  logic [7:0] unanswered;
  logic wrote, answered;
  assign m_axi_write.awready = awready;
  assign m_axi_write.wready = wready;
  assign m_axi_write.bvalid = bvalid && unanswered != '0;
  assign m_axi_write.bid = 2'd3;
  assign m_axi_write.bresp = bresp;
  assign wrote = m_axi_write.wvalid && m_axi_write.wready;
  assign answered = m_axi_write.bvalid && m_axi_write.bready;

  logic aw_waited, w_waited;
  logic [AddressBits+7:0] aw, aw_was;
  logic [9*DataBytes:0] w, w_was;
  assign aw = {m_axi_write.awaddr, m_axi_write.awlen};
  assign w  = {m_axi_write.wdata, m_axi_write.wstrb, m_axi_write.wlast};

  logic [7:0] words;  // of the burst that is written
  logic [31:0] bytes;  // of the descriptor, in all words until now
  logic [7:0] strobes;
  logic [DataBytes-1:0] from_low;
  assign strobes  = 8'($countones(m_axi_write.wstrb));
  // Strobes without a gap: from the lowest on, adding it carries to a power of two, or out.
  assign from_low = m_axi_write.wstrb + (m_axi_write.wstrb & (~m_axi_write.wstrb + 1'b1));

  always_ff @(posedge clk) begin
    aw_was <= aw;
    w_was  <= w;
    if (!rst_n) begin
      unanswered <= '0;
      aw_waited <= 1'b0;
      w_waited <= 1'b0;
      words <= '0;
      bytes <= '0;
    end else begin
      unanswered <= unanswered + 8'(wrote && m_axi_write.wlast) - 8'(answered);
      aw_waited  <= m_axi_write.awvalid && !awready;
      w_waited   <= m_axi_write.wvalid && !wready;
      if (wrote) words <= m_axi_write.wlast ? '0 : words + 8'd1;
      if (writer.next_valid && writer.next_ready) bytes <= '0;
      else if (writer.begins) bytes <= bytes + writer.burst_bytes;
    end
  end

  logic [31:0] size;  // of the descriptor
  always_ff @(posedge clk) begin
    if (writer.next_valid && writer.next_ready) size <= writer.next.size;
  end

  // What waits in the queue of descriptors.
  logic [1:0] waits;
  always_comb begin
    for (int i = 0; i < 2; i++) begin
      waits[i] = writer.waiting.level == 2'd2 ||
          (writer.waiting.level == 2'd1 && 32'(writer.waiting.head) == i);
    end
  end

  always_ff @(posedge clk) begin
    if (rst_n) begin
      assume_limit : assume (limit != '0 && limit <= BeatBits'(MaxBurst));
      assume_work : assume (!work_valid || work_data.is_interrupt || work_data.size != '0);
      assume_beat :
      assume (!stream_valid || (stream_count != '0 && stream_count <= CountBits'(DataBytes)));
      assert_address_stays : assert (!aw_waited || (m_axi_write.awvalid && aw == aw_was));
      assert_word_stays : assert (!w_waited || (m_axi_write.wvalid && w == w_was));
      assert_within_4_kib :
      assert (!m_axi_write.awvalid || 16'(m_axi_write.awaddr[11:0]) +
              (16'(m_axi_write.awlen) + 16'd1) * 16'(DataBytes) <= 16'd4096);
      assert_length : assert (!m_axi_write.awvalid || m_axi_write.awlen < 8'(MaxBurst));
      assert_as_many_words_as_it_says :
      assert (!m_axi_write.wvalid || m_axi_write.wlast == (words == m_axi_write.awlen));
      assert_words_have_bytes : assert (!m_axi_write.wvalid || m_axi_write.wstrb != '0);
      assert_strobes_without_gap :
      assert (!m_axi_write.wvalid || (from_low & m_axi_write.wstrb) == '0);
      // Only the first word may begin late, and only the last may end early.
      assert_whole_words_between :
      assert (!m_axi_write.wvalid || ((m_axi_write.wstrb[0] || words == '0) &&
              (m_axi_write.wstrb[DataBytes-1] || m_axi_write.wlast)));
      assert_bytes_of_the_burst :
      assert (!m_axi_write.wvalid || !m_axi_write.wlast || writer.bytes_left == 32'(strobes));
      assert_bytes_of_the_descriptor :
      assert (!writer.writing || (33'(bytes) + 33'(writer.left) == 33'(size) && writer.left != '0));
      assert_interrupt_behind_its_outputs :
      assert (!interrupt_valid || (unanswered == '0 && !m_axi_write.wvalid && !m_axi_write.awvalid));
      assert_busy :
      assert (busy == (m_axi_write.awvalid || m_axi_write.wvalid || unanswered != '0));
      assert_paused_begins_nothing : assert (!pause || (!writer.begins && !interrupt_valid));
      assert_never_too_many : assert (unanswered + 8'(m_axi_write.wvalid) <= 8'd2);
      lemma_sent :
      assert (8'(writer.unanswered.level) == unanswered + 8'(m_axi_write.wvalid) &&
              unanswered <= 8'd2);
      lemma_burst :
      assert (!m_axi_write.wvalid || (words + 8'(writer.beats_left) == m_axi_write.awlen + 8'd1 &&
              writer.beats_left != '0 && words <= m_axi_write.awlen));
      lemma_idle : assert (m_axi_write.wvalid || words == '0);
      lemma_aligned : assert (m_axi_write.awaddr[1:0] == '0 || !m_axi_write.awvalid);
      lemma_bytes :
      assert (!m_axi_write.wvalid || (writer.bytes_left != '0 &&
              writer.bytes_left + 32'(writer.offset) <= 32'(writer.beats_left) * 32'(DataBytes) &&
              writer.bytes_left + 32'(writer.offset) > (32'(writer.beats_left) - 32'd1) * 32'(DataBytes) &&
              (words == '0 || writer.offset == '0) && 32'(writer.level) >= writer.bytes_left));
      lemma_level : assert (writer.level <= 5'(writer.Capacity));
      lemma_pointers : assert (writer.outputs.tail == writer.outputs.head + 4'(writer.level));
      lemma_work :
      assert ((!waits[0] || writer.waiting.entries[0][71:40] != '0 ||
              writer.waiting.entries[0][74]) && (!waits[1] ||
              writer.waiting.entries[1][71:40] != '0 || writer.waiting.entries[1][74]));
      lemma_queue :
      assert (writer.waiting.level <= 2'd2 && (writer.waiting.level[0] ==
              (writer.waiting.head != writer.waiting.tail)));
      lemma_unanswered :
      assert (writer.unanswered.level <= 2'd2 && (writer.unanswered.level[0] ==
              (writer.unanswered.head != writer.unanswered.tail)));
      lemma_length :
      assert (m_axi_write.awlen < 8'(MaxBurst) || (!m_axi_write.awvalid && !m_axi_write.wvalid));
      cover_two_unanswered : cover (unanswered == 8'd2);
      cover_descriptor_of_two_bursts : cover (done_valid && !interrupt_valid && size > 32'd8);
      cover_interrupt : cover (interrupt_valid && bytes != '0);
    end
  end

endmodule : writer_proof
