"""What a tile's memories have a place for; any other address is a fault.

Both models ask here: the functional one before it moves data, the event model in place of that.
"""

from __future__ import annotations

from darwinn_sim import chip
from darwinn_sim.kernel import traversal
from darwinn_sim.kernel.compiled import inner

NARROW_WORDS = chip.NARROW_BYTES // chip.WORD_BYTES
SCALE_STEPS = chip.SCALE_BIAS_WORDS // 2
"""Places of narrow memory, and of the scale/bias buffer."""

NARROW_MASK = chip.NARROW_ADDRESS_BYTES - 1
"""Byte addresses of narrow memory wrap."""

_WORD_MASK = NARROW_MASK // chip.WORD_BYTES


@inner
def word_address(state: traversal.State, parameters: traversal.Parameters) -> int:
    """The word of narrow memory that a traversal is at."""
    return wrapped(traversal.address(state, parameters))


@inner
def wrapped(address: int) -> int:
    """Word addresses of narrow memory wrap."""
    return address & _WORD_MASK


@inner
def has_words(first: int, last: int) -> bool:
    """Narrow memory has the words from one address to the other, in steps in one direction.

    They may be there, too, if this is false: where they wrap.
    """
    same = (first & ~_WORD_MASK) == (last & ~_WORD_MASK)
    return bool(same and not lacks_word(wrapped(first)) and not lacks_word(wrapped(last)))


@inner
def lacks_bytes(address: int) -> bool:
    """Narrow memory ends before the word at a byte address does."""
    return bool(address + chip.WORD_BYTES > chip.NARROW_BYTES)


@inner
def lacks_word(address: int) -> bool:
    """Narrow memory has no word at a word address."""
    return bool(address >= NARROW_WORDS)


@inner
def lacks_row(row: int) -> bool:
    """Wide memory has no such row."""
    return bool(row < 0 or row >= chip.WIDE_ROWS)


@inner
def lacks_scales(address: int) -> bool:
    """The scale/bias buffer has no two words for this step."""
    return bool(address < 0 or address >= SCALE_STEPS)
