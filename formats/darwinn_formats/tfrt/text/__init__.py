"""The text form of BEF files: a subset of MLIR."""

from darwinn_formats.errors import TextError
from darwinn_formats.tfrt.text.parser import parse
from darwinn_formats.tfrt.text.printer import print_module

__all__ = ["TextError", "parse", "print_module"]
