// Control and status registers: gives the block that is generated from the register table plain
// ports, and the registers of the instruction queue and of the units the little behaviour they have.

module registers
  import dma_pkg::*;
#(
    parameter int PageTableEntries = 8192
) (
    input logic clk,
    input logic rst_n,

    axi_read.target  s_axil_read,
    axi_write.target s_axil_write,

    output logic               pause,
    input  logic               paused,
    output logic        [63:0] burst_limiter,
    output logic        [63:0] window_base,
    output logic        [63:0] window_size,
    input  dma_errors_t        errors,
    input  logic        [63:0] fault_address,
    input  logic        [31:0] error_descriptor,
    input  logic        [31:0] completed,
    input  logic               chunk_fetched,
    input  logic               chunk_done,

    output queue_settings_t        queue_settings,
    input  logic                   queue_enabled,
    input  queue_errors_t          queue_errors,
    input  logic            [63:0] queue_fault_address,
    output logic            [63:0] completed_head,
    input  logic            [12:0] queue2table_entry,
    output logic            [63:0] table2queue_entry,

    input  logic [3:0]       set_host,
    input  logic             set_instruction_queue,
    input  logic             set_fatal_error,
    input  logic [3:0][15:0] counts,
    output logic [3:0]       host_status,
    output logic [3:0]       host_control,
    output logic             instruction_queue_status,
    output logic             instruction_queue_control,
    output logic             fatal_error_status,
    output logic             fatal_error_control
);

  localparam int EntryBits = $clog2(PageTableEntries);
  localparam logic [1:0] CommandRun = 2'd1;
  localparam logic [1:0] CommandHalt = 2'd2;

  darwinn_registers_pkg::darwinn_registers__in_t  hwif_in;
  darwinn_registers_pkg::darwinn_registers__out_t hwif_out;

  darwinn_registers block (
      .clk,
      .rst_n,
      .s_axil_read,
      .s_axil_write,
      .hwif_in,
      .hwif_out
  );
  assign s_axil_read.rid = '0;
  assign s_axil_read.rlast = 1'b1;
  assign s_axil_write.bid = '0;

  // The DMA engine.
  assign pause = hwif_out.dma_pause.pause.value;
  assign burst_limiter = hwif_out.dma_burst_limiter.value.value;
  assign window_base = hwif_out.harness_window_base.value.value;
  assign window_size = hwif_out.harness_window_size.value.value;
  assign hwif_in.dma_paused.paused.next = paused;

  logic fault, queue_fault;
  logic [63:0] last_fault_address;
  logic [31:0] last_error_descriptor;
  assign fault = errors.inbound_fault || errors.extended_fault;
  assign queue_fault = queue_errors.inbound_fault || queue_errors.extended_fault;
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      last_fault_address <= '0;
      last_error_descriptor <= '0;
    end else begin
      if (fault) last_fault_address <= fault_address;
      else if (queue_fault) last_fault_address <= queue_fault_address;
      if (errors != '0) last_error_descriptor <= error_descriptor;
    end
  end
  assign hwif_in.page_fault_address.value.next = last_fault_address;
  assign hwif_in.harness_dma_error_descriptor.value.next = 64'(last_error_descriptor);
  assign hwif_in.harness_dma_completed.value.next = 64'(completed);
  assign hwif_in.harness_dma_error.malformed_descriptor.hwset = errors.malformed;
  assign hwif_in.harness_dma_error.read_response.hwset =
      errors.read_response || queue_errors.read_response;
  assign hwif_in.harness_dma_error.write_response.hwset =
      errors.write_response || queue_errors.write_response;

  // The first error stays until it is cleared.
  logic no_first_error;
  assign no_first_error = !(hwif_out.hib_first_error_status.inbound_page_fault.value ||
         hwif_out.hib_first_error_status.extended_page_fault.value ||
         hwif_out.hib_first_error_status.instruction_queue_bad_configuration.value ||
         hwif_out.hib_first_error_status.instruction_queue_invalid.value ||
         hwif_out.hib_first_error_status.length_0_dma.value);

  logic inbound_fault, extended_fault, length_0;
  assign inbound_fault = errors.inbound_fault || queue_errors.inbound_fault;
  assign extended_fault = errors.extended_fault || queue_errors.extended_fault;
  assign length_0 = errors.length_0 || queue_errors.length_0;
  assign hwif_in.hib_error_status.inbound_page_fault.hwset = inbound_fault;
  assign hwif_in.hib_error_status.extended_page_fault.hwset = extended_fault;
  assign hwif_in.hib_error_status.length_0_dma.hwset = length_0;
  assign hwif_in.hib_error_status.instruction_queue_bad_configuration.hwset =
      queue_errors.bad_configuration;
  assign hwif_in.hib_error_status.instruction_queue_invalid.hwset = queue_errors.invalid;
  assign hwif_in.hib_first_error_status.inbound_page_fault.hwset = inbound_fault && no_first_error;
  assign hwif_in.hib_first_error_status.extended_page_fault.hwset = extended_fault && no_first_error;
  assign hwif_in.hib_first_error_status.length_0_dma.hwset = length_0 && no_first_error;
  assign hwif_in.hib_first_error_status.instruction_queue_bad_configuration.hwset =
      queue_errors.bad_configuration && no_first_error;
  assign hwif_in.hib_first_error_status.instruction_queue_invalid.hwset =
      queue_errors.invalid && no_first_error;

  // The chip's other queues are not used.
  assign hwif_in.hib_error_status.input_queue_bad_configuration.hwset = 1'b0;
  assign hwif_in.hib_error_status.parameter_queue_bad_configuration.hwset = 1'b0;
  assign hwif_in.hib_error_status.output_queue_bad_configuration.hwset = 1'b0;
  assign hwif_in.hib_error_status.input_queue_invalid.hwset = 1'b0;
  assign hwif_in.hib_error_status.parameter_queue_invalid.hwset = 1'b0;
  assign hwif_in.hib_error_status.output_queue_invalid.hwset = 1'b0;
  assign hwif_in.hib_first_error_status.input_queue_bad_configuration.hwset = 1'b0;
  assign hwif_in.hib_first_error_status.parameter_queue_bad_configuration.hwset = 1'b0;
  assign hwif_in.hib_first_error_status.output_queue_bad_configuration.hwset = 1'b0;
  assign hwif_in.hib_first_error_status.input_queue_invalid.hwset = 1'b0;
  assign hwif_in.hib_first_error_status.parameter_queue_invalid.hwset = 1'b0;
  assign hwif_in.hib_first_error_status.output_queue_invalid.hwset = 1'b0;

  // Interrupts.
  assign host_status = {
    hwif_out.sc_host_int_status.interrupt_3.value,
    hwif_out.sc_host_int_status.interrupt_2.value,
    hwif_out.sc_host_int_status.interrupt_1.value,
    hwif_out.sc_host_int_status.interrupt_0.value
  };
  assign host_control = {
    hwif_out.sc_host_int_control.interrupt_3.value,
    hwif_out.sc_host_int_control.interrupt_2.value,
    hwif_out.sc_host_int_control.interrupt_1.value,
    hwif_out.sc_host_int_control.interrupt_0.value
  };
  assign hwif_in.sc_host_int_status.interrupt_0.hwset = set_host[0];
  assign hwif_in.sc_host_int_status.interrupt_1.hwset = set_host[1];
  assign hwif_in.sc_host_int_status.interrupt_2.hwset = set_host[2];
  assign hwif_in.sc_host_int_status.interrupt_3.hwset = set_host[3];
  assign hwif_in.sc_host_int_count.count_0.next = counts[0];
  assign hwif_in.sc_host_int_count.count_1.next = counts[1];
  assign hwif_in.sc_host_int_count.count_2.next = counts[2];
  assign hwif_in.sc_host_int_count.count_3.next = counts[3];
  assign instruction_queue_status = hwif_out.instruction_queue_int_status.pending.value;
  assign instruction_queue_control = hwif_out.instruction_queue_int_control.enable.value;
  assign hwif_in.instruction_queue_int_status.pending.hwset = set_instruction_queue;
  assign fatal_error_status = hwif_out.fatal_err_int_status.pending.value;
  assign fatal_error_control = hwif_out.fatal_err_int_control.enable.value;
  assign hwif_in.fatal_err_int_status.pending.hwset = set_fatal_error;

  // Nothing in the harness measures temperature, tests memories or watches the PCIe link.
  assign hwif_in.top_level_int_status.thermal_shutdown.hwset = 1'b0;
  assign hwif_in.top_level_int_status.pcie_error.hwset = 1'b0;
  assign hwif_in.top_level_int_status.memory_test.hwset = 1'b0;
  assign hwif_in.top_level_int_status.thermal_warning.hwset = 1'b0;

  // The instruction queue: the heads follow the descriptors of tag 0.
  logic [63:0] fetched_head;

  function automatic logic [63:0] after(input logic [63:0] head, input logic [63:0] size);
    return (head + 1 >= size) ? '0 : head + 1;
  endfunction

  always_ff @(posedge clk) begin
    if (!rst_n || !queue_enabled) begin
      fetched_head   <= '0;
      completed_head <= '0;
    end else begin
      if (chunk_fetched) begin
        fetched_head <= after(fetched_head, hwif_out.instruction_queue_size.value.value);
      end
      if (chunk_done) begin
        completed_head <= after(completed_head, hwif_out.instruction_queue_size.value.value);
      end
    end
  end
  assign hwif_in.instruction_queue_status.enabled.next = queue_enabled;
  assign hwif_in.instruction_queue_fetched_head.value.next = fetched_head;
  assign hwif_in.instruction_queue_completed_head.value.next = completed_head;

  assign queue_settings = '{
          enable: hwif_out.instruction_queue_control.enable.value,
          status_block: hwif_out.instruction_queue_control.status_block_enable.value,
          runs: hwif_out.scalar_core_run_control.command.value == CommandRun,
          base: hwif_out.instruction_queue_base.value.value,
          status_base: hwif_out.instruction_queue_status_block_base.value.value,
          size: hwif_out.instruction_queue_size.value.value,
          tail: hwif_out.instruction_queue_tail.value.value,
          simple_entries: hwif_out.extended_table.value.value,
          window_base: window_base,
          window_size: window_size
      };

  // Run status that a unit reaches at each run-control command.
  function automatic logic [2:0] state(input logic [1:0] command);
    case (command)
      CommandRun: return 3'd1;
      CommandHalt: return 3'd4;
      default: return 3'd0;
    endcase
  endfunction
  assign hwif_in.scalar_core_run_status.state.next = state(
      hwif_out.scalar_core_run_control.command.value
  );
  assign hwif_in.av_data_pop_run_status.state.next = state(
      hwif_out.av_data_pop_run_control.command.value
  );
  assign hwif_in.parameter_pop_run_status.state.next = state(
      hwif_out.parameter_pop_run_control.command.value
  );
  assign hwif_in.infeed_run_status.state.next = state(hwif_out.infeed_run_control.command.value);
  assign hwif_in.outfeed_run_status.state.next = state(hwif_out.outfeed_run_control.command.value);

  // The page table serves the instruction queue; for descriptors the harness's window takes the place
  // of translation.
  logic [63:0] page_table[PageTableEntries];
  logic [EntryBits-1:0] entry;
  logic [63:0] entry_read;
  logic read_done;
  logic write_done;
  assign entry = EntryBits'(hwif_out.page_table.addr[15:3]);
  assign hwif_in.page_table.rd_data = entry_read;
  assign hwif_in.page_table.rd_ack = read_done;
  assign hwif_in.page_table.wr_ack = write_done;
  always_ff @(posedge clk) begin
    if (hwif_out.page_table.req && hwif_out.page_table.req_is_wr) begin
      page_table[entry] <= (page_table[entry] & ~hwif_out.page_table.wr_biten) |
          (hwif_out.page_table.wr_data & hwif_out.page_table.wr_biten);
    end
    entry_read <= page_table[entry];
    table2queue_entry <= page_table[EntryBits'(queue2table_entry)];
    read_done <= rst_n && hwif_out.page_table.req && !hwif_out.page_table.req_is_wr;
    write_done <= rst_n && hwif_out.page_table.req && hwif_out.page_table.req_is_wr;
  end

endmodule : registers
