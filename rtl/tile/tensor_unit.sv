// Tensor unit: walks the main loops with the traversals of its operands, one iteration a cycle, and
// gives each run of sums to the output when the address of the partial sums moves on.

module tensor_unit
  import isa_pkg::*;
  import tile_pkg::*;
(
    input logic clk,
    input logic rst_n,

    input  logic                           queue2unit_instruction_valid,
    output logic                           queue2unit_instruction_ready,
    input  logic [$bits(tensor_mac_t)-1:0] queue2unit_instruction_data,
    output logic                           unit2fence_idle,
    output logic                           unit2clock_enable,             // see tile.sv

    input  flags_t         flags2unit_values,
    output produce_t [2:0] unit2flags_produce,

    output logic [NarrowAddressBits-1:0] unit2narrow_read_address,
    input  logic [                 31:0] narrow2unit_read_data,
    output logic                         unit2narrow_write_valid,
    output logic [NarrowAddressBits-1:0] unit2narrow_write_address,
    output logic [                 31:0] unit2narrow_write_data,

    // Reads: the row of the granule, the row behind it, the partial sums, the zero points.
    output logic [          3:0][RowBits-1:0] unit2wide_read_row,
    input  row_t [          3:0]              wide2unit_read_data,
    output logic                              unit2wide_write_valid,
    output logic [  RowBits-1:0]              unit2wide_write_row,
    output logic [CountBits-1:0]              unit2wide_write_count,
    output row_t                              unit2wide_write_data,

    output logic unit2scale_half,
    input  row_t scale2unit_scales,
    input  row_t scale2unit_biases
);

  localparam int Loops = 8;
  localparam int GranuleBits = 14;
  localparam int Watchers = 6;
  localparam logic [1:0] KeepSums = 2'd3;  // otherwise they go to wide memory and come from there

  typedef enum logic [1:0] {
    IDLE,
    START,
    RUN,
    DRAIN
  } state_e;

  state_e state;
  tensor_mac_t instruction;
  tensor_interpolate_t taps_instruction;
  function_table_t function_table;
  logic start, take, interpolates, keeps_sums;

  assign taps_instruction = tensor_interpolate_t'(instruction);
  assign interpolates = instruction.opcode == OPCODE_TENSOR_INTERPOLATE;
  assign keeps_sums = instruction.partial_sum_read == KeepSums;
  assign start = state == START;

  // Traversals. Those of the operands go round when they end before the main loops do.
  step_t main_step, read_step, parameter_step, sum_step;
  logic [Loops-1:0][GranuleBits-1:0] main_index;
  logic [Loops-1:0] main_loop_ended;
  logic [NarrowAddressBits-1:0] read_address;
  logic [GranuleBits-1:0] granule, sum_address, next_sum_address;

  traversal_8x14_t main;
  always_comb begin
    main = '0;
    for (int k = 0; k < Loops; k++) main.loop[k].limit = instruction.main_limit[k];
    main.alternate_limit = instruction.main_alternate_limit;
    main.alternate_loop  = instruction.main_alternate_loop;
  end

  traversal #(
      .walk_t(traversal_8x14_t),
      .Loops(Loops),
      .CounterBits(GranuleBits)
  ) main_walk (
      .clk,
      .rst_n,
      .walk(main),
      .alternate_target(1'b0),
      .start,
      .advance(take),
      .step(main_step),
      .index(main_index),
      .loop_ended(main_loop_ended)
  );

  traversal #(
      .walk_t(traversal_8x18_t),
      .Loops(Loops),
      .CounterBits(NarrowAddressBits),
      .Restarts(1'b1)
  ) narrow_read (
      .clk,
      .rst_n,
      .walk(instruction.narrow_read),
      .alternate_target(1'b0),
      .start(start || (take && read_step.last)),
      .advance(take),
      .step(read_step),
      .address(read_address)
  );

  traversal #(
      .walk_t(traversal_8x14_t),
      .Loops(Loops),
      .CounterBits(GranuleBits),
      .Restarts(1'b1)
  ) parameter_read (
      .clk,
      .rst_n,
      .walk(instruction.parameter_read),
      .alternate_target(1'b0),
      .start(start || (take && parameter_step.last)),
      .advance(take),
      .step(parameter_step),
      .address(granule)
  );

  traversal #(
      .walk_t(traversal_8x14_t),
      .Loops(Loops),
      .CounterBits(GranuleBits),
      .Restarts(1'b1)
  ) partial_sum (
      .clk,
      .rst_n,
      .walk(instruction.partial_sum),
      .alternate_target(1'b0),
      .start(start || (take && sum_step.last)),
      .advance(take),
      .step(sum_step),
      .address(sum_address),
      .next_address(next_sum_address)
  );

  logic [Watchers-1:0][15:0] watcher_latest;
  logic passes;
  watchers #(
      .watcher_t(watcher_5x3_t),
      .Watchers (Watchers)
  ) watching (
      .clk,
      .rst_n,
      .watcher(instruction.watcher),
      .flags2watchers_values(flags2unit_values),
      .start,
      .begins(main_step.begins),
      .take,
      .pass(passes),
      .latest(watcher_latest)
  );

  // The half of the scale/bias buffer: parity of the block that the first watcher of flag 12 has
  // waited for last.
  always_comb begin
    unit2scale_half = 1'b0;
    for (int k = Watchers - 1; k >= 0; k--) begin
      if (instruction.watcher[k].valid && instruction.watcher[k].flag == TILE_FLAG_WIDE_TO_SCALING) begin
        unit2scale_half = !watcher_latest[k][0];
      end
    end
  end

  // Edges of the reduction, and the lanes of the output block.
  logic first_pass, last_pass, last_block;
  always_comb begin
    first_pass = 1'b1;
    last_pass  = 1'b1;
    last_block = 1'b1;
    for (int k = 0; k < Loops; k++) begin
      if (instruction.reduction_loops[k]) begin
        if (main_index[k] != '0) first_pass = 1'b0;
        if (!main_loop_ended[k]) last_pass = 1'b0;
      end else if (3'(k) >= instruction.output_block_loop) begin
        if (main_index[k] != instruction.main_limit[k]) last_block = 1'b0;
      end
    end
  end

  logic [CountBits-1:0] lanes;
  assign lanes = CountBits'(last_block ? instruction.last_block_lanes : instruction.block_lanes) +
      CountBits'(1);

  // An interpolation takes an iteration for each four lanes of its tap. With the bit that adds a
  // bias elsewhere it takes the nearest pixel, with weight 1.
  logic [3:0] tap_word;
  logic [31:0] tap_weight;
  logic nearest;
  logic signed [31:0] x, y, half_pixel;
  assign nearest = taps_instruction.apply_bias;
  assign half_pixel = nearest ? 32'sd64 : 32'sd0;
  logic [NarrowAddressBits-1:0] tap_offset;
  always_comb begin
    x = half_pixel + 32'(taps_instruction.x_start) + $signed({16'b0, taps_instruction.x_step}) *
        $signed({18'b0, main_index[taps_instruction.x_loop]});
    y = half_pixel + 32'(taps_instruction.y_start) + $signed({16'b0, taps_instruction.y_step}) *
        $signed({18'b0, main_index[taps_instruction.y_loop]});
    tap_offset = NarrowAddressBits'(x >>> 7) * taps_instruction.x_pitch +
        NarrowAddressBits'(y >>> 7) * NarrowAddressBits'(taps_instruction.y_pitch);
    tap_weight = ((main_index[0] != '0) ? {25'b0, x[6:0]} : 32'd128 - {25'b0, x[6:0]}) *
        ((main_index[1] != '0) ? {25'b0, y[6:0]} : 32'd128 - {25'b0, y[6:0]});
    if (nearest) tap_weight = 32'd1;
  end

  // An iteration: a run may end with it, and its sums may leave.
  logic works, whole, starts, ends, leaves, output_ready;
  row_t sums, next_sums;
  assign ends = main_step.last || next_sum_address != sum_address;
  assign leaves = ends && (keeps_sums || last_pass);
  assign whole = !interpolates || {1'b0, tap_word} == 5'((lanes - CountBits'(1)) >> 2);
  assign works = state == RUN && main_step.valid && passes && (!leaves || output_ready);
  assign take = works && whole;

  assign unit2narrow_read_address = interpolates ?
      read_address + tap_offset + NarrowAddressBits'({tap_word, 2'b0}) : read_address;

  logic [RowBits-1:0] zero_point_row;
  assign unit2wide_read_row[0] = granule[GranuleBits-1:2];
  assign unit2wide_read_row[1] = granule[GranuleBits-1:2] + 1'b1;
  assign unit2wide_read_row[2] = sum_address[GranuleBits-1:2];
  assign unit2wide_read_row[3] = zero_point_row;

  tensor_cells cells (
      .active(works),
      .instruction,
      .lanes,
      .sums,
      .starts,
      .continues(!keeps_sums && !first_pass),
      .stored_sums(wide2unit_read_data[2]),
      .activations(narrow2unit_read_data),
      .parameters_low(wide2unit_read_data[0]),
      .parameters_high(wide2unit_read_data[1]),
      .plane(granule[1:0]),
      .zero_points(wide2unit_read_data[3]),
      .tap_word,
      .tap_weight,
      .next_sums
  );

  assign unit2wide_write_valid = take && ends && !keeps_sums;
  assign unit2wide_write_row   = sum_address[GranuleBits-1:2];
  assign unit2wide_write_count = lanes;
  assign unit2wide_write_data  = next_sums;

  // Zero points of the next block: 13 bits, since the row may pass the limit.
  logic [RowBits:0] stepped_zero_point_row;
  assign stepped_zero_point_row = {1'b0, zero_point_row} + {1'b0, instruction.zero_point_stride};

  always_ff @(posedge clk) begin
    if (start) begin
      starts <= 1'b1;
      tap_word <= '0;
      zero_point_row <= instruction.zero_point_base;
    end else if (works) begin
      starts <= take && ends;
      tap_word <= whole ? '0 : tap_word + 1'b1;
      sums <= next_sums;
      if (take && instruction.load_parameter_zero_point &&
          main_step.ended[{1'b0, instruction.output_block_loop}]) begin
        zero_point_row <= (stepped_zero_point_row > {1'b0, instruction.zero_point_limit})
            ? instruction.zero_point_base : stepped_zero_point_row[RowBits-1:0];
      end
    end
  end

  logic output_idle;
  tensor_output way_out (
      .clk,
      .rst_n,
      .instruction,
      .function_table,
      .start,
      .unit2output_sums_valid(take && leaves),
      .unit2output_sums_ready(output_ready),
      .unit2output_sums_data(next_sums),
      .unit2output_sums_lanes(lanes),
      .unit2output_scales(scale2unit_scales),
      .unit2output_biases(scale2unit_biases),
      .output2narrow_write_valid(unit2narrow_write_valid),
      .output2narrow_write_address(unit2narrow_write_address),
      .output2narrow_write_data(unit2narrow_write_data),
      .output2flags_produce(unit2flags_produce[0]),
      .output2unit_idle(output_idle)
  );

  assign unit2flags_produce[1] = produce(
      take && parameter_step.ended[instruction.parameter_read_producer_depth],
      instruction.parameter_read_producer_increment,
      TILE_FLAG_PARAMETER_READ
  );
  assign unit2flags_produce[2] = produce(
      take && sum_step.ended[instruction.partial_sum_producer_depth],
      instruction.partial_sum_producer_increment,
      TILE_FLAG_PARTIAL_SUM_WRITE
  );

  // One instruction after another: the next one begins when the last result has been written.
  coefficient_table_t table_instruction;
  no_op_t header;
  assign table_instruction = coefficient_table_t'(queue2unit_instruction_data[$bits(
      coefficient_table_t
  )-1:0]);
  assign header = no_op_t'(queue2unit_instruction_data[BundleBits-1:0]);
  assign queue2unit_instruction_ready = state == IDLE;
  assign unit2fence_idle = state == IDLE;
  assign unit2clock_enable = start || works || state == DRAIN || !output_idle;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      state <= IDLE;
    end else begin
      case (state)
        IDLE:
        if (queue2unit_instruction_valid) begin
          if (header.opcode == OPCODE_COEFFICIENT_TABLE) begin
            function_table.lower_bound <= table_instruction.lower_bound;
            function_table.coefficient <= table_instruction.coefficient;
          end else begin
            instruction <= tensor_mac_t'(queue2unit_instruction_data);
            state <= START;
          end
        end
        START: state <= RUN;
        RUN: if (take && main_step.last) state <= DRAIN;
        DRAIN: if (output_idle) state <= IDLE;
        default: state <= IDLE;
      endcase
    end
  end

`ifndef SYNTHESIS
  // Multipliers of a 16-bit product: two, or four of two such operands. The upper ones may stand still,
  // but no part of those of a product.
  logic wide_activations, wide_parameters;
  logic [3:0] still;
  assign wide_activations = instruction.activation_16bit && instruction.opcode == OPCODE_TENSOR_MAC;
  assign wide_parameters = instruction.parameter_16bit;
  assign still = instruction.mac_disable;
  assert_whole_products_stand_still :
  assert property (@(posedge clk) disable iff (!rst_n) works && !interpolates |->
      still == 4'd0
      || (still == 4'd12 && !(wide_activations && wide_parameters))
      || (still == 4'd14 && !wide_activations && !wide_parameters))
  else $error("mac_disable stills a part of a product's multipliers, or other ones than the upper");
`endif

endmodule : tensor_unit
