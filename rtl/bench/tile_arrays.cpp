// Memories of a tile whose MemoryClockRatio is 1: they are seen in place.

#include "Vtile___024root.h"
#include "tile_memories.h"

TileMemories::TileMemories(Vtile___024root& root)
    : narrow(&root.tile__DOT__narrow__DOT__gen_array__DOT__bytes[0]),
      wide(root.tile__DOT__wide__DOT__gen_array__DOT__rows[0].data()),
      root(root) {}

void TileMemories::to_tile() {}

void TileMemories::from_tile() {}
