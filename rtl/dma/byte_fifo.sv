// Queue of bytes between beats of any count and a reader that takes as many bytes as it needs.
// The window shows the next bytes; only those below `level` mean anything.

module byte_fifo #(
    parameter int InBytes = 8,
    parameter int OutBytes = 8,
    parameter int Capacity = 256,  // a power of two
    localparam int LevelBits = $clog2(Capacity) + 1,
    localparam int InCountBits = $clog2(InBytes + 1),
    localparam int OutCountBits = $clog2(OutBytes + 1)
) (
    input logic clk,
    input logic rst_n,

    input  logic                   in_valid,
    output logic                   in_ready,
    input  logic [  8*InBytes-1:0] in_data,
    input  logic [InCountBits-1:0] in_count,

    output logic [   LevelBits-1:0] level,
    output logic [  8*OutBytes-1:0] window,
    input  logic [OutCountBits-1:0] take     // bytes that leave at this clock edge
);

  localparam int PointerBits = $clog2(Capacity);

  logic [7:0] bytes[Capacity];
  logic [PointerBits-1:0] head;
  logic [PointerBits-1:0] tail;
  logic [LevelBits-1:0] arriving;

  assign in_ready = level <= LevelBits'(Capacity - InBytes);
  assign arriving = (in_valid && in_ready) ? LevelBits'(in_count) : '0;

  always_comb begin
    for (int i = 0; i < OutBytes; i++) begin
      window[8*i+:8] = bytes[head+PointerBits'(i)];
    end
  end

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      head  <= '0;
      tail  <= '0;
      level <= '0;
    end else begin
      head  <= head + PointerBits'(take);
      tail  <= tail + PointerBits'(arriving);
      level <= level + arriving - LevelBits'(take);
    end
    for (int i = 0; i < InBytes; i++) begin
      if (LevelBits'(i) < arriving) bytes[tail+PointerBits'(i)] <= in_data[8*i+:8];
    end
  end

`ifndef SYNTHESIS
  assert_no_underflow :
  assert property (@(posedge clk) disable iff (!rst_n) LevelBits'(take) <= level)
  else $error("more bytes taken than there are");
  assert_no_overflow :
  assert property (@(posedge clk) disable iff (!rst_n) level <= LevelBits'(Capacity))
  else $error("more bytes than the queue holds");
  assert_count :
  assert property (@(posedge clk) disable iff (!rst_n)
      in_valid |-> in_count != '0 && in_count <= InCountBits'(InBytes))
  else $error("a beat without bytes, or with more than fit");
`endif

endmodule : byte_fifo
