"""Programs of other formats than DarwiNN: what is in them, running and comparing them."""

from darwinn_testbench.programs.contents import (
    FunctionRow,
    PartRow,
    inspect_program,
    list_program,
    summary_lines,
)
from darwinn_testbench.programs.formats import FORMATS, Format, Natives, format_of, open_program

__all__ = [
    "FORMATS",
    "Format",
    "FunctionRow",
    "Natives",
    "PartRow",
    "format_of",
    "inspect_program",
    "list_program",
    "open_program",
    "summary_lines",
]
