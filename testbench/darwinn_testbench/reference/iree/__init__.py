"""CPU reference of IREE modules (.vmfb): VM bytecode with its ``hal``, ``hal_inline`` and ``vmvx``
imports, and VMVX executables as dispatches."""

from darwinn_testbench.reference.iree.reference import IMPORTS, IreeReference

__all__ = ["IMPORTS", "IreeReference"]
