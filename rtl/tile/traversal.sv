// Tensor traversal unit: walks the addresses of nested loops from the encoded, normalised strides.
// One element is offered at a time; `advance` takes it, and `ended` says which blocks end with it.

module traversal #(
    parameter int Loops = 4,
    parameter int AddressBits = 16,
    parameter int CounterBits = 16,
    parameter bit HasPrologue = 1'b0,
    parameter bit Restarts = 1'b0,  // its user goes round, and stops it anywhere
    localparam int SelectBits = (Loops > 2) ? $clog2(Loops) : 1
) (
    input logic clk,
    input logic rst_n,

    // Parameters, as the instruction encodes them; held from `start` until `done`. What a kind of
    // instruction does not have is left out.
    input logic [AddressBits-1:0] base,
    input logic signed [Loops-1:0][CounterBits:0] stride,
    input logic [Loops-1:0][CounterBits-1:0] limit,
    input logic [SelectBits-1:0] double_loop = '0,
    input logic [AddressBits-1:0] double_offset = '0,
    input logic double_start = '0,
    input logic [CounterBits-1:0] alternate_limit,
    input logic [SelectBits-1:0] alternate_loop,
    input logic signed [CounterBits-1:0] alternate_reset = '0,
    input logic alternate_target = '0,  // loop that the alternate limit applies to: 0 or 1
    input logic prologue_enable = '0,
    input logic [SelectBits-1:0] prologue_loop = '0,
    input logic [AddressBits-1:0] prologue_base = '0,
    input logic [CounterBits-1:0] prologue_inner_limit = '0,
    input logic [CounterBits-1:0] prologue_outer_limit = '0,
    input logic [CounterBits-1:0] prologue_outer_stride = '0,

    input logic start,  // load the parameters and offer the first element; at the end only
    input logic advance,  // take the element that is offered
    output logic valid,  // an element is offered
    output logic [AddressBits-1:0] address,
    output logic [AddressBits-1:0] next_address,  // behind this one, or the first again; no prologue
    output logic [15:0] begins,  // bit d: a block of depth d begins here
    output logic [15:0] ended,  // bit d: a block of depth d ends with this element
    output logic last,
    output logic second,  // the second buffer is addressed

    output logic [Loops-1:0][CounterBits-1:0] index,      // of each loop
    output logic [Loops-1:0]                  loop_ended  // this is the last pass of the loop
);

  logic in_prologue;
  logic [Loops:0] block_begins, block_ended;
  logic [AddressBits-1:0] body_address;
  logic [CounterBits:0] prologue_left;
  logic [CounterBits-1:0] prologue_index;
  logic [AddressBits-1:0] prologue_address;

  // The alternate limit holds on the last pass of its loop.
  logic alternate_pass;
  assign alternate_pass = (alternate_loop != '0) &&
      (index[alternate_loop] == limit[alternate_loop]);

  always_comb begin
    for (int k = 0; k < Loops; k++) begin
      loop_ended[k] = index[k] == limit[k];
    end
    if (alternate_pass) begin
      if (alternate_target) loop_ended[1] = index[1] == alternate_limit;
      else loop_ended[0] = index[0] == alternate_limit;
    end
  end

  // A block of depth d ends when loops 0 to d-1 are all at their ends.
  always_comb begin
    logic inner_done;
    inner_done = !in_prologue;
    for (int d = 0; d <= Loops; d++) begin
      if (d > 0) inner_done = inner_done && loop_ended[d-1];
      block_ended[d] = inner_done;
    end
  end
  assign last   = !in_prologue && block_ended[Loops];

  // A block of a depth beyond the loops is the whole traversal.
  assign begins = 16'(signed'(block_begins));
  assign ended  = 16'(signed'(block_ended));

  // What the advancing loop adds: its normalised stride undoes the travel of the loops inside it;
  // the alternate pass has travelled less, and its reset makes up for that.
  logic signed [AddressBits+1:0] travel;
  always_comb begin
    travel = '0;
    for (int k = Loops - 1; k >= 0; k--) begin
      if (!loop_ended[k]) begin
        travel = (AddressBits + 2)'(signed'(stride[k]));
        if (alternate_pass && k > int'(alternate_target)) begin
          travel = travel + (AddressBits + 2)'(signed'(alternate_reset));
        end
      end
    end
  end

  logic toggles;
  assign toggles = 1'(block_ended >> double_loop) && (double_offset != '0);

  assign in_prologue = HasPrologue && prologue_left != '0;
  assign address = in_prologue ? prologue_address + AddressBits'(prologue_index)
                               : body_address + (second ? double_offset : '0);

  logic [AddressBits-1:0] next_body_address;
  assign next_body_address = last ? base : body_address + AddressBits'(travel);
  assign next_address = next_body_address +
      ((last ? double_start : second ^ toggles) ? double_offset : '0);

  function automatic logic [CounterBits:0] prologue_length(input logic [Loops:0] starts);
    if (HasPrologue && prologue_enable && 1'(starts >> (prologue_loop + (SelectBits + 1)'(1)))) begin
      return {1'b0, prologue_inner_limit} + (CounterBits + 1)'(1);
    end
    return '0;
  endfunction

  // The prologue's base steps between its runs and wraps beyond the outer limit (ping-pong).
  logic [  AddressBits:0] stepped_prologue;
  logic [AddressBits-1:0] next_prologue;
  assign stepped_prologue = {1'b0, prologue_address} + (AddressBits + 1)'(prologue_outer_stride);
  assign next_prologue = (stepped_prologue > (AddressBits + 1)'(prologue_outer_limit))
      ? prologue_base : stepped_prologue[AddressBits-1:0];

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      valid <= 1'b0;
      index <= '0;
      body_address <= '0;
      second <= 1'b0;
      block_begins <= '0;
      prologue_left <= '0;
      prologue_index <= '0;
      prologue_address <= '0;
    end else if (start) begin
      valid <= 1'b1;
      index <= '0;
      body_address <= base;
      second <= double_start;
      block_begins <= '1;
      prologue_left <= prologue_length('1);
      prologue_index <= '0;
      prologue_address <= prologue_base;
    end else if (advance && in_prologue) begin
      prologue_left  <= prologue_left - 1'b1;
      prologue_index <= prologue_index + 1'b1;
      block_begins   <= '0;
      if (prologue_left == (CounterBits + 1)'(1)) begin
        prologue_address <= next_prologue;
      end
    end else if (advance) begin
      valid <= !last;
      for (int k = 0; k < Loops; k++) begin
        if (block_ended[k]) index[k] <= loop_ended[k] ? '0 : index[k] + 1'b1;
      end
      body_address <= next_body_address;
      second <= second ^ toggles;
      block_begins <= block_ended;
      prologue_left <= last ? '0 : prologue_length(block_ended);
      prologue_index <= '0;
    end
  end

`ifndef SYNTHESIS
  assert_advance_only_when_valid :
  assert property (@(posedge clk) disable iff (!rst_n) advance |-> valid);
  assert_start_only_at_an_end :
  assert property (@(posedge clk) disable iff (!rst_n) start |->
      Restarts || !valid || (advance && last));
`endif

endmodule : traversal
