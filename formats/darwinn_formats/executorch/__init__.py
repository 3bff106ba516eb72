"""ExecuTorch: programs (.pte), external data (.ptd) and bundled programs (.bpte).

``load`` and ``load_data`` read them, ``dump`` and ``dump_data`` write them, ``describe`` and
``disassemble`` show what is in them.
"""

from darwinn_formats.errors import FormatError
from darwinn_formats.executorch import schema
from darwinn_formats.executorch.describe import (
    describe,
    describe_data,
    disassemble,
    instruction_text,
    location_of,
)
from darwinn_formats.executorch.loader import (
    DataFile,
    ProgramFile,
    dump,
    dump_data,
    load,
    load_data,
)

__all__ = [
    "DataFile",
    "FormatError",
    "ProgramFile",
    "describe",
    "describe_data",
    "disassemble",
    "dump",
    "dump_data",
    "instruction_text",
    "load",
    "load_data",
    "location_of",
    "schema",
]
