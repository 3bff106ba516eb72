// A recorded program on the chip in plain Verilog (IEEE 1364-2005), for simulators that know no other.
//
// program.txt has a line for each thing that driver and scalar core did to the chip in Verilator:
// operation, three numbers, the bits of an instruction, and the cycle in which it was done there; all
// hexadecimal. Here the chip must be done with it in the same cycle, and each byte of host memory must
// be the same at the end of a run. Nothing that reset has to set may stay unknown.

`timescale 1ns / 1ns
`include "plain_sizes.vh"

module plain_player;

  localparam RESET = 0, WRITE = 1, READ = 2, CHUNK = 3, FETCH = 4, HAND_OVER = 5, DESCRIPTOR = 6, PUSH = 7,
      SETTLE = 8, SCALAR_WORD = 9, FORGET = 10, MAP = 11, LOAD = 12, COMPARE = 13, RUN = 14;
  localparam STREAM_BYTES = 1 << 20;
  localparam OUTPUT_DONE = 3;  // completion event of outputs and interrupts

  reg clk, rst_n;

  // Registers, for the host.
  reg [18:0] awaddr, araddr;
  reg [63:0] wdata;
  reg awvalid, wvalid, arvalid;
  wire awready, wready, bvalid, arready, rvalid;
  wire [1:0] bresp, rresp;
  wire [63:0] rdata;
  wire [ 5:0] interrupt;

  // The scalar core.
  reg chunk_valid, instruction_valid, base_valid, descriptor_valid, fence, word_valid;
  wire chunk_waits, chunk_ready, instruction_ready, descriptor_ready, word_ready;
  wire [31:0] chunk_size;
  reg [`PLAIN_TILES-1:0] tiles;
  reg [31:0] base, descriptor_size, word;
  reg [`PLAIN_INSTRUCTION_BITS-1:0] bits;
  reg [3:0] tag;
  reg [63:0] descriptor_address;
  wire stream_valid;
  wire [8*`PLAIN_DATA_BYTES-1:0] stream_data;
  wire [`PLAIN_COUNT_BITS-1:0] stream_count;

  // What the monitors watch.
  wire queue_idle, row_valid, start_valid;
  wire [`PLAIN_SCALAR_UNITS-1:0] units_idle;
  wire [`PLAIN_BUILT_TILES-1:0] tiles_idle;
  wire [`PLAIN_BUILT_TILES*`PLAIN_TILE_UNITS-1:0] tile_units_idle;
  wire [2:0] start_outcome;
  wire [`PLAIN_DONE_EVENTS-1:0] done_valid;

  // Host memory.
  wire [1:0] m_arid, m_rid, m_rresp, m_awid, m_bid, m_bresp, m_arburst, m_awburst;
  wire [`PLAIN_ADDRESS_BITS-1:0] m_araddr, m_awaddr;
  wire [7:0] m_arlen, m_awlen;
  wire [2:0] m_arsize, m_awsize;
  wire m_arvalid, m_arready, m_rlast, m_rvalid, m_rready;
  wire m_awvalid, m_awready, m_wlast, m_wvalid, m_wready, m_bvalid, m_bready;
  wire [8*`PLAIN_DATA_BYTES-1:0] m_rdata, m_wdata;
  wire [`PLAIN_DATA_BYTES-1:0] m_wstrb;

  chip_pins dut (
      .clk(clk),
      .rst_n(rst_n),
      .s_axil_awaddr(awaddr),
      .s_axil_awprot(3'b0),
      .s_axil_awvalid(awvalid),
      .s_axil_awready(awready),
      .s_axil_wdata(wdata),
      .s_axil_wstrb(8'hff),
      .s_axil_wvalid(wvalid),
      .s_axil_wready(wready),
      .s_axil_bresp(bresp),
      .s_axil_bvalid(bvalid),
      .s_axil_bready(1'b1),
      .s_axil_araddr(araddr),
      .s_axil_arprot(3'b0),
      .s_axil_arvalid(arvalid),
      .s_axil_arready(arready),
      .s_axil_rdata(rdata),
      .s_axil_rresp(rresp),
      .s_axil_rvalid(rvalid),
      .s_axil_rready(1'b1),
      .dma2host_interrupt(interrupt),
      .queue2core_chunk_waits(chunk_waits),
      .core2queue_chunk_valid(chunk_valid),
      .core2queue_chunk_ready(chunk_ready),
      .queue2core_chunk_size(chunk_size),
      .core2units_instruction_valid(instruction_valid),
      .core2units_instruction_ready(instruction_ready),
      .core2units_instruction_tiles(tiles),
      .core2units_instruction_base_valid(base_valid),
      .core2units_instruction_base(base),
      .core2units_instruction_bits(bits),
      .core2dma_descriptor_valid(descriptor_valid),
      .core2dma_descriptor_ready(descriptor_ready),
      .core2dma_descriptor_fence(fence),
      .core2dma_descriptor_tag(tag),
      .core2dma_descriptor_size(descriptor_size),
      .core2dma_descriptor_address(descriptor_address),
      .core2output_word_valid(word_valid),
      .core2output_word_ready(word_ready),
      .core2output_word_data(word),
      .dma2core_instruction_valid(stream_valid),
      .dma2core_instruction_data(stream_data),
      .dma2core_instruction_count(stream_count),
      .queue2monitor_idle(queue_idle),
      .units2monitor_idle(units_idle),
      .tiles2monitor_idle(tiles_idle),
      .tiles2monitor_units(tile_units_idle),
      .ring2monitor_row_valid(row_valid),
      .dma2monitor_start_valid(start_valid),
      .dma2monitor_start_outcome(start_outcome),
      .dma2monitor_done_valid(done_valid),
      .m_axi_arid(m_arid),
      .m_axi_araddr(m_araddr),
      .m_axi_arlen(m_arlen),
      .m_axi_arsize(m_arsize),
      .m_axi_arburst(m_arburst),
      .m_axi_arvalid(m_arvalid),
      .m_axi_arready(m_arready),
      .m_axi_rid(m_rid),
      .m_axi_rdata(m_rdata),
      .m_axi_rresp(m_rresp),
      .m_axi_rlast(m_rlast),
      .m_axi_rvalid(m_rvalid),
      .m_axi_rready(m_rready),
      .m_axi_awid(m_awid),
      .m_axi_awaddr(m_awaddr),
      .m_axi_awlen(m_awlen),
      .m_axi_awsize(m_awsize),
      .m_axi_awburst(m_awburst),
      .m_axi_awvalid(m_awvalid),
      .m_axi_awready(m_awready),
      .m_axi_wdata(m_wdata),
      .m_axi_wstrb(m_wstrb),
      .m_axi_wlast(m_wlast),
      .m_axi_wvalid(m_wvalid),
      .m_axi_wready(m_wready),
      .m_axi_bid(m_bid),
      .m_axi_bresp(m_bresp),
      .m_axi_bvalid(m_bvalid),
      .m_axi_bready(m_bready)
  );

  plain_memory memory (
      .clk(clk),
      .rst_n(rst_n),
      .arid(m_arid),
      .araddr(m_araddr),
      .arlen(m_arlen),
      .arvalid(m_arvalid),
      .arready(m_arready),
      .rid(m_rid),
      .rdata(m_rdata),
      .rresp(m_rresp),
      .rlast(m_rlast),
      .rvalid(m_rvalid),
      .rready(m_rready),
      .awid(m_awid),
      .awaddr(m_awaddr),
      .awvalid(m_awvalid),
      .awready(m_awready),
      .wdata(m_wdata),
      .wstrb(m_wstrb),
      .wlast(m_wlast),
      .wvalid(m_wvalid),
      .wready(m_wready),
      .bid(m_bid),
      .bresp(m_bresp),
      .bvalid(m_bvalid),
      .bready(m_bready)
  );

  // A line of the program.
  integer file, fields, line;
  reg [7:0] operation;
  reg [63:0] first, second, third;
  reg [`PLAIN_INSTRUCTION_BITS-1:0] instruction;
  integer until_cycle;

  // Cycles since the reset, and since the beginning.
  integer cycles, all_cycles;

  // What the chip gave in the present cycle, before the edge of the clock that ends it.
  reg address_taken, data_taken, taken;
  reg [63:0] answer;
  reg refused;
  reg failed;

  // Bytes of the instruction stream, in a ring.
  reg [7:0] stream[0:STREAM_BYTES-1];
  integer stream_first, stream_end, lane;

  integer outputs_issued, outputs_done;
  reg [7:0] expected[0:`PLAIN_MEMORY_BYTES-1];
  reg [8*32-1:0] name;
  integer unknown, compared, at;
  reg [31:0] sum_low, sum_high;

  // Everything that decides what happens next.
  wire [`PLAIN_SCALAR_UNITS+`PLAIN_BUILT_TILES*(`PLAIN_TILE_UNITS+1)+`PLAIN_DONE_EVENTS+28:0] control = {
    awready,
    wready,
    bvalid,
    arready,
    rvalid,
    interrupt,
    chunk_waits,
    chunk_ready,
    instruction_ready,
    descriptor_ready,
    word_ready,
    stream_valid,
    queue_idle,
    row_valid,
    start_valid,
    units_idle,
    tiles_idle,
    tile_units_idle,
    done_valid,
    m_arvalid,
    m_rready,
    m_awvalid,
    m_wvalid,
    m_bready,
    m_arready,
    m_awready,
    m_wready
  };

  // The first difference ends the simulation.
  task fail;
    input [8*64-1:0] what;
    begin
      if (!failed) $display("fail  line %0d of program.txt, cycle %0d: %0s", line, cycles, what);
      failed = 1;
      $finish;
    end
  endtask

  // To the end of a cycle.
  task cycle;
    begin
      clk = 0;
      #1;
      if (rst_n) watch;
      clk = 1;
      #1;
      cycles = cycles + 1;
      all_cycles = all_cycles + 1;
    end
  endtask

  task watch;
    begin
      if (^control === 1'bx) fail("a signal that decides what happens is unknown");
      if (m_arvalid && ^{m_arid, m_araddr, m_arlen, m_arsize, m_arburst} === 1'bx)
        fail("a read of host memory is unknown");
      if (m_awvalid && ^{m_awid, m_awaddr, m_awlen, m_awsize, m_awburst} === 1'bx)
        fail("a write to host memory is unknown");
      if (m_wvalid && ^{m_wstrb, m_wlast} === 1'bx) fail("a word for host memory is unknown");
      if (start_valid && start_outcome !== 0) fail("a descriptor was refused");
      if ((m_rvalid && m_rready && m_rresp[1]) || (m_bvalid && m_bready && m_bresp[1]))
        fail("an access of host memory failed");
      if (stream_valid)
        for (lane = 0; lane < stream_count; lane = lane + 1) begin
          stream[stream_end] = stream_data[8*lane+:8];
          stream_end = (stream_end + 1) % STREAM_BYTES;
        end
      if (done_valid[OUTPUT_DONE]) outputs_done = outputs_done + 1;
      case (operation)
        WRITE: begin
          address_taken = awready;
          data_taken = wready;
          taken = bvalid;
          refused = bresp != 0;
        end
        READ: begin
          address_taken = arready;
          taken = rvalid;
          refused = rresp != 0;
          answer = rdata;
        end
        CHUNK: begin
          taken  = chunk_ready;
          answer = chunk_size;
        end
        FETCH: taken = (stream_end - stream_first + STREAM_BYTES) % STREAM_BYTES >= first;
        HAND_OVER: taken = instruction_ready;
        DESCRIPTOR: taken = descriptor_ready;
        PUSH: taken = word_ready;
        SETTLE: taken = &units_idle && &tiles_idle && queue_idle && outputs_issued == outputs_done;
        default: taken = 0;
      endcase
    end
  endtask

  // Until the chip is done with the operation, which is to be in the cycle that the line names.
  task complete;
    begin
      taken = 0;
      while (!taken && cycles < until_cycle) begin
        cycle;
        if (address_taken) {awvalid, arvalid} = 0;
        if (data_taken) wvalid = 0;
      end
      if (!taken) fail("the chip is later than in Verilator");
      else if (cycles != until_cycle) fail("the chip is earlier than in Verilator");
      if (refused) fail("the register's port answers with an error");
      {chunk_valid, instruction_valid, descriptor_valid, word_valid} = 0;
    end
  endtask

  task reset;
    begin
      {awvalid, wvalid, arvalid, chunk_valid, instruction_valid, descriptor_valid, word_valid} = 0;
      rst_n = 0;
      repeat (4) cycle;
      rst_n = 1;
      cycles = 0;
      stream_first = 0;
      stream_end = 0;
      outputs_issued = 0;
      outputs_done = 0;
    end
  endtask

  // The bytes that the stream gave next, compared by their Adler-32 (RFC 1950).
  task take_stream;
    begin
      sum_low  = 1;
      sum_high = 0;
      for (at = 0; at < first; at = at + 1) begin
        sum_low = (sum_low + stream[stream_first]) % 65521;
        sum_high = (sum_high + sum_low) % 65521;
        stream_first = (stream_first + 1) % STREAM_BYTES;
      end
      if ({sum_high[15:0], sum_low[15:0]} !== second[31:0]) fail("the instruction stream differs");
    end
  endtask

  task compare_memory;
    begin
      $sformat(name, "memory_%0d.hex", first);
      $readmemh(name, expected, 0, second - 1);
      for (at = 0; at < second; at = at + 1) begin
        if (^memory.bytes[at] === 1'bx) unknown = unknown + 1;
        else if (memory.bytes[at] !== expected[at]) begin
          $display("byte %0d of %0s is %h, not %h", at, name, memory.bytes[at], expected[at]);
          fail("host memory differs");
        end
      end
      compared = compared + second;
    end
  endtask

  task perform;
    case (operation)
      RESET: reset;
      WRITE: begin
        awaddr = first;
        wdata = second;
        {awvalid, wvalid} = 2'b11;
        complete;
      end
      READ: begin
        araddr  = first;
        arvalid = 1;
        complete;
        if (answer !== second) fail("a register differs");
      end
      CHUNK: begin
        chunk_valid = 1;
        complete;
        if (answer !== first) fail("the size of a chunk differs");
      end
      FETCH: begin
        complete;
        take_stream;
      end
      HAND_OVER: begin
        tiles = first;
        base_valid = second;
        base = third;
        bits = instruction;
        instruction_valid = 1;
        complete;
      end
      DESCRIPTOR: begin
        {fence, tag} = first;
        descriptor_size = second;
        descriptor_address = third;
        descriptor_valid = 1;
        if (!fence && tag >= OUTPUT_DONE) outputs_issued = outputs_issued + 1;
        complete;
      end
      PUSH: begin
        word = first;
        word_valid = 1;
        complete;
      end
      SETTLE: complete;
      SCALAR_WORD: dut.chip.memory.words[first] = second;
      FORGET: memory.regions = 0;
      MAP: memory.map(first, second, third);
      LOAD: begin
        $sformat(name, "memory_%0d.hex", first);
        $readmemh(name, memory.bytes, 0, second - 1);
      end
      COMPARE: compare_memory;
      RUN: while (cycles < until_cycle) cycle;
      default: fail("no operation of this player");
    endcase
  endtask

  initial begin
    clk = 0;
    rst_n = 0;
    {awaddr, araddr, wdata, tiles, base_valid, base, bits, fence, tag, descriptor_size} = 0;
    {descriptor_address, word} = 0;
    cycles = 0;
    all_cycles = 0;
    unknown = 0;
    compared = 0;
    line = 0;
    failed = 0;
    file = $fopen("program.txt", "r");
    fields = $fscanf(file, "%h %h %h %h %h %h\n", operation, first, second, third, instruction,
                     until_cycle);
    while (fields == 6 && !failed) begin
      line = line + 1;
      perform;
      fields = $fscanf(file, "%h %h %h %h %h %h\n", operation, first, second, third, instruction,
                       until_cycle);
    end
    if (line == 0) fail("no program.txt in this folder");
    else if (!failed)
      $display(
          "pass  %0d cycles, each operation in the cycle that it took in Verilator; %0d bytes of host memory equal, %0d unknown",
          all_cycles,
          compared - unknown,
          unknown
      );
    $finish;
  end

endmodule
