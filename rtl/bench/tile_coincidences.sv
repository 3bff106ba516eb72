// Conditions and handshakes of the units of a tile, whose pairs are counted (coincidence_counter.sv).
// Fields are the names of bins (tests/support/tile_coincidences.py).

module tile_coincidences
  import tile_pkg::*;
(
    input logic clk,
    input logic rst_n
);

  typedef struct packed {
    logic queue_full;            // of the tile
    logic unit_full;             // the first instruction waits for room at its unit
    logic fence_at_head;
    logic iteration_waits;       // for a flag
    logic sums_wait;             // for the way out
    logic results_leave;
    logic row_waits_for_ring;
    logic row_a_held;            // by the consumer of channel A
    logic row_b_held;
    logic row_packed;            // and not written yet
    logic word_waits_to_pack;
    logic word_waits_to_spread;
    logic words_full;            // those that have arrived on a link
    logic words_wait;            // for room at a neighbour
    logic words_here;            // have arrived on a link
  } levels_t;

  typedef struct packed {
    logic last_iteration;
    logic last_result;
    logic last_row_packed;
    logic last_word_spread;
    logic last_row_sent;
    logic last_row_consumed;
    logic last_word_sent;
    logic last_word_received;
  } events_t;

  typedef struct packed {
    logic instruction_taken;
    logic tensor_begins;
    logic packer_begins;
    logic spreader_begins;
    logic sender_begins;
    logic consumer_begins;
    logic link_begins;
    logic fence_passes;
    logic iteration;
    logic sums_leave;
    logic sums_written;
    logic result_written;
    logic word_packed;
    logic row_written;
    logic row_read;
    logic word_spread;
    logic scales_written;
    logic row_sent;
    logic row_arrives;
    logic row_consumed;
    logic word_sent;
    logic word_arrives;
    logic word_received;
    logic turn_counted;
  } handshakes_t;

  logic [1:0] row_held, row_arrives, row_consumed, last_row_consumed;
  for (genvar c = 0; c < 2; c++) begin : gen_channel_view
    assign row_held[c] = gen_channel[c].receiver.arrived_valid;
    assign row_arrives[c] = gen_channel[c].receiver.arrives;
    assign row_consumed[c] = gen_channel[c].receiver.writes;
    assign last_row_consumed[c] = row_consumed[c] && gen_channel[c].receiver.write_step.last;
  end

  logic [Links-1:0] here, sent, received, last_sent, last_received;
  for (genvar k = 0; k < Links; k++) begin : gen_link_view
    assign here[k] = gen_link[k].link.arrived_valid;
    assign sent[k] = gen_link[k].link.sends;
    assign received[k] = gen_link[k].link.receives;
    assign last_sent[k] = sent[k] && gen_link[k].link.read_step.last;
    assign last_received[k] = received[k] && gen_link[k].link.write_step.last;
  end

  logic [Units-1:0] begins;
  assign begins = tile.instruction_valid & tile.instruction_ready;

  levels_t levels;
  assign levels = '{
          queue_full: !tile.core2tile_instruction_ready,
          unit_full: queue.leaving && !queue.fence && !queue.left,
          fence_at_head: tile.queue2fence_instruction_valid,
          iteration_waits: 2'(tensor.state) == 2'd2 && tensor.main_step.valid && !tensor.passes,
          sums_wait:
          2'(
          tensor.state
          ) == 2'd2 &&
          tensor.main_step.valid
          &&
          tensor.leaves
          && !
          tensor.output_ready,
          results_leave: tensor.way_out.busy,
          row_waits_for_ring: tile.tile2ring_row_valid && !tile.tile2ring_row_ready,
          row_a_held: row_held[0],
          row_b_held: row_held[1],
          row_packed: packer.closed,
          word_waits_to_pack: packer.read_step.valid && !packer.gathers,
          word_waits_to_spread: spreader.write_step.valid && !spreader.writes,
          words_full: tile.mesh2tile_word_ready != '1,
          words_wait: (tile.tile2mesh_word_valid & ~tile.tile2mesh_word_ready) != '0,
          words_here: here != '0
      };

  events_t events;
  assign events = '{
          last_iteration: tensor.take && tensor.main_step.last,
          last_result: tensor.way_out.busy && tensor.way_out.write_step.last,
          last_row_packed: packer.writes && packer.write_step.last,
          last_word_spread: spreader.writes && spreader.write_step.last,
          last_row_sent: sender.sends && sender.read_step.last,
          last_row_consumed: last_row_consumed != '0,
          last_word_sent: last_sent != '0,
          last_word_received: last_received != '0
      };

  handshakes_t handshakes;
  assign handshakes = '{
          instruction_taken: tile.core2tile_instruction_valid && tile.core2tile_instruction_ready,
          tensor_begins: begins[isa_pkg::TILE_UNIT_TENSOR],
          packer_begins: begins[isa_pkg::TILE_UNIT_NARROW_TO_WIDE],
          spreader_begins: begins[isa_pkg::TILE_UNIT_WIDE_TO_NARROW],
          sender_begins: begins[isa_pkg::TILE_UNIT_RING_PRODUCER],
          consumer_begins: begins[isa_pkg::TILE_UNIT_RING_CONSUMER_A+:2] != '0,
          link_begins: begins[isa_pkg::TILE_UNIT_MESH_SOUTH+:Links] != '0,
          fence_passes: tile.load_valid,
          iteration: tensor.take,
          sums_leave: tensor.take && tensor.leaves,
          sums_written: tensor.unit2wide_write_valid,
          result_written: tensor.unit2narrow_write_valid,
          word_packed: packer.gathers,
          row_written: packer.writes,
          row_read: spreader.reads,
          word_spread: spreader.unit2narrow_write_valid,
          scales_written: spreader.unit2scale_write_valid,
          row_sent: sender.sends,
          row_arrives: row_arrives != '0,
          row_consumed: row_consumed != '0,
          word_sent: sent != '0,
          word_arrives: (tile.mesh2tile_word_valid & tile.mesh2tile_word_ready) != '0,
          word_received: received != '0,
          turn_counted: tile.ring2tile_token_valid != '0
      };

  coincidence_counter #(
      .Record(1),
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

endmodule : tile_coincidences
