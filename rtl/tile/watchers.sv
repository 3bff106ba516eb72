// Watchers of one instruction: tells whether the element that a traversal offers may be taken.
// Each watcher waits at the begin of its blocks until its flag has reached a value that grows.

module watchers #(
    parameter int Watchers = 6,
    parameter int Flags = chip_pkg::TileFlags,
    parameter int FlagBits = 5,
    parameter int DepthBits = 3
) (
    input logic clk,
    input logic rst_n,

    input logic [Watchers-1:0]                valid,
    input logic [Watchers-1:0]                side,      // traversal that waits
    input logic [Watchers-1:0][ FlagBits-1:0] flag,
    input logic [Watchers-1:0][DepthBits-1:0] depth,
    input logic [Watchers-1:0][         15:0] expected,
    input logic [Watchers-1:0][         15:0] stride,

    input logic [Flags-1:0][15:0] flags2watchers_values,

    input  logic             start,   // forget the waits of the last instruction
    input  logic [1:0][15:0] begins,  // blocks that begin at the element of each side
    input  logic [1:0]       take,    // the element of this side is taken
    output logic [1:0]       pass,    // the element of this side may be taken

    output logic [Watchers-1:0][15:0] latest  // awaited last, by the element that is offered too
);

  logic [Watchers-1:0][15:0] awaited;
  logic [Watchers-1:0] waits, reached;

  always_comb begin
    pass = '1;
    for (int k = 0; k < Watchers; k++) begin
      waits[k]   = valid[k] && begins[side[k]][4'(depth[k])];
      // A flag has reached a value when their difference, as a signed number, is not negative.
      reached[k] = (flags2watchers_values[flag[k]] - awaited[k]) < 16'h8000;
      latest[k]  = waits[k] ? awaited[k] : awaited[k] - stride[k];
      if (waits[k] && !reached[k]) pass[side[k]] = 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      awaited <= '0;
    end else if (start) begin
      awaited <= expected;
    end else begin
      for (int k = 0; k < Watchers; k++) begin
        if (waits[k] && take[side[k]]) awaited[k] <= awaited[k] + stride[k];
      end
    end
  end

`ifndef SYNTHESIS
  assert_take_only_when_passed :
  assert property (@(posedge clk) disable iff (!rst_n) (take & ~pass) == '0);
`endif

endmodule : watchers
