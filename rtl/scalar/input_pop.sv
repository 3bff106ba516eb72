// PopInput: moves units of one of the host's input streams into their buffer, one a cycle.
// The chip has two of it, for activations and for parameters, each with a sync flag of its own.

module input_pop
  import isa_pkg::*;
  import tile_pkg::produce_t;
  import tile_pkg::step_t;
#(
    parameter int DataBytes = harness_pkg::DataBytes,
    parameter int UnitBytes = chip_pkg::ActivationUnitBytes,
    parameter int Units = chip_pkg::ActivationUnits,
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

  pop_input_t instruction;
  logic start, advance;
  step_t step;
  logic [CounterBits-1:0] address;
  buffer_walk #(
      .instruction_t(pop_input_t),
      .CounterBits  (CounterBits)
  ) walk (
      .clk,
      .rst_n,
      .core2unit_instruction_valid(core2input_instruction_valid),
      .core2unit_instruction_ready(core2input_instruction_ready),
      .core2unit_instruction_data(core2input_instruction_data),
      .unit2core_idle(input2core_idle),
      .instruction,
      .start,
      .advance,
      .step,
      .address
  );

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

  logic pass;
  watchers #(
      .watcher_t(watcher_4x2_t),
      .Watchers(1),
      .Flags(scalar_pkg::Flags)
  ) watch (
      .clk,
      .rst_n,
      .watcher(instruction.watcher),
      .flags2watchers_values(flags2input_values),
      .start,
      .begins(step.begins),
      .take(advance),
      .pass
  );

  assign advance = step.valid && pass && level >= LevelBits'(UnitBytes);
  assign input2buffer_write_valid = advance;
  assign input2buffer_write_address = address[AddressBits-1:0];
  assign input2flags_produce = tile_pkg::produce(
      advance && step.ended[4'(instruction.producer_depth)],
      instruction.producer_increment,
      5'(Flag)
  );

  logic unused;
  assign unused = &{1'b0, address, instruction};

endmodule : input_pop
