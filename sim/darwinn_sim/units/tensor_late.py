"""Results that are still on their way when the next iteration reads.

A word of results takes a cycle to narrow memory. The next iteration reads in that cycle, unless a
watcher holds it back. Programs that work in place rely on this (docs/chip-facts.md, "In place").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.structure import Records
from darwinn_sim.units.memories import NARROW_MASK
from darwinn_sim.units.output_stage import result_words
from darwinn_sim.units.tensor_cells import MAC
from darwinn_sim.units.tensor_records import Parameters, Segment


@inner
def mark(
    parameters: Parameters,
    segments: Records[Segment],
    operands: NDArray[np.int32],
    addresses: NDArray[np.int32],
) -> None:
    """Note in the segments of an instruction which of them have a ``late`` word of results.

    It is the last word of a segment. The segment after it has one iteration, which reads where the
    word goes; no watcher holds it back, and it does not wait until the word has left the unit.
    """
    if parameters.opcode != MAC:
        return
    octets = parameters.products * (2 if parameters.activation_16bit else 1)
    words = 0
    for number in range(len(segments) - 1):
        segment, following = segments[number], segments[number + 1]
        count = result_words(parameters, segment)
        words += count
        if count == 0 or words > len(addresses):
            continue
        if following.count > 1 or following.waits or not following.ends:
            continue
        # Results wait for those before them, word by word: sums that stay do not.
        if count > 1 and not following.outputs:
            continue
        operand = operands[following.first] & NARROW_MASK
        distance = operand - (addresses[words - 1] & NARROW_MASK)
        segment.late = -octets < distance < chip.WORD_BYTES
