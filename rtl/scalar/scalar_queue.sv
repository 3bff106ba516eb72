// Instructions that wait before a unit of the scalar core; the first is the one that is executed.
// `start` is 1 in the first cycle of an instruction, and `done` ends it and brings the next.

module scalar_queue #(
    parameter int Width = 128
) (
    input logic clk,
    input logic rst_n,

    input  logic             push_valid,
    output logic             push_ready,
    input  logic [Width-1:0] push_data,

    output logic             valid,
    output logic [Width-1:0] data,
    output logic             start,
    input  logic             done
);

  logic running;
  assign start = valid && !running;

  instruction_queue #(
      .Bits (Width),
      .Depth(scalar_pkg::UnitQueue)
  ) waiting (
      .clk,
      .rst_n,
      .in_valid (push_valid),
      .in_ready (push_ready),
      .in_data  (push_data),
      .out_valid(valid),
      .out_ready(done),
      .out_data (data)
  );

  always_ff @(posedge clk) begin
    if (!rst_n) running <= 1'b0;
    else running <= start || (running && !done);
  end

`ifndef SYNTHESIS
  assert_done_only_when_running :
  assert property (@(posedge clk) disable iff (!rst_n) done |-> running)
  else $error("a unit ends an instruction that it does not execute");
`endif

endmodule : scalar_queue
