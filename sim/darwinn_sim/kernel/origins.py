"""Which bytes of the parameters sums and results are made of, beside their value numbers.

While a core ``traces``, the number of a byte that is known may be its place in the parameters: bit
``SHADOW`` of its shadow says so. Every use of such a byte is marked. Of the sums that are wanted
each use is noted, with what the byte is multiplied with.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.numbering import MOST_PARAMETERS, MOST_SUMS, OTHER, Numbering
from darwinn_sim.kernel.shadows import SHADOW

_ONE = np.uint64(1)


@inner
def is_origin(written: np.uint32, k: int) -> bool:
    """The number of byte ``k`` of a word with this shadow is a place in the parameters."""
    return bool((written >> np.uint32(8 * k)) & np.uint32(SHADOW))


@inner
def begins_sum(n: Numbering, t: int) -> None:
    """A tile begins to add up."""
    if n.traces and n.sums_begun + 1 < MOST_SUMS:
        n.sums_begun += 1
        n.goes_on[n.sums_begun] = 0
        n.sum[t] = n.sums_begun


@inner
def goes_on(n: Numbering, tile: state.Tile, base: int, lanes: int) -> None:
    """A sum goes on from what is in a row."""
    if n.traces:
        n.goes_on[n.sum[tile.number]] = int(n.put_aside[tile.number, base // chip.ROW_WORDS])
        for k in range(4):
            uses_row(n, tile, base, k, lanes, OTHER, np.uint64(k))


@inner
def uses_row(
    n: Numbering, tile: state.Tile, base: int, k: int, lanes: int, role: int, number: np.uint64
) -> None:
    """Byte ``k`` of each word of a row is used; each is multiplied with the value ``number``."""
    if not n.traces:
        return
    t, row = tile.number, base // chip.ROW_WORDS
    if n.marked[t, row, k] < lanes:
        for lane in range(lanes):
            if is_origin(tile.wide_written[base + lane], k):
                _mark(n, n.wide[t, base + lane, k], role)
        n.marked[t, row, k] = lanes
    wanted = n.wanted[n.sum[t]]
    if wanted:
        for lane in range(lanes):
            if (wanted >> np.uint64(lane)) & _ONE and is_origin(tile.wide_written[base + lane], k):
                _note(n, t, lane, n.wide[t, base + lane, k], role, number)


@inner
def uses_byte(
    n: Numbering,
    t: int,
    lane: int,
    written: np.uint32,
    numbers: NDArray[np.uint64],
    k: int,
    role: int,
    number: np.uint64,
) -> None:
    """Byte ``k`` of a word is used in the sum of a lane, with the value ``number``."""
    if n.traces and is_origin(written, k):
        _mark(n, numbers[k], role)
        if (n.wanted[n.sum[t]] >> np.uint64(lane)) & _ONE:
            _note(n, t, lane, numbers[k], role, number)


@inner
def _mark(n: Numbering, place: np.uint64, role: int) -> None:
    if place < np.uint64(MOST_PARAMETERS):
        n.used_as[np.int64(place)] |= np.uint8(role)


@inner
def _note(n: Numbering, t: int, lane: int, place: np.uint64, role: int, number: np.uint64) -> None:
    if n.uses_noted == len(n.uses):
        n.lost += 1
        return
    use = n.uses[n.uses_noted]
    use.number, use.place, use.sum = number, int(place), n.sum[t]
    use.lane, use.role = np.uint8(lane), np.uint8(role)
    n.uses_noted += 1
