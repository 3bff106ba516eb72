"""A run on marks: what tensor units read shows who made it.

All units move bytes as ever, but what moves are marks. An input consists of its own, each word of
the parameters holds its place in them, and the tensor unit writes the mark of its instruction in
place of results. What it reads is noted for each instruction and tile: which marks, and which
places. A note is a number, and it does no harm to note a thing twice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.structure import Int16, Int32, Record, Records
from darwinn_sim.units.identities import last_granule, same_row
from darwinn_sim.units.output_stage import OUTPUT_16BIT, scale_half
from darwinn_sim.units.tensor_cells import INTERPOLATE, MAC, NARROW_MASK, row_base
from darwinn_sim.units.tensor_records import Parameters, Segment

PARAMETER_MARK = 0xFF
"""Highest byte of a word of parameters; the others are its place."""

ACTIVATIONS, PARAMETERS, SCALES, MADE = range(4)
"""What a note is of: what is read from narrow memory, from wide memory, and from the scale/bias
buffer; iterations whose activations somebody has made."""

KINDS = 4
PLACE_BITS = 24
COUNT_BITS = 7
"""A note: the reader, the first place, and how many there are. The number of a reader is
``(row * chip.TILES + tile) * KINDS + kind``, with the row of the tensor instruction."""

FIRST_GROUP, LAST_GROUP = 1, 2
"""Bits of ``Marks.group``."""

ROWS = chip.WIDE_ROWS + 4
"""Rows of a tile that are read: of wide memory, and halves of scales and biases."""

_WORD = 0b1111
"""All four bytes of a word."""

_SLOTS = 1 << 16
"""By 16 bits of a hash."""

_ROOM = 1 << 20

_OF_AN_ITERATION = chip.LANES // 4 + 2
"""Notes of activations that an iteration makes, at most: an interpolation takes a byte a lane; and
that they have been made."""


class Marking(Record):
    """Whether the run is ``on`` marks; how many ``notes`` there are since they were last taken out;
    how many a segment may make, at ``most``.

    ``begin``, ``count`` and ``lanes`` are of the granules in the plan whose rows have been noted
    last, and are what they were (``count`` 0: none).
    """

    on: int
    notes: int
    most: int
    begin: int
    count: int
    lanes: int


class Noted(Record):
    """What has been noted of a row last: ``planes`` (bit k: byte k of each word) of the first
    ``lanes``, for a ``reader`` (less 1: 0 is none).
    """

    reader: Int32
    lanes: Int16
    planes: Int16


class Marks(NamedTuple):
    """What is marked and noted: one ``marking``; the ``mark`` of each tensor instruction (0: none);
    by iteration of the plan, whether it belongs to the first or the last ``group`` of results.

    ``octets`` are the marks that each reader has met, a bit each; ``notes`` places, and ``recent``
    some of them by their hash. ``noted`` rows with their ``content``: those of a tile's wide
    memory, then those of its scale/bias buffer.
    """

    marking: Records[Marking]
    mark: NDArray[np.uint8]
    group: NDArray[np.uint8]
    octets: NDArray[np.uint8]
    notes: NDArray[np.int64]
    recent: NDArray[np.int64]
    noted: Records[Noted]
    content: NDArray[np.uint32]


def no_marks() -> Marks:
    """For a run on data."""
    octets, numbers = np.zeros(1, np.uint8), np.zeros(1, np.int64)
    return Marks(
        *(Marking.zeros(1), octets, octets, np.zeros((1, 1), np.uint8), numbers, numbers),
        *(Noted.zeros(1), np.zeros((1, 1), np.uint32)),
    )


def new_marks(mark: NDArray[np.uint8], group: NDArray[np.uint8], most: int) -> Marks:
    """Nothing is noted; there is room for what a segment of ``most`` iterations reads."""
    readers = len(mark) * chip.TILES * KINDS
    # Each row is noted once for each of its bytes, if it is read; what narrow memory holds, always.
    most = _OF_AN_ITERATION * most + 4 * chip.ROW_WORDS * ROWS
    marks = Marks(
        Marking.zeros(1),
        mark,
        group,
        np.zeros((readers, 32), np.uint8),
        np.empty(max(2 * most, _ROOM), np.int64),
        np.full(_SLOTS, -1, np.int64),
        Noted.zeros(chip.TILES * ROWS),
        np.zeros((chip.TILES * ROWS, chip.ROW_WORDS), np.uint32),
    )
    marks.marking["on"], marks.marking["most"] = 1, most
    return marks


@inner
def is_on(marks: Marks) -> bool:
    """This is a run on marks."""
    return marks.marking[0].on != 0


@inner
def is_full(marks: Marks) -> bool:
    """What one more segment reads may not fit."""
    marking = marks.marking[0]
    return bool(marking.on and marking.notes + marking.most > len(marks.notes))


@inner
def look_again(marks: Marks) -> None:
    """Others may have written to wide memory, or another instruction is about to read it."""
    marks.marking[0].count = 0


@inner
def note(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    segment: Segment,
    row: int,
    first: int,
    operands: NDArray[np.int32],
    granules: NDArray[np.int16],
    marks: Marks,
) -> None:
    """Note what a segment reads. ``row`` is the instruction's; the iterations begin at ``first`` of
    the plan's ``operands`` and ``granules``.
    """
    lanes = segment.lanes
    unit.lane_written[:lanes] = state.WRITTEN
    reader = (row * chip.TILES + tile.number) * KINDS
    marks.octets[reader, 0] |= np.uint8(1)
    _note_activations(tile, parameters, segment, reader + ACTIVATIONS, first, operands, marks)
    if parameters.opcode == MAC and parameters.load_parameter_zero_point:
        wide_row = segment.zero_point_row
        base = row_base(core, tile, parameters, wide_row)
        words = tile.wide[base : base + chip.ROW_WORDS]
        _note_row(tile.number, reader + PARAMETERS, wide_row, words, _WORD, lanes, marks)
    if parameters.opcode != INTERPOLATE and parameters.products:
        _note_granules(core, tile, parameters, segment, reader + PARAMETERS, first, granules, marks)
    for k in range(2 if segment.outputs else 0):
        if parameters.apply_bias if k else parameters.use_scales:
            buffer_row = 2 * k + scale_half(unit, parameters)
            base = chip.LANES * buffer_row
            words = tile.scale_bias[base : base + chip.LANES]
            buffer_row += chip.WIDE_ROWS
            _note_row(tile.number, reader + SCALES, buffer_row, words, _WORD, lanes, marks)


@inner
def _note_granules(
    core: state.Core,
    tile: state.Tile,
    parameters: Parameters,
    segment: Segment,
    reader: int,
    first: int,
    granules: NDArray[np.int16],
    marks: Marks,
) -> None:
    """Note the rows of a segment's parameters, but for those of the segment before: a layer takes
    the same ones at each of its positions.
    """
    marking = marks.marking[0]
    known = marking.count == segment.count and marking.lanes == segment.lanes
    if known and _are_alike(granules, marking.begin, first, segment.count):
        return
    for i in range(first, first + segment.count):
        granule = granules[i]
        last = last_granule(parameters, granule)
        for wide_row in range(granule >> 2, (last >> 2) + 1):
            planes = _WORD
            if wide_row == granule >> 2:
                planes &= _WORD << (granule & 3)
            if wide_row == last >> 2:
                planes &= _WORD >> (3 - (last & 3))
            base = row_base(core, tile, parameters, wide_row)
            words = tile.wide[base : base + chip.ROW_WORDS]
            _note_row(tile.number, reader, wide_row, words, planes, segment.lanes, marks)
    marking.begin = first
    marking.count = segment.count
    marking.lanes = segment.lanes


@inner
def _are_alike(granules: NDArray[np.int16], one: int, other: int, count: int) -> bool:
    """Two stretches of the plan have the same granules."""
    k = 0
    while k < count and granules[one + k] == granules[other + k]:
        k += 1
    return k == count


@inner
def _note_activations(
    tile: state.Tile,
    parameters: Parameters,
    segment: Segment,
    reader: int,
    first: int,
    operands: NDArray[np.int32],
    marks: Marks,
) -> None:
    width = 0
    if parameters.opcode == INTERPOLATE:
        width = int(segment.lanes)
    elif parameters.opcode == MAC:
        width = parameters.products * (2 if parameters.activation_16bit else 1)
    latest, latest_planes = np.uint32(0), 0
    for i in range(first, first + segment.count):
        begin = operands[i]
        for index in range(begin >> 2, (begin + width + 3) >> 2 if width else begin >> 2):
            word = tile.narrow[index & (NARROW_MASK >> 2)]
            planes = _WORD
            if index == begin >> 2:
                planes &= _WORD << (begin & 3)
            if index == (begin + width - 1) >> 2:
                planes &= _WORD >> (3 - ((begin + width - 1) & 3))
            if word != latest or planes & ~latest_planes:
                latest, latest_planes = word, planes
                _note_word(reader, word, planes, marks)
        if marks.group[i] and parameters.opcode == MAC:
            word = tile.narrow[(begin & NARROW_MASK) >> 2]
            octet = word >> np.uint32(8 * (begin & 3)) & np.uint32(0xFF)
            if octet and word >> np.uint32(24) != PARAMETER_MARK:
                _tell(reader - ACTIVATIONS + MADE, segment.first + i - first, 1, marks)


@inner
def _note_word(reader: int, word: np.uint32, planes: int, marks: Marks) -> None:
    """Note bytes of a word, or all of a word of parameters."""
    if word >> np.uint32(24) == PARAMETER_MARK:
        _tell(reader, int(word) & ((1 << PLACE_BITS) - 1), 1, marks)
    else:
        _mark(reader, word, planes, marks)


@inner
def _mark(reader: int, word: np.uint32, planes: int, marks: Marks) -> None:
    for k in range(4):
        if planes >> k & 1:
            octet = word >> np.uint32(8 * k) & np.uint32(0xFF)
            bit = np.uint8(1) << np.uint8(octet & np.uint32(7))
            marks.octets[reader, octet >> np.uint32(3)] |= np.uint8(bit)


@inner
def _note_row(
    tile: int,
    reader: int,
    row: int,
    words: NDArray[np.uint32],
    planes: int,
    lanes: int,
    marks: Marks,
) -> None:
    """Note what a row holds, unless it has been noted and is as it was."""
    slot = tile * ROWS + row
    known, content = marks.noted[slot], marks.content[slot]
    if known.reader == reader + 1 and known.lanes == lanes and same_row(words, content, lanes):
        if not planes & ~known.planes:
            return
        known.planes |= planes
    else:
        known.reader = reader + 1
        known.lanes = lanes
        known.planes = planes
        for lane in range(lanes):
            content[lane] = words[lane]
    place = count = 0
    for lane in range(lanes):
        word = words[lane]
        if word >> np.uint32(24) != PARAMETER_MARK:
            _mark(reader, word, planes, marks)
            continue
        here = int(word) & ((1 << PLACE_BITS) - 1)
        if count and here == place + count:
            count += 1
            continue
        if count:
            _tell(reader, place, count, marks)
        place, count = here, 1
    if count:
        _tell(reader, place, count, marks)


@inner
def _tell(reader: int, place: int, count: int, marks: Marks) -> None:
    """Note so many places from one on, unless that has been noted a moment ago."""
    number = (reader << PLACE_BITS | place) << COUNT_BITS | count
    slot = np.int64(np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(48))
    if marks.recent[slot] != number:
        marks.recent[slot] = number
        marks.notes[marks.marking[0].notes] = number
        marks.marking[0].notes += 1


@inner
def store_nothing(
    core: state.Core, tile: state.Tile, parameters: Parameters, segment: Segment, marks: Marks
) -> None:
    """Sums that are put aside are nobody's."""
    look_again(marks)
    base = row_base(core, tile, parameters, segment.sum_row)
    for lane in range(segment.lanes):
        tile.wide[base + lane] = np.uint32(0)
        tile.wide_written[base + lane] = state.WRITTEN


@inner
def give_results(
    unit: state.Unit, parameters: Parameters, row: int, lanes: int, marks: Marks
) -> None:
    """The mark of the instruction in each byte of the results: into ``unit.rounded``."""
    octets = 257 if parameters.function & OUTPUT_16BIT else 1
    unit.rounded[:lanes] = np.uint32(octets * marks.mark[row])
