// What the units of a tile have in common: sizes, the records that travel between them, and the
// rules by which instructions are read. Sizes come from the generated chip_pkg.

package tile_pkg;

  localparam int Flags = chip_pkg::TileFlags;
  localparam int FlagBits = $clog2(Flags);
  localparam int Units = chip_pkg::TileUnits;  // in the order of TileFence.wait_idle
  localparam int Links = 4;  // of the mesh: south, west, north, east
  localparam int NarrowBytes = chip_pkg::NarrowBytes;
  localparam int NarrowAddressBits = $clog2(chip_pkg::NarrowAddressBytes);  // of a byte
  localparam int WideRows = chip_pkg::WideRows;
  localparam int RowBits = $clog2(WideRows);
  localparam int RowWords = chip_pkg::RowWords;
  localparam int CountBits = $clog2(RowWords + 1);  // 0 to 64 words of a row
  localparam int Tiles = chip_pkg::Tiles;

  typedef logic [Flags-1:0][15:0] flags_t;
  typedef logic [RowWords-1:0][31:0] row_t;

  // Event: `amount` is added to a sync flag.
  typedef struct packed {
    logic valid;
    logic [FlagBits-1:0] flag;
    logic [15:0] amount;
  } produce_t;

  // What a traversal tells of the element that it offers.
  typedef struct packed {
    logic valid;
    logic last;
    logic second;  // the second buffer is addressed
    logic [15:0] begins;  // bit d: a block of depth d begins here
    logic [15:0] ended;  // bit d: a block of depth d ends with this element
  } step_t;

  // A row on the ring bus; the outfeed is behind the tiles, and `token` goes with the row.
  typedef struct packed {
    logic [Tiles:0] targets;
    logic channel;  // 0 A, 1 B
    logic token;
    logic [CountBits-1:0] words;
    row_t data;
  } ring_row_t;

  // Where a row goes: an instruction has a bit for every tile that it could name, and the outfeed's.
  function automatic logic [Tiles:0] receivers(input logic [chip_pkg::OutfeedBit:0] targets);
    return {targets[chip_pkg::OutfeedBit], targets[Tiles-1:0]};
  endfunction

  // A piecewise polynomial: segment n begins at bound n - 1, lowest power first; float32.
  localparam int FunctionSegments = chip_pkg::TableSegments;
  localparam int FunctionCoefficients = chip_pkg::TableCoefficients;
  typedef struct packed {
    logic [FunctionSegments-2:0][31:0] lower_bound;
    logic [FunctionSegments-1:0][FunctionCoefficients-1:0][31:0] coefficient;
  } function_table_t;

  // Event of a producer: one is added at the end of a block, if the producer is on.
  function automatic produce_t produce(input logic at, input logic increment,
                                       input logic [FlagBits-1:0] flag);
    return '{valid: at && increment, flag: flag, amount: 16'd1};
  endfunction

endpackage : tile_pkg
