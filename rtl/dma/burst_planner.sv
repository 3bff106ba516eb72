// Cuts the next burst from what is left of a transfer: no longer than the limit, never across a
// 4 KiB boundary. Purely combinational.

module burst_planner
  import dma_pkg::*;
#(
    parameter  int DataBytes = harness_pkg::DataBytes,
    parameter  int MaxBurst  = harness_pkg::BurstWords,
    localparam int BeatBits  = $clog2(MaxBurst + 1)
) (
    input logic [AddressBits-1:0] address,
    input logic [31:0] left,  // bytes of the transfer from `address` on, not 0
    input logic [BeatBits-1:0] limit,  // beats of the longest burst, not 0

    output logic [BeatBits-1:0] beats,
    output logic [31:0] bytes,  // of the transfer, in this burst
    output logic final_burst  // the transfer ends with this burst
);

  localparam int OffsetBits = $clog2(DataBytes);
  localparam int BoundaryBits = $clog2(BurstBoundary / DataBytes);

  logic [32:0] span;  // bytes from the first bus word's beginning to the transfer's end
  logic [32:0] words_left;
  logic [BoundaryBits:0] words_to_boundary;
  logic [31:0] burst_span;

  assign span = 33'(left) + 33'(address[OffsetBits-1:0]);
  assign words_left = (span + 33'(DataBytes - 1)) >> OffsetBits;
  assign words_to_boundary = (BoundaryBits + 1)'(BurstBoundary / DataBytes) -
      (BoundaryBits + 1)'(address[OffsetBits+:BoundaryBits]);

  always_comb begin
    beats = limit;
    if (words_left < 33'(beats)) beats = BeatBits'(words_left);
    if (33'(words_to_boundary) < 33'(beats)) begin
      beats = BeatBits'(words_to_boundary);
    end
  end

  assign final_burst = words_left == 33'(beats);
  assign burst_span = 32'(beats) << OffsetBits;
  assign bytes = final_burst ? left : burst_span - 32'(address[OffsetBits-1:0]);

  logic unused;
  assign unused = &{1'b0, address[AddressBits-1:OffsetBits+BoundaryBits]};

endmodule : burst_planner
