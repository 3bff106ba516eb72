// Every edge of the slow clock is one of clk, each time the Ratio-th; what is held moves behind it.

module two_clocks #(
    parameter int Ratio = 3,
    parameter int Held  = 1
) (
    input logic clk,
    input logic slow,
    input logic [Held-1:0] held
);

  int since = 0;
  logic [Held-1:0] was;
  always_ff @(posedge clk) begin
    since <= slow ? 0 : since + 1;
    was   <= held;
    assume_ratio : assume (slow == (since == Ratio - 1));
    assume_held : assume (since == 0 || held == was);
    lemma_since : assert (since inside {[0 : Ratio - 1]});
  end

endmodule : two_clocks
