"""The SystemVerilog harness: building it, and the environment that drives and checks it.

Nothing here is imported by the rest of the package: the toolchain (extra ``rtl``) is optional.
"""
