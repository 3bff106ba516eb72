// Queue of instructions in front of a unit or of a tile; the oldest one stands in a register of its
// own, so that what listens to it sees it move only when an instruction leaves.

module instruction_queue #(
    parameter int Bits  = 128,
    parameter int Depth = 16    // a power of two; one more waits at the exit
) (
    input logic clk,
    input logic rst_n,

    input  logic            in_valid,
    output logic            in_ready,
    input  logic [Bits-1:0] in_data,

    output logic            out_valid,
    input  logic            out_ready,
    output logic [Bits-1:0] out_data
);

  localparam int PointerBits = $clog2(Depth);

  if (Depth != 1 << PointerBits) begin : gen_not_a_power
    $fatal(1, "a queue of instructions has as many places as a power of two");
  end

  logic [Bits-1:0] entries[Depth];
  logic [PointerBits-1:0] head;
  logic [PointerBits-1:0] tail;
  logic [PointerBits:0] stored;
  logic taken, exit_free, passes_by, from_store, to_store;

  assign in_ready = stored != (PointerBits + 1)'(Depth);
  assign taken = in_valid && in_ready;
  assign exit_free = !out_valid || out_ready;
  assign from_store = exit_free && stored != '0;
  assign passes_by = exit_free && stored == '0 && taken;
  assign to_store = taken && !passes_by;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      out_valid <= 1'b0;
      head <= '0;
      tail <= '0;
      stored <= '0;
    end else begin
      if (exit_free) out_valid <= from_store || passes_by;
      if (from_store) head <= head + 1'b1;
      if (to_store) tail <= tail + 1'b1;
      stored <= stored + (PointerBits + 1)'(to_store) - (PointerBits + 1)'(from_store);
    end
    if (from_store) out_data <= entries[head];
    else if (passes_by) out_data <= in_data;
    if (to_store) entries[tail] <= in_data;
  end

`ifndef SYNTHESIS
  assert_no_overflow :
  assert property (@(posedge clk) disable iff (!rst_n) stored <= (PointerBits + 1)'(Depth))
  else $error("more instructions than the queue holds");
  assert_no_underflow :
  assert property (@(posedge clk) disable iff (!rst_n) from_store |-> stored != '0)
  else $error("an instruction leaves the queue that never entered it");
`endif

endmodule : instruction_queue
