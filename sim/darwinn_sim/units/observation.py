"""What sees a run, beside the state of the chip: it stops the run, and takes words or notes out.

Its type decides what the units do: they compute, and their words may be tapped (``Observation``),
or they note what they read (``Notebook``). For each type the kernels are compiled once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from darwinn_sim import chip
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.hooks import either
from darwinn_sim.kernel.structure import Int32, Record, Records
from darwinn_sim.units import identities, marks, scalar_core
from darwinn_sim.units.identities import Notes
from darwinn_sim.units.marks import Marks
from darwinn_sim.units.output_stage import OUTPUT_16BIT
from darwinn_sim.units.tensor_records import Parameters

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
    """Of a run on data: one ``watch``, and room for ``words`` that are tapped."""

    watch: Records[Watch]
    words: Records[TappedWord]


class Notebook(NamedTuple):
    """Of a run on identities, which has ``notes``, or on marks: one ``watch``, which taps nothing.

    Both are of one type: there are few such runs, and another one would be compiled for minutes.
    """

    watch: Records[Watch]
    notes: Notes
    marks: Marks


Seen = Observation | Notebook


def new_observation(words: int = 1) -> Observation:
    """Nothing is watched for; there is room for as many tapped words."""
    return Observation(_new_watch(), TappedWord.zeros(words))


def new_notebook(notes: Notes | None = None, marked: Marks | None = None) -> Notebook:
    """Nothing is watched for; with ``notes`` the run is one on identities, with ``marked`` one on
    marks.
    """
    return Notebook(_new_watch(), notes or identities.no_notes(), marked or marks.no_marks())


def _new_watch() -> Records[Watch]:
    watch = Watch.zeros(1)
    watch["stop_pc"], watch["left"] = scalar_core.NOWHERE, _NEVER
    return watch


@inner
def has_stopped(seen: Seen) -> bool:
    """What the run was to stop for has come about."""
    return seen.watch[0].left == 0


@inner
def count_execution(core: state.Core, instruction: int, seen: Seen) -> None:
    """An execution of an instruction is over; stop if it was the last that is awaited."""
    watch = seen.watch[0]
    if watch.left > 0 and watch.first <= instruction <= watch.last:
        watch.left -= 1
        if watch.left == 0:
            state.stand_still(core)


@inner
def _are_taps_full(seen: Observation) -> bool:
    """Words are tapped, and those of one more run of sums may not fit."""
    watch = seen.watch[0]
    return bool(watch.tap_begin < watch.tap_end and watch.tapped + chip.LANES > len(seen.words))


@inner
def _are_notes_full(seen: Notebook) -> bool:
    """Notes of one more segment, or sweep, may not fit."""
    return identities.is_full(seen.notes) or marks.is_full(seen.marks)


is_full = either("notes", _are_notes_full, _are_taps_full)
"""``is_full(seen)``: a tensor unit has to wait until there is room for more."""


@inner
def tap(
    seen: Observation,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    lanes: int,
    number: int,
    address: int,
) -> None:
    """Copy out a word that a tensor instruction has written, if it is tapped: the results of so
    many lanes, number ``number`` of these, to a byte address.
    """
    watch = seen.watch[0]
    if not watch.tap_begin <= unit.current < watch.tap_end:
        return
    size = 2 if parameters.function & OUTPUT_16BIT else 1
    entry = seen.words[watch.tapped]
    entry.instruction = unit.current
    entry.tile = tile.number
    entry.address = address
    entry.word = unit.row.data[number]
    entry.count = min(chip.WORD_BYTES, lanes * size - chip.WORD_BYTES * number)
    watch.tapped += 1
