// Buffer between PopInput and RingInfeed: units of the host's activations or parameters.
// It is read combinationally; a unit that is written can be read in the next cycle.

module input_buffer #(
    parameter int UnitBytes = chip_pkg::ActivationUnitBytes,
    parameter int Units = chip_pkg::ActivationUnits,
    localparam int AddressBits = $clog2(Units)
) (
    input logic clk,

    input logic                   input2buffer_write_valid,
    input logic [AddressBits-1:0] input2buffer_write_address,
    input logic [8*UnitBytes-1:0] input2buffer_write_data,

    input  logic [AddressBits-1:0] infeed2buffer_read_address,
    output logic [8*UnitBytes-1:0] buffer2infeed_read_data
);

  logic [8*UnitBytes-1:0] entries[Units]  /* verilator public_flat_rd */;

  assign buffer2infeed_read_data = entries[infeed2buffer_read_address];

  always_ff @(posedge clk) begin
    if (input2buffer_write_valid) entries[input2buffer_write_address] <= input2buffer_write_data;
  end

endmodule : input_buffer
