// The host's side of the chip: registers, instruction queue, DMA engine and interrupts, with host
// memory behind an AXI4 port.

module host_interface
  import dma_pkg::*;
#(
    parameter int DataBytes = harness_pkg::DataBytes,
    parameter int MaxBurst = harness_pkg::BurstWords,
    parameter int BufferBeats = harness_pkg::BufferWords,
    parameter int FifoDepth = harness_pkg::FifoDepth,
    parameter int QueueDepth = harness_pkg::QueueDepth,
    parameter int OutstandingReads = harness_pkg::OutstandingReads,
    parameter int OutstandingWrites = harness_pkg::OutstandingWrites,
    localparam int CountBits = $clog2(DataBytes + 1)
) (
    input logic clk,
    input logic rst_n,

    // Registers, for the host: bursts of one whole word and one identifier.
    axi_read.target s_axil_read,
    axi_write.target s_axil_write,
    output logic [5:0] dma2host_interrupt,

    // The scalar core.
    input  logic               core2dma_descriptor_valid,
    output logic               core2dma_descriptor_ready,
    input  descriptor_t        core2dma_descriptor_data,
    output logic               queue2core_chunk_waits,
    input  logic               core2queue_chunk_valid,
    output logic               core2queue_chunk_ready,
    output logic        [31:0] queue2core_chunk_size,

    // Byte streams.
    output logic                   dma2core_instruction_valid,
    input  logic                   dma2core_instruction_ready,
    output logic [8*DataBytes-1:0] dma2core_instruction_data,
    output logic [  CountBits-1:0] dma2core_instruction_count,
    output logic                   dma2input_activation_valid,
    input  logic                   dma2input_activation_ready,
    output logic [8*DataBytes-1:0] dma2input_activation_data,
    output logic [  CountBits-1:0] dma2input_activation_count,
    output logic                   dma2input_parameter_valid,
    input  logic                   dma2input_parameter_ready,
    output logic [8*DataBytes-1:0] dma2input_parameter_data,
    output logic [  CountBits-1:0] dma2input_parameter_count,
    input  logic                   outfeed2dma_output_valid,
    output logic                   outfeed2dma_output_ready,
    input  logic [8*DataBytes-1:0] outfeed2dma_output_data,
    input  logic [  CountBits-1:0] outfeed2dma_output_count,

    // Words of outputs on the bus, and answers to them.
    output logic                 bus2output_word_valid,
    output logic [DataBytes-1:0] bus2output_word_strobes,
    output logic                 bus2output_word_last,
    output logic                 bus2output_answer_valid,

    // What the monitors watch.
    output logic                         dma2monitor_start_valid,
    output logic     [             31:0] dma2monitor_start_index,
    output outcome_e                     dma2monitor_start_outcome,
    output logic     [   DoneEvents-1:0] dma2monitor_done_valid,
    output logic     [32*DoneEvents-1:0] dma2monitor_done_index,
    output logic                         dma2interrupts_raise_valid,
    output logic     [              1:0] dma2interrupts_raise_data,
    output logic                         queue2monitor_idle,

    // Host memory.
    axi_read.initiator  m_axi_read,
    axi_write.initiator m_axi_write
);

  logic pause;
  logic paused;
  logic [63:0] burst_limiter;
  logic [63:0] window_base;
  logic [63:0] window_size;
  dma_errors_t errors;
  logic [63:0] fault_address;
  logic [31:0] error_descriptor;
  logic [31:0] completed;
  logic chunk_fetched;
  logic chunk_done;
  logic chunk_told;
  queue_settings_t queue_settings;
  logic queue_enabled;
  queue_errors_t queue_errors;
  logic [63:0] queue_fault_address;
  logic [63:0] completed_head;
  logic [12:0] queue2table_entry;
  logic [63:0] table2queue_entry;
  logic [3:0] set_host;
  logic set_instruction_queue;
  logic set_fatal_error;
  logic [3:0][15:0] counts;
  logic [3:0] host_status;
  logic [3:0] host_control;
  logic instruction_queue_status;
  logic instruction_queue_control;
  logic fatal_error_status;
  logic fatal_error_control;

  registers register_block (.*);

  interrupts interrupt_controller (
      .clk,
      .rst_n,
      .raise_valid (dma2interrupts_raise_valid),
      .raise_number(dma2interrupts_raise_data),
      .chunk_told,
      .errors,
      .queue_errors,
      .set_host,
      .set_instruction_queue,
      .set_fatal_error,
      .counts,
      .host_status,
      .host_control,
      .instruction_queue_status,
      .instruction_queue_control,
      .fatal_error_status,
      .fatal_error_control,
      .dma2host_interrupt
  );

  // Chunks of the instruction queue are fetched by the DMA engine, when the scalar core asks.
  logic queue_busy;
  logic queue2dma_descriptor_valid;
  logic queue2dma_descriptor_ready;
  descriptor_t queue2dma_descriptor_data;
  logic descriptor_valid;
  logic descriptor_ready;
  descriptor_t descriptor;
  assign descriptor_valid = core2dma_descriptor_valid || queue2dma_descriptor_valid;
  assign descriptor = queue2dma_descriptor_valid ? queue2dma_descriptor_data : core2dma_descriptor_data;
  assign queue2dma_descriptor_ready = descriptor_ready;
  assign core2dma_descriptor_ready = descriptor_ready && !queue2dma_descriptor_valid;

  axi_read #(.DataBytes(DataBytes)) dma_read ();
  axi_write #(.DataBytes(DataBytes)) dma_write ();
  axi_read #(.DataBytes(DataBytes)) queue_read ();
  axi_write #(.DataBytes(DataBytes)) queue_write ();
  bus_share bus (.*);
  assign bus2output_word_valid = dma_write.wvalid && dma_write.wready;
  assign bus2output_word_strobes = dma_write.wstrb;
  assign bus2output_word_last = dma_write.wlast;
  assign bus2output_answer_valid = dma_write.bvalid && dma_write.bready;

  chunk_queue #(
      .DataBytes(DataBytes)
  ) instruction_queue (
      .clk,
      .rst_n,
      .settings(queue_settings),
      .pause,
      .busy(queue_busy),
      .idle(queue2monitor_idle),
      .enabled(queue_enabled),
      .errors(queue_errors),
      .fault_address(queue_fault_address),
      .completed_head,
      .queue2table_entry,
      .table2queue_entry,
      .queue2core_chunk_waits,
      .core2queue_chunk_valid,
      .core2queue_chunk_ready,
      .queue2core_chunk_size,
      .queue2dma_descriptor_valid,
      .queue2dma_descriptor_ready,
      .queue2dma_descriptor_data,
      .chunk_done,
      .chunk_told,
      .m_axi_read(queue_read),
      .m_axi_write(queue_write)
  );

  dma_engine #(
      .DataBytes(DataBytes),
      .MaxBurst(MaxBurst),
      .BufferBeats(BufferBeats),
      .FifoDepth(FifoDepth),
      .QueueDepth(QueueDepth),
      .OutstandingReads(OutstandingReads),
      .OutstandingWrites(OutstandingWrites)
  ) dma (
      .*,
      .core2dma_descriptor_valid(descriptor_valid),
      .core2dma_descriptor_ready(descriptor_ready),
      .core2dma_descriptor_data(descriptor),
      .queue_busy,
      .m_axi_read(dma_read),
      .m_axi_write(dma_write),
      .stream_valid({
        dma2input_parameter_valid, dma2input_activation_valid, dma2core_instruction_valid
      }),
      .stream_ready({
        dma2input_parameter_ready, dma2input_activation_ready, dma2core_instruction_ready
      }),
      .stream_data({
        dma2input_parameter_data, dma2input_activation_data, dma2core_instruction_data
      }),
      .stream_count({
        dma2input_parameter_count, dma2input_activation_count, dma2core_instruction_count
      }),
      .dma2interrupts_chunk_fetched(chunk_fetched),
      .dma2interrupts_chunk_done(chunk_done)
  );

  handshake_check #(
      .Width(101)
  ) check_descriptor (
      .clk,
      .rst_n,
      .valid  (core2dma_descriptor_valid),
      .ready  (core2dma_descriptor_ready),
      .payload(core2dma_descriptor_data)
  );

  // The two ports that share host memory's.
  axi_check #(
      .DataBytes(DataBytes),
      .MaxReads (OutstandingReads),
      .MaxWrites(OutstandingWrites)
  ) check_dma (
      .clk,
      .rst_n,
      .read (dma_read),
      .write(dma_write)
  );
  axi_check #(
      .DataBytes(DataBytes),
      .MaxReads (1),
      .MaxWrites(1)
  ) check_queue (
      .clk,
      .rst_n,
      .read (queue_read),
      .write(queue_write)
  );

endmodule : host_interface
