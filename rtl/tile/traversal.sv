// Tensor traversal unit: walks the addresses of nested loops from the encoded, normalised strides.
// One element is offered at a time; `advance` takes it, and the step says which blocks end with it.

module traversal
  import tile_pkg::step_t;
#(
    parameter type walk_t = isa_pkg::traversal_4x16_t,
    parameter int Loops = 4,
    parameter int CounterBits = 16,  // of the counters and of an address
    parameter bit HasPrologue = 1'b0,
    parameter bit Restarts = 1'b0  // its user goes round, and stops it anywhere
) (
    input logic clk,
    input logic rst_n,

    // As the instruction encodes it; held from `start` until the last element has been taken.
    input walk_t walk,
    input logic  alternate_target, // loop that the alternate limit applies to: 0 or 1

    input logic start,  // load the parameters and offer the first element; at the end only
    input logic advance,  // take the element that is offered
    output step_t step,
    output logic [CounterBits-1:0] address,
    output logic [CounterBits-1:0] next_address,  // behind this one, or the first again; no prologue
    output logic [Loops-1:0][CounterBits-1:0] index,  // of each loop
    output logic [Loops-1:0] loop_ended  // this is the last pass of the loop
);

  logic valid, last, second;
  logic in_prologue;
  logic [Loops:0] block_begins, block_ended;
  logic [CounterBits-1:0] body_address;
  logic [CounterBits-1:0] prologue_address;

  // The alternate limit holds on the last pass of its loop.
  logic alternate_pass;
  assign alternate_pass = (walk.alternate_loop != '0) &&
      (index[walk.alternate_loop] == walk.loop[walk.alternate_loop].limit);

  always_comb begin
    for (int k = 0; k < Loops; k++) begin
      loop_ended[k] = index[k] == walk.loop[k].limit;
    end
    if (alternate_pass) begin
      if (alternate_target) loop_ended[1] = index[1] == walk.alternate_limit;
      else loop_ended[0] = index[0] == walk.alternate_limit;
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
  assign last = !in_prologue && block_ended[Loops];

  // A block of a depth beyond the loops is the whole traversal.
  assign step = '{
          valid: valid,
          last: last,
          second: second,
          begins: 16'(signed'(block_begins)),
          ended: 16'(signed'(block_ended))
      };

  // What the advancing loop adds: its normalised stride undoes the travel of the loops inside it;
  // the alternate pass has travelled less, and its reset makes up for that.
  logic signed [CounterBits+1:0] travel;
  always_comb begin
    travel = '0;
    for (int k = Loops - 1; k >= 0; k--) begin
      if (!loop_ended[k]) begin
        travel = (CounterBits + 2)'(signed'(walk.loop[k].stride));
        if (alternate_pass && k > int'(alternate_target)) begin
          travel = travel + (CounterBits + 2)'(signed'(walk.alternate_reset));
        end
      end
    end
  end

  logic toggles;
  assign toggles = 1'(block_ended >> walk.double_loop) && (walk.double_offset != '0);

  assign address = in_prologue ? prologue_address : body_address + (second ? walk.double_offset : '0);

  logic [CounterBits-1:0] next_body_address;
  assign next_body_address = last ? walk.base : body_address + CounterBits'(travel);
  assign next_address = next_body_address +
      ((last ? walk.double_start : second ^ toggles) ? walk.double_offset : '0);

  // The elements of a prologue count as no ends of blocks. Its base steps between its runs and wraps
  // beyond the outer limit (ping-pong).
  if (HasPrologue) begin : gen_prologue
    logic [CounterBits:0] left, stepped;
    logic [CounterBits-1:0] first, position;
    assign in_prologue = left != '0;
    assign prologue_address = first + position;
    assign stepped = {1'b0, first} + {1'b0, walk.prologue_outer_stride};

    function automatic logic [CounterBits:0] length(input logic [Loops:0] starts);
      if (walk.prologue_enable && 1'(starts >> (32'(walk.prologue_loop) + 32'd1))) begin
        return {1'b0, walk.prologue_inner_limit} + (CounterBits + 1)'(1);
      end
      return '0;
    endfunction

    always_ff @(posedge clk) begin
      if (!rst_n) begin
        left <= '0;
        position <= '0;
        first <= '0;
      end else if (start) begin
        left <= length('1);
        position <= '0;
        first <= walk.prologue_base;
      end else if (advance && in_prologue) begin
        left <= left - 1'b1;
        position <= position + 1'b1;
        if (left == (CounterBits + 1)'(1)) begin
          first <= (stepped > {1'b0, walk.prologue_outer_limit}) ? walk.prologue_base
                                                                 : stepped[CounterBits-1:0];
        end
      end else if (advance) begin
        left <= last ? '0 : length(block_ended);
        position <= '0;
      end
    end
  end else begin : gen_loops_only
    assign in_prologue = 1'b0;
    assign prologue_address = '0;
  end

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      valid <= 1'b0;
      index <= '0;
      body_address <= '0;
      second <= 1'b0;
      block_begins <= '0;
    end else if (start) begin
      valid <= 1'b1;
      index <= '0;
      body_address <= walk.base;
      second <= walk.double_start;
      block_begins <= '1;
    end else if (advance && in_prologue) begin
      block_begins <= '0;
    end else if (advance) begin
      valid <= !last;
      for (int k = 0; k < Loops; k++) begin
        if (block_ended[k]) index[k] <= loop_ended[k] ? '0 : index[k] + 1'b1;
      end
      body_address <= next_body_address;
      second <= second ^ toggles;
      block_begins <= block_ended;
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
