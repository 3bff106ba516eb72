"""A run on marks: what tensor units read shows who made it.

All units move bytes as ever, but what moves are marks. An input consists of its own, each word of
the parameters holds its place in them, and the tensor unit writes the mark of its instruction in
place of results. What it reads is noted for each instruction and tile: which marks, and which
places. A note is a number, and it does no harm to note a thing twice.

A byte has room for few marks. There are twice as many, since the shadows of the memories
(``kernel.state``) go wherever bytes go: the second half are those of bytes that are shadowed as
what nothing has written.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.structure import Int16, Int32, Record, Records, Uint8
from darwinn_sim.units.identities import same_row
from darwinn_sim.units.memories import NARROW_MASK
from darwinn_sim.units.output_stage import OUTPUT_16BIT, scale_half
from darwinn_sim.units.tensor_cells import row_base
from darwinn_sim.units.tensor_records import Parameters, Segment

PARAMETER_MARK = 0xFF
"""Highest byte of a word of parameters; the others are its place."""

SECOND_HALF = 0x100
"""A mark is a byte, and this besides if it is one of the second half."""

_MARKS = 2 * SECOND_HALF

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

ALL_PLANES = 0b1111
"""All four bytes of a word."""

_SLOTS = 1 << 16
"""By 16 bits of a hash."""

_ROOM = 1 << 20


class Run(Record, align=True):
    """So many places from the ``first`` on: words of narrow memory, of which the bytes ``planes``
    (bit k: byte k) are meant, or rows of wide memory, of which so many ``lanes``.
    """

    first: Int32
    count: Int32
    planes: Int16
    lanes: Int16


class Sweep(Record, align=True):
    """Segments that are taken at once, as many as ``segments``, of so many ``iterations``.

    ``outputs`` of them have results, of up to ``lanes``: together ``words``, by which flag 0 has
    ``grown``; ``parameter_reads`` and ``sum_writes`` are increments of flags 1 and 2. Some of them
    put sums aside (``stores``). One that is ``alone`` writes its results word by word. What is read
    and written is runs from ``reads``, ``rows`` and ``writes`` on, up to their ends; ``made`` are
    iterations of the instruction of which somebody asks who has made their activations.
    """

    segments: Int32
    iterations: Int32
    outputs: Int32
    words: Int32
    grown: Int32
    parameter_reads: Int32
    sum_writes: Int32
    lanes: Int16
    stores: Uint8
    alone: Uint8
    reads: Int32
    reads_end: Int32
    rows: Int32
    rows_end: Int32
    writes: Int32
    writes_end: Int32
    made: Int32
    made_end: Int32


class Sweeps(NamedTuple):
    """The sweeps of a program: which one begins ``at`` a segment of the plan, and what they share
    (``units.sweeps`` finds them).
    """

    at: NDArray[np.int32]
    sweeps: Records[Sweep]
    reads: Records[Run]
    rows: Records[Run]
    writes: Records[Run]
    made: NDArray[np.int32]


class Marking(Record):
    """Whether the run is ``on`` marks; how many ``notes`` there are since they were last taken out;
    how many a sweep may make, at ``most``.

    The runs of rows that have been noted last are those from ``rows`` to ``rows_end``, for a
    ``reader`` (less 1: 0 is none), when so many ``writes`` had been made to the tile's wide memory.
    """

    on: int
    notes: int
    most: int
    rows: int
    rows_end: int
    reader: int
    writes: int


class Noted(Record):
    """What has been noted of a row last: ``planes`` (bit k: byte k of each word) of the first
    ``lanes``, for a ``reader`` (less 1: 0 is none).
    """

    reader: Int32
    writes: int
    lanes: Int16
    planes: Int16


class Marks(NamedTuple):
    """What is marked and noted: one ``marking``; the ``mark`` of each tensor instruction (0: none);
    the sweeps of the program, as in ``Sweeps``.

    ``met`` are the marks that each reader has met, a bit each; ``notes`` places, and ``recent``
    some of them by their hash. ``noted`` rows with their ``content`` and its ``shadow``: those of a
    tile's wide memory, then those of its scale/bias buffer.
    """

    marking: Records[Marking]
    mark: NDArray[np.uint16]
    at: NDArray[np.int32]
    sweeps: Records[Sweep]
    reads: Records[Run]
    rows: Records[Run]
    writes: Records[Run]
    made: NDArray[np.int32]
    met: NDArray[np.uint8]
    notes: NDArray[np.int64]
    recent: NDArray[np.int64]
    noted: Records[Noted]
    content: NDArray[np.uint32]
    shadow: NDArray[np.uint32]


def no_marks() -> Marks:
    """For a run on data."""
    mark, numbers = np.zeros(1, np.uint16), np.zeros(1, np.int64)
    places, runs, row = np.zeros(1, np.int32), Run.zeros(1), np.zeros((1, 1), np.uint32)
    return Marks(
        *(Marking.zeros(1), mark, places, Sweep.zeros(1), runs, runs, runs, places),
        *(np.zeros((1, 1), np.uint8), numbers, numbers),
        *(Noted.zeros(1), row, row),
    )


def new_marks(mark: NDArray[np.uint16], sweeps: Sweeps) -> Marks:
    """Nothing is noted; there is room for what a sweep reads."""
    readers = len(mark) * chip.TILES * KINDS
    most = _most_notes(sweeps)
    marks = Marks(
        Marking.zeros(1),
        mark,
        *sweeps,
        np.zeros((readers, _MARKS // 8), np.uint8),
        np.empty(max(2 * most, _ROOM), np.int64),
        np.full(_SLOTS, -1, np.int64),
        Noted.zeros(chip.TILES * ROWS),
        np.zeros((chip.TILES * ROWS, chip.ROW_WORDS), np.uint32),
        np.zeros((chip.TILES * ROWS, chip.ROW_WORDS), np.uint32),
    )
    marks.marking["on"], marks.marking["most"] = 1, most
    return marks


def _most_notes(sweeps: Sweeps) -> int:
    """Notes that a sweep makes, at most: of each word, of each lane of a row, of scales and biases,
    and of what has been made.
    """
    found = 2 * chip.ROW_WORDS + sweeps.sweeps["made_end"] - sweeps.sweeps["made"].astype(np.int64)
    for name, notes in (("reads", 1), ("rows", chip.ROW_WORDS)):
        before = np.append(0, np.cumsum(getattr(sweeps, name)["count"], dtype=np.int64))
        begins, ends = sweeps.sweeps[name], sweeps.sweeps[f"{name}_end"]
        found += notes * (before[ends] - before[begins])
    return int(found.max(initial=0))


@inner
def is_on(marks: Marks) -> bool:
    """This is a run on marks."""
    return marks.marking[0].on != 0


@inner
def is_full(marks: Marks) -> bool:
    """What one more sweep reads may not fit."""
    marking = marks.marking[0]
    return bool(marking.on and marking.notes + marking.most > len(marks.notes))


@inner
def note(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    sweep: Sweep,
    row: int,
    operands: NDArray[np.int32],
    marks: Marks,
) -> None:
    """Note what a sweep reads. ``row`` and ``operands`` are those of the instruction."""
    reader = (row * chip.TILES + tile.number) * KINDS
    marks.met[reader, 0] |= np.uint8(1)
    _note_words(tile, reader + ACTIVATIONS, sweep, marks)
    _note_made(tile.narrow, reader + MADE, sweep, operands, marks)
    _note_rows(core, tile, parameters, reader + PARAMETERS, sweep, marks)
    for k in range(2 if sweep.outputs else 0):
        if parameters.apply_bias if k else parameters.use_scales:
            buffer_row = 2 * k + scale_half(unit, parameters)
            base = chip.LANES * buffer_row
            words = tile.scale_bias[base : base + chip.LANES]
            written = tile.scale_bias_written[base : base + chip.LANES]
            slot, lanes = tile.number * ROWS + chip.WIDE_ROWS + buffer_row, sweep.lanes
            # Nobody counts what is written to the buffer.
            _note_row(slot, reader + SCALES, words, written, -1, ALL_PLANES, lanes, marks)


@inner
def _note_words(tile: state.Tile, reader: int, sweep: Sweep, marks: Marks) -> None:
    """Note the words of narrow memory that a sweep reads: neighbours are often alike."""
    latest, latest_written, latest_planes = np.uint32(0), np.uint32(0), 0
    for number in range(sweep.reads, sweep.reads_end):
        run = marks.reads[number]
        k, end = run.first, run.first + run.count
        while k < end:
            word, written = tile.narrow[k], tile.narrow_written[k]
            if word != latest or written != latest_written or run.planes & ~latest_planes:
                latest, latest_written, latest_planes = word, written, run.planes
                _note_word(reader, word, written, run.planes, marks)
            k += 1


@inner
def _note_made(
    narrow: NDArray[np.uint32],
    reader: int,
    sweep: Sweep,
    operands: NDArray[np.int32],
    marks: Marks,
) -> None:
    """Note of which iterations, of those that somebody asks for, an activation has been made."""
    for number in range(sweep.made, sweep.made_end):
        iteration = marks.made[number]
        begin = operands[iteration] & NARROW_MASK
        word = narrow[begin >> 2]
        octet = word >> np.uint32(8 * (begin & 3)) & np.uint32(0xFF)
        if octet and word >> np.uint32(24) != PARAMETER_MARK:
            _tell(reader, iteration, 1, marks)


@inner
def _note_rows(
    core: state.Core,
    tile: state.Tile,
    parameters: Parameters,
    reader: int,
    sweep: Sweep,
    marks: Marks,
) -> None:
    """Note the rows of a sweep, but for those of the sweep before: a layer takes the same ones at
    each of its positions.
    """
    marking = marks.marking[0]
    if (
        marking.reader == reader + 1
        and marking.writes == tile.wide_writes
        and marking.rows == sweep.rows
        and marking.rows_end == sweep.rows_end
    ):
        return
    for number in range(sweep.rows, sweep.rows_end):
        run = marks.rows[number]
        for wide_row in range(run.first, run.first + run.count):
            base = row_base(core, tile, parameters, wide_row)
            words = tile.wide[base : base + chip.ROW_WORDS]
            written = tile.wide_written[base : base + chip.ROW_WORDS]
            slot, writes = tile.number * ROWS + wide_row, tile.wide_writes
            _note_row(slot, reader, words, written, writes, run.planes, run.lanes, marks)
    marking.rows, marking.rows_end = sweep.rows, sweep.rows_end
    marking.reader, marking.writes = reader + 1, tile.wide_writes


@inner
def _note_word(reader: int, word: np.uint32, written: np.uint32, planes: int, marks: Marks) -> None:
    """Note bytes of a word, or all of a word of parameters."""
    if word >> np.uint32(24) == PARAMETER_MARK:
        _tell(reader, int(word) & ((1 << PLACE_BITS) - 1), 1, marks)
    else:
        _mark(reader, word, written, planes, marks)


@inner
def _mark(reader: int, word: np.uint32, written: np.uint32, planes: int, marks: Marks) -> None:
    for k in range(4):
        if planes >> k & 1:
            mark = word >> np.uint32(8 * k) & np.uint32(0xFF)
            if written >> np.uint32(8 * k) & np.uint32(0xFF) == 0:
                mark |= np.uint32(SECOND_HALF)
            bit = np.uint8(1) << np.uint8(mark & np.uint32(7))
            marks.met[reader, mark >> np.uint32(3)] |= np.uint8(bit)


@inner
def _note_row(
    slot: int,
    reader: int,
    words: NDArray[np.uint32],
    written: NDArray[np.uint32],
    writes: int,
    planes: int,
    lanes: int,
    marks: Marks,
) -> None:
    """Note what a row holds, unless it has been noted and is as it was, number ``slot`` of all;
    ``writes``: how many rows of its memory have been written (-1: that is not known).
    """
    known, content, shadow = marks.noted[slot], marks.content[slot], marks.shadow[slot]
    if (
        known.reader == reader + 1
        and known.lanes == lanes
        and (
            0 <= writes == known.writes
            or (same_row(words, content, lanes) and same_row(written, shadow, lanes))
        )
    ):
        known.writes = writes
        if not planes & ~known.planes:
            return
        known.planes |= planes
    else:
        known.reader = reader + 1
        known.writes = writes
        known.lanes = lanes
        known.planes = planes
        for lane in range(lanes):
            content[lane] = words[lane]
            shadow[lane] = written[lane]
    place = count = 0
    for lane in range(lanes):
        word = words[lane]
        if word >> np.uint32(24) != PARAMETER_MARK:
            _mark(reader, word, written[lane], planes, marks)
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
    core: state.Core, tile: state.Tile, parameters: Parameters, segment: Segment
) -> None:
    """Sums that are put aside are nobody's."""
    tile.wide_writes += 1
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
    unit.rounded[:lanes] = np.uint32(octets * (marks.mark[row] & 0xFF))
    unit.lane_written[:lanes] = _written(marks.mark[row])


@inner
def write_results(tile: state.Tile, row: int, sweep: Sweep, marks: Marks) -> None:
    """The mark of the instruction in each byte of what a sweep writes."""
    word = np.uint32(marks.mark[row] & 0xFF) * np.uint32(0x01010101)
    written = _written(marks.mark[row])
    for number in range(sweep.writes, sweep.writes_end):
        run = marks.writes[number]
        tile.narrow[run.first : run.first + run.count] = word
        tile.narrow_written[run.first : run.first + run.count] = written


@inner
def _written(mark: int) -> np.uint32:
    """The shadow of a word of a mark."""
    return np.uint32(0) if mark & SECOND_HALF else np.uint32(state.WRITTEN)
