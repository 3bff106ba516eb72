// The C++ side of a single tile: gives it instructions, rows and words, takes what it sends, and
// lets whoever drives it (Python, through ctypes) read and write its memories in place.

#include <verilated.h>
#if VM_COVERAGE
#include <verilated_cov.h>
#endif

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "Vtile.h"
#include "Vtile___024root.h"
#include "chip_sizes.h"
#include "messages.h"
#include "tile_memories.h"

namespace {

constexpr uint32_t kLinks = 4;
constexpr uint32_t kChannels = 2;
constexpr uint32_t kRowWords = 64;
constexpr uint32_t kInstructionWords = VL_WORDS_I(2176);

struct Instruction {
    uint32_t words[kInstructionWords];
    int64_t base;  // -1: the instruction's own
};

struct Row {
    uint32_t targets;  // of a row that arrives: its channel
    uint32_t channel;
    uint32_t token;
    uint32_t words;
    uint32_t data[kRowWords];
};

struct Bench {
    VerilatedContext context;
    std::unique_ptr<Vtile> tile;
    std::unique_ptr<TileMemories> memories;
    uint32_t memory_clock_ratio = 1;
    std::deque<Instruction> instructions;
    std::deque<uint32_t> words_in[kLinks];
    std::vector<uint32_t> words_out[kLinks];
    std::deque<Row> rows_in[kChannels];
    std::vector<Row> rows_out;
    uint64_t cycle = 0;
    uint32_t fences = 0;
    uint64_t random = 1;
    uint32_t stalls = 0;
    bool failed = false;
    char failure[512] = "";
};

// A failed assertion is told to the bench that runs: the simulation stops, the process does not.
Bench* running = nullptr;

// One of `stalls` in 256 transfers with the world outside the tile has to wait.
bool stalled(Bench& bench) {
    bench.random ^= bench.random << 13;
    bench.random ^= bench.random >> 7;
    bench.random ^= bench.random << 17;
    return (bench.random >> 32 & 255) < bench.stalls;
}

void evaluate(Bench& bench, int clock) {
    bench.tile->clk = clock;
    bench.tile->clk_memory = clock;
    bench.tile->eval();
    bench.context.timeInc(1);
    // The further edges of clk_memory in a cycle of clk.
    for (uint32_t k = 2 * bench.memory_clock_ratio - 2; clock && k > 0; k--) {
        bench.tile->clk_memory = k & 1;
        bench.tile->eval();
    }
}

template <size_t N>
void take_row(Row& row, const VlWide<N>& packed) {
    // The record of tile_pkg::ring_row_t: targets, channel, token, words above the data.
    memcpy(row.data, packed.data(), sizeof row.data);
    const uint32_t head = packed[kRowWords];
    row.words = head & 0x7f;
    row.token = head >> 7 & 1;
    row.channel = head >> 8 & 1;
    row.targets = head >> 9 & ((2u << chip_sizes::Tiles) - 1);
}

// One cycle: what the tile is offered is decided before the clock edge, what it takes and gives is
// read at the edge.
void step(Bench& bench) {
    Vtile& tile = *bench.tile;
    tile.core2tile_instruction_valid = !bench.instructions.empty();
    if (!bench.instructions.empty()) {
        const Instruction& next = bench.instructions.front();
        memcpy(tile.core2tile_instruction_data.data(), next.words, sizeof next.words);
        tile.core2tile_base_valid = next.base >= 0;
        tile.core2tile_base = static_cast<uint32_t>(next.base);
    }
    tile.tile2ring_row_ready = !stalled(bench);
    uint32_t chosen = kChannels;
    for (uint32_t c = 0; c < kChannels; c++) {
        // The ring carries a row that there is room for, if it has one.
        const bool taken = chosen < kChannels && (tile.ring2tile_row_ready >> chosen & 1);
        if (!taken && !bench.rows_in[c].empty() && !stalled(bench)) chosen = c;
    }
    tile.ring2tile_row_valid = chosen < kChannels ? 1u << chosen : 0;
    if (chosen < kChannels) {
        const Row& row = bench.rows_in[chosen].front();
        memcpy(tile.ring2tile_row_data.data(), row.data, sizeof row.data);
        tile.ring2tile_row_words = row.words;
    }
    tile.mesh2tile_word_valid = 0;
    tile.tile2mesh_word_ready = 0;
    for (uint32_t k = 0; k < kLinks; k++) {
        if (!stalled(bench)) tile.tile2mesh_word_ready |= 1u << k;
        if (bench.words_in[k].empty() || stalled(bench)) continue;
        tile.mesh2tile_word_valid |= 1u << k;
        tile.mesh2tile_word_data[k] = bench.words_in[k].front();
    }
    evaluate(bench, 0);

    if (tile.core2tile_instruction_valid && tile.core2tile_instruction_ready) {
        bench.instructions.pop_front();
    }
    if (tile.tile2ring_row_valid && tile.tile2ring_row_ready) {
        take_row(bench.rows_out.emplace_back(), tile.tile2ring_row_data);
    }
    bool token[kChannels] = {};
    if (chosen < kChannels && (tile.ring2tile_row_ready >> chosen & 1)) {
        token[chosen] = bench.rows_in[chosen].front().token;
        bench.rows_in[chosen].pop_front();
    }
    for (uint32_t k = 0; k < kLinks; k++) {
        if (tile.tile2mesh_word_valid & tile.tile2mesh_word_ready & 1u << k) {
            bench.words_out[k].push_back(tile.tile2mesh_word_data[k]);
        }
        if (tile.mesh2tile_word_valid & tile.mesh2tile_word_ready & 1u << k) {
            bench.words_in[k].pop_front();
        }
    }
    bench.fences += tile.tile2core_fence_valid;
    evaluate(bench, 1);
    // The token of a row is counted in the cycle behind it.
    tile.ring2tile_token_valid = token[0] | token[1] << 1;
    bench.cycle++;
}

// Whatever is offered is so in the cycle of reset too.
void reset(Bench& bench) {
    Vtile& tile = *bench.tile;
    // One edge has to do: what a second one would clear is no state that reset forgets.
    tile.rst_n = 0;
    step(bench);
    bench.instructions.clear();
    bench.rows_out.clear();
    for (uint32_t k = 0; k < kLinks; k++) {
        bench.words_in[k].clear();
        bench.words_out[k].clear();
    }
    for (uint32_t c = 0; c < kChannels; c++) bench.rows_in[c].clear();
    bench.fences = 0;
    bench.failed = false;
    tile.core2tile_instruction_valid = 0;
    tile.ring2tile_row_valid = 0;
    tile.ring2tile_token_valid = 0;
    tile.mesh2tile_word_valid = 0;
    tile.rst_n = 1;
}

void record(const char* file, int line, const char* what) {
    if (!running || running->failed) return;
    running->failed = true;
    snprintf(running->failure, sizeof running->failure, "%s:%d: %s", file, line, what);
}

}  // namespace

