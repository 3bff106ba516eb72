"""Which layers results of a program are of, and which layers are mostly these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from darwinn_sim.isa.codec import DecodedChunk
from darwinn_sim.kernel.numbering import Made
from darwinn_sim.kernel.structure import Records
from darwinn_sim.machine import layers
from numpy.typing import NDArray

NO_LAYER = -1

_MOST = 0.5
"""Share of a layer's results above which it computes what they are of."""


class ResultLayers:
    """The layer ``of`` each result; ``NO_LAYER`` where results have 16 bits."""

    def __init__(self, made: Records[Made], chunks: Sequence[DecodedChunk]) -> None:
        layer_of = np.full(1 + int(made["instruction"].max(initial=0)), NO_LAYER)
        found = layers.find(chunks)
        for each in found:
            if not each.output_16bit:
                layer_of[[k for k in each.instructions if k < len(layer_of)]] = each.number
        self.of: NDArray[np.int64] = layer_of[made["instruction"]]
        self._copies = frozenset(each.number for each in found if each.copies)
        self._sizes = np.bincount(self.of + 1)

    def mostly(self, results: NDArray[np.int64]) -> frozenset[int]:
        """The layers of which most results are among these (indices)."""
        count = np.bincount(self.of[results] + 1, minlength=len(self._sizes))
        return frozenset(np.flatnonzero(count[1:] > _MOST * self._sizes[1:]).tolist())

    def computing(self, found: frozenset[int]) -> frozenset[int]:
        """Of layers those that compute, or else all, which move what others have computed."""
        return found - self._copies or found
