// Wide-to-narrow unit: spreads rows of wide memory over narrow memory, one word a cycle, or over
// the scale/bias buffer, two words a cycle. A row is copied when its first word is written.

module wide_to_narrow
  import isa_pkg::*;
  import tile_pkg::*;
(
    input logic clk,
    input logic rst_n,

    input  logic            queue2unit_instruction_valid,
    output logic            queue2unit_instruction_ready,
    input  wide_to_narrow_t queue2unit_instruction_data,
    output logic            unit2fence_idle,
    output logic            unit2clock_enable,             // see tile.sv

    input  flags_t   flags2unit_values,
    output produce_t unit2flags_produce,

    output logic [RowBits-1:0] unit2wide_read_row,
    input  row_t               wide2unit_read_data,

    output logic                         unit2narrow_write_valid,
    output logic [NarrowAddressBits-1:0] unit2narrow_write_address,
    output logic [                 31:0] unit2narrow_write_data,

    output logic        unit2scale_write_valid,
    output logic [ 6:0] unit2scale_write_step,
    output logic [63:0] unit2scale_write_data
);

  localparam int ReadLoops = 4;
  localparam int WriteLoops = 6;
  localparam int Watchers = 6;

  wide_to_narrow_t instruction;
  logic starting;

  step_t read_step, write_step;
  logic [15:0] read_address, write_address;
  logic [1:0] pass, take;

  // The row that is being spread, and the place of its next word; at RowWords it is used up.
  row_t row;
  logic [CountBits-1:0] position;
  logic used_up;
  assign used_up = position == CountBits'(RowWords);

  // A word that may be written may still have to wait for its row.
  logic write_passed, write_passes, reads, writes;
  assign write_passes = write_step.valid && (write_passed || pass[1]);
  assign writes = write_passes && (!used_up || (read_step.valid && pass[0]));
  assign reads = writes && used_up;
  assign take = {write_step.valid && !write_passed && pass[1], reads};

  logic [CountBits-1:0] next_position;
  assign next_position = (used_up ? '0 : position) +
      (instruction.scale_bias ? CountBits'(2) : CountBits'(1));

  logic accepts;
  assign queue2unit_instruction_ready = unit2fence_idle;
  assign accepts = queue2unit_instruction_valid && queue2unit_instruction_ready;
  assign unit2fence_idle = !starting && !write_step.valid;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      starting <= 1'b0;
      write_passed <= 1'b0;
      position <= CountBits'(RowWords);
    end else begin
      starting <= accepts;
      write_passed <= write_passes && !writes;
      if (starting || (writes && write_step.ended[4'(instruction.row_loop)])) begin
        position <= CountBits'(RowWords);
      end else if (writes) begin
        position <= next_position;
      end
    end
    if (accepts) instruction <= queue2unit_instruction_data;
    if (reads) row <= wide2unit_read_data;
  end

  logic [1:0][31:0] word;
  assign word[0] = used_up ? wide2unit_read_data[0] : row[position[CountBits-2:0]];
  assign word[1] = used_up ? wide2unit_read_data[1] : row[{position[CountBits-2:1], 1'b1}];

  assign unit2clock_enable = starting || writes || write_passed != write_passes;
  assign unit2wide_read_row = read_address[RowBits-1:0];
  assign unit2narrow_write_valid = writes && !instruction.scale_bias;
  assign unit2narrow_write_address = {write_address, 2'b00};
  assign unit2narrow_write_data = word[0];
  assign unit2scale_write_valid = writes && instruction.scale_bias;
  assign unit2scale_write_step = write_address[6:0];
  assign unit2scale_write_data = word;
  assign unit2flags_produce = produce(
      writes && write_step.ended[4'(instruction.producer_depth)],
      instruction.producer_increment,
      instruction.scale_bias ? TILE_FLAG_WIDE_TO_SCALING : TILE_FLAG_WIDE_TO_NARROW_WRITE
  );

  // The half of the scale/bias buffer follows the blocks that were counted so far.
  traversal_6x16_prologue_t write_walk;
  always_comb begin
    write_walk = instruction.narrow_write;
    if (instruction.scale_bias) begin
      write_walk.double_start = flags2unit_values[TILE_FLAG_WIDE_TO_SCALING][0];
    end
  end

  traversal #(
      .walk_t(traversal_4x16_t),
      .Loops (ReadLoops)
  ) reading (
      .clk,
      .rst_n,
      .walk(instruction.wide_read),
      .alternate_target(1'b0),
      .start(starting),
      .advance(reads),
      .step(read_step),
      .address(read_address)
  );

  traversal #(
      .walk_t(traversal_6x16_prologue_t),
      .Loops(WriteLoops),
      .HasPrologue(1'b1)
  ) writing (
      .clk,
      .rst_n,
      .walk(write_walk),
      .alternate_target(1'b0),
      .start(starting),
      .advance(writes),
      .step(write_step),
      .address(write_address)
  );

  watchers #(
      .watcher_t(watcher_5x3_side_t),
      .Watchers(Watchers),
      .Sides(2)
  ) guards (
      .clk,
      .rst_n,
      .watcher(instruction.watcher),
      .flags2watchers_values(flags2unit_values),
      .start(starting),
      .begins({write_step.begins, read_step.begins}),
      .take,
      .pass
  );

  logic unused;
  assign unused = &{1'b0, read_address[15:RowBits]};

`ifndef SYNTHESIS
  assert_row_inside_wide_memory :
  assert property (@(posedge clk) disable iff (!rst_n) reads |-> int'(read_address) < WideRows)
  else $error("row outside wide memory");
  assert_word_inside_narrow_memory :
  assert property (@(posedge clk) disable iff (!rst_n)
      unit2narrow_write_valid |-> int'(unit2narrow_write_address) + 4 <= NarrowBytes)
  else $error("word outside narrow memory");
  assert_step_inside_scale_bias_buffer :
  assert property (@(posedge clk) disable iff (!rst_n)
      unit2scale_write_valid |-> write_address[15:7] == '0)
  else $error("step outside the scale/bias buffer");
  assert_every_word_has_a_row :
  assert property (@(posedge clk) disable iff (!rst_n) write_step.valid && used_up |-> read_step.valid)
  else $error("the read traversal ends before the words");
  assert_every_row_has_a_word :
  assert property (@(posedge clk) disable iff (!rst_n)
      writes && write_step.last |-> !read_step.valid || (reads && read_step.last))
  else $error("the read traversal goes on behind the words");
`endif

endmodule : wide_to_narrow
