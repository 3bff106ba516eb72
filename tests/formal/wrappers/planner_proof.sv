// burst_planner: one burst of any transfer, of up to 4 GiB less a byte, at any address.

module planner_proof
  import dma_pkg::*;
#(
    parameter  int DataBytes = 8,
    parameter  int MaxBurst  = 16,
    localparam int BeatBits  = $clog2(MaxBurst + 1)
) (
    input logic clk,
    input logic [AddressBits-1:0] address,
    input logic [31:0] left,
    input logic [BeatBits-1:0] limit
);

  localparam int OffsetBits = $clog2(DataBytes);

  logic [BeatBits-1:0] beats;
  logic [31:0] bytes;
  logic final_burst;
  burst_planner #(
      .DataBytes(DataBytes),
      .MaxBurst (MaxBurst)
  ) planner (
      .*
  );

  logic [15:0] offset, span, in_page;
  assign offset = 16'(address[OffsetBits-1:0]);
  assign span = 16'(beats) << OffsetBits;  // bytes of the burst's words
  assign in_page = {4'd0, address[11:OffsetBits], OffsetBits'(0)};

  always_ff @(posedge clk) begin
    assume_asked : assume (left != '0 && limit != '0 && limit <= BeatBits'(MaxBurst));
    assert_length : assert (beats != '0 && beats <= limit);
    assert_within_4_kib : assert (in_page + span <= 16'd4096);
    assert_bytes_are_left : assert (bytes != '0 && bytes <= left);
    assert_last : assert (final_burst == (bytes == left));
    // The words hold the bytes, and none of them is empty.
    assert_words :
    assert (33'(bytes) + 33'(offset) <= 33'(span) &&
            33'(bytes) + 33'(offset) > 33'(span) - 33'(DataBytes));
    // It ends early for a reason only.
    assert_longest :
    assert (final_burst || ((beats == limit || in_page + span == 16'd4096) &&
            33'(bytes) + 33'(offset) == 33'(span)));
    cover_boundary : cover (!final_burst && beats < limit);
    cover_last : cover (final_burst && bytes > 32'(DataBytes) && offset != '0);
    cover_4_gib : cover (left == 32'hffff_ffff && offset == 16'(DataBytes - 1));
  end

endmodule : planner_proof
