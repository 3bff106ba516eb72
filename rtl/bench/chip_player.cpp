// The C++ side of chip_player.sv: hand-over of instructions, descriptors and pushed words. Host memory is in
// host_memory.cpp; Python opens both as one library.

#include "Vchip_player.h"
#include "Vchip_player___024root.h"
#include "chip_sizes.h"
#include "player.h"

namespace {

enum EventKind : uint32_t { LINES, REFUSED, MEMORY_ERROR };

// What a time-out shows: bit sets and 16-bit flags, as the ports hold them.
struct Status {
    uint64_t rows;
    uint32_t started;
    uint32_t completed;
    uint32_t units_idle;
    uint32_t tiles_idle;
    uint32_t tile_units_idle[5];
    uint16_t scalar_flags[chip_sizes::ScalarFlags];
    uint16_t tile_flags[chip_sizes::Tiles][chip_sizes::TileFlags];
};

// Random stalls: the state of xorshift64, 0 for none; and how many of four cycles.
uint64_t stall_state = 0;
uint64_t stalled_quarters = 1;

bool waits_at_random() {
    if (!stall_state) return false;
    stall_state ^= stall_state << 13;
    stall_state ^= stall_state >> 7;
    stall_state ^= stall_state << 17;
    return (stall_state >> 32 & 3) >= 4 - stalled_quarters;
}

constexpr unsigned OUTPUT_DONE = 3;  // completion event of outputs and interrupts

template <typename Port> void copy_port(void* target, size_t size, const Port& port) {
    memcpy(target, &port, sizeof(port) < size ? sizeof(port) : size);
}

class ChipPlayer : public Player<Vchip_player> {
  public:
    ChipPlayer(int seed, const char* argument) : Player(seed, argument) { reset(); }

    // Offers something until it is taken; see `wait`.
    template <typename Ready> uint32_t offer(uint8_t& valid, uint64_t limit, Ready ready) {
        while (waits_at_random()) cycle();
        valid = 1;
        const uint32_t outcome = wait(limit, ready);
        valid = 0;
        return outcome;
    }

    bool idle() const {
        return top->units2monitor_all_idle && top->queue2monitor_idle &&
               outputs_issued == outputs_done;
    }

    const Status& look() {
        status.units_idle = top->units2monitor_idle;
        status.tiles_idle = top->tiles2monitor_idle;
        copy_port(status.tile_units_idle, sizeof(status.tile_units_idle), top->tiles2monitor_units);
        copy_port(status.scalar_flags, sizeof(status.scalar_flags), top->flags2monitor_values);
        copy_port(status.tile_flags, sizeof(status.tile_flags), top->tiles2monitor_flags);
        return status;
    }

    Status status = {};
    std::vector<uint8_t> instructions;  // bytes of the instruction stream
    uint64_t outputs_issued = 0;
    uint64_t outputs_done = 0;

  private:
    void rest() override {
        top->core2queue_chunk_valid = 0;
        top->core2units_instruction_valid = 0;
        top->core2dma_descriptor_valid = 0;
        top->core2output_word_valid = 0;
    }

    void forget() override {
        status = {};
        instructions.clear();
        outputs_issued = outputs_done = 0;
        lines = 0;
    }

    void watch() override {
        if (top->dma2core_instruction_valid) {
            uint8_t bytes[sizeof(top->dma2core_instruction_data)];
            memcpy(bytes, &top->dma2core_instruction_data, sizeof(bytes));
            instructions.insert(instructions.end(), bytes,
                                bytes + top->dma2core_instruction_count);
        }
        status.rows += top->ring2monitor_row_valid;
        if (top->dma2host_interrupt != lines) note(LINES, lines = top->dma2host_interrupt);
        if (top->memory2monitor_error_valid) note(MEMORY_ERROR, 0);
        if (top->dma2monitor_start_valid) {
            status.started++;
            if (top->dma2monitor_start_outcome) note(REFUSED, top->dma2monitor_start_index);
        }
        if (top->dma2monitor_done_valid) {
            status.completed += __builtin_popcount(top->dma2monitor_done_valid);
            outputs_done += top->dma2monitor_done_valid >> OUTPUT_DONE & 1;
        }
    }

    void note(uint32_t kind, uint32_t index) {
        events.push_back({static_cast<uint32_t>(cycles), kind, index});
    }

    bool has_moved() override {
        const Status now = look();
        const bool moved = memcmp(&now, &seen, sizeof(now)) != 0;
        seen = now;
        return moved;
    }

