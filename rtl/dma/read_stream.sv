// One input stream of the DMA engine: asks for the bursts of its descriptors in order, and turns
// the words that come back into beats of the stream. It asks only for what it has room for, so that
// the bus never waits for the unit behind the stream.

module read_stream
  import dma_pkg::*;
#(
    parameter int DataBytes = harness_pkg::DataBytes,
    parameter int MaxBurst = harness_pkg::BurstWords,
    parameter int BufferBeats = harness_pkg::BufferWords,
    parameter int QueueDepth = harness_pkg::QueueDepth,
    parameter int Transfers = harness_pkg::ExpectedTransfers,  // descriptors whose words may be on their way together
    localparam int BeatBits = $clog2(MaxBurst + 1),
    localparam int CountBits = $clog2(DataBytes + 1)
) (
    input logic clk,
    input logic rst_n,
    input logic pause,  // ask for nothing more
    input logic [BeatBits-1:0] limit,

    input  logic  work_valid,
    output logic  work_ready,
    input  work_t work_data,

    // The next burst; `address` is that of the first bus word.
    output logic                   request_valid,
    input  logic                   request_ready,
    output logic [AddressBits-1:0] request_address,
    output logic [   BeatBits-1:0] request_beats,

    // Words of this stream's bursts, in the order of the requests.
    input logic                   response_valid,
    input logic [8*DataBytes-1:0] response_data,
    input logic                   response_error,

    output logic                   stream_valid,
    input  logic                   stream_ready,
    output logic [8*DataBytes-1:0] stream_data,
    output logic [  CountBits-1:0] stream_count,

    output logic        done_valid,
    output logic [31:0] done_index,
    output logic        error_valid,
    output logic [31:0] error_index
);

  localparam int OffsetBits = $clog2(DataBytes);
  localparam int RoomBits = $clog2(BufferBeats + 1);

  typedef struct packed {
    logic [31:0]            index;
    logic                   last;
    logic [CountBits-1:0]   count;
    logic [8*DataBytes-1:0] data;
  } beat_t;

  // Descriptors that wait.
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

  // Asking: the bursts of one descriptor after another.
  logic asking;
  logic [AddressBits-1:0] ask_address;
  logic [31:0] ask_left;
  logic [31:0] burst_bytes;
  logic burst_final;
  logic [RoomBits-1:0] reserved;
  logic granted;
  logic expect_ready;

  burst_planner #(
      .DataBytes(DataBytes),
      .MaxBurst (MaxBurst)
  ) planner (
      .address(ask_address),
      .left(ask_left),
      .limit,
      .beats(request_beats),
      .bytes(burst_bytes),
      .final_burst(burst_final)
  );

  assign next_ready = (!asking || (granted && burst_final)) && expect_ready;
  assign request_address = {ask_address[AddressBits-1:OffsetBits], OffsetBits'(0)};
  assign request_valid = asking && !pause &&
      RoomBits'(request_beats) <= RoomBits'(BufferBeats) - reserved;
  assign granted = request_valid && request_ready;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      asking <= 1'b0;
      ask_address <= '0;
      ask_left <= '0;
    end else if (next_valid && next_ready) begin
      asking <= 1'b1;
      ask_address <= next.address;
      ask_left <= next.size;
    end else if (granted) begin
      asking <= !burst_final;
      ask_address <= ask_address + AddressBits'(burst_bytes);
      ask_left <= ask_left - burst_bytes;
    end
  end

  // Receiving: the same descriptors once more, word by word.
  logic  expected_valid;
  logic  expected_ready;
  work_t expected;
  descriptor_fifo #(
      .Width($bits(work_t)),
      .Depth(Transfers)
  ) expecting (
      .clk,
      .rst_n,
      .push_valid(next_valid && next_ready),
      .push_ready(expect_ready),
      .push_data (next),
      .pop_valid (expected_valid),
      .pop_ready (expected_ready),
      .pop_data  (expected)
  );

  logic receiving;
  logic [OffsetBits-1:0] offset;
  logic [31:0] receive_left;
  logic [31:0] receive_index;
  logic [31:0] in_word;  // bytes from `offset` to the end of the bus word
  beat_t arriving;

  assign in_word = 32'(DataBytes) - 32'(offset);
  assign arriving.index = receive_index;
  assign arriving.last = receive_left <= in_word;
  assign arriving.count = CountBits'(arriving.last ? receive_left : in_word);

  logic [8*DataBytes-1:0] shifted;
  assign shifted = response_data >> {offset, 3'b000};
  always_comb begin
    for (int i = 0; i < DataBytes; i++) begin
      arriving.data[8*i+:8] = (!response_error && CountBits'(i) < arriving.count) ? shifted[8*i+:8] : 8'h00;
    end
  end

  assign expected_ready = !receiving || (response_valid && arriving.last);

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      receiving <= 1'b0;
      offset <= '0;
      receive_left <= '0;
      receive_index <= '0;
    end else if (expected_ready) begin
      receiving <= expected_valid;
      offset <= expected.address[OffsetBits-1:0];
      receive_left <= expected.size;
      receive_index <= expected.index;
    end else if (response_valid) begin
      offset <= '0;
      receive_left <= receive_left - 32'(arriving.count);
    end
  end

  // Beats that wait for the unit.
  logic  beat_ready;
  beat_t leaving;
  logic  left_buffer;
  descriptor_fifo #(
      .Width($bits(beat_t)),
      .Depth(BufferBeats)
  ) buffered (
      .clk,
      .rst_n,
      .push_valid(response_valid),
      .push_ready(beat_ready),
      .push_data (arriving),
      .pop_valid (stream_valid),
      .pop_ready (stream_ready),
      .pop_data  (leaving)
  );

  assign stream_data  = leaving.data;
  assign stream_count = leaving.count;
  assign left_buffer  = stream_valid && stream_ready;

  always_ff @(posedge clk) begin
    if (!rst_n) reserved <= '0;
    else begin
      reserved <= reserved + (granted ? RoomBits'(request_beats) : '0) - RoomBits'(left_buffer);
    end
  end

  assign done_valid  = left_buffer && leaving.last;
  assign done_index  = leaving.index;
  assign error_valid = response_valid && response_error;
  assign error_index = receive_index;

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
  assign unused = &{1'b0, next.is_interrupt, next.number, next.index, expected.is_interrupt,
      expected.number, expected.address[AddressBits-1:OffsetBits]};

`ifndef SYNTHESIS
  assert_room_for_response :
  assert property (@(posedge clk) disable iff (!rst_n) response_valid |-> beat_ready)
  else $error("a word came back for which there is no room");
  assert_response_expected :
  assert property (@(posedge clk) disable iff (!rst_n) response_valid |-> receiving)
  else $error("a word came back that nobody asked for");
  assert_reserved :
  assert property (@(posedge clk) disable iff (!rst_n) reserved <= RoomBits'(BufferBeats))
  else $error("more words asked for than there is room");
`endif

endmodule : read_stream
