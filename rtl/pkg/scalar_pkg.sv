// What the scalar core's units have in common: sizes of their buffers, their sync flags, and the
// record of one instruction that the scalar core hands over. Sizes are those of darwinn_sim.chip.

package scalar_pkg;

  localparam int Flags = 9;
  localparam int FlagBits = 4;
  localparam int ActivationUnitBytes = 8;
  localparam int ActivationUnits = 32768;
  localparam int ParameterUnitBytes = 64;
  localparam int ParameterUnits = 2048;
  localparam int MemoryWords = 4096;
  localparam int MemoryBits = 12;
  localparam int UnitQueue = 16;  // instructions that wait before each unit
  localparam int RingRows = 4;  // rows that the outfeed holds
  localparam int IdleBits = 5;  // of ScalarFence.wait_idle

  // Values of RingInfeed.fifo.
  localparam logic [1:0] FifoParameters = 2'd0;
  localparam logic [1:0] FifoActivations = 2'd1;

  typedef logic [Flags-1:0][15:0] flags_t;

  // An instruction that the scalar core hands over; `base` replaces a base address if valid.
  typedef struct packed {
    logic [tile_pkg::Tiles-1:0] tiles;
    logic base_valid;
    logic [31:0] base;
    logic [isa_pkg::LongestBits-1:0] bits;
  } handover_t;

endpackage : scalar_pkg
