// Wide memory of a tile: rows of 64 words of 32 bits, read whole and written from word 0 on.
// Reads are combinational; where two ports write a row in one cycle the higher port wins.

module wide_memory #(
    parameter int Rows = chip_pkg::WideRows,
    parameter int Words = chip_pkg::RowWords,
    parameter int ReadPorts = 3,
    parameter int WritePorts = 4,
    localparam int RowBits = $clog2(Rows),
    localparam int CountBits = $clog2(Words + 1)
) (
    input logic clk,
    input logic rst_n, // nothing is cleared; the rules below hold from then on

    input  logic [ReadPorts-1:0][RowBits-1:0]       units2wide_read_row,
    output logic [ReadPorts-1:0][  Words-1:0][31:0] wide2units_read_data,

    input logic [WritePorts-1:0]                      units2wide_write_valid,
    input logic [WritePorts-1:0][  RowBits-1:0]       units2wide_write_row,
    input logic [WritePorts-1:0][CountBits-1:0]       units2wide_write_count,
    input logic [WritePorts-1:0][    Words-1:0][31:0] units2wide_write_data
);

  // Every row that an address can name has a place; the memory ends at Rows all the same.
  logic [Words-1:0][31:0] rows[1<<RowBits]  /* verilator public_flat_rd */;

  always_comb begin
    for (int p = 0; p < ReadPorts; p++) begin
      wide2units_read_data[p] = rows[units2wide_read_row[p]];
    end
  end

  logic [WritePorts-1:0][Words-1:0][31:0] written;
  always_comb begin
    for (int p = 0; p < WritePorts; p++) begin
      written[p] = units2wide_write_data[p];
      if (units2wide_write_valid[p]) begin
        for (int w = 0; w < Words; w++) begin
          if (CountBits'(w) >= units2wide_write_count[p]) begin
            written[p][w] = rows[units2wide_write_row[p]][w];
          end
        end
      end
    end
  end

  always_ff @(posedge clk) begin
    for (int p = 0; p < WritePorts; p++) begin
      if (units2wide_write_valid[p]) rows[units2wide_write_row[p]] <= written[p];
    end
  end

`ifndef SYNTHESIS
  for (genvar p = 0; p < WritePorts; p++) begin : gen_write
    assert_write_inside_the_memory :
    assert property (@(posedge clk) disable iff (!rst_n) units2wide_write_valid[p] |->
        int'(units2wide_write_row[p]) < Rows);
  end
`endif

endmodule : wide_memory
