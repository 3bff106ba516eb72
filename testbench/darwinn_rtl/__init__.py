"""The SystemVerilog harness: building it, and the environment that drives and checks it.

The toolchain (extra ``rtl``) is optional: other packages import nothing here that needs it.
"""
