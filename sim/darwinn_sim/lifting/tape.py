"""What the scalar core computes from data: operations on words, in the order of time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel.compiled import compiled, inner
from darwinn_sim.units.identities import BLOCK

CONSTANTS = 256
"""Numbers of bytes below this are constants of that value; above it are identities."""

OPERAND_BYTES = 8
"""Bytes of the operands of an operation: of two words."""


class Tape(NamedTuple):
    """Of each operation of a walk its number (``scalar_alu``); numbers of the bytes of its two
    words: (operations, 8); and the identity of the first byte of its result, which grows.
    """

    operation: NDArray[np.int32]
    operands: NDArray[np.int32]
    identity: NDArray[np.int64]


@inner
def level_of(number: int, levels: NDArray[np.int32]) -> int:
    """How many runs, one after another, a byte follows from."""
    return 0 if number < CONSTANTS else int(levels[(number - CONSTANTS) // BLOCK])


@inner
def need(number: int, needed: NDArray[np.bool_]) -> None:
    """A byte is needed."""
    if number >= CONSTANTS:
        needed[number - CONSTANTS] = True


@compiled
def find_levels(
    tape: Tape, first: int, before: int, levels: NDArray[np.int32], found: NDArray[np.int32]
) -> int:
    """Levels of operations from ``first`` on with identities below ``before``; the next one. They
    are made when all runs of lower levels are, before those of their own.
    """
    n = first
    while n < len(tape.identity) and tape.identity[n] < before:
        level = 0
        for number in tape.operands[n]:
            level = max(level, level_of(number, levels))
        found[n] = levels[tape.identity[n] // BLOCK] = level
        n += 1
    return n


@compiled
def find_needed(
    tape: Tape, last: int, begin: int, needed: NDArray[np.bool_], found: NDArray[np.bool_]
) -> int:
    """Which operations before ``last``, with identities from ``begin`` on, are needed, and so their
    operands; where the others end.
    """
    n = last
    while n > 0 and tape.identity[n - 1] >= begin:
        n -= 1
        first = tape.identity[n]
        for identity in range(first, first + BLOCK):
            found[n] |= needed[identity]
        if found[n]:
            for number in tape.operands[n]:
                need(number, needed)
    return n
