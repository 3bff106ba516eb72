"""How much narrow memory holds values that are still needed, over time.

A word is in use from the instruction that writes it to the last one that reads it before it is
written again. The addresses follow from the instructions, so nothing has to be run; one that a
register supplies counts as the instruction's own.
"""

from __future__ import annotations

import numpy as np
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.timing import Timing
from numpy.typing import NDArray

from darwinn_testbench.profile.touched import NARROW_WORDS, Places, Touched

Series = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Cycles, ascending, and the bytes in use from each of them on."""

_NEVER = -1


def narrow_bytes_in_use(timing: Timing) -> dict[int, Series]:
    """For each tile that does anything the bytes of its narrow memory in use.

    ``timing`` was simulated with spans.
    """
    touched = Touched(timing.program)
    spans = timing.spans
    return {
        tile: _in_use(touched, spans[spans["tile"] == tile])
        for tile in np.unique(spans["tile"][spans["tile"] >= 0]).tolist()
    }


def _in_use(touched: Touched, spans: NDArray[np.void]) -> Series:
    """Begins and ends of every value: written when its writer begins, read until readers end."""
    written = np.full(NARROW_WORDS, _NEVER, np.int64)
    read = np.full(NARROW_WORDS, _NEVER, np.int64)
    begins: list[NDArray[np.int64]] = []
    ends: list[NDArray[np.int64]] = []

    def retire(words: Places) -> None:
        """Whatever is in ``words`` and was read is not needed any more."""
        needed = words[read[words] != _NEVER]
        begins.append(written[needed])
        ends.append(read[needed])
        written[needed] = read[needed] = _NEVER

    for cycle, is_read, instruction in _accesses(spans):
        reads, writes = (each[each < NARROW_WORDS] for each in touched.by(instruction))
        if is_read:
            used = reads[written[reads] != _NEVER]
            read[used] = cycle
        else:
            retire(writes)
            # A value that nobody has read yet may be a row of a ring of buffers: it stays in use.
            written[writes[written[writes] == _NEVER]] = cycle
    retire(np.arange(NARROW_WORDS))
    return _series(np.concatenate(begins), np.concatenate(ends))


def _accesses(spans: NDArray[np.void]) -> list[tuple[int, bool, int]]:
    """Cycle, whether it is the reads, and instruction; at one cycle reads come first."""
    columns = (spans[name].tolist() for name in ("start", "end", "instruction"))
    accesses = [
        access
        for start, end, instruction in zip(*columns, strict=True)
        for access in ((start, False, instruction), (end, True, instruction))
    ]
    return sorted(accesses, key=lambda access: (access[0], not access[1]))


def _series(begins: NDArray[np.int64], ends: NDArray[np.int64]) -> Series:
    times, places = np.unique(np.concatenate([begins, ends]), return_inverse=True)
    changes = np.repeat([WORD_BYTES, -WORD_BYTES], [len(begins), len(ends)])
    steps = np.bincount(places, changes, len(times)).astype(np.int64)
    return times, np.cumsum(steps)