void vl_stop(const char* file, int line, const char*) VL_MT_UNSAFE {
    record(file, line, last_message().c_str());
}

void vl_fatal(const char* file, int line, const char*, const char* what) VL_MT_UNSAFE {
    record(file, line, what);
}

extern "C" {

// A tile after reset; `seed` decides what is in registers and memories that reset does not touch.
// `argument` is one of the simulator's, or empty; `ratio` is that of the tile's two clocks.
Bench* tile_new(uint32_t seed, const char* argument, uint32_t ratio) {
    Bench* bench = new Bench;
    bench->memory_clock_ratio = ratio;
    running = bench;
    const char* arguments[] = {"tile", argument};
    bench->context.commandArgs(*argument ? 2 : 1, arguments);
    bench->context.randReset(2);
    bench->context.randSeed(1 + seed % 0x7ffffffe);
    bench->tile = std::make_unique<Vtile>(&bench->context);
    bench->memories = std::make_unique<TileMemories>(*bench->tile->rootp);
    reset(*bench);
    return bench;
}

void tile_delete(Bench* bench) {
    if (running == bench) running = nullptr;
    bench->tile->final();
    delete bench;
}

void tile_reset(Bench* bench) {
    running = bench;
    reset(*bench);
}

// Line and toggle counts of this tile into a file, if the build counts.
void tile_write_coverage(Bench* bench, const char* path) {
#if VM_COVERAGE
    bench->context.coveragep()->write(path);
#endif
}

uint8_t* tile_narrow(Bench* bench) { return bench->memories->narrow; }
uint32_t* tile_wide(Bench* bench) { return bench->memories->wide; }

uint32_t* tile_scale_bias(Bench* bench) {
    return bench->tile->rootp->tile__DOT__scale_bias__DOT__rows[0].data();
}

uint32_t* tile_flags(Bench* bench) {
    return bench->tile->rootp->tile__DOT__sync__DOT__values.data();
}

void tile_stall(Bench* bench, uint64_t seed, uint32_t of_256) {
    bench->random = seed | 1;
    bench->stalls = of_256;
}

// `words` from the first bundle on; what is missing at the end is 0.
void tile_give(Bench* bench, const uint32_t* words, uint32_t count, int64_t base) {
    Instruction instruction = {};
    memcpy(instruction.words, words, sizeof(uint32_t) * count);
    instruction.base = base;
    bench->instructions.push_back(instruction);
}

void tile_send_word(Bench* bench, uint32_t link, uint32_t word) {
    bench->words_in[link].push_back(word);
}

void tile_send_row(Bench* bench, const Row* row) { bench->rows_in[row->channel].push_back(*row); }

// Runs until all is done, or nothing is executed any more, or for `limit` cycles; returns how many.
uint64_t tile_run(Bench* bench, uint64_t limit) {
    running = bench;
    const uint64_t first = bench->cycle;
    bench->memories->to_tile();
    while (bench->cycle - first < limit && !bench->failed) {
        step(*bench);
        if (bench->instructions.empty() && bench->tile->tile2core_idle) break;
    }
    bench->memories->from_tile();
    return bench->cycle - first;
}

uint32_t tile_units_idle(Bench* bench) { return bench->tile->tile2core_units_idle; }
uint32_t tile_idle(Bench* bench) {
    return bench->instructions.empty() && bench->tile->tile2core_idle;
}
uint32_t tile_fences(Bench* bench) { return bench->fences; }
const char* tile_failure(Bench* bench) { return bench->failed ? bench->failure : nullptr; }

uint32_t tile_rows_out(Bench* bench) { return static_cast<uint32_t>(bench->rows_out.size()); }
const Row* tile_row_out(Bench* bench) { return bench->rows_out.data(); }
uint32_t tile_words_out(Bench* bench, uint32_t link) {
    return static_cast<uint32_t>(bench->words_out[link].size());
}
const uint32_t* tile_word_out(Bench* bench, uint32_t link) {
    return bench->words_out[link].data();
}
uint32_t tile_words_left(Bench* bench, uint32_t link) {
    return static_cast<uint32_t>(bench->words_in[link].size());
}
uint32_t tile_rows_left(Bench* bench, uint32_t channel) {
    return static_cast<uint32_t>(bench->rows_in[channel].size());
}
}
