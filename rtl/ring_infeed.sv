// RingInfeed: gathers units of a buffer into rows and sends them over the ring bus.
// A row is closed by its length or by the end of the instruction, and leaves with its last unit.

module ring_infeed
  import isa_pkg::*;
  import mutation_pkg::*;
  import scalar_pkg::*;
  import tile_pkg::produce_t;
  import tile_pkg::ring_row_t;
  import tile_pkg::row_t;
  import tile_pkg::RowWords;
(
    input logic clk,
    input logic rst_n,

    input  logic         core2infeed_instruction_valid,
    output logic         core2infeed_instruction_ready,
    input  ring_infeed_t core2infeed_instruction_data,
    output logic         infeed2core_idle,

    input  flags_t   flags2infeed_values,
    output produce_t infeed2flags_produce,

    output logic [$clog2(ActivationUnits)-1:0] infeed2activations_read_address,
    input  logic [  8*ActivationUnitBytes-1:0] activations2infeed_read_data,
    output logic [ $clog2(ParameterUnits)-1:0] infeed2parameters_read_address,
    input  logic [   8*ParameterUnitBytes-1:0] parameters2infeed_read_data,
    output logic [             MemoryBits-1:0] infeed2memory_read_address,
    input  logic [                       31:0] memory2infeed_read_data,

    output logic      infeed2ring_row_valid,
    input  logic      infeed2ring_row_ready,
    output ring_row_t infeed2ring_row_data,

    // A turn on the ring that is passed on in the middle of a row.
    output logic infeed2ring_token_valid,
    input  logic infeed2ring_token_ready,
    output logic infeed2ring_token_channel
);

  localparam int CounterBits = 20;
  localparam int UnitWords = ParameterUnitBytes / 4;  // of the longest unit

  logic instruction_valid;
  ring_infeed_t instruction;
  logic start, advance, last, offered;
  scalar_queue #(
      .Width($bits(ring_infeed_t))
  ) queue (
      .clk,
      .rst_n,
      .push_valid(core2infeed_instruction_valid),
      .push_ready(core2infeed_instruction_ready),
      .push_data(core2infeed_instruction_data),
      .valid(instruction_valid),
      .data(instruction),
      .start,
      .done(advance && last)
  );
  assign infeed2core_idle = !instruction_valid;

  logic [CounterBits-1:0] address;
  logic [15:0] begins, ended;
  logic pass;
  /* verilator lint_off PINCONNECTEMPTY */
  traversal #(
      .Loops(3),
      .AddressBits(CounterBits),
      .CounterBits(CounterBits)
  ) walk (
      .clk,
      .rst_n,
      .base(instruction.buffer_base),
      .stride({
        instruction.buffer_loop[2].stride,
        instruction.buffer_loop[1].stride,
        instruction.buffer_loop[0].stride
      }),
      .limit({
        instruction.buffer_loop[2].limit,
        instruction.buffer_loop[1].limit,
        instruction.buffer_loop[0].limit
      }),
      .double_loop(instruction.buffer_double_loop),
      .double_offset(instruction.buffer_double_offset),
      .double_start(instruction.buffer_double_start),
      .alternate_limit(instruction.buffer_alternate_limit),
      .alternate_loop(instruction.buffer_alternate_loop),
      .alternate_reset(instruction.buffer_alternate_reset),
      .alternate_target(1'b0),
      .prologue_enable(1'b0),
      .prologue_loop('0),
      .prologue_base('0),
      .prologue_inner_limit('0),
      .prologue_outer_limit('0),
      .prologue_outer_stride('0),
      .start,
      .advance,
      .valid(offered),
      .address,
      .next_address(),
      .in_prologue(),
      .waits_here(),
      .begins,
      .ended,
      .last,
      .second(),
      .index(),
      .loop_ended()
  );
  watchers #(
      .Watchers(2),
      .Flags(Flags),
      .FlagBits(FlagBits),
      .DepthBits(2)
  ) watch (
      .clk,
      .rst_n,
      .valid({instruction.watcher[1].valid, instruction.watcher[0].valid}),
      .side('0),
      .flag({instruction.watcher[1].flag, instruction.watcher[0].flag}),
      .depth({instruction.watcher[1].depth, instruction.watcher[0].depth}),
      .expected({instruction.watcher[1].expected, instruction.watcher[0].expected}),
      .stride({instruction.watcher[1].stride, instruction.watcher[0].stride}),
      .flags2watchers_values(flags2infeed_values),
      .start,
      .begins({16'd0, begins}),
      .take({1'b0, advance}),
      .pass({unused_pass, pass}),
      .latest()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  // The present unit, by the buffer that it comes from, and the flag that counts such units.
  logic [UnitWords-1:0][31:0] unit;
  logic [6:0] words;
  scalar_flag_e flag;
  assign infeed2activations_read_address = address[$bits(infeed2activations_read_address)-1:0];
  assign infeed2parameters_read_address = address[$bits(infeed2parameters_read_address)-1:0];
  assign infeed2memory_read_address = address[MemoryBits-1:0];
  always_comb begin
    unit = '0;
    case (instruction.fifo)
      FifoParameters: begin
        unit  = parameters2infeed_read_data;
        words = 7'(ParameterUnitBytes / 4);
        flag  = SCALAR_FLAG_PARAMETER_INFEED;
      end
      FifoActivations: begin
        unit[1:0] = activations2infeed_read_data;
        words = 7'(ActivationUnitBytes / 4);
        flag = SCALAR_FLAG_AV_INFEED;
      end
      default: begin
        unit[0] = memory2infeed_read_data;
        words   = 7'd1;
        flag    = SCALAR_FLAG_SCALAR_INFEED;
      end
    endcase
  end

  // The row so far, and with the present unit.
  row_t gathered, row;
  logic [6:0] count;
  logic closes, token;
  always_comb begin
    row = gathered;
    for (int k = 0; k < UnitWords; k++) begin
      if (7'(k) < words) row[6'(count)+6'(k)] = unit[k];
    end
  end
  assign closes = count + words >= 7'(instruction.row_words) + 7'd1 ||
      (last && !mutated[LastRowKept]);
  assign token = ended[4'(instruction.token_producer_depth)] &&
      instruction.token_producer_increment;

  assign infeed2ring_row_valid = offered && pass && closes;
  assign infeed2ring_row_data = '{
          targets: instruction.targets,
          channel: instruction.consumer_b,
          token: token,
          words: count + words,
          data: row
      };
  assign infeed2ring_token_valid = offered && pass && !closes && token && !mutated[InfeedTurnLost];
  assign infeed2ring_token_channel = instruction.consumer_b;
  assign advance = offered && pass &&
      (closes ? infeed2ring_row_ready
              : !token || infeed2ring_token_ready || mutated[InfeedTurnLost]);

  always_ff @(posedge clk) begin
    if (!rst_n || start) count <= '0;
    else if (advance) count <= closes ? '0 : count + words;
    if (advance) gathered <= row;
  end

  always_comb begin
    infeed2flags_produce = tile_pkg::produce(advance && ended[4'(instruction.producer_depth)],
                                             instruction.producer_increment, 5'(flag));
    if (!mutated[InfeedIncrementIgnored]) infeed2flags_produce.amount = instruction.sync_increment;
  end

  logic unused_pass;
  logic unused;
  assign unused = &{1'b0, unused_pass, address, instruction};

`ifndef SYNTHESIS
  assert_row_holds_its_units :
  assert property (@(posedge clk) disable iff (!rst_n) offered |-> count + words <= 7'(RowWords))
  else $error("more words than a row holds");
`endif

endmodule : ring_infeed
