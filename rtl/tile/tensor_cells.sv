// The 64 cells of a tensor unit: from one iteration's operands and the sums so far, the next sums.
// Arithmetic is modulo 2^32, as the accumulators are 32 bits wide. Purely combinational.

module tensor_cells
  import isa_pkg::*;
  import tile_pkg::*;
(
    input logic active,  // otherwise the sums stay as they are
    input tensor_mac_t instruction,
    input logic [CountBits-1:0] lanes,

    input row_t sums,
    input logic starts,  // a run of sums begins: at the least value, at 0, or
    input logic continues,  // from a row of wide memory
    input row_t stored_sums,

    input logic [31:0] activations,
    input row_t parameters_low,  // the row that the granule is in
    input row_t parameters_high,  // the row behind it
    input logic [1:0] plane,  // byte plane of the granule
    input row_t zero_points,

    // An interpolation adds four bytes of activations, times a weight, to the lanes of one word.
    input logic [ 3:0] tap_word,
    input logic [31:0] tap_weight,

    output row_t next_sums
);

  localparam logic [31:0] Least = 32'hc000_0000;  // -2^30

  logic maximum, multiplies, interpolates;
  assign maximum = instruction.opcode == OPCODE_TENSOR_MAX;
  assign multiplies = instruction.opcode == OPCODE_TENSOR_MAC;
  assign interpolates = instruction.opcode == OPCODE_TENSOR_INTERPOLATE;

  // Multipliers that work: four, of which an operand of 16 bits takes two. A maximum or a sum has no
  // activations.
  logic [2:0] products;
  always_comb begin
    case (instruction.mac_disable)
      4'd12:   products = 3'd2;
      4'd14:   products = 3'd1;
      default: products = 3'd4;
    endcase
    if (multiplies && instruction.activation_16bit && products > 3'd1) products = products >> 1;
    if (instruction.parameter_16bit && products > 3'd1) products = products >> 1;
  end

  // Activations without their zero point; those that no multiplier takes are 0.
  logic [3:0][31:0] activation;
  logic [31:0] activation_sum;
  always_comb begin
    activation_sum = '0;
    for (int k = 0; k < 4; k++) begin
      if (3'(k) >= products) activation[k] = '0;
      else if (instruction.activation_16bit) begin
        activation[k] = {16'b0, activations[16*(k&1)+:16]} -
            {16'b0, instruction.activation_zero_point};
      end else begin
        activation[k] = {24'b0, activations[8*k+:8]} - {16'b0, instruction.activation_zero_point};
      end
      activation_sum = activation_sum + activation[k];
    end
  end

  // Maximum and sum take a value for each multiplier where the granule begins a row, and else one.
  logic [3:0] reduced;
  always_comb begin
    for (int k = 0; k < 4; k++) reduced[k] = k == 0 || (plane == '0 && 3'(k) < products);
  end

  // One cell that multiplies: parameters are four bytes, or two halves of 16 bits.
  function automatic logic [31:0] multiplied(
      input logic [31:0] sum, input logic [31:0] operands, input logic is_wide,
      input logic [31:0] a0, input logic [31:0] a1, input logic [31:0] a2, input logic [31:0] a3);
    /* verilator no_inline_task */
    if (is_wide) return sum + a0 * {16'b0, operands[15:0]} + a1 * {16'b0, operands[31:16]};
    return sum + a0 * {24'b0, operands[7:0]} + a1 * {24'b0, operands[15:8]} +
        a2 * {24'b0, operands[23:16]} + a3 * {24'b0, operands[31:24]};
  endfunction

  // One cell that takes the maximum of the values that `chosen` names, or the sum of them without
  // their zero point.
  function automatic logic [31:0] reduced_by(input logic [31:0] sum, input logic [31:0] operands,
                                             input logic is_wide, input logic [3:0] chosen,
                                             input logic takes_maximum, input logic [31:0] zero);
    /* verilator no_inline_task */
    logic [31:0] result, value;
    result = sum;
    for (int k = 0; k < 4; k++) begin
      value = is_wide ? {16'b0, operands[16*(k&1)+:16]} : {24'b0, operands[8*k+:8]};
      if (chosen[k]) begin
        if (!takes_maximum) result = result + value - zero;
        else if ($signed(value) > $signed(result)) result = value;
      end
    end
    return result;
  endfunction

  logic [31:0] start, bytes, zero_point;
  always_comb begin
    next_sums = sums;
    start = '0;
    bytes = '0;
    zero_point = {16'b0, instruction.parameter_zero_point};
    if (active) begin
      for (int lane = 0; lane < RowWords; lane++) begin
        start = sums[lane];
        if (starts) start = maximum ? Least : continues ? stored_sums[lane] : '0;
        if (CountBits'(lane) < lanes) begin
          bytes = 32'({parameters_high[lane], parameters_low[lane]} >> {plane, 3'b0});
          if (multiplies) begin
            if (instruction.load_parameter_zero_point) zero_point = zero_points[lane];
            start = multiplied(
              start - activation_sum * zero_point,
              bytes,
              instruction.parameter_16bit,
              activation[0],
              activation[1],
              activation[2],
              activation[3]
            );
          end else if (!interpolates) begin
            start =
                reduced_by(start, bytes, instruction.parameter_16bit, reduced, maximum, zero_point);
          end else if (tap_word == 4'(lane / 4)) begin
            start = start + {24'b0, activations[8*(lane%4)+:8]} * tap_weight;
          end
        end
        next_sums[lane] = start;
      end
    end
  end

endmodule : tensor_cells
