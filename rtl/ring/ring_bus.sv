// Ring bus: carries one row at a time from the infeed or a tile to tiles and to the outfeed.
// A row takes `CyclesPerRow` cycles, so that what it feeds has done with the row before.

module ring_bus
  import isa_pkg::*;
  import tile_pkg::produce_t;
  import tile_pkg::ring_row_t;
  import tile_pkg::row_t;
#(
    parameter int Tiles = chip_pkg::Tiles,
    parameter int CyclesPerRow = harness_pkg::RingRowCycles
) (
    input logic clk,
    input logic rst_n,

    input  logic      infeed2ring_row_valid,
    output logic      infeed2ring_row_ready,
    input  ring_row_t infeed2ring_row_data,
    input  logic      infeed2ring_token_valid,
    output logic      infeed2ring_token_ready,
    input  logic      infeed2ring_token_channel,

    input  logic      [Tiles-1:0] tiles2ring_row_valid,
    output logic      [Tiles-1:0] tiles2ring_row_ready,
    input  ring_row_t             tiles2ring_row_data [Tiles],

    // By tile and channel.
    output logic [Tiles-1:0][1:0] ring2tiles_row_valid,
    input  logic [Tiles-1:0][1:0] ring2tiles_row_ready,
    output row_t                  ring2tiles_row_data,
    output logic [      6:0]      ring2tiles_row_words,
    output logic [      1:0]      ring2tiles_token_valid,

    output logic ring2outfeed_row_valid,
    input  logic ring2outfeed_row_ready,

    output produce_t [1:0] ring2flags_produce
);

  localparam int Senders = Tiles + 1;  // the infeed first
  localparam int SenderBits = $clog2(Senders);
  localparam int LeftBits = $clog2(CyclesPerRow + 1);

  logic [Senders-1:0] offers;  // a row that every receiver has room for
  logic carrying;
  logic [SenderBits-1:0] sender;
  logic [LeftBits-1:0] left;
  logic arrives;
  ring_row_t row;

  function automatic logic has_room(input logic [tile_pkg::Tiles:0] targets, input logic channel,
                                    input logic [Tiles-1:0][1:0] tiles_ready,
                                    input logic outfeed_ready);
    has_room = !targets[tile_pkg::Tiles] || outfeed_ready;
    for (int t = 0; t < Tiles; t++) begin
      if (targets[t] && !tiles_ready[t][channel]) has_room = 1'b0;
    end
  endfunction

  always_comb begin
    offers[0] = infeed2ring_row_valid && has_room(
      infeed2ring_row_data.targets,
      infeed2ring_row_data.channel,
      ring2tiles_row_ready,
      ring2outfeed_row_ready
    );
    for (int t = 0; t < Tiles; t++) begin
      offers[t+1] = tiles2ring_row_valid[t] && has_room(
        tiles2ring_row_data[t].targets,
        tiles2ring_row_data[t].channel,
        ring2tiles_row_ready,
        ring2outfeed_row_ready
      );
    end
  end

  // A build with STALLS leaves rows waiting at random.
`ifdef STALLS
  import "DPI-C" function bit random_stall();
  function automatic logic stalls();
    return random_stall();
  endfunction
`else
  function automatic logic stalls();
    return 1'b0;
  endfunction
`endif

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      carrying <= 1'b0;
      sender <= '0;
      left <= '0;
    end else if (!carrying) begin
      carrying <= offers != '0 && !stalls();
      left <= LeftBits'(CyclesPerRow - 2);
      for (int s = Senders - 1; s >= 0; s--) begin
        if (offers[s]) sender <= SenderBits'(s);
      end
    end else begin
      carrying <= left != '0;
      left <= left - 1'b1;
    end
  end

  assign arrives = carrying && left == '0;
  always_comb begin
    row = infeed2ring_row_data;
    for (int t = 0; t < Tiles; t++) begin
      if (sender == SenderBits'(t + 1)) row = tiles2ring_row_data[t];
    end
  end

  assign infeed2ring_row_ready = arrives && sender == '0;
  for (genvar t = 0; t < Tiles; t++) begin : gen_tile
    assign tiles2ring_row_ready[t] = arrives && sender == SenderBits'(t + 1);
    for (genvar c = 0; c < 2; c++) begin : gen_channel
      assign ring2tiles_row_valid[t][c] = arrives && row.targets[t] && row.channel == 1'(c);
    end
  end
  assign ring2tiles_row_data = row.data;
  assign ring2tiles_row_words = row.words;
  assign ring2outfeed_row_valid = arrives && row.targets[tile_pkg::Tiles];

  // A turn ends with a row, or in the middle of one that the infeed gathers. The scalar core counts
  // the turns of tiles, and rows on channel B for the outfeed on the flag of channel A as well.
  logic passes;
  assign passes = arrives && row.token;
  assign infeed2ring_token_ready = !passes;
  for (genvar c = 0; c < 2; c++) begin : gen_token
    assign ring2tiles_token_valid[c] = passes ? row.channel == 1'(c) :
        infeed2ring_token_valid && infeed2ring_token_channel == 1'(c);
  end
  assign ring2flags_produce[0] = tile_pkg::produce(
      passes && sender != '0 && (!row.channel || row.targets[tile_pkg::Tiles]),
      1'b1,
      5'(SCALAR_FLAG_RING_PRODUCER_A)
  );
  assign ring2flags_produce[1] = tile_pkg::produce(
      passes && sender != '0 && row.channel, 1'b1, 5'(SCALAR_FLAG_RING_PRODUCER_B)
  );

`ifndef SYNTHESIS
  assert_sender_keeps_its_row :
  assert property (@(posedge clk) disable iff (!rst_n) carrying |->
      (sender == '0 ? infeed2ring_row_valid : 1'(tiles2ring_row_valid >> (sender - 1'b1))))
  else $error("a sender withdrew its row");
  assert_receivers_have_room :
  assert property (@(posedge clk) disable iff (!rst_n) arrives |-> has_room(
      row.targets, row.channel, ring2tiles_row_ready, ring2outfeed_row_ready
  ))
  else $error("a row arrives where there is no room");
`endif

endmodule : ring_bus
