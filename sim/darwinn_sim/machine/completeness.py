"""Whether all chunks of a program are there: readers ask before anything of the chip is loaded."""

from __future__ import annotations

from collections.abc import Sequence

from darwinn_sim.errors import IncompleteProgram
from darwinn_sim.isa.codec import DecodedChunk
from darwinn_sim.isa.table import BY_NAME


def awaits_chunk(chunks: Sequence[DecodedChunk]) -> bool:
    """Whether a program goes on in a chunk that is not there: none of its last halts is its end."""
    halts = chunks[-1].columns.get(BY_NAME["Halt"].opcode) if chunks else None
    return halts is not None and not halts["program_end"].any()


def incomplete_note(chunks: Sequence[DecodedChunk]) -> str:
    """What is missing where :func:`awaits_chunk` is true; empty otherwise."""
    return str(IncompleteProgram(len(chunks))) if awaits_chunk(chunks) else ""
