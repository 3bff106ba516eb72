// Host memory as an AXI4 slave over C++ memory (DPI): in order, one word a cycle, with a fixed
// latency. `stall` holds a channel back in a cycle: 0 AR, 1 R, 2 AW, 3 W, 4 B.

module host_memory
  import dma_pkg::*;
#(
    parameter int DataBytes = harness_pkg::DataBytes,
    parameter int Latency = harness_pkg::MemoryLatency,  // cycles from the last word of a request to the first of its answer
    parameter int Requests = harness_pkg::MemoryRequests
) (
    input logic       clk,
    input logic       rst_n,
    input logic [4:0] stall,

    axi_read.target  m_axi_read,
    axi_write.target m_axi_write
);

  import "DPI-C" function void host_memory_read(
    input longint unsigned address,
    input int unsigned bytes,
    output bit [8*DataBytes-1:0] data,
    output bit failed
  );
  import "DPI-C" function void host_memory_write(
    input longint unsigned address,
    input int unsigned bytes,
    input bit [8*DataBytes-1:0] data,
    input bit [DataBytes-1:0] strobes,
    output bit failed
  );

  localparam logic [1:0] Okay = 2'b00;
  localparam logic [1:0] SlaveError = 2'b10;

  typedef struct packed {
    logic [31:0]            due;      // cycle from which the answer may come
    logic [1:0]             id;
    logic [7:0]             beats;    // less one
    logic [AddressBits-1:0] address;
  } request_t;

  logic [31:0] now;
  always_ff @(posedge clk) begin
    if (!rst_n) now <= '0;
    else now <= now + 1'b1;
  end

  // Reads.
  logic read_ready;
  logic read_waits;
  logic read_taken;
  request_t read_request;
  descriptor_fifo #(
      .Width($bits(request_t)),
      .Depth(Requests)
  ) reads (
      .clk,
      .rst_n,
      .push_valid(m_axi_read.arvalid && m_axi_read.arready),
      .push_ready(read_ready),
      .push_data ({now + 32'(Latency), m_axi_read.arid, m_axi_read.arlen, m_axi_read.araddr}),
      .pop_valid (read_waits),
      .pop_ready (read_taken),
      .pop_data  (read_request)
  );
  assign m_axi_read.arready = read_ready && !stall[0];

  logic [7:0] word;  // of the burst at the head of the queue
  logic gives;
  assign gives = read_waits && now >= read_request.due && !stall[1] &&
      (!m_axi_read.rvalid || m_axi_read.rready);
  assign read_taken = gives && word == read_request.beats;

  always_ff @(posedge clk) begin
    bit [8*DataBytes-1:0] data;
    bit failed;
    if (!rst_n) begin
      m_axi_read.rvalid <= 1'b0;
      word <= '0;
    end else if (gives) begin
      host_memory_read(64'(read_request.address) + 64'(word) * 64'(DataBytes), 32'(DataBytes), data,
                       failed);
      m_axi_read.rvalid <= 1'b1;
      m_axi_read.rid <= read_request.id;
      m_axi_read.rdata <= data;
      m_axi_read.rresp <= failed ? SlaveError : Okay;
      m_axi_read.rlast <= read_taken;
      word <= read_taken ? '0 : word + 1'b1;
    end else if (m_axi_read.rready) begin
      m_axi_read.rvalid <= 1'b0;
    end
  end

  // Writes: a burst at a time, its words as they come.
  logic writing;
  logic write_failed;
  logic [AddressBits-1:0] write_address;
  logic [1:0] write_id;
  logic answer_ready;
  logic word_written;
  assign m_axi_write.awready = !writing && answer_ready && !stall[2];
  assign m_axi_write.wready = writing && !stall[3];
  assign word_written = m_axi_write.wvalid && m_axi_write.wready;

  typedef struct packed {
    logic [31:0] due;
    logic [1:0]  id;
  } answer_t;
  answer_t answer;
  logic answer_waits;
  logic answer_taken;
  descriptor_fifo #(
      .Width($bits(answer_t)),
      .Depth(Requests)
  ) answers (
      .clk,
      .rst_n,
      .push_valid(word_written && m_axi_write.wlast),
      .push_ready(answer_ready),
      .push_data ({now + 32'(Latency), write_id}),
      .pop_valid (answer_waits),
      .pop_ready (answer_taken),
      .pop_data  (answer)
  );

  // Only the write of a word shows whether it fails. That happens at the clock edge at which the answer
  // of its burst is queued, so the outcomes stand beside the queue of answers.
  localparam int OutcomeBits = $clog2(Requests + 1);
  logic [Requests:0] outcomes;  // whether a burst has failed
  logic [OutcomeBits-1:0] queued, answered;
  function automatic logic [OutcomeBits-1:0] after(input logic [OutcomeBits-1:0] place);
    return (place == OutcomeBits'(Requests)) ? '0 : place + 1'b1;
  endfunction

  always_ff @(posedge clk) begin
    bit failed;
    if (!rst_n) begin
      writing <= 1'b0;
      queued  <= '0;
    end else if (m_axi_write.awvalid && m_axi_write.awready) begin
      writing <= 1'b1;
      write_failed <= 1'b0;
      write_address <= m_axi_write.awaddr;
      write_id <= m_axi_write.awid;
    end else if (word_written) begin
      host_memory_write(64'(write_address), 32'(DataBytes), m_axi_write.wdata, m_axi_write.wstrb,
                        failed);
      writing <= !m_axi_write.wlast;
      write_failed <= write_failed || failed;
      if (m_axi_write.wlast) begin
        outcomes[queued] <= write_failed || failed;
        queued <= after(queued);
      end
      write_address <= write_address + AddressBits'(DataBytes);
    end
  end

  assign answer_taken = answer_waits && now >= answer.due && !stall[4] &&
      (!m_axi_write.bvalid || m_axi_write.bready);
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      m_axi_write.bvalid <= 1'b0;
      answered <= '0;
    end else if (answer_taken) begin
      m_axi_write.bvalid <= 1'b1;
      m_axi_write.bid <= answer.id;
      m_axi_write.bresp <= outcomes[answered] ? SlaveError : Okay;
      answered <= after(answered);
    end else if (m_axi_write.bready) begin
      m_axi_write.bvalid <= 1'b0;
    end
  end

  logic unused;
  assign unused = &{1'b0, m_axi_read.arsize, m_axi_read.arburst, m_axi_write.awlen, m_axi_write.awsize, m_axi_write.awburst};

`ifndef SYNTHESIS
  assert_incrementing_whole_words :
  assert property (@(posedge clk) disable iff (!rst_n)
      m_axi_read.arvalid |-> m_axi_read.arburst == 2'b01 && 32'(1) << m_axi_read.arsize == DataBytes)
  else $error("only incrementing bursts of whole words are answered");
  assert_incrementing_writes_of_whole_words :
  assert property (@(posedge clk) disable iff (!rst_n)
      m_axi_write.awvalid |-> m_axi_write.awburst == 2'b01 && 32'(1) << m_axi_write.awsize == DataBytes)
  else $error("only incrementing bursts of whole words are written");
`endif

endmodule : host_memory
