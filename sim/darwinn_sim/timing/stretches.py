"""Stretches of a tensor unit's plan that it ends at once, whatever happens meanwhile.

All tiles execute the same plan, mostly segments that only compute and send results on. So how far
such a stretch goes is found once for a program, not by each tile for each segment.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import entry, inner
from darwinn_sim.kernel.structure import Records
from darwinn_sim.units.output_stage import result_words
from darwinn_sim.units.tensor_plan import TensorPlan
from darwinn_sim.units.tensor_records import Parameters, Place


class Stretches(NamedTuple):
    """For each segment of a plan: ``end``, the segment behind the stretch that begins with it (0:
    there is none), and ``words``, the result words of its instruction before it.

    In a stretch no segment waits, counts a flag, is at fault or is the last one. Each has results,
    which the writer has written by the time at which the next segment ends.
    """

    end: NDArray[np.int32]
    words: NDArray[np.int32]


def stretches(tensor: Records[Parameters], plan: TensorPlan) -> Stretches:
    """The stretches of a plan whose faults are marked."""
    found = Stretches(*(np.zeros(len(plan.segment), np.int32) for _ in Stretches._fields))
    _find(tensor, plan, found)
    return found


@entry
def _find(tensor: Records[Parameters], plan: TensorPlan, found: Stretches) -> None:
    """Fill in the stretches of all instructions; those that walk alike share them."""
    reached = 0
    for row in range(len(plan.place)):
        place = plan.place[row]
        if place.segment < reached or place.segments == 0:
            continue
        reached = place.segment + place.segments
        words = 0
        for number in range(place.segment, reached):
            found.words[number] = words
            words += result_words(tensor[row], plan.segment[number])
        for number in range(reached - 2, place.segment - 1, -1):
            if _goes_on(plan, place, found, number):
                found.end[number] = max(found.end[number + 1], number + 1)


@inner
def _goes_on(plan: TensorPlan, place: Place, found: Stretches, number: int) -> bool:
    """Whether a segment, which is not the last one, may be part of a stretch."""
    first, behind = found.words[number], found.words[number + 1]
    if not is_quiet(plan, number) or plan.segment[number].fault != state.NO_FAULT:
        return False
    if behind == first or behind > place.writes:
        return False
    if behind - first > plan.segment[number + 1].count:
        return False
    flagged = 0
    for word in range(first, behind):
        flagged |= plan.write_flag[place.write + word]
    return not flagged


@inner
def is_quiet(plan: TensorPlan, number: int) -> bool:
    """A segment, which is not the last one, counts no flag but by results, and no watcher is tested
    behind it."""
    segment = plan.segment[number]
    return not (segment.parameter_reads or segment.sum_writes or plan.segment[number + 1].waits)
