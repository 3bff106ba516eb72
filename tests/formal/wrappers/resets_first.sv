// A run begins with a reset; there may be others at any time.

module resets_first (
    input logic clk,
    input logic rst_n
);

  logic began = 1'b0;
  always_ff @(posedge clk) begin
    began <= 1'b1;
    assume_reset : assume (began || !rst_n);
  end

endmodule : resets_first