    Status seen = {};
    uint8_t lines = 0;  // of interrupts
};

using ThisPlayer = ChipPlayer;

}  // namespace

#include "player_functions.h"

extern "C" {

void memory_seed(uint64_t seed);  // in host_memory.cpp

// From now on each handshake that may be stalled is so in a quarter of its cycles, by the seed.
void chip_stall(uint64_t seed) {
    stall_state = seed * 0x9e3779b97f4a7c15 + 0x2545f4914f6cdd1d;
    if (!stall_state) stall_state = 1;
    memory_seed(seed);
}

// From now on each such handshake waits in so many quarters of its cycles: 0 to 3.
void chip_stalled_quarters(uint64_t quarters) { stalled_quarters = quarters; }

// For the RTL, if it is built with STALLS.
uint8_t random_stall() { return waits_at_random(); }

// The scalar core asks for the next chunk of the instruction queue.
uint32_t chip_take_chunk(ChipPlayer* player, uint32_t* size, uint64_t limit) {
    Vchip_player& chip = *player->top;
    return player->offer(chip.core2queue_chunk_valid, limit, [&] {
        *size = chip.queue2core_chunk_size;
        return chip.core2queue_chunk_ready;
    });
}

uint32_t chip_hand_over(ChipPlayer* player, const uint8_t* bits, uint32_t bytes, uint32_t tiles,
                        uint32_t base_valid, uint32_t base, uint64_t limit) {
    Vchip_player& chip = *player->top;
    memset(&chip.core2units_instruction_bits, 0, sizeof(chip.core2units_instruction_bits));
    memcpy(&chip.core2units_instruction_bits, bits, bytes);
    chip.core2units_instruction_tiles = tiles;
    chip.core2units_instruction_base_valid = base_valid;
    chip.core2units_instruction_base = base;
    return player->offer(chip.core2units_instruction_valid, limit,
                         [&] { return chip.core2units_instruction_ready; });
}

uint32_t chip_descriptor(ChipPlayer* player, uint32_t fence, uint32_t tag, uint32_t size,
                         uint64_t address, uint64_t limit) {
    Vchip_player& chip = *player->top;
    chip.core2dma_descriptor_fence = fence;
    chip.core2dma_descriptor_tag = tag;
    chip.core2dma_descriptor_size = size;
    chip.core2dma_descriptor_address = address;
    player->outputs_issued += !fence && tag >= OUTPUT_DONE;
    return player->offer(chip.core2dma_descriptor_valid, limit,
                         [&] { return chip.core2dma_descriptor_ready; });
}

uint32_t chip_push(ChipPlayer* player, uint32_t word, uint64_t limit) {
    Vchip_player& chip = *player->top;
    chip.core2output_word_data = word;
    return player->offer(chip.core2output_word_valid, limit,
                         [&] { return chip.core2output_word_ready; });
}

// Waits for the next `count` bytes of the instruction stream.
uint32_t chip_fetch(ChipPlayer* player, uint8_t* target, uint64_t count, uint64_t limit) {
    uint32_t outcome =
        player->wait(limit, [&] { return player->instructions.size() >= count; });
    if (outcome != DONE) return outcome;
    memcpy(target, player->instructions.data(), count);
    player->instructions.erase(player->instructions.begin(),
                               player->instructions.begin() + static_cast<long>(count));
    return DONE;
}

// Waits until no unit has anything to do and all outputs and interrupts have left.
uint32_t chip_settle(ChipPlayer* player, uint64_t limit) {
    return player->wait(limit, [&] { return player->idle(); });
}

const Status* chip_status(ChipPlayer* player) { return &player->look(); }

// Memories and flags in place.

uint32_t* chip_scalar_memory(ChipPlayer* player) {
    return player->top->rootp->chip_player__DOT__chip__DOT__memory__DOT__words.m_storage;
}

uint64_t* chip_activations(ChipPlayer* player) {
    return player->top->rootp
        ->chip_player__DOT__chip__DOT__activation_buffer__DOT__entries.m_storage;
}

uint32_t* chip_parameters(ChipPlayer* player) {
    return player->top->rootp
        ->chip_player__DOT__chip__DOT__parameter_buffer__DOT__entries[0].m_storage;
}

uint16_t* chip_scalar_flags(ChipPlayer* player) {
    return reinterpret_cast<uint16_t*>(
        player->top->rootp->chip_player__DOT__chip__DOT__scalar_flags__DOT__values.m_storage);
}
}
