// Instructions of a unit of the scalar core, one after another, and the walk over its buffer that
// each of them describes. The unit takes the elements; the last one ends the instruction.

module buffer_walk #(
    parameter type instruction_t = isa_pkg::pop_input_t,
    parameter int  CounterBits   = 15
) (
    input logic clk,
    input logic rst_n,

    input  logic         core2unit_instruction_valid,
    output logic         core2unit_instruction_ready,
    input  instruction_t core2unit_instruction_data,
    output logic         unit2core_idle,

    output instruction_t instruction,  // the one that is executed
    output logic start,  // its first cycle; the first element is offered in the next one
    input logic advance,  // take the element that is offered
    output logic offered,
    output logic [CounterBits-1:0] address,
    output logic [15:0] begins,  // bit d: a block of depth d begins here
    output logic [15:0] ended,  // bit d: a block of depth d ends with this element
    output logic last
);

  localparam int Loops = 3;

  logic instruction_valid;
  assign unit2core_idle = !instruction_valid;

  scalar_queue #(
      .Width($bits(instruction_t))
  ) queue (
      .clk,
      .rst_n,
      .push_valid(core2unit_instruction_valid),
      .push_ready(core2unit_instruction_ready),
      .push_data(core2unit_instruction_data),
      .valid(instruction_valid),
      .data(instruction),
      .start,
      .done(advance && last)
  );

  logic signed [Loops-1:0][CounterBits:0] stride;
  logic [Loops-1:0][CounterBits-1:0] limit;
  for (genvar k = 0; k < Loops; k++) begin : gen_loop
    assign stride[k] = instruction.buffer_loop[k].stride;
    assign limit[k]  = instruction.buffer_loop[k].limit;
  end

  traversal #(
      .Loops(Loops),
      .AddressBits(CounterBits),
      .CounterBits(CounterBits)
  ) walk (
      .clk,
      .rst_n,
      .base(instruction.buffer_base),
      .stride,
      .limit,
      .double_loop(instruction.buffer_double_loop),
      .double_offset(instruction.buffer_double_offset),
      .double_start(instruction.buffer_double_start),
      .alternate_limit(instruction.buffer_alternate_limit),
      .alternate_loop(instruction.buffer_alternate_loop),
      .alternate_reset(instruction.buffer_alternate_reset),
      .start,
      .advance,
      .valid(offered),
      .address,
      .begins,
      .ended,
      .last
  );

endmodule : buffer_walk
