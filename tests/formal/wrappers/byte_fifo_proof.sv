// byte_fifo: every byte of every beat appears in the window in its turn, while it has not been taken.
// Of all bytes one is followed, any one.

module byte_fifo_proof #(
    parameter int InBytes = 8,
    parameter int OutBytes = 8,
    parameter int Capacity = 64,
    localparam int LevelBits = $clog2(Capacity) + 1,
    localparam int InCountBits = $clog2(InBytes + 1),
    localparam int OutCountBits = $clog2(OutBytes + 1)
) (
    input logic clk,
    input logic rst_n,
    input logic in_valid,
    input logic [8*InBytes-1:0] in_data,
    input logic [InCountBits-1:0] in_count,
    input logic [OutCountBits-1:0] take,
    input logic follow,
    input logic [7:0] followed_byte  // of the beat
);

  localparam int PointerBits = $clog2(Capacity);

  logic in_ready;
  logic [LevelBits-1:0] level;
  logic [8*OutBytes-1:0] window;
  byte_fifo #(
      .InBytes (InBytes),
      .OutBytes(OutBytes),
      .Capacity(Capacity)
  ) queue (
      .*
  );
  resets_first resets (.*);

  logic push, followed, gone;
  logic [15:0] count, ahead;
  logic [7:0] value;
  assign push = in_valid && in_ready;
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      count <= '0;
      followed <= 1'b0;
      gone <= 1'b0;
    end else begin
      count <= count + (push ? 16'(in_count) : '0) - 16'(take);
      if (push && follow && !followed && followed_byte < 8'(in_count)) begin
        followed <= 1'b1;
        value <= 8'(in_data >> {followed_byte, 3'b000});
        ahead <= count + 16'(followed_byte) - 16'(take);
      end else if (followed) begin
        ahead <= ahead - 16'(take);
        gone  <= gone || ahead < 16'(take);
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst_n) begin
      assume_beat : assume (!in_valid || (in_count != '0 && in_count <= InCountBits'(InBytes)));
      assume_taken : assume (16'(take) <= count && take <= OutCountBits'(OutBytes));
      assert_takes_beats_that_fit : assert (in_ready == (count + 16'(InBytes) <= 16'(Capacity)));
      assert_level : assert (16'(level) == count && count <= 16'(Capacity));
      assert_in_order :
      assert (!followed || gone || ahead >= 16'(OutBytes) || 8'(window >> {ahead, 3'b000}) == value);
      lemma_pointers : assert (queue.tail == queue.head + PointerBits'(level));
      lemma_place :
      assert (!followed || gone ||
              (ahead < count && queue.bytes[queue.head+PointerBits'(ahead)] == value));
      cover_full : cover (count == 16'(Capacity));
      cover_leaves : cover (followed && !gone && ahead > 16'd1 && ahead < 16'(take));
    end
  end

endmodule : byte_fifo_proof
