// The program around a simulation that cocotb drives, in place of the one that cocotb brings along:
// the regions of a time step in the order that VPI asks for. The clock is its own, so that a cycle
// in which Python has nothing to do takes no callback and no write through VPI.

#include <algorithm>
#include <cstdint>

#include "Vtop.h"
#include "Vtop___024root.h"
#include "verilated.h"
#include "verilated_vpi.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
#endif

extern "C" void vlog_startup_routines_bootstrap(void);

namespace {

constexpr uint64_t kNever = ~0ULL;

// The clock stands still until Python starts it.
uint64_t half_period = 0;
uint64_t next_edge = kNever;

// Who hears of a new value may write others, of which somebody else hears.
void tell_values() {
    while (VerilatedVpi::callValueCbs()) {
    }
}

class Simulation {
public:
    Simulation() {
#if VM_TRACE_FST
        top.trace(&waves, 99);
        waves.open("dump.fst");
#endif
        // A failed assertion ends the program from within an evaluation.
        Verilated::addExitCb([](void* it) { static_cast<Simulation*>(it)->end(); }, this);
    }

    Vtop___024root* root() { return top.rootp; }

    void run() {
        if (VerilatedVpi::callCbs(cbStartOfSimulation)) tell_values();
        do step();
        while (!Verilated::gotFinish() && advance());
        // Blocks that were compiled by themselves, and their counts, are gone after that.
        end();
        top.final();
    }

private:
    // All that happens at one time: what is written takes effect, and what follows from it, until
    // nothing is written any more.
    void step() {
        do {
            do {
                top.eval_step();
                VerilatedVpi::clearEvalNeeded();
                VerilatedVpi::doInertialPuts();
                tell_values();
            } while (VerilatedVpi::evalNeeded());
            if (VerilatedVpi::callCbs(cbReadWriteSynch)) {
                VerilatedVpi::doInertialPuts();
                tell_values();
            }
        } while (VerilatedVpi::evalNeeded());
        top.eval_end_step();
        VerilatedVpi::callCbs(cbReadOnlySynch);
#if VM_TRACE_FST
        waves.dump(Verilated::time());
#endif
    }

    // Goes to the next time at which something happens; false if there is none. Who waits for an
    // edge of the clock still sees the values before it.
    bool advance() {
        const uint64_t deadline = VerilatedVpi::cbNextDeadline();
        const uint64_t next = std::min(deadline, next_edge);
        if (next == kNever) return false;
        Verilated::time(next);
        if (VerilatedVpi::callCbs(cbNextSimTime)) tell_values();
        if (next == deadline) {
            VerilatedVpi::callTimedCbs();
            tell_values();
        }
        if (next == next_edge) {
            next_edge += half_period;
            top.clk = !top.clk;
            tell_values();
        }
        return true;
    }

    void end() {
        VerilatedVpi::callCbs(cbEndOfSimulation);
#if VM_TRACE_FST
        waves.close();
#endif
#if VM_COVERAGE
        VerilatedCov::write();
#endif
    }

    Vtop top{""};
#if VM_TRACE_FST
    VerilatedFstC waves;
#endif
};

}  // namespace

// For C++ sources of a design that give Python its memories in place.
Vtop___024root* simulation_root = nullptr;

// For Python, by ctypes: the clock, which is 0, rises after half a period and goes on for good.
extern "C" void simulation_clock(uint64_t half_a_period) {
    half_period = half_a_period;
    next_edge = Verilated::time() + half_period;
}

int main(int argc, char** argv) {
    Verilated::commandArgs(argc, argv);
    Verilated::fatalOnVpiError(false);  // cocotb asks for what may not be there
#if VM_TRACE_FST
    Verilated::traceEverOn(true);
#endif
    Simulation simulation;
    simulation_root = simulation.root();
    vlog_startup_routines_bootstrap();
    simulation.run();
    return Verilated::threadContextp()->errorCount() > 0;
}
