// What the scalar core's units have in common: sizes of their buffers, their sync flags, and the
// record of one instruction that the scalar core hands over. Sizes come from the generated chip_pkg
// and harness_pkg.

package scalar_pkg;

  localparam int Flags = chip_pkg::ScalarFlags;
  localparam int ActivationUnitBytes = chip_pkg::ActivationUnitBytes;
  localparam int ActivationUnits = chip_pkg::ActivationUnits;
  localparam int ParameterUnitBytes = chip_pkg::ParameterUnitBytes;
  localparam int ParameterUnits = chip_pkg::ParameterUnits;
  localparam int MemoryWords = chip_pkg::ScalarMemoryWords;
  localparam int MemoryBits = $clog2(MemoryWords);
  localparam int UnitQueue = harness_pkg::ScalarQueue;  // instructions that wait before each unit
  localparam int RingRows = harness_pkg::OutfeedRows;  // rows that the outfeed holds
  localparam int IdleBits = chip_pkg::ScalarUnits;  // of ScalarFence.wait_idle

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
