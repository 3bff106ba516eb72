// Host memory as an AXI4 slave over C++ memory (DPI) that does everything AXI4 allows: it interleaves
// words of different identifiers, answers different identifiers in any order, takes words of a write
// before its address, lets the address and the words of a write each wait until the other is offered,
// answers with both kinds of error, and pauses each channel for one cycle or for many. It draws all of
// this at random (`memory_draw`), from the seed.

module unruly_memory
  import dma_pkg::*;
#(
    parameter int DataBytes = harness_pkg::DataBytes,
    parameter int Requests  = harness_pkg::MemoryRequests
) (
    input logic clk,
    input logic rst_n,

    axi_read.target  m_axi_read,
    axi_write.target m_axi_write
);

  import "DPI-C" function int unsigned memory_draw();
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

  // Events that occurred, for tests that check that each was reached.
  import "DPI-C" function void memory_saw(input int unsigned what);
  localparam int SawTurns = 0;  // a word between those of another burst
  localparam int SawEarlyWord = 1;  // a word before its address
  localparam int SawSlaveError = 2;
  localparam int SawDecodeError = 3;
  localparam int SawWriteSlaveError = 4;
  localparam int SawWriteDecodeError = 5;
  localparam int SawPause = 6;  // plus the channel: it had work and was paused, for a few cycles
  localparam int SawLongPause = 11;  // for many

  localparam int Ids = 4;
  localparam int Channels = 5;  // AR, R, AW, W, B
  localparam int Words = 64;  // that wait for their address
  localparam int LongPause = 200;
  localparam logic [1:0] Okay = 2'b00;
  localparam logic [1:0] SlaveError = 2'b10;
  localparam logic [1:0] DecodeError = 2'b11;

  // The random choices of a cycle: the next identifier, errors, and channels that begin a pause.
  int unsigned drawn;
  int unsigned pauses[Channels];
  logic [Channels-1:0] paused;
  always_comb begin
    for (int k = 0; k < Channels; k++) paused[k] = pauses[k] != 0;
  end
  always_ff @(posedge clk) begin
    drawn <= memory_draw();
    for (int k = 0; k < Channels; k++) begin
      if (!rst_n) pauses[k] <= 0;
      else if (paused[k]) pauses[k] <= pauses[k] - 1;
      else if (drawn[8+4*k+:3] == '0)
        pauses[k] <= (drawn[31:27] == 5'(k)) ? LongPause : 32'(drawn[29:28]) + 1;
    end
  end

  // The first identifier, from a random one on, with something to give.
  function automatic logic [1:0] turn(input logic [Ids-1:0] has, input logic [1:0] from);
    turn = from;
    for (int i = Ids - 1; i >= 0; i--) begin
      if (has[from+2'(i)]) turn = from + 2'(i);
    end
  endfunction

  function automatic logic [1:0] response(input logic failed, input logic kind);
    if (!failed) return Okay;
    return kind ? DecodeError : SlaveError;
  endfunction

  // Reads: bursts in a queue for each identifier, of which any may give its next word.
  typedef struct packed {
    logic [7:0]             beats;    // less one
    logic [AddressBits-1:0] address;
  } request_t;
  logic [Ids-1:0] read_room, read_waits, read_taken;
  request_t read_request[Ids];
  for (genvar i = 0; i < Ids; i++) begin : gen_read
    descriptor_fifo #(
        .Width($bits(request_t)),
        .Depth(Requests)
    ) bursts (
        .clk,
        .rst_n,
        .push_valid(m_axi_read.arvalid && m_axi_read.arready && m_axi_read.arid == 2'(i)),
        .push_ready(read_room[i]),
        .push_data ({m_axi_read.arlen, m_axi_read.araddr}),
        .pop_valid (read_waits[i]),
        .pop_ready (read_taken[i]),
        .pop_data  (read_request[i])
    );
  end
  assign m_axi_read.arready = &read_room && !paused[0];

  logic [7:0] word[Ids];  // of the burst at the head of each queue
  logic [1:0] reader;
  logic gives, last_given;
  assign reader = turn(read_waits, drawn[1:0]);
  assign gives = read_waits != '0 && !paused[1] && (!m_axi_read.rvalid || m_axi_read.rready);
  assign last_given = word[reader] == read_request[reader].beats;
  always_comb begin
    read_taken = '0;
    read_taken[reader] = gives && last_given;
  end

  always_ff @(posedge clk) begin
    bit [8*DataBytes-1:0] data;
    bit failed;
    if (!rst_n) begin
      m_axi_read.rvalid <= 1'b0;
      for (int i = 0; i < Ids; i++) word[i] <= '0;
    end else if (gives) begin
      host_memory_read(64'(read_request[reader].address) + 64'(word[reader]) * 64'(DataBytes),
                       32'(DataBytes), data, failed);
      if (m_axi_read.rid != reader && word[m_axi_read.rid] != '0) memory_saw(SawTurns);
      m_axi_read.rvalid <= 1'b1;
      m_axi_read.rid <= reader;
      m_axi_read.rdata <= data;
      m_axi_read.rresp <= response(failed, drawn[2]);
      m_axi_read.rlast <= last_given;
      word[reader] <= last_given ? '0 : word[reader] + 1'b1;
    end else if (m_axi_read.rready) begin
      m_axi_read.rvalid <= 1'b0;
    end
  end

  // Writes: addresses and words each in a queue; a word is written when both are there.
  typedef struct packed {
    logic [1:0]             id;
    logic [AddressBits-1:0] address;
  } write_t;
  typedef struct packed {
    logic [8*DataBytes-1:0] data;
    logic [DataBytes-1:0]   strobes;
    logic                   last;
  } word_t;
  write_t write;
  word_t  written;
  logic address_room, address_waits, word_room, word_waits, writes;
  logic [Ids-1:0] answer_room, answer_waits, answer_taken;
  logic ended, ended_failed, before_failed;
  logic [1:0] ended_id;
  logic [AddressBits-1:0] offset;  // of the word within its burst
  descriptor_fifo #(
      .Width($bits(write_t)),
      .Depth(Requests)
  ) addresses (
      .clk,
      .rst_n,
      .push_valid(m_axi_write.awvalid && m_axi_write.awready),
      .push_ready(address_room),
      .push_data ({m_axi_write.awid, m_axi_write.awaddr}),
      .pop_valid (address_waits),
      .pop_ready (writes && written.last),
      .pop_data  (write)
  );
  descriptor_fifo #(
      .Width($bits(word_t)),
      .Depth(Words)
  ) words (
      .clk,
      .rst_n,
      .push_valid(m_axi_write.wvalid && m_axi_write.wready),
      .push_ready(word_room),
      .push_data ({m_axi_write.wdata, m_axi_write.wstrb, m_axi_write.wlast}),
      .pop_valid (word_waits),
      .pop_ready (writes),
      .pop_data  (written)
  );
  // Each may wait, for any time, until the other is offered (A3.3.1).
  logic address_awaits_word, word_awaits_address;
  always_ff @(posedge clk) begin
    if (!rst_n) {address_awaits_word, word_awaits_address} <= '0;
    else if (m_axi_write.awvalid && m_axi_write.awready)
      {address_awaits_word, word_awaits_address} <= drawn[7:6];
  end
  assign m_axi_write.awready = address_room && !paused[2] &&
      (!address_awaits_word || m_axi_write.wvalid || word_waits);
  assign m_axi_write.wready = word_room && !paused[3] &&
      (!word_awaits_address || m_axi_write.awvalid || address_waits);
  assign writes = address_waits && word_waits && !ended && &answer_room;

  always_ff @(posedge clk) begin
    bit failed;
    ended <= 1'b0;
    if (rst_n && word_waits && !address_waits) memory_saw(SawEarlyWord);
    if (!rst_n) begin
      offset <= '0;
      before_failed <= 1'b0;
    end else if (writes) begin
      host_memory_write(64'(write.address + offset), 32'(DataBytes), written.data, written.strobes,
                        failed);
      offset <= written.last ? '0 : offset + AddressBits'(DataBytes);
      before_failed <= !written.last && (before_failed || failed);
      ended <= written.last;
      ended_id <= write.id;
      ended_failed <= before_failed || failed;
    end
  end

  logic [1:0] answered;
  logic answers, answer_failed[Ids];
  for (genvar i = 0; i < Ids; i++) begin : gen_answer
    descriptor_fifo #(
        .Width(1),
        .Depth(Requests)
    ) waiting (
        .clk,
        .rst_n,
        .push_valid(ended && ended_id == 2'(i)),
        .push_ready(answer_room[i]),
        .push_data (ended_failed),
        .pop_valid (answer_waits[i]),
        .pop_ready (answer_taken[i]),
        .pop_data  (answer_failed[i])
    );
  end
  assign answered = turn(answer_waits, drawn[4:3]);
  assign answers  = answer_waits != '0 && !paused[4] && (!m_axi_write.bvalid || m_axi_write.bready);
  always_comb begin
    answer_taken = '0;
    answer_taken[answered] = answers;
  end
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      m_axi_write.bvalid <= 1'b0;
    end else if (answers) begin
      m_axi_write.bvalid <= 1'b1;
      m_axi_write.bid <= answered;
      m_axi_write.bresp <= response(answer_failed[answered], drawn[5]);
    end else if (m_axi_write.bready) begin
      m_axi_write.bvalid <= 1'b0;
    end
  end

  logic [Channels-1:0] held;
  assign held = {
    answer_waits != '0 && !answers && (!m_axi_write.bvalid || m_axi_write.bready),
    m_axi_write.wvalid && !m_axi_write.wready && word_room,
    m_axi_write.awvalid && !m_axi_write.awready && address_room,
    read_waits != '0 && !gives && (!m_axi_read.rvalid || m_axi_read.rready),
    m_axi_read.arvalid && !m_axi_read.arready && &read_room
  };
  always_ff @(posedge clk) begin
    for (int k = 0; k < Channels; k++) begin
      if (rst_n && held[k]) memory_saw((pauses[k] > 4 ? SawLongPause : SawPause) + k);
    end
    if (rst_n && m_axi_read.rvalid) begin
      if (m_axi_read.rresp == SlaveError) memory_saw(SawSlaveError);
      if (m_axi_read.rresp == DecodeError) memory_saw(SawDecodeError);
    end
    if (rst_n && m_axi_write.bvalid) begin
      if (m_axi_write.bresp == SlaveError) memory_saw(SawWriteSlaveError);
      if (m_axi_write.bresp == DecodeError) memory_saw(SawWriteDecodeError);
    end
  end

  logic unused;
  assign unused = &{1'b0, m_axi_read.arsize, m_axi_read.arburst, m_axi_write.awlen,
      m_axi_write.awsize, m_axi_write.awburst};

endmodule : unruly_memory
