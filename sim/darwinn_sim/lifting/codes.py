"""Codes of identities, as the octets of several runs give them (``units.identities``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel.compiled import compiled
from darwinn_sim.units.identities import CODES, NOTHING, SPACING


def octets_needed(identities: int) -> int:
    """Runs that it takes to tell so many identities from each other."""
    return 3 if identities <= CODES else 4


def octets(identities: NDArray[np.int64], shift: int) -> NDArray[np.uint8]:
    """What bytes of these identities hold in the run of a ``shift``."""
    high, low = np.divmod(identities, CODES)
    code = high << 24 | (low + low // (SPACING - 1) + 1)
    found: NDArray[np.uint8] = (code >> shift & 0xFF).astype(np.uint8)
    return found


@compiled
def add_octets(codes: NDArray[np.int32], octets: NDArray[np.uint8], shift: int) -> None:
    """Take what the run of a ``shift`` had of bytes into their codes."""
    for i in range(len(codes)):
        codes[i] |= np.int32(octets[i]) << np.int32(shift)


@compiled
def identify(codes: NDArray[np.int32], constants: int) -> None:
    """Replace codes by numbers: a constant by its value, another one by its identity plus
    ``constants``.
    """
    for i in range(len(codes)):
        code = np.int64(codes[i]) & 0xFFFFFFFF
        low = code & 0xFFFFFF
        if low % SPACING == 0:
            codes[i] = low // SPACING
        else:
            codes[i] = constants + low - low // SPACING - 1 + (code >> 24) * CODES


@compiled
def join(
    one: NDArray[np.int32],
    other: NDArray[np.int32],
    slots: NDArray[np.int32],
    first: NDArray[np.int32],
) -> int:
    """Number pairs of numbers, equal ones alike, in the place of ``one``; -1 where this is so.

    ``slots``: a power of two of places, all -1, more than there are pairs. ``first``: room for the
    places of the first of each. Returns how many numbers there are; -1 without room.
    """
    mask = len(slots) - 1
    count = 0
    for i in range(len(one)):
        if one[i] < 0:
            continue
        key = np.int64(one[i]) << 32 | np.int64(other[i])
        hashed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64(hashed >> np.uint64(24)) & mask
        while slots[slot] >= 0:
            known = slots[slot]
            if first[known, 0] == one[i] and first[known, 1] == other[i]:
                break
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            if count == len(first):
                return NOTHING
            slots[slot] = count
            first[count, 0] = one[i]
            first[count, 1] = other[i]
            count += 1
        one[i] = slots[slot]
    return count
