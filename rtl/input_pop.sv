// PopInput: moves units of one of the host's input streams into their buffer, one a cycle.
// The chip has two of it, for activations and for parameters, each with a sync flag of its own.

module input_pop
  import isa_pkg::*;
  import mutation_pkg::*;
  import tile_pkg::produce_t;
#(
    parameter int DataBytes = 8,
    parameter int UnitBytes = 8,
    parameter int Units = 32768,
    parameter scalar_flag_e Flag = SCALAR_FLAG_AV_POP,
    localparam int AddressBits = $clog2(Units),
    localparam int CountBits = $clog2(DataBytes + 1)
) (
    input logic clk,
    input logic rst_n,

    input  logic       core2input_instruction_valid,
    output logic       core2input_instruction_ready,
    input  pop_input_t core2input_instruction_data,
    output logic       input2core_idle,

    input  logic                   dma2input_unit_valid,
    output logic                   dma2input_unit_ready,
    input  logic [8*DataBytes-1:0] dma2input_unit_data,
    input  logic [  CountBits-1:0] dma2input_unit_count,

    input  scalar_pkg::flags_t flags2input_values,
    output produce_t           input2flags_produce,

    output logic                   input2buffer_write_valid,
    output logic [AddressBits-1:0] input2buffer_write_address,
    output logic [8*UnitBytes-1:0] input2buffer_write_data
);

  localparam int Capacity = 4 * ((DataBytes > UnitBytes) ? DataBytes : UnitBytes);
  localparam int LevelBits = $clog2(Capacity) + 1;
  localparam int TakeBits = $clog2(UnitBytes + 1);
  localparam int CounterBits = 15;

  logic instruction_valid;
  pop_input_t instruction;
  logic start, advance, last, offered;
  scalar_queue #(
      .Width($bits(pop_input_t))
  ) queue (
      .clk,
      .rst_n,
      .push_valid(core2input_instruction_valid),
      .push_ready(core2input_instruction_ready),
      .push_data(core2input_instruction_data),
      .valid(instruction_valid),
      .data(instruction),
      .start,
      .done(advance && last)
  );
  assign input2core_idle = !instruction_valid;

  // Bytes of the stream that wait.
  logic [LevelBits-1:0] level;
  byte_fifo #(
      .InBytes (DataBytes),
      .OutBytes(UnitBytes),
      .Capacity(Capacity)
  ) stream (
      .clk,
      .rst_n,
      .in_valid(dma2input_unit_valid),
      .in_ready(dma2input_unit_ready),
      .in_data(dma2input_unit_data),
      .in_count(dma2input_unit_count),
      .level,
      .window(input2buffer_write_data),
      .take(advance ? TakeBits'(UnitBytes) : '0)
  );

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
      .Watchers(1),
      .Flags(scalar_pkg::Flags),
      .FlagBits(scalar_pkg::FlagBits),
      .DepthBits(2)
  ) watch (
      .clk,
      .rst_n,
      .valid(instruction.watcher_valid),
      .side('0),
      .flag(instruction.watcher_flag),
      .depth(instruction.watcher_depth),
      .expected(instruction.watcher_expected),
      .stride(instruction.watcher_stride),
      .flags2watchers_values(flags2input_values),
      .start,
      .begins({16'd0, begins}),
      .take({1'b0, advance}),
      .pass({unused_pass, pass}),
      .latest()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  assign advance = offered && pass &&
      level >= LevelBits'(UnitBytes) - LevelBits'(mutated[PopOneByteEarly]);
  assign input2buffer_write_valid = advance;
  assign input2buffer_write_address = address[AddressBits-1:0];
  assign input2flags_produce = tile_pkg::produce(
      advance && ended[4'(instruction.producer_depth)], instruction.producer_increment, 5'(Flag)
  );

  logic unused_pass;
  logic unused;
  assign unused = &{1'b0, unused_pass, address, instruction};

endmodule : input_pop
