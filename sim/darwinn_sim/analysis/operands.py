"""Which bytes a tensor instruction takes from its memories, and when.

What lies in the memories while a program runs on marked data (``provenance``) is looked at before
the segments of the plan at which something new is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.kernel.structure import Records
from darwinn_sim.units import tensor_cells
from darwinn_sim.units.tables import Tables
from darwinn_sim.units.tensor_plan import ALWAYS, ARRIVAL
from darwinn_sim.units.tensor_records import Parameters, Segment

Places = NDArray[np.int64]
Words = NDArray[np.uint32]

PARAMETER_MARK = 0xFF
"""Highest byte of a word of parameters. Layers and inputs have marks from 1 to the byte below."""

_ARRIVAL_FLAGS = (
    TileFlag.WIDE_TO_SCALING,
    TileFlag.NARROW_TO_WIDE_WRITE,
    TileFlag.RING_BUS_READ_A,
    TileFlag.RING_BUS_READ_B,
)
"""Flags by which a tensor unit learns that rows of wide memory, or scales, have arrived."""

_GRANULES = 4 * chip.WIDE_ROWS


def no_places() -> Places:
    """None at all."""
    return np.zeros(0, np.int64)


def group_operands(tables: Tables, row: int, *, last: bool = False) -> Places:
    """Byte addresses of the activations that the first (last) group of results takes, in order.

    ``row`` is that of a tensor instruction. A group is what one run of sums gives, or several that
    partial sums join.
    """
    instruction, place = tables.tensor[row], tables.tensor_plan.place[row]
    first, count = int(place["iteration"]), int(place["iterations"])
    operands = tables.tensor_plan.operand[first : first + count]
    main = instruction["main"]
    sizes = [int(limit) + 1 for limit in main["limit"][: int(main["loops"])]]
    if main["alternate_loop"] or int(np.prod(sizes)) != count:
        return operands[_run_of_sums(tables, row, last)].astype(np.int64)
    chosen = np.zeros(1, np.int64)
    step = 1
    for loop, size in enumerate(sizes):
        if instruction["reduction_loops"] >> loop & 1:
            chosen = np.add.outer(step * np.arange(size), chosen).ravel()
        elif last:
            chosen += step * (size - 1)
        step *= size
    return operands[chosen].astype(np.int64)


def _run_of_sums(tables: Tables, row: int, last: bool) -> slice:
    """Iterations of the first or last run of sums."""
    segments = _segments(tables, row)
    ends = (segments["first"] + segments["count"])[segments["ends"] != 0]
    if last:
        return slice(int(ends[-2]) if len(ends) > 1 else 0, None)
    return slice(0, int(ends[0]) if len(ends) else None)


def _segments(tables: Tables, row: int) -> Records[Segment]:
    place = tables.tensor_plan.place[row]
    first = int(place["segment"])
    return tables.tensor_plan.segment[first : first + int(place["segments"])]


class Taken(NamedTuple):
    """Bytes that are taken from a memory: words, and masks of the bytes of each."""

    words: Places
    masks: Words

    @classmethod
    def of(cls, addresses: Places) -> Taken:
        """The bytes at ``addresses``."""
        if not addresses.size:
            return cls(addresses, np.zeros(0, np.uint32))
        words = np.unique(addresses >> 2)
        masks = np.zeros((len(words), WORD_BYTES), np.uint8)
        masks[np.searchsorted(words, addresses >> 2), addresses & 3] = 0xFF
        return cls(words, masks.view("<u4").ravel())

    def take(self, memory: Words) -> Words:
        """The words, with zeros for bytes that are not taken; words of parameters are whole."""
        words = memory[self.words]
        return np.where(words >> 24 == PARAMETER_MARK, words, words & self.masks)


class Group(NamedTuple):
    """Byte addresses of the activations of one group of results, in order."""

    addresses: Places

    def made(self, narrow: Words) -> NDArray[np.bool_]:
        """Which of them a layer or an input has made."""
        words = narrow[self.addresses >> 2]
        octets = narrow.view(np.uint8)[self.addresses]
        made: NDArray[np.bool_] = (octets != 0) & (words >> 24 != PARAMETER_MARK)
        return made


@dataclass(frozen=True, eq=False)
class Look:
    """What is read between two observed segments.

    ``first`` and ``last`` are the operands of the first and the last group of results, where this
    is the first or the last look at the instruction; ``walked`` are the addresses of all operands.
    """

    walked: NDArray[np.int32]
    operands: Taken
    parameters: Taken
    lanes: int
    first: Group | None
    last: Group | None

    @classmethod
    def at(cls, tables: Tables, row: int, position: int, before: Look | None) -> Look:
        """The look before segment ``position``; ``before`` is another look at the instruction."""
        plan, instruction = tables.tensor_plan, tables.tensor[row]
        begin = int(plan.place[row]["iteration"])
        segments, ends = _segments(tables, row), _ends(_segments(tables, row))
        # Activations of later blocks may not be there yet; rows stay until others are awaited.
        reading = _until_next(segments, position, segments["waits"])
        staying = _until_next(segments, position, segments["waits"] & _arrival_depths(instruction))
        walked = plan.operand[begin:][_iterations(reading)]
        if before is not None and np.array_equal(before.walked, walked):
            # The blocks of a convolution take the same activations.
            operands = before.operands
        else:
            each = _addresses(walked & tensor_cells.NARROW_MASK, chip.NARROW_ADDRESS_BYTES)
            operands = Taken.of(_operand_bytes(instruction, each))
        granules = no_places()
        if instruction["opcode"] != tensor_cells.INTERPOLATE:
            # An interpolation has weights in their place.
            granules = _addresses(plan.granule[begin:][_iterations(staying)], _GRANULES)
        lanes = int(staying["lanes"].max())
        mac = instruction["opcode"] == tensor_cells.MAC
        return cls(
            walked,
            operands,
            Taken.of(
                np.union1d(
                    _parameter_bytes(instruction, granules, lanes),
                    _zero_point_bytes(instruction, staying["zero_point_row"], lanes),
                )
            ),
            lanes,
            Group(group_operands(tables, row)) if mac and position == ends[0] else None,
            Group(group_operands(tables, row, last=True)) if mac and position == ends[-1] else None,
        )

    def scales(self, instruction: Parameters, waited: NDArray[np.int64]) -> Places:
        """Words of the scale/bias buffer that the block takes; ``waited`` as the unit has it."""
        watcher = int(instruction["scale_watcher"])
        half = 0
        if watcher >= 0:
            watchers = instruction["watchers"]
            block = watchers["expected"][watcher]
            block += (waited[watcher] - 1) * watchers["stride"][watcher]
            half = int(block - 1) & 1
        used = [k for k, name in enumerate(("use_scales", "apply_bias")) if instruction[name]]
        starts = np.array([chip.LANES * (2 * k + half) for k in used], np.int64)
        return np.add.outer(starts, np.arange(self.lanes)).ravel()


class Observed(NamedTuple):
    """Segments before which to look, and how (``tensor_records.Segment``)."""

    positions: Places
    bits: NDArray[np.uint8]


def to_observe(tables: Tables, row: int) -> Observed:
    """Where to look: at the ends of an instruction, and where rows arrive that are new to it.

    What arrives in the scale/bias buffer is always looked at: it is another for each block.
    """
    segments, instruction = _segments(tables, row), tables.tensor[row]
    bits = np.zeros(len(segments), np.uint8)
    bits[_ends(segments)] = ALWAYS
    arriving = segments["waits"] & _arrival_depths(instruction) != 0
    takes_scales = instruction["use_scales"] or instruction["apply_bias"]
    bits[arriving] |= ARRIVAL | ALWAYS if takes_scales else ARRIVAL
    (positions,) = np.nonzero(bits)
    return Observed(positions, bits[positions])


def _ends(segments: Records[Segment]) -> Places:
    """The first segment, if there is any, and the last that waits."""
    return np.unique(
        np.append(np.arange(len(segments))[:1], np.flatnonzero(segments["waits"])[-1:])
    )


def _arrival_depths(instruction: Parameters) -> int:
    """Depths of the blocks before which rows of wide memory, or scales, are awaited."""
    watchers = instruction["watchers"]
    depths = (
        1 << int(watchers["depth"][k])
        for k in range(int(watchers["count"]))
        if watchers["flag"][k] in _ARRIVAL_FLAGS
    )
    return reduce(int.__or__, depths, 0)


def _until_next(
    segments: Records[Segment], position: int, waits: NDArray[np.integer]
) -> Records[Segment]:
    """Segments from ``position`` to the next one that waits."""
    later = np.flatnonzero(waits[position + 1 :])
    return segments[position : position + 1 + int(later[0])] if later.size else segments[position:]


def _iterations(segments: Records[Segment]) -> slice:
    last = segments[-1]
    return slice(int(segments[0]["first"]), int(last["first"]) + int(last["count"]))


def _operand_bytes(instruction: Parameters, addresses: Places) -> Places:
    if instruction["opcode"] == tensor_cells.INTERPOLATE:
        width = int(instruction["block_lanes"]) + 1
    elif instruction["opcode"] == tensor_cells.MAC:
        width = int(instruction["products"]) * (2 if instruction["activation_16bit"] else 1)
    else:
        width = 0
    octets = np.add.outer(addresses, np.arange(width)) & tensor_cells.NARROW_MASK
    return _addresses(octets.ravel(), chip.NARROW_ADDRESS_BYTES)


def _zero_point_bytes(instruction: Parameters, rows: Places, lanes: int) -> Places:
    """Each lane has a word of a row."""
    if instruction["opcode"] != tensor_cells.MAC or not instruction["load_parameter_zero_point"]:
        return no_places()
    there = np.unique(rows[(rows >= 0) & (rows < chip.WIDE_ROWS)])
    first = chip.ROW_BYTES * there.astype(np.int64)
    return np.add.outer(first, np.arange(WORD_BYTES * lanes)).ravel()


def _parameter_bytes(instruction: Parameters, granules: Places, lanes: int) -> Places:
    """Bytes of wide memory that the lanes take for ``granules``: planes of rows."""
    planes = 2 if instruction["parameter_16bit"] else 1
    count = np.full(len(granules), planes * int(instruction["products"]))
    if instruction["opcode"] != tensor_cells.MAC:
        count = np.where(granules & 3, planes, count)
    most = int(count.max(initial=0))
    each = np.add.outer(granules, np.arange(most))[np.arange(most) < count[:, None]]
    # A damaged program may name rows that there are not; its run says so.
    taken = _addresses(each[(each >= 0) & (each < _GRANULES)], _GRANULES)
    rows, plane = taken >> 2, taken & 3
    return np.add.outer(chip.ROW_BYTES * rows + plane, WORD_BYTES * np.arange(lanes)).ravel()


def _addresses(values: NDArray[np.integer], size: int) -> Places:
    """Each of the values, which are addresses below ``size``, once and in order."""
    if 8 * values.size < size:
        return np.unique(values).astype(np.int64)
    there = np.zeros(size, np.bool_)
    there[values] = True
    return np.flatnonzero(there)
