"""Other contents for what nothing has written: does a result depend on them?

The shadows of the memories (``state``) tell what may follow from unwritten bytes. Whether it does
is seen by running the same again with other bytes there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel import state
from darwinn_sim.kernel.structure import Records

_BY_BYTES = ("narrow", "wide", "scale_bias")
_BY_BITS = ("memory", "registers")
_BUFFERS = ("activations", "parameters")


def change(
    tiles: Records[state.Tile], core: Records[state.Core], random: np.random.Generator | None
) -> None:
    """Change every bit that nothing has written, or a random part of each byte's bits, in place."""
    for name in _BY_BYTES:
        _flip(tiles[name], tiles[f"{name}_written"].view(np.uint8) * np.uint8(0xFF), random)
    for name in _BY_BITS:
        _flip(core[name], core[f"{name}_written"].view(np.uint8), random)
    for name in _BUFFERS:
        _flip(core[name], core[f"{name}_written"] * np.uint8(0xFF), random)
    for number in np.flatnonzero(tiles["table_written"] == 0):
        for name in ("coefficient", "lower_bound"):
            values = tiles[name][number]
            values[:] = (
                np.arange(1, values.size + 1) if random is None else random.random(values.size)
            )


def _flip(
    memory: NDArray[Any], written: NDArray[np.uint8], random: np.random.Generator | None
) -> None:
    """Flip bits of ``memory`` where ``written`` has a 0."""
    octets = memory.view(np.uint8)
    if random is None:
        octets ^= ~written
    else:
        octets ^= random.integers(1, 256, octets.shape, np.uint8) & ~written
