// Drives both sides of the port of axi_bench.sv cycle by cycle, for Python through ctypes.

#include <verilated.h>

#include <cstdint>
#include <memory>
#include <string>

#include "Vaxi_bench.h"
#include "messages.h"

namespace {

// The inputs of a cycle, those of more than 8 bits first.
struct Cycle {
    uint64_t araddr, rdata, awaddr, wdata;
    uint8_t rst_n, arvalid, arready, arid, arlen, arsize, arburst, rvalid, rready, rid, rresp, rlast, awvalid, awready, awid, awlen, awsize, awburst, wvalid, wready, wstrb, wlast, bvalid, bready, bid, bresp, lite, offered, taken, ended;
};

// What was said of rules that are broken, a line each, behind the number of the cycle.
std::string messages;
uint64_t cycle;

}  // namespace

void vl_stop(const char*, int, const char*) {
    messages += std::to_string(cycle) + " " + last_message() + "\n";
}

void vl_fatal(const char*, int, const char*, const char* what) {
    messages += std::to_string(cycle) + " " + what + "\n";
}

// `argument` may choose a fault of the sources; it may be empty.
extern "C" const char* axi_bench_run(const char* argument, const Cycle* cycles, uint64_t count) {
    VerilatedContext context;
    const char* arguments[] = {"axi_bench", argument};
    context.commandArgs(*argument ? 2 : 1, arguments);
    context.randReset(2);
    const auto made = std::make_unique<Vaxi_bench>(&context);
    Vaxi_bench& top = *made;
    messages.clear();
    for (cycle = 0; cycle < count; cycle++) {
        const Cycle& now = cycles[cycle];
        top.clk = 0;
        top.rst_n = now.rst_n;
        top.arvalid = now.arvalid;
        top.arready = now.arready;
        top.arid = now.arid;
        top.araddr = now.araddr;
        top.arlen = now.arlen;
        top.arsize = now.arsize;
        top.arburst = now.arburst;
        top.rvalid = now.rvalid;
        top.rready = now.rready;
        top.rid = now.rid;
        top.rdata = now.rdata;
        top.rresp = now.rresp;
        top.rlast = now.rlast;
        top.awvalid = now.awvalid;
        top.awready = now.awready;
        top.awid = now.awid;
        top.awaddr = now.awaddr;
        top.awlen = now.awlen;
        top.awsize = now.awsize;
        top.awburst = now.awburst;
        top.wvalid = now.wvalid;
        top.wready = now.wready;
        top.wdata = now.wdata;
        top.wstrb = now.wstrb;
        top.wlast = now.wlast;
        top.bvalid = now.bvalid;
        top.bready = now.bready;
        top.bid = now.bid;
        top.bresp = now.bresp;
        top.lite = now.lite;
        top.offered = now.offered;
        top.taken = now.taken;
        top.ended = now.ended;
        top.eval();
        top.clk = 1;
        top.eval();
        context.timeInc(1);
    }
    return messages.c_str();
}
