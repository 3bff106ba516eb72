// IEEE 754 single precision as the tensor unit's output needs it: from an int32 sum, times a scale,
// through a polynomial, to an integer. Rounds to nearest, ties to even; keeps subnormal numbers.
// The long functions are not to be copied to each place that calls them.

package float32_pkg;

  typedef struct packed {
    logic sign;
    logic [7:0] exponent;
    logic [22:0] fraction;
  } float32_t;

  localparam float32_t QuietNan = 32'h7fc0_0000;
  localparam float32_t TwoTo24 = 32'h4b80_0000;

  function automatic logic is_nan(input logic [30:0] magnitude);
    return magnitude > 31'h7f80_0000;
  endfunction

  function automatic logic is_zero(input logic [30:0] magnitude);
    return magnitude == '0;
  endfunction

  function automatic logic is_infinite(input logic [30:0] magnitude);
    return magnitude == 31'h7f80_0000;
  endfunction

  function automatic logic signed [10:0] biased(input logic [7:0] exponent);
    return (exponent == '0) ? 11'sd1 : 11'(exponent);
  endfunction

  function automatic logic [23:0] significand(input logic [30:0] magnitude);
    return {magnitude[30:23] != '0, magnitude[22:0]};
  endfunction

  // Rounds magnitude * 2^(exponent - 150) to a float; `magnitude` carries what lies below its lowest
  // bit as a sticky one. `exponent` is what a significand of 24 bits would have as biased exponent.
  function automatic float32_t pack(input logic sign, input logic signed [10:0] exponent,
                                    input logic [47:0] magnitude);
    /* verilator no_inline_task */
    logic [47:0] value;
    logic signed [10:0] power;
    logic [5:0] below;
    logic sticky, guard;
    logic [24:0] rounded;
    if (magnitude == '0) return {sign, 31'b0};
    value = magnitude;
    power = exponent + 11'sd24;
    // The leading one goes to bit 47: 24 bits of significand above 24 bits that are rounded away.
    for (int k = 5; k >= 0; k--) begin
      if ((value >> (48 - (1 << k))) == '0) begin
        value = value << (1 << k);
        power = power - 11'sd1 * 11'(1 << k);
      end
    end
    sticky = 1'b0;
    if (power < 11'sd1) begin
      below  = (power < -11'sd47) ? 6'd48 : 6'(11'sd1 - power);
      sticky = (value & ((48'd1 << below) - 48'd1)) != '0;
      value  = value >> below;
      power  = 11'sd1;
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
    /* verilator no_inline_task */
    logic [31:0] magnitude;
    magnitude = x[31] ? 32'(-x) : 32'(x);
    return (x == 0) ? '0 : pack(x[31], 11'sd150, 48'(magnitude));
  endfunction

  function automatic float32_t multiply(input float32_t a, input float32_t b);
    /* verilator no_inline_task */
    logic sign;
    logic signed [10:0] exponent;
    sign = a.sign ^ b.sign;
    if (is_nan(a[30:0]) || is_nan(b[30:0])) return QuietNan;
    if (a.exponent == 8'hff || b.exponent == 8'hff) begin
      return (is_zero(a[30:0]) || is_zero(b[30:0])) ? QuietNan : {sign, 8'hff, 23'b0};
    end
    exponent = biased(a.exponent) + biased(b.exponent) - 11'sd150;
    return pack(sign, exponent, 48'(significand(a[30:0])) * 48'(significand(b[30:0])));
  endfunction

  function automatic float32_t add(input float32_t a, input float32_t b);
    /* verilator no_inline_task */
    float32_t larger, smaller;
    logic signed [10:0] difference;
    logic [5:0] shift;
    logic [47:0] high, low, sum;
    if (is_nan(a[30:0]) || is_nan(b[30:0])) return QuietNan;
    larger  = (a[30:0] >= b[30:0]) ? a : b;
    smaller = (a[30:0] >= b[30:0]) ? b : a;
    if (is_infinite(larger[30:0])) begin
      return (is_infinite(smaller[30:0]) && smaller.sign != larger.sign) ? QuietNan : larger;
    end
    // 22 bits below the significand, the lowest of which stands for all that is shifted out.
    difference = biased(larger.exponent) - biased(smaller.exponent);
    shift = (difference > 11'sd47) ? 6'd48 : 6'(difference);
    high = {2'b0, significand(larger[30:0]), 22'b0};
    low = {2'b0, significand(smaller[30:0]), 22'b0};
    low = (low >> shift) | 48'((low & ((48'd1 << shift) - 48'd1)) != '0);
    sum = (smaller.sign == larger.sign) ? high + low : high - low;
    return pack(
        (sum == '0) ? a.sign && b.sign : larger.sign, biased(larger.exponent) - 11'sd22, sum
    );
  endfunction

  function automatic logic less_than(input float32_t a, input float32_t b);
    if (is_nan(a[30:0]) || is_nan(b[30:0]) || (is_zero(a[30:0]) && is_zero(b[30:0]))) return 1'b0;
    if (a.sign != b.sign) return a.sign;
    return a.sign ? (a[30:0] > b[30:0]) : (a[30:0] < b[30:0]);
  endfunction

  // Nearest integer; of a number beyond 32 bits its low 32 bits, or the nearest end.
  function automatic logic signed [31:0] to_int32(input float32_t x, input logic saturate);
    /* verilator no_inline_task */
    logic [55:0] value;
    logic [31:0] magnitude;
    logic signed [10:0] shift;
    logic [5:0] below;
    logic guard, sticky;
    if (is_nan(x[30:0])) return '0;
    shift  = biased(x.exponent) - 11'sd150;
    value  = {24'b0, significand(x[30:0]), 8'b0};
    sticky = 1'b0;
    if (shift >= 11'sd8) begin
      if (saturate) return x.sign ? 32'sh8000_0000 : 32'sh7fff_ffff;
      value = (shift > 11'sd31) ? '0 : value << shift[4:0];
    end else if (shift >= 11'sd0) begin
      value = value << shift[2:0];
    end else begin
      below  = (shift < -11'sd33) ? 6'd33 : 6'(-shift);
      sticky = (value & ((56'd1 << below) - 56'd1)) != '0;
      value  = value >> below;
    end
    guard = value[7];
    sticky = sticky | (value[6:0] != '0);
    magnitude = value[39:8] + 32'(guard && (sticky || value[8]));
    return x.sign ? -$signed(magnitude) : $signed(magnitude);
  endfunction

endpackage : float32_pkg
