"""Before which segments of a tensor instruction an observer looks at what it is about to read.

A program that streams rows through wide memory stops before each position of an image; hundreds of
thousands of looks would show the same few words. So where rows arrive the chip stands still only if
the words to be read are not those that have been shown for this execution of the instruction.
"""

from __future__ import annotations

from darwinn_sim import chip
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.structure import Records
from darwinn_sim.units.tensor_cells import INTERPOLATE, MAC, NARROW_MASK
from darwinn_sim.units.tensor_plan import ALWAYS, ARRIVAL, TensorPlan
from darwinn_sim.units.tensor_records import Parameters

_HASH = 2654435761
"""Spreads words that differ little: 2^32 over the golden ratio."""

_PROBES = 8
"""Places in which a word may stand. With one, two words that are read in turns would for ever drive
each other out."""


@inner
def is_due(
    tile: state.Tile, unit: state.Unit, parameters: Parameters, plan: TensorPlan, row: int
) -> bool:
    """Whether to stand still before the observed segment at which the unit is.

    Reads the tile's memories as they are now, and remembers in ``tile.shown`` what it has found
    there: each word with the bytes that are taken of it. ``row`` is the instruction's in the plan.
    """
    place = plan.place[row]
    if unit.position == 0:
        for memory in range(2):
            for slot in range(state.SHOWN_WORDS):
                tile.shown[memory][slot].octets = 0
    if plan.segment[place.segment + unit.position].observed & ALWAYS:
        return True
    # As in analysis.operands.Look: activations up to the next wait, rows until others arrive.
    end = unit.position
    lanes = 0
    while end < place.segments:
        segment = plan.segment[place.segment + end]
        if end > unit.position and segment.observed & ARRIVAL:
            break
        lanes = max(lanes, segment.lanes)
        end += 1
    new = False
    reading = True
    for k in range(unit.position, end):
        segment = plan.segment[place.segment + k]
        reading = reading and (k == unit.position or not segment.waits)
        begin = place.iteration + segment.first
        for i in range(begin, begin + segment.count):
            if reading and _activations_are_new(tile, parameters, plan.operand[i]):
                new = True
            if parameters.opcode != INTERPOLATE and _row_is_new(
                tile, parameters, plan.granule[i], lanes
            ):
                new = True
    return new


@inner
def _activations_are_new(tile: state.Tile, parameters: Parameters, operand: int) -> bool:
    width = 0
    if parameters.opcode == INTERPOLATE:
        width = parameters.block_lanes + 1
    elif parameters.opcode == MAC:
        width = parameters.products * (2 if parameters.activation_16bit else 1)
    new = False
    for k in range(width):
        address = (operand + k) & NARROW_MASK
        if _is_new(tile.shown[0], tile.narrow[address >> 2], address & 3):
            new = True
    return new


@inner
def _row_is_new(tile: state.Tile, parameters: Parameters, granule: int, lanes: int) -> bool:
    planes = 2 if parameters.parameter_16bit else 1
    if parameters.opcode == MAC or not granule & 3:
        planes *= parameters.products
    new = False
    for plane in range(granule, granule + planes):
        if plane < 0 or plane >> 2 >= chip.WIDE_ROWS:
            return True
        for lane in range(lanes):
            word = tile.wide[(plane >> 2) * chip.ROW_WORDS + lane]
            if _is_new(tile.shown[1], word, plane & 3):
                new = True
    return new


@inner
def _is_new(shown: Records[state.Shown], word: int, octet: int) -> bool:
    """Whether the byte of the word has not been shown; from now on it has.

    A word that takes another one's place is shown anew later on, which does no harm.
    """
    start = ((word * _HASH) & 0xFFFFFFFF) * state.SHOWN_WORDS >> 32
    at = start
    for k in range(_PROBES):
        at = (start + k) % state.SHOWN_WORDS
        if not shown[at].octets or shown[at].word == word:
            break
    else:
        at = start
    slot = shown[at]
    if slot.word != word:
        slot.word = word
        slot.octets = 0
    if slot.octets >> octet & 1:
        return False
    slot.octets |= 1 << octet
    return True
