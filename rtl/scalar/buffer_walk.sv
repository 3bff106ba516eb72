// Instructions of a unit of the scalar core, one after another, and the walk over its buffer that
// each of them describes. The unit takes the elements; the last one ends the instruction.

module buffer_walk
  import tile_pkg::step_t;
#(
    parameter type instruction_t = isa_pkg::pop_input_t,
    parameter type walk_t        = isa_pkg::traversal_3x15_t,  // of its field `buffer`
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
    output step_t step,
    output logic [CounterBits-1:0] address
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
      .done(advance && step.last)
  );

  traversal #(
      .walk_t(walk_t),
      .Loops(Loops),
      .CounterBits(CounterBits)
  ) buffer (
      .clk,
      .rst_n,
      .walk(instruction.buffer),
      .alternate_target(1'b0),
      .start,
      .advance,
      .step,
      .address
  );

endmodule : buffer_walk
