// The C++ side of chip_player.sv: clock, accesses of the host's registers, hand-over of instructions,
// descriptors and pushed words, and waits with a bound. Host memory is in workload.cpp; Python opens
// both as one library.

#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "Vchip_player.h"
#include "Vchip_player___024root.h"
#include "chip_sizes.h"
#include "messages.h"
#include "verilated.h"
#if VM_COVERAGE
#include "verilated_cov.h"
#endif
#if VM_TRACE_FST
#include "verilated_fst_c.h"
#endif

namespace {

// How a wait ended.
enum Outcome : uint32_t { DONE, TIMED_OUT, ASSERTION, INTERRUPTED, REFUSED_BY_BUS };

enum EventKind : uint32_t { LINES, REFUSED, MEMORY_ERROR };

struct Event {
    uint32_t cycle;
    uint32_t kind;
    uint32_t index;
};

// The first assertion that failed.
std::string failure;

// Ctrl-C ends a wait. Python's own handler is called as well, but Python comes to it only when the
// wait is over.
class Interrupt {
  public:
    Interrupt() {
        came = 0;
        struct sigaction handler = {};
        handler.sa_handler = handle;
        sigaction(SIGINT, &handler, &before);
    }
    ~Interrupt() { sigaction(SIGINT, &before, nullptr); }
    explicit operator bool() const { return came; }

  private:
    static void handle(int number) {
        came = 1;
        if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) before.sa_handler(number);
    }

    static volatile sig_atomic_t came;
    static struct sigaction before;
};

volatile sig_atomic_t Interrupt::came = 0;
struct sigaction Interrupt::before = {};

// What a time-out shows: bit sets and 16-bit flags, as the ports hold them.
struct Status {
    uint64_t cycle;
    uint64_t rows;
    uint32_t started;
    uint32_t completed;
    uint32_t units_idle;
    uint32_t tiles_idle;
    uint32_t tile_units_idle[5];
    uint16_t scalar_flags[chip_sizes::ScalarFlags];
    uint16_t tile_flags[chip_sizes::Tiles][chip_sizes::TileFlags];
};

// Random stalls: the state of xorshift64, 0 for none.
uint64_t stall_state = 0;

bool random_bit_pair_is_set() {
    if (!stall_state) return false;
    stall_state ^= stall_state << 13;
    stall_state ^= stall_state >> 7;
    stall_state ^= stall_state << 17;
    return (stall_state >> 32 & 3) == 3;
}

// Cycles after which it is looked whether anything has moved.
constexpr uint64_t GLANCE = 1024;
constexpr unsigned OUTPUT_DONE = 3;  // completion event of outputs and interrupts

template <typename Port> void copy_port(void* target, size_t size, const Port& port) {
    memcpy(target, &port, sizeof(port) < size ? sizeof(port) : size);
}

class Player {
  public:
    // `argument` is one of the simulator's, or empty.
    Player(int seed, const char* argument) {
        const char* arguments[] = {"chip_player", argument};
        context.commandArgs(*argument ? 2 : 1, arguments);
        context.randReset(2);
        context.randSeed(seed);
#if VM_TRACE_FST
        context.traceEverOn(true);
#endif
        chip = std::make_unique<Vchip_player>(&context, "");
        reset();
    }

    ~Player() {
#if VM_TRACE_FST
        waves.close();
#endif
        // A scope is taken out of the thread's context, which is that of the chip built last.
        Verilated::threadContextp(&context);
        chip->final();
    }

#if VM_TRACE_FST
    // From now on; the first change is that of the first cycle.
    void write_waves(const char* path) {
        chip->trace(&waves, 99);
        waves.open(path);
    }
#endif

#if VM_COVERAGE
    void write_coverage(const char* path) { context.coveragep()->write(path); }
#endif

