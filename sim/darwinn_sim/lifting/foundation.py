"""What a lifted program takes for granted of the chip that it was lifted on."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.device.chip import Contents
from darwinn_sim.kernel import state
from darwinn_sim.kernel.structure import Records

CONTROL = ("flags", "wide_write_second", "ring_read_second", "fence_count")
"""What a run leaves of a tile as it found it, or the program is not lifted."""


class Foundation(NamedTuple):
    """``stale``: a bit for each word of wide memory that a run writes, of all tiles; ``digest``: of
    all other words, which are constants to the program, and of what it found of flags."""

    stale: NDArray[np.uint8]
    digest: bytes

    def holds(self, tiles: Records[state.Tile], core: Records[state.Core]) -> bool:
        """Whether what is lifted is so on a chip that holds this, too."""
        wide = tiles["wide"]
        stale = np.unpackbits(self.stale, count=wide.size).reshape(wide.shape).view(np.bool_)
        return _digest(tiles, core, stale) == self.digest


def foundation_of(before: Contents, stale: NDArray[np.bool_]) -> Foundation:
    """Of a program that was lifted on a chip that held ``before``."""
    return Foundation(np.packbits(stale), _digest(before.tiles, before.core, stale))


def _digest(
    tiles: Records[state.Tile], core: Records[state.Core], stale: NDArray[np.bool_]
) -> bytes:
    found = hashlib.sha256(np.where(stale, np.uint32(0), tiles["wide"]).data)
    for each in (*(tiles[name] for name in CONTROL), core["flags"]):
        found.update(np.ascontiguousarray(each).data)
    return found.digest()
