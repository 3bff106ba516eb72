// registers, behind the pins of its port: the handshakes there, its answers in order, what registers
// read as, and that no event is lost. Of the registers that keep what is written one is followed, any
// one. The page table is a small one.

module registers_proof
  import dma_pkg::*;
  import register_map_pkg::*;
(
    input logic clk,
    input logic rst_n,
    input logic [18:0] s_axil_awaddr,
    input logic [2:0] s_axil_awprot,
    input logic s_axil_awvalid,
    input logic [63:0] s_axil_wdata,
    input logic [7:0] s_axil_wstrb,
    input logic s_axil_wvalid,
    input logic s_axil_bready,
    input logic [18:0] s_axil_araddr,
    input logic [2:0] s_axil_arprot,
    input logic s_axil_arvalid,
    input logic s_axil_rready,
    input logic paused,
    input dma_errors_t errors,
    input logic [63:0] fault_address,
    input logic [31:0] error_descriptor,
    input logic [31:0] completed,
    input logic chunk_fetched,
    input logic chunk_done,
    input logic queue_enabled,
    input queue_errors_t queue_errors,
    input logic [63:0] queue_fault_address,
    input logic [12:0] queue2table_entry,
    input logic [3:0] set_host,
    input logic set_instruction_queue,
    input logic set_fatal_error,
    input logic [3:0][15:0] counts,
    input logic [18:0] any_register
);

  logic s_axil_awready, s_axil_wready, s_axil_bvalid, s_axil_arready, s_axil_rvalid, pause;
  logic [1:0] s_axil_bresp, s_axil_rresp;
  logic [63:0] s_axil_rdata, burst_limiter, window_base, window_size, completed_head;
  logic [63:0] table2queue_entry;
  queue_settings_t queue_settings;
  logic [3:0] host_status, host_control;
  logic instruction_queue_status, instruction_queue_control, fatal_error_status;
  logic fatal_error_control;
  axi_read #(.DataBytes(RegisterBytes)) s_axil_read ();
  axi_write #(.DataBytes(RegisterBytes)) s_axil_write ();
  axi_lite s_axil (.*);
  registers #(.PageTableEntries(2)) port (.*);
  resets_first resets (.*);

  // A request that has been taken and not been performed yet: at most one of each kind.
  typedef struct packed {
    logic        waits;
    logic [18:0] address;
  } request_t;
  typedef struct packed {
    logic        waits;
    logic [63:0] data;
    logic [7:0]  strobes;
  } word_t;
  request_t read, write;
  word_t word;
  logic reads, writes;
  assign reads  = port.block.axil_ar_accept;
  assign writes = port.block.axil_aw_accept;

  // The register that is followed, and what it holds.
  logic [18:0] register;
  logic [63:0] value, strobes;
  always_comb begin
    for (int i = 0; i < 8; i++) strobes[8*i+:8] = {8{word.strobes[i]}};
  end

  // The answers to what has been performed, in order.
  typedef struct packed {
    logic        is_write;
    logic        failed;
    logic        followed;
    logic [63:0] data;
  } answer_t;
  answer_t answers[2], answer;
  logic [1:0] level;
  logic head, answered;
  logic [1:0] waited;  // cycles in which the first was not offered
  assign answer   = answers[head];
  assign answered = (s_axil_bvalid && s_axil_bready) || (s_axil_rvalid && s_axil_rready);
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      read.waits <= 1'b0;
      write.waits <= 1'b0;
      word.waits <= 1'b0;
      level <= '0;
      head <= '0;
      waited <= '0;
      register <= any_register;
      value <= after_reset(any_register);
    end else begin
      if (s_axil_arvalid && s_axil_arready) read <= '{1'b1, s_axil_araddr};
      else if (reads) read.waits <= 1'b0;
      if (s_axil_awvalid && s_axil_awready) write <= '{1'b1, s_axil_awaddr};
      else if (writes) write.waits <= 1'b0;
      if (s_axil_wvalid && s_axil_wready) word <= '{1'b1, s_axil_wdata, s_axil_wstrb};
      else if (writes) word.waits <= 1'b0;
      if (writes && {write.address[18:3], 3'd0} == register) begin
        value <= (value & ~strobes) | (word.data & strobes & kept(register));
      end
      if (reads) begin
        answers[head^level[0]] <= '{
            1'b0,
            !readable({read.address[18:3], 3'd0}),
            {read.address[18:3], 3'd0} == register,
            value
        };
      end
      if (writes) begin
        answers[head^level[0]] <= '{1'b1, !writable({write.address[18:3], 3'd0}), 1'b0, 64'd0};
      end
      level  <= level + 2'(reads || writes) - 2'(answered);
      head   <= head ^ answered;
      waited <= (level == '0 || s_axil_bvalid || s_axil_rvalid) ? '0 : waited + 2'd1;
    end
  end

  logic b_waited, r_waited;
  logic [ 1:0] b_was;
  logic [65:0] r_was;
  logic [5:0] status, status_was, events;
  logic writes_host, writes_queue, writes_fatal;
  assign status = {fatal_error_status, instruction_queue_status, host_status};
  always_ff @(posedge clk) begin
    b_waited <= rst_n && s_axil_bvalid && !s_axil_bready;
    r_waited <= rst_n && s_axil_rvalid && !s_axil_rready;
    b_was <= s_axil_bresp;
    r_was <= {s_axil_rdata, s_axil_rresp};
    events <= rst_n ? {set_fatal_error, set_instruction_queue, set_host} : '0;
    status_was <= rst_n && !writes ? status : '0;
  end

  // The answers that have come, of those that are due, and the last that is due.
  logic [1:0] come;
  answer_t last;
  assign last = answers[head^(level==2'd2)];
  assign come = port.block.axil_resp_wptr - port.block.axil_resp_rptr;
  function automatic logic agrees(input answer_t expected, input logic is_write, input logic failed,
                                  input logic [63:0] data);
    return expected.is_write == is_write && expected.failed == failed &&
        (is_write || !expected.followed || expected.data == data);
  endfunction

  always_ff @(posedge clk) begin
    if (rst_n) begin
      assume_register : assume (kept(register) != '0);

      assert_answer_stays :
      assert ((!b_waited || (s_axil_bvalid && s_axil_bresp == b_was)) &&
              (!r_waited || (s_axil_rvalid && {s_axil_rdata, s_axil_rresp} == r_was)));
      assert_answers_requests :
      assert ((!s_axil_rvalid || (level != '0 && !answer.is_write)) &&
              (!s_axil_bvalid || (level != '0 && answer.is_write)) &&
              !(s_axil_bvalid && s_axil_rvalid));
      assert_performs :
      assert ((!reads || read.waits) && (!writes || (write.waits && word.waits)) &&
              (level != '0 || reads || writes || !(read.waits || (write.waits && word.waits))));
      assert_answers_soon : assert (waited <= 2'd1 && level <= 2'd2);
      assert_fails :
      assert ((!s_axil_rvalid || (s_axil_rresp == 2'b10) == answer.failed) &&
              (!s_axil_bvalid || (s_axil_bresp == 2'b10) == answer.failed));
      assert_reads_what_was_written :
      assert (!s_axil_rvalid || !answer.followed || s_axil_rdata == answer.data);
      assert_event_stays : assert ((events & ~status) == '0);
      assert_cleared_by_the_host : assert ((status_was & ~status) == '0);

      lemma_requests :
      assert (port.block.axil_arvalid == read.waits && port.block.axil_awvalid == write.waits &&
              port.block.axil_wvalid == word.waits &&
              (!read.waits || port.block.axil_araddr == read.address) &&
              (!write.waits || port.block.axil_awaddr == write.address) &&
              (!word.waits || (port.block.axil_wdata == word.data && port.block.axil_wstrb == word.strobes)));
      lemma_value : assert (stored(port.hwif_out, register) == value);
      // All answers have come but that of the page table, which comes a cycle later.
      lemma_answers :
      assert (level == port.block.axil_n_in_flight && head == port.block.axil_resp_rptr[0] &&
              come + 2'(port.block.external_pending) == level && level <= 2'd2 &&
              (come == '0 || agrees(
          answer,
          port.block.axil_resp_buffer_is_wr[head],
          port.block.axil_resp_buffer_err[head],
          port.block.axil_resp_buffer_rdata[head]
      )) && (come != 2'd2 || agrees(
          answers[~head],
          port.block.axil_resp_buffer_is_wr[~head],
          port.block.axil_resp_buffer_err[~head],
          port.block.axil_resp_buffer_rdata[~head]
      )));
      lemma_page :
      assert (port.block.external_pending == (port.read_done || port.write_done) &&
              !(port.read_done && port.write_done) &&
              (!port.block.external_pending ||
               (last.is_write == port.write_done && !last.failed && !last.followed)));
      lemma_waited : assert (waited == '0 || (waited == 2'd1 && come != '0));
      cover_both : cover (level == 2'd2 && read.waits && write.waits && word.waits);
      cover_read :
      cover (s_axil_rvalid && answer.followed && s_axil_rdata != after_reset(register));
      cover_page : cover (s_axil_rvalid && waited == 2'd1);
      cover_fails : cover (s_axil_bvalid && answer.failed && s_axil_bready);
    end
  end

endmodule : registers_proof
