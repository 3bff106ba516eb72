// read_stream: every byte of every descriptor leaves once, in order, unchanged. Of all bytes one is
// followed, any one of any descriptor: from its place in memory over the word that brings it to the beat
// with which it leaves. The stream does not look at the index of a descriptor, which therefore tells
// here whether it comes before the one that is followed, is that one, or comes behind it.

module stream_proof
  import dma_pkg::*;
#(
    parameter int DataBytes = 4,
    parameter int MaxBurst = 2,
    parameter int SizeBits = 8,  // descriptors have fewer bytes than 2 to the power of this
    localparam int BufferBeats = 4,
    localparam int Transfers = 2,
    localparam int BeatBits = $clog2(MaxBurst + 1),
    localparam int CountBits = $clog2(DataBytes + 1),
    localparam int OffsetBits = $clog2(DataBytes)
) (
    input logic clk,
    input logic rst_n,
    input logic pause,
    input logic [BeatBits-1:0] limit,
    input logic work_valid,
    input work_t work_data,
    input logic request_ready,
    input logic response_comes,
    input logic [8*DataBytes-1:0] response_data,
    input logic response_error,
    input logic stream_ready,
    input logic follow,
    input logic [31:0] followed_byte  // of the descriptor
);

  localparam logic [1:0] Before = 2'd0;
  localparam logic [1:0] Followed = 2'd1;
  localparam logic [1:0] Behind = 2'd2;

  logic work_ready, request_valid, response_valid, stream_valid, done_valid, error_valid;
  logic [AddressBits-1:0] request_address;
  logic [BeatBits-1:0] request_beats;
  logic [8*DataBytes-1:0] stream_data;
  logic [CountBits-1:0] stream_count;
  logic [31:0] done_index, error_index;
  read_stream #(
      .DataBytes(DataBytes),
      .MaxBurst(MaxBurst),
      .BufferBeats(BufferBeats),
      .QueueDepth(1),
      .Transfers(Transfers)
  ) stream (
      .*
  );
  resets_first resets (.*);

  typedef logic [SizeBits:0] bytes_t;
  typedef logic [SizeBits:0] words_t;
  function automatic words_t words(input bytes_t bytes, input logic [OffsetBits-1:0] offset);
    return words_t'((bytes + bytes_t'(offset) + bytes_t'(DataBytes - 1)) >> OffsetBits);
  endfunction

  // The descriptor that is followed, and its byte: the number of its first word, as words are asked
  // for, and of the word with the byte.
  logic pushed;
  logic begun;  // its first word has a number
  logic [AddressBits-1:0] address;
  bytes_t size, place;
  words_t first, wanted;
  logic arrived;
  logic [7:0] value;
  logic [OffsetBits-1:0] lane;
  assign lane   = address[OffsetBits-1:0] + OffsetBits'(place);
  assign wanted = first + words_t'((place + bytes_t'(address[OffsetBits-1:0])) >> OffsetBits);

  // Words asked for and come; bytes of a descriptor that have come, and that have left.
  words_t asked, came, unanswered;
  bytes_t taken, given;
  logic [2:0] held;
  logic push, granted, leaves, starts;
  words_t next_first, until_wanted, since_first;
  assign push = work_valid && work_ready;
  assign granted = request_valid && request_ready;
  assign response_valid = response_comes && unanswered != '0;
  assign unanswered = asked - came;
  assign leaves = stream_valid && stream_ready;
  assign starts = stream.next_valid && stream.next_ready;
  assign until_wanted = wanted - asked;
  assign since_first = asked - first;
  assign next_first = asked + (granted ? words_t'(request_beats) : '0);

  logic waited;
  logic [8*DataBytes+CountBits-1:0] beat, beat_was;
  assign beat = {stream_data, stream_count};
  always_ff @(posedge clk) begin
    beat_was <= beat;
    if (!rst_n) begin
      pushed <= 1'b0;
      begun <= 1'b0;
      arrived <= 1'b0;
      asked <= '0;
      came <= '0;
      taken <= '0;
      given <= '0;
      held <= '0;
      waited <= 1'b0;
    end else begin
      waited <= stream_valid && !stream_ready;
      asked  <= next_first;
      came   <= came + words_t'(response_valid);
      held   <= held + 3'(response_valid) - 3'(leaves);
      if (push && !pushed && follow) begin
        pushed <= 1'b1;
        address <= work_data.address;
        size <= bytes_t'(work_data.size);
        place <= bytes_t'(followed_byte);
      end
      if (starts && stream.next.index[1:0] == Followed) begin
        begun <= 1'b1;
        first <= next_first;
      end
      if (response_valid) begin
        taken <= stream.arriving.last ? '0 : taken + bytes_t'(stream.arriving.count);
        if (begun && !arrived && came == wanted) begin
          arrived <= 1'b1;
          value   <= response_error ? 8'd0 : 8'(response_data >> {lane, 3'b000});
        end
      end
      if (leaves) given <= done_valid ? '0 : given + bytes_t'(stream_count);
    end
  end

  // Whose burst is asked for, and the first words of what is expected.
  logic [1:0] asks;
  words_t firsts[Transfers];
  words_t end_of_all;
  assign end_of_all = asked + (stream.asking ? words(
      bytes_t'(stream.ask_left), stream.ask_address[OffsetBits-1:0]
  ) : '0);
  always_ff @(posedge clk) begin
    if (starts) begin
      asks <= stream.next.index[1:0];
      firsts[stream.expecting.tail] <= next_first;
    end
  end

  // What the queues hold.
  logic [0:0] head, other;
  logic one_expected, two_expected;
  assign head = stream.expecting.head;
  assign other = ~head;
  assign one_expected = stream.expecting.level != '0;
  assign two_expected = stream.expecting.level == 2'd2;
  work_t work, one, two;
  assign work = stream.waiting.entries[0];
  assign one  = stream.expecting.entries[head];
  assign two  = stream.expecting.entries[other];

  typedef struct packed {
    logic [1:0]             who;
    logic                   last;
    logic [CountBits-1:0]   count;
    logic [8*DataBytes-1:0] data;
    bytes_t                 place;  // of its first byte
  } beat_t;
  bytes_t places[BufferBeats];
  always_ff @(posedge clk) if (response_valid) places[stream.buffered.tail] <= taken;
  beat_t [BufferBeats-1:0] beats;  // in the order in which they leave
  always_comb begin
    for (int i = 0; i < BufferBeats; i++) begin
      beats[i].data = stream.buffered.entries[2'(stream.buffered.head+2'(i))][8*DataBytes-1:0];
      beats[i].count = stream.buffered.entries[2'(stream.buffered.head+2'(i))][8*DataBytes+:CountBits];
      beats[i].last = stream.buffered.entries[2'(stream.buffered.head+2'(i))][8*DataBytes+CountBits];
      beats[i].who = stream.buffered.entries[2'(stream.buffered.head+2'(i))][8*DataBytes+CountBits+1+:2];
      beats[i].place = places[2'(stream.buffered.head+2'(i))];
    end
  end

  // A beat is as it should be by itself.
  function automatic logic good(input beat_t b);
    if (b.count == '0 || b.count > CountBits'(DataBytes) || b.who > Behind) return 1'b0;
    if (b.who != Followed) return 1'b1;
    return pushed && begun && b.place < size && b.place + bytes_t'(b.count) <= size &&
        b.last == (b.place + bytes_t'(b.count) == size) &&
        (place < b.place || place >= b.place + bytes_t'(b.count) ||
         (arrived && 8'(b.data >> {OffsetBits'(place - b.place), 3'b000}) == value));
  endfunction

  // Zeros behind the bytes.
  function automatic logic padded(input beat_t b);
    padded = 1'b1;
    for (int i = 0; i < DataBytes; i++) begin
      if (i >= 32'(b.count) && b.data[8*i+:8] != '0) padded = 1'b0;
    end
  endfunction

  // The one that is followed comes once, between those before it and those behind it.
  function automatic logic follows(input logic [1:0] who, input logic [1:0] next);
    return next <= Behind && (next == who ? who != Followed : 3'(next) == 3'(who) + 3'd1);
  endfunction

  // A descriptor that is asked for as a whole.
  function automatic logic whole(input work_t w);
    return w.size != '0 && w.size < 32'(1 << SizeBits) && 41'(w.address) + 41'(w.size) <= 41'h100_0000_0000 &&
        (w.index[1:0] != Followed || (pushed && w.address == address && w.size == 32'(size)));
  endfunction

  // From the exit to the entrance: what comes behind the beats, behind what is received, ...
  logic [1:0] received, after_beats, after_received, after_one, after_two;
  assign received = stream.receive_index[1:0];
  assign after_two = stream.waiting.level != '0 ? work.index[1:0] : pushed ? Behind : Before;
  assign after_one = two_expected ? two.index[1:0] : after_two;
  assign after_received = one_expected ? one.index[1:0] : after_two;
  assign after_beats = stream.receiving ? received : after_received;

  // What left last, and whether it was the end of its descriptor.
  logic [1:0] left;
  logic ended;
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      left  <= Before;
      ended <= 1'b1;
    end else if (leaves) begin
      left  <= done_index[1:0];
      ended <= done_valid;
    end
  end

  // The beats follow one another, and what is received follows them.
  logic chained;
  always_comb begin
    chained = given == (held != '0 ? beats[0].place : taken);
    if (held != '0 || stream.receiving || ended) begin
      if (ended) chained &= follows(left, held != '0 ? beats[0].who : after_beats) && given == '0;
      else chained &= left == (held != '0 ? beats[0].who : received);
    end else chained = 1'b0;
    for (int i = 0; i < BufferBeats; i++) begin
      if (32'(i) < 32'(held)) begin
        chained &= good(beats[i]) && padded(beats[i]);
        if (32'(i) + 1 < 32'(held)) begin
          chained &= beats[i+1].place == (beats[i].last ? '0 : beats[i].place + bytes_t'(beats[i].count));
          chained &= beats[i].last ? follows(
              beats[i].who, beats[i+1].who
          ) : beats[i].who == beats[i+1].who;
        end else begin
          chained &= taken == (beats[i].last ? '0 : beats[i].place + bytes_t'(beats[i].count));
          chained &= beats[i].last ? follows(
              beats[i].who, after_beats
          ) : stream.receiving && beats[i].who == received;
        end
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst_n) begin
      assume_limit : assume (limit != '0 && limit <= BeatBits'(MaxBurst));
      assume_work :
      assume (work_data.size != '0 && work_data.size < 32'(1 << SizeBits) &&
              41'(work_data.address) + 41'(work_data.size) <= 41'h100_0000_0000);
      assume_place :
      assume (work_data.index[1:0] == (pushed ? Behind : follow ? Followed : Before));
      assume_byte : assume (followed_byte < work_data.size);

      assert_beat_stays : assert (!waited || (stream_valid && beat == beat_was));
      assert_beat_has_bytes :
      assert (!stream_valid || (stream_count != '0 && stream_count <= CountBits'(DataBytes) &&
                                padded(
          beats[0]
      )));
      assert_offers_what_came : assert (stream_valid == (held != '0));
      assert_has_room : assert (unanswered + words_t'(held) <= words_t'(BufferBeats));
      // The word with the byte is asked for where it lies.
      assert_address :
      assert (!granted || !begun || asks != Followed || until_wanted >= words_t'(request_beats) ||
              request_address + (AddressBits'(until_wanted) << OffsetBits) ==
              (((address + AddressBits'(place)) >> OffsetBits) << OffsetBits));
      assert_unchanged :
      assert (!stream_valid || done_index[1:0] != Followed || given > place ||
              given + bytes_t'(stream_count) <= place ||
              (arrived && 8'(stream_data >> {OffsetBits'(place - given), 3'b000}) == value));
      assert_in_order :
      assert (!stream_valid || (ended ? follows(left, done_index[1:0]) : left == done_index[1:0]));
      assert_ends_with_its_last_byte :
      assert (!stream_valid || done_index[1:0] != Followed ||
              (given + bytes_t'(stream_count) <= size &&
               done_valid == (stream_ready && given + bytes_t'(stream_count) == size)));

      lemma_queues :
      assert (stream.waiting.level <= 2'd1 && stream.waiting.head == '0 &&
              stream.waiting.tail == '0 && stream.expecting.level <= 2'd2 &&
              stream.expecting.level[0] == (stream.expecting.head != stream.expecting.tail) &&
              held <= 3'd4 && 3'(stream.buffered.level) == held &&
              stream.buffered.tail == 2'(stream.buffered.head + 2'(held)));
      lemma_reserved : assert (words_t'(stream.reserved) == unanswered + words_t'(held));
      lemma_unanswered : assert (unanswered <= words_t'(BufferBeats));
      lemma_followed :
      assert (!pushed ? !begun && !arrived :
              (size != '0 && !size[SizeBits] && place < size && 41'(address) + 41'(size) <= 41'h100_0000_0000 &&
               (begun || (!arrived && stream.waiting.level != '0 && work.index[1:0] == Followed))));
      lemma_waiting :
      assert (stream.waiting.level == '0 || (whole(
          work
      ) && (pushed || work.index[1:0] == Before) && work.index[1:0] <= Behind &&
          (!begun || work.index[1:0] == Behind)));
      lemma_expected :
      assert ((!one_expected || (whole(
          one
      ) && one.index[1:0] <= Behind)) && (!two_expected || (whole(
          two
      ) && two.index[1:0] <= Behind)));
      lemma_order :
      assert ((!stream.receiving || follows(
          received, after_received
      )) && (!one_expected || follows(
          one.index[1:0], after_one
      )) && (!two_expected || follows(
          two.index[1:0], after_two
      )));
      lemma_chained : assert (chained);
      // Each descriptor's words begin where those of the one before end.
      lemma_words :
      assert ((!stream.receiving || came + words(
          bytes_t'(stream.receive_left), stream.offset
      ) == (one_expected ? firsts[head] : end_of_all)) && (!one_expected || firsts[head] + words(
          bytes_t'(one.size), one.address[OffsetBits-1:0]
      ) == (two_expected ? firsts[other] : end_of_all)) && (!two_expected || firsts[other] + words(
          bytes_t'(two.size), two.address[OffsetBits-1:0]
      ) == end_of_all));
      lemma_idle :
      assert (stream.receiving || (unanswered == '0 && taken == '0 && !two_expected &&
              stream.asking == one_expected && (!one_expected || came == firsts[head])));
      lemma_asks :
      assert (!stream.asking || (stream.ask_left != '0 && stream.ask_left < 32'(1 << SizeBits) &&
              41'(stream.ask_address) + 41'(stream.ask_left) <= 41'h100_0000_0000 &&
              asks == (two_expected ? two.index[1:0] : one_expected ? one.index[1:0] : received)));
      lemma_asks_followed :
      assert (!stream.asking || asks != Followed || (pushed && begun &&
              41'(stream.ask_address) + 41'(stream.ask_left) == 41'(address) + 41'(size) &&
              stream.ask_address[AddressBits-1:OffsetBits] == address[AddressBits-1:OffsetBits] +
              (AddressBits - OffsetBits)'(since_first) &&
              stream.ask_address[OffsetBits-1:0] == (since_first == '0 ? address[OffsetBits-1:0] : '0)));
      lemma_expected_followed :
      assert ((!one_expected || one.index[1:0] != Followed ||
               (begun && !arrived && first == firsts[head])) &&
              (!two_expected || two.index[1:0] != Followed ||
               (begun && !arrived && first == firsts[other])));
      lemma_received :
      assert (!stream.receiving || (stream.receive_left != '0 && stream.receive_left < 32'(1 << SizeBits) && received <= Behind));
      lemma_received_followed :
      assert (!stream.receiving || received != Followed || (pushed && begun &&
              taken < size && taken + bytes_t'(stream.receive_left) == size &&
              stream.offset == (taken == '0 ? address[OffsetBits-1:0] : '0) &&
              (taken == '0 || OffsetBits'(taken) + address[OffsetBits-1:0] == '0) &&
              came - first == (taken == '0 ? '0 :
                               words_t'((taken + bytes_t'(address[OffsetBits-1:0])) >> OffsetBits)) &&
              arrived == (place < taken)));
      lemma_arrived :
      assert (!begun || arrived || (stream.receiving && received == Followed) ||
              (one_expected && one.index[1:0] == Followed) ||
              (two_expected && two.index[1:0] == Followed));
      cover_second_burst :
      cover (done_valid && done_index[1:0] == Followed && place > bytes_t'(2 * DataBytes));
      cover_behind_another :
      cover (done_valid && done_index[1:0] == Before && held > 3'd1 && beats[1].who == Followed);
      cover_full : cover (held == 3'(BufferBeats));
    end
  end

endmodule : stream_proof
