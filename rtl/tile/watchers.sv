// Watchers of one instruction: tells whether the element that a traversal offers may be taken.
// Each watcher waits at the begin of its blocks until its flag has reached a value that grows. A build
// with STALLS holds elements of all units back at random.

module watchers #(
    parameter type watcher_t = isa_pkg::watcher_5x3_t,
    parameter int Watchers = 6,
    parameter int Sides = 1,  // traversals that wait
    parameter int Flags = chip_pkg::TileFlags
) (
    input logic clk,
    input logic rst_n,

    input watcher_t [Watchers-1:0] watcher,  // as the instruction encodes them

    input logic [Flags-1:0][15:0] flags2watchers_values,

    input  logic                   start,   // forget the waits of the last instruction
    input  logic [Sides-1:0][15:0] begins,  // blocks that begin at the element of each side
    input  logic [Sides-1:0]       take,    // the element of this side is taken
    output logic [Sides-1:0]       pass,    // the element of this side may be taken

    output logic [Watchers-1:0][15:0] latest  // awaited last, by the element that is offered too
);

  logic [Watchers-1:0] side;
  for (genvar k = 0; k < Watchers; k++) begin : gen_side
    if (Sides > 1) begin : gen_two
      assign side[k] = watcher[k].side;
    end else begin : gen_one
      assign side[k] = 1'b0;
    end
  end

  logic [Watchers-1:0][15:0] awaited;
  logic [Watchers-1:0] waits, reached;

  logic [Sides-1:0] held;
`ifdef STALLS
  // Whatever the flags are, an element may be held back. One that may be taken stays so until it is.
  import "DPI-C" function bit random_stall();
  always_ff @(posedge clk) begin
    for (int s = 0; s < Sides; s++) begin
      if (!rst_n) held[s] <= 1'b0;
      else if (start || take[s] || held[s]) held[s] <= random_stall();
    end
  end
`else
  assign held = '0;
`endif

  always_comb begin
    pass = ~held;
    for (int k = 0; k < Watchers; k++) begin
      waits[k]   = watcher[k].valid && begins[side[k]][4'(watcher[k].depth)];
      // A flag has reached a value when their difference, as a signed number, is not negative.
      reached[k] = (flags2watchers_values[watcher[k].flag] - awaited[k]) < 16'h8000;
      latest[k]  = waits[k] ? awaited[k] : awaited[k] - watcher[k].stride;
      if (waits[k] && !reached[k]) pass[side[k]] = 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      awaited <= '0;
    end else if (start) begin
      for (int k = 0; k < Watchers; k++) awaited[k] <= watcher[k].expected;
    end else begin
      for (int k = 0; k < Watchers; k++) begin
        if (waits[k] && take[side[k]]) awaited[k] <= awaited[k] + watcher[k].stride;
      end
    end
  end

`ifndef SYNTHESIS
  assert_take_only_when_passed :
  assert property (@(posedge clk) disable iff (!rst_n) (take & ~pass) == '0);
`endif

endmodule : watchers
