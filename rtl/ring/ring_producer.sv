// Ring producer: sends rows of wide memory over the ring bus, a row for each handshake.
// Its watchers tell whether it is its turn; the arbiter decides between those whose turn it is.

module ring_producer
  import isa_pkg::*;
  import tile_pkg::*;
(
    input logic clk,
    input logic rst_n,

    input  logic           queue2unit_instruction_valid,
    output logic           queue2unit_instruction_ready,
    input  ring_producer_t queue2unit_instruction_data,
    output logic           unit2fence_idle,
    input  logic           fence2unit_restart,            // flag 16 is being loaded
    output logic           unit2clock_enable,             // see tile.sv

    input  flags_t   flags2unit_values,
    output produce_t unit2flags_produce,

    output logic [RowBits-1:0] unit2wide_read_row,
    input  row_t               wide2unit_read_data,

    output logic      unit2ring_row_valid,
    input  logic      unit2ring_row_ready,
    output ring_row_t unit2ring_row_data
);

  localparam int Loops = 4;
  localparam int Watchers = 3;

  ring_producer_t instruction;
  logic starting;

  step_t read_step;
  logic [15:0] read_address;
  logic pass;

  // A row that may be sent may still have to wait for the ring.
  logic passed, sends, token;
  assign unit2ring_row_valid = read_step.valid && (passed || pass);
  assign token = instruction.token_producer_increment &&
      read_step.ended[4'(instruction.token_producer_depth)];
  assign unit2ring_row_data = '{
          targets: tile_pkg::receivers(instruction.targets),
          channel: instruction.consumer_b,
          token: token,
          words: CountBits'(RowWords),
          data: wide2unit_read_data
      };
  assign sends = unit2ring_row_valid && unit2ring_row_ready;

  logic accepts;
  assign queue2unit_instruction_ready = unit2fence_idle;
  assign accepts = queue2unit_instruction_valid && queue2unit_instruction_ready;
  assign unit2fence_idle = !starting && !read_step.valid;

  // Instructions with a double buffer share it: the side goes on from one to the next until a fence
  // loads flag 16.
  logic shares, shared_side, ended_now;
  assign shares = instruction.wide_read.double_offset != '0;

  traversal_4x16_prologue_t read_walk;
  always_comb begin
    read_walk = instruction.wide_read;
    read_walk.double_start = read_walk.double_start ^ (shares && shared_side);
  end

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      starting <= 1'b0;
      passed <= 1'b0;
      ended_now <= 1'b0;
      shared_side <= 1'b0;
    end else begin
      starting <= accepts;
      passed <= unit2ring_row_valid && !unit2ring_row_ready;
      ended_now <= sends && read_step.last;
      if (fence2unit_restart) shared_side <= 1'b0;
      else if (ended_now && shares)
        shared_side <= read_step.second ^ instruction.wide_read.double_start;
    end
    if (accepts) instruction <= queue2unit_instruction_data;
  end

  assign unit2clock_enable = starting || ended_now || passed != unit2ring_row_valid;
  assign unit2wide_read_row = read_address[RowBits-1:0];
  assign unit2flags_produce = produce(
      sends && read_step.ended[4'(instruction.row_producer_depth)],
      instruction.row_producer_increment,
      TILE_FLAG_RING_BUS_WRITE
  );

  traversal #(
      .walk_t(traversal_4x16_prologue_t),
      .Loops (Loops)
  ) reading (
      .clk,
      .rst_n,
      .walk(read_walk),
      .alternate_target(1'b0),
      .start(starting),
      .advance(sends),
      .step(read_step),
      .address(read_address)
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
      .begins(read_step.begins),
      .take(read_step.valid && !passed && pass),
      .pass
  );

  logic unused;
  assign unused = &{1'b0, read_address[15:RowBits]};

  // The row is read anew in each cycle, so its address stands for it.
  handshake_check #(
      .Width(16)
  ) outgoing (
      .clk,
      .rst_n,
      .valid  (unit2ring_row_valid),
      .ready  (unit2ring_row_ready),
      .payload(read_address)
  );

`ifndef SYNTHESIS
  assert_row_inside_wide_memory :
  assert property (@(posedge clk) disable iff (!rst_n) sends |-> int'(read_address) < WideRows)
  else $error("row outside wide memory");
`endif

endmodule : ring_producer
