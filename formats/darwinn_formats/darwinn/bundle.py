"""The two instructions that the file format depends on: how a chunk starts, and what is patched.

The instruction set itself belongs to the chip model. The values here are those of its table
(a test compares them): the first bundle of a chunk is LoadProgram and counts the bundles between
itself and the last one, Execute; a relocated field is the immediate of a scalar move.
"""

from __future__ import annotations

BUNDLE_BITS = 128
BUNDLE_BYTES = BUNDLE_BITS // 8

_OPCODE = (6, 6)
_LOAD_PROGRAM = 62
_SCALAR = 32
_BUNDLE_COUNT = (26, 15)
_ALU_OP = (54, 5)
_ALU_OP_MOVE = 15
_ALU_IMMEDIATE = (59, 1)
IMMEDIATE_BIT = 70
"""Bit of a scalar bundle at which the 32-bit immediate starts."""


def _field(bundle: bytes | memoryview, place: tuple[int, int]) -> int:
    offset, width = place
    return int.from_bytes(bundle, "little") >> offset & (1 << width) - 1


def chunk_bytes(data: bytes | memoryview, start: int = 0) -> int | None:
    """Size in bytes of the chunk that starts at ``start``, or None if no chunk starts there."""
    bundle = data[start : start + BUNDLE_BYTES]
    if len(bundle) < BUNDLE_BYTES or _field(bundle, _OPCODE) != _LOAD_PROGRAM:
        return None
    return (_field(bundle, _BUNDLE_COUNT) + 2) * BUNDLE_BYTES


def relocation_fault(chunk: bytes | memoryview, offset_bit: int) -> str | None:
    """Why the 32 bits at a bit offset of a chunk are not a field to patch, or None if they are.

    The field must be the immediate of a scalar move and hold 32 zero bits.
    """
    start = offset_bit // BUNDLE_BITS * BUNDLE_BYTES
    bundle = chunk[start : start + BUNDLE_BYTES] if offset_bit >= 0 else b""
    if len(bundle) < BUNDLE_BYTES:
        return f"bit {offset_bit} is outside the chunk of {len(chunk)} bytes"
    if offset_bit % BUNDLE_BITS != IMMEDIATE_BIT:
        return f"bit {offset_bit} is not the immediate of a scalar bundle"
    if _field(bundle, _OPCODE) != _SCALAR or _field(bundle, _ALU_OP) != _ALU_OP_MOVE:
        return f"the bundle of bit {offset_bit} is not a scalar move"
    if not _field(bundle, _ALU_IMMEDIATE):
        return f"the move of bit {offset_bit} does not take its immediate"
    held = _field(bundle, (IMMEDIATE_BIT, 32))
    return f"the field at bit {offset_bit} holds {held:#x}, not zero" if held else None
