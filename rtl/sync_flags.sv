// Sync flags: 16-bit counters that producers increment and fences load; they wrap.
// Several producers may count in one cycle, but each flag has at most one of them.

module sync_flags #(
    parameter int Flags = 19,
    parameter int Producers = 8,
    localparam int FlagBits = $clog2(Flags)
) (
    input logic clk,
    input logic rst_n,

    input logic [Producers-1:0]               units2flags_produce_valid,
    input logic [Producers-1:0][FlagBits-1:0] units2flags_produce_flag,
    input logic [Producers-1:0][        15:0] units2flags_produce_amount,

    input logic             fence2flags_load_valid,
    input logic [Flags-1:0] fence2flags_load_mask,
    input logic [     15:0] fence2flags_load_value,

    output logic [Flags-1:0][15:0] flags2units_values
);

  logic [Flags-1:0][15:0] increment;
  always_comb begin
    increment = '0;
    for (int p = 0; p < Producers; p++) begin
      if (units2flags_produce_valid[p]) begin
        increment[units2flags_produce_flag[p]] = increment[units2flags_produce_flag[p]] +
            units2flags_produce_amount[p];
      end
    end
  end

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      flags2units_values <= '0;
    end else begin
      for (int f = 0; f < Flags; f++) begin
        if (fence2flags_load_valid && fence2flags_load_mask[f]) begin
          flags2units_values[f] <= fence2flags_load_value;
        end else begin
          flags2units_values[f] <= flags2units_values[f] + increment[f];
        end
      end
    end
  end

`ifndef SYNTHESIS
  for (genvar a = 0; a < Producers; a++) begin : gen_pair
    for (genvar b = a + 1; b < Producers; b++) begin : gen_other
      assert_one_producer_per_flag :
      assert property (@(posedge clk) disable iff (!rst_n)
          !(units2flags_produce_valid[a] && units2flags_produce_valid[b] &&
            units2flags_produce_flag[a] == units2flags_produce_flag[b]));
    end
  end
`endif

endmodule : sync_flags
