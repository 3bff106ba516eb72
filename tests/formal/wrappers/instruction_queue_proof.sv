// instruction_queue: what goes in comes out once and in order. Of all entries one is followed, any one.

module instruction_queue_proof #(
    parameter int Bits  = 4,
    parameter int Depth = 16
) (
    input logic clk,
    input logic rst_n,
    input logic in_valid,
    input logic [Bits-1:0] in_data,
    input logic out_ready,
    input logic follow
);

  logic in_ready, out_valid;
  logic [Bits-1:0] out_data;
  instruction_queue #(
      .Bits (Bits),
      .Depth(Depth)
  ) queue (
      .*
  );
  resets_first resets (.*);

  localparam int PointerBits = $clog2(Depth);
  logic push, pop, followed, gone;
  logic [15:0] count, ahead;
  logic [PointerBits-1:0] place;
  logic [Bits-1:0] value;
  assign push = in_valid && in_ready;
  assign pop  = out_valid && out_ready;
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      count <= '0;
      followed <= 1'b0;
      gone <= 1'b0;
    end else begin
      count <= count + 16'(push) - 16'(pop);
      if (push && follow && !followed) begin
        followed <= 1'b1;
        value <= in_data;
        ahead <= count - 16'(pop);
      end else if (followed && pop) begin
        ahead <= ahead - 16'd1;
        gone  <= gone || ahead == '0;
      end
    end
  end

  // The first of them stands at the exit.
  assign place = queue.head + PointerBits'(ahead - 16'd1);

  // What is offered stays offered.
  logic waited;
  logic [Bits-1:0] offered;
  always_ff @(posedge clk) begin
    waited  <= rst_n && out_valid && !out_ready;
    offered <= out_data;
  end

  always_ff @(posedge clk) begin
    if (rst_n) begin
      // One more may stand at the exit, and goes there in the cycle in which it enters.
      assert_takes_what_it_has_room_for : assert (in_ready == (count != 16'(Depth + 1)));
      assert_offers_what_it_holds : assert (out_valid == (count != '0));
      assert_in_order : assert (!followed || gone || ahead != '0 || out_data == value);
      assert_stays : assert (!waited || (out_valid && out_data == offered));
      lemma_level :
      assert (16'(queue.stored) + 16'(out_valid) == count && queue.stored <= (PointerBits + 1)'(Depth));
      lemma_pointers : assert (queue.tail == queue.head + PointerBits'(queue.stored));
      lemma_place :
      assert (!followed || gone ||
              (ahead < count && (ahead == '0 || queue.entries[place] == value)));
      cover_full : cover (count == 16'(Depth + 1));
      cover_leaves : cover (followed && !gone && ahead == '0 && pop && count > 16'd1);
    end
  end

endmodule : instruction_queue_proof
