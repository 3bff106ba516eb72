// The tiles of a chip behind tile_models.sv, each a simulation of its own, of which only those are
// evaluated in which anything changes.

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "Vtile.h"
#include "chip_sizes.h"
#include "svdpi.h"
#include "verilated.h"

namespace {

constexpr unsigned MOST_TILES = chip_sizes::Tiles;
constexpr unsigned FLAG_BYTES = chip_sizes::TileFlags * sizeof(uint16_t);
constexpr unsigned LINKS = sizeof(std::declval<Vtile&>().tile2mesh_word_data) / sizeof(uint32_t);

using Row = std::remove_reference_t<decltype(Vtile::tile2ring_row_data)>;

// Words that `entries` packed entries of `width` bits take.
constexpr unsigned words_of(unsigned entries, unsigned width) {
    return (entries * width + 31) / 32;
}

// Packed entries of a few bits, none across two words.
uint32_t entry(const svBitVecVal* bits, unsigned number, unsigned width) {
    return bits[number * width / 32] >> (number * width % 32) & ((1u << width) - 1);
}

void set_entry(svBitVecVal* bits, unsigned number, unsigned width, uint32_t value) {
    svBitVecVal& word = bits[number * width / 32];
    const unsigned shift = number * width % 32;
    word = (word & ~(((1u << width) - 1) << shift)) | value << shift;
}

// What comes to the tiles in a cycle, as the ports of tile_models.sv hold it.
struct Inputs {
    bool rst_n;
    uint32_t instruction_valid;
    uint32_t row_ready;
    const svBitVecVal* row_valid;
    uint32_t tokens;
    const svBitVecVal* word_ready;
    const svBitVecVal* word_valid;
    const svBitVecVal* words;
};

// What the tiles put out, in the same way.
struct Outputs {
    uint32_t enabled;
    uint32_t instruction_ready;
    uint32_t passed;
    uint32_t idle;
    svBitVecVal units[MOST_TILES];
    uint8_t flags[MOST_TILES * FLAG_BYTES];
    uint32_t row_valid;
    svBitVecVal row_ready[words_of(MOST_TILES, 2)];
    svBitVecVal word_valid[words_of(MOST_TILES, LINKS)];
    svBitVecVal word_ready[words_of(MOST_TILES, LINKS)];
    svBitVecVal words[MOST_TILES * LINKS];
};

class TileModels {
  public:
    TileModels(unsigned count, unsigned memory_clock_ratio)
        : rows(count), further_edges(2 * memory_clock_ratio - 2) {
        for (unsigned t = 0; t < count; t++) {
            const std::string name = "tile" + std::to_string(t);
            models.push_back(
                std::make_unique<Vtile>(Verilated::threadContextp(), name.c_str()));
        }
    }

    ~TileModels() {
        for (auto& model : models) model->final();
    }

    // A clock edge; returns whether any tile was evaluated.
    bool step(const Inputs& inputs) {
        changed_rows = 0;
        bool any = false;
        for (unsigned t = 0; t < models.size(); t++) {
            if (!changes(t, inputs)) continue;
            any = true;
            evaluate(t, inputs);
            keep(t);
        }
        return any;
    }

    std::vector<std::unique_ptr<Vtile>> models;
    std::vector<Row> rows;      // last offered by each tile
    uint32_t changed_rows = 0;  // other than before this cycle
    Outputs outputs = {};

  private:
    // Whether an edge can make a difference: to what the tile holds, or to an assertion.
    bool changes(unsigned t, const Inputs& inputs) const {
        const uint32_t from_outside =
            outputs.enabled | inputs.instruction_valid | (inputs.row_ready & outputs.row_valid);
        return !inputs.rst_n || inputs.tokens || from_outside >> t & 1 ||
               entry(inputs.row_valid, t, 2) ||
               (entry(inputs.word_ready, t, LINKS) & entry(outputs.word_valid, t, LINKS)) ||
               (entry(inputs.word_valid, t, LINKS) & entry(outputs.word_ready, t, LINKS));
    }

    void evaluate(unsigned t, const Inputs& inputs) {
        Vtile& model = *models[t];
        model.rst_n = inputs.rst_n;
        model.core2tile_instruction_valid = inputs.instruction_valid >> t & 1;
        model.tile2ring_row_ready = inputs.row_ready >> t & 1;
        model.ring2tile_row_valid = entry(inputs.row_valid, t, 2);
        model.ring2tile_token_valid = inputs.tokens;
        model.tile2mesh_word_ready = entry(inputs.word_ready, t, LINKS);
        model.mesh2tile_word_valid = entry(inputs.word_valid, t, LINKS);
        memcpy(&model.mesh2tile_word_data, inputs.words + t * LINKS,
               sizeof(model.mesh2tile_word_data));
        // Assertions see what was there before the edge, so the inputs come first.
        model.clk = model.clk_memory = 0;
        model.eval();
        model.clk = model.clk_memory = 1;
        model.eval();
        for (unsigned k = further_edges; k > 0; k--) {
            model.clk_memory = k & 1;
            model.eval();
        }
    }

