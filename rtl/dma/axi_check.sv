// Checks one AXI4 port: whether master and slave keep the rules of axi_rules_pkg. It has no outputs. It
// tests a rule when a payload is first offered, or at the handshake. It tracks pending bursts by
// identifier, because words and answers of different identifiers come in any order. AXI4-Lite is
// checked as AXI4 with bursts of one whole word and one identifier.

module axi_check
  import dma_pkg::*;
  import axi_rules_pkg::*;
#(
    parameter int DataBytes = harness_pkg::DataBytes,
    parameter int MaxReads = 8,  // bursts that may wait for an answer
    parameter int MaxWrites = 8
) (
    input logic clk,
    input logic rst_n,
    axi_read.monitor read,
    axi_write.monitor write
);

`ifndef SYNTHESIS
  localparam int Ids = 4;
  localparam int Early = 256;  // words of the longest burst
  localparam int EarlyBits = $clog2(Early);
  localparam logic [1:0] Fixed = 2'b00;
  localparam logic [1:0] Wrap = 2'b10;
  localparam logic [1:0] Reserved = 2'b11;
  localparam logic [1:0] ExclusiveOkay = 2'b01;

  typedef struct packed {
    logic [AddressBits-1:0] address;
    logic [7:0]             length;
    logic [2:0]             size;
    logic [1:0]             kind;
  } burst_t;

  typedef struct packed {
    logic [1:0] id;
    burst_t     burst;
  } request_t;

  typedef struct packed {
    logic [1:0]             id;
    logic [8*DataBytes-1:0] data;
    logic [1:0]             response;
    logic                   last;
  } read_word_t;

  typedef struct packed {
    logic [8*DataBytes-1:0] data;
    logic [DataBytes-1:0]   strobes;
    logic                   last;
  } write_word_t;

  typedef struct packed {
    logic [1:0] id;
    logic [1:0] response;
  } answer_t;

  // The rules that an address breaks, in their order from `ArSize` or `AwSize` on.
  function automatic logic [4:0] wrong(input burst_t burst);
    logic [AddressBits-1:0] inner;  // bits of an address within a word
    inner = (AddressBits'(1) << burst.size) - 1'b1;
    wrong[0] = 32'(1) << burst.size > DataBytes;
    wrong[1] = burst.kind == Reserved;
    wrong[2] = (burst.kind == Fixed && burst.length > 8'd15) ||
        (burst.kind == Wrap && !(burst.length inside {8'd1, 8'd3, 8'd7, 8'd15}));
    wrong[3] = burst.kind == Wrap && (burst.address & inner) != '0;
    wrong[4] = !(burst.kind inside {Fixed, Wrap}) &&
        (32'(burst.address[11:0]) & ~32'(inner[11:0])) + ((32'(burst.length) + 1) << burst.size) > BurstBoundary;
  endfunction

  // Lanes of the bus in which a word of a burst has bytes.
  function automatic logic [DataBytes-1:0] lanes(input burst_t burst, input logic [7:0] number);
    logic [AddressBits-1:0] bytes, inner, around, address;
    logic [31:0] first;
    bytes   = AddressBits'(1) << burst.size;
    inner   = bytes - 1'b1;
    around  = ((AddressBits'(burst.length) + 1'b1) << burst.size) - 1'b1;  // of a burst that wraps
    address = burst.address;
    if (burst.kind != Fixed && number != '0) begin
      address = (address & ~inner) + (AddressBits'(number) << burst.size);
      if (burst.kind == Wrap) address = (burst.address & ~around) | (address & around);
    end
    first = 32'(address) % DataBytes;
    for (int i = 0; i < DataBytes; i++) begin
      lanes[i] = 32'(i) >= first && 32'(i) < (first & ~32'(inner)) + 32'(bytes);
    end
  endfunction

  function automatic rules_t one(input int rule, input logic broken);
    return rules_t'(broken) << rule;
  endfunction

  // The rules of every channel: three from `first` on.
  function automatic rules_t held(input int first, input logic waited, input logic valid,
                                  input logic same);
    return one(first + 1, waited && !valid) | one(first + 2, waited && valid && !same);
  endfunction

  function automatic void tell(input rules_t broken, input logic [1:0] id);
    int i;  // of the function: a scope of its own would be in the message
    for (i = 0; i < Rules; i++) begin
      if (broken[i]) $error("%s (ID %0d)", text(i), id);
    end
  endfunction

  logic reset_before;
  initial reset_before = 1'b0;  // where it cannot be random
  always @(posedge clk) reset_before <= !rst_n;

  // In the first cycle of reset it has not yet taken effect.
  rules_t in_reset;
  assign in_reset = one(
      ArReset, read.arvalid
  ) | one(
      RReset, read.rvalid
  ) | one(
      AwReset, write.awvalid
  ) | one(
      WReset, write.wvalid
  ) | one(
      BReset, write.bvalid
  );
  always_ff @(posedge clk) begin
    if (!rst_n && reset_before)
      assert_quiet_in_reset :
      assert (in_reset == '0)
      else tell(in_reset, '0);
  end

  // Reads: the lengths of each identifier's bursts in a ring, and the words of its oldest that came.
  localparam int ReadBits = $clog2(MaxReads + 1);
  typedef logic [ReadBits-1:0] reads_t;
  request_t ar, ar_was;
  read_word_t r, r_was;
  logic ar_waited, r_waited;
  logic [7:0] lengths[Ids][2**ReadBits];
  reads_t oldest_read[Ids];
  reads_t reads_of[Ids];
  logic [7:0] words_of[Ids];
  reads_t reads;  // from when their address is offered
  assign ar = '{id: read.arid, burst: '{read.araddr, read.arlen, read.arsize, read.arburst}};
  assign r  = '{id: read.rid, data: read.rdata, response: read.rresp, last: read.rlast};

  // Whether a burst ends at the length of a later one of its identifier, so in the wrong order.
  function automatic logic ends_as_another(input logic [1:0] id);
    ends_as_another = 1'b0;
    for (int i = 1; i < MaxReads; i++) begin
      if (i < 32'(reads_of[id]) && lengths[id][oldest_read[id]+reads_t'(i)] == words_of[id]) begin
        ends_as_another = 1'b1;
      end
    end
  endfunction

  always_ff @(posedge clk) begin
    rules_t broken;
    logic expected, complete;
    if (!rst_n) begin
      ar_waited <= 1'b0;
      r_waited <= 1'b0;
      reads <= '0;
      for (int i = 0; i < Ids; i++) begin
        oldest_read[i] <= '0;
        reads_of[i] <= '0;
        words_of[i] <= '0;
      end
    end else if (read.arvalid || read.rvalid || ar_waited || r_waited) begin
      broken = held(ArReset, ar_waited, read.arvalid, ar == ar_was);
      if (read.arvalid && !ar_waited) begin
        broken |= (rules_t'(wrong(ar.burst)) << ArSize) |
            one(ArOutstanding, 32'(reads) >= MaxReads);
      end
      assert_read_address :
      assert (broken == '0)
      else tell(broken, ar.id);

      expected = reads_of[r.id] != '0;
      complete = read.rvalid && expected && words_of[r.id] == lengths[r.id][oldest_read[r.id]];
      broken   = held(RReset, r_waited, read.rvalid, r == r_was);
      if (read.rvalid && !r_waited) begin
        broken |= one(RRequest, !expected) | one(RResponse, r.response == ExclusiveOkay);
        if (expected && r.last != complete) begin
          broken |= one((r.last && ends_as_another(r.id)) ? ROrder : RLast, 1'b1);
        end
      end
      assert_read_word :
      assert (broken == '0)
      else tell(broken, r.id);

      if (read.arvalid && read.arready) begin
        lengths[ar.id][oldest_read[ar.id]+reads_of[ar.id]] <= ar.burst.length;
      end
      if (read.rvalid && read.rready) begin
        words_of[r.id] <= complete ? '0 : words_of[r.id] + 1'b1;
        oldest_read[r.id] <= oldest_read[r.id] + reads_t'(complete);
      end
      complete = complete && read.rready;
      for (int i = 0; i < Ids; i++) begin
        reads_of[i] <= reads_of[i] + reads_t'(read.arvalid && read.arready && ar.id == 2'(i)) -
            reads_t'(complete && r.id == 2'(i));
      end
      reads <= reads + reads_t'(read.arvalid && !ar_waited) - reads_t'(complete);
      ar_waited <= read.arvalid && !read.arready;
      r_waited <= read.rvalid && !read.rready;
      ar_was <= ar;
      r_was <= r;
    end
  end

  // Writes: requested bursts in a ring, from the offer of their address until the address and all words
  // have been taken. Words that come before their address wait in another ring.
  localparam int WriteBits = $clog2(MaxWrites + 1);
  typedef logic [WriteBits-1:0] writes_t;
  request_t aw, aw_was;
  write_word_t w, w_was;
  answer_t b, b_was;
  logic aw_waited, w_waited, b_waited;
  request_t asked[2**WriteBits];
  writes_t oldest_write;
  writes_t filled;  // bursts that have all their words, and whose address has not been taken
  writes_t unfilled;  // bursts behind them
  writes_t addresses;  // that have been taken, of bursts that have not all their words
  logic [7:0] words;  // of the first of `unfilled`
  logic [DataBytes:0] early[Early];  // last, and strobes
  logic [EarlyBits-1:0] oldest_early;
  logic [EarlyBits:0] earlies;
  writes_t writes;  // from when their address is offered until they are answered
  writes_t writes_of[Ids];
  writes_t answerable_of[Ids];
  assign aw = '{id: write.awid, burst: '{write.awaddr, write.awlen, write.awsize, write.awburst}};
  assign w  = '{data: write.wdata, strobes: write.wstrb, last: write.wlast};
  assign b  = '{id: write.bid, response: write.bresp};

  function automatic rules_t wrong_word(input burst_t burst, input logic [7:0] number,
                                        input logic [DataBytes:0] word);
    return one(WLast, word[DataBytes] != (number == burst.length)) |
        one(WStrobes, (word[DataBytes-1:0] & ~lanes(burst, number)) != '0);
  endfunction

  always_ff @(posedge clk) begin
    rules_t   broken;
    request_t at;
    logic offered, taken, known, full, over, answered, waits;
    logic [1:0] over_id;
    logic [EarlyBits:0] matched;
    logic [7:0] number;
    if (!rst_n) begin
      aw_waited <= 1'b0;
      w_waited <= 1'b0;
      b_waited <= 1'b0;
      oldest_write <= '0;
      filled <= '0;
      unfilled <= '0;
      addresses <= '0;
      words <= '0;
      oldest_early <= '0;
      earlies <= '0;
      writes <= '0;
      for (int i = 0; i < Ids; i++) begin
        writes_of[i] <= '0;
        answerable_of[i] <= '0;
      end
    end else if (write.awvalid || write.wvalid || write.bvalid || aw_waited || w_waited || b_waited) begin
      offered = write.awvalid && !aw_waited;
      taken   = write.awvalid && write.awready;
      broken  = held(AwReset, aw_waited, write.awvalid, aw == aw_was);
      if (offered) begin
        broken |= (rules_t'(wrong(
            aw.burst
        )) << AwSize) | one(
            AwOutstanding, 32'(writes) >= MaxWrites
        );
        asked[oldest_write+filled+unfilled] <= aw;
      end
      assert_write_address :
      assert (broken == '0)
      else tell(broken, aw.id);

      // Words that waited for this address, then the word of this cycle, which may wait for the next one.
      broken  = held(WReset, w_waited, write.wvalid, w == w_was);
      known   = unfilled != '0 || offered;
      at      = (unfilled != '0) ? asked[oldest_write+filled] : aw;
      number  = words;
      full    = 1'b0;
      matched = '0;
      if (offered && earlies != '0) begin
        for (int i = 0; i < Early; i++) begin
          if (i < 32'(earlies) && !full) begin
            broken |= wrong_word(at.burst, number, early[oldest_early+EarlyBits'(i)]);
            full = number == at.burst.length;
            number = number + 8'd1;
            matched = matched + 1'b1;
          end
        end
      end
      waits = write.wvalid && write.wready && (!known || full);
      if (waits) begin
        broken |= one(WAhead, earlies - matched == (EarlyBits + 1)'(Early));
        early[oldest_early+EarlyBits'(earlies)] <= {w.last, w.strobes};
      end else if (write.wvalid && write.wready) begin
        broken |= wrong_word(at.burst, number, {w.last, w.strobes});
        full   = number == at.burst.length;
        number = number + 8'd1;
      end
      assert_write_word :
      assert (broken == '0)
      else tell(broken, known ? at.id : '0);

      broken = held(BReset, b_waited, write.bvalid, b == b_was);
      if (write.bvalid && !b_waited) begin
        broken |= one(BResponse, b.response == ExclusiveOkay);
        if (answerable_of[b.id] == '0)
          broken |= one(writes_of[b.id] == '0 ? BRequest : BEarly, 1'b1);
      end
      assert_write_answer :
      assert (broken == '0)
      else tell(broken, b.id);

      over = (taken || addresses != '0) && (full || filled != '0);
      over_id = (filled == '0 && unfilled == '0) ? aw.id : asked[oldest_write].id;
      answered = write.bvalid && write.bready && answerable_of[b.id] != '0;
      oldest_write <= oldest_write + writes_t'(over);
      addresses <= addresses + writes_t'(taken) - writes_t'(over);
      filled <= filled + writes_t'(full) - writes_t'(over);
      unfilled <= unfilled + writes_t'(offered) - writes_t'(full);
      words <= full ? '0 : number;
      oldest_early <= oldest_early + EarlyBits'(matched);
      earlies <= earlies + (EarlyBits + 1)'(waits) - matched;
      writes <= writes + writes_t'(offered) - writes_t'(answered);
      for (int i = 0; i < Ids; i++) begin
        writes_of[i] <= writes_of[i] + writes_t'(offered && aw.id == 2'(i)) -
            writes_t'(answered && b.id == 2'(i));
        answerable_of[i] <= answerable_of[i] + writes_t'(over && over_id == 2'(i)) -
            writes_t'(answered && b.id == 2'(i));
      end
      aw_waited <= write.awvalid && !write.awready;
      w_waited <= write.wvalid && !write.wready;
      b_waited <= write.bvalid && !write.bready;
      aw_was <= aw;
      w_was <= w;
      b_was <= b;
    end
  end
`endif

endmodule : axi_check
