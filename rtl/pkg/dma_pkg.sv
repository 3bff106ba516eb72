// Types that the DMA engine shares with what surrounds it: descriptors as the scalar core issues
// them, and the work that they become once they have been found good.

package dma_pkg;

  // Bits of a bus address; bus address 0 is the first byte of the window of device addresses.
  localparam int AddressBits = 40;
  // Bytes of a register, which are a word of the registers' port.
  localparam int RegisterBytes = 8;
  // Bytes that no burst may cross a multiple of (AMBA AXI, A3.4.1).
  localparam int BurstBoundary = harness_pkg::Boundary;
  // Input, parameter and instruction streams.
  localparam int ReadStreams = 3;
  // Completion events: one for each read stream, one for output and interrupts, one for fences.
  localparam int DoneEvents = 5;

  // `tag` is an isa_pkg::descriptor_tag_e.
  typedef struct packed {
    logic        fence;
    logic [3:0]  tag;
    logic [31:0] size;
    logic [63:0] address;
  } descriptor_t;

  // A descriptor on its way: `index` is its place in the order of all since reset. An interrupt
  // travels with the outputs, which it must not overtake.
  typedef struct packed {
    logic [31:0]            index;
    logic                   is_interrupt;
    logic [1:0]             number;
    logic [31:0]            size;
    logic [AddressBits-1:0] address;
  } work_t;

  // What became of a descriptor at the head of the queue.
  typedef enum logic [2:0] {
    OutcomeStarted = 3'd0,
    OutcomeMalformed = 3'd1,
    OutcomeLength0 = 3'd2,
    OutcomeInboundFault = 3'd3,
    OutcomeExtendedFault = 3'd4
  } outcome_e;

  // One cycle of 1 for each error.
  typedef struct packed {
    logic malformed;
    logic length_0;
    logic inbound_fault;
    logic extended_fault;
    logic read_response;
    logic write_response;
  } dma_errors_t;

  // What the host has told the instruction queue: its registers, and that the scalar core runs.
  typedef struct packed {
    logic        enable;
    logic        status_block;
    logic        runs;
    logic [63:0] base;
    logic [63:0] status_base;
    logic [63:0] size;            // descriptors in the ring
    logic [63:0] tail;
    logic [63:0] simple_entries;  // of the page table
    logic [63:0] window_base;
    logic [63:0] window_size;
  } queue_settings_t;

  // One cycle of 1 for each error of the instruction queue.
  typedef struct packed {
    logic bad_configuration;
    logic invalid;
    logic length_0;
    logic inbound_fault;
    logic extended_fault;
    logic read_response;
    logic write_response;
  } queue_errors_t;

endpackage : dma_pkg
