// ring_bus: a row that a sender gets rid of arrives in that cycle, once and whole, at all its receivers
// and at no other, and each of them has room; the bus takes the first sender that can be served, and
// is not idle while one waits. Of all senders and receivers one each is looked at, any.

module ring_proof
  import tile_pkg::*;
  import ring_proof_pkg::sent_t;
#(
    parameter int Tiles = 4,
    parameter int CyclesPerRow = 4
) (
    input logic clk,
    input logic rst_n,
    // A sender offers a row by this, and keeps it until it is taken.
    input logic [Tiles:0] offers,
    input sent_t [Tiles:0] offered,
    input logic infeed2ring_token_valid,
    input logic infeed2ring_token_channel,
    input logic [Tiles-1:0][1:0] ring2tiles_row_ready,
    input logic ring2outfeed_row_ready,
    input logic [4:0] any_sender,
    input logic [4:0] any_tile,
    input logic any_channel,
    input logic [5:0] any_word
);

  logic infeed2ring_row_ready, infeed2ring_token_ready, ring2outfeed_row_valid;
  logic [Tiles-1:0] tiles2ring_row_ready;
  logic [Tiles-1:0][1:0] ring2tiles_row_valid;
  row_t ring2tiles_row_data;
  logic [6:0] ring2tiles_row_words;
  logic [1:0] ring2tiles_token_valid;
  produce_t [1:0] ring2flags_produce;
  resets_first resets (.*);

  // What is looked at; it stays.
  logic [4:0] sender, tile;
  logic channel;
  logic [5:0] word;
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      sender <= any_sender;
      tile <= any_tile;
      channel <= any_channel;
      word <= any_word;
    end
  end

  logic [Tiles:0] valid, ready;
  sent_t [Tiles:0] rows;
  sent_t row;
  always_ff @(posedge clk) begin
    for (int s = 0; s <= Tiles; s++) begin
      if (!rst_n) valid[s] <= 1'b0;
      else if (!valid[s] || ready[s]) begin
        valid[s] <= offers[s];
        rows[s]  <= offered[s];
      end
    end
  end
  assign row   = rows[sender];
  assign ready = {tiles2ring_row_ready, infeed2ring_row_ready};

  function automatic ring_row_t whole(input sent_t sent);
    whole.targets = sent.targets;
    whole.channel = sent.channel;
    whole.token   = sent.token;
    whole.words   = sent.words;
    for (int w = 0; w < RowWords; w++) whole.data[w] = sent.first ^ 32'(w);
  endfunction

  logic infeed2ring_row_valid;
  ring_row_t infeed2ring_row_data;
  logic [Tiles-1:0] tiles2ring_row_valid;
  ring_row_t tiles2ring_row_data[Tiles];
  assign {tiles2ring_row_valid, infeed2ring_row_valid} = valid;
  assign infeed2ring_row_data = whole(rows[0]);
  for (genvar t = 0; t < Tiles; t++) begin : g_row
    assign tiles2ring_row_data[t] = whole(rows[t+1]);
  end

  ring_bus #(
      .Tiles(Tiles),
      .CyclesPerRow(CyclesPerRow)
  ) ring (
      .*
  );

  function automatic logic room(input sent_t asked);
    room = !asked.targets[tile_pkg::Tiles] || ring2outfeed_row_ready;
    for (int t = 0; t < Tiles; t++) begin
      if (asked.targets[t] && !ring2tiles_row_ready[t][asked.channel]) room = 1'b0;
    end
  endfunction

  // Receivers keep their room until a row has come.
  logic [Tiles-1:0][1:0] had_room;
  logic outfeed_had_room, all_keep;
  always_ff @(posedge clk) begin
    had_room <= rst_n ? ring2tiles_row_ready & ~ring2tiles_row_valid : '0;
    outfeed_had_room <= rst_n && ring2outfeed_row_ready && !ring2outfeed_row_valid;
  end
  assign all_keep = (had_room & ~ring2tiles_row_ready) == '0 &&
      (!outfeed_had_room || ring2outfeed_row_ready);

  // The first sender that can be served when the bus is free, and for how long one has waited since.
  logic [4:0] first;
  logic any, carrying;
  logic [7:0] waiting;
  always_comb begin
    any   = 1'b0;
    first = '0;
    for (int s = Tiles; s >= 0; s--) begin
      if (valid[s] && room(rows[s])) begin
        any   = 1'b1;
        first = 5'(s);
      end
    end
  end
  logic [4:0] carried;
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      carrying <= 1'b0;
      waiting  <= '0;
    end else if (!carrying) begin
      carrying <= any;
      carried  <= first;
      waiting  <= 8'd1;
    end else begin
      carrying <= ready == '0;
      waiting  <= waiting + 8'd1;
    end
  end

  // A row that can be served: for how long nobody before it could be, and how many rows of those behind
  // it have arrived meanwhile.
  logic can, blocked;
  logic [7:0] alone, overtaken;
  assign can = valid[sender] && room(row);
  always_comb begin
    blocked = 1'b0;
    for (int s = 0; s <= Tiles; s++) begin
      if (5'(s) < sender && valid[s] && room(rows[s])) blocked = 1'b1;
    end
  end
  always_ff @(posedge clk) begin
    alone <= rst_n && can && !blocked && !ready[sender] ? alone + 8'd1 : '0;
    if (!rst_n || !can || ready[sender]) overtaken <= '0;
    else overtaken <= overtaken + 8'((ready >> sender) != '0);
  end

  always_ff @(posedge clk) begin
    if (rst_n) begin
      assume_there : assume (sender <= 5'(Tiles) && tile < 5'(Tiles));
      assume_kept : assume (all_keep);
      assert_one_at_a_time : assert ((ready & (ready - 1'b1)) == '0);
      assert_none_invented :
      assert (!(ring2tiles_row_valid[tile][channel] || ring2outfeed_row_valid) || (ready & valid) != '0);
      assert_arrives_at_its_receivers :
      assert (!ready[sender] || (valid[sender] &&
              ring2tiles_row_valid[tile][channel] == (row.targets[tile] && row.channel == channel) &&
              ring2outfeed_row_valid == row.targets[tile_pkg::Tiles]));
      assert_arrives_whole :
      assert (!ready[sender] ||
              (ring2tiles_row_data[word] == (row.first ^ 32'(word)) &&
              ring2tiles_row_words == row.words));
      assert_receivers_have_room :
      assert ((!ring2tiles_row_valid[tile][channel] || ring2tiles_row_ready[tile][channel]) &&
              (!ring2outfeed_row_valid || ring2outfeed_row_ready));
      assert_first_goes_first : assert (!carrying || ready == '0 || ready[carried]);
      assert_never_idle :
      assert (!carrying || (waiting < 8'(CyclesPerRow) && (ready != '0) == (waiting == 8'(CyclesPerRow - 1))));
      assert_token :
      assert (!ready[sender] || !row.token || (ring2tiles_token_valid == 2'b01 << row.channel &&
              !infeed2ring_token_ready));
      assert_served_when_alone : assert (alone < 8'(2 * CyclesPerRow));
      assert_overtaken_once : assert (overtaken <= 8'd1);
      lemma_alone :
      assert (alone <= (carrying && carried != sender ? waiting :
                        8'(CyclesPerRow) + (carrying ? waiting : 8'd0)));
      lemma_overtaken :
      assert (overtaken == '0 || (overtaken == 8'd1 && (!carrying || carried <= sender)));
      lemma_carrying :
      assert (ring.carrying == carrying && (!carrying || (5'(ring.sender) == carried && carried <= 5'(Tiles) &&
              8'(ring.left) + waiting == 8'(CyclesPerRow - 1) && valid[carried] && room(
          rows[carried]
      ))));
      cover_all_wait : cover (&valid && ready[Tiles]);
      cover_to_two :
      cover (ready[sender] && row.targets[tile] && row.targets[tile_pkg::Tiles] && row.token);
    end
  end

endmodule : ring_proof
