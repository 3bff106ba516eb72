// Narrow-to-wide unit: packs words of narrow memory into rows of wide memory, one word a cycle.
// A row is written in the cycle after its last word; its blocks may be turned on their diagonals.

module narrow_to_wide
  import isa_pkg::*;
  import tile_pkg::*;
(
    input logic clk,
    input logic rst_n,

    input  logic                   queue2unit_instruction_valid,
    output logic                   queue2unit_instruction_ready,
    input  narrow_to_wide_t        queue2unit_instruction_data,
    input  logic                   queue2unit_base_valid,         // replaces the base of the read
    input  logic            [31:0] queue2unit_base,
    output logic                   unit2fence_idle,
    input  logic                   fence2unit_restart,            // flag 13 is being loaded
    output logic                   unit2clock_enable,             // see tile.sv

    input  flags_t   flags2unit_values,
    output produce_t unit2flags_produce,

    output logic [NarrowAddressBits-1:0] unit2narrow_read_address,
    input  logic [                 31:0] narrow2unit_read_data,

    output logic                 unit2wide_write_valid,
    output logic [  RowBits-1:0] unit2wide_write_row,
    output logic [CountBits-1:0] unit2wide_write_count,
    output row_t                 unit2wide_write_data
);

  localparam int ReadLoops = 6;
  localparam int WriteLoops = 4;
  localparam int Watchers = 6;

  narrow_to_wide_t instruction;
  logic starting;

  step_t read_step, write_step;
  logic [15:0] read_address, write_address;
  logic [1:0] pass;

  // The row that is being filled.
  row_t row;
  logic [CountBits-1:0] words;
  logic closed;

  logic gathers, writes;
  assign writes  = closed && pass[1];
  assign gathers = read_step.valid && pass[0] && (!closed || writes);

  logic [CountBits-1:0] place;
  assign place = writes ? '0 : words;

  logic accepts;
  assign queue2unit_instruction_ready = unit2fence_idle;
  assign accepts = queue2unit_instruction_valid && queue2unit_instruction_ready;
  assign unit2fence_idle = !starting && !write_step.valid;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      starting <= 1'b0;
      closed <= 1'b0;
      words <= '0;
    end else begin
      starting <= accepts;
      if (gathers) begin
        closed <= place == CountBits'(RowWords - 1) || read_step.last ||
            read_step.ended[4'(instruction.row_loop)];
        words <= place + 1'b1;
      end else if (writes) begin
        closed <= 1'b0;
        words  <= '0;
      end
    end
    if (accepts) begin
      instruction <= queue2unit_instruction_data;
      if (queue2unit_base_valid) instruction.narrow_read.base <= queue2unit_base[15:0];
    end
    if (gathers) begin
      if (place == '0) row <= '0;
      row[place[CountBits-2:0]] <= narrow2unit_read_data;
    end
  end

  // Instructions that are guarded by flag 16 share a double buffer: the side goes on from one to
  // the next until a fence loads flag 13.
  logic shares, shared_side, ended_now;
  always_comb begin
    shares = 1'b0;
    for (int k = 0; k < Watchers; k++) begin
      if (instruction.watcher[k].valid && instruction.watcher[k].flag == TILE_FLAG_RING_BUS_WRITE)
        shares = 1'b1;
    end
  end

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      ended_now   <= 1'b0;
      shared_side <= 1'b0;
    end else begin
      ended_now <= writes && write_step.last;
      if (fence2unit_restart) shared_side <= 1'b0;
      else if (ended_now && shares) begin
        shared_side <= write_step.second ^ instruction.wide_write.double_start;
      end
    end
  end

  traversal_4x16_t write_walk;
  always_comb begin
    write_walk = instruction.wide_write;
    write_walk.double_start = write_walk.double_start ^ (shares && shared_side);
  end

  // What is written: words, or blocks of 4 x 4 bytes or 2 x 2 halves with rows and columns
  // exchanged; an unfinished block is filled up with the zeros that a row begins with.
  always_comb begin
    unit2wide_write_data  = row;
    unit2wide_write_count = words;
    if (closed && instruction.transpose && instruction.transpose_16bit) begin
      unit2wide_write_count = (words + CountBits'(1)) & ~CountBits'(1);
      for (int w = 0; w < RowWords; w++) begin
        for (int j = 0; j < 2; j++) begin
          unit2wide_write_data[w][16*j+:16] = row[w-w%2+j][16*(w%2)+:16];
        end
      end
    end else if (closed && instruction.transpose) begin
      unit2wide_write_count = (words + CountBits'(3)) & ~CountBits'(3);
      for (int w = 0; w < RowWords; w++) begin
        for (int j = 0; j < 4; j++) begin
          unit2wide_write_data[w][8*j+:8] = row[w-w%4+j][8*(w%4)+:8];
        end
      end
    end
  end

  assign unit2clock_enable = starting || gathers || writes || ended_now;
  assign unit2wide_write_valid = writes;
  assign unit2wide_write_row = write_address[RowBits-1:0];
  assign unit2narrow_read_address = {read_address, 2'b00};
  assign unit2flags_produce = produce(
      writes && write_step.ended[4'(instruction.producer_depth)],
      instruction.producer_increment,
      TILE_FLAG_NARROW_TO_WIDE_WRITE
  );

  // A transposing read has its short side in loop 0, so the alternate limit is that of loop 1.
  traversal #(
      .walk_t(traversal_6x16_t),
      .Loops (ReadLoops)
  ) reading (
      .clk,
      .rst_n,
      .walk(instruction.narrow_read),
      .alternate_target(instruction.transpose),
      .start(starting),
      .advance(gathers),
      .step(read_step),
      .address(read_address)
  );

  traversal #(
      .walk_t(traversal_4x16_t),
      .Loops (WriteLoops)
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
      .take({writes, gathers}),
      .pass
  );

  logic unused;
  assign unused = &{1'b0, queue2unit_base[31:16], write_address[15:RowBits]};

`ifndef SYNTHESIS
  assert_word_inside_narrow_memory :
  assert property (@(posedge clk) disable iff (!rst_n)
      gathers |-> int'(unit2narrow_read_address) + 4 <= NarrowBytes)
  else $error("word outside narrow memory");
  assert_row_inside_wide_memory :
  assert property (@(posedge clk) disable iff (!rst_n) writes |-> int'(write_address) < WideRows)
  else $error("row outside wide memory");
  assert_every_row_has_a_place :
  assert property (@(posedge clk) disable iff (!rst_n) closed || read_step.valid |-> write_step.valid)
  else $error("the write traversal ends before the rows");
  assert_every_place_has_a_row :
  assert property (@(posedge clk) disable iff (!rst_n) write_step.valid |-> read_step.valid || words != '0)
  else $error("the write traversal goes on behind the rows");
`endif

endmodule : narrow_to_wide
