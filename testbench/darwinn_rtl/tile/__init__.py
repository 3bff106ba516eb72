"""The units of a tile in SystemVerilog, each on its own."""
