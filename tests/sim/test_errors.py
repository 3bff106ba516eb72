"""What each error says, and what it carries."""

from __future__ import annotations

from typing import Any

import pytest
from darwinn_sim import errors
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS

SUM = BY_NAME["TensorSum"].opcode
UNKNOWN = next(code for code in range(64) if code not in INSTRUCTIONS)

CASES: list[tuple[type[errors.SimulationError], tuple[Any, ...], dict[str, Any], str]] = [
    (
        errors.UnsupportedInstruction,
        (SUM, 0, 7, "function", 9),
        {},
        "TensorSum at chunk 0, pc 7: function = 9 is not implemented",
    ),
    (
        errors.UnsupportedInstruction,
        (SUM, 1, 0, "function", 0, "why"),
        {"assumed": True},
        "TensorSum at chunk 1, pc 0: function = 0 is an assumption: why",
    ),
    (
        errors.UnsupportedInstruction,
        (SUM, 0, 0, "", SUM),
        {},
        f"TensorSum at chunk 0, pc 0: opcode = {SUM} is not implemented",
    ),
    (
        errors.UnsupportedInstruction,
        (UNKNOWN, 2, 3, "", UNKNOWN),
        {},
        f"opcode {UNKNOWN} at chunk 2, pc 3 is not implemented",
    ),
    (
        errors.UnsupportedInstruction,
        (UNKNOWN, 2, 3, "opcode", UNKNOWN),
        {},
        f"opcode {UNKNOWN} at chunk 2, pc 3 is not implemented",
    ),
    (
        errors.UnsupportedInstruction,
        (UNKNOWN, 2, 3, "gate", 1),
        {},
        f"opcode {UNKNOWN} at chunk 2, pc 3: gate = 1 is not implemented",
    ),
    (errors.Deadlock, (("a waits", "b waits"),), {}, "deadlock: a waits; b waits"),
    (
        errors.NotEnded,
        ("5 steps", ("here", "there")),
        {},
        "the program has not ended after 5 steps: here; there",
    ),
    (
        errors.PageFault,
        (0x1000, 3),
        {},
        "page fault at device address 0x0000000000001000 (3 bytes)",
    ),
    (
        errors.MemoryFault,
        ("scratch", 16, 4, "no such bytes"),
        {},
        "scratch: no such bytes at 0x10 (4 bytes)",
    ),
    (
        errors.UninitialisedRead,
        ("tile 0", 16, 4),
        {},
        "tile 0: read of 4 bytes at 0x10 that nothing has written",
    ),
    (
        errors.ChipFault,
        ("DMA", "why", 0, 5, 0, 0),
        {},
        "DMA: why (tile 0, chunk 0, pc 5, address 0x0)",
    ),
    (errors.ChipFault, ("DMA", "why", 0, 5, -1, 255), {}, "DMA: why (chunk 0, pc 5, address 0xff)"),
]


@pytest.mark.parametrize(("kind", "arguments", "named", "text"), CASES)
def test_an_error_says_what_and_where(
    kind: type[errors.SimulationError], arguments: tuple[Any, ...], named: dict[str, Any], text: str
) -> None:
    error = kind(*arguments, **named)
    assert str(error) == text
    held = list(vars(error).values())
    for value in arguments:
        assert value in held


@pytest.mark.parametrize(
    ("chunks", "have"), [(1, "its only chunk"), (2, "the last of its 2 chunks")]
)
def test_an_incomplete_program_says_after_which_chunk(chunks: int, have: str) -> None:
    error = errors.IncompleteProgram(chunks)
    assert str(error).startswith(f"incomplete: after {have} the program waits for its next ")
    assert error.chunks == chunks


def test_an_assumption_is_one() -> None:
    assert errors.UnsupportedInstruction(SUM, 0, 0, "function", 1, assumed=True).assumed
    assert not errors.UnsupportedInstruction(SUM, 0, 0, "function", 1).assumed


def test_an_error_of_this_program_is_named() -> None:
    found = errors.defect(KeyError("tile"))
    assert type(found) is errors.SimulationError
    assert str(found) == "internal error, please report it: KeyError: 'tile'"
