"""The whole chip in SystemVerilog, beside the model."""
