// memory_bank: to the slow clock it is an array. Every edge of the slow clock is one of clk, which is
// the bank's clk_memory: `slow` says which (tests/formal/yosys.py).

module memory_bank_proof #(
    parameter int Words = 4,
    parameter int Lanes = 2,
    parameter int ReadPorts = 2,
    parameter int WritePorts = 3,
    parameter int Ratio = 4,
    localparam int AddressBits = $clog2(Words)
) (
    input logic                                        clk,
    input logic                                        slow,
    input logic                                        rst_n,
    input logic [ ReadPorts-1:0][AddressBits-1:0]      units2bank_read_address,
    input logic [WritePorts-1:0][      Lanes-1:0]      units2bank_write_valid,
    input logic [WritePorts-1:0][AddressBits-1:0]      units2bank_write_address,
    input logic [WritePorts-1:0][      Lanes-1:0][0:0] units2bank_write_data
);

  logic [ReadPorts-1:0][Lanes-1:0][0:0] bank2units_read_data;
  memory_bank #(
      .Words(Words),
      .Lanes(Lanes),
      .LaneBits(1),
      .ReadPorts(ReadPorts),
      .WritePorts(WritePorts),
      .Ratio(Ratio)
  ) bank (
      .*,
      .clk(slow),
      .clk_memory(clk)
  );

  two_clocks #(
      .Ratio(Ratio),
      .Held (ReadPorts * AddressBits)
  ) clocks (
      .clk,
      .slow,
      .held(units2bank_read_address)
  );
  int since;
  assign since = clocks.since;

  // The array, from the first edge in reset on: it begins with what is in block RAM then.
  logic began = 1'b0;
  logic [Words-1:0][Lanes-1:0][0:0] cells;
  always_ff @(posedge clk) begin
    if (slow && !rst_n) began <= 1'b1;
    if (slow && !rst_n && !began) begin
      for (int a = 0; a < Words; a++) begin
        for (int k = 0; k < Lanes; k++) begin
          cells[a][k] <= (bank.writes[k] && int'(bank.write_address) == a) ?
              bank.write_data[k] : bank.words[a][k];
        end
      end
    end else if (slow && rst_n) begin
      for (int p = 0; p < WritePorts; p++) begin
        for (int k = 0; k < Lanes; k++) begin
          if (units2bank_write_valid[p][k]) begin
            cells[units2bank_write_address[p]][k] <= units2bank_write_data[p][k];
          end
        end
      end
    end
  end

  // What a word is when the pending writes from a port on have been made.
  function automatic logic [Lanes-1:0][0:0] then_written(
      input logic [Lanes-1:0][0:0] word, input logic [AddressBits-1:0] address, input int first);
    then_written = word;
    for (int p = 0; p < WritePorts; p++) begin
      for (int k = 0; k < Lanes; k++) begin
        if (p >= first && bank.pending[p][k] && bank.address[p] == address) begin
          then_written[k] = bank.data[p][k];
        end
      end
    end
  endfunction

  // Of each port and word what is to be, and of those that have had their turn what is.
  logic read, written, once_more, left, held, at_the_exit;
  always_comb begin
    read = 1'b1;
    written = 1'b1;
    once_more = 1'b1;
    left = 1'b1;
    held = 1'b1;
    for (int p = 0; p < ReadPorts; p++) begin
      if (bank2units_read_data[p] != cells[units2bank_read_address[p]]) read = 1'b0;
      if (p < ReadPorts - 1 && p + 2 <= since &&
          bank.held[p] != cells[units2bank_read_address[p]]) begin
        held = 1'b0;
      end
    end
    for (int a = 0; a < Words; a++) begin
      if (bank.words[a] != cells[a]) written = 1'b0;
      if (then_written(bank.words[a], AddressBits'(a), 0) != cells[a]) once_more = 1'b0;
      if (then_written(bank.words[a], AddressBits'(a), since) != cells[a]) left = 1'b0;
    end
    at_the_exit = since == 0 || (bank.found == cells[bank.word_address] &&
        bank.word_address == units2bank_read_address[since<ReadPorts?since-1 : ReadPorts-1]);
  end

  always_ff @(posedge clk) begin
    if (began && !bank.resetting) begin
      assert_reads_as_an_array : assert (!slow || read);
      assert_writes_as_an_array : assert (!slow || written);
      lemma_phase : assert (int'(bank.phase) == since);
      lemma_once_more : assert (once_more);
      lemma_left : assert (left);
      lemma_held : assert (held);
      lemma_at_the_exit : assert (at_the_exit);
      cover_forwards : cover (since != 0 && bank.found != bank.word);
      cover_two_write :
      cover (since == 0 && bank.pending[0] != '0 && bank.pending[WritePorts-1] != '0 &&
             bank.address[0] == bank.address[WritePorts-1]);
    end else if (began) begin
      lemma_reset : assert (bank.pending == '0 && written);
    end
  end

endmodule : memory_bank_proof
