// Interrupts of the host interface: turns events of the DMA engine into bits of the status registers
// and counts, and shows the host what is both pending and enabled. Facts: docs/host-interface.md.

module interrupts
  import dma_pkg::*;
(
    input logic clk,
    input logic rst_n,

    input logic                raise_valid,
    input logic          [1:0] raise_number,
    input logic                chunk_told,
    input dma_errors_t         errors,
    input queue_errors_t       queue_errors,

    // What to set in the status registers at this clock edge.
    output logic [3:0]       set_host,
    output logic             set_instruction_queue,
    output logic             set_fatal_error,
    output logic [3:0][15:0] counts,

    input  logic [3:0] host_status,
    input  logic [3:0] host_control,
    input  logic       instruction_queue_status,
    input  logic       instruction_queue_control,
    input  logic       fatal_error_status,
    input  logic       fatal_error_control,
    output logic [5:0] dma2host_interrupt          // host 0 to 3, instruction queue, fatal error
);

  assign set_host = raise_valid ? 4'b0001 << raise_number : '0;
  assign set_instruction_queue = chunk_told;
  assign set_fatal_error = errors != '0 || queue_errors != '0;

  // A masked interrupt counts as well.
  always_ff @(posedge clk) begin
    if (!rst_n) counts <= '0;
    else if (raise_valid) begin
      counts[raise_number] <= counts[raise_number] + 16'd1;
    end
  end

  assign dma2host_interrupt = {
    fatal_error_status && fatal_error_control,
    instruction_queue_status && instruction_queue_control,
    host_status & host_control
  };

`ifndef SYNTHESIS
  assert_status_follows_event :
  assert property (@(posedge clk) disable iff (!rst_n) raise_valid |=> host_status[$past(
      raise_number
  )])
  else $error("a host interrupt was lost");
  assert_queue_status_follows :
  assert property (@(posedge clk) disable iff (!rst_n) chunk_told |=> instruction_queue_status)
  else $error("an interrupt of the instruction queue was lost");
  assert_fatal_error_follows :
  assert property (@(posedge clk) disable iff (!rst_n)
      errors != '0 || queue_errors != '0 |=> fatal_error_status)
  else $error("an error was not reported");
`endif

endmodule : interrupts
