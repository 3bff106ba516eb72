// Checks one AXI4 port, signal by signal: whether master and slave keep the rules below. It needs no
// package and no interface, has no outputs, and fits any widths; signals that a port lacks are tied
// to 0. It tests a rule when a payload is first offered, or at the handshake. It tracks pending bursts
// by identifier, because words and answers of different identifiers come in any order.

module axi_port_check #(
    parameter int AddressBits = 32,
    parameter int DataBytes = 8,
    parameter int IdBits = 1,
    parameter int MaxReads = 8,  // bursts that may wait for an answer
    parameter int MaxWrites = 8,
    parameter int LongestWait = 0,  // cycles that an offer waits; 0: any number
    parameter int LongestAnswer = 0,  // cycles without a word or an answer that is due; 0: any number
    parameter bit HasIds = 1'b1,  // without: one identifier
    parameter bit HasBursts = 1'b1,  // without: AXI4-Lite, each burst is one whole word
    parameter bit HasStrobes = 1'b1,  // without: whatever is in the burst is written
    parameter bit HasResponses = 1'b1  // without: every response is OKAY
) (
    input logic clk,
    input logic rst_n,
    input logic at_end, // nothing may be pending any more

    input logic                   arvalid,
    input logic                   arready,
    input logic [     IdBits-1:0] arid,
    input logic [AddressBits-1:0] araddr,
    input logic [            7:0] arlen,
    input logic [            2:0] arsize,
    input logic [            1:0] arburst,
    input logic                   rvalid,
    input logic                   rready,
    input logic [     IdBits-1:0] rid,
    input logic [8*DataBytes-1:0] rdata,
    input logic [            1:0] rresp,
    input logic                   rlast,
    input logic                   awvalid,
    input logic                   awready,
    input logic [     IdBits-1:0] awid,
    input logic [AddressBits-1:0] awaddr,
    input logic [            7:0] awlen,
    input logic [            2:0] awsize,
    input logic [            1:0] awburst,
    input logic                   wvalid,
    input logic                   wready,
    input logic [8*DataBytes-1:0] wdata,
    input logic [  DataBytes-1:0] wstrb,
    input logic                   wlast,
    input logic                   bvalid,
    input logic                   bready,
    input logic [     IdBits-1:0] bid,
    input logic [            1:0] bresp
);

