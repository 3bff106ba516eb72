// What rows are made of in the proof of the ring bus.

package ring_proof_pkg;
  // What a row is made of here: no two of its words are equal, and any of them may be anything.
  typedef struct packed {
    logic [tile_pkg::Tiles:0] targets;
    logic channel;
    logic token;
    logic [6:0] words;
    logic [31:0] first;
  } sent_t;
endpackage : ring_proof_pkg
