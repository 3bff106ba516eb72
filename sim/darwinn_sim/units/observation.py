"""What is observed of a run, beside the state of the chip: stop points, taps, what is read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from darwinn_sim import chip
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.structure import Int32, Record, Records
from darwinn_sim.units import identities, marks, scalar_core
from darwinn_sim.units.identities import Notes
from darwinn_sim.units.marks import Marks

_NEVER = -1


class Watch(Record):
    """What is watched for, and how far that is.

    The run stops before the instruction at ``stop_pc``, or when ``left`` executions of instructions
    ``first`` to ``last`` are over (-1: none are awaited). What instructions from ``tap_begin`` up
    to ``tap_end`` write is tapped; ``tapped`` words have been since they were last taken out.
    """

    stop_pc: int
    first: int
    last: int
    left: int
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


class Observation(NamedTuple):
    """What observers want of a run and get: one ``watch``, and room for ``words`` that are tapped.

    ``notes`` are those of a run on identities, ``marks`` of one on marks.
    """

    watch: Records[Watch]
    words: Records[TappedWord]
    notes: Notes
    marks: Marks


def new_observation(
    words: int = 1, notes: Notes | None = None, marked: Marks | None = None
) -> Observation:
    """Nothing is watched for; there is room for as many tapped words. With ``notes`` the run is one
    on identities, with ``marked`` one on marks.
    """
    watch = Watch.zeros(1)
    watch["stop_pc"], watch["left"] = scalar_core.NOWHERE, _NEVER
    return Observation(
        *(watch, TappedWord.zeros(words), notes or identities.no_notes()),
        marked or marks.no_marks(),
    )


@inner
def has_stopped(seen: Observation) -> bool:
    """What the run was to stop for has come about."""
    return seen.watch[0].left == 0


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
def is_noting(seen: Observation) -> bool:
    """What tensor units read is noted, and nothing computed."""
    return identities.is_on(seen.notes) or marks.is_on(seen.marks)


@inner
def tap_is_full(seen: Observation) -> bool:
    """Words are tapped, and those of one more run of sums may not fit; or notes of a segment."""
    watch = seen.watch[0]
    taps = watch.tap_begin < watch.tap_end and watch.tapped + chip.LANES > len(seen.words)
    return taps or identities.is_full(seen.notes) or marks.is_full(seen.marks)


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
