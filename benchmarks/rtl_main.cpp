// Drives workload.sv with nothing but a clock: the speed that a simulation of it can have at most.
// Reads a workload (see benchmarks/rtl.py) and prints cycles and processor seconds, busy and idle.

#include <verilated.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

#include "Vworkload.h"

extern "C" {
struct Descriptor;
void workload_reset();
void workload_map(uint64_t start, uint64_t size, uint8_t* data);
void workload_program(const Descriptor* descriptors, uint32_t count, const uint8_t* output,
                      uint64_t output_size);
}

namespace {

std::vector<uint8_t> read_all(const char* path) {
    std::vector<uint8_t> bytes;
    FILE* file = fopen(path, "rb");
    if (!file) exit(2);
    for (int byte; (byte = fgetc(file)) != EOF;) bytes.push_back(static_cast<uint8_t>(byte));
    fclose(file);
    return bytes;
}

double seconds() { return static_cast<double>(clock()) / CLOCKS_PER_SEC; }

void tick(Vworkload& top) {
    top.clk = 0;
    top.eval();
    top.clk = 1;
    top.eval();
    Verilated::timeInc(1);  // the message of a failed assertion has the cycle
}

}  // namespace

// DESCRIPTORS COUNT MEMORY_BYTES OUTPUT_BYTES IDLE_CYCLES
int main(int, char** arguments) {
    std::vector<uint8_t> descriptors = read_all(arguments[1]);
    std::vector<uint8_t> memory(strtoul(arguments[3], nullptr, 10));
    std::vector<uint8_t> output(strtoul(arguments[4], nullptr, 10));
    const uint64_t idle = strtoul(arguments[5], nullptr, 10);
    auto top = std::make_unique<Vworkload>();
    workload_reset();
    workload_map(0, memory.size(), memory.data());
    workload_program(reinterpret_cast<const Descriptor*>(descriptors.data()),
                     static_cast<uint32_t>(strtoul(arguments[2], nullptr, 10)), output.data(),
                     output.size());
    top->rst_n = 0;
    for (int i = 0; i < 4; i++) tick(*top);
    top->rst_n = 1;
    tick(*top);
    uint64_t busy = 0;
    double begun = seconds();
    top->go = 1;
    while (!top->finished) {
        tick(*top);
        busy++;
    }
    double between = seconds();
    top->go = 0;
    for (uint64_t i = 0; i < idle; i++) tick(*top);
    double ended = seconds();
    printf("%llu %f %llu %f\n", static_cast<unsigned long long>(busy), between - begun,
           static_cast<unsigned long long>(idle), ended - between);
    return 0;
}
