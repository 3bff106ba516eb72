// Output bytes on their way to the DMA engine: units of the outfeed, and words that the scalar core
// pushes itself. It follows them through the bus to tell when all have been written.

module host_output #(
    parameter  int DataBytes = harness_pkg::DataBytes,
    localparam int CountBits = $clog2(DataBytes + 1)
) (
    input logic clk,
    input logic rst_n,

    input  logic        outfeed2output_unit_valid,
    output logic        outfeed2output_unit_ready,
    input  logic [63:0] outfeed2output_unit_data,

    input  logic        core2output_word_valid,
    output logic        core2output_word_ready,
    input  logic [31:0] core2output_word_data,

    output logic                   output2dma_byte_valid,
    input  logic                   output2dma_byte_ready,
    output logic [8*DataBytes-1:0] output2dma_byte_data,
    output logic [  CountBits-1:0] output2dma_byte_count,

    // Words and answers on the write side of the bus.
    input logic                 bus2output_word_valid,
    input logic [DataBytes-1:0] bus2output_word_strobes,
    input logic                 bus2output_word_last,
    input logic                 bus2output_answer_valid,

    output logic output2core_idle
);

  localparam int UnitBytes = 8;
  localparam int Capacity = 4 * ((DataBytes > UnitBytes) ? DataBytes : UnitBytes);
  localparam int LevelBits = $clog2(Capacity) + 1;

  logic in_ready;
  logic [LevelBits-1:0] level;
  logic [8*DataBytes-1:0] window;
  logic [CountBits-1:0] available, take;
  assign core2output_word_ready = in_ready;
  assign outfeed2output_unit_ready = in_ready && !core2output_word_valid;
  byte_fifo #(
      .InBytes (UnitBytes),
      .OutBytes(DataBytes),
      .Capacity(Capacity)
  ) waiting (
      .clk,
      .rst_n,
      .in_valid(outfeed2output_unit_valid || core2output_word_valid),
      .in_ready,
      .in_data (core2output_word_valid ? {32'd0, core2output_word_data} : outfeed2output_unit_data),
      .in_count(core2output_word_valid ? 4'd4 : 4'd8),
      .level,
      .window,
      .take
  );

  // A beat stays as it is until it is taken, whatever comes behind it.
  logic moves;
  assign available = (level < LevelBits'(DataBytes)) ? CountBits'(level) : CountBits'(DataBytes);
  assign moves = !output2dma_byte_valid || output2dma_byte_ready;
  assign take = moves ? available : '0;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      output2dma_byte_valid <= 1'b0;
    end else if (moves) begin
      output2dma_byte_valid <= available != '0;
      output2dma_byte_count <= available;
      for (int i = 0; i < DataBytes; i++) begin
        output2dma_byte_data[8*i+:8] <= (CountBits'(i) < available) ? window[8*i+:8] : 8'd0;
      end
    end
  end

  // Bytes that the DMA engine holds, and bursts without an answer.
  logic [31:0] held;
  logic [15:0] unanswered;
  logic [31:0] given, written;
  assign given = (output2dma_byte_valid && output2dma_byte_ready) ? 32'(output2dma_byte_count) : '0;
  assign written = bus2output_word_valid ? 32'($countones(bus2output_word_strobes)) : '0;
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      held <= '0;
      unanswered <= '0;
    end else begin
      held <= held + given - written;
      unanswered <= unanswered + 16'(bus2output_word_valid && bus2output_word_last) -
          16'(bus2output_answer_valid);
    end
  end
  assign output2core_idle = level == '0 && !output2dma_byte_valid && held == '0 && unanswered == '0;

endmodule : host_output
