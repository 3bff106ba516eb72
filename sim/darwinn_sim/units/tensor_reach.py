"""Which segments of tensor instructions reach beyond the memories, found without data."""

from __future__ import annotations

import numpy as np

from darwinn_sim import chip
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import entry, inner
from darwinn_sim.kernel.structure import Records
from darwinn_sim.units import memories
from darwinn_sim.units.memories import NARROW_MASK
from darwinn_sim.units.output_stage import result_words
from darwinn_sim.units.tensor_bounds import last_granules
from darwinn_sim.units.tensor_cells import INTERPOLATE, MAC, values_of, works
from darwinn_sim.units.tensor_plan import TensorPlan
from darwinn_sim.units.tensor_records import KEEP_SUMS, Parameters, Place, Segment


def mark(tensor: Records[Parameters], plan: TensorPlan) -> None:
    """Note in each segment of a plan its fault, or ``NO_FAULT``.

    A plan may lack addresses that are all there (``tensor_bounds``).
    """
    last = last_granules(tensor)
    _, first = np.unique(plan.place["segment"], return_index=True)
    for row in first:
        place = plan.place[int(row)]
        begin, count = int(place["iteration"]), int(place["iterations"])
        granules = plan.granule[begin : begin + count]
        begin, count = int(place["write"]), int(place["writes"])
        words = plan.write_address[begin : begin + count] & NARROW_MASK
        # Of nearly all instructions the farthest places are there, and so are all others.
        least, greatest = int(granules.min(initial=0)), int(granules.max(initial=0))
        reads = least >= 0 and greatest <= last[row]
        writes = bool(words.max(initial=0) <= chip.NARROW_BYTES - chip.WORD_BYTES)
        _mark(tensor[int(row)], plan, place, reads, writes)


@entry
def _mark(
    parameters: Parameters, plan: TensorPlan, place: Place, reads: bool, writes: bool
) -> None:
    """``reads`` and ``writes``: no granule, and no word of a result, is beyond the memories."""
    words = 0
    for number in range(place.segment, place.segment + place.segments):
        segment = plan.segment[number]
        segment.fault = state.NO_FAULT
        lacks = _lacks_sums(parameters, segment)
        if not reads and parameters.opcode != INTERPOLATE:
            begin = place.iteration + segment.first
            for granule in plan.granule[begin : begin + segment.count]:
                lacks |= _lacks_granule(parameters, granule)
        if lacks:
            segment.fault = state.FAULT_WIDE_ADDRESS
        for _ in range(0 if writes else result_words(parameters, segment)):
            # Words without a place are another fault.
            if words < place.writes and not segment.fault:
                address = plan.write_address[place.write + words] & NARROW_MASK
                if memories.lacks_bytes(address):
                    segment.fault = state.FAULT_NARROW_ADDRESS
            words += 1


@inner
def _lacks_sums(parameters: Parameters, segment: Segment) -> bool:
    """A row of sums, or of zero points, is not there."""
    stores = segment.ends and not parameters.partial_sum_read & KEEP_SUMS
    loads = segment.starts and segment.continues
    if (loads or stores) and memories.lacks_row(segment.sum_row):
        return True
    zero_points = parameters.opcode == MAC and parameters.load_parameter_zero_point
    return bool(zero_points and parameters.working and memories.lacks_row(segment.zero_point_row))


@inner
def _lacks_granule(parameters: Parameters, granule: int) -> bool:
    planes = 2 if parameters.parameter_16bit else 1
    number = parameters.products if parameters.opcode == MAC else values_of(parameters, granule)
    for k in range(number):
        first = granule + planes * k
        for plane in range(first, first + planes if works(parameters, k) else first):
            if memories.lacks_row(plane >> 2):
                return True
    return False
