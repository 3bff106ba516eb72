// interrupts: what sets which bit, what each interrupt counts, and which lines are up. Of the host's
// interrupts one is followed, any one.

module interrupts_proof
  import dma_pkg::*;
(
    input logic clk,
    input logic rst_n,
    input logic raise_valid,
    input logic [1:0] raise_number,
    input logic chunk_told,
    input dma_errors_t errors,
    input queue_errors_t queue_errors,
    input logic [3:0] host_status,
    input logic [3:0] host_control,
    input logic instruction_queue_status,
    input logic instruction_queue_control,
    input logic fatal_error_status,
    input logic fatal_error_control,
    input logic [1:0] any_number
);

  logic [3:0] set_host;
  logic set_instruction_queue, set_fatal_error;
  logic [3:0][15:0] counts;
  logic [5:0] dma2host_interrupt;
  interrupts controller (.*);
  resets_first resets (.*);

  logic [ 1:0] number;
  logic [15:0] count;
  logic raised, error;
  assign raised = raise_valid && raise_number == number;
  assign error  = (|errors) || (|queue_errors);
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      number <= any_number;
      count  <= '0;
    end else begin
      count <= count + 16'(raised);
    end
  end

  always_ff @(posedge clk) begin
    if (rst_n) begin
      assert_counts : assert (counts[number] == count);
      assert_sets : assert (set_host[number] == raised);
      assert_tells : assert (set_instruction_queue == chunk_told && set_fatal_error == error);
      assert_host_line :
      assert (dma2host_interrupt[number] == (host_status[number] && host_control[number]));
      assert_other_lines :
      assert (dma2host_interrupt[5:4] == {fatal_error_status && fatal_error_control,
              instruction_queue_status && instruction_queue_control});
      cover_counts : cover (count == 16'd3 && dma2host_interrupt[number]);
      cover_all_at_once : cover (raised && chunk_told && errors != '0 && queue_errors != '0);
    end
  end

endmodule : interrupts_proof
