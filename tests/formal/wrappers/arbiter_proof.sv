// dma_reader: the rules of the read channel, and that each stream gets its turn.

module arbiter_proof
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
    input logic [ReadStreams-1:0] work_valid,
    input work_t work_data,
    input logic [ReadStreams-1:0] stream_ready,
    input logic arready,
    input logic rvalid,
    input logic [1:0] rid,
    input logic rlast,
    input logic [1:0] any_stream
);

  logic busy, error_valid;
  logic [31:0] error_index;
  logic [ReadStreams-1:0] work_ready, stream_valid, done_valid;
  logic [ReadStreams-1:0][8*DataBytes-1:0] stream_data;
  logic [ReadStreams-1:0][CountBits-1:0] stream_count;
  logic [ReadStreams-1:0][31:0] done_index;
  axi_read #(.DataBytes(DataBytes)) m_axi_read ();
  dma_reader #(
      .DataBytes(DataBytes),
      .MaxBurst(MaxBurst),
      .BufferBeats(2),
      .QueueDepth(2),
      .Outstanding(2)
  ) reader (
      .*
  );
  resets_first resets (.*);

  logic [7:0] in_flight;
  logic ended, asked;
  assign m_axi_read.arready = arready;
  assign m_axi_read.rvalid = rvalid && in_flight > 8'(m_axi_read.arvalid);
  assign m_axi_read.rid = rid;
  assign m_axi_read.rdata = '0;
  assign m_axi_read.rresp = '0;
  assign m_axi_read.rlast = rlast;
  assign ended = m_axi_read.rvalid && m_axi_read.rready && rlast;
  assign asked = reader.request_ready != '0;

  logic ar_waited;
  logic [AddressBits+9:0] ar, ar_was;
  assign ar = {m_axi_read.arid, m_axi_read.araddr, m_axi_read.arlen};

  // A stream that asks, and how many others have been served since.
  logic [1:0] stream;
  logic [7:0] others;
  logic wants, served;
  assign wants  = reader.request_valid[stream];
  assign served = reader.request_ready[stream];
  always_ff @(posedge clk) begin
    ar_was <= ar;
    if (!rst_n) begin
      stream <= any_stream;
      in_flight <= '0;
      ar_waited <= 1'b0;
      others <= '0;
    end else begin
      in_flight <= in_flight + 8'(asked) - 8'(ended);
      ar_waited <= m_axi_read.arvalid && !arready;
      if (!wants || served) others <= '0;
      else others <= others + 8'(asked);
    end
  end

  // Streams before this one in the order in which turns go on.
  logic [7:0] turns;
  always_comb begin
    turns = 8'd2;
    if ((reader.served == 2'd2 ? 2'd0 : reader.served + 2'd1) == stream) turns = 8'd0;
    else if (reader.served != stream) turns = 8'd1;
  end

  always_ff @(posedge clk) begin
    if (rst_n) begin
      assume_stream : assume (stream < 2'(ReadStreams));
      assume_limit : assume (limit != '0 && limit <= BeatBits'(MaxBurst));
      assert_address_stays : assert (!ar_waited || (m_axi_read.arvalid && ar == ar_was));
      assert_one_is_served :
      assert ((reader.request_ready & (reader.request_ready - 1'b1)) == '0 &&
              (reader.request_ready & ~reader.request_valid) == '0);
      assert_never_too_many : assert (in_flight <= 8'd2);
      assert_turn : assert (others <= 8'd2);
      assert_not_idle :
      assert (!wants || asked || ar_waited || in_flight == 8'd2 || (m_axi_read.arvalid && !arready));
      assert_busy : assert (busy == (in_flight != '0));
      assert_paused_requests_nothing : assert (!pause || !asked);
      lemma_in_flight :
      assert (8'(reader.in_flight) == in_flight && (!m_axi_read.arvalid || in_flight != '0));
      lemma_served : assert (reader.served < 2'(ReadStreams));
      lemma_turn : assert (others + turns <= 8'd2);
      cover_all_ask : cover (&reader.request_valid && asked);
      cover_waits : cover (others == 8'd2 && served);
    end
  end

endmodule : arbiter_proof
