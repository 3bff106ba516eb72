// The arithmetic behind the tensor unit's sums, alone, for tests that compare it number by number:
// every function of float32_pkg of two operands, and an output stage. Purely combinational.

module arithmetic
  import float32_pkg::*;
  import tile_pkg::*;
(
    input  logic [31:0] a,
    input  logic [31:0] b,
    output logic [31:0] product,
    output logic [31:0] total,
    output logic        less,
    output logic [31:0] converted,  // of `a` as an integer
    output logic [31:0] nearest,    // integer of `a`, or the nearest end
    output logic [31:0] low_bits,   // of the integer of `a`

    input logic stage_active,
    input logic [31:0] stage_sum,
    input logic [31:0] stage_bias,
    input logic [31:0] stage_scale,
    input logic [31:0] stage_high_clip,
    input logic [31:0] stage_low_clip,
    input logic [6:0] stage_switches,  // in the order of their names below, from bit 0
    input logic [15:0] stage_zero_point,
    input function_table_t stage_table,
    output logic [15:0] stage_result
);

  always_comb begin
    product = '0;
    total = '0;
    less = 1'b0;
    converted = '0;
    nearest = '0;
    low_bits = '0;
    if (!stage_active) begin
      product = multiply(a, b);
      total = add(a, b);
      less = less_than(a, b);
      converted = from_int32(a);
      nearest = to_int32(a, 1'b1);
      low_bits = to_int32(a, 1'b0);
    end
  end

  logic clips, applies_function, range_reduction, symmetric, odd, wide_output, raw;
  assign {raw, wide_output, odd, symmetric, range_reduction, applies_function, clips} =
      stage_switches;

  output_stage stage (
      .active(stage_active),
      .sum(stage_sum),
      .bias(stage_bias),
      .scale(stage_scale),
      .clips,
      .high_clip(stage_high_clip),
      .low_clip(stage_low_clip),
      .applies_function,
      .range_reduction,
      .symmetric,
      .odd,
      .function_table(stage_table),
      .zero_point(stage_zero_point),
      .wide_output,
      .raw,
      .result(stage_result)
  );

endmodule : arithmetic
