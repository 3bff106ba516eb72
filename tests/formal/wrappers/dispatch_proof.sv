// instruction_dispatch: every instruction goes once to its unit, or once to each of its tiles, and to
// nobody else; the next one comes only when all have it. Of all units and tiles one is looked at, any.

module dispatch_proof
  import isa_pkg::*;
  import scalar_pkg::handover_t;
#(
    parameter int Tiles = 16
) (
    input logic clk,
    input logic rst_n,
    input logic core2units_instruction_valid,
    input handover_t core2units_instruction_data,
    input logic core2activation_instruction_ready,
    input logic core2parameter_instruction_ready,
    input logic core2infeed_instruction_ready,
    input logic core2outfeed_instruction_ready,
    input logic core2fence_instruction_ready,
    input logic [Tiles-1:0] core2tiles_instruction_ready,
    input logic [4:0] any_receiver
);

  logic core2units_instruction_ready;
  logic core2activation_instruction_valid, core2parameter_instruction_valid;
  logic core2infeed_instruction_valid, core2outfeed_instruction_valid;
  logic core2fence_instruction_valid;
  logic [Tiles-1:0] core2tiles_instruction_valid;
  instruction_dispatch #(.Tiles(Tiles)) dispatch (.*);
  resets_first resets (.*);

  localparam int Receivers = Tiles + 5;
  logic [Receivers-1:0] offered, ready, wanted;
  assign offered = {
    core2fence_instruction_valid,
    core2outfeed_instruction_valid,
    core2infeed_instruction_valid,
    core2parameter_instruction_valid,
    core2activation_instruction_valid,
    core2tiles_instruction_valid
  };
  assign ready = {
    core2fence_instruction_ready,
    core2outfeed_instruction_ready,
    core2infeed_instruction_ready,
    core2parameter_instruction_ready,
    core2activation_instruction_ready,
    core2tiles_instruction_ready
  };

  no_op_t head;
  pop_input_t pop;
  logic of_core;
  assign head = no_op_t'(core2units_instruction_data.bits[$bits(no_op_t)-1:0]);
  assign pop = pop_input_t'(core2units_instruction_data.bits[$bits(pop_input_t)-1:0]);
  assign of_core = head.opcode inside {OPCODE_SCALAR_FENCE, OPCODE_RING_OUTFEED, OPCODE_RING_INFEED,
      OPCODE_POP_INPUT};
  assign wanted = {
    head.opcode == OPCODE_SCALAR_FENCE,
    head.opcode == OPCODE_RING_OUTFEED,
    head.opcode == OPCODE_RING_INFEED,
    head.opcode == OPCODE_POP_INPUT && !pop.fifo,
    head.opcode == OPCODE_POP_INPUT && pop.fifo,
    of_core ? Tiles'(0) : core2units_instruction_data.tiles[Tiles-1:0]
  };

  logic [4:0] receiver;
  logic has, gets, waited, others_wait;
  handover_t waits;
  assign gets = offered[receiver] && ready[receiver];
  always_ff @(posedge clk) begin
    receiver <= rst_n ? receiver : any_receiver;
    waited <= rst_n && core2units_instruction_valid && !core2units_instruction_ready;
    waits <= core2units_instruction_data;
    if (!rst_n || (core2units_instruction_valid && core2units_instruction_ready)) has <= 1'b0;
    else has <= has || gets;
    others_wait <= rst_n && core2units_instruction_valid && !core2units_instruction_ready && gets;
  end

  always_ff @(posedge clk) begin
    if (rst_n) begin
      assume_receiver : assume (receiver < 5'(Receivers));
      assume_stays :
      assume (!waited || (core2units_instruction_valid && core2units_instruction_data == waits));
      assert_none_but_its_own :
      assert (!offered[receiver] || (core2units_instruction_valid && wanted[receiver]));
      assert_once : assert (!has || !offered[receiver]);
      assert_none_lost :
      assert (!core2units_instruction_valid || !core2units_instruction_ready ||
              !wanted[receiver] || has || gets);
      assert_offered_at_once :
      assert (!core2units_instruction_valid || !wanted[receiver] || has || offered[receiver]);
      assert_goes_on :
      assert (!core2units_instruction_valid || !(&ready) || core2units_instruction_ready);
      lemma_taken : assert (has == (receiver < 5'(Tiles) && dispatch.taken[receiver]));
      cover_one_by_one : cover (others_wait && has && core2units_instruction_ready);
      cover_unit : cover (core2units_instruction_ready && gets && receiver >= 5'(Tiles));
    end
  end

endmodule : dispatch_proof