`ifndef SYNTHESIS
  // begin rules
  // Generated from darwinn_rtl.axi_rules (make docs).
  localparam int Rules = 47;
  localparam int ArReset = 0;
  localparam int ArHeld = 1;
  localparam int ArStable = 2;
  localparam int ArWait = 3;
  localparam int ArSize = 4;
  localparam int ArBurst = 5;
  localparam int ArLength = 6;
  localparam int ArWrap = 7;
  localparam int ArBoundary = 8;
  localparam int ArOutstanding = 9;
  localparam int RReset = 10;
  localparam int RHeld = 11;
  localparam int RStable = 12;
  localparam int RWait = 13;
  localparam int RRequest = 14;
  localparam int RLast = 15;
  localparam int ROrder = 16;
  localparam int RResponse = 17;
  localparam int RLate = 18;
  localparam int REnd = 19;
  localparam int AwReset = 20;
  localparam int AwHeld = 21;
  localparam int AwStable = 22;
  localparam int AwWait = 23;
  localparam int AwSize = 24;
  localparam int AwBurst = 25;
  localparam int AwLength = 26;
  localparam int AwWrap = 27;
  localparam int AwBoundary = 28;
  localparam int AwOutstanding = 29;
  localparam int WReset = 30;
  localparam int WHeld = 31;
  localparam int WStable = 32;
  localparam int WWait = 33;
  localparam int WLast = 34;
  localparam int WStrobes = 35;
  localparam int WAhead = 36;
  localparam int WEnd = 37;
  localparam int BReset = 38;
  localparam int BHeld = 39;
  localparam int BStable = 40;
  localparam int BWait = 41;
  localparam int BRequest = 42;
  localparam int BEarly = 43;
  localparam int BResponse = 44;
  localparam int BLate = 45;
  localparam int BEnd = 46;
  task automatic tell(input logic [Rules-1:0] broken, input logic [IdBits-1:0] id);
    int i;  // of the task: a scope of its own would be in the message
    for (i = 0; i < Rules; i = i + 1) begin
      if (broken[i]) begin
        case (i)
          ArReset: $error("master: ar_reset: ARVALID is low in reset (ID %0d)", id);
          ArHeld: $error("master: ar_held: ARVALID stays high until ARREADY (ID %0d)", id);
          ArStable:
          $error("master: ar_stable: the payload stays unchanged until ARREADY (ID %0d)", id);
          ArWait:
          $error("slave: ar_wait: ARREADY comes within the port's longest wait (ID %0d)", id);
          ArSize: $error("master: ar_size: no word of a burst is wider than the bus (ID %0d)", id);
          ArBurst:
          $error("master: ar_burst: a burst is fixed, incrementing or wrapping (ID %0d)", id);
          ArLength:
          $error(
              "master: ar_length: a fixed burst has 16 words at most, a wrapping one 2, 4, 8 or 16 (ID %0d)",
              id
          );
          ArWrap: $error("master: ar_wrap: a wrapping burst begins at a whole word (ID %0d)", id);
          ArBoundary: $error("master: ar_boundary: a burst does not cross 4 KiB (ID %0d)", id);
          ArOutstanding:
          $error(
              "master: ar_outstanding: unanswered bursts stay within the port's limit (ID %0d)", id
          );
          RReset: $error("slave: r_reset: RVALID is low in reset (ID %0d)", id);
          RHeld: $error("slave: r_held: RVALID stays high until RREADY (ID %0d)", id);
          RStable: $error("slave: r_stable: the payload stays unchanged until RREADY (ID %0d)", id);
          RWait: $error("master: r_wait: RREADY comes within the port's longest wait (ID %0d)", id);
          RRequest:
          $error("slave: r_request: every word belongs to a requested burst (ID %0d)", id);
          RLast:
          $error(
              "slave: r_last: RLAST comes with the last word of the burst and no other (ID %0d)", id
          );
          ROrder:
          $error(
              "slave: r_order: bursts of one ID are answered in the order of requests (ID %0d)", id
          );
          RResponse:
          $error("slave: r_response: no response is EXOKAY: no request is exclusive (ID %0d)", id);
          RLate:
          $error(
              "slave: r_late: a word that is due comes within the port's longest wait (ID %0d)", id
          );
          REnd: $error("slave: r_end: at the end no burst of reads is unanswered (ID %0d)", id);
          AwReset: $error("master: aw_reset: AWVALID is low in reset (ID %0d)", id);
          AwHeld: $error("master: aw_held: AWVALID stays high until AWREADY (ID %0d)", id);
          AwStable:
          $error("master: aw_stable: the payload stays unchanged until AWREADY (ID %0d)", id);
          AwWait:
          $error("slave: aw_wait: AWREADY comes within the port's longest wait (ID %0d)", id);
          AwSize: $error("master: aw_size: no word of a burst is wider than the bus (ID %0d)", id);
          AwBurst:
          $error("master: aw_burst: a burst is fixed, incrementing or wrapping (ID %0d)", id);
          AwLength:
          $error(
              "master: aw_length: a fixed burst has 16 words at most, a wrapping one 2, 4, 8 or 16 (ID %0d)",
              id
          );
          AwWrap: $error("master: aw_wrap: a wrapping burst begins at a whole word (ID %0d)", id);
          AwBoundary: $error("master: aw_boundary: a burst does not cross 4 KiB (ID %0d)", id);
          AwOutstanding:
          $error(
              "master: aw_outstanding: unanswered bursts stay within the port's limit (ID %0d)", id
          );
          WReset: $error("master: w_reset: WVALID is low in reset (ID %0d)", id);
          WHeld: $error("master: w_held: WVALID stays high until WREADY (ID %0d)", id);
          WStable:
          $error("master: w_stable: the payload stays unchanged until WREADY (ID %0d)", id);
          WWait: $error("slave: w_wait: WREADY comes within the port's longest wait (ID %0d)", id);
          WLast:
          $error(
              "master: w_last: WLAST comes with the last word of the burst and no other (ID %0d)",
              id
          );
          WStrobes: $error("master: w_strobes: strobes cover only bytes of the burst (ID %0d)", id);
          WAhead:
          $error("master: w_ahead: at most 256 words come before their address (ID %0d)", id);
          WEnd:
          $error(
              "master: w_end: at the end each address has its words, and each word its address (ID %0d)",
              id
          );
          BReset: $error("slave: b_reset: BVALID is low in reset (ID %0d)", id);
          BHeld: $error("slave: b_held: BVALID stays high until BREADY (ID %0d)", id);
          BStable: $error("slave: b_stable: the payload stays unchanged until BREADY (ID %0d)", id);
          BWait: $error("master: b_wait: BREADY comes within the port's longest wait (ID %0d)", id);
          BRequest:
          $error("slave: b_request: every response belongs to a requested burst (ID %0d)", id);
          BEarly:
          $error(
              "slave: b_early: a response comes after the address and the last word (ID %0d)", id
          );
          BResponse:
          $error("slave: b_response: no response is EXOKAY: no request is exclusive (ID %0d)", id);
          BLate:
          $error(
              "slave: b_late: an answer that is due comes within the port's longest wait (ID %0d)",
              id
          );
          BEnd: $error("slave: b_end: at the end no burst of writes is unanswered (ID %0d)", id);
          default: ;
        endcase
      end
    end
  endtask
  // end rules

  localparam int Ids = 2 ** IdBits;
  localparam int Early = 256;  // words of the longest burst
  localparam int Boundary = 4096;
  localparam logic [1:0] Fixed = 2'b00;
  localparam logic [1:0] Increment = 2'b01;
  localparam logic [1:0] Wrap = 2'b10;
  localparam logic [1:0] Reserved = 2'b11;
  localparam logic [1:0] Okay = 2'b00;
  localparam logic [1:0] ExclusiveOkay = 2'b01;
  localparam logic [2:0] WholeWord = 3'($clog2(DataBytes));
  typedef logic [Rules-1:0] rules_t;

  // A burst: address, length, size, kind. The lowest twelve bits of an address decide about rules.
  localparam int BurstBits = AddressBits + 13;
  typedef logic [BurstBits-1:0] burst_t;

  // Signals as they count: what a port lacks has the value that AXI4-Lite gives it.
  logic [IdBits-1:0] ar_id, r_id, aw_id, b_id;
  burst_t ar, aw;
  logic r_last, w_last;
  logic [1:0] r_response, b_response;
  assign ar_id = HasIds ? arid : '0;
  assign r_id = HasIds ? rid : '0;
  assign aw_id = HasIds ? awid : '0;
  assign b_id = HasIds ? bid : '0;
  assign ar = HasBursts ? {araddr, arlen, arsize, arburst} : {araddr, 8'd0, WholeWord, Increment};
  assign aw = HasBursts ? {awaddr, awlen, awsize, awburst} : {awaddr, 8'd0, WholeWord, Increment};
  assign r_last = HasBursts ? rlast : 1'b1;
  assign w_last = HasBursts ? wlast : 1'b1;
  assign r_response = HasResponses ? rresp : Okay;
  assign b_response = HasResponses ? bresp : Okay;

  initial begin
    if (AddressBits < 12) $error("an address of fewer bits than a page has");
  end

  // The rules that an address breaks, in their order from `ArSize` or `AwSize` on.
  function automatic logic [4:0] wrong(input logic [24:0] burst);
    logic [31:0] bytes, low;
    bytes = 32'd1 << burst[4:2];
    low = 32'(burst[24:13]) & ~(bytes - 32'd1);
    wrong[0] = bytes > DataBytes;
    wrong[1] = burst[1:0] == Reserved;
    wrong[2] = (burst[1:0] == Fixed && burst[12:5] > 8'd15) || (burst[1:0] == Wrap &&
        burst[12:5] != 8'd1 && burst[12:5] != 8'd3 && burst[12:5] != 8'd7 && burst[12:5] != 8'd15);
    wrong[3] = burst[1:0] == Wrap && (32'(burst[24:13]) & (bytes - 32'd1)) != 32'd0;
    wrong[4] = burst[1:0] != Fixed && burst[1:0] != Wrap &&
        low + ((32'(burst[12:5]) + 32'd1) << burst[4:2]) > Boundary;
  endfunction

  // Lanes of the bus in which a word of a burst has bytes.
  function automatic logic [DataBytes-1:0] lanes(input logic [24:0] burst,
                                                 input logic [7:0] number);
    logic [31:0] bytes, inner, around, address, first;
    int i;
    bytes   = 32'd1 << burst[4:2];
    inner   = bytes - 32'd1;
    around  = ((32'(burst[12:5]) + 32'd1) << burst[4:2]) - 32'd1;  // of a burst that wraps
    address = 32'(burst[24:13]);
    if (burst[1:0] != Fixed && number != 8'd0) begin
      address = (address & ~inner) + (32'(number) << burst[4:2]);
      if (burst[1:0] == Wrap) address = (32'(burst[24:13]) & ~around) | (address & around);
    end
    first = address % DataBytes;
    for (i = 0; i < DataBytes; i = i + 1) begin
      lanes[i] = 32'(i) >= first && 32'(i) < (first & ~inner) + bytes;
    end
  endfunction

  function automatic rules_t one(input int rule, input logic broken);
    one = rules_t'(broken) << rule;
  endfunction

  // The rules of every channel: four from `first` on.
  function automatic rules_t held(input int first, input logic waited, input logic valid,
                                  input logic same, input logic late);
    held = one(first + 1, waited && !valid) | one(first + 2, waited && valid && !same) |
        one(first + 3, late);
  endfunction

  logic reset_before;
  initial reset_before = 1'b0;  // where it cannot be random
  always @(posedge clk) reset_before <= !rst_n;

  // In the first cycle of reset it has not yet taken effect.
  rules_t in_reset;
  assign in_reset = one(
      ArReset, arvalid
  ) | one(
      RReset, rvalid
  ) | one(
      AwReset, awvalid
  ) | one(
      WReset, wvalid
  ) | one(
      BReset, bvalid
  );
  always @(posedge clk) begin
    if (!rst_n && reset_before && in_reset != '0) tell(in_reset, '0);
  end

  // How long each channel's offer has waited, from `ar` at the lowest place on; told once.
  logic [4:0] offers, taken_now, too_long;
  assign offers = {bvalid, wvalid, awvalid, rvalid, arvalid};
  assign taken_now = {bready, wready, awready, rready, arready};
  if (LongestWait != 0) begin : g_waits
    logic [31:0] waits[5];
    for (genvar c = 0; c < 5; c = c + 1) begin : g_channel
      assign too_long[c] = offers[c] && !taken_now[c] && waits[c] == LongestWait;
      always @(posedge clk) begin
        if (!rst_n || !offers[c] || taken_now[c]) waits[c] <= '0;
        else waits[c] <= waits[c] + 32'd1;
      end
    end
  end else begin : g_no_waits
    assign too_long = '0;
    logic unused;
    assign unused = &{1'b0, offers, taken_now};
  end

  // Reads: the lengths of each identifier's bursts in a ring, and the words of its oldest that came.
  localparam int ReadBits = $clog2(MaxReads + 1);
  typedef logic [ReadBits-1:0] reads_t;
  burst_t ar_was;
  logic [IdBits-1:0] ar_id_was, r_id_was;
  logic [8*DataBytes-1:0] rdata_was;
  logic r_last_was;
  logic [1:0] r_response_was;
  logic ar_waited, r_waited;
  logic [7:0] lengths[Ids * 2 ** ReadBits];
  reads_t oldest_read[Ids];
  reads_t reads_of[Ids];
  logic [7:0] words_of[Ids];
  reads_t reads;  // from when their address is offered

  function automatic logic [IdBits+ReadBits-1:0] place(input logic [IdBits-1:0] id,
                                                       input reads_t behind);
    reads_t slot;
    slot  = oldest_read[id] + behind;
    place = {id, slot};
  endfunction

  // Whether a burst ends at the length of a later one of its identifier, so in the wrong order.
  function automatic logic ends_as_another(input logic [IdBits-1:0] id);
    int i;
    ends_as_another = 1'b0;
    for (i = 1; i < MaxReads; i = i + 1) begin
      if (i < 32'(reads_of[id]) && lengths[place(id, reads_t'(i))] == words_of[id]) begin
        ends_as_another = 1'b1;
      end
    end
  endfunction

  always @(posedge clk) begin : check_reads
    rules_t broken;
    logic expected, complete;
    logic [IdBits+ReadBits-1:0] slot;
    int i;
    if (!rst_n) begin
      ar_waited <= 1'b0;
      r_waited <= 1'b0;
      reads <= '0;
      for (i = 0; i < Ids; i = i + 1) begin
        oldest_read[i] <= '0;
        reads_of[i] <= '0;
        words_of[i] <= '0;
      end
    end else if (arvalid || rvalid || ar_waited || r_waited) begin
      broken = held(ArReset, ar_waited, arvalid, ar == ar_was && ar_id == ar_id_was, too_long[0]);
      if (arvalid && !ar_waited) begin
        broken = broken | (rules_t'(wrong(ar[24:0])) << ArSize) |
            one(ArOutstanding, 32'(reads) >= MaxReads);
      end
      if (broken != '0) tell(broken, ar_id);

      expected = reads_of[r_id] != '0;
      complete = rvalid && expected && words_of[r_id] == lengths[place(r_id, '0)];
      broken = held(
        RReset,
        r_waited,
        rvalid,
        r_id == r_id_was && rdata == rdata_was && r_response == r_response_was && r_last == r_last_was,
        too_long[1]
      );
      if (rvalid && !r_waited) begin
        broken = broken | one(RRequest, !expected) | one(RResponse, r_response == ExclusiveOkay);
        if (expected && r_last != complete) begin
          broken = broken | one((r_last && ends_as_another(r_id)) ? ROrder : RLast, 1'b1);
        end
      end
      if (broken != '0) tell(broken, r_id);

      if (arvalid && arready) begin
        slot = place(ar_id, reads_of[ar_id]);
        lengths[slot] <= ar[12:5];
      end
      complete = complete && rready;
      if (rvalid && rready) begin
        words_of[r_id] <= complete ? 8'd0 : words_of[r_id] + 8'd1;
        oldest_read[r_id] <= oldest_read[r_id] + reads_t'(complete);
      end
      for (i = 0; i < Ids; i = i + 1) begin
        reads_of[i] <= reads_of[i] + reads_t'(arvalid && arready && 32'(ar_id) == i) -
            reads_t'(complete && 32'(r_id) == i);
      end
      reads <= reads + reads_t'(arvalid && !ar_waited) - reads_t'(complete);
      ar_waited <= arvalid && !arready;
      r_waited <= rvalid && !rready;
      ar_was <= ar;
      ar_id_was <= ar_id;
      r_id_was <= r_id;
      rdata_was <= rdata;
      r_response_was <= r_response;
      r_last_was <= r_last;
    end
  end

  // Writes: requested bursts in a ring, from the offer of their address until the address and all words
  // have been taken. Words that come before their address wait in another ring.
  localparam int WriteBits = $clog2(MaxWrites + 1);
  localparam int EarlyBits = $clog2(Early);
  typedef logic [WriteBits-1:0] writes_t;
  burst_t aw_was;
  logic [IdBits-1:0] aw_id_was, b_id_was;
  logic [8*DataBytes-1:0] wdata_was;
  logic [DataBytes-1:0] wstrb_was, strobes;
  logic w_last_was;
  logic [1:0] b_response_was;
  logic aw_waited, w_waited, b_waited;
  logic [24:0] asked[2 ** WriteBits];
  logic [IdBits-1:0] asked_id[2 ** WriteBits];
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
  assign strobes = HasStrobes ? wstrb : '0;

  function automatic rules_t wrong_word(input logic [24:0] burst, input logic [7:0] number,
                                        input logic [DataBytes:0] word);
    wrong_word = one(WLast, word[DataBytes] != (number == burst[12:5])) |
        one(WStrobes, (word[DataBytes-1:0] & ~lanes(burst, number)) != '0);
  endfunction

  always @(posedge clk) begin : check_writes
    rules_t broken;
    logic [24:0] at;
    writes_t slot;
    logic offered, taken, known, full, over, answered, kept;
    logic [IdBits-1:0] at_id, over_id;
    logic [EarlyBits-1:0] next_early;
    logic [EarlyBits:0] matched;
    logic [7:0] number;
    int i;
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
      for (i = 0; i < Ids; i = i + 1) begin
        writes_of[i] <= '0;
        answerable_of[i] <= '0;
      end
    end else if (awvalid || wvalid || bvalid || aw_waited || w_waited || b_waited) begin
      offered = awvalid && !aw_waited;
      taken   = awvalid && awready;
      broken  = held(AwReset, aw_waited, awvalid, aw == aw_was && aw_id == aw_id_was, too_long[2]);
      if (offered) begin
        broken = broken | (rules_t'(wrong(aw[24:0])) << AwSize) |
            one(AwOutstanding, 32'(writes) >= MaxWrites);
        slot = oldest_write + filled + unfilled;
        asked[slot] <= aw[24:0];
        asked_id[slot] <= aw_id;
      end
      if (broken != '0) tell(broken, aw_id);

      // Words that waited for this address, then the word of this cycle, which may wait for the next one.
      broken = held(
        WReset,
        w_waited,
        wvalid,
        wdata == wdata_was && strobes == wstrb_was && w_last == w_last_was,
        too_long[3]
      );
      known = unfilled != '0 || offered;
      slot = oldest_write + filled;
      at = (unfilled != '0) ? asked[slot] : aw[24:0];
      at_id = (unfilled != '0) ? asked_id[slot] : aw_id;
      number = words;
      full = 1'b0;
      matched = '0;
      if (offered && earlies != '0) begin
        for (i = 0; i < Early; i = i + 1) begin
          if (i < 32'(earlies) && !full) begin
            next_early = oldest_early + EarlyBits'(i);
            broken = broken | wrong_word(at, number, early[next_early]);
            full = number == at[12:5];
            number = number + 8'd1;
            matched = matched + 1'b1;
          end
        end
      end
      kept = wvalid && wready && (!known || full);
      if (kept) begin
        broken = broken | one(WAhead, earlies - matched == (EarlyBits + 1)'(Early));
        next_early = oldest_early + EarlyBits'(earlies);
        early[next_early] <= {w_last, strobes};
      end else if (wvalid && wready) begin
        broken = broken | wrong_word(at, number, {w_last, strobes});
        full   = number == at[12:5];
        number = number + 8'd1;
      end
      if (broken != '0) tell(broken, known ? at_id : '0);

      broken = held(BReset, b_waited, bvalid, b_id == b_id_was && b_response == b_response_was,
                    too_long[4]);
      if (bvalid && !b_waited) begin
        broken = broken | one(BResponse, b_response == ExclusiveOkay);
        if (answerable_of[b_id] == '0) begin
          broken = broken | one(writes_of[b_id] == '0 ? BRequest : BEarly, 1'b1);
        end
      end
      if (broken != '0) tell(broken, b_id);

      over = (taken || addresses != '0) && (full || filled != '0);
      over_id = (filled == '0 && unfilled == '0) ? aw_id : asked_id[oldest_write];
      answered = bvalid && bready && answerable_of[b_id] != '0;
      oldest_write <= oldest_write + writes_t'(over);
      addresses <= addresses + writes_t'(taken) - writes_t'(over);
      filled <= filled + writes_t'(full) - writes_t'(over);
      unfilled <= unfilled + writes_t'(offered) - writes_t'(full);
      words <= full ? 8'd0 : number;
      oldest_early <= oldest_early + EarlyBits'(matched);
      earlies <= earlies + (EarlyBits + 1)'(kept) - matched;
      writes <= writes + writes_t'(offered) - writes_t'(answered);
      for (i = 0; i < Ids; i = i + 1) begin
        writes_of[i] <= writes_of[i] + writes_t'(offered && 32'(aw_id) == i) -
            writes_t'(answered && 32'(b_id) == i);
        answerable_of[i] <= answerable_of[i] + writes_t'(over && 32'(over_id) == i) -
            writes_t'(answered && 32'(b_id) == i);
      end
      aw_waited <= awvalid && !awready;
      w_waited <= wvalid && !wready;
      b_waited <= bvalid && !bready;
      aw_was <= aw;
      aw_id_was <= aw_id;
      wdata_was <= wdata;
      wstrb_was <= strobes;
      w_last_was <= w_last;
      b_id_was <= b_id;
      b_response_was <= b_response;
    end
  end

  // What is due and does not come: told once.
  if (LongestAnswer != 0) begin : g_late
    logic [31:0] no_word, no_answer;
    logic read_due, write_due;
    rules_t missing;
    assign read_due = 32'(reads) > 32'(ar_waited) && !rvalid;
    assign write_due = writes != '0 && !aw_waited && unfilled == '0 && !wvalid && !bvalid;
    assign missing = one(
        RLate, read_due && no_word == LongestAnswer
    ) | one(
        BLate, write_due && no_answer == LongestAnswer
    );
    always @(posedge clk) begin
      no_word   <= (rst_n && read_due) ? no_word + 32'd1 : '0;
      no_answer <= (rst_n && write_due) ? no_answer + 32'd1 : '0;
      if (rst_n && missing != '0) tell(missing, '0);
    end
  end

  // What is left when all should have ended: told once.
  logic   ended;
  rules_t left;
  assign left = one(
      REnd, reads != '0
  ) | one(
      WEnd, unfilled != '0 || earlies != '0
  ) | one(
      BEnd, writes != '0 && unfilled == '0
  );
  always @(posedge clk) begin
    ended <= rst_n && at_end;
    if (rst_n && at_end && !ended && left != '0) tell(left, '0);
  end
`endif

endmodule : axi_port_check