    // What is in memories stays.
    void reset() {
        chip->s_axil_awvalid = chip->s_axil_wvalid = chip->s_axil_arvalid = 0;
        chip->s_axil_awprot = chip->s_axil_arprot = 0;
        chip->s_axil_wstrb = 0xff;
        chip->s_axil_bready = chip->s_axil_rready = 1;
        chip->core2queue_chunk_valid = 0;
        chip->core2units_instruction_valid = 0;
        chip->core2dma_descriptor_valid = 0;
        chip->core2output_word_valid = 0;
        // Until the reset has taken effect everything is random, and no rule holds.
        chip->rst_n = 0;
        context.assertOn(false);
        cycle();
        context.assertOn(true);
        for (int i = 1; i < 4; i++) cycle();
        chip->rst_n = 1;
        status = {};
        events.clear();
        instructions.clear();
        outputs_issued = outputs_done = 0;
        lines = 0;
        failure.clear();
    }

    void cycle() {
        begin_cycle();
        end_cycle();
    }

    // Offers something until it is taken; see `wait`.
    template <typename Ready> uint32_t offer(uint8_t& valid, uint64_t limit, Ready ready) {
        while (random_bit_pair_is_set()) cycle();
        valid = 1;
        const uint32_t outcome = wait(limit, ready);
        valid = 0;
        return outcome;
    }

    // Goes on to the end of the first cycle in which `ready` is true. The wait is given up when
    // nothing has moved for more than `limit` cycles. `behind` is called after every clock edge.
    template <typename Ready> uint32_t wait(uint64_t limit, Ready ready) {
        return wait(limit, ready, [] {});
    }

    template <typename Ready, typename Behind>
    uint32_t wait(uint64_t limit, Ready ready, Behind behind) {
        const Interrupt interrupt;
        uint64_t moved_at = status.cycle;
        while (true) {
            begin_cycle();
            const bool done = ready();
            end_cycle();
            behind();
            if (!failure.empty()) return ASSERTION;
            if (done) return DONE;
            if (interrupt) return INTERRUPTED;
            if (status.cycle % GLANCE == 0 && has_moved()) moved_at = status.cycle;
            if (status.cycle - moved_at > limit) return TIMED_OUT;
        }
    }

    // The host writes a register, or reads one. The outcome tells whether it was answered well.
    uint32_t write_register(uint32_t offset, uint64_t value, uint64_t limit) {
        chip->s_axil_awaddr = offset;
        chip->s_axil_wdata = value;
        chip->s_axil_awvalid = chip->s_axil_wvalid = 1;
        bool address_taken = false, data_taken = false;
        uint8_t answer = 0;
        const uint32_t outcome = wait(
            limit,
            [&] {
                address_taken |= chip->s_axil_awvalid && chip->s_axil_awready;
                data_taken |= chip->s_axil_wvalid && chip->s_axil_wready;
                answer = chip->s_axil_bresp;
                return chip->s_axil_bvalid;
            },
            [&] {
                if (address_taken) chip->s_axil_awvalid = 0;
                if (data_taken) chip->s_axil_wvalid = 0;
            });
        return outcome == DONE && answer ? REFUSED_BY_BUS : outcome;
    }

    uint32_t read_register(uint32_t offset, uint64_t* value, uint64_t limit) {
        chip->s_axil_araddr = offset;
        chip->s_axil_arvalid = 1;
        bool address_taken = false;
        uint8_t answer = 0;
        const uint32_t outcome = wait(
            limit,
            [&] {
                address_taken |= chip->s_axil_arvalid && chip->s_axil_arready;
                answer = chip->s_axil_rresp;
                *value = chip->s_axil_rdata;
                return chip->s_axil_rvalid;
            },
            [&] {
                if (address_taken) chip->s_axil_arvalid = 0;
            });
        return outcome == DONE && answer ? REFUSED_BY_BUS : outcome;
    }

    bool idle() const {
        return chip->units2monitor_all_idle && chip->queue2monitor_idle &&
               outputs_issued == outputs_done;
    }

    const Status& look() {
        status.units_idle = chip->units2monitor_idle;
        status.tiles_idle = chip->tiles2monitor_idle;
        copy_port(status.tile_units_idle, sizeof(status.tile_units_idle), chip->tiles2monitor_units);
        copy_port(status.scalar_flags, sizeof(status.scalar_flags), chip->flags2monitor_values);
        copy_port(status.tile_flags, sizeof(status.tile_flags), chip->tiles2monitor_flags);
        return status;
    }

