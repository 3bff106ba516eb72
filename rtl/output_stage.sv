// Output stage of the tensor unit, one lane: scales the biased int32 sum in float32, clips, rounds
// half to even, adds the output zero point and saturates. Purely combinational.

module output_stage
  import float32_pkg::*;
(
    input logic signed [31:0] sum,
    input logic signed [31:0] bias,
    input logic [31:0] scale,  // float32
    input logic [31:0] high_clip,  // float32; infinity: the low byte of the sum leaves raw
    input logic [31:0] low_clip,  // float32
    input logic [15:0] zero_point,
    input logic wide_output,  // 16-bit results
    output logic [15:0] result
);

  float32_t scaled, clipped;
  logic signed [31:0] rounded;
  logic signed [32:0] shifted;
  logic signed [32:0] highest;
  logic raw;

  assign raw = (high_clip[30:23] == 8'hff) && (high_clip[22:0] == '0) && !wide_output;
  assign highest = wide_output ? 33'sd65535 : 33'sd255;

  always_comb begin
    scaled  = multiply(from_int32(sum + bias), scale);
    clipped = less_than(float32_t'(high_clip), scaled) ? float32_t'(high_clip) : scaled;
    if (less_than(clipped, float32_t'(low_clip))) clipped = float32_t'(low_clip);
    rounded = to_int32(clipped);
    shifted = 33'(rounded) + 33'($signed({1'b0, zero_point}));
    if (raw) result = {8'b0, shifted[7:0]};
    else if (shifted < 33'sd0) result = '0;
    else if (shifted > highest) result = highest[15:0];
    else result = shifted[15:0];
  end

endmodule : output_stage
