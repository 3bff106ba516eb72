// Memories of a tile in block RAM: wide memory is seen in place, narrow memory, which has a bank for
// each byte of a word, in a copy.

#include "Vtile___024root.h"
#include "tile_memories.h"

namespace {

constexpr unsigned BANKS = 4;

template <typename Bank>
void put(Bank& bank, const std::vector<uint8_t>& bytes, unsigned number) {
    for (size_t k = number; k < bytes.size(); k += BANKS) bank[k / BANKS] = bytes[k];
}

template <typename Bank>
void get(const Bank& bank, std::vector<uint8_t>& bytes, unsigned number) {
    for (size_t k = number; k < bytes.size(); k += BANKS) bytes[k] = bank[k / BANKS];
}

}  // namespace

#define BANK(number) \
    root.tile__DOT__narrow__DOT__gen_banks__DOT__gen_byte__BRA__##number##__KET____DOT__bank__DOT__words

TileMemories::TileMemories(Vtile___024root& root)
    : wide(root.tile__DOT__wide__DOT__gen_bank__DOT__bank__DOT__words[0].data()),
      root(root),
      copy(BANKS * (sizeof(BANK(0)) / sizeof(BANK(0)[0]))) {
    narrow = copy.data();
    from_tile();
}

void TileMemories::to_tile() {
    put(BANK(0), copy, 0);
    put(BANK(1), copy, 1);
    put(BANK(2), copy, 2);
    put(BANK(3), copy, 3);
}

void TileMemories::from_tile() {
    get(BANK(0), copy, 0);
    get(BANK(1), copy, 1);
    get(BANK(2), copy, 2);
    get(BANK(3), copy, 3);
}
