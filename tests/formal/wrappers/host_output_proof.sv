// host_output: every byte of a unit or a word leaves once, in its turn, and it is idle exactly when
// all that came has been written and answered. Of all bytes one is followed, any one.

module host_output_proof #(
    parameter int DataBytes = 8,
    localparam int CountBits = $clog2(DataBytes + 1),
    localparam logic [15:0] Capacity = (DataBytes > 8) ? 16'(4 * DataBytes) : 16'd32,
    localparam int PointerBits = $clog2(int'(Capacity))
) (
    input logic clk,
    input logic rst_n,
    input logic outfeed2output_unit_valid,
    input logic [63:0] outfeed2output_unit_data,
    input logic core2output_word_valid,
    input logic [31:0] core2output_word_data,
    input logic output2dma_byte_ready,
    input logic bus2output_word_valid,
    input logic [DataBytes-1:0] bus2output_word_strobes,
    input logic bus2output_word_last,
    input logic bus2output_answer_valid,
    input logic follow,
    input logic [2:0] followed_byte  // of the unit, or of the word
);

  logic outfeed2output_unit_ready, core2output_word_ready, output2dma_byte_valid, output2core_idle;
  logic [8*DataBytes-1:0] output2dma_byte_data;
  logic [  CountBits-1:0] output2dma_byte_count;
  host_output #(.DataBytes(DataBytes)) host (.*);
  resets_first resets (.*);

  logic unit_taken, word_taken, beat_taken;
  logic [7:0] come, leave, written;
  assign unit_taken = outfeed2output_unit_valid && outfeed2output_unit_ready;
  assign word_taken = core2output_word_valid && core2output_word_ready;
  assign beat_taken = output2dma_byte_valid && output2dma_byte_ready;
  assign come = (unit_taken ? 8'd8 : 8'd0) + (word_taken ? 8'd4 : 8'd0);
  assign leave = beat_taken ? 8'(output2dma_byte_count) : '0;
  assign written = bus2output_word_valid ? 8'($countones(bus2output_word_strobes)) : '0;

  // Bytes that came and have not left; that left and are not written; bursts without an answer.
  logic [15:0] kept, held, unanswered;
  logic waited;
  logic [8*DataBytes+CountBits-1:0] beat, beat_was;
  assign beat = {output2dma_byte_count, output2dma_byte_data};

  logic followed, gone;
  logic [ 7:0] value;
  logic [15:0] ahead;
  always_ff @(posedge clk) begin
    beat_was <= beat;
    if (!rst_n) begin
      kept <= '0;
      held <= '0;
      unanswered <= '0;
      waited <= 1'b0;
      followed <= 1'b0;
      gone <= 1'b0;
    end else begin
      kept <= kept + 16'(come) - 16'(leave);
      held <= held + 16'(leave) - 16'(written);
      unanswered <= unanswered + 16'(bus2output_word_valid && bus2output_word_last) -
          16'(bus2output_answer_valid);
      waited <= output2dma_byte_valid && !output2dma_byte_ready;
      if (follow && !followed && 8'(followed_byte) < come) begin
        followed <= 1'b1;
        value <= word_taken ? 8'(core2output_word_data >> {followed_byte[1:0], 3'b000})
                            : 8'(outfeed2output_unit_data >> {followed_byte, 3'b000});
        ahead <= kept + 16'(followed_byte) - 16'(leave);
      end else if (followed) begin
        ahead <= ahead - 16'(leave);
        gone  <= gone || ahead < 16'(leave);
      end
    end
  end

  logic [15:0] in_beat;
  assign in_beat = output2dma_byte_valid ? 16'(output2dma_byte_count) : '0;

  always_ff @(posedge clk) begin
    if (rst_n) begin
      // The engine writes what it was given, and answers come for bursts that were written.
      assume_written : assume (16'(written) <= held);
      assume_answered : assume (!bus2output_answer_valid || unanswered != '0);
      assume_few : assume (held < 16'd200 && unanswered < 16'd200);
      assert_one_at_a_time : assert (!unit_taken || !word_taken);
      assert_takes_what_it_has_room_for :
      assert (core2output_word_ready == (kept - in_beat <= Capacity - 16'd8) &&
              (core2output_word_valid || outfeed2output_unit_ready == core2output_word_ready));
      assert_beat_stays : assert (!waited || (output2dma_byte_valid && beat == beat_was));
      assert_beat_has_bytes :
      assert (!output2dma_byte_valid ||
              (output2dma_byte_count != '0 && output2dma_byte_count <= CountBits'(DataBytes) &&
               (output2dma_byte_data >> {output2dma_byte_count, 3'b000}) == '0));
      assert_in_order :
      assert (!followed || gone || ahead >= in_beat ||
              8'(output2dma_byte_data >> {ahead, 3'b000}) == value);
      assert_idle : assert (output2core_idle == (kept == '0 && held == '0 && unanswered == '0));
      lemma_inside : assert (kept == 16'(host.level) + in_beat && 16'(host.level) <= Capacity);
      lemma_held : assert (host.held == 32'(held) && host.unanswered == unanswered);
      lemma_pointers : assert (host.waiting.tail == host.waiting.head + PointerBits'(host.level));
      lemma_place :
      assert (!followed || gone || (ahead < kept && (ahead < in_beat ||
              host.waiting.bytes[host.waiting.head+PointerBits'(ahead-in_beat)] ==
              value)));
      cover_full : cover (16'(host.level) == Capacity);
      cover_leaves : cover (followed && !gone && ahead > 16'd8 && beat_taken);
      cover_waits_for_an_answer :
      cover (kept == '0 && held == '0 && unanswered == 16'd2 && word_taken);
    end
  end

endmodule : host_output_proof
