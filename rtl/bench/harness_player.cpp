// The C++ side of harness.sv with host memory: hands over the descriptors of a workload, takes and gives
// the byte streams as the units do, holds channels back, and logs what happens when. Host memory is in
// host_memory.cpp; Python opens both as one library.

#include "Vharness.h"
#include "player.h"

namespace {

constexpr unsigned STREAMS = 3;      // read streams, in the order of the descriptors' tags
constexpr unsigned DONE_EVENTS = 5;  // completion events: kinds of events from 0 on
constexpr unsigned START = 16;       // kind of a beginning, plus the outcome
constexpr unsigned BUS_CHANNELS = 5;

struct Descriptor {
    uint64_t address;
    uint32_t size;
    uint8_t tag;
    uint8_t fence;
    uint8_t unused[2];
};

// What belongs to Python, and stays there until the next workload begins.
struct Workload {
    const Descriptor* descriptors;
    uint64_t count;
    const uint8_t* output;
    uint64_t output_size;
    // A word for each cycle, repeated: bits 0 to 4 the bus, then the read streams, then output.
    const uint32_t* stalls;
    uint64_t stall_count;
    uint8_t* sinks[STREAMS];
    uint64_t limits[STREAMS];
    // Bytes that came out of each stream, and that went into the other.
    uint64_t taken[STREAMS];
    uint64_t given;
};

class HarnessPlayer : public Player<Vharness> {
  public:
    HarnessPlayer(int seed, const char* argument) : Player(seed, argument) { reset(); }

    // From the next cycle on, which is cycle 0.
    void begin(Workload& chosen) {
        workload = &chosen;
        hold(0);
    }

    bool finished() const { return ended == workload->count; }

  private:
    void rest() override {
        workload = nullptr;
        top->core2queue_chunk_valid = 0;
        top->core2dma_descriptor_valid = 0;
        top->outfeed2dma_output_valid = 0;
        hold(~0U);
        top->memory_stall = 0;
    }

    void forget() override { at = next = ended = 0; }

    void watch() override {
        if (!workload) return;
        take(0, top->dma2core_instruction_valid, &top->dma2core_instruction_data,
             top->dma2core_instruction_count);
        take(1, top->dma2input_activation_valid, &top->dma2input_activation_data,
             top->dma2input_activation_count);
        take(2, top->dma2input_parameter_valid, &top->dma2input_parameter_data,
             top->dma2input_parameter_count);
        if (top->dma2monitor_start_valid) {
            note(START + top->dma2monitor_start_outcome, top->dma2monitor_start_index);
            ended += top->dma2monitor_start_outcome != 0;
        }
        for (unsigned i = 0; top->dma2monitor_done_valid >> i; i++) {
            if (top->dma2monitor_done_valid >> i & 1) note(i, top->dma2monitor_done_index[i]);
        }
        ended += __builtin_popcount(top->dma2monitor_done_valid);
        offers = !top->core2dma_descriptor_valid || top->core2dma_descriptor_ready;
        gives = !top->outfeed2dma_output_valid || top->outfeed2dma_output_ready;
    }

    void advance() override {
        if (!workload) return;
        if (offers) offer();
        if (gives) give();
        at++;
        hold(workload->stall_count ? workload->stalls[at % workload->stall_count] : 0);
    }

    void hold(uint32_t channels) {
        stalls = channels;
        top->memory_stall = channels & ((1 << BUS_CHANNELS) - 1);
        top->dma2core_instruction_ready = ~channels >> BUS_CHANNELS & 1;
        top->dma2input_activation_ready = ~channels >> (BUS_CHANNELS + 1) & 1;
        top->dma2input_parameter_ready = ~channels >> (BUS_CHANNELS + 2) & 1;
    }

    void take(unsigned stream, uint8_t valid, const void* data, uint8_t count) {
        if (!valid || stalls >> (BUS_CHANNELS + stream) & 1) return;
        uint64_t& size = workload->taken[stream];
        if (size + count <= workload->limits[stream]) {
            memcpy(workload->sinks[stream] + size, data, count);
        }
        size += count;
    }

    void offer() {
        top->core2dma_descriptor_valid = next < workload->count;
        if (next == workload->count) return;
        const Descriptor& chosen = workload->descriptors[next++];
        top->core2dma_descriptor_fence = chosen.fence;
        top->core2dma_descriptor_tag = chosen.tag;
        top->core2dma_descriptor_size = chosen.size;
        top->core2dma_descriptor_address = chosen.address;
    }

    void give() {
        constexpr uint64_t most = sizeof(top->outfeed2dma_output_data);
        const uint64_t left = workload->output_size - workload->given;
        const uint64_t count =
            stalls >> (BUS_CHANNELS + STREAMS) & 1 ? 0 : left < most ? left : most;
        top->outfeed2dma_output_valid = count != 0;
        top->outfeed2dma_output_count = static_cast<uint8_t>(count);
        memset(&top->outfeed2dma_output_data, 0, most);
        memcpy(&top->outfeed2dma_output_data, workload->output + workload->given, count);
        workload->given += count;
    }

    void note(uint32_t kind, uint32_t index) { events.push_back({at, kind, index}); }

    Workload* workload = nullptr;
    uint32_t at = 0;  // the workload's cycle
    uint64_t next = 0;
    uint64_t ended = 0;
    uint32_t stalls = 0;
    bool offers = false;
    bool gives = false;
};

using ThisPlayer = HarnessPlayer;

}  // namespace

#include "player_functions.h"

extern "C" {

// Returns the time of the first cycle in waves.
uint64_t harness_begin(HarnessPlayer* player, Workload* workload) {
    player->begin(*workload);
    return player->context.time();
}

// Waits until every descriptor has been refused or completed.
uint32_t harness_finish(HarnessPlayer* player, uint64_t limit) {
    return player->wait(limit, [&] { return player->finished(); });
}
}