    const unsigned further_edges;  // of clk_memory, in a cycle of clk

    void keep(unsigned t) {
        const Vtile& model = *models[t];
        set_entry(&outputs.enabled, t, 1, model.tile2clock_enable);
        set_entry(&outputs.instruction_ready, t, 1, model.core2tile_instruction_ready);
        set_entry(&outputs.passed, t, 1, model.tile2core_fence_valid);
        set_entry(&outputs.idle, t, 1, model.tile2core_idle);
        outputs.units[t] = model.tile2core_units_idle;
        memcpy(outputs.flags + t * FLAG_BYTES, &model.tile2core_flags, FLAG_BYTES);
        set_entry(&outputs.row_valid, t, 1, model.tile2ring_row_valid);
        if (model.tile2ring_row_valid && memcmp(&rows[t], &model.tile2ring_row_data, sizeof(Row))) {
            rows[t] = model.tile2ring_row_data;
            changed_rows |= 1u << t;
        }
        set_entry(outputs.row_ready, t, 2, model.ring2tile_row_ready);
        set_entry(outputs.word_valid, t, LINKS, model.tile2mesh_word_valid);
        set_entry(outputs.word_ready, t, LINKS, model.mesh2tile_word_ready);
        memcpy(outputs.words + t * LINKS, &model.tile2mesh_word_data,
               sizeof(model.tile2mesh_word_data));
    }
};

}  // namespace

extern "C" {

void* tile_models_open(int tiles, int memory_clock_ratio) {
    return new TileModels(static_cast<unsigned>(tiles), static_cast<unsigned>(memory_clock_ratio));
}

void tile_models_close(void* handle) { delete static_cast<TileModels*>(handle); }

void tile_models_instruction(void* handle, uint32_t instruction_valid,
                             const svBitVecVal* instruction, svBit base_valid, uint32_t base) {
    auto& models = static_cast<TileModels*>(handle)->models;
    for (unsigned t = 0; t < models.size(); t++) {
        if (!(instruction_valid >> t & 1)) continue;
        Vtile& model = *models[t];
        memcpy(&model.core2tile_instruction_data, instruction,
               sizeof(model.core2tile_instruction_data));
        model.core2tile_base_valid = base_valid;
        model.core2tile_base = base;
    }
}

void tile_models_arrival(void* handle, const svBitVecVal* row_valid, const svBitVecVal* row,
                         uint32_t words) {
    auto& models = static_cast<TileModels*>(handle)->models;
    for (unsigned t = 0; t < models.size(); t++) {
        if (!entry(row_valid, t, 2)) continue;
        memcpy(&models[t]->ring2tile_row_data, row, sizeof(models[t]->ring2tile_row_data));
        models[t]->ring2tile_row_words = static_cast<uint8_t>(words);
    }
}

svBit tile_models_step(void* handle, svBit rst_n, uint32_t instruction_valid, uint32_t row_ready,
                       const svBitVecVal* row_valid, uint32_t tokens,
                       const svBitVecVal* word_ready, const svBitVecVal* word_valid,
                       const svBitVecVal* words) {
    return static_cast<TileModels*>(handle)->step({rst_n != 0, instruction_valid, row_ready,
                                                   row_valid, tokens, word_ready, word_valid,
                                                   words});
}

void tile_models_outputs(void* handle, uint32_t* instruction_ready, uint32_t* passed,
                         uint32_t* idle, svBitVecVal* units, svBitVecVal* flags,
                         uint32_t* row_valid, uint32_t* rows, svBitVecVal* row_ready,
                         svBitVecVal* word_valid, svBitVecVal* word_ready, svBitVecVal* words) {
    const TileModels& tiles = *static_cast<TileModels*>(handle);
    const Outputs& from = tiles.outputs;
    const size_t count = tiles.models.size();
    const auto bytes = [count](size_t bits) {
        return sizeof(svBitVecVal) * ((count * bits + 31) / 32);
    };
    *instruction_ready = from.instruction_ready;
    *passed = from.passed;
    *idle = from.idle;
    *row_valid = from.row_valid;
    *rows = tiles.changed_rows;
    memcpy(units, from.units, bytes(32));
    memcpy(flags, from.flags, count * FLAG_BYTES);
    memcpy(row_ready, from.row_ready, bytes(2));
    memcpy(word_valid, from.word_valid, bytes(LINKS));
    memcpy(word_ready, from.word_ready, bytes(LINKS));
    memcpy(words, from.words, bytes(32 * LINKS));
}

void tile_models_row(void* handle, int tile, svBitVecVal* row) {
    const Row& offered = static_cast<TileModels*>(handle)->rows[static_cast<size_t>(tile)];
    memcpy(row, &offered, sizeof(offered));
}
}
