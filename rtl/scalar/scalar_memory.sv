// Scalar memory as the units see it: the outfeed writes it and the infeed reads it, a word a cycle.
// The scalar core's own loads and stores are the driver's, which reaches the words from outside.

module scalar_memory
  import scalar_pkg::*;
(
    input logic clk,

    input logic                  outfeed2memory_write_valid,
    input logic [MemoryBits-1:0] outfeed2memory_write_address,
    input logic [          31:0] outfeed2memory_write_data,

    input  logic [MemoryBits-1:0] infeed2memory_read_address,
    output logic [          31:0] memory2infeed_read_data
);

  logic [31:0] words[MemoryWords]  /* verilator public_flat_rd */;

  assign memory2infeed_read_data = words[infeed2memory_read_address];

  always_ff @(posedge clk) begin
    if (outfeed2memory_write_valid) begin
      words[outfeed2memory_write_address] <= outfeed2memory_write_data;
    end
  end

endmodule : scalar_memory
