// Conditions and handshakes of the host's side, whose pairs are counted (coincidence_counter.sv). Fields
// are the names of bins (tests/support/host_coincidences.py).

module host_coincidences (
    input logic clk,
    input logic rst_n
);

  typedef struct packed {
    logic pause;                // the host wants a pause
    logic paused;               // and has it
    logic descriptors_full;     // in the common FIFO
    logic activations_full;     // the queue of their stream
    logic outputs_full;         // the queue of the writer
    logic no_room_for_a_burst;  // of activations
    logic output_full;          // the bytes of outputs
    logic reads_full;           // no more may be on the bus
    logic writes_full;
    logic fence_at_head;
    logic refused_at_head;
    logic interrupt_waits;      // for outputs before it
    logic queue_on_the_bus;     // the instruction queue
    logic ring_full;            // as many entries have been read ahead as may be
    logic queue_on;
    logic core_halted;
  } levels_t;

  typedef struct packed {
    logic last_word_read;
    logic last_word_written;
    logic read_to_the_edge;   // a burst up to 4 KiB is asked for
    logic write_to_the_edge;
    logic error_answered;
  } events_t;

  typedef struct packed {
    logic descriptor_taken;
    logic chunk_taken;
    logic data_begins;
    logic fence_passes;
    logic refused;
    logic read_asked;
    logic word_read;
    logic write_asked;
    logic word_written;
    logic write_answered;
    logic activations_taken;
    logic activations_wait;
    logic output_taken;
    logic output_waits;
    logic interrupt_raised;
    logic read_done;
    logic write_done;
    logic register_written;
    logic register_read;
    logic host_told;          // of a chunk
  } handshakes_t;

  // A burst from `address` on reaches 4 KiB.
  function automatic logic to_the_edge(input logic [11:0] address, input logic [7:0] length,
                                       input logic [2:0] size);
    return 32'({1'b0, address}) + ((32'(length) + 1) << size) == 32'd4096;
  endfunction

  levels_t levels;
  assign levels = '{
          pause: host.pause,
          paused: host.paused,
          descriptors_full: !host.descriptor_ready,
          activations_full: !host.dma.read_ready[1],
          outputs_full: !host.dma.write_ready,
          no_room_for_a_burst:
          host.dma.reader.g_stream[1].stream.asking
          && !
          host.dma.reader.g_stream[1].stream.request_valid
          && !
          host.pause,
          output_full: !host.outfeed2dma_output_ready,
          reads_full: 32'(host.dma.reader.in_flight) == harness_pkg::OutstandingReads,
          writes_full: !host.dma.writer.sent_ready,
          fence_at_head: host.dma.head_valid && host.dma.head.fence,
          refused_at_head: host.dma.head_valid && host.dma.outcome != dma_pkg::OutcomeStarted,
          interrupt_waits:
          host.dma.writer.next_valid
          &&
          host.dma.writer.next.is_interrupt
          && !
          host.dma.writer.interrupt_due,
          queue_on_the_bus: host.queue_busy,
          ring_full: !host.instruction_queue.entry_room,
          queue_on: host.queue_enabled,
          core_halted: !host.queue_settings.runs
      };

  logic word_read, last_read, word_written, last_written, answered;
  assign word_read = m_axi_read.rvalid && m_axi_read.rready;
  assign last_read = word_read && m_axi_read.rlast;
  assign word_written = m_axi_write.wvalid && m_axi_write.wready;
  assign last_written = word_written && m_axi_write.wlast;
  assign answered = m_axi_write.bvalid && m_axi_write.bready;
  logic read_asked, write_asked;
  assign read_asked  = m_axi_read.arvalid && m_axi_read.arready;
  assign write_asked = m_axi_write.awvalid && m_axi_write.awready;

  events_t events;
  assign events = '{
          last_word_read: last_read,
          last_word_written: last_written,
          read_to_the_edge:
          read_asked
          &&
          to_the_edge
          (
              m_axi_read.araddr[11:0], m_axi_read.arlen, m_axi_read.arsize
          ),
          write_to_the_edge:
          write_asked
          &&
          to_the_edge
          (
              m_axi_write.awaddr[11:0], m_axi_write.awlen, m_axi_write.awsize
          ),
          error_answered: (word_read && m_axi_read.rresp[1]) || (answered && m_axi_write.bresp[1])
      };

  logic data_begins;
  assign data_begins = host.dma.leaves && !host.dma.head.fence &&
      host.dma.outcome == dma_pkg::OutcomeStarted;
  handshakes_t handshakes;
  assign handshakes = '{
          descriptor_taken: host.core2dma_descriptor_valid && host.core2dma_descriptor_ready,
          chunk_taken: host.core2queue_chunk_valid && host.core2queue_chunk_ready,
          data_begins: data_begins,
          fence_passes: host.dma.fence_passes,
          refused: host.dma.leaves && host.dma.outcome != dma_pkg::OutcomeStarted,
          read_asked: read_asked,
          word_read: word_read,
          write_asked: write_asked,
          word_written: word_written,
          write_answered: answered,
          activations_taken: host.dma2input_activation_valid && host.dma2input_activation_ready,
          activations_wait: host.dma2input_activation_valid && !host.dma2input_activation_ready,
          output_taken: host.outfeed2dma_output_valid && host.outfeed2dma_output_ready,
          output_waits: host.outfeed2dma_output_valid && !host.outfeed2dma_output_ready,
          interrupt_raised: host.dma2interrupts_raise_valid,
          read_done: |host.dma.read_done,
          write_done: host.dma.write_done,
          register_written: s_axil_write.awvalid && s_axil_write.awready,
          register_read: s_axil_read.arvalid && s_axil_read.arready,
          host_told: host.chunk_told
      };

  coincidence_counter #(
      .Record(0),
      .Levels($bits(levels_t)),
      .Events($bits(events_t)),
      .Handshakes($bits(handshakes_t))
  ) counter (
      .clk,
      .rst_n,
      .levels,
      .events,
      .handshakes
  );

  // What the host's side says of outputs on the bus: bytes, bursts, and answers since reset.
  logic [31:0] output_bytes, output_bursts, output_answers;
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      output_bytes   <= '0;
      output_bursts  <= '0;
      output_answers <= '0;
    end else begin
      if (host.bus2output_word_valid) begin
        output_bytes  <= output_bytes + 32'($countones(host.bus2output_word_strobes));
        output_bursts <= output_bursts + 32'(host.bus2output_word_last);
      end
      output_answers <= output_answers + 32'(host.bus2output_answer_valid);
    end
  end

endmodule : host_coincidences
