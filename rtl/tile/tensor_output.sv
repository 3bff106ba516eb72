// Way out of the tensor unit: takes the sums of a run with their biases and scales, and writes the
// results to narrow memory, one word a cycle, while the cells work on the next run.

module tensor_output
  import isa_pkg::*;
  import tile_pkg::*;
  import float32_pkg::*;
(
    input logic clk,
    input logic rst_n,

    input tensor_mac_t     instruction,
    input function_table_t function_table,
    input logic            start,           // of an instruction

    input  logic                 unit2output_sums_valid,
    output logic                 unit2output_sums_ready,
    input  row_t                 unit2output_sums_data,
    input  logic [CountBits-1:0] unit2output_sums_lanes,
    input  row_t                 unit2output_scales,
    input  row_t                 unit2output_biases,

    output logic                             output2narrow_write_valid,
    output logic     [NarrowAddressBits-1:0] output2narrow_write_address,
    output logic     [                 31:0] output2narrow_write_data,
    output produce_t                         output2flags_produce,

    output logic output2unit_idle
);

  logic busy, last_word;
  row_t sums, scales, biases;
  logic [CountBits-1:0] lanes, first_lane;

  // The opcode decides where the instruction has its clips, bias and offset.
  logic interpolates, wide_output;
  logic [7:0] high_exponent;
  assign interpolates  = instruction.opcode == OPCODE_TENSOR_INTERPOLATE;
  assign wide_output   = instruction.function_[2];
  assign high_exponent = instruction.high_clip[30:23];

  logic raw;
  assign raw = !interpolates && !wide_output && high_exponent == '1 &&
      instruction.high_clip[22:0] == '0;

  logic [CountBits-1:0] lanes_per_word;
  assign lanes_per_word = wide_output ? CountBits'(2) : CountBits'(4);
  assign last_word = first_lane + lanes_per_word >= lanes;
  assign unit2output_sums_ready = !busy || last_word;
  assign output2unit_idle = !busy;

  logic [3:0][15:0] result;
  for (genvar k = 0; k < 4; k++) begin : gen_lane
    logic active;
    logic [5:0] lane;
    logic signed [31:0] bias;
    logic [31:0] scale;
    assign active = busy && CountBits'(k) < lanes_per_word && first_lane + CountBits'(k) < lanes;
    assign lane   = 6'(first_lane) + 6'(k);
    always_comb begin
      bias  = '0;
      scale = '0;
      if (active) begin
        if (instruction.apply_bias && !interpolates) bias = biases[lane];
        else if (!interpolates) bias = instruction.immediate_bias;
        scale = instruction.output_scale;
        if (instruction.use_scales) scale = multiply(scales[lane], instruction.output_scale);
      end
    end

    output_stage stage (
        .active,
        .sum(sums[lane]),
        .bias,
        .scale,
        .clips(!interpolates),
        .high_clip(instruction.high_clip),
        .low_clip(instruction.low_clip),
        .applies_function(instruction.function_[0]),
        .range_reduction(instruction.function_[1]),
        .symmetric(instruction.symmetric_function),
        .odd(instruction.odd_function),
        .function_table,
        .zero_point(interpolates ? '0 : instruction.output_zero_point),
        .wide_output,
        .raw,
        .result(result[k])
    );
  end

  // Bytes beyond the last lane are 0, since their stages are not active.
  assign output2narrow_write_valid = busy;
  assign output2narrow_write_data = wide_output ?
      {result[1], result[0]} :
      {result[3][7:0], result[2][7:0], result[1][7:0], result[0][7:0]};

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      busy <= 1'b0;
      first_lane <= '0;
    end else if (unit2output_sums_valid && unit2output_sums_ready) begin
      busy <= 1'b1;
      first_lane <= '0;
      lanes <= unit2output_sums_lanes;
      sums <= unit2output_sums_data;
      scales <= unit2output_scales;
      biases <= unit2output_biases;
    end else if (busy) begin
      busy <= !last_word;
      first_lane <= first_lane + lanes_per_word;
    end
  end

  step_t write_step;
  traversal #(
      .walk_t(traversal_8x18_t),
      .Loops(8),
      .CounterBits(NarrowAddressBits)
  ) writing (
      .clk,
      .rst_n,
      .walk(instruction.narrow_write),
      .alternate_target(1'b0),
      .start,
      .advance(busy),
      .step(write_step),
      .address(output2narrow_write_address)
  );

  assign output2flags_produce = produce(
      busy && write_step.ended[instruction.narrow_write_producer_depth],
      instruction.narrow_write_producer_increment,
      TILE_FLAG_ACTIVATION_WRITE
  );

`ifndef SYNTHESIS
  assert_place_for_the_results :
  assert property (@(posedge clk) disable iff (!rst_n) busy |-> write_step.valid)
  else $error("the write traversal ends before the results");
  assert_results_for_all_places :
  assert property (@(posedge clk) disable iff (!rst_n) start |-> !write_step.valid)
  else $error("the write traversal ends after the results");
`endif

endmodule : tensor_output
