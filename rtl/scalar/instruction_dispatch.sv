// Gives each instruction that the scalar core hands over to the unit that executes it, or to its
// tiles. Instructions are taken in program order: the next one only when all have this one.

module instruction_dispatch
  import isa_pkg::*;
  import scalar_pkg::handover_t;
#(
    parameter int Tiles = chip_pkg::Tiles
) (
    input logic clk,
    input logic rst_n,

    input  logic      core2units_instruction_valid,
    output logic      core2units_instruction_ready,
    input  handover_t core2units_instruction_data,

    output logic             core2activation_instruction_valid,
    input  logic             core2activation_instruction_ready,
    output logic             core2parameter_instruction_valid,
    input  logic             core2parameter_instruction_ready,
    output logic             core2infeed_instruction_valid,
    input  logic             core2infeed_instruction_ready,
    output logic             core2outfeed_instruction_valid,
    input  logic             core2outfeed_instruction_ready,
    output logic             core2fence_instruction_valid,
    input  logic             core2fence_instruction_ready,
    output logic [Tiles-1:0] core2tiles_instruction_valid,
    input  logic [Tiles-1:0] core2tiles_instruction_ready
);

  no_op_t head;  // the fields that all instructions have
  pop_input_t pop;
  assign head = no_op_t'(core2units_instruction_data.bits[$bits(no_op_t)-1:0]);
  assign pop  = pop_input_t'(core2units_instruction_data.bits[$bits(pop_input_t)-1:0]);

  // Tiles that have this instruction already: they need not all have room in the same cycle.
  logic [Tiles-1:0] taken, wanted;
  assign wanted = core2units_instruction_data.tiles[Tiles-1:0] & ~taken;

  always_comb begin
    core2activation_instruction_valid = 1'b0;
    core2parameter_instruction_valid = 1'b0;
    core2infeed_instruction_valid = 1'b0;
    core2outfeed_instruction_valid = 1'b0;
    core2fence_instruction_valid = 1'b0;
    core2tiles_instruction_valid = '0;
    case (head.opcode)
      OPCODE_POP_INPUT: begin
        core2activation_instruction_valid = core2units_instruction_valid && pop.fifo;
        core2parameter_instruction_valid = core2units_instruction_valid && !pop.fifo;
        core2units_instruction_ready = pop.fifo ? core2activation_instruction_ready
                                                : core2parameter_instruction_ready;
      end
      OPCODE_RING_INFEED: begin
        core2infeed_instruction_valid = core2units_instruction_valid;
        core2units_instruction_ready  = core2infeed_instruction_ready;
      end
      OPCODE_RING_OUTFEED: begin
        core2outfeed_instruction_valid = core2units_instruction_valid;
        core2units_instruction_ready   = core2outfeed_instruction_ready;
      end
      OPCODE_SCALAR_FENCE: begin
        core2fence_instruction_valid = core2units_instruction_valid;
        core2units_instruction_ready = core2fence_instruction_ready;
      end
      default: begin
        core2tiles_instruction_valid = core2units_instruction_valid ? wanted : '0;
        core2units_instruction_ready = (wanted & ~core2tiles_instruction_ready) == '0;
      end
    endcase
  end

  always_ff @(posedge clk) begin
    if (!rst_n || (core2units_instruction_valid && core2units_instruction_ready)) begin
      taken <= '0;
    end else begin
      taken <= taken | (core2tiles_instruction_valid & core2tiles_instruction_ready);
    end
  end

  handshake_check #(
      .Width($bits(handover_t))
  ) incoming (
      .clk,
      .rst_n,
      .valid  (core2units_instruction_valid),
      .ready  (core2units_instruction_ready),
      .payload(core2units_instruction_data)
  );

  logic unused;
  assign unused = &{1'b0, core2units_instruction_data, head, pop};

endmodule : instruction_dispatch
