// DMA engine: takes the scalar core's descriptors in order, refuses bad ones, holds back what is
// behind a fence, and hands the others to the read streams and to the writer.

module dma_engine
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

    // Settings and state, from and for the registers.
    input  logic               pause,
    output logic               paused,
    input  logic               queue_busy,        // the instruction queue is on the bus as well
    input  logic        [63:0] burst_limiter,
    input  logic        [63:0] window_base,
    input  logic        [63:0] window_size,
    output dma_errors_t        errors,
    output logic        [63:0] fault_address,     // with an inbound or extended fault
    output logic        [31:0] error_descriptor,
    output logic        [31:0] completed,

    input  logic        core2dma_descriptor_valid,
    output logic        core2dma_descriptor_ready,
    input  descriptor_t core2dma_descriptor_data,

    output logic [ReadStreams-1:0]                  stream_valid,
    input  logic [ReadStreams-1:0]                  stream_ready,
    output logic [ReadStreams-1:0][8*DataBytes-1:0] stream_data,
    output logic [ReadStreams-1:0][  CountBits-1:0] stream_count,

    input  logic                   outfeed2dma_output_valid,
    output logic                   outfeed2dma_output_ready,
    input  logic [8*DataBytes-1:0] outfeed2dma_output_data,
    input  logic [  CountBits-1:0] outfeed2dma_output_count,

    output logic       dma2interrupts_raise_valid,
    output logic [1:0] dma2interrupts_raise_data,
    output logic       dma2interrupts_chunk_fetched,
    output logic       dma2interrupts_chunk_done,

    output logic                            dma2monitor_start_valid,
    output logic     [          31:0]       dma2monitor_start_index,
    output outcome_e                        dma2monitor_start_outcome,
    output logic     [DoneEvents-1:0]       dma2monitor_done_valid,
    output logic     [DoneEvents-1:0][31:0] dma2monitor_done_index,

    axi_read.initiator  m_axi_read,
    axi_write.initiator m_axi_write
);

  localparam int BeatBits = $clog2(MaxBurst + 1);
  localparam int FenceEvent = DoneEvents - 1;
  localparam int WriterEvent = ReadStreams;

  logic [BeatBits-1:0] limit;
  assign limit = (burst_limiter == '0 || burst_limiter > 64'(MaxBurst)) ?
      BeatBits'(MaxBurst) : BeatBits'(burst_limiter);

  // The next descriptor, and what is wrong with it.
  logic head_valid;
  logic head_ready;
  descriptor_t head;
  descriptor_fifo #(
      .Width($bits(descriptor_t)),
      .Depth(FifoDepth)
  ) descriptors (
      .clk,
      .rst_n,
      .push_valid(core2dma_descriptor_valid),
      .push_ready(core2dma_descriptor_ready),
      .push_data (core2dma_descriptor_data),
      .pop_valid (head_valid),
      .pop_ready (head_ready),
      .pop_data  (head)
  );

  logic is_data;
  logic is_interrupt;
  logic has_range;
  logic [64:0] window_offset;
  logic outside;
  outcome_e outcome;

  assign is_data = !head.fence && head.tag < isa_pkg::DESCRIPTOR_TAG_INTERRUPT_0;
  assign is_interrupt = !head.fence && head.tag[3:2] == 2'b01;
  assign has_range = head.size != '0 || head.address != '0;
  assign window_offset = {1'b0, head.address} - {1'b0, window_base};
  assign outside = window_offset[64] ||
      window_offset + 65'(head.size) > {1'b0, window_size} ||
      window_offset + 65'(head.size) > 65'(1) << AddressBits;

  always_comb begin
    outcome = OutcomeStarted;
    if (!is_data) begin
      if (has_range || (head.fence ? head.tag != '0 : !is_interrupt)) outcome = OutcomeMalformed;
    end else if (head.size == '0) begin
      outcome = OutcomeLength0;
    end else if (outside) begin
      outcome = head.address[63] ? OutcomeExtendedFault : OutcomeInboundFault;
    end
  end

  // Where it goes, and when it may.
  logic good;
  logic drained;
  work_t work;
  logic [ReadStreams-1:0] read_valid;
  logic [ReadStreams-1:0] read_ready;
  logic write_valid;
  logic write_ready;
  logic [31:0] next_index;
  logic [31:0] pending;

  assign good = head_valid && !pause && outcome == OutcomeStarted;
  assign drained = pending == '0;
  assign work = '{
          index: next_index,
          is_interrupt: is_interrupt,
          number: head.tag[1:0],
          size: head.size,
          address: AddressBits'(window_offset)
      };

  always_comb begin
    for (int i = 0; i < ReadStreams; i++) begin
      read_valid[i] = good && is_data && head.tag == 4'(i);
    end
    write_valid = good && !head.fence && (head.tag == isa_pkg::DESCRIPTOR_TAG_OUTPUT || is_interrupt);
    if (outcome != OutcomeStarted) head_ready = !pause;
    else if (head.fence) head_ready = !pause && drained;
    else head_ready = (|(read_valid & read_ready)) || (write_valid && write_ready);
  end

  logic leaves;
  logic fence_passes;
  logic [31:0] done_now;
  assign leaves = head_valid && head_ready;
  assign fence_passes = leaves && head.fence && outcome == OutcomeStarted;
  assign done_now = 32'($countones(dma2monitor_done_valid));

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      next_index <= '0;
      pending <= '0;
      completed <= '0;
    end else begin
      if (leaves) next_index <= next_index + 1'b1;
      pending   <= pending + 32'(leaves && outcome == OutcomeStarted) - done_now;
      completed <= completed + done_now;
    end
  end

  logic [ReadStreams-1:0] read_done;
  logic [ReadStreams-1:0][31:0] read_done_index;
  logic write_done;
  logic [31:0] write_done_index;

  assign dma2monitor_start_valid   = leaves;
  assign dma2monitor_start_index   = next_index;
  assign dma2monitor_start_outcome = outcome;
  always_comb begin
    dma2monitor_done_valid[ReadStreams-1:0] = read_done;
    dma2monitor_done_index[ReadStreams-1:0] = read_done_index;
    dma2monitor_done_valid[WriterEvent] = write_done;
    dma2monitor_done_index[WriterEvent] = write_done_index;
    dma2monitor_done_valid[FenceEvent] = fence_passes;
    dma2monitor_done_index[FenceEvent] = next_index;
  end
  assign dma2interrupts_chunk_fetched = leaves && outcome == OutcomeStarted && is_data &&
      head.tag == isa_pkg::DESCRIPTOR_TAG_INSTRUCTIONS;
  assign dma2interrupts_chunk_done = read_done[2'(isa_pkg::DESCRIPTOR_TAG_INSTRUCTIONS)];

  // The two bus masters.
  logic reader_busy;
  logic writer_busy;
  logic read_error;
  logic [31:0] read_error_index;
  logic write_error;
  logic [31:0] write_error_index;

  dma_reader #(
      .DataBytes  (DataBytes),
      .MaxBurst   (MaxBurst),
      .BufferBeats(BufferBeats),
      .QueueDepth (QueueDepth),
      .Outstanding(OutstandingReads)
  ) reader (
      .clk,
      .rst_n,
      .pause,
      .busy(reader_busy),
      .limit,
      .work_valid(read_valid),
      .work_ready(read_ready),
      .work_data(work),
      .stream_valid,
      .stream_ready,
      .stream_data,
      .stream_count,
      .done_valid(read_done),
      .done_index(read_done_index),
      .error_valid(read_error),
      .error_index(read_error_index),
      .m_axi_read
  );

  dma_writer #(
      .DataBytes  (DataBytes),
      .MaxBurst   (MaxBurst),
      .QueueDepth (QueueDepth),
      .Outstanding(OutstandingWrites)
  ) writer (
      .clk,
      .rst_n,
      .pause,
      .busy(writer_busy),
      .limit,
      .work_valid(write_valid),
      .work_ready(write_ready),
      .work_data(work),
      .stream_valid(outfeed2dma_output_valid),
      .stream_ready(outfeed2dma_output_ready),
      .stream_data(outfeed2dma_output_data),
      .stream_count(outfeed2dma_output_count),
      .done_valid(write_done),
      .done_index(write_done_index),
      .error_valid(write_error),
      .error_index(write_error_index),
      .interrupt_valid(dma2interrupts_raise_valid),
      .interrupt_number(dma2interrupts_raise_data),
      .m_axi_write
  );

  // A request that was made before the pause may have to wait for the bus one cycle longer.
  always_ff @(posedge clk) begin
    if (!rst_n) paused <= 1'b0;
    else paused <= pause && !reader_busy && !writer_busy && !queue_busy;
  end

  assign errors = '{
          malformed: leaves && outcome == OutcomeMalformed,
          length_0: leaves && outcome == OutcomeLength0,
          inbound_fault: leaves && outcome == OutcomeInboundFault,
          extended_fault: leaves && outcome == OutcomeExtendedFault,
          read_response: read_error,
          write_response: write_error
      };
  assign fault_address = head.address;
  always_comb begin
    error_descriptor = next_index;
    if (read_error) error_descriptor = read_error_index;
    if (write_error) error_descriptor = write_error_index;
  end

`ifndef SYNTHESIS
  assert_fence_order :
  assert property (@(posedge clk) disable iff (!rst_n) fence_passes |-> pending == '0)
  else $error("a fence passed before everything before it had completed");
  assert_nothing_overtakes :
  assert property (@(posedge clk) disable iff (!rst_n)
      head_valid && head.fence && outcome == OutcomeStarted && !drained |->
      !(|read_valid) && !write_valid)
  else $error("a descriptor overtook a fence");
  assert_pending :
  assert property (@(posedge clk) disable iff (!rst_n)
      pending + 32'(leaves && outcome == OutcomeStarted) >= done_now)
  else $error("more descriptors completed than begun");
`endif

endmodule : dma_engine
