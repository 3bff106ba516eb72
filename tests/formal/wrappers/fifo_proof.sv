// descriptor_fifo: what goes in comes out once and in order. Of all entries one is followed, any one.

module fifo_proof #(
    parameter int Width = 4,
    parameter int Depth = 16
) (
    input logic clk,
    input logic rst_n,
    input logic push_valid,
    input logic [Width-1:0] push_data,
    input logic pop_ready,
    input logic follow  // the entry that goes in now, if none is followed yet
);

  logic push_ready, pop_valid;
  logic [Width-1:0] pop_data;
  descriptor_fifo #(
      .Width(Width),
      .Depth(Depth)
  ) queue (
      .*
  );
  resets_first resets (.*);

  logic push, pop, followed, gone;
  logic [15:0] count, ahead, place;
  logic [Width-1:0] value;
  assign push = push_valid && push_ready;
  assign pop  = pop_valid && pop_ready;
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      count <= '0;
      followed <= 1'b0;
      gone <= 1'b0;
    end else begin
      count <= count + 16'(push) - 16'(pop);
      if (push && follow && !followed) begin
        followed <= 1'b1;
        value <= push_data;
        ahead <= count - 16'(pop);
      end else if (followed && pop) begin
        ahead <= ahead - 16'd1;
        gone  <= gone || ahead == '0;
      end
    end
  end

  always_comb begin
    place = 16'(queue.head) + ahead;
    if (place >= 16'(Depth)) place = place - 16'(Depth);
  end

  always_ff @(posedge clk) begin
    if (rst_n) begin
      assert_takes_what_it_has_room_for : assert (push_ready == (count != 16'(Depth)));
      assert_offers_what_it_holds : assert (pop_valid == (count != '0));
      assert_in_order : assert (!followed || gone || ahead != '0 || pop_data == value);
      lemma_level : assert (16'(queue.level) == count && count <= 16'(Depth));
      lemma_pointers :
      assert (int'(queue.head) < Depth && int'(queue.tail) < Depth &&
              int'(queue.head) + int'(queue.level) - int'(queue.tail) inside {0, Depth});
      lemma_place : assert (!followed || gone || (ahead < count && queue.entries[place] == value));
      cover_full : cover (count == 16'(Depth));
      cover_leaves : cover (followed && !gone && ahead == 16'd0 && pop && count > 16'd1);
    end
  end

endmodule : fifo_proof
