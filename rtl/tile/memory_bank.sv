// Bank of a memory with many ports, in block RAM that reads one word and writes one in a cycle of
// clk_memory. Ratio of these make a cycle of clk, with their edges together, and serve a port each: in
// clk a read takes no cycle, a write is seen in the next, and of two writes the higher port wins.

module memory_bank #(
    parameter int Words = 4096,
    parameter int Lanes = 1,  // of a word, each written or not
    parameter int LaneBits = 32,
    parameter int ReadPorts = 6,
    parameter int WritePorts = 6,
    parameter int Ratio = ReadPorts + 1,
    localparam int AddressBits = $clog2(Words)
) (
    input logic clk,
    input logic clk_memory,
    input logic rst_n,  // while it is 0 nothing is written

    // Addresses stand one cycle of clk_memory behind the edge of clk, words in the last one before it.
    input  logic [ReadPorts-1:0][AddressBits-1:0]               units2bank_read_address,
    output logic [ReadPorts-1:0][      Lanes-1:0][LaneBits-1:0] bank2units_read_data,

    input logic [WritePorts-1:0][      Lanes-1:0]               units2bank_write_valid,
    input logic [WritePorts-1:0][AddressBits-1:0]               units2bank_write_address,
    input logic [WritePorts-1:0][      Lanes-1:0][LaneBits-1:0] units2bank_write_data
);

  localparam int PhaseBits = $clog2(Ratio);

  if (Ratio <= ReadPorts || Ratio <= WritePorts) begin : gen_too_few
    $fatal(1, "clk_memory has too few cycles in one of clk for the ports");
  end

  // Cycles of clk_memory since the edge of clk.
  logic resetting;
  logic [PhaseBits-1:0] phase;
  always_ff @(posedge clk) resetting <= !rst_n;
  always_ff @(posedge clk_memory) begin
    if (resetting || phase == PhaseBits'(Ratio - 1)) phase <= '0;
    else phase <= phase + 1'b1;
  end

  // Writes of the last cycle of clk; each goes to block RAM in the phase of its port.
  logic [WritePorts-1:0][Lanes-1:0] pending;
  logic [WritePorts-1:0][AddressBits-1:0] address;
  logic [WritePorts-1:0][Lanes-1:0][LaneBits-1:0] data;
  always_ff @(posedge clk) begin
    pending <= rst_n ? units2bank_write_valid : '0;
    for (int p = 0; p < WritePorts; p++) begin
      if (units2bank_write_valid[p] != '0) begin
        address[p] <= units2bank_write_address[p];
        data[p] <= units2bank_write_data[p];
      end
    end
  end

  // The port whose turn it is.
  logic reads;
  logic [Lanes-1:0] writes;
  logic [AddressBits-1:0] read_address, write_address;
  logic [Lanes-1:0][LaneBits-1:0] write_data;
  always_comb begin
    reads = 1'b0;
    read_address = units2bank_read_address[0];
    for (int p = 0; p < ReadPorts; p++) begin
      if (phase == PhaseBits'(p)) begin
        reads = 1'b1;
        read_address = units2bank_read_address[p];
      end
    end
    writes = '0;
    write_address = address[0];
    write_data = data[0];
    for (int p = 0; p < WritePorts; p++) begin
      if (phase == PhaseBits'(p)) begin
        writes = pending[p];
        write_address = address[p];
        write_data = data[p];
      end
    end
  end

  // Block RAM. What it gives where it is written just then does not count: the write is pending still.
  logic [Lanes-1:0][LaneBits-1:0] words[Words]  /* verilator public_flat_rd */;
  logic [Lanes-1:0][LaneBits-1:0] word;
  logic [AddressBits-1:0] word_address;
  always_ff @(posedge clk_memory) begin
    for (int k = 0; k < Lanes; k++) begin
      if (writes[k]) words[write_address][k] <= write_data[k];
    end
    if (reads) begin
      word <= words[read_address];
      word_address <= read_address;
    end
  end

  // A pending write goes before what block RAM holds. The last port's word stays at the exit.
  logic [Lanes-1:0][LaneBits-1:0] found;
  always_comb begin
    found = word;
    for (int p = 0; p < WritePorts; p++) begin
      if (address[p] == word_address) begin
        for (int k = 0; k < Lanes; k++) if (pending[p][k]) found[k] = data[p][k];
      end
    end
  end

  logic [ReadPorts-2:0][Lanes-1:0][LaneBits-1:0] held;
  always_ff @(posedge clk_memory) begin
    for (int p = 0; p < ReadPorts - 1; p++) begin
      if (phase == PhaseBits'(p + 1)) held[p] <= found;
    end
  end
  assign bank2units_read_data = {found, held};

endmodule : memory_bank
