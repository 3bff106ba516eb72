// IEEE 754 single precision as the output stage needs it: from an int32 sum, times a scale, clipped,
// to an integer. Every operation rounds to nearest, ties to even; subnormal numbers are kept.

package float32_pkg;

  typedef struct packed {
    logic sign;
    logic [7:0] exponent;
    logic [22:0] fraction;
  } float32_t;

  localparam float32_t QuietNan = 32'h7fc0_0000;

  function automatic logic is_nan(input logic [30:0] magnitude);
    return magnitude > 31'h7f80_0000;
  endfunction

  function automatic logic is_zero(input logic [30:0] magnitude);
    return magnitude == '0;
  endfunction

  // Rounds magnitude * 2^(exponent - 150) to a float; `magnitude` carries what lies below its lowest
  // bit as a sticky one. `exponent` is what a significand of 24 bits would have as biased exponent.
  function automatic float32_t pack(input logic sign, input logic signed [10:0] exponent,
                                    input logic [47:0] magnitude);
    logic [47:0] value;
    logic signed [10:0] power;
    logic sticky, guard;
    logic [24:0] rounded;
    if (magnitude == '0) return {sign, 31'b0};
    value = magnitude;
    power = exponent + 11'sd24;
    // The leading one goes to bit 47: 24 bits of significand above 24 bits that are rounded away.
    for (int k = 0; k < 48; k++) begin
      if (!value[47]) begin
        value = value << 1;
        power = power - 11'sd1;
      end
    end
    sticky = 1'b0;
    for (int k = 0; k < 48; k++) begin
      if (power < 11'sd1) begin
        sticky = sticky | value[0];
        value  = value >> 1;
        power  = power + 11'sd1;
      end
    end
    guard   = value[23];
    sticky  = sticky | (value[22:0] != '0);
    rounded = {1'b0, value[47:24]} + 25'(guard && (sticky || value[24]));
    if (rounded[24]) begin
      rounded = rounded >> 1;
      power   = power + 11'sd1;
    end
    if (power >= 11'sd255) return {sign, 8'hff, 23'b0};
    return {sign, rounded[23] ? power[7:0] : 8'b0, rounded[22:0]};
  endfunction

  function automatic float32_t from_int32(input logic signed [31:0] x);
    logic [31:0] magnitude;
    magnitude = x[31] ? 32'(-x) : 32'(x);
    return (x == 0) ? '0 : pack(x[31], 11'sd150, 48'(magnitude));
  endfunction

  function automatic float32_t multiply(input float32_t a, input float32_t b);
    logic sign;
    logic signed [10:0] exponent;
    logic [23:0] a_significand, b_significand;
    sign = a.sign ^ b.sign;
    if (is_nan(a[30:0]) || is_nan(b[30:0])) return QuietNan;
    if (a.exponent == 8'hff || b.exponent == 8'hff) begin
      return (is_zero(a[30:0]) || is_zero(b[30:0])) ? QuietNan : {sign, 8'hff, 23'b0};
    end
    a_significand = {a.exponent != '0, a.fraction};
    b_significand = {b.exponent != '0, b.fraction};
    exponent = 11'(biased(a.exponent)) + 11'(biased(b.exponent)) - 11'sd150;
    return pack(sign, exponent, 48'(a_significand) * 48'(b_significand));
  endfunction

  function automatic logic signed [10:0] biased(input logic [7:0] exponent);
    return (exponent == '0) ? 11'sd1 : 11'(exponent);
  endfunction

  function automatic logic less_than(input float32_t a, input float32_t b);
    if (is_nan(a[30:0]) || is_nan(b[30:0]) || (is_zero(a[30:0]) && is_zero(b[30:0]))) return 1'b0;
    if (a.sign != b.sign) return a.sign;
    return a.sign ? (a[30:0] > b[30:0]) : (a[30:0] < b[30:0]);
  endfunction

  // Nearest integer of a number whose magnitude is below 2^31; beyond it the nearest end.
  function automatic logic signed [31:0] to_int32(input float32_t x);
    logic [55:0] value;
    logic [31:0] magnitude;
    logic signed [10:0] shift;
    logic guard, sticky;
    if (is_nan(x[30:0])) return '0;
    shift = biased(x.exponent) - 11'sd150;
    if (shift >= 11'sd8) return x.sign ? 32'sh8000_0000 : 32'sh7fff_ffff;
    value  = {24'b0, x.exponent != '0, x.fraction, 8'b0};
    sticky = 1'b0;
    if (shift >= 11'sd0) begin
      value = value << shift[4:0];
    end else begin
      for (int k = 0; k < 33; k++) begin
        if (11'(k) < -shift) begin
          sticky = sticky | value[0];
          value  = value >> 1;
        end
      end
    end
    guard = value[7];
    sticky = sticky | (value[6:0] != '0);
    magnitude = value[39:8] + 32'(guard && (sticky || value[8]));
    return x.sign ? -$signed(magnitude) : $signed(magnitude);
  endfunction

endpackage : float32_pkg
