// Ring consumer of one channel: writes the rows that arrive to wide memory. One row may wait here,
// the next one on the ring: rows land no closer together than the ring brings them.

module ring_consumer
  import isa_pkg::*;
  import tile_pkg::*;
#(
    parameter int Channel = 0  // 0 A, 1 B
) (
    input logic clk,
    input logic rst_n,

    input  logic             queue2unit_instruction_valid,
    output logic             queue2unit_instruction_ready,
    input  ring_consumer_a_t queue2unit_instruction_data,   // both channels have the same fields
    output logic             unit2fence_idle,
    output logic             unit2clock_enable,             // see tile.sv

    input  flags_t   flags2unit_values,
    output produce_t unit2flags_produce,

    input  logic                 ring2unit_row_valid,
    output logic                 ring2unit_row_ready,
    input  row_t                 ring2unit_row_data,
    input  logic [CountBits-1:0] ring2unit_row_words,

    output logic                 unit2wide_write_valid,
    output logic [  RowBits-1:0] unit2wide_write_row,
    output logic [CountBits-1:0] unit2wide_write_count,
    output row_t                 unit2wide_write_data
);

  localparam int Loops = 4;
  localparam int Watchers = 3;
  localparam logic [FlagBits-1:0] Flag =
      (Channel == 0) ? TILE_FLAG_RING_BUS_READ_A : TILE_FLAG_RING_BUS_READ_B;

  ring_consumer_a_t instruction;
  logic starting;

  step_t write_step;
  logic [15:0] write_address;
  logic pass;

  // A place that may be written may still have to wait for its row.
  logic passed, passes, arrived_valid, writes;
  assign passes = write_step.valid && (passed || pass);
  assign writes = passes && arrived_valid;

  // The row that waits for its place.
  logic arrives;
  assign ring2unit_row_ready = !arrived_valid || writes;
  assign arrives = ring2unit_row_valid && ring2unit_row_ready;
  always_ff @(posedge clk) begin
    if (!rst_n) arrived_valid <= 1'b0;
    else if (arrives || writes) arrived_valid <= arrives;
    if (arrives) begin
      unit2wide_write_count <= ring2unit_row_words;
      unit2wide_write_data  <= ring2unit_row_data;
    end
  end

  logic accepts;
  assign queue2unit_instruction_ready = unit2fence_idle;
  assign accepts = queue2unit_instruction_valid && queue2unit_instruction_ready;
  assign unit2fence_idle = !starting && !write_step.valid;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      starting <= 1'b0;
      passed   <= 1'b0;
    end else begin
      starting <= accepts;
      passed   <= passes && !writes;
    end
    if (accepts) instruction <= queue2unit_instruction_data;
  end

  assign unit2clock_enable = starting || writes || passed != passes;
  assign unit2wide_write_valid = writes;
  assign unit2wide_write_row = write_address[RowBits-1:0];
  assign unit2flags_produce = produce(
      writes && write_step.ended[4'(instruction.producer_depth)],
      instruction.producer_increment,
      Flag
  );

  traversal #(
      .walk_t(traversal_4x16_prologue_t),
      .Loops(Loops),
      .HasPrologue(1'b1)
  ) writing (
      .clk,
      .rst_n,
      .walk(instruction.wide_write),
      .alternate_target(1'b0),
      .start(starting),
      .advance(writes),
      .step(write_step),
      .address(write_address)
  );

  watchers #(
      .watcher_t(watcher_5x2_side_t),
      .Watchers (Watchers)
  ) guards (
      .clk,
      .rst_n,
      .watcher(instruction.watcher),
      .flags2watchers_values(flags2unit_values),
      .start(starting),
      .begins(write_step.begins),
      .take(write_step.valid && !passed && pass),
      .pass
  );

  logic unused;
  assign unused = &{1'b0, write_address[15:RowBits]};

`ifndef SYNTHESIS
  assert_row_inside_wide_memory :
  assert property (@(posedge clk) disable iff (!rst_n) writes |-> int'(write_address) < WideRows)
  else $error("row outside wide memory");
  assert_row_has_its_words :
  assert property (@(posedge clk) disable iff (!rst_n)
      ring2unit_row_valid |-> ring2unit_row_words != '0 && int'(ring2unit_row_words) <= RowWords)
  else $error("a row on the ring has 1 to 64 words");
`endif

endmodule : ring_consumer
