// Streams operands through `arithmetic` and takes the results, for Python through ctypes.

#include <verilated.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "Varithmetic.h"

namespace {

constexpr uint32_t kTableWords = 47;

struct Results {
    uint32_t product, total, less, converted, nearest, low_bits;
};

struct Stage {
    uint32_t sum, bias, scale, high_clip, low_clip, switches, zero_point;
};

VerilatedContext context;
std::unique_ptr<Varithmetic> top;

}  // namespace

extern "C" {

// Before all others. `argument` is one of the simulator's, or empty.
void arithmetic_open(const char* argument) {
    const char* arguments[] = {"arithmetic", argument};
    context.commandArgs(*argument ? 2 : 1, arguments);
    top = std::make_unique<Varithmetic>(&context);
}

// What the functions make of each pair of operands.
void arithmetic_functions(const uint32_t* a, const uint32_t* b, Results* results, uint64_t count) {
    Varithmetic& of = *top;
    of.stage_active = 0;
    for (uint64_t i = 0; i < count; i++) {
        of.a = a[i];
        of.b = b[i];
        of.eval();
        results[i] = {of.product, of.total, of.less, of.converted, of.nearest, of.low_bits};
    }
}

// What the output stage makes of each case, all with one function table.
void arithmetic_stage(const Stage* cases, const uint32_t* table, uint16_t* results,
                      uint64_t count) {
    Varithmetic& of = *top;
    of.stage_active = 1;
    std::memcpy(of.stage_table.data(), table, 4 * kTableWords);
    for (uint64_t i = 0; i < count; i++) {
        const Stage& given = cases[i];
        of.stage_sum = given.sum;
        of.stage_bias = given.bias;
        of.stage_scale = given.scale;
        of.stage_high_clip = given.high_clip;
        of.stage_low_clip = given.low_clip;
        of.stage_switches = given.switches;
        of.stage_zero_point = given.zero_point;
        of.eval();
        results[i] = of.stage_result;
    }
}
}

// It has no assertions; nothing else may end the process that has loaded it.
void vl_stop(const char* file, int line, const char*) { vl_fatal(file, line, "", "stopped"); }
void vl_fatal(const char*, int, const char*, const char*) VL_MT_UNSAFE { std::abort(); }
