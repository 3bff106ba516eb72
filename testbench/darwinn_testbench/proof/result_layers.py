"""Find the layer of each result of a program, and the layers that compute or move many of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from darwinn_sim.isa.codec import DecodedChunk
from darwinn_sim.kernel.numbering import Made
from darwinn_sim.kernel.structure import Records
from darwinn_sim.machine import layers
from numpy.typing import NDArray

NO_LAYER = -1

_MUCH = 1 / 8
"""Share of a layer's results from which on it computes what they are of: a product of two tensors
has three results beside each of its own."""


class ResultLayers:
    """The layer ``of`` each result; ``NO_LAYER`` where results have 16 bits."""

    def __init__(self, made: Records[Made], chunks: Sequence[DecodedChunk]) -> None:
        layer_of = np.full(1 + int(made["instruction"].max(initial=0)), NO_LAYER)
        for each in layers.find(chunks):
            if not each.output_16bit:
                layer_of[[k for k in each.instructions if k < len(layer_of)]] = each.number
        self.of: NDArray[np.int64] = layer_of[made["instruction"]]
        self._sizes = np.bincount(self.of + 1)

    def made_of(self, results: NDArray[np.int64]) -> frozenset[int]:
        """The layers of which many results are among these (indices): they compute or move them."""
        count = np.bincount(self.of[results] + 1, minlength=len(self._sizes))
        much = (count[1:] > 0) & (count[1:] >= _MUCH * self._sizes[1:])
        return frozenset(np.flatnonzero(much).tolist())
