"""What operations have in common whose result is one pixel: the window, and telling all tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from darwinn_sim.chip import WORD_BYTES

from darwinn_testbench.compiler.stages.operations import (
    Channelwise,
    Convolution,
)
from darwinn_testbench.compiler.stages.phases import Areas, Phase
from darwinn_testbench.compiler.stages.ring import Share, gather
from darwinn_testbench.compiler.stages.storage import common


def met_by_one(operation: Convolution | Channelwise) -> tuple[tuple[int, slice], tuple[int, slice]]:
    """First row and column that the only result meets of its source, and which weights they meet.

    Raises:
        ValueError: the window is dilated.
    """
    found = []
    for reach, size in (
        (operation.rows, operation.source.height),
        (operation.columns, operation.source.width),
    ):
        if reach.dilation > 1:
            raise ValueError("a dilated window over a whole image")
        first = reach.first(0)
        begin, end = common(reach.inputs(0, 1), (0, size))
        found.append((begin, slice(begin - first, end - first)))
    return found[0], found[1]


@dataclass(frozen=True)
class Vector:
    """A vector of which tiles compute ``sizes`` bytes each, which go to ``starts`` on all tiles."""

    starts: Mapping[int, int]
    sizes: Mapping[int, int]

    @property
    def in_place(self) -> bool:
        """Whether each tile computes its bytes at the first place: those of a size work alike."""
        return len(self.sizes) > len(set(self.sizes.values()))

    def made(self, tile: int) -> int:
        """Where a tile computes its bytes."""
        return min(self.starts.values()) if self.in_place else self.starts[tile]


def tell(number: int, vector: Vector, areas: Areas) -> Phase:
    """Have tiles send the bytes that they have of a vector to all tiles."""
    shares = []
    for tile, start in sorted(vector.starts.items()):
        words = [(vector.sizes[tile] // WORD_BYTES, 1)]
        made = vector.made(tile) // WORD_BYTES
        shares.append(Share(tile, made, words, start // WORD_BYTES, words))
    first, alone = areas.reuse(sum(share.rows for share in shares))
    return Phase(
        number,
        "results to all tiles",
        lambda program: gather(program, shares, first, in_place=vector.in_place),
        uses_ring=True,
        alone=alone,
    )
