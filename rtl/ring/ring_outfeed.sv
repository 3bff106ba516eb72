// RingOutfeed: takes units from the rows that arrive over the ring bus, to the host or to scalar
// memory. A row whose units have been asked for is dropped with what is left of it.

module ring_outfeed
  import isa_pkg::*;
  import scalar_pkg::*;
  import tile_pkg::produce_t;
  import tile_pkg::step_t;
  import tile_pkg::row_t;
(
    input logic clk,
    input logic rst_n,

    input  logic          core2outfeed_instruction_valid,
    output logic          core2outfeed_instruction_ready,
    input  ring_outfeed_t core2outfeed_instruction_data,
    output logic          outfeed2core_idle,

    input  flags_t   flags2outfeed_values,
    output produce_t outfeed2flags_produce,

    input  logic ring2outfeed_row_valid,
    output logic ring2outfeed_row_ready,
    input  row_t ring2outfeed_row_data,

    output logic        outfeed2output_unit_valid,
    input  logic        outfeed2output_unit_ready,
    output logic [63:0] outfeed2output_unit_data,

    output logic                  outfeed2memory_write_valid,
    output logic [MemoryBits-1:0] outfeed2memory_write_address,
    output logic [          31:0] outfeed2memory_write_data
);

  localparam int CounterBits = 15;

  ring_outfeed_t instruction;
  logic start, advance;
  step_t step;
  logic [CounterBits-1:0] address;
  buffer_walk #(
      .instruction_t(ring_outfeed_t),
      .CounterBits  (CounterBits)
  ) walk (
      .clk,
      .rst_n,
      .core2unit_instruction_valid(core2outfeed_instruction_valid),
      .core2unit_instruction_ready(core2outfeed_instruction_ready),
      .core2unit_instruction_data(core2outfeed_instruction_data),
      .unit2core_idle(outfeed2core_idle),
      .instruction,
      .start,
      .advance,
      .step,
      .address
  );

  logic row_valid, row_taken;
  row_t row;
  descriptor_fifo #(
      .Width($bits(row_t)),
      .Depth(RingRows)
  ) rows (
      .clk,
      .rst_n,
      .push_valid(ring2outfeed_row_valid),
      .push_ready(ring2outfeed_row_ready),
      .push_data (ring2outfeed_row_data),
      .pop_valid (row_valid),
      .pop_ready (row_taken),
      .pop_data  (row)
  );

  // A unit that has been offered stays so, whatever flags are loaded with meanwhile.
  logic pass, passed, takes;
  assign takes = step.valid && row_valid && (passed || pass);
  watchers #(
      .watcher_t(watcher_4x2_t),
      .Watchers(1),
      .Flags(Flags)
  ) watch (
      .clk,
      .rst_n,
      .watcher(instruction.watcher),
      .flags2watchers_values(flags2outfeed_values),
      .start,
      .begins(step.begins),
      .take(takes && !passed),
      .pass
  );

  // Two words go to the host, or one to scalar memory.
  logic [5:0] position;  // of the first word in the row that has not been taken
  logic [6:0] next;
  assign next = 7'(position) + (instruction.to_host ? 7'd2 : 7'd1);
  assign advance = takes && (!instruction.to_host || outfeed2output_unit_ready);
  assign row_taken = advance && (next >= 7'(instruction.row_words) + 7'd1 || step.last);

  assign outfeed2output_unit_valid = takes && instruction.to_host;
  assign outfeed2output_unit_data = {row[position+6'd1], row[position]};
  assign outfeed2memory_write_valid = advance && !instruction.to_host;
  assign outfeed2memory_write_address = address[MemoryBits-1:0];
  assign outfeed2memory_write_data = row[position];
  assign outfeed2flags_produce = tile_pkg::produce(
      advance && step.ended[4'(instruction.producer_depth)],
      instruction.producer_increment,
      5'(SCALAR_FLAG_RING_OUTFEED)
  );

  always_ff @(posedge clk) begin
    if (!rst_n || start || row_taken) position <= '0;
    else if (advance) position <= next[5:0];
    passed <= takes && !advance;
  end

  logic unused;
  assign unused = &{1'b0, address, instruction};

  handshake_check #(
      .Width(64)
  ) outgoing (
      .clk,
      .rst_n,
      .valid  (outfeed2output_unit_valid),
      .ready  (outfeed2output_unit_ready),
      .payload(outfeed2output_unit_data)
  );

endmodule : ring_outfeed
