// Sync flags: 16-bit counters that producers increment and fences load; they wrap.
// Several producers may count in one cycle, but each flag has at most one of them.

module sync_flags #(
    parameter int Flags = chip_pkg::TileFlags,
    parameter int Producers = 8,
    localparam int FlagBits = $clog2(Flags)
) (
    input logic clk,
    input logic rst_n,

    input tile_pkg::produce_t [Producers-1:0] units2flags_produce,

    input logic             fence2flags_load_valid,
    input logic [Flags-1:0] fence2flags_load_mask,
    input logic [     15:0] fence2flags_load_value,

    output logic [Flags-1:0][15:0] flags2units_values
);

  logic [Flags-1:0][15:0] values  /* verilator public_flat_rd */;
  assign flags2units_values = values;

  logic [Flags-1:0][15:0] increment;
  logic [Flags-1:0] counted;
  logic contended;

  always_comb begin
    increment = '0;
    counted   = '0;
    contended = 1'b0;
    for (int p = 0; p < Producers; p++) begin
      if (units2flags_produce[p].valid) begin
        contended = contended | counted[units2flags_produce[p].flag[FlagBits-1:0]];
        counted[units2flags_produce[p].flag[FlagBits-1:0]] = 1'b1;
        increment[units2flags_produce[p].flag[FlagBits-1:0]] = units2flags_produce[p].amount;
      end
    end
  end

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      values <= '0;
    end else begin
      for (int f = 0; f < Flags; f++) begin
        if (fence2flags_load_valid && fence2flags_load_mask[f]) begin
          values[f] <= fence2flags_load_value;
        end else begin
          values[f] <= values[f] + increment[f];
        end
      end
    end
  end

`ifndef SYNTHESIS
  assert_one_producer_per_flag :
  assert property (@(posedge clk) disable iff (!rst_n) !contended)
  else $error("two producers of one flag");
`endif

endmodule : sync_flags