    VerilatedContext context;
    std::unique_ptr<Vchip_player> chip;
    Status status = {};
    std::vector<Event> events;
    std::vector<uint8_t> instructions;  // bytes of the instruction stream
    uint64_t outputs_issued = 0;
    uint64_t outputs_done = 0;
    uint8_t lines = 0;  // of interrupts

  private:
    // What is to be seen in a cycle is seen before the clock edge that ends it.
    void begin_cycle() {
        evaluate(0);
        watch();
    }

    void end_cycle() {
        evaluate(1);
        status.cycle++;
    }

    void evaluate(uint8_t clock) {
        chip->clk = clock;
        chip->eval();
#if VM_TRACE_FST
        if (waves.isOpen()) waves.dump(context.time());
#endif
        context.timeInc(1);
    }

    void watch() {
        if (chip->dma2core_instruction_valid) {
            uint8_t bytes[sizeof(chip->dma2core_instruction_data)];
            memcpy(bytes, &chip->dma2core_instruction_data, sizeof(bytes));
            instructions.insert(instructions.end(), bytes,
                                bytes + chip->dma2core_instruction_count);
        }
        status.rows += chip->ring2monitor_row_valid;
        if (chip->dma2host_interrupt != lines) note(LINES, lines = chip->dma2host_interrupt);
        if (chip->memory2monitor_error_valid) note(MEMORY_ERROR, 0);
        if (chip->dma2monitor_start_valid) {
            status.started++;
            if (chip->dma2monitor_start_outcome) note(REFUSED, chip->dma2monitor_start_index);
        }
        if (chip->dma2monitor_done_valid) {
            status.completed += __builtin_popcount(chip->dma2monitor_done_valid);
            outputs_done += chip->dma2monitor_done_valid >> OUTPUT_DONE & 1;
        }
    }

    void note(uint32_t kind, uint32_t index) {
        events.push_back({static_cast<uint32_t>(status.cycle), kind, index});
    }

    // Whether anything has changed since this was last asked.
    bool has_moved() {
        Status now = look();
        now.cycle = 0;
        const bool moved = memcmp(&now, &seen, sizeof(now)) != 0;
        seen = now;
        return moved;
    }

    Status seen = {};
#if VM_TRACE_FST
    VerilatedFstC waves;
#endif
};

}  // namespace

// What Verilator calls where an assertion fails.
void vl_stop(const char*, int, const char*) {
    if (failure.empty()) failure = last_message();
}

void vl_fatal(const char* filename, int line, const char*, const char* what) {
    if (failure.empty()) failure = std::string(filename) + ":" + std::to_string(line) + ": " + what;
}

