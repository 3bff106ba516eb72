// Narrow memory of a tile: bytes, read and written as four at any byte address.
// Reads are combinational; where two ports write a byte in one cycle the higher port wins.
// With a ClockRatio of more than 1 it is made of block RAM, to the same effect (memory_bank.sv).

module narrow_memory #(
    parameter int Bytes = chip_pkg::NarrowBytes,
    parameter int ReadPorts = 6,
    parameter int WritePorts = 6,
    parameter int ClockRatio = 1,
    parameter int AddressBits = 18
) (
    input logic clk,
    input logic clk_memory,  // ClockRatio cycles in one of clk, for block RAM alone
    input logic rst_n,  // nothing is cleared; the rules below hold from then on

    input  logic [ReadPorts-1:0][AddressBits-1:0] units2narrow_read_address,
    output logic [ReadPorts-1:0][           31:0] narrow2units_read_data,

    input logic [WritePorts-1:0]                  units2narrow_write_valid,
    input logic [WritePorts-1:0][AddressBits-1:0] units2narrow_write_address,
    input logic [WritePorts-1:0][           31:0] units2narrow_write_data
);

  if (ClockRatio == 1) begin : gen_array
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

    logic unused;
    assign unused = &{1'b0, clk_memory};
  end else begin : gen_banks
    // A bank for each byte of a word: four bytes at any address are one of each, in a row or the next.
    localparam int Rows = (Bytes + 3) / 4;
    localparam int RowBits = $clog2(Rows);
    logic [3:0][ReadPorts-1:0][7:0] read;
    for (genvar b = 0; b < 4; b++) begin : gen_byte
      logic [ ReadPorts-1:0][RowBits-1:0] read_row;
      logic [WritePorts-1:0][RowBits-1:0] write_row;
      logic [WritePorts-1:0][        7:0] write_data;
      always_comb begin
        for (int p = 0; p < ReadPorts; p++) begin
          read_row[p] = RowBits'((units2narrow_read_address[p] + AddressBits'(3 - b)) >> 2);
        end
        for (int p = 0; p < WritePorts; p++) begin
          logic [1:0] place;
          place = 2'(b) - units2narrow_write_address[p][1:0];
          write_row[p] = RowBits'((units2narrow_write_address[p] + AddressBits'(3 - b)) >> 2);
          write_data[p] = units2narrow_write_data[p][{place, 3'b0}+:8];
        end
      end

      memory_bank #(
          .Words(Rows),
          .LaneBits(8),
          .ReadPorts(ReadPorts),
          .WritePorts(WritePorts),
          .Ratio(ClockRatio)
      ) bank (
          .clk,
          .clk_memory,
          .rst_n,
          .units2bank_read_address (read_row),
          .bank2units_read_data    (read[b]),
          .units2bank_write_valid  (units2narrow_write_valid),
          .units2bank_write_address(write_row),
          .units2bank_write_data   (write_data)
      );
    end

    always_comb begin
      for (int p = 0; p < ReadPorts; p++) begin
        for (int k = 0; k < 4; k++) begin
          narrow2units_read_data[p][8*k+:8] = read[units2narrow_read_address[p][1:0]+2'(k)][p];
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
