// AXI4 write master of the DMA engine: puts the output stream's bytes where the output descriptors
// say, and lets interrupts out behind the outputs before them. A burst begins only when all its
// bytes are there, so the bus never waits for the unit that produces them.

module dma_writer
  import dma_pkg::*;
#(
    parameter int DataBytes = harness_pkg::DataBytes,
    parameter int MaxBurst = harness_pkg::BurstWords,
    parameter int QueueDepth = harness_pkg::QueueDepth,
    parameter int Outstanding = harness_pkg::OutstandingWrites,
    localparam int BeatBits = $clog2(MaxBurst + 1),
    localparam int CountBits = $clog2(DataBytes + 1)
) (
    input  logic                clk,
    input  logic                rst_n,
    input  logic                pause,
    output logic                busy,
    input  logic [BeatBits-1:0] limit,

    input  logic  work_valid,
    output logic  work_ready,
    input  work_t work_data,

    input  logic                   stream_valid,
    output logic                   stream_ready,
    input  logic [8*DataBytes-1:0] stream_data,
    input  logic [  CountBits-1:0] stream_count,

    output logic        done_valid,
    output logic [31:0] done_index,
    output logic        error_valid,
    output logic [31:0] error_index,
    output logic        interrupt_valid,
    output logic [ 1:0] interrupt_number,

    axi_write.initiator m_axi_write
);

  localparam int OffsetBits = $clog2(DataBytes);
  localparam int Capacity = 2 ** $clog2(2 * MaxBurst * DataBytes);
  localparam int LevelBits = $clog2(Capacity) + 1;

  // Outputs and interrupts that wait.
  logic  next_valid;
  logic  next_ready;
  work_t next;
  descriptor_fifo #(
      .Width($bits(work_t)),
      .Depth(QueueDepth)
  ) waiting (
      .clk,
      .rst_n,
      .push_valid(work_valid),
      .push_ready(work_ready),
      .push_data (work_data),
      .pop_valid (next_valid),
      .pop_ready (next_ready),
      .pop_data  (next)
  );

  // Bytes that wait.
  logic [  LevelBits-1:0] level;
  logic [8*DataBytes-1:0] window;
  logic [  CountBits-1:0] take;
  byte_fifo #(
      .InBytes (DataBytes),
      .OutBytes(DataBytes),
      .Capacity(Capacity)
  ) outputs (
      .clk,
      .rst_n,
      .in_valid(stream_valid),
      .in_ready(stream_ready),
      .in_data (stream_data),
      .in_count(stream_count),
      .level,
      .window,
      .take
  );

  // Bursts whose response has not come.
  typedef struct packed {
    logic        last;
    logic [31:0] index;
  } burst_t;
  logic   sent_valid;
  logic   sent_ready;
  burst_t sent;
  burst_t answered;
  logic   begins;
  descriptor_fifo #(
      .Width($bits(burst_t)),
      .Depth(Outstanding)
  ) unanswered (
      .clk,
      .rst_n,
      .push_valid(begins),
      .push_ready(sent_ready),
      .push_data (sent),
      .pop_valid (sent_valid),
      .pop_ready (m_axi_write.bvalid && m_axi_write.bready),
      .pop_data  (answered)
  );

  // One descriptor after another, burst by burst.
  logic writing;
  logic [AddressBits-1:0] address;
  logic [31:0] left;
  logic [31:0] index;
  logic [BeatBits-1:0] burst_beats;
  logic [31:0] burst_bytes;
  logic burst_final;
  burst_planner #(
      .DataBytes(DataBytes),
      .MaxBurst (MaxBurst)
  ) planner (
      .address,
      .left,
      .limit,
      .beats(burst_beats),
      .bytes(burst_bytes),
      .final_burst(burst_final)
  );

  logic sending;  // words of a burst are on their way
  logic [BeatBits-1:0] beats_left;
  logic [31:0] bytes_left;
  logic [OffsetBits-1:0] offset;
  logic [CountBits-1:0] in_word;  // bytes of the word that is offered
  logic word_sent;
  logic interrupt_due;

  assign begins = writing && !sending && !m_axi_write.awvalid && !pause && sent_ready &&
      32'(level) >= burst_bytes;
  assign sent = '{last: burst_final, index: index};
  assign word_sent = m_axi_write.wvalid && m_axi_write.wready;

  // An interrupt leaves when every output before it has been answered.
  assign interrupt_due = next_valid && next.is_interrupt && !writing && !sending &&
      !sent_valid && !m_axi_write.awvalid && !pause;
  assign next_ready = next.is_interrupt ? interrupt_due : !writing;
  assign interrupt_valid = interrupt_due;
  assign interrupt_number = next.number;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      writing <= 1'b0;
      address <= '0;
      left <= '0;
      index <= '0;
    end else if (next_valid && next_ready && !next.is_interrupt) begin
      writing <= 1'b1;
      address <= next.address;
      left <= next.size;
      index <= next.index;
    end else if (begins) begin
      writing <= !burst_final;
      address <= address + AddressBits'(burst_bytes);
      left <= left - burst_bytes;
    end
  end

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      m_axi_write.awvalid <= 1'b0;
      m_axi_write.awaddr <= '0;
      m_axi_write.awlen <= '0;
      sending <= 1'b0;
      beats_left <= '0;
      bytes_left <= '0;
      offset <= '0;
    end else if (begins) begin
      m_axi_write.awvalid <= 1'b1;
      m_axi_write.awaddr <= {address[AddressBits-1:OffsetBits], OffsetBits'(0)};
      m_axi_write.awlen <= 8'(burst_beats) - 8'd1;
      sending <= 1'b1;
      beats_left <= burst_beats;
      bytes_left <= burst_bytes;
      offset <= address[OffsetBits-1:0];
    end else begin
      if (m_axi_write.awready) m_axi_write.awvalid <= 1'b0;
      if (word_sent) begin
        sending <= !m_axi_write.wlast;
        beats_left <= beats_left - 1'b1;
        bytes_left <= bytes_left - 32'(in_word);
        offset <= '0;
      end
    end
  end

  // The bytes of one word, and the strobes that say where they are.
  logic [8*DataBytes-1:0] placed;
  int strobes_end;
  always_comb begin
    in_word = CountBits'(DataBytes) - CountBits'(offset);
    if (bytes_left < 32'(in_word)) in_word = CountBits'(bytes_left);
    strobes_end = int'(offset) + int'(in_word);
    for (int i = 0; i < DataBytes; i++) begin
      m_axi_write.wstrb[i] = i >= int'(offset) && i < strobes_end;
    end
  end
  assign placed = window << {offset, 3'b000};
  for (genvar i = 0; i < DataBytes; i++) begin : g_byte
    assign m_axi_write.wdata[8*i+:8] = m_axi_write.wstrb[i] ? placed[8*i+:8] : 8'h00;
  end
  assign m_axi_write.wvalid = sending;
  assign m_axi_write.wlast = beats_left == BeatBits'(1);
  assign take = word_sent ? in_word : '0;

  assign m_axi_write.awid = 2'(isa_pkg::DESCRIPTOR_TAG_OUTPUT);
  assign m_axi_write.awsize = 3'($clog2(DataBytes));
  assign m_axi_write.awburst = 2'b01;
  assign m_axi_write.bready = 1'b1;
  assign busy = sending || m_axi_write.awvalid || sent_valid;

  logic answer;
  assign answer = m_axi_write.bvalid && m_axi_write.bready;
  assign done_valid = interrupt_valid || (answer && answered.last);
  assign done_index = interrupt_valid ? next.index : answered.index;
  assign error_valid = answer && m_axi_write.bresp[1];
  assign error_index = answered.index;

  handshake_check #(
      .Width(8 * DataBytes + CountBits)
  ) check_stream (
      .clk,
      .rst_n,
      .valid  (stream_valid),
      .ready  (stream_ready),
      .payload({stream_data, stream_count})
  );

  logic unused;
  assign unused = &{1'b0, m_axi_write.bresp[0], m_axi_write.bid};

`ifndef SYNTHESIS
  assert_response_expected :
  assert property (@(posedge clk) disable iff (!rst_n) m_axi_write.bvalid |-> sent_valid)
  else $error("a response came for a burst that was not written");
  assert_strobes :
  assert property (@(posedge clk) disable iff (!rst_n) m_axi_write.wvalid |-> m_axi_write.wstrb != '0)
  else $error("a word without bytes");
  assert_burst_uses_all_bytes :
  assert property (@(posedge clk) disable iff (!rst_n)
      word_sent && m_axi_write.wlast |-> bytes_left == 32'(in_word))
  else $error("the burst ends before or after its bytes");
`endif

endmodule : dma_writer
