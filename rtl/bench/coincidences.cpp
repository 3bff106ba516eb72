// Keeps the pairs of conditions and handshakes that coincidence_counter.sv has told of, by record, until
// whoever drives the simulation takes them.

#include <cstdint>
#include <vector>

namespace {

std::vector<uint32_t> told[3];  // host, tile, core

}  // namespace

extern "C" {

void coincided(uint32_t record, uint32_t pair) { told[record].push_back(pair); }

// How many there are, and the first of them; they are forgotten with the next call.
uint32_t coincidences_told(uint32_t record, const uint32_t** pairs) {
    static std::vector<uint32_t> taken;
    taken.swap(told[record]);
    told[record].clear();
    *pairs = taken.data();
    return static_cast<uint32_t>(taken.size());
}
}
