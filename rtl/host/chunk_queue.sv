// The host's instruction queue: reads descriptors of chunks from the ring in host memory, gives each
// to the DMA engine when the scalar core asks for the next chunk, and writes the status block when
// chunks are done. Facts: docs/host-interface.md, section "Instruction queue".

module chunk_queue
  import dma_pkg::*;
#(
    parameter int DataBytes = harness_pkg::DataBytes,
    parameter int Ahead = 4  // descriptors that are read before the first is offered
) (
    input logic clk,
    input logic rst_n,

    // Settings and state, from and for the registers.
    input  queue_settings_t        settings,
    input  logic                   pause,
    output logic                   busy,           // on the bus
    output logic                   idle,           // and nothing to be told
    output logic                   enabled,
    output queue_errors_t          errors,
    output logic            [63:0] fault_address,  // with an inbound or extended fault
    input  logic            [63:0] completed_head,

    // The page table: an entry is there in the cycle after its number.
    output logic [12:0] queue2table_entry,
    input  logic [63:0] table2queue_entry,

    // The scalar core asks for a chunk, and is told its bytes; `waits` says that there is one.
    output logic        queue2core_chunk_waits,
    input  logic        core2queue_chunk_valid,
    output logic        core2queue_chunk_ready,
    output logic [31:0] queue2core_chunk_size,

    output logic        queue2dma_descriptor_valid,
    input  logic        queue2dma_descriptor_ready,
    output descriptor_t queue2dma_descriptor_data,

    // The bytes of a chunk have arrived; the host may be told.
    input  logic chunk_done,
    output logic chunk_told,

    axi_read.initiator  m_axi_read,
    axi_write.initiator m_axi_write
);

  localparam int Bytes = 16;  // of a descriptor, and of the status block
  localparam int Words = (Bytes > DataBytes) ? Bytes / DataBytes : 1;
  localparam int OffsetBits = $clog2(DataBytes);
  localparam logic [31:0] LongestChunk = 32'd1 << 28;

  typedef enum logic [2:0] {
    StateIdle,
    StateLookup,
    StateRequest,
    StateWords,
    StateAnswer
  } state_e;
  state_e state;
  logic writes;  // the access is that of the status block
  logic stale;  // the queue has been turned off since the access began, which is nothing to it now
  logic stopped;  // there was an error: nothing more until the queue is turned off
  logic [63:0] device_address;
  logic untold;  // chunks are done of which the host has not been told, nor is being told
  logic begins_write;
  logic read_word, wrote_word, written, told;
  logic [$clog2(Words+1)-1:0] word;
  assign read_word = state == StateWords && m_axi_read.rvalid;
  assign wrote_word = m_axi_write.wvalid && m_axi_write.wready;
  assign written = 32'(word) == 32'(Words) || (wrote_word && m_axi_write.wlast);
  assign told = state == StateAnswer && m_axi_write.bvalid;
  assign busy = state != StateIdle;
  assign idle = !busy && !untold;

  // On and off; bad settings leave it off.
  logic asked, well_set;
  assign well_set = settings.size != '0 && settings.base[3:0] == '0 &&
      settings.status_base[3:0] == '0;
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      asked   <= 1'b0;
      enabled <= 1'b0;
    end else begin
      asked   <= settings.enable;
      enabled <= settings.enable && (asked ? enabled : well_set);
    end
  end

  // The doorbell.
  logic [63:0] tail;
  logic bad_tail;
  assign bad_tail = settings.tail != tail && settings.tail != '0 &&
      !(enabled && settings.tail < settings.size);
  always_ff @(posedge clk) begin
    if (!rst_n) tail <= '0;
    else tail <= settings.tail;
  end

  // Descriptors that have been read. They are offered when no more can be read ahead.
  logic [63:0] next;  // the next one to be read
  logic runs, more, offers, entry_room, entry_valid, read_ended, got_entry, bad_entry, unreachable;
  logic [8*Bytes-1:0] entry;
  logic [63:0] chunk_address;
  assign runs = enabled && !stopped && settings.runs && tail < settings.size && !pause;
  assign more = runs && next != tail && entry_room;
  descriptor_fifo #(
      .Width(96),
      .Depth(Ahead)
  ) ring (
      .clk,
      .rst_n(rst_n && enabled),
      .push_valid(got_entry && !bad_entry),
      .push_ready(entry_room),
      .push_data(entry[95:0]),
      .pop_valid(entry_valid),
      .pop_ready(core2queue_chunk_ready),
      .pop_data({queue2core_chunk_size, chunk_address})
  );
  always_ff @(posedge clk) begin
    if (!rst_n || !enabled || !entry_valid) offers <= 1'b0;
    else offers <= offers || (!busy && !more);
  end
  assign queue2core_chunk_waits = offers && entry_valid && runs;
  assign queue2dma_descriptor_valid = core2queue_chunk_valid && queue2core_chunk_waits;
  assign core2queue_chunk_ready = queue2dma_descriptor_valid && queue2dma_descriptor_ready;
  assign queue2dma_descriptor_data = '{
          fence: 1'b0,
          tag: 4'(isa_pkg::DESCRIPTOR_TAG_INSTRUCTIONS),
          size: queue2core_chunk_size,
          address: chunk_address
      };

  // What is done, and when the host has been told.
  always_ff @(posedge clk) begin
    if (!rst_n || !enabled || !settings.status_block) untold <= 1'b0;
    else untold <= chunk_done || (untold && !(begins_write && !busy));
  end
  assign chunk_told = (enabled && settings.status_block) ? told && !stale : chunk_done;

  // An access of 16 bytes at a time, through page table or window. What is on the bus stays as it is,
  // whatever the host writes meanwhile.
  logic begins_read, simple, found, on_bus, reachable;
  logic [63:0] window_offset;
  logic [AddressBits-1:0] found_address, kept_address, bus_address;
  logic failed;
  assign begins_write = untold && !stopped && !pause;
  assign begins_read = more && !begins_write;
  assign queue2table_entry = device_address[24:12];
  assign simple = !device_address[63];
  assign window_offset = device_address - settings.window_base;
  always_comb begin
    if (simple) begin
      found = device_address[62:25] == '0 &&
          64'(device_address[24:12]) < settings.simple_entries &&
          table2queue_entry[0] && table2queue_entry[63:AddressBits] == '0;
      found_address = {table2queue_entry[AddressBits-1:12], device_address[11:0]};
    end else begin
      found = window_offset[63:AddressBits] == '0 &&
          window_offset + 64'(Bytes) <= settings.window_size;
      found_address = window_offset[AddressBits-1:0];
    end
  end
  assign reachable   = on_bus || (found && found_address[3:0] == '0);
  assign bus_address = on_bus ? kept_address : found_address;
  always_ff @(posedge clk) begin
    on_bus <= rst_n && reachable && (state == StateRequest || state == StateWords);
    kept_address <= bus_address;
  end
  assign read_ended = read_word && m_axi_read.rlast;
  assign got_entry  = read_ended && !stale;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      state   <= StateIdle;
      stopped <= 1'b0;
      stale   <= 1'b0;
      next    <= '0;
    end else begin
      stopped <= enabled && (stopped || (unreachable && !stale) || (got_entry && bad_entry) ||
          (told && !stale && m_axi_write.bresp[1]));
      stale <= busy && (stale || !enabled);
      if (!enabled) next <= '0;
      else if (got_entry) next <= (next + 64'd1 >= settings.size) ? '0 : next + 64'd1;
      case (state)
        StateIdle: begin
          if (begins_write || begins_read) state <= StateLookup;
          writes <= begins_write;
          device_address <= begins_write ? settings.status_base : settings.base + {next[59:0], 4'd0};
          word <= '0;
          failed <= 1'b0;
        end
        StateLookup: state <= StateRequest;
        StateRequest: begin
          word <= word + wrote_word;
          if (!reachable) state <= StateIdle;
          else if (writes ? m_axi_write.awready : m_axi_read.arready)
            state <= (writes && written) ? StateAnswer : StateWords;
        end
        StateWords: begin
          word   <= word + (read_word || wrote_word);
          failed <= failed || (read_word && m_axi_read.rresp[1]);
          if (read_ended) state <= StateIdle;
          if (writes && written) state <= StateAnswer;
        end
        default: if (told) state <= StateIdle;
      endcase
    end
  end

  assign m_axi_read.arvalid = state == StateRequest && !writes && reachable;
  assign m_axi_read.arid = 2'(ReadStreams);  // the streams of the DMA engine have those below
  assign m_axi_read.araddr = {bus_address[AddressBits-1:OffsetBits], OffsetBits'(0)};
  assign m_axi_read.arlen = 8'(Words - 1);
  assign m_axi_read.arsize = 3'(OffsetBits);
  assign m_axi_read.arburst = 2'b01;
  assign m_axi_read.rready = 1'b1;

  assign m_axi_write.awvalid = state == StateRequest && writes && reachable;
  assign m_axi_write.awid = '0;  // outputs have another
  assign m_axi_write.awaddr = {bus_address[AddressBits-1:OffsetBits], OffsetBits'(0)};
  assign m_axi_write.awlen = 8'(Words - 1);
  assign m_axi_write.awsize = 3'(OffsetBits);
  assign m_axi_write.awburst = 2'b01;
  // Words do not wait for the address: a slave may wait for both (A3.3.1).
  assign m_axi_write.wvalid = (m_axi_write.awvalid && 32'(word) != 32'(Words)) ||
      (state == StateWords && writes);
  assign m_axi_write.wlast = 32'(word) == 32'(Words - 1);
  assign m_axi_write.bready = 1'b1;

  // A descriptor is several words of the bus, or a part of one; so is the status block, of which all
  // but the head is 0.
  logic [31:0] head;  // before the address is offered
  logic [8*Bytes-1:0] status;
  always_ff @(posedge clk) if (state == StateLookup) head <= completed_head[31:0];
  assign status = (8 * Bytes)'(head);
  if (Words > 1) begin : gen_words
    logic [8*(Bytes-DataBytes)-1:0] earlier;
    always_ff @(posedge clk) if (read_word) earlier <= entry[8*Bytes-1:8*DataBytes];
    assign entry = {m_axi_read.rdata, earlier};
    assign m_axi_write.wdata = (8 * DataBytes)'(status >> (8 * DataBytes * 32'(word)));
    assign m_axi_write.wstrb = '1;
  end else begin : gen_part
    logic [31:0] place;  // of its first byte in the word
    assign place = 32'(bus_address[OffsetBits-1:0]);
    assign entry = (8 * Bytes)'(m_axi_read.rdata >> (8 * place));
    assign m_axi_write.wdata = (8 * DataBytes)'(status) << (8 * place);
    assign m_axi_write.wstrb = DataBytes'((1 << Bytes) - 1) << place;
  end

  // Errors, one cycle each.
  logic [31:0] size;
  logic read_failed;
  assign size = entry[95:64];
  assign read_failed = failed || m_axi_read.rresp[1];
  assign bad_entry = read_failed || size == '0 || size > LongestChunk;
  assign unreachable = state == StateRequest && !reachable;
  assign fault_address = device_address;
  assign errors = '{
          bad_configuration: settings.enable && !asked && !well_set,
          invalid: bad_tail || (got_entry && !read_failed && size > LongestChunk),
          length_0: got_entry && !read_failed && size == '0,
          inbound_fault: unreachable && simple,
          extended_fault: unreachable && !simple,
          read_response: read_ended && read_failed,
          write_response: told && m_axi_write.bresp[1]
      };

  logic unused;
  assign unused = &{1'b0, entry[127:96], completed_head[63:32], table2queue_entry[11:1], bus_address,
      m_axi_read.rid, m_axi_read.rresp[0], m_axi_write.bid, m_axi_write.bresp[0]};

`ifndef SYNTHESIS
  assert_last_word :
  assert property (@(posedge clk) disable iff (!rst_n) read_word |->
      m_axi_read.rlast == (32'(word) == 32'(Words - 1)))
  else $error("a read of the ring has another length than was asked for");
  assert_no_descriptor_without_chunk :
  assert property (@(posedge clk) disable iff (!rst_n)
      queue2dma_descriptor_valid |-> queue2core_chunk_waits && core2queue_chunk_valid)
  else $error("a chunk that nobody asked for is fetched");
`endif

endmodule : chunk_queue
