"""What is observed of a run, beside the state of the chip: stop points, taps, looks at memory.

An observer may look at what a tensor instruction is about to read. A program that streams rows
through wide memory stops before each position of an image; hundreds of thousands of looks would
show the same few words. So where rows arrive the chip stands still only if the words to be read are
not those that have been shown for this execution of the instruction.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from darwinn_sim import chip
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.structure import Int32, Record, Records, Uint32
from darwinn_sim.units import identities, scalar_core
from darwinn_sim.units.identities import Notes
from darwinn_sim.units.tensor_cells import INTERPOLATE, MAC, NARROW_MASK
from darwinn_sim.units.tensor_plan import ALWAYS, ARRIVAL, TensorPlan
from darwinn_sim.units.tensor_records import Parameters

_NEVER = -1
_SHOWN_WORDS = 512
_HASH = 2654435761
"""Spreads words that differ little: 2^32 over the golden ratio."""

_PROBES = 8
"""Places in which a word may stand. With one, two words that are read in turns would for ever drive
each other out."""


class Watch(Record):
    """What is watched for, and how far that is.

    The run stops before the instruction at ``stop_pc``; or when ``left`` executions of instructions
    ``first`` to ``last`` are over (-1: none are awaited), or because ``tile`` stands before a
    segment that is to be observed. What instructions from ``tap_begin`` up to ``tap_end`` write is
    tapped; ``tapped`` words have been since they were last taken out.
    """

    stop_pc: int
    first: int
    last: int
    left: int
    tile: int
    tap_begin: int
    tap_end: int
    tapped: int


class TappedWord(Record):
    """One word that a tensor instruction wrote to narrow memory, at a byte address; ``count`` of
    its bytes are results.
    """

    instruction: Int32
    tile: Int32
    address: Int32
    word: np.uint32
    count: Int32


class Shown(Record):
    """A word that an observer has been shown, and which bytes of it (bit k: byte k); 0: no word."""

    word: Uint32
    octets: Uint32


class ShownTile(Record):
    """What has been shown of the memories of a tile."""

    narrow: Annotated[Records[Shown], _SHOWN_WORDS]
    wide: Annotated[Records[Shown], _SHOWN_WORDS]


class Observation(NamedTuple):
    """What observers want of a run and get: one ``watch``, and room for ``words`` that are tapped.

    ``shown`` is indexed by tile; ``notes`` are those of a run on identities.
    """

    watch: Records[Watch]
    words: Records[TappedWord]
    shown: Records[ShownTile]
    notes: Notes


def new_observation(words: int = 1, notes: Notes | None = None) -> Observation:
    """Nothing is watched for; there is room for as many tapped words. With ``notes`` the run is one
    on identities.
    """
    watch = Watch.zeros(1)
    watch["stop_pc"], watch["left"] = scalar_core.NOWHERE, _NEVER
    shown = ShownTile.zeros(chip.TILES)
    return Observation(watch, TappedWord.zeros(words), shown, notes or identities.no_notes())


@inner
def has_stopped(seen: Observation) -> bool:
    """What the run was to stop for has come about."""
    return seen.watch[0].left == 0


@inner
def stop_before_segment(core: state.Core, tile: state.Tile, seen: Observation) -> None:
    """Stop: an observer is to look at what ``tile`` is about to read."""
    seen.watch[0].tile = tile.number
    seen.watch[0].left = 0
    state.stand_still(core)


@inner
def count_execution(core: state.Core, instruction: int, seen: Observation) -> None:
    """An execution of an instruction is over; stop if it was the last that is awaited."""
    watch = seen.watch[0]
    if watch.left > 0 and watch.first <= instruction <= watch.last:
        watch.left -= 1
        if watch.left == 0:
            state.stand_still(core)


@inner
def is_tapped(seen: Observation, instruction: int) -> bool:
    """What an instruction writes is tapped."""
    return seen.watch[0].tap_begin <= instruction < seen.watch[0].tap_end


@inner
def tap_is_full(seen: Observation) -> bool:
    """Words are tapped, and those of one more run of sums may not fit; or notes of a segment."""
    watch = seen.watch[0]
    taps = watch.tap_begin < watch.tap_end and watch.tapped + chip.LANES > len(seen.words)
    return taps or identities.is_full(seen.notes)


@inner
def tap(
    seen: Observation, tile: state.Tile, instruction: int, address: int, word: np.uint32, count: int
) -> None:
    """Copy out a word that an instruction writes; ``count`` of its bytes are results."""
    entry = seen.words[seen.watch[0].tapped]
    entry.instruction = instruction
    entry.tile = tile.number
    entry.address = address
    entry.word = word
    entry.count = count
    seen.watch[0].tapped += 1


@inner
def is_due(
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    plan: TensorPlan,
    row: int,
    seen: Observation,
) -> bool:
    """Whether to stand still before the observed segment at which the unit is.

    Reads the tile's memories as they are now, and remembers in ``seen`` what it has found
    there: each word with the bytes that are taken of it. ``row`` is the instruction's in the plan.
    """
    place = plan.place[row]
    shown = seen.shown[tile.number]
    if unit.position == 0:
        for slot in range(_SHOWN_WORDS):
            shown.narrow[slot].octets = 0
            shown.wide[slot].octets = 0
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
            if reading and _activations_are_new(shown.narrow, tile, parameters, plan.operand[i]):
                new = True
            if parameters.opcode != INTERPOLATE and _row_is_new(
                shown.wide, tile, parameters, plan.granule[i], lanes
            ):
                new = True
    return new


@inner
def _activations_are_new(
    shown: Records[Shown], tile: state.Tile, parameters: Parameters, operand: int
) -> bool:
    width = 0
    if parameters.opcode == INTERPOLATE:
        width = parameters.block_lanes + 1
    elif parameters.opcode == MAC:
        width = parameters.products * (2 if parameters.activation_16bit else 1)
    new = False
    for k in range(width):
        address = (operand + k) & NARROW_MASK
        if _is_new(shown, tile.narrow[address >> 2], address & 3):
            new = True
    return new


@inner
def _row_is_new(
    shown: Records[Shown], tile: state.Tile, parameters: Parameters, granule: int, lanes: int
) -> bool:
    planes = 2 if parameters.parameter_16bit else 1
    if parameters.opcode == MAC or not granule & 3:
        planes *= parameters.products
    new = False
    for plane in range(granule, granule + planes):
        if plane < 0 or plane >> 2 >= chip.WIDE_ROWS:
            return True
        for lane in range(lanes):
            word = tile.wide[(plane >> 2) * chip.ROW_WORDS + lane]
            if _is_new(shown, word, plane & 3):
                new = True
    return new


@inner
def _is_new(shown: Records[Shown], word: int, octet: int) -> bool:
    """Whether the byte of the word has not been shown; from now on it has.

    A word that takes another one's place is shown anew later on, which does no harm.
    """
    start = ((word * _HASH) & 0xFFFFFFFF) * _SHOWN_WORDS >> 32
    at = start
    for k in range(_PROBES):
        at = (start + k) % _SHOWN_WORDS
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
