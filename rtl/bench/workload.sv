// The harness with everything around it in C++ (DPI), for whole workloads at full speed: host memory,
// the descriptors, the units that take and give the byte streams, and a log of what happens when.

module workload
  import dma_pkg::*;
#(
    parameter int DataBytes = harness_pkg::DataBytes,
    parameter int BufferBeats = harness_pkg::BufferWords,
    parameter int QueueDepth = harness_pkg::QueueDepth,
    parameter int OutstandingReads = harness_pkg::OutstandingReads,
    parameter int OutstandingWrites = harness_pkg::OutstandingWrites,
    parameter int Unruly = 0,  // 1: memory does everything that AXI4 allows
    parameter int Latency = harness_pkg::MemoryLatency
) (
    input logic clk,
    input logic rst_n,

    input  logic [18:0] s_axil_awaddr,
    input  logic [ 2:0] s_axil_awprot,
    input  logic        s_axil_awvalid,
    output logic        s_axil_awready,
    input  logic [63:0] s_axil_wdata,
    input  logic [ 7:0] s_axil_wstrb,
    input  logic        s_axil_wvalid,
    output logic        s_axil_wready,
    output logic [ 1:0] s_axil_bresp,
    output logic        s_axil_bvalid,
    input  logic [18:0] s_axil_araddr,
    input  logic [ 2:0] s_axil_arprot,
    input  logic        s_axil_arvalid,
    output logic        s_axil_arready,
    output logic [63:0] s_axil_rdata,
    output logic [ 1:0] s_axil_rresp,
    output logic        s_axil_rvalid,

    input  logic       go,                 // from the next cycle on: descriptors and bytes
    output logic       finished,           // every descriptor has been refused or completed
    output logic [5:0] dma2host_interrupt
);

  localparam int CountBits = $clog2(DataBytes + 1);
  localparam int StreamStallBits = 4;  // read streams 0 to 2, output stream

  import "DPI-C" function bit workload_descriptor(
    output bit fence,
    output bit [3:0] tag,
    output int unsigned size,
    output longint unsigned address
  );
  import "DPI-C" function void workload_take(
    input int unsigned stream,
    input int unsigned count,
    input bit [8*DataBytes-1:0] data
  );
  import "DPI-C" function int unsigned workload_give(
    input int unsigned most,
    output bit [8*DataBytes-1:0] data
  );
  import "DPI-C" function int unsigned workload_stall(input int unsigned cycle);
  import "DPI-C" function void workload_event(
    input int unsigned cycle,
    input int unsigned kind,
    input int unsigned index
  );
  import "DPI-C" function int unsigned workload_descriptors();

  // Kinds of events, besides the completion events 0 to DoneEvents - 1.
  localparam int KindStart = 16;  // plus the outcome

  // Places of the read streams.
  localparam logic [1:0] Instruction = 2'(isa_pkg::DESCRIPTOR_TAG_INSTRUCTIONS);
  localparam logic [1:0] Activation = 2'(isa_pkg::DESCRIPTOR_TAG_INPUT);
  localparam logic [1:0] Parameter = 2'(isa_pkg::DESCRIPTOR_TAG_PARAMETERS);

  // The registers' port.
  logic s_axil_bready;
  logic s_axil_rready;
  axi_read #(.DataBytes(RegisterBytes)) s_axil_read ();
  axi_write #(.DataBytes(RegisterBytes)) s_axil_write ();
  axi_lite s_axil (.*);

  // Host memory's bus.
  axi_read #(.DataBytes(DataBytes)) m_axi_read ();
  axi_write #(.DataBytes(DataBytes)) m_axi_write ();

  // The units' side.
  logic core2dma_descriptor_valid;
  logic core2dma_descriptor_ready;
  descriptor_t core2dma_descriptor_data;
  logic [ReadStreams-1:0] stream_valid;
  logic [ReadStreams-1:0] stream_ready;
  logic [ReadStreams-1:0][8*DataBytes-1:0] stream_data;
  logic [ReadStreams-1:0][CountBits-1:0] stream_count;
  logic outfeed2dma_output_valid;
  logic outfeed2dma_output_ready;
  logic [8*DataBytes-1:0] outfeed2dma_output_data;
  logic [CountBits-1:0] outfeed2dma_output_count;
  logic dma2monitor_start_valid;
  logic [31:0] dma2monitor_start_index;
  outcome_e dma2monitor_start_outcome;
  logic [DoneEvents-1:0] dma2monitor_done_valid;
  logic [DoneEvents-1:0][31:0] dma2monitor_done_index;
  logic dma2interrupts_raise_valid;
  logic [1:0] dma2interrupts_raise_data;

  // No unit requests chunks.
  logic queue2core_chunk_waits, core2queue_chunk_ready, queue2monitor_idle;
  logic [31:0] queue2core_chunk_size;
  logic bus2output_word_valid, bus2output_word_last, bus2output_answer_valid;
  logic [DataBytes-1:0] bus2output_word_strobes;

  // Only the clock may reach far without a register: logic behind another input is evaluated twice a cycle.
  logic running;
  assign s_axil_bready = 1'b1;
  assign s_axil_rready = 1'b1;
  always_ff @(posedge clk) running <= rst_n && go;

  // Cycles since the beginning; channels that are held back in each.
  logic [31:0] cycle;
  logic [31:0] stalls;
  logic [4:0] bus_stall;
  logic [StreamStallBits-1:0] stream_stall;
  assign bus_stall = stalls[4:0];
  assign stream_stall = stalls[5+:StreamStallBits];

  always_ff @(posedge clk) begin
    if (!running) begin
      cycle  <= '0;
      stalls <= '0;
    end else begin
      cycle  <= cycle + 1'b1;
      stalls <= workload_stall(cycle + 1'b1);
    end
  end

  // Descriptors, one after another.
  always_ff @(posedge clk) begin
    bit fence;
    bit [3:0] tag;
    int unsigned size;
    longint unsigned address;
    if (!running) begin
      core2dma_descriptor_valid <= 1'b0;
    end else if (!core2dma_descriptor_valid || core2dma_descriptor_ready) begin
      core2dma_descriptor_valid <= workload_descriptor(fence, tag, size, address);
      core2dma_descriptor_data  <= '{fence: fence, tag: tag, size: size, address: address};
    end
  end

  // Bytes that the units take.
  assign stream_ready = running ? ~stream_stall[ReadStreams-1:0] : '0;
  always_ff @(posedge clk) begin
    for (int i = 0; i < ReadStreams; i++) begin
      if (running && stream_valid[i] && stream_ready[i]) begin
        workload_take(i, 32'(stream_count[i]), stream_data[i]);
      end
    end
  end

  // Bytes that they give.
  always_ff @(posedge clk) begin
    bit [8*DataBytes-1:0] data;
    int unsigned count;
    if (!running) begin
      outfeed2dma_output_valid <= 1'b0;
    end else if (!outfeed2dma_output_valid || outfeed2dma_output_ready) begin
      count = stream_stall[ReadStreams] ? 0 : workload_give(32'(DataBytes), data);
      outfeed2dma_output_valid <= count != 0;
      outfeed2dma_output_count <= CountBits'(count);
      outfeed2dma_output_data  <= data;
    end
  end

  // The log.
  logic [31:0] ended;
  logic [31:0] ending;
  assign ending = 32'($countones(
      dma2monitor_done_valid
  )) + 32'(dma2monitor_start_valid && dma2monitor_start_outcome != OutcomeStarted);
  always_ff @(posedge clk) begin
    if (!running) begin
      ended <= '0;
      finished <= 1'b0;
    end else begin
      ended <= ended + ending;
      finished <= ended + ending == workload_descriptors();
      if (dma2monitor_start_valid) begin
        workload_event(cycle, KindStart + 32'(dma2monitor_start_outcome), dma2monitor_start_index);
      end
      for (int i = 0; i < DoneEvents; i++) begin
        if (dma2monitor_done_valid[i]) workload_event(cycle, i, dma2monitor_done_index[i]);
      end
    end
  end

  host_interface #(
      .DataBytes(DataBytes),
      .BufferBeats(BufferBeats),
      .QueueDepth(QueueDepth),
      .OutstandingReads(OutstandingReads),
      .OutstandingWrites(OutstandingWrites)
  ) host (
      .*,
      .core2queue_chunk_valid(1'b0),
      .dma2core_instruction_valid(stream_valid[Instruction]),
      .dma2core_instruction_ready(stream_ready[Instruction]),
      .dma2core_instruction_data(stream_data[Instruction]),
      .dma2core_instruction_count(stream_count[Instruction]),
      .dma2input_activation_valid(stream_valid[Activation]),
      .dma2input_activation_ready(stream_ready[Activation]),
      .dma2input_activation_data(stream_data[Activation]),
      .dma2input_activation_count(stream_count[Activation]),
      .dma2input_parameter_valid(stream_valid[Parameter]),
      .dma2input_parameter_ready(stream_ready[Parameter]),
      .dma2input_parameter_data(stream_data[Parameter]),
      .dma2input_parameter_count(stream_count[Parameter])
  );

  // The instruction queue has one access at a time beside the DMA engine's.
  axi_check #(
      .DataBytes(DataBytes),
      .MaxReads (OutstandingReads + 1),
      .MaxWrites(OutstandingWrites + 1)
  ) check_m_axi (
      .clk,
      .rst_n,
      .read (m_axi_read),
      .write(m_axi_write)
  );

  if (Unruly != 0) begin : gen_unruly
    unruly_memory #(.DataBytes(DataBytes)) memory (.*);
    logic unused_stall;
    assign unused_stall = &{1'b0, bus_stall};
  end else begin : gen_in_order
    host_memory #(
        .DataBytes(DataBytes),
        .Latency  (Latency)
    ) memory (
        .*,
        .stall(bus_stall)
    );
  end

  logic unused;
  assign unused = &{
    1'b0,
    dma2interrupts_raise_valid,
    dma2interrupts_raise_data,
    queue2core_chunk_waits,
    core2queue_chunk_ready,
    queue2core_chunk_size,
    queue2monitor_idle,
    bus2output_word_valid,
    bus2output_word_strobes,
    bus2output_word_last,
    bus2output_answer_valid,
    stalls[31:9]
  };

endmodule : workload