extern "C" {

void memory_seed(uint64_t seed);  // in workload.cpp

const char* chip_failure() { return failure.c_str(); }

Player* chip_open(int seed, const char* argument) { return new Player(seed, argument); }

void chip_close(Player* player) { delete player; }

// From now on each handshake that may be stalled is so in a quarter of its cycles, by the seed.
void chip_stall(uint64_t seed) {
    stall_state = seed * 0x9e3779b97f4a7c15 + 0x2545f4914f6cdd1d;
    if (!stall_state) stall_state = 1;
    memory_seed(seed);
}

// For the RTL, if it is built with STALLS.
uint8_t random_stall() { return random_bit_pair_is_set(); }

#if VM_TRACE_FST
void chip_write_waves(Player* player, const char* path) { player->write_waves(path); }
#endif

#if VM_COVERAGE
void chip_write_coverage(Player* player, const char* path) { player->write_coverage(path); }
#endif

uint32_t chip_write_register(Player* player, uint32_t offset, uint64_t value, uint64_t limit) {
    return player->write_register(offset, value, limit);
}

uint32_t chip_read_register(Player* player, uint32_t offset, uint64_t* value, uint64_t limit) {
    return player->read_register(offset, value, limit);
}

// The scalar core asks for the next chunk of the instruction queue.
uint32_t chip_take_chunk(Player* player, uint32_t* size, uint64_t limit) {
    Vchip_player& chip = *player->chip;
    return player->offer(chip.core2queue_chunk_valid, limit, [&] {
        *size = chip.queue2core_chunk_size;
        return chip.core2queue_chunk_ready;
    });
}

uint32_t chip_hand_over(Player* player, const uint8_t* bits, uint32_t bytes, uint32_t tiles,
                        uint32_t base_valid, uint32_t base, uint64_t limit) {
    Vchip_player& chip = *player->chip;
    memset(&chip.core2units_instruction_bits, 0, sizeof(chip.core2units_instruction_bits));
    memcpy(&chip.core2units_instruction_bits, bits, bytes);
    chip.core2units_instruction_tiles = tiles;
    chip.core2units_instruction_base_valid = base_valid;
    chip.core2units_instruction_base = base;
    return player->offer(chip.core2units_instruction_valid, limit,
                         [&] { return chip.core2units_instruction_ready; });
}

uint32_t chip_descriptor(Player* player, uint32_t fence, uint32_t tag, uint32_t size,
                         uint64_t address, uint64_t limit) {
    Vchip_player& chip = *player->chip;
    chip.core2dma_descriptor_fence = fence;
    chip.core2dma_descriptor_tag = tag;
    chip.core2dma_descriptor_size = size;
    chip.core2dma_descriptor_address = address;
    player->outputs_issued += !fence && tag >= OUTPUT_DONE;
    return player->offer(chip.core2dma_descriptor_valid, limit,
                         [&] { return chip.core2dma_descriptor_ready; });
}

uint32_t chip_push(Player* player, uint32_t word, uint64_t limit) {
    Vchip_player& chip = *player->chip;
    chip.core2output_word_data = word;
    return player->offer(chip.core2output_word_valid, limit,
                         [&] { return chip.core2output_word_ready; });
}

// Waits for the next `count` bytes of the instruction stream.
uint32_t chip_fetch(Player* player, uint8_t* target, uint64_t count, uint64_t limit) {
    uint32_t outcome =
        player->wait(limit, [&] { return player->instructions.size() >= count; });
    if (outcome != DONE) return outcome;
    memcpy(target, player->instructions.data(), count);
    player->instructions.erase(player->instructions.begin(),
                               player->instructions.begin() + static_cast<long>(count));
    return DONE;
}

// Waits until no unit has anything to do and all outputs and interrupts have left.
uint32_t chip_settle(Player* player, uint64_t limit) {
    return player->wait(limit, [&] { return player->idle(); });
}

const Status* chip_status(Player* player) { return &player->look(); }

uint32_t chip_events(Player* player, const Event** events) {
    *events = player->events.data();
    return static_cast<uint32_t>(player->events.size());
}

void chip_forget_events(Player* player) { player->events.clear(); }

void chip_reset(Player* player) { player->reset(); }

// Goes on for so many cycles, whatever happens in them.
uint32_t chip_run(Player* player, uint64_t cycles) {
    const uint64_t end = player->status.cycle + cycles - 1;
    return player->wait(cycles, [&] { return player->status.cycle >= end; });
}

// Memories and flags in place.

uint32_t* chip_scalar_memory(Player* player) {
    return player->chip->rootp->chip_player__DOT__chip__DOT__memory__DOT__words.m_storage;
}

uint64_t* chip_activations(Player* player) {
    return player->chip->rootp
        ->chip_player__DOT__chip__DOT__activation_buffer__DOT__entries.m_storage;
}

uint32_t* chip_parameters(Player* player) {
    return player->chip->rootp
        ->chip_player__DOT__chip__DOT__parameter_buffer__DOT__entries[0].m_storage;
}

uint16_t* chip_scalar_flags(Player* player) {
    return reinterpret_cast<uint16_t*>(
        player->chip->rootp->chip_player__DOT__chip__DOT__scalar_flags__DOT__values.m_storage);
}
}
