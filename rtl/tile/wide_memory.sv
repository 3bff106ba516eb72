// Wide memory of a tile: rows of 64 words of 32 bits, read whole and written from word 0 on.
// Reads are combinational; where two ports write a row in one cycle the higher port wins.
// With a ClockRatio of more than 1 it is made of block RAM, to the same effect (memory_bank.sv).

module wide_memory #(
    parameter int Rows = chip_pkg::WideRows,
    parameter int Words = chip_pkg::RowWords,
    parameter int ReadPorts = 3,
    parameter int WritePorts = 4,
    parameter int ClockRatio = 1,
    localparam int RowBits = $clog2(Rows),
    localparam int CountBits = $clog2(Words + 1)
) (
    input logic clk,
    input logic clk_memory,  // ClockRatio cycles in one of clk, for block RAM alone
    input logic rst_n,  // nothing is cleared; the rules below hold from then on

    input  logic [ReadPorts-1:0][RowBits-1:0]       units2wide_read_row,
    output logic [ReadPorts-1:0][  Words-1:0][31:0] wide2units_read_data,

    input logic [WritePorts-1:0]                      units2wide_write_valid,
    input logic [WritePorts-1:0][  RowBits-1:0]       units2wide_write_row,
    input logic [WritePorts-1:0][CountBits-1:0]       units2wide_write_count,
    input logic [WritePorts-1:0][    Words-1:0][31:0] units2wide_write_data
);

  if (ClockRatio == 1) begin : gen_array
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

    logic unused;
    assign unused = &{1'b0, clk_memory};
  end else begin : gen_bank
    // A row that two ports write is the higher one's, also behind its last word.
    logic [WritePorts-1:0][Words-1:0] write_valid;
    always_comb begin
      for (int p = 0; p < WritePorts; p++) begin
        for (int w = 0; w < Words; w++) begin
          write_valid[p][w] = units2wide_write_valid[p] && CountBits'(w) < units2wide_write_count[p];
        end
        for (int q = p + 1; q < WritePorts; q++) begin
          if (units2wide_write_valid[q] && units2wide_write_row[q] == units2wide_write_row[p]) begin
            write_valid[p] = '0;
          end
        end
      end
    end

    memory_bank #(
        .Words(Rows),
        .Lanes(Words),
        .ReadPorts(ReadPorts),
        .WritePorts(WritePorts),
        .Ratio(ClockRatio)
    ) bank (
        .clk,
        .clk_memory,
        .rst_n,
        .units2bank_read_address (units2wide_read_row),
        .bank2units_read_data    (wide2units_read_data),
        .units2bank_write_valid  (write_valid),
        .units2bank_write_address(units2wide_write_row),
        .units2bank_write_data   (units2wide_write_data)
    );
  end

`ifndef SYNTHESIS
  for (genvar p = 0; p < WritePorts; p++) begin : gen_write
    assert_write_inside_the_memory :
    assert property (@(posedge clk) disable iff (!rst_n) units2wide_write_valid[p] |->
        int'(units2wide_write_row[p]) < Rows);
  end
`endif

endmodule : wide_memory
