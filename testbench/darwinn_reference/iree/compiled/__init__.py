"""Functions with loops as machine code: what the interpreter does, bit for bit, at speed."""

from darwinn_reference.iree.compiled.activation import CompiledActivation
from darwinn_reference.iree.compiled.build import Code, code_of
from darwinn_reference.iree.compiled.ranges import Ranges, Touched

__all__ = ["Code", "CompiledActivation", "Ranges", "Touched", "code_of"]
