// Which conditions and handshakes of a unit have come together, for functional coverage: a level that
// begins, lasts or has just ended, the first cycle of reset, or another event, beside each handshake.
// A level is there for a while; an event is there for a cycle. Each pair is told to coincidences.cpp once.

module coincidence_counter #(
    parameter int Record = 0,  // number of the unit's record
    parameter int Levels = 1,
    parameter int Events = 1,
    parameter int Handshakes = 1
) (
    input logic clk,
    input logic rst_n,
    input logic [Levels-1:0] levels,
    input logic [Events-1:0] events,
    input logic [Handshakes-1:0] handshakes
);

  import "DPI-C" function void coincided(
    int unsigned record,
    int unsigned pair
  );

  localparam int Conditions = 3 * Levels + 1 + Events;

  logic [Levels-1:0] levels_before;
  logic reset_before, in_first_cycle;
  initial reset_before = 1'b1;
  assign in_first_cycle = !rst_n && !reset_before;

  // In reset nothing comes together but in its first cycle, when it has not yet taken effect.
  logic [Conditions-1:0] conditions;
  assign conditions = rst_n ? {
    levels & ~levels_before, levels & levels_before, ~levels & levels_before, 1'b0, events
  } : (Conditions'(in_first_cycle) << Events);

  // A bit for each pair: of the conditions in the order above, each with all handshakes.
  logic [Conditions-1:0][Handshakes-1:0] pairs;
  initial pairs = '0;
  always @(posedge clk) begin
    reset_before  <= !rst_n;
    levels_before <= levels;
    for (int c = 0; c < Conditions; c++) begin
      if (conditions[c] && (handshakes & ~pairs[c]) != '0) begin
        pairs[c] <= pairs[c] | handshakes;
        for (int h = 0; h < Handshakes; h++) begin
          if (handshakes[h] && !pairs[c][h]) coincided(Record, Handshakes * c + h);
        end
      end
    end
  end

endmodule : coincidence_counter
