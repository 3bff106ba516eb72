// sync_flags: one flag, any one, against a counter of its own.

module sync_flags_proof #(
    parameter int Flags = 19,
    parameter int Producers = 8,
    localparam int FlagBits = $clog2(Flags)
) (
    input logic clk,
    input logic rst_n,
    input tile_pkg::produce_t [Producers-1:0] units2flags_produce,
    input logic fence2flags_load_valid,
    input logic [Flags-1:0] fence2flags_load_mask,
    input logic [15:0] fence2flags_load_value,
    input logic [FlagBits-1:0] chosen
);

  logic [Flags-1:0][15:0] flags2units_values;
  sync_flags #(
      .Flags(Flags),
      .Producers(Producers)
  ) flags (
      .*
  );
  resets_first resets (.*);

  logic [FlagBits-1:0] flag;  // the one that is looked at: what it is at first
  logic [15:0] value, added;
  logic [7:0] producers;
  logic known;  // flags that there are
  always_comb begin
    added = '0;
    producers = '0;
    known = 1'b1;
    for (int p = 0; p < Producers; p++) begin
      if (units2flags_produce[p].flag >= 5'(Flags)) known = 1'b0;
      if (units2flags_produce[p].valid && units2flags_produce[p].flag == 5'(flag)) begin
        added = units2flags_produce[p].amount;
        producers = producers + 8'd1;
      end
    end
  end

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      flag  <= chosen;
      value <= '0;
    end else if (fence2flags_load_valid && fence2flags_load_mask[flag])
      value <= fence2flags_load_value;
    else value <= value + added;
  end

  always_ff @(posedge clk) begin
    if (rst_n) begin
      assume_flag : assume (flag < FlagBits'(Flags));
      assume_flags : assume (known);
      assume_one_producer : assume (producers <= 8'd1);
      assert_counts : assert (flags2units_values[flag] == value);
      cover_wraps : cover (value == '1 && added == 16'd1);
      cover_loads : cover (fence2flags_load_valid && value == 16'hbeef && added != '0);
    end
  end

endmodule : sync_flags_proof
