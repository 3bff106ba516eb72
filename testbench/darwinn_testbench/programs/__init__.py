"""Programs of other formats than DarwiNN: what is in them, running and comparing them."""

from darwinn_testbench.programs.contents import (
    FunctionRow,
    PartRow,
    inspect_program,
    list_program,
    summary_lines,
)
from darwinn_testbench.programs.formats import FORMATS, Format, Natives, format_of, open_program
from darwinn_testbench.programs.natives import load_natives
from darwinn_testbench.programs.run import run_program
from darwinn_testbench.programs.verify import ComparedRow, verify_against

__all__ = [
    "FORMATS",
    "ComparedRow",
    "Format",
    "FunctionRow",
    "Natives",
    "PartRow",
    "format_of",
    "inspect_program",
    "list_program",
    "load_natives",
    "open_program",
    "run_program",
    "summary_lines",
    "verify_against",
]
