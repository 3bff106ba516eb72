// Scalar memory of chip_player.sv in place, for Python in a simulation that cocotb drives: the scalar
// core, which shares it with the units, is a model in Python.

#include <cstdint>

#include "Vtop___024root.h"

extern Vtop___024root* simulation_root;

extern "C" uint32_t* simulation_scalar_memory() {
    return simulation_root->chip_player__DOT__chip__DOT__memory__DOT__words.m_storage;
}
