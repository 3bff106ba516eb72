// Checks one valid/ready channel: an offered payload stays offered, unchanged, until it is taken
// (AMBA AXI, A3.2.1), and is taken within a longest wait if there is one. It has no outputs, and needs no
// package.

module handshake_check #(
    parameter int Width = 1,
    parameter int LongestWait = 0  // cycles that an offer waits; 0: any number
) (
    input logic clk,
    input logic rst_n,
    input logic valid,
    input logic ready,
    input logic [Width-1:0] payload
);

`ifndef SYNTHESIS
  logic waited;
  logic [31:0] waits;  // cycles that this offer has waited
  logic [Width-1:0] was;
  always @(posedge clk) begin
    if (rst_n && waited && !valid) $error("%m: valid fell before ready");
    if (rst_n && waited && valid && payload != was) $error("%m: payload changed before ready");
    if (rst_n && LongestWait != 0 && valid && !ready && waits == LongestWait) begin
      $error("%m: ready did not come in time");
    end
    waited <= rst_n && valid && !ready;
    waits  <= (rst_n && valid && !ready) ? waits + 32'd1 : 32'd0;
    was    <= payload;
  end
`endif

endmodule : handshake_check
