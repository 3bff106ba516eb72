// burst_planner: the bursts of a whole transfer follow one another without gap or overlap, and end
// where it ends.

module transfer_proof
  import dma_pkg::*;
#(
    parameter  int DataBytes = 8,
    parameter  int MaxBurst  = 16,
    localparam int BeatBits  = $clog2(MaxBurst + 1)
) (
    input logic clk,
    input logic rst_n,
    input logic start,
    input logic [AddressBits-1:0] start_address,
    input logic [31:0] start_size,
    input logic [BeatBits-1:0] limit  // may change from burst to burst
);

  resets_first resets (.*);

  logic busy;
  logic [AddressBits-1:0] address, first;
  logic [31:0] left, size, sum;
  logic [BeatBits-1:0] beats;
  logic [31:0] bytes;
  logic final_burst;
  burst_planner #(
      .DataBytes(DataBytes),
      .MaxBurst (MaxBurst)
  ) planner (
      .*
  );

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      busy <= 1'b0;
    end else if (!busy) begin
      busy <= start;
      address <= start_address;
      first <= start_address;
      left <= start_size;
      size <= start_size;
      sum <= '0;
    end else begin
      busy <= !final_burst;
      address <= address + AddressBits'(bytes);
      left <= left - bytes;
      sum <= sum + bytes;
    end
  end

  always_ff @(posedge clk) begin
    assume_asked : assume (start_size != '0 && limit != '0 && limit <= BeatBits'(MaxBurst));
    if (rst_n && busy) begin
      assert_sum : assert (final_burst == (33'(sum) + 33'(bytes) == 33'(size)));
      lemma_follows : assert (address == first + AddressBits'(sum));
      assert_moves : assert (bytes != '0);
      lemma_left : assert (33'(left) + 33'(sum) == 33'(size) && left != '0);
      cover_three_bursts : cover (final_burst && sum > 32'd128);
    end
  end

endmodule : transfer_proof
