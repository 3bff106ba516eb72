// Conditions and handshakes of the scalar core's units and of the ring, whose pairs are counted
// (coincidence_counter.sv). Fields are the names of bins (tests/support/core_coincidences.py).

module core_coincidences (
    input logic clk,
    input logic rst_n
);

  typedef struct packed {
    logic ring_carries;
    logic row_lacks_room;       // one is offered, the ring is free, and a receiver is full
    logic senders_compete;      // several have a row that may go
    logic outfeed_full;         // of rows
    logic row_in_outfeed;
    logic unit_waits_for_flag;
    logic unit_waits_for_host;
    logic output_full;
    logic beat_waits;           // for the DMA engine
    logic output_unanswered;    // on the bus
    logic activations_full;
    logic parameters_full;
    logic pop_lacks_bytes;
    logic infeed_waits;         // for a flag
    logic row_waits_for_ring;   // of the infeed
    logic pop_queue_full;
    logic infeed_queue_full;
    logic outfeed_queue_full;
    logic tiles_lack;           // some tiles have an instruction and others have no room
    logic fence_at_head;
  } levels_t;

  typedef struct packed {
    logic last_unit_popped;
    logic last_row_of_infeed;
    logic last_unit_of_outfeed;
    logic rest_dropped;          // of a row in the outfeed
    logic row_of_tile_arrives;
    logic last_word_on_bus;
  } events_t;

  typedef struct packed {
    logic pop_given;
    logic infeed_given;
    logic outfeed_given;
    logic tiles_given;
    logic fence_passes;
    logic pop_begins;
    logic infeed_begins;
    logic outfeed_begins;
    logic activation_popped;
    logic parameter_popped;
    logic activations_arrive;
    logic parameters_arrive;
    logic unit_gathered;
    logic turn_in_a_row;
    logic turn_with_a_row;
    logic ring_begins;
    logic row_at_tile;
    logic row_at_outfeed;
    logic unit_for_host;
    logic word_for_memory;
    logic word_of_core;
    logic beat_taken;
    logic word_on_bus;
    logic bus_answers;
    logic tile_fence_counted;
  } handshakes_t;

  logic any_row;
  assign any_row = chip.infeed2ring_row_valid || chip.tiles2ring_row_valid != '0;

  levels_t levels;
  assign levels = '{
          ring_carries: chip.ring.carrying,
          row_lacks_room: any_row && !chip.ring.carrying && chip.ring.offers == '0,
          senders_compete: !chip.ring.carrying && $countones(chip.ring.offers) > 1,
          outfeed_full: !chip.ring2outfeed_row_ready,
          row_in_outfeed: chip.outfeed.row_valid,
          unit_waits_for_flag:
          chip.outfeed.step.valid
          &&
          chip.outfeed.row_valid
          && !
          chip.outfeed.takes,
          unit_waits_for_host: chip.outfeed2output_unit_valid && !chip.outfeed2output_unit_ready,
          output_full: !chip.output_bytes.in_ready,
          beat_waits: chip.outfeed2dma_output_valid && !chip.outfeed2dma_output_ready,
          output_unanswered: chip.output_bytes.unanswered != '0,
          activations_full: !chip.dma2input_activation_ready,
          parameters_full: !chip.dma2input_parameter_ready,
          pop_lacks_bytes:
          (
          chip.activation_pop.step.valid && chip.activation_pop.pass && !chip.activation_pop.advance
          ) || (
          chip.parameter_pop.step.valid && chip.parameter_pop.pass && !chip.parameter_pop.advance
          ),
          infeed_waits: chip.infeed.step.valid && !chip.infeed.passes,
          row_waits_for_ring: chip.infeed2ring_row_valid && !chip.infeed2ring_row_ready,
          pop_queue_full:
          !
          chip.core2activation_instruction_ready
          || !
          chip.core2parameter_instruction_ready,
          infeed_queue_full: !chip.core2infeed_instruction_ready,
          outfeed_queue_full: !chip.core2outfeed_instruction_ready,
          tiles_lack: chip.dispatch.taken != '0,
          fence_at_head: chip.core2fence_instruction_valid
      };

  events_t events;
  assign events = '{
          last_unit_popped:
          (
          chip.activation_pop.advance && chip.activation_pop.step.last
          ) || (
          chip.parameter_pop.advance && chip.parameter_pop.step.last
          ),
          last_row_of_infeed: chip.infeed.advance && chip.infeed.step.last,
          last_unit_of_outfeed: chip.outfeed.advance && chip.outfeed.step.last,
          rest_dropped: chip.outfeed.row_taken && chip.outfeed.next < 7'd64,
          row_of_tile_arrives: chip.ring.arrives && chip.ring.sender != '0,
          last_word_on_bus: chip.bus2output_word_valid && chip.bus2output_word_last
      };

  logic given;
  assign given = chip.core2units_instruction_valid && chip.core2units_instruction_ready;

  handshakes_t handshakes;
  assign handshakes = '{
          pop_given:
          given
          && (
          chip.core2activation_instruction_valid || chip.core2parameter_instruction_valid
          ),
          infeed_given: given && chip.core2infeed_instruction_valid,
          outfeed_given: given && chip.core2outfeed_instruction_valid,
          tiles_given:
          (
          chip.core2tiles_instruction_valid & chip.core2tiles_instruction_ready
          ) != '0,
          fence_passes: chip.fence_load_valid,
          pop_begins: chip.activation_pop.start || chip.parameter_pop.start,
          infeed_begins: chip.infeed.start,
          outfeed_begins: chip.outfeed.start,
          activation_popped: chip.activation_pop.advance,
          parameter_popped: chip.parameter_pop.advance,
          activations_arrive: chip.dma2input_activation_valid && chip.dma2input_activation_ready,
          parameters_arrive: chip.dma2input_parameter_valid && chip.dma2input_parameter_ready,
          unit_gathered: chip.infeed.advance,
          turn_in_a_row: chip.infeed2ring_token_valid && chip.infeed2ring_token_ready,
          turn_with_a_row: chip.ring.passes,
          ring_begins: !chip.ring.carrying && chip.ring.offers != '0,
          row_at_tile: chip.ring2tiles_row_valid != '0,
          row_at_outfeed: chip.ring2outfeed_row_valid,
          unit_for_host: chip.outfeed2output_unit_valid && chip.outfeed2output_unit_ready,
          word_for_memory: chip.outfeed2memory_write_valid,
          word_of_core: chip.core2output_word_valid && chip.core2output_word_ready,
          beat_taken: chip.outfeed2dma_output_valid && chip.outfeed2dma_output_ready,
          word_on_bus: chip.bus2output_word_valid,
          bus_answers: chip.bus2output_answer_valid,
          tile_fence_counted: chip.tiles2fence_passed_valid != '0
      };

  coincidence_counter #(
      .Record(2),
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

endmodule : core_coincidences
