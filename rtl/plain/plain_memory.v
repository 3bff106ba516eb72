// Host memory in plain Verilog (IEEE 1364-2005), for simulators that know no other: an AXI4 target
// that answers in order, one word a cycle, LATENCY cycles after the last word of a request. It is
// written from the description of host memory (docs/rtl-dma.md), and not from host_memory.sv.

`include "plain_sizes.vh"

module plain_memory #(
    parameter DATA_BYTES = `PLAIN_DATA_BYTES,
    parameter ADDRESS_BITS = `PLAIN_ADDRESS_BITS,
    parameter LATENCY = `PLAIN_MEMORY_LATENCY,
    parameter REQUESTS = `PLAIN_MEMORY_REQUESTS,
    parameter REGIONS = `PLAIN_REGIONS,
    parameter BYTES = `PLAIN_MEMORY_BYTES
) (
    input clk,
    input rst_n,

    input      [             1:0] arid,
    input      [ADDRESS_BITS-1:0] araddr,
    input      [             7:0] arlen,
    input                         arvalid,
    output                        arready,
    output reg [             1:0] rid,
    output reg [8*DATA_BYTES-1:0] rdata,
    output reg [             1:0] rresp,
    output reg                    rlast,
    output reg                    rvalid,
    input                         rready,
    input      [             1:0] awid,
    input      [ADDRESS_BITS-1:0] awaddr,
    input                         awvalid,
    output                        awready,
    input      [8*DATA_BYTES-1:0] wdata,
    input      [  DATA_BYTES-1:0] wstrb,
    input                         wlast,
    input                         wvalid,
    output                        wready,
    output reg [             1:0] bid,
    output reg [             1:0] bresp,
    output reg                    bvalid,
    input                         bready
);

  // A region is a range of bus addresses whose bytes stand at a place in `bytes`.
  reg [7:0] bytes[0:BYTES-1];
  reg [63:0] region_start[0:REGIONS-1];
  reg [63:0] region_size[0:REGIONS-1];
  integer region_place[0:REGIONS-1];
  integer regions;
  initial regions = 0;

  task map;
    input [63:0] start;
    input [63:0] size;
    input integer place;
    begin
      region_start[regions] = start;
      region_size[regions] = size;
      region_place[regions] = place;
      regions = regions + 1;
    end
  endtask

  // Where the byte of a bus address stands, or -1.
  function integer place_of;
    input [63:0] address;
    integer i;
    begin
      place_of = -1;
      for (i = 0; i < regions; i = i + 1)
      if (place_of < 0 && address - region_start[i] < region_size[i])
        place_of = region_place[i] + (address - region_start[i]);
    end
  endfunction

  reg [31:0] now;
  always @(posedge clk) now <= rst_n ? now + 1 : 0;

  // Reads wait in a queue. The first is answered word by word.
  reg [31:0] read_due[0:REQUESTS-1];
  reg [1:0] read_id[0:REQUESTS-1];
  reg [7:0] read_words[0:REQUESTS-1];  // less one
  reg [63:0] read_address[0:REQUESTS-1];
  reg [7:0] read_first, read_end, reads;  // places in the queue, and how many it holds
  reg [7:0] word;

  wire read_asked = arvalid && arready;
  wire gives = reads != 0 && now >= read_due[read_first] && (!rvalid || rready);
  wire ends = word == read_words[read_first];
  assign arready = reads != REQUESTS;

  integer lane, place, found;
  always @(posedge clk)
    if (!rst_n) begin
      {read_first, read_end, reads, word} <= 0;
      rvalid <= 0;
    end else begin
      if (read_asked) begin
        read_due[read_end] <= now + LATENCY;
        read_id[read_end] <= arid;
        read_words[read_end] <= arlen;
        read_address[read_end] <= araddr;
        read_end <= (read_end + 1) % REQUESTS;
      end
      if (gives) begin
        found = 0;
        for (lane = 0; lane < DATA_BYTES; lane = lane + 1) begin
          place = place_of(read_address[read_first] + DATA_BYTES * word + lane);
          // Nobody may use a byte beside the regions, so it is unknown.
          rdata[8*lane+:8] <= place < 0 ? 8'bx : bytes[place];
          if (place >= 0) found = found + 1;
        end
        rid   <= read_id[read_first];
        rresp <= found == 0 ? 2'b10 : 2'b00;
        rlast <= ends;
        word  <= ends ? 0 : word + 1;
        if (ends) read_first <= (read_first + 1) % REQUESTS;
      end
      rvalid <= gives || (rvalid && !rready);
      reads  <= reads + read_asked - (gives && ends);
    end

  // Writes come a burst at a time. Their answers wait in a queue.
  reg [31:0] answer_due[0:REQUESTS-1];
  reg [1:0] answer_id[0:REQUESTS-1];
  reg answer_failed[0:REQUESTS-1];
  reg [7:0] answer_first, answer_end, answers;
  reg writing, failed;
  reg [1:0] write_id;
  reg [63:0] write_address;

  wire written = wvalid && wready;
  wire answered = answers != 0 && now >= answer_due[answer_first] && (!bvalid || bready);
  assign awready = !writing && answers != REQUESTS;
  assign wready  = writing;

  integer write_lane, target;
  reg misses;
  always @(posedge clk)
    if (!rst_n) begin
      {answer_first, answer_end, answers} <= 0;
      writing <= 0;
      bvalid <= 0;
    end else begin
      if (awvalid && awready) begin
        writing <= 1;
        failed <= 0;
        write_id <= awid;
        write_address <= awaddr;
      end
      if (written) begin
        misses = 0;
        for (write_lane = 0; write_lane < DATA_BYTES; write_lane = write_lane + 1)
        if (wstrb[write_lane]) begin
          target = place_of(write_address + write_lane);
          if (target < 0) misses = 1;
          else bytes[target] = wdata[8*write_lane+:8];
        end
        failed <= failed || misses;
        write_address <= write_address + DATA_BYTES;
        writing <= !wlast;
        if (wlast) begin
          answer_due[answer_end] <= now + LATENCY;
          answer_id[answer_end] <= write_id;
          answer_failed[answer_end] <= failed || misses;
          answer_end <= (answer_end + 1) % REQUESTS;
        end
      end
      if (answered) begin
        bid <= answer_id[answer_first];
        bresp <= answer_failed[answer_first] ? 2'b10 : 2'b00;
        answer_first <= (answer_first + 1) % REQUESTS;
      end
      bvalid  <= answered || (bvalid && !bready);
      answers <= answers + (written && wlast) - answered;
    end

endmodule
