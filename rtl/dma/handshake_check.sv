// Checks one valid/ready channel: an offered payload stays offered, unchanged, until it is taken
// (AMBA AXI, A3.2.1). It has no outputs.

module handshake_check #(
    parameter int Width = 1
) (
    input logic clk,
    input logic rst_n,
    input logic valid,
    input logic ready,
    input logic [Width-1:0] payload
);

`ifndef SYNTHESIS
  assert_valid_stays :
  assert property (@(posedge clk) disable iff (!rst_n) valid && !ready |=> valid)
  else $error("%m: valid fell before ready");
  assert_payload_stays :
  assert property (@(posedge clk) disable iff (!rst_n) valid && !ready |=> $stable(payload))
  else $error("%m: payload changed before ready");
`endif

endmodule : handshake_check
