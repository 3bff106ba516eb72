// Output stage of the tensor unit, one lane: scales the biased int32 sum in float32, clips, looks up
// the function, rounds half to even, adds the zero point and saturates. Purely combinational.

module output_stage
  import float32_pkg::*;
  import tile_pkg::*;
(
    input logic active,  // otherwise the result means nothing, and costs nothing to simulate
    input logic signed [31:0] sum,
    input logic signed [31:0] bias,
    input logic [31:0] scale,  // float32
    input logic clips,
    input logic [31:0] high_clip,  // float32
    input logic [31:0] low_clip,  // float32
    input logic applies_function,
    input logic range_reduction,
    input logic symmetric,
    input logic odd,
    input function_table_t function_table,
    input logic [15:0] zero_point,
    input logic wide_output,  // 16-bit results
    input logic raw,  // the low byte of the sum, not saturated
    output logic [15:0] result
);

  float32_t scaled, clipped, value;
  logic signed [32:0] shifted;
  logic signed [32:0] highest;

  assign highest = wide_output ? 33'sd65535 : 33'sd255;

  always_comb begin
    scaled  = '0;
    clipped = '0;
    shifted = '0;
    result  = '0;
    value   = '0;
    if (active) begin
      scaled  = multiply(from_int32(sum + bias), scale);
      clipped = scaled;
      if (clips && less_than(high_clip, clipped)) clipped = high_clip;
      if (clips && less_than(clipped, low_clip)) clipped = low_clip;
      value   = applies_function ? function_of(clipped) : clipped;
      shifted = 33'(to_int32(value, !raw)) + 33'($signed({1'b0, zero_point}));
      if (raw) result = {8'b0, shifted[7:0]};
      else if (shifted < 33'sd0) result = '0;
      else if (shifted > highest) result = highest[15:0];
      else result = shifted[15:0];
    end
  end

  // Range reduction: y = m * 4^k with 1 <= m < 4, and the result is table(m) * 2^-k.
  function automatic float32_t function_of(input float32_t y);
    float32_t scaled_up, normal, found;
    logic signed [10:0] power, k;
    if (range_reduction) begin
      if (y.sign || is_zero(y[30:0]) || y.exponent == 8'hff) return polynomial(y);
      scaled_up = multiply(y, TwoTo24);
      normal = (y.exponent == '0) ? scaled_up : y;
      power = 11'(normal.exponent) - 11'sd127 - ((y.exponent == '0) ? 11'sd24 : 11'sd0);
      k = power >>> 1;
      normal.exponent = 8'd127 + 8'(power[0]);
      return multiply(polynomial(normal), {1'b0, 8'(11'sd127 - k), 23'b0});
    end
    if (symmetric) begin
      found = polynomial({1'b0, y[30:0]});
      if (odd && y.sign && !is_zero(y[30:0])) found.sign = !found.sign;
      return found;
    end
    return polynomial(y);
  endfunction

  // Horner's rule, from the highest power, in the segment that y lies in.
  function automatic float32_t polynomial(input float32_t y);
    logic [2:0] segment;
    float32_t sum_so_far;
    segment = '0;
    for (int s = 0; s < FunctionSegments - 1; s++) begin
      if (int'(segment) == s && !less_than(y, function_table.lower_bound[s])) begin
        segment = segment + 3'd1;
      end
    end
    sum_so_far = function_table.coefficient[segment][FunctionCoefficients-1];
    for (int k = FunctionCoefficients - 2; k >= 0; k--) begin
      sum_so_far = add(multiply(sum_so_far, y), function_table.coefficient[segment][k]);
    end
    return sum_so_far;
  endfunction

endmodule : output_stage
