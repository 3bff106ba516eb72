// Narrow memory of a tile: bytes, read and written as four at any byte address.
// Reads are combinational; where two ports write a byte in one cycle the higher port wins.

module narrow_memory #(
    parameter int Bytes = chip_pkg::NarrowBytes,
    parameter int ReadPorts = 6,
    parameter int WritePorts = 6,
    localparam int AddressBits = 18
) (
    input logic clk,
    input logic rst_n, // nothing is cleared; the rules below hold from then on

    input  logic [ReadPorts-1:0][AddressBits-1:0] units2narrow_read_address,
    output logic [ReadPorts-1:0][           31:0] narrow2units_read_data,

    input logic [WritePorts-1:0]                  units2narrow_write_valid,
    input logic [WritePorts-1:0][AddressBits-1:0] units2narrow_write_address,
    input logic [WritePorts-1:0][           31:0] units2narrow_write_data
);

  // Every address has a place; the memory ends at Bytes all the same.
  logic [7:0] bytes[1<<AddressBits]  /* verilator public_flat_rd */;

  always_comb begin
    for (int p = 0; p < ReadPorts; p++) begin
      for (int b = 0; b < 4; b++) begin
        narrow2units_read_data[p][8*b+:8] = bytes[units2narrow_read_address[p]+AddressBits'(b)];
      end
    end
  end

  always_ff @(posedge clk) begin
    for (int p = 0; p < WritePorts; p++) begin
      if (units2narrow_write_valid[p]) begin
        for (int b = 0; b < 4; b++) begin
          bytes[units2narrow_write_address[p]+AddressBits'(b)] <=
              units2narrow_write_data[p][8*b+:8];
        end
      end
    end
  end

`ifndef SYNTHESIS
  for (genvar p = 0; p < WritePorts; p++) begin : gen_write
    assert_write_inside_the_memory :
    assert property (@(posedge clk) disable iff (!rst_n) units2narrow_write_valid[p] |->
        int'(units2narrow_write_address[p]) + 4 <= Bytes);
  end
`endif

endmodule : narrow_memory
