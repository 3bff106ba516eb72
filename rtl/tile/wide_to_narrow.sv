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

  logic read_valid, read_last, write_valid, write_last;
  logic [15:0] read_address, write_address;
  logic [1:0][15:0] begins;
  logic [15:0] write_ended;
  logic [1:0] pass, take;

  // The row that is being spread, and the place of its next word; at RowWords it is used up.
  row_t row;
  logic [CountBits-1:0] position;
  logic used_up;
  assign used_up = position == CountBits'(RowWords);

  // A word that may be written may still have to wait for its row.
  logic write_passed, write_passes, reads, writes;
  assign write_passes = write_valid && (write_passed || pass[1]);
  assign writes = write_passes && (!used_up || (read_valid && pass[0]));
  assign reads = writes && used_up;
  assign take = {write_valid && !write_passed && pass[1], reads};

  logic [CountBits-1:0] next_position;
  assign next_position = (used_up ? '0 : position) +
      (instruction.scale_bias ? CountBits'(2) : CountBits'(1));

  logic accepts;
  assign queue2unit_instruction_ready = unit2fence_idle;
  assign accepts = queue2unit_instruction_valid && queue2unit_instruction_ready;
  assign unit2fence_idle = !starting && !write_valid;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      starting <= 1'b0;
      write_passed <= 1'b0;
      position <= CountBits'(RowWords);
    end else begin
      starting <= accepts;
      write_passed <= write_passes && !writes;
      if (starting || (writes && write_ended[4'(instruction.row_loop)])) begin
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

  assign unit2wide_read_row = read_address[RowBits-1:0];
  assign unit2narrow_write_valid = writes && !instruction.scale_bias;
  assign unit2narrow_write_address = {write_address, 2'b00};
  assign unit2narrow_write_data = word[0];
  assign unit2scale_write_valid = writes && instruction.scale_bias;
  assign unit2scale_write_step = write_address[6:0];
  assign unit2scale_write_data = word;
  assign unit2flags_produce = produce(
      writes && write_ended[4'(instruction.producer_depth)],
      instruction.producer_increment,
      instruction.scale_bias ? TILE_FLAG_WIDE_TO_SCALING : TILE_FLAG_WIDE_TO_NARROW_WRITE
  );

  // The half of the scale/bias buffer follows the blocks that were counted so far.
  logic write_start_side;
  assign write_start_side = instruction.scale_bias
      ? flags2unit_values[TILE_FLAG_WIDE_TO_SCALING][0]
      : instruction.narrow_write_double_start;

  logic signed [ReadLoops-1:0][16:0] read_stride;
  logic [ReadLoops-1:0][15:0] read_limit;
  logic signed [WriteLoops-1:0][16:0] write_stride;
  logic [WriteLoops-1:0][15:0] write_limit;
  logic [Watchers-1:0] watcher_valid, watcher_side;
  logic [Watchers-1:0][FlagBits-1:0] watcher_flag;
  logic [Watchers-1:0][2:0] watcher_depth;
  logic [Watchers-1:0][15:0] watcher_expected, watcher_stride;

  for (genvar k = 0; k < ReadLoops; k++) begin : gen_read_loop
    assign read_stride[k] = instruction.wide_read_loop[k].stride;
    assign read_limit[k]  = instruction.wide_read_loop[k].limit;
  end
  for (genvar k = 0; k < WriteLoops; k++) begin : gen_write_loop
    assign write_stride[k] = instruction.narrow_write_loop[k].stride;
    assign write_limit[k]  = instruction.narrow_write_loop[k].limit;
  end
  for (genvar k = 0; k < Watchers; k++) begin : gen_watcher
    assign watcher_valid[k] = instruction.watcher[k].valid;
    assign watcher_side[k] = instruction.watcher[k].side;
    assign watcher_flag[k] = instruction.watcher[k].flag;
    assign watcher_depth[k] = instruction.watcher[k].depth;
    assign watcher_expected[k] = instruction.watcher[k].expected;
    assign watcher_stride[k] = instruction.watcher[k].stride;
  end

  traversal #(
      .Loops(ReadLoops)
  ) read (
      .clk,
      .rst_n,
      .base(instruction.wide_read_base),
      .stride(read_stride),
      .limit(read_limit),
      .double_loop(instruction.wide_read_double_loop),
      .double_offset(instruction.wide_read_double_offset),
      .double_start(instruction.wide_read_double_start),
      .alternate_limit(instruction.wide_read_alternate_limit),
      .alternate_loop(instruction.wide_read_alternate_loop),
      .alternate_reset(instruction.wide_read_alternate_reset),
      .start(starting),
      .advance(reads),
      .valid(read_valid),
      .address(read_address),
      .begins(begins[0]),
      .last(read_last)
  );

  traversal #(
      .Loops(WriteLoops),
      .HasPrologue(1'b1)
  ) write (
      .clk,
      .rst_n,
      .base(instruction.narrow_write_base),
      .stride(write_stride),
      .limit(write_limit),
      .double_loop(instruction.narrow_write_double_loop),
      .double_offset(instruction.narrow_write_double_offset),
      .double_start(write_start_side),
      .alternate_limit(instruction.narrow_write_alternate_limit),
      .alternate_loop(instruction.narrow_write_alternate_loop),
      .alternate_reset(instruction.narrow_write_alternate_reset),
      .prologue_enable(instruction.narrow_write_prologue_enable),
      .prologue_loop(instruction.narrow_write_prologue_loop),
      .prologue_base(instruction.narrow_write_prologue_base),
      .prologue_inner_limit(instruction.narrow_write_prologue_inner_limit),
      .prologue_outer_limit(instruction.narrow_write_prologue_outer_limit),
      .prologue_outer_stride(instruction.narrow_write_prologue_outer_stride),
      .start(starting),
      .advance(writes),
      .valid(write_valid),
      .address(write_address),
      .begins(begins[1]),
      .ended(write_ended),
      .last(write_last)
  );

  watchers #(
      .Watchers (Watchers),
      .DepthBits(3)
  ) guards (
      .clk,
      .rst_n,
      .valid(watcher_valid),
      .side(watcher_side),
      .flag(watcher_flag),
      .depth(watcher_depth),
      .expected(watcher_expected),
      .stride(watcher_stride),
      .flags2watchers_values(flags2unit_values),
      .start(starting),
      .begins,
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
  assert property (@(posedge clk) disable iff (!rst_n) write_valid && used_up |-> read_valid)
  else $error("the read traversal ends before the words");
  assert_every_row_has_a_word :
  assert property (@(posedge clk) disable iff (!rst_n)
      writes && write_last |-> !read_valid || (reads && read_last))
  else $error("the read traversal goes on behind the words");
`endif

endmodule : wide_to_narrow
