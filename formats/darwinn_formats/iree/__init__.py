"""IREE: modules of VM bytecode (.vmfb), and their parameters (.irpa).

``load`` reads and checks a file with all modules in it, ``dump`` writes a module, ``disassemble``
gives the text of every function, ``describe`` what a file holds. ``load_parameters`` reads a file
of parameters.
"""

from darwinn_formats.errors import FormatError
from darwinn_formats.iree.bytecode import Instruction, decode, encode
from darwinn_formats.iree.calling_convention import CallingConvention
from darwinn_formats.iree.check import argument_registers
from darwinn_formats.iree.describe import describe
from darwinn_formats.iree.elf import read_elf
from darwinn_formats.iree.listing import disassemble
from darwinn_formats.iree.loader import VmfbFile, dump, dump_definition, load
from darwinn_formats.iree.module import Function, Module
from darwinn_formats.iree.opcodes import OPERATIONS, Field, Operation
from darwinn_formats.iree.parameters import (
    ParameterFile,
    describe_parameters,
    load_parameters,
)

__all__ = [
    "OPERATIONS",
    "CallingConvention",
    "Field",
    "FormatError",
    "Function",
    "Instruction",
    "Module",
    "Operation",
    "ParameterFile",
    "VmfbFile",
    "argument_registers",
    "decode",
    "describe",
    "describe_parameters",
    "disassemble",
    "dump",
    "dump_definition",
    "encode",
    "load",
    "load_parameters",
    "read_elf",
]
