// Scale/bias buffer of a tile: two halves of 64 float32 scales, then two halves of 64 int32 biases.
// Wide-to-narrow writes two words a step; the tensor unit reads a half of both kinds at once.

module scale_bias_buffer
  import tile_pkg::*;
(
    input logic clk,

    input logic        unit2scale_write_valid,
    input logic [ 6:0] unit2scale_write_step,
    input logic [63:0] unit2scale_write_data,

    input  logic tensor2scale_half,
    output row_t scale2tensor_scales,
    output row_t scale2tensor_biases
);

  row_t rows[4]  /* verilator public_flat_rd */;

  assign scale2tensor_scales = rows[{1'b0, tensor2scale_half}];
  assign scale2tensor_biases = rows[{1'b1, tensor2scale_half}];

  logic [1:0] row;
  logic [4:0] pair;
  assign {row, pair} = unit2scale_write_step;

  always_ff @(posedge clk) begin
    if (unit2scale_write_valid) begin
      rows[row][{pair, 1'b0}] <= unit2scale_write_data[31:0];
      rows[row][{pair, 1'b1}] <= unit2scale_write_data[63:32];
    end
  end

endmodule : scale_bias_buffer
