// RingInfeed: gathers units of a buffer into rows and sends them over the ring bus.
// A row is closed by its length or by the end of the instruction, and leaves with its last unit.

module ring_infeed
  import isa_pkg::*;
  import scalar_pkg::*;
  import tile_pkg::produce_t;
  import tile_pkg::step_t;
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

  ring_infeed_t instruction;
  logic start, advance;
  step_t step;
  logic [CounterBits-1:0] address;
  buffer_walk #(
      .instruction_t(ring_infeed_t),
      .walk_t       (traversal_3x20_prologue_t),
      .CounterBits  (CounterBits)
  ) walk (
      .clk,
      .rst_n,
      .core2unit_instruction_valid(core2infeed_instruction_valid),
      .core2unit_instruction_ready(core2infeed_instruction_ready),
      .core2unit_instruction_data(core2infeed_instruction_data),
      .unit2core_idle(infeed2core_idle),
      .instruction,
      .start,
      .advance,
      .step,
      .address
  );

  // A row that has been offered stays so, whatever flags are loaded with meanwhile.
  logic pass, passed, passes;
  assign passes = step.valid && (passed || pass);
  watchers #(
      .watcher_t(watcher_4x2_t),
      .Watchers(2),
      .Flags(Flags)
  ) watch (
      .clk,
      .rst_n,
      .watcher(instruction.watcher),
      .flags2watchers_values(flags2infeed_values),
      .start,
      .begins(step.begins),
      .take(step.valid && !passed && pass),
      .pass
  );

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
  assign closes = count + words >= 7'(instruction.row_words) + 7'd1 || step.last;
  assign token = step.ended[4'(instruction.token_producer_depth)] &&
      instruction.token_producer_increment;

  assign infeed2ring_row_valid = passes && closes;
  assign infeed2ring_row_data = '{
          targets: tile_pkg::receivers(instruction.targets),
          channel: instruction.consumer_b,
          token: token,
          words: count + words,
          data: row
      };
  assign infeed2ring_token_valid = passes && !closes && token;
  assign infeed2ring_token_channel = instruction.consumer_b;
  assign advance = passes && (closes ? infeed2ring_row_ready : !token || infeed2ring_token_ready);

  always_ff @(posedge clk) begin
    if (!rst_n || start) count <= '0;
    else if (advance) count <= closes ? '0 : count + words;
    if (advance) gathered <= row;
    passed <= passes && !advance;
  end

  always_comb begin
    infeed2flags_produce = tile_pkg::produce(
      advance && step.ended[4'(instruction.producer_depth)],
      instruction.producer_increment,
      5'(flag)
    );
    infeed2flags_produce.amount = instruction.sync_increment;
  end

  logic unused;
  assign unused = &{1'b0, address, instruction};

  // The unit is read anew in each cycle, so its address stands for it.
  handshake_check #(
      .Width(CounterBits + 7)
  ) outgoing (
      .clk,
      .rst_n,
      .valid  (infeed2ring_row_valid),
      .ready  (infeed2ring_row_ready),
      .payload({address, count})
  );

`ifndef SYNTHESIS
  assert_row_holds_its_units :
  assert property (@(posedge clk) disable iff (!rst_n) step.valid |-> count + words <= 7'(RowWords))
  else $error("more words than a row holds");
`endif

endmodule : ring_infeed
