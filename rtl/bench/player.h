// A top module in a library that Python opens: clock, reset, accesses of the host's registers, and waits
// with a bound. What is handed over to a top is a class of its own, below Player.

#pragma once

#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

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

// Cycles after which it is looked whether anything has moved.
constexpr uint64_t GLANCE = 1024;

template <typename Top> class Player {
  public:
    // `argument` is one of the simulator's, or empty. Whoever derives from this calls `reset`.
    Player(int seed, const char* argument) {
        const char* arguments[] = {"player", argument};
        context.commandArgs(*argument ? 2 : 1, arguments);
        context.randReset(2);
        context.randSeed(seed);
#if VM_TRACE_FST
        context.traceEverOn(true);
#endif
        top = std::make_unique<Top>(&context, "");
    }

    virtual ~Player() {
#if VM_TRACE_FST
        waves.close();
#endif
        // A scope is taken out of the thread's context, which is that of the top built last.
        Verilated::threadContextp(&context);
        top->final();
    }

#if VM_TRACE_FST
    // From now on; the first change is that of the first cycle.
    void write_waves(const char* path) {
        top->trace(&waves, 99);
        waves.open(path);
    }
#endif

#if VM_COVERAGE
    void write_coverage(const char* path) { context.coveragep()->write(path); }
#endif

    // What is in memories stays.
    void reset() {
        top->s_axil_awvalid = top->s_axil_wvalid = top->s_axil_arvalid = 0;
        top->s_axil_awprot = top->s_axil_arprot = 0;
        top->s_axil_wstrb = 0xff;
        top->s_axil_bready = top->s_axil_rready = 1;
        rest();
        // Until the reset has taken effect everything is random, and no rule holds.
        top->rst_n = 0;
        context.assertOn(false);
        cycle();
        context.assertOn(true);
        for (int i = 1; i < 4; i++) cycle();
        top->rst_n = 1;
        cycles = 0;
        events.clear();
        failure.clear();
        forget();
    }

    void cycle() {
        begin_cycle();
        end_cycle();
    }

    // Goes on to the end of the first cycle in which `ready` is true. The wait is given up when
    // nothing has moved for more than `limit` cycles. `behind` is called after every clock edge.
    template <typename Ready> uint32_t wait(uint64_t limit, Ready ready) {
        return wait(limit, ready, [] {});
    }

    template <typename Ready, typename Behind>
    uint32_t wait(uint64_t limit, Ready ready, Behind behind) {
        const Interrupt interrupt;
        uint64_t moved_at = cycles;
        while (true) {
            begin_cycle();
            const bool done = ready();
            end_cycle();
            behind();
            if (!failure.empty()) return ASSERTION;
            if (done) return DONE;
            if (interrupt) return INTERRUPTED;
            if (cycles % GLANCE == 0 && has_moved()) moved_at = cycles;
            if (cycles - moved_at > limit) return TIMED_OUT;
        }
    }

    // The host writes a register, or reads one. The outcome tells whether it was answered well.
    uint32_t write_register(uint32_t offset, uint64_t value, uint64_t limit) {
        top->s_axil_awaddr = offset;
        top->s_axil_wdata = value;
        top->s_axil_awvalid = top->s_axil_wvalid = 1;
        bool address_taken = false, data_taken = false;
        uint8_t answer = 0;
        const uint32_t outcome = wait(
            limit,
            [&] {
                address_taken |= top->s_axil_awvalid && top->s_axil_awready;
                data_taken |= top->s_axil_wvalid && top->s_axil_wready;
                answer = top->s_axil_bresp;
                return top->s_axil_bvalid;
            },
            [&] {
                if (address_taken) top->s_axil_awvalid = 0;
                if (data_taken) top->s_axil_wvalid = 0;
            });
        return outcome == DONE && answer ? REFUSED_BY_BUS : outcome;
    }

    uint32_t read_register(uint32_t offset, uint64_t* value, uint64_t limit) {
        top->s_axil_araddr = offset;
        top->s_axil_arvalid = 1;
        bool address_taken = false;
        uint8_t answer = 0;
        const uint32_t outcome = wait(
            limit,
            [&] {
                address_taken |= top->s_axil_arvalid && top->s_axil_arready;
                answer = top->s_axil_rresp;
                *value = top->s_axil_rdata;
                return top->s_axil_rvalid;
            },
            [&] {
                if (address_taken) top->s_axil_arvalid = 0;
            });
        return outcome == DONE && answer ? REFUSED_BY_BUS : outcome;
    }

    VerilatedContext context;
    std::unique_ptr<Top> top;
    uint64_t cycles = 0;  // since the reset
    std::vector<Event> events;

  protected:
    // The inputs of a top to which nothing is handed over.
    virtual void rest() = 0;
    // What is known of the time before a reset is not true any more.
    virtual void forget() = 0;
    // Looks at a cycle before the clock edge that ends it.
    virtual void watch() = 0;
    // Sets the inputs of the next cycle.
    virtual void advance() {}
    // Whether anything has changed since this was last asked.
    virtual bool has_moved() { return false; }

  private:
    void begin_cycle() {
        evaluate(0);
        watch();
    }

    void end_cycle() {
        evaluate(1);
        cycles++;
        advance();
    }

    void evaluate(uint8_t clock) {
        top->clk = clock;
        top->eval();
#if VM_TRACE_FST
        if (waves.isOpen()) waves.dump(context.time());
#endif
        context.timeInc(1);
    }

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
