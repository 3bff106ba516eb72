// Queue of descriptors, or of whatever else waits in order: first in, first out, no fall-through.
// It takes an entry whenever it has room and never loses or invents one.

module descriptor_fifo #(
    parameter int Width = 101,
    parameter int Depth = 16
) (
    input logic clk,
    input logic rst_n,

    input  logic             push_valid,
    output logic             push_ready,
    input  logic [Width-1:0] push_data,

    output logic             pop_valid,
    input  logic             pop_ready,
    output logic [Width-1:0] pop_data
);

  localparam int IndexBits = (Depth > 1) ? $clog2(Depth) : 1;
  localparam logic [IndexBits-1:0] LastIndex = IndexBits'(Depth - 1);

  logic [Width-1:0] entries[Depth];
  logic [IndexBits-1:0] head;
  logic [IndexBits-1:0] tail;
  logic [IndexBits:0] level;

  logic push;
  logic pop;
  assign push_ready = level != (IndexBits + 1)'(Depth);
  assign pop_valid = level != '0;
  assign pop_data = entries[head];
  assign push = push_valid && push_ready;
  assign pop = pop_valid && pop_ready;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      head  <= '0;
      tail  <= '0;
      level <= '0;
    end else begin
      if (push) tail <= (tail == LastIndex) ? '0 : tail + 1'b1;
      if (pop) head <= (head == LastIndex) ? '0 : head + 1'b1;
      level <= level + (IndexBits + 1)'(push) - (IndexBits + 1)'(pop);
    end
    if (push) entries[tail] <= push_data;
  end

`ifndef SYNTHESIS
  assert_no_overflow :
  assert property (@(posedge clk) disable iff (!rst_n)
      level == (IndexBits + 1)'(Depth) |=> level <= (IndexBits + 1)'(Depth))
  else $error("queue overflow");
  assert_no_underflow :
  assert property (@(posedge clk) disable iff (!rst_n) level == '0 && !push |=> level == '0)
  else $error("queue underflow");
  assert_level_matches_pointers :
  assert property (@(posedge clk) disable iff (!rst_n)
      int'(head) + int'(level) - int'(tail) inside {0, Depth})
  else $error("queue level and pointers disagree");
`endif

endmodule : descriptor_fifo
