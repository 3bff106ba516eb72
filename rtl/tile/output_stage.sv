// Output stage of the tensor unit, one lane: adds the bias to the int32 sum, which saturates, scales
// the result in float32, clips, looks up the function, rounds half to even, adds the zero point and
// saturates. Purely combinational.

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

  float32_t scaled, clipped, argument, found, value;
  logic [30:0] normal;
  logic signed [10:0] power;
  logic [7:0] exponent;
  logic [2:0] segment;
  logic reduces, negates;
  logic signed [32:0] unsaturated;
  logic signed [31:0] with_bias;
  logic signed [32:0] shifted;
  logic signed [32:0] highest;

  assign highest = wide_output ? 33'sd65535 : 33'sd255;

  // Bias, scale, clip.
  always_comb begin
    unsaturated = '0;
    with_bias = '0;
    scaled = '0;
    clipped = '0;
    if (active) begin
      unsaturated = 33'(sum) + 33'(bias);
      with_bias   = unsaturated[31:0];
      if (unsaturated[32] != unsaturated[31])
        with_bias = unsaturated[32] ? 32'sh8000_0000 : 32'sh7fff_ffff;
      scaled  = multiply(from_int32(with_bias), scale);
      clipped = scaled;
      if (clips && less_than(high_clip, clipped)) clipped = high_clip;
      if (clips && less_than(clipped, low_clip)) clipped = low_clip;
    end
  end

  // The argument of the polynomial. Range reduction: y = m * 4^k with 1 <= m < 4, and the result is
  // table(m) * 2^-k; a subnormal y is brought into the normal range first.
  assign reduces = range_reduction && !clipped.sign && !is_zero(
      clipped[30:0]
  ) && clipped.exponent != 8'hff;
  assign negates = !range_reduction && symmetric && odd && clipped.sign && !is_zero(clipped[30:0]);
  always_comb begin
    argument = clipped;
    normal   = clipped[30:0];
    power    = '0;
    if (active && applies_function) begin
      if (reduces) begin
        if (clipped.exponent == '0) normal = 31'(multiply(clipped, TwoTo24));
        power = 11'(normal[30:23]) - 11'sd127 - ((clipped.exponent == '0) ? 11'sd24 : 11'sd0);
        argument = {1'b0, 8'd127 + 8'(power[0]), normal[22:0]};
      end else if (!range_reduction && symmetric) begin
        argument.sign = 1'b0;
      end
    end
  end
  assign exponent = 8'(11'sd127 - (power >>> 1));

  // Horner's rule, from the highest power, in the segment that the argument lies in.
  always_comb begin
    value   = clipped;
    segment = '0;
    found   = '0;
    if (active && applies_function) begin
      for (int s = 0; s < FunctionSegments - 1; s++) begin
        if (int'(segment) == s && !less_than(argument, function_table.lower_bound[s])) begin
          segment = segment + 3'd1;
        end
      end
      found = function_table.coefficient[segment][FunctionCoefficients-1];
      for (int k = FunctionCoefficients - 2; k >= 0; k--) begin
        found = add(multiply(found, argument), function_table.coefficient[segment][k]);
      end
      value = reduces ? multiply(found, {1'b0, exponent, 23'b0}) : found;
      value.sign = value.sign ^ negates;
    end
  end

  // Rounding, zero point, saturation.
  always_comb begin
    shifted = '0;
    result  = '0;
    if (active) begin
      shifted = 33'(to_int32(value, !raw)) + 33'($signed({1'b0, zero_point}));
      if (raw) result = {8'b0, shifted[7:0]};
      else if (shifted < 33'sd0) result = '0;
      else if (shifted > highest) result = highest[15:0];
      else result = shifted[15:0];
    end
  end

endmodule : output_stage
