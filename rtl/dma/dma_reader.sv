// AXI4 read master of the DMA engine: shares one bus between the read streams, in turn.
// The transaction identifier is the stream's tag, so words find their stream whatever their order.

module dma_reader
  import dma_pkg::*;
#(
    parameter int DataBytes = harness_pkg::DataBytes,
    parameter int MaxBurst = harness_pkg::BurstWords,
    parameter int BufferBeats = harness_pkg::BufferWords,
    parameter int QueueDepth = harness_pkg::QueueDepth,
    parameter int Outstanding = harness_pkg::OutstandingReads,
    localparam int BeatBits = $clog2(MaxBurst + 1),
    localparam int CountBits = $clog2(DataBytes + 1)
) (
    input  logic                clk,
    input  logic                rst_n,
    input  logic                pause,
    output logic                busy,   // a burst is on the bus
    input  logic [BeatBits-1:0] limit,

    input  logic  [ReadStreams-1:0] work_valid,
    output logic  [ReadStreams-1:0] work_ready,
    input  work_t                   work_data,

    output logic [ReadStreams-1:0]                  stream_valid,
    input  logic [ReadStreams-1:0]                  stream_ready,
    output logic [ReadStreams-1:0][8*DataBytes-1:0] stream_data,
    output logic [ReadStreams-1:0][  CountBits-1:0] stream_count,

    output logic [ReadStreams-1:0]       done_valid,
    output logic [ReadStreams-1:0][31:0] done_index,
    output logic                         error_valid,
    output logic [           31:0]       error_index,

    axi_read.initiator m_axi_read
);

  localparam int CounterBits = $clog2(Outstanding + 1);

  logic [ReadStreams-1:0] request_valid;
  logic [ReadStreams-1:0] request_ready;
  logic [ReadStreams-1:0][AddressBits-1:0] request_address;
  logic [ReadStreams-1:0][BeatBits-1:0] request_beats;
  logic [ReadStreams-1:0] response_valid;
  logic [ReadStreams-1:0] stream_error;
  logic [ReadStreams-1:0][31:0] stream_error_index;

  for (genvar i = 0; i < ReadStreams; i++) begin : g_stream
    assign response_valid[i] = m_axi_read.rvalid && m_axi_read.rready && m_axi_read.rid == 2'(i);
    read_stream #(
        .DataBytes  (DataBytes),
        .MaxBurst   (MaxBurst),
        .BufferBeats(BufferBeats),
        .QueueDepth (QueueDepth)
    ) stream (
        .clk,
        .rst_n,
        .pause,
        .limit,
        .work_valid(work_valid[i]),
        .work_ready(work_ready[i]),
        .work_data,
        .request_valid(request_valid[i]),
        .request_ready(request_ready[i]),
        .request_address(request_address[i]),
        .request_beats(request_beats[i]),
        .response_valid(response_valid[i]),
        .response_data(m_axi_read.rdata),
        .response_error(m_axi_read.rresp[1]),
        .stream_valid(stream_valid[i]),
        .stream_ready(stream_ready[i]),
        .stream_data(stream_data[i]),
        .stream_count(stream_count[i]),
        .done_valid(done_valid[i]),
        .done_index(done_index[i]),
        .error_valid(stream_error[i]),
        .error_index(stream_error_index[i])
    );
  end

  // The stream behind the one that was served last comes first.
  logic [1:0] served;
  logic [1:0] chosen;
  logic any;
  always_comb begin
    any = 1'b0;
    chosen = served;
    for (int i = ReadStreams; i >= 1; i--) begin
      if (request_valid[(int'(served)+i)%ReadStreams]) begin
        any = 1'b1;
        chosen = 2'((int'(served) + i) % ReadStreams);
      end
    end
  end

  logic [CounterBits-1:0] in_flight;
  logic accepts;
  logic ended;
  assign accepts = (!m_axi_read.arvalid || m_axi_read.arready) && in_flight != CounterBits'(Outstanding);
  assign ended = m_axi_read.rvalid && m_axi_read.rready && m_axi_read.rlast;

  always_comb begin
    request_ready = '0;
    request_ready[chosen] = accepts && any;
  end

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      served <= '0;
      in_flight <= '0;
      m_axi_read.arvalid <= 1'b0;
      m_axi_read.arid <= '0;
      m_axi_read.araddr <= '0;
      m_axi_read.arlen <= '0;
    end else begin
      in_flight <= in_flight + CounterBits'(accepts && any) - CounterBits'(ended);
      if (accepts && any) begin
        served <= chosen;
        m_axi_read.arvalid <= 1'b1;
        m_axi_read.arid <= chosen;
        m_axi_read.araddr <= request_address[chosen];
        m_axi_read.arlen <= 8'(request_beats[chosen]) - 8'd1;
      end else if (m_axi_read.arready) begin
        m_axi_read.arvalid <= 1'b0;
      end
    end
  end

  assign m_axi_read.arsize = 3'($clog2(DataBytes));
  assign m_axi_read.arburst = 2'b01;
  assign m_axi_read.rready = 1'b1;
  assign busy = in_flight != '0;

  always_comb begin
    error_valid = |stream_error;
    error_index = '0;
    for (int i = 0; i < ReadStreams; i++) begin
      if (stream_error[i]) error_index = stream_error_index[i];
    end
  end


  logic unused;
  assign unused = m_axi_read.rresp[0];

`ifndef SYNTHESIS
  assert_known_stream :
  assert property (@(posedge clk) disable iff (!rst_n) m_axi_read.rvalid |-> m_axi_read.rid < 2'(ReadStreams))
  else $error("a word came back for a stream that does not exist");
`endif

endmodule : dma_reader
