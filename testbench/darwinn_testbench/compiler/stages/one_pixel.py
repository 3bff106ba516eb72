"""What operations have in common whose result is one pixel: the window, and telling all tiles."""

from __future__ import annotations

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


def tell(number: int, starts: dict[int, int], sizes: dict[int, int], areas: Areas) -> Phase:
    """Have tiles send the bytes that they have of a vector to all tiles, where they go.

    Each tile has its own at the first of these places: so all compute and pack alike.
    """
    shares = []
    for tile in sorted(starts):
        words = [(sizes[tile] // WORD_BYTES, 1)]
        here, there = min(starts.values()) // WORD_BYTES, starts[tile] // WORD_BYTES
        shares.append(Share(tile, here, words, there, words))
    first, alone = areas.reuse(sum(share.rows for share in shares))
    return Phase(
        number,
        "results to all tiles",
        lambda program: gather(program, shares, first, in_place=True),
        uses_ring=True,
        alone=alone,
    )
