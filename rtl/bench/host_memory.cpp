// The C++ side of host_memory.sv and unruly_memory.sv: plain buffers that belong to whoever drives the
// simulation (Python, through ctypes) and that the RTL reads and writes in place, by DPI.

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

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
};

State state;

// What unruly_memory.sv draws: xorshift64. It goes on when memory is forgotten.
uint64_t memory_random = 1;
uint64_t memory_seen[16] = {};

// The byte that stands for a bus address, or nothing. There are few regions.
uint8_t* byte_at(uint64_t address) {
    for (const Region& region : state.regions) {
        if (address - region.start < region.size) return region.data + (address - region.start);
    }
    return nullptr;
}

}  // namespace

extern "C" {

// For the driver.

void host_memory_forget() { state = State(); }

void host_memory_map(uint64_t start, uint64_t size, uint8_t* data) {
    state.regions.push_back({start, size, data});
}

void host_memory_elsewhere(ReadElsewhere read, WriteElsewhere write) {
    state.read_elsewhere = read;
    state.write_elsewhere = write;
}

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
}
