// dma_engine: descriptors begin in order, each goes to one queue or is refused, and a fence passes when
// all that began before it have ended; nothing behind it begins before.

module engine_proof
  import dma_pkg::*;
#(
    parameter  int DataBytes = 4,
    localparam int CountBits = $clog2(DataBytes + 1)
) (
    input logic clk,
    input logic rst_n,
    input logic pause,
    input logic core2dma_descriptor_valid,
    input logic fence,
    input logic [3:0] tag,
    input logic [3:0] size,
    input logic extended,
    input logic [7:0] offset,
    input logic [ReadStreams-1:0] stream_ready,
    input logic outfeed2dma_output_valid,
    input logic [8*DataBytes-1:0] outfeed2dma_output_data,
    input logic [CountBits-1:0] outfeed2dma_output_count,
    input logic arready,
    input logic rvalid,
    input logic awready,
    input logic wready,
    input logic bvalid
);

  // Small transfers in a small window, into which and out of which they reach.
  descriptor_t core2dma_descriptor_data;
  assign core2dma_descriptor_data = '{
          fence: fence,
          tag: tag,
          size: 32'(size),
          address: {extended, 55'd0, offset}
      };

  logic paused, core2dma_descriptor_ready, outfeed2dma_output_ready, dma2interrupts_raise_valid;
  logic dma2interrupts_chunk_fetched, dma2interrupts_chunk_done, dma2monitor_start_valid;
  logic [1:0] dma2interrupts_raise_data;
  logic [31:0] dma2monitor_start_index, error_descriptor, completed;
  logic [63:0] fault_address;
  dma_errors_t errors;
  outcome_e dma2monitor_start_outcome;
  logic [DoneEvents-1:0] dma2monitor_done_valid;
  logic [DoneEvents-1:0][31:0] dma2monitor_done_index;
  logic [ReadStreams-1:0] stream_valid;
  logic [ReadStreams-1:0][8*DataBytes-1:0] stream_data;
  logic [ReadStreams-1:0][CountBits-1:0] stream_count;
  axi_read #(.DataBytes(DataBytes)) m_axi_read ();
  axi_write #(.DataBytes(DataBytes)) m_axi_write ();
  dma_engine #(
      .DataBytes(DataBytes),
      .MaxBurst(2),
      .BufferBeats(2),
      .FifoDepth(2),
      .QueueDepth(2),
      .OutstandingReads(1),
      .OutstandingWrites(1)
  ) engine (
      .*,
      .queue_busy(1'b0),
      .burst_limiter(64'd0),
      .window_base(64'h8000_0000_0000_0000),
      .window_size(64'd128)
  );
  resets_first resets (.*);

  // Memory: one burst of each kind at a time, of which the address is known.
  logic reading, answering;
  logic [1:0] id;
  logic [7:0] words;  // that are still to come
  assign m_axi_read.arready = arready && !reading;
  assign m_axi_read.rvalid = rvalid && reading;
  assign m_axi_read.rid = id;
  assign m_axi_read.rdata = '0;
  assign m_axi_read.rresp = '0;
  assign m_axi_read.rlast = words == '0;
  assign m_axi_write.awready = awready;
  assign m_axi_write.wready = wready;
  assign m_axi_write.bvalid = bvalid && answering;
  assign m_axi_write.bid = 2'd3;
  assign m_axi_write.bresp = '0;
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      reading   <= 1'b0;
      answering <= 1'b0;
    end else begin
      if (m_axi_read.arvalid && m_axi_read.arready) begin
        reading <= 1'b1;
        id <= m_axi_read.arid;
        words <= m_axi_read.arlen;
      end else if (m_axi_read.rvalid) begin
        reading <= words != '0;
        words   <= words - 8'd1;
      end
      if (m_axi_write.wvalid && m_axi_write.wready && m_axi_write.wlast) answering <= 1'b1;
      else if (m_axi_write.bvalid) answering <= 1'b0;
    end
  end

  // Descriptors that have begun, and those that have ended: by the events that monitors see.
  logic starts, fence_passes, fence_waits;
  logic [31:0] taken, begun, ended, ends;
  assign starts = dma2monitor_start_valid && dma2monitor_start_outcome == OutcomeStarted;
  assign fence_passes = dma2monitor_done_valid[DoneEvents-1];
  assign fence_waits = engine.head_valid && engine.head.fence && engine.outcome == OutcomeStarted;
  always_comb begin
    ends = '0;
    for (int i = 0; i < DoneEvents; i++) ends = ends + 32'(dma2monitor_done_valid[i]);
  end
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      taken <= '0;
      begun <= '0;
      ended <= '0;
    end else begin
      taken <= taken + 32'(dma2monitor_start_valid);
      begun <= begun + 32'(starts);
      ended <= ended + ends;
    end
  end

  always_ff @(posedge clk) begin
    if (rst_n) begin
      assert_fence_waits : assert (!fence_passes || begun == ended);
      assert_nothing_passes_a_fence :
      assert (!fence_waits || (engine.read_valid == '0 && !engine.write_valid));
      assert_fence_goes : assert (!fence_waits || pause || begun != ended || fence_passes);
      assert_in_order : assert (!dma2monitor_start_valid || dma2monitor_start_index == taken);
      assert_each_begins_or_is_refused :
      assert (!dma2monitor_start_valid || starts != (|{errors.malformed, errors.length_0,
              errors.inbound_fault, errors.extended_fault}));
      assert_goes_to_one :
      assert (!starts || 32'($countones(
          {engine.read_valid & engine.read_ready,
              engine.write_valid && engine.write_ready, fence_passes}
      )) == 32'd1);
      assert_paused_begins_nothing : assert (!pause || !dma2monitor_start_valid);
      assert_counts : assert (completed == ended);
      lemma_pending : assert (engine.pending == begun - ended);
      lemma_index : assert (engine.next_index == taken);
      cover_fence_behind_another : cover (fence_passes && begun == 32'd1);
      cover_refused : cover (errors.extended_fault);
    end
  end

endmodule : engine_proof
