// The memories of a tile as whoever drives it sees them, whatever they are made of: an array each
// (tile_arrays.cpp), or block RAM (tile_banks.cpp).

#pragma once

#include <cstdint>
#include <vector>

class Vtile___024root;

class TileMemories {
  public:
    explicit TileMemories(Vtile___024root& root);

    void to_tile();    // what was written from outside; before a run
    void from_tile();  // what the tile holds; behind it

    uint8_t* narrow;
    uint32_t* wide;

  private:
    Vtile___024root& root;
    std::vector<uint8_t> copy;  // of what does not lie in the tile as it is seen
};
