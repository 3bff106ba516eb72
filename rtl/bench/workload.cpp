// The C++ side of workload.sv and host_memory.sv: plain buffers that belong to whoever drives the
// simulation (Python, through ctypes) and that the RTL reads and writes in place, by DPI.

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

struct Descriptor {
    uint64_t address;
    uint32_t size;
    uint8_t tag;
    uint8_t fence;
    uint8_t unused[2];
};

struct Event {
    uint32_t cycle;
    uint32_t kind;
    uint32_t index;
};

// A piece of host memory: bus addresses that stand for bytes at `data`.
struct Region {
    uint64_t start;
    uint64_t size;
    uint8_t* data;
};

// Who knows the bytes that no region has: both return whether the access fails. `strobes` has a bit
// for each byte.
using ReadElsewhere = uint8_t (*)(uint64_t address, uint32_t bytes, uint8_t* data);
using WriteElsewhere = uint8_t (*)(uint64_t address, uint32_t bytes, const uint8_t* data,
                                   uint32_t strobes);

struct State {
    std::vector<Region> regions;
    ReadElsewhere read_elsewhere = nullptr;
    WriteElsewhere write_elsewhere = nullptr;
    const Descriptor* descriptors = nullptr;
    uint32_t descriptor_count = 0;
    uint32_t next_descriptor = 0;
    const uint8_t* output = nullptr;
    uint64_t output_size = 0;
    uint64_t given = 0;
    uint8_t* taken[3] = {};
    uint64_t taken_size[3] = {};
    uint64_t taken_limit[3] = {};
    const uint32_t* stalls = nullptr;
    uint32_t stall_count = 0;
    std::vector<Event> events;
};

State state;

// What unruly_memory.sv draws: xorshift64. It goes on when a workload is over.
uint64_t memory_random = 1;
uint64_t memory_seen[16] = {};

// The byte that stands for a bus address, or nothing. A workload has few regions.
uint8_t* byte_at(uint64_t address) {
    for (const Region& region : state.regions) {
        if (address - region.start < region.size) return region.data + (address - region.start);
    }
    return nullptr;
}

}  // namespace

extern "C" {

// For the driver.

void workload_reset() { state = State(); }

void workload_map(uint64_t start, uint64_t size, uint8_t* data) {
    state.regions.push_back({start, size, data});
}

void workload_elsewhere(ReadElsewhere read, WriteElsewhere write) {
    state.read_elsewhere = read;
    state.write_elsewhere = write;
}

void workload_program(const Descriptor* descriptors, uint32_t count, const uint8_t* output,
                      uint64_t output_size) {
    state.descriptors = descriptors;
    state.descriptor_count = count;
    state.output = output;
    state.output_size = output_size;
}

void workload_sink(uint32_t stream, uint8_t* data, uint64_t limit) {
    state.taken[stream] = data;
    state.taken_limit[stream] = limit;
}

// One word for each cycle, repeated: bits 0 to 4 the bus, 5 to 8 the streams.
void workload_pattern(const uint32_t* stalls, uint32_t count) {
    state.stalls = stalls;
    state.stall_count = count;
}

uint64_t workload_taken(uint32_t stream) { return state.taken_size[stream]; }
uint64_t workload_given() { return state.given; }
uint32_t workload_event_count() { return static_cast<uint32_t>(state.events.size()); }
const Event* workload_events() { return state.events.data(); }

// For host_memory.sv. A word that is read fails if none of its bytes is mapped; a byte beside a region
// reads as something that no one may use. One that is written fails if a byte of it is not mapped.

constexpr uint8_t kUnmapped = 0xbd;

void host_memory_read(uint64_t address, uint32_t bytes, uint32_t* data, uint8_t* failed) {
    uint8_t* target = reinterpret_cast<uint8_t*>(data);
    uint8_t* first = byte_at(address);
    if (first && byte_at(address + bytes - 1) == first + bytes - 1) {
        memcpy(target, first, bytes);
        *failed = 0;
        return;
    }
    if (!first && state.read_elsewhere) {
        *failed = state.read_elsewhere(address, bytes, target);
        return;
    }
    *failed = 1;
    for (uint32_t i = 0; i < bytes; i++) {
        const uint8_t* source = byte_at(address + i);
        target[i] = source ? *source : kUnmapped;
        if (source) *failed = 0;
    }
}

void host_memory_write(uint64_t address, uint32_t bytes, const uint32_t* data,
                       const uint32_t* strobes, uint8_t* failed) {
    const uint8_t* source = reinterpret_cast<const uint8_t*>(data);
    *failed = 0;
    if (state.write_elsewhere && !byte_at(address)) {
        *failed = state.write_elsewhere(address, bytes, source, strobes[0]);
        return;
    }
    for (uint32_t i = 0; i < bytes; i++) {
        if (!(strobes[i / 32] >> (i % 32) & 1)) continue;
        uint8_t* target = byte_at(address + i);
        if (target) *target = source[i];
        else *failed = 1;
    }
}

// For unruly_memory.sv.

void memory_seed(uint64_t seed) {
    memory_random = seed * 0x9e3779b97f4a7c15 + 0x2545f4914f6cdd1d;
    if (!memory_random) memory_random = 1;
}

void memory_saw(uint32_t what) { memory_seen[what]++; }

uint64_t memory_seen_of(uint32_t what) { return memory_seen[what]; }

uint32_t memory_draw() {
    memory_random ^= memory_random << 13;
    memory_random ^= memory_random >> 7;
    memory_random ^= memory_random << 17;
    return static_cast<uint32_t>(memory_random >> 32);
}

// For workload.sv.

uint8_t workload_descriptor(uint8_t* fence, uint32_t* tag, uint32_t* size, uint64_t* address) {
    if (state.next_descriptor == state.descriptor_count) {
        *fence = 0;
        *tag = *size = 0;
        *address = 0;
        return 0;
    }
    const Descriptor& next = state.descriptors[state.next_descriptor++];
    *fence = next.fence;
    *tag = next.tag;
    *size = next.size;
    *address = next.address;
    return 1;
}

uint32_t workload_descriptors() { return state.descriptor_count; }

void workload_take(uint32_t stream, uint32_t count, const uint32_t* data) {
    uint64_t& size = state.taken_size[stream];
    if (size + count <= state.taken_limit[stream]) {
        memcpy(state.taken[stream] + size, data, count);
    }
    size += count;
}

uint32_t workload_give(uint32_t most, uint32_t* data) {
    uint64_t left = state.output_size - state.given;
    uint32_t count = left < most ? static_cast<uint32_t>(left) : most;
    memset(data, 0, most);
    if (count) memcpy(data, state.output + state.given, count);
    state.given += count;
    return count;
}

uint32_t workload_stall(uint32_t cycle) {
    return state.stall_count ? state.stalls[cycle % state.stall_count] : 0;
}

void workload_event(uint32_t cycle, uint32_t kind, uint32_t index) {
    state.events.push_back({cycle, kind, index});
}
}
