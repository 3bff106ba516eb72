"""The binary executable format (BEF) of TFRT.

``load`` reads a file, ``dump`` writes one; ``from_text`` and ``to_text`` convert from and to the
text form, a subset of MLIR; ``disassemble`` lists what a file says.
"""

from darwinn_formats.errors import FormatError
from darwinn_formats.tfrt.describe import describe, disassemble
from darwinn_formats.tfrt.encoding import DType, FunctionKind, Kind
from darwinn_formats.tfrt.lowering import diagnose, from_text, lower
from darwinn_formats.tfrt.model import (
    Aggregate,
    Array,
    Attribute,
    BefFile,
    Body,
    CallSite,
    Dense,
    FileLineColumn,
    Function,
    FunctionName,
    Fused,
    Kernel,
    Location,
    NameLocation,
    Register,
    Scalar,
    Shape,
    String,
    Symbol,
    Type,
    UnknownLocation,
    UnknownSection,
    Untyped,
)
from darwinn_formats.tfrt.raising import raise_module, to_text
from darwinn_formats.tfrt.reader import load
from darwinn_formats.tfrt.text import TextError, parse, print_module
from darwinn_formats.tfrt.writer import dump

__all__ = [
    "Aggregate",
    "Array",
    "Attribute",
    "BefFile",
    "Body",
    "CallSite",
    "DType",
    "Dense",
    "FileLineColumn",
    "FormatError",
    "Function",
    "FunctionKind",
    "FunctionName",
    "Fused",
    "Kernel",
    "Kind",
    "Location",
    "NameLocation",
    "Register",
    "Scalar",
    "Shape",
    "String",
    "Symbol",
    "TextError",
    "Type",
    "UnknownLocation",
    "UnknownSection",
    "Untyped",
    "describe",
    "diagnose",
    "disassemble",
    "dump",
    "from_text",
    "load",
    "lower",
    "parse",
    "print_module",
    "raise_module",
    "to_text",
]
