"""A run on identities: what tensor instructions compute from what, in place of results.

Control flow, addresses, flags and moves of a program do not depend on its data. So a walk in which
every byte says which byte it is shows which results are made of which operands, for all inputs at
once (``darwinn_sim.lifting``). All units move bytes as ever; the tensor unit writes identities in
place of results, and notes what each segment takes, and so does the scalar core with what it
computes from data (``scalar_notes``). A memory holds a byte where an identity has several: there is
a run for each of its octets.

The octets of a constant are all the same, so that whatever is no input and no result may be left as
it is. Other identities have codes whose first three octets are not (:func:`_code`).
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import inner, unchecked
from darwinn_sim.kernel.structure import Int32, Record, Records
from darwinn_sim.units.memories import NARROW_MASK
from darwinn_sim.units.output_stage import OUTPUT_16BIT, TABLE, scale_half
from darwinn_sim.units.tensor_cells import INTERPOLATE, MAC, row_base, values_of
from darwinn_sim.units.tensor_records import Parameters, Segment

NOTHING = -1
"""In place of a row: none is taken."""

OTHER_ROWS = 8
"""Rows that a segment takes beside those of its iterations, at most."""

ROWS_OF_AN_ITERATION = 3
"""Rows in which the planes of an iteration may be, at most."""

BLOCK = 4
"""Identities that a segment makes begin at a multiple of this: such a block has one maker."""

MAX_DISTINCT = 1 << 19
"""Distinct rows that are noted before they are taken out; memory is used for those that come."""

MAX_OPERATIONS = 1 << 20
"""Operations of the scalar core that are noted in a run; memory is used for those that come."""

SPACING = 0x010101
"""Codes of constants are multiples of this: their octets are equal."""

CODES = (1 << 24) - (1 << 8)
"""Codes of three octets: all from 1 on but multiples of the spacing, in which they are equal."""

_FACTORS = (2 * np.arange(chip.ROW_WORDS, dtype=np.uint64) + 1) * np.uint64(0x9E3779B1)
_HASH = (_FACTORS & np.uint64(0xFFFFFFFF)).astype(np.uint32)


class Walk(Record):
    """How far a run on identities is. ``shift``: of the octet of this run, -1: this is no such run.
    ``identity``: the next one. ``segments``, ``operands``, ``rows`` and ``distinct``: what has been
    noted since it was last taken out. ``most``: iterations of a segment, at most. ``operations`` of
    the scalar core, noted or beyond the room for them.
    """

    shift: int
    identity: int
    segments: int
    operands: int
    rows: int
    distinct: int
    most: int
    operations: int


class Execution(Record):
    """A segment that a tile has executed: number ``position`` of ``instruction``'s. ``operands``
    and ``rows``: where those of its iterations begin; ``sums``, ``zero_points``, ``scales``,
    ``biases``, ``table``: distinct rows, or ``NOTHING``. ``identity``: the first that it made.
    """

    instruction: Int32
    tile: Int32
    position: Int32
    operands: Int32
    rows: Int32
    sums: Int32
    zero_points: Int32
    scales: Int32
    biases: Int32
    table: Int32
    identity: int


class Operation(Record):
    """What the scalar core has computed from data: an operation of ``scalar_alu`` on two words. The
    bytes of the result have identities from ``identity`` on, where they are not known.
    """

    operation: Int32
    operands: Annotated[NDArray[np.uint32], 2]
    identity: int


class Notes(NamedTuple):
    """What a run on identities notes: one ``walk``; ``executions`` of segments; ``operands``, the
    activations of each iteration, as a word; ``rows``, numbers of distinct rows; these, with how
    many words of each are taken; where they are by their hash, and by the last place of each;
    ``operations`` of the scalar core.
    """

    walk: Records[Walk]
    executions: Records[Execution]
    operands: NDArray[np.uint32]
    rows: NDArray[np.int32]
    distinct: NDArray[np.uint32]
    lengths: NDArray[np.int32]
    slots: NDArray[np.int32]
    latest: NDArray[np.int32]
    operations: Records[Operation]


def no_notes() -> Notes:
    """For a run on data."""
    walk = Walk.zeros(1)
    walk["shift"] = -1
    small = np.zeros(1, np.int32)
    return Notes(
        walk,
        Execution.zeros(1),
        np.zeros(1, np.uint32),
        small,
        np.zeros((1, chip.ROW_WORDS), np.uint32),
        small,
        small,
        np.zeros((1, 1), np.int32),
        Operation.zeros(1),
    )


def new_notes(iterations: int, most: int) -> Notes:
    """Room for at least ``iterations``, and for a segment of ``most`` of them."""
    room = max(iterations, 2 * most) + chip.LANES
    rows = ROWS_OF_AN_ITERATION * room + OTHER_ROWS
    distinct = max(MAX_DISTINCT, rows)
    notes = Notes(
        Walk.zeros(1),
        Execution.zeros(room),
        np.empty(room, np.uint32),
        np.empty(rows, np.int32),
        np.empty((distinct, chip.ROW_WORDS), np.uint32),
        np.empty(distinct, np.int32),
        np.full(1 << distinct.bit_length(), NOTHING, np.int32),
        np.full((chip.TILES, chip.WIDE_ROWS), NOTHING, np.int32),
        Operation.zeros(MAX_OPERATIONS),
    )
    notes.walk["shift"] = -1
    notes.walk["most"] = most
    return notes


def forget(notes: Notes) -> None:
    """Make room: what segments have noted so far is known, but for the distinct rows."""
    for name in ("segments", "operands", "rows"):
        notes.walk[name] = 0


def forget_rows(notes: Notes) -> None:
    """Make room for distinct rows."""
    notes.walk["distinct"] = 0
    notes.slots[:] = NOTHING
    notes.latest[:] = NOTHING


def lacks_rows(notes: Notes) -> bool:
    """There is no room for the distinct rows of one more segment."""
    walk = notes.walk[0]
    needed = ROWS_OF_AN_ITERATION * int(walk["most"]) + OTHER_ROWS
    return bool(walk["distinct"] + needed > len(notes.lengths))


@inner
def is_on(notes: Notes) -> bool:
    """This is a run on identities."""
    return notes.walk[0].shift >= 0


@inner
def is_full(notes: Notes) -> bool:
    """What one more segment takes may not fit."""
    walk = notes.walk[0]
    if walk.shift < 0:
        return False
    needed = ROWS_OF_AN_ITERATION * walk.most + OTHER_ROWS
    return bool(
        walk.segments >= len(notes.executions)
        or walk.operands + walk.most > len(notes.operands)
        or walk.rows + needed > len(notes.rows)
        or walk.distinct + needed > len(notes.lengths)
    )


@inner
def note(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    segment: Segment,
    operands: NDArray[np.int32],
    granules: NDArray[np.int16],
    notes: Notes,
) -> None:
    """Note what a segment takes. It is no part of its caller, which runs without notes, too."""
    walk = notes.walk[0]
    entry = notes.executions[walk.segments]
    walk.segments += 1
    begin_block(notes)
    entry.instruction = unit.current
    entry.tile = tile.number
    entry.position = unit.position
    entry.operands = walk.operands
    entry.rows = walk.rows
    entry.sums = NOTHING
    entry.zero_points = NOTHING
    entry.scales = NOTHING
    entry.biases = NOTHING
    entry.table = NOTHING
    entry.identity = walk.identity
    unit.lane_written[: segment.lanes] = np.uint32(0)
    if segment.starts and segment.continues:
        entry.sums = _wide_row(core, tile, parameters, segment.sum_row, segment.lanes, notes)
    if parameters.opcode == MAC and parameters.load_parameter_zero_point:
        entry.zero_points = _wide_row(
            core, tile, parameters, segment.zero_point_row, segment.lanes, notes
        )
    for i in range(len(operands)):
        if parameters.opcode == INTERPOLATE:
            _note_row(_pixels(tile, unit, segment.lanes, operands[i], notes), notes)
            continue
        if parameters.opcode == MAC:
            notes.operands[walk.operands] = _word(tile, operands[i])
            walk.operands += 1
        granule = granules[i]
        for row in range(granule >> 2, (last_granule(parameters, granule) >> 2) + 1):
            _note_row(_wide_row(core, tile, parameters, row, segment.lanes, notes), notes)
    if segment.outputs:
        _note_output(tile, unit, parameters, segment.lanes, entry, notes)


@inner
def begin_block(notes: Notes) -> None:
    """The next identities begin a block."""
    walk = notes.walk[0]
    walk.identity = (walk.identity + BLOCK - 1) // BLOCK * BLOCK


@inner
def last_granule(parameters: Parameters, granule: int) -> int:
    """The last plane that an iteration of products, a maximum or a sum takes."""
    planes = 2 if parameters.parameter_16bit else 1
    number = parameters.products if parameters.opcode == MAC else values_of(parameters, granule)
    return granule + planes * max(number, 1) - 1


@inner
def _note_row(number: int, notes: Notes) -> None:
    walk = notes.walk[0]
    notes.rows[walk.rows] = number
    walk.rows += 1


@inner
def _note_output(
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    lanes: int,
    entry: Execution,
    notes: Notes,
) -> None:
    half = scale_half(unit, parameters)
    if parameters.use_scales:
        first = chip.LANES * half
        entry.scales = _number(tile.scale_bias[first : first + chip.LANES], lanes, notes)
    if parameters.apply_bias:
        first = chip.LANES * (2 + half)
        entry.biases = _number(tile.scale_bias[first : first + chip.LANES], lanes, notes)
    if parameters.function & TABLE:
        words = unit.row.data
        count = chip.TABLE_SEGMENTS * chip.TABLE_COEFFICIENTS
        for k in range(count):
            words[k] = tile.coefficient.view(np.uint32)[k]
        for k in range(chip.TABLE_SEGMENTS - 1):
            words[count + k] = tile.lower_bound.view(np.uint32)[k]
        entry.table = _number(words, count + chip.TABLE_SEGMENTS - 1, notes)


@inner
def _word(tile: state.Tile, address: int) -> np.uint32:
    """Four bytes of narrow memory from a byte address on, as a word."""
    octets = tile.narrow.view(np.uint8)
    word = np.uint32(0)
    for k in range(4):
        word |= np.uint32(octets[(address + k) & NARROW_MASK]) << np.uint32(8 * k)
    return word


@inner
def _pixels(tile: state.Tile, unit: state.Unit, lanes: int, address: int, notes: Notes) -> int:
    """The bytes that an interpolation takes, one of each lane, as a distinct row."""
    words = unit.row.data
    for k in range((lanes + 3) // 4):
        words[k] = _word(tile, address + 4 * k)
    return _number(words, (lanes + 3) // 4, notes)


@inner
def _wide_row(
    core: state.Core, tile: state.Tile, parameters: Parameters, row: int, lanes: int, notes: Notes
) -> int:
    """The number of what a row of wide memory holds now, in its first lanes."""
    base = row_base(core, tile, parameters, row)
    words = tile.wide[base : base + chip.ROW_WORDS]
    row = base // chip.ROW_WORDS
    known = notes.latest[tile.number, row]
    if (
        known >= 0
        and notes.lengths[known] == lanes
        and same_row(words, notes.distinct[known], lanes)
    ):
        return int(known)
    found = _number(words, lanes, notes)
    notes.latest[tile.number, row] = found
    return found


@inner
def _number(words: NDArray[np.uint32], count: int, notes: Notes) -> int:
    """The number of the distinct row that begins with the words."""
    walk = notes.walk[0]
    mask = len(notes.slots) - 1
    slot = (_hash(words, count) + count) & mask
    while notes.slots[slot] >= 0:
        number = notes.slots[slot]
        if notes.lengths[number] == count and same_row(words, notes.distinct[number], count):
            return int(number)
        slot = (slot + 1) & mask
    number = walk.distinct
    walk.distinct += 1
    notes.slots[slot] = number
    notes.lengths[number] = count
    target = notes.distinct[number]
    target[:] = np.uint32(0)
    for k in range(count):
        target[k] = words[k]
    return number


@unchecked
def _hash(words: NDArray[np.uint32], count: int) -> int:
    """Of rows, which have ``chip.ROW_WORDS`` words."""
    total = np.uint32(0)
    for k in range(count):
        total += np.uint32(words[k] * _HASH[k])
    return int(total ^ (total >> np.uint32(15)))


@unchecked
def same_row(one: NDArray[np.uint32], other: NDArray[np.uint32], count: int) -> bool:
    """Of rows, which have ``chip.ROW_WORDS`` words."""
    different = np.uint32(0)
    for k in range(count):
        different |= one[k] ^ other[k]
    return bool(different == 0)


@inner
def _code(identity: int) -> int:
    """What stands for an identity: the octets of all runs, the first one lowest."""
    low = identity % CODES
    return (identity // CODES) << 24 | (low + low // (SPACING - 1) + 1)


@inner
def _next_code(code: int) -> int:
    """The code of the identity behind: the next number whose first three octets are not equal."""
    code += 1
    while not (code ^ code >> 8) & 0xFFFF:
        code += 1
    return code


@inner
def next_identities(walk: Walk, size: int, words: NDArray[np.uint32]) -> None:
    """Put the next identities into ``words``, ``size`` bytes into each."""
    code = _code(walk.identity)
    for k in range(len(words)):
        word = np.uint32(0)
        for place in range(size):
            word |= np.uint32(code >> walk.shift & 0xFF) << np.uint32(8 * place)
            code = _next_code(code)
        words[k] = word
    walk.identity += size * len(words)


@inner
def store_sums(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    segment: Segment,
    notes: Notes,
) -> None:
    """Put the identities of the sums aside, four bytes of each lane."""
    base = row_base(core, tile, parameters, segment.sum_row)
    next_identities(notes.walk[0], 4, tile.wide[base : base + segment.lanes])
    tile.wide_written[base : base + segment.lanes] = np.uint32(0)


@inner
def give_results(unit: state.Unit, parameters: Parameters, lanes: int, notes: Notes) -> None:
    """Identities of results, one or two bytes of each lane: into ``unit.rounded``."""
    size = 2 if parameters.function & OUTPUT_16BIT else 1
    next_identities(notes.walk[0], size, unit.rounded[:lanes])
