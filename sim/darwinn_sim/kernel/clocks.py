"""Vector clocks: what each unit knows of the others, and so what is before what (FastTrack).

Each unit is a thread. Its clock ticks when it tells others something, by a flag, queue or FIFO. An
*epoch* is a thread and its clock in one number; ``known[t, u]`` is the clock of ``u`` up to which
everything that ``u`` has done is before what ``t`` does now. What is told is an epoch and the
*version* of what the teller knew: a copy of its row of ``known``, made when that has changed since
the last time. A thread keeps ``DEPTH`` versions. Who learns of an older one learns what the teller
knows now, which is more: it can hide a hazard, and makes none up (``late`` counts that).
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import ScalarFlag, ScalarUnit
from darwinn_sim.kernel import traversal
from darwinn_sim.kernel.compiled import copy, inner, unchecked
from darwinn_sim.kernel.structure import Numbers, Record, Records

_OF_A_TILE = 16
"""Threads of a tile: its ten units, the receiving sides of its mesh units, what hands instructions
to units, and in the last place something beside the tiles."""

_RECEIVERS, DISPATCHER, _BESIDE = chip.TILE_UNITS, 14, 15

_BESIDE_THE_TILES = 10
"""What is beside the tiles, as below; of a chip with fewer tiles some threads are of none."""

THREADS = _OF_A_TILE * max(chip.TILES, _BESIDE_THE_TILES)
CORE, FIRST_SCALAR_UNIT, HOST, FIRST_CHANNEL = (_OF_A_TILE * k + _BESIDE for k in (0, 1, 5, 6))
"""The scalar core, the first of the four units beside it, the host, and channel A of the ring, by
which turns are counted. They are ``_OF_A_TILE`` apart."""

INFEED = FIRST_SCALAR_UNIT + _OF_A_TILE * ScalarUnit.RING_INFEED

CLOCK_BITS = 23
CLOCK_MASK = (1 << CLOCK_BITS) - 1

DEPTH = 32
_COUNTS, _UNITS, _ACTIVATIONS = 256, chip.PARAMETER_UNITS, chip.ACTIVATION_UNITS
"""Increments that are kept of a tile's flag, of one of the scalar core, and of the two that count
units of activations, which arrive long before they are sent. Who waits for an older one learns what
was told at the oldest."""

AHEAD = 64
"""Words that wide-to-narrow may be ahead of what it has written (docs/chip-facts.md)."""

_AT_ONCE, _LATER = 1, 2
"""What has changed of what a thread knows: told with the next thing, or with one of the next."""

HISTORY = 512
"""Instructions of a thread that are kept, by the clock at which they began."""

NARROW_WORDS = chip.NARROW_BYTES // chip.WORD_BYTES
_WIDE_WORDS = chip.WIDE_ROWS * chip.ROW_WORDS
_TILE_WORDS = NARROW_WORDS + _WIDE_WORDS + chip.SCALE_BIAS_WORDS
ACTIVATION_WORDS = chip.ACTIVATION_UNIT_BYTES // chip.WORD_BYTES
PARAMETER_WORDS = chip.PARAMETER_UNIT_BYTES // chip.WORD_BYTES

SCALAR_BASE = chip.TILES * _TILE_WORDS
ACTIVATION_BASE = SCALAR_BASE + chip.SCALAR_MEMORY_WORDS
PARAMETER_BASE = ACTIVATION_BASE + chip.ACTIVATION_UNITS * ACTIVATION_WORDS
FLAG_BASE = PARAMETER_BASE + chip.PARAMETER_UNITS * PARAMETER_WORDS

_FLAGS_OF_A_TILE = chip.TILE_FLAGS + 1
FLAGS = chip.TILES * _FLAGS_OF_A_TILE + chip.SCALAR_FLAGS
"""Flags of the tiles, each with its count of fences behind them, and those of the scalar core."""

_FIRST_SCALAR_FLAG = chip.TILES * _FLAGS_OF_A_TILE
_FIRST_UNITS = _COUNTS * _FIRST_SCALAR_FLAG
_FIRST_ACTIVATIONS = _FIRST_UNITS + _UNITS * chip.SCALAR_FLAGS
_FIRST_FREE = _FIRST_ACTIVATIONS + _ACTIVATIONS
_ENTRIES = _FIRST_FREE + _ACTIVATIONS

_ROW_FIFOS = 2 * chip.TILES + 1
RING_BASE = FLAG_BASE + FLAGS
OUTFEED_TAIL = RING_BASE + _ROW_FIFOS - 1
OUTPUT_TAIL = OUTFEED_TAIL + 1
"""Where rows are appended for a channel of a tile and for the outfeed, and bytes for the host: who
appends writes there, so that two who are not ordered are found."""

WORDS = OUTPUT_TAIL + 1
"""Words that have a shadow: of the tiles, of the scalar core and its buffers, flags and tails."""

_TILE_QUEUES = 0
_UNIT_QUEUES = _TILE_QUEUES + chip.TILES * chip.TILE_QUEUE
SCALAR_QUEUES = _UNIT_QUEUES + chip.TILES * chip.TILE_UNITS * chip.UNIT_QUEUE
_RING = SCALAR_QUEUES + 4 * chip.UNIT_QUEUE
_OUTFEED = _RING + 2 * chip.TILES * chip.RING_FIFO_ROWS
_MESH = _OUTFEED + chip.RING_FIFO_ROWS
INPUT = _MESH + 4 * chip.TILES * chip.MESH_FIFO_WORDS
_PLACES = INPUT + 2
"""Places of queues and FIFOs, in which something is handed on."""

WAITING = 15
"""At most so many rows wait in a tile: programs rely on it (docs/chip-facts.md, "Order")."""

CROWD = 1 << 16
"""Places of readers of words that have more than one, none of which is ordered with another."""

MOST_FOUND = 64

READ_AFTER_WRITE, WRITE_AFTER_WRITE, WRITE_AFTER_READ, COUNT_AFTER_LOAD, LOAD_AFTER_COUNT = range(5)
"""What was done to a word, or a flag, without order after what."""

COUNT_AFTER_COUNT, LOAD_AFTER_WAIT, WAIT_TOO_EARLY, WAIT_TOO_LATE = range(5, 9)
"""What else leaves it open whether all waits end (``kernel.waits``)."""

MOST_DOUBTS = 9
"""As many as there are kinds: the first of each is kept."""

HALF = 1 << 15
"""A flag has 16 bits: a count so far ahead of it has been reached, and one so far behind it not."""

WINDOWS = (ScalarFlag.AV_POP, ScalarFlag.AV_INFEED)
"""Flags whose buffer has as many units as that, so that each wait is kept so long."""

STEP, STEPS = HALF // 4, 8
"""Of the other flags, waits are kept by steps of so many counts, and so many steps."""

TURNS = 1 << 14
"""Counts that are kept of a flag that several units count in no order."""

DESCRIPTORS = 64
"""Descriptors that are kept of an input stream; of older ones nothing is learnt."""


class FlagClock(Record):
    """What has been told by a flag since it was loaded with ``value``: ``count`` increments, and
    what who loaded it did; ``exact``: when a fence last passed that awaits no more than it says;
    ``sender``: of a flag that counts turns on the ring, who counted last.
    """

    count: int
    value: int
    exact: int
    sender: int
    last_load: int
    loaded: int
    loaded_version: int


class Found(Record):
    """Two instructions that touch a word without order: the first in this run, and the second.

    ``words``: how often. ``same``: both wrote the same. An instruction is -1 if it is not known.
    """

    kind: int
    same: int
    word: int
    first_thread: int
    first: int
    second_thread: int
    second: int
    words: int


class Reader(Record):
    """One of several readers of a word that nothing orders, and the place of the ``following`` one
    (0: it is the last)."""

    epoch: int
    following: int


class Issued(Record):
    """A descriptor: the bytes of its stream up to its begin and its end, and what was told when it
    was issued."""

    begin: int
    end: int
    epoch: int
    version: int


class Clocks(Record):
    """Clocks, what was told, and what has been found.

    Of each word, the epochs of its last write and of a read since then (``reader``); ``others`` is
    the place in ``crowd`` of the first further reader that is not ordered with it (0: there is
    none). Places up to ``crowded`` have been used, and ``free_place`` is the first that is free
    again. ``counted`` is what was told by increments of flags (:func:`entry`), ``told`` in places
    of queues and FIFOs, ``free`` when rows were taken that ring FIFOs held. ``spread`` words have
    left wide-to-narrow of a tile, the last of them at ``spread_at``. Instructions count from
    ``origin``. Fences have waited ``drained`` times until the host had all output, ``taken`` times
    until what takes its input was idle. ``late`` and ``behind``: what was learnt from too old a
    version, and from too old an increment; ``dropped``: readers that found no place. ``sparing``:
    what would be learnt from too old a version or increment is not learnt. ``doubts`` to ``passed``
    are those of ``kernel.waits``. ``inputs`` has the last ``descriptors`` of each input stream; of
    its bytes so many were issued and taken.
    """

    clock: Annotated[NDArray[np.int32], THREADS]
    version: Annotated[NDArray[np.int32], THREADS]
    changed: Annotated[NDArray[np.uint8], THREADS]
    doing: Annotated[NDArray[np.int32], THREADS]
    begun: Annotated[NDArray[np.int32], THREADS]
    begun_at: Annotated[NDArray[np.int32], THREADS, HISTORY]
    begun_what: Annotated[NDArray[np.int32], THREADS, HISTORY]
    known: Annotated[NDArray[np.int32], THREADS, THREADS]
    joined: Annotated[NDArray[np.int32], THREADS, THREADS]
    snapshot: Annotated[NDArray[np.int32], THREADS, DEPTH, THREADS]
    flags: Annotated[Records[FlagClock], FLAGS]
    counted: Annotated[NDArray[np.int32], _ENTRIES]
    counted_version: Annotated[NDArray[np.int32], _ENTRIES]
    sent: Annotated[Numbers, _ROW_FIFOS]
    taken_rows: Annotated[Numbers, _ROW_FIFOS]
    free: Annotated[NDArray[np.int32], _ROW_FIFOS, WAITING]
    free_version: Annotated[NDArray[np.int32], _ROW_FIFOS, WAITING]
    issued: Annotated[NDArray[np.int32], 4 * chip.UNIT_QUEUE]
    told: Annotated[NDArray[np.int32], _PLACES]
    told_version: Annotated[NDArray[np.int32], _PLACES]
    writer: Annotated[NDArray[np.int32], WORDS]
    reader: Annotated[NDArray[np.int32], WORDS]
    others: Annotated[NDArray[np.int32], WORDS]
    crowd: Annotated[Records[Reader], CROWD]
    crowded: int
    free_place: int
    walk: traversal.State
    spread: Annotated[Numbers, chip.TILES]
    spread_at: Annotated[NDArray[np.int32], chip.TILES, AHEAD]
    origin: int
    found: Annotated[Records[Found], MOST_FOUND]
    pairs: int
    more: int
    late: Annotated[Numbers, THREADS]
    behind: Annotated[Numbers, FLAGS]
    drained: int
    taken: int
    dropped: int
    sparing: int
    doubts: Annotated[Records[Found], MOST_DOUBTS]
    doubted: int
    awaited: Annotated[NDArray[np.int32], FLAGS, _OF_A_TILE]
    least: Annotated[NDArray[np.int32], FLAGS, _OF_A_TILE]
    counter: Annotated[NDArray[np.int32], FLAGS]
    window: Annotated[NDArray[np.int32], len(WINDOWS), HALF]
    turns: Annotated[NDArray[np.int32], 2, TURNS]
    mixed_from: Annotated[Numbers, 2]
    mixed_to: Annotated[Numbers, 2]
    passed: Annotated[NDArray[np.int32], FLAGS, _OF_A_TILE, STEPS]
    inputs: Annotated[Records[Issued], 2 * DESCRIPTORS]
    descriptors: Annotated[Numbers, 2]
    bytes_issued: Annotated[Numbers, 2]
    bytes_taken: Annotated[Numbers, 2]


# Threads.


@inner
def unit(tile: int, which: int) -> int:
    """The thread of a unit of a tile; of a mesh unit, its sending side."""
    return _OF_A_TILE * tile + which


@inner
def receiver(tile: int, link: int) -> int:
    """The receiving side of a mesh unit."""
    return _OF_A_TILE * tile + _RECEIVERS + link


@inner
def dispatcher(tile: int) -> int:
    """What hands instructions to the units of a tile."""
    return _OF_A_TILE * tile + DISPATCHER


@inner
def scalar_unit(which: int) -> int:
    """A unit beside the scalar core."""
    return FIRST_SCALAR_UNIT + _OF_A_TILE * which


@inner
def channel(number: int) -> int:
    """A channel of the ring."""
    return FIRST_CHANNEL + _OF_A_TILE * number


@inner
def turns_at_core(number: int) -> int:
    """What flag 5 or 6 of the scalar core is counted by, of both channels."""
    return channel(2 + number)


# Words.


@inner
def narrow(tile: int, word: int) -> int:
    """The shadow of a word of narrow memory."""
    return _TILE_WORDS * tile + word


@inner
def wide(tile: int, row: int) -> int:
    """The shadow of the first word of a row of wide memory."""
    return _TILE_WORDS * tile + NARROW_WORDS + row * chip.ROW_WORDS


@inner
def scale_bias(tile: int, word: int) -> int:
    """The shadow of a word of the scale/bias buffer."""
    return _TILE_WORDS * tile + NARROW_WORDS + _WIDE_WORDS + word


# Flags, in ``flags``.


@inner
def tile_flag(tile: int, flag: int) -> int:
    """A flag of a tile; the one behind the last is its count of fences."""
    return _FLAGS_OF_A_TILE * tile + flag


@inner
def scalar_flag(flag: int) -> int:
    """A flag of the scalar core."""
    return _FLAGS_OF_A_TILE * chip.TILES + flag


@inner
def kept(flag: int) -> int:
    """How many increments of a flag are kept."""
    if flag < _FIRST_SCALAR_FLAG:
        return _COUNTS
    number = flag - _FIRST_SCALAR_FLAG
    of_activations = number == ScalarFlag.AV_POP or number == ScalarFlag.AV_INFEED
    return _ACTIVATIONS if of_activations else _UNITS


@inner
def entry(flag: int, number: int) -> int:
    """Where the increment of a flag with this number is kept, from 1 on."""
    if flag < _FIRST_SCALAR_FLAG:
        return _COUNTS * flag + number % _COUNTS
    if flag == _FIRST_SCALAR_FLAG + ScalarFlag.AV_POP:
        return _FIRST_ACTIVATIONS + number % _ACTIVATIONS
    if flag == _FIRST_SCALAR_FLAG + ScalarFlag.AV_INFEED:
        return _FIRST_FREE + number % _ACTIVATIONS
    return _FIRST_UNITS + _UNITS * (flag - _FIRST_SCALAR_FLAG) + number % _UNITS


# Places.


@inner
def tile_queue(tile: int, slot: int) -> int:
    """A place of a tile's queue."""
    return _TILE_QUEUES + chip.TILE_QUEUE * tile + slot


@inner
def unit_queue(tile: int, which: int, slot: int) -> int:
    """A place of the queue of a tile's unit."""
    return _UNIT_QUEUES + chip.UNIT_QUEUE * (chip.TILE_UNITS * tile + which) + slot


@inner
def scalar_queue(which: int, slot: int) -> int:
    """A place of the queue of a unit beside the scalar core."""
    return SCALAR_QUEUES + chip.UNIT_QUEUE * which + slot


@inner
def ring(tile: int, number: int, slot: int) -> int:
    """A place for a row that has arrived on a channel."""
    return _RING + chip.RING_FIFO_ROWS * (2 * tile + number) + slot


@inner
def outfeed(slot: int) -> int:
    """A place for a row that has arrived for the outfeed."""
    return _OUTFEED + slot


@inner
def mesh(tile: int, link: int, slot: int) -> int:
    """A place for a word that has arrived on a link."""
    return _MESH + chip.MESH_FIFO_WORDS * (4 * tile + link) + slot


@inner
def row_fifo(tile: int, number: int) -> int:
    """Where rows wait that were sent to a tile on a channel; to the outfeed, as the tile behind the
    last, on any channel."""
    return 2 * tile + (number if tile < chip.TILES else 0)


# What is told and learnt.


@inner
def tell(clocks: Clocks, thread: int) -> int:
    """The epoch that others may learn of, with what ``thread`` knows, which has its version."""
    if clocks.changed[thread]:
        clocks.changed[thread] = 0
        clocks.version[thread] += 1
        at = clocks.version[thread] % DEPTH
        copy(clocks.snapshot[thread, at], 0, clocks.known[thread], 0, THREADS)
    return thread << CLOCK_BITS | int(clocks.clock[thread])


@inner
def tick(clocks: Clocks, thread: int) -> None:
    """What ``thread`` does from now on is behind what it has told."""
    clocks.clock[thread] = min(clocks.clock[thread] + 1, CLOCK_MASK)


@inner
def tell_of_stream(clocks: Clocks, thread: int) -> int:
    """The same of one of many: what need not be handed on at once waits for another one."""
    if clocks.changed[thread] == _LATER:
        return thread << CLOCK_BITS | int(clocks.clock[thread])
    return tell(clocks, thread)


@inner
def _hands_on(clocks: Clocks, thread: int, teller: int) -> bool:
    """What the teller itself has done is handed on at once. If clocks are sparing that waits for
    what the scalar core, pops and outfeed have done, and for the infeed among these, so that a
    version lasts longer than a word of a stream."""
    if not clocks.sparing or teller % _OF_A_TILE != _BESIDE or teller >= HOST:
        return True
    return teller == INFEED and (thread == CORE or thread % _OF_A_TILE != _BESIDE)


@inner
def learn(clocks: Clocks, thread: int, epoch: int, version: int) -> None:
    """What was told is before what ``thread`` does from now on."""
    teller = epoch >> CLOCK_BITS
    clock = epoch & CLOCK_MASK
    if clock == 0 or teller == thread:
        return
    if clocks.known[thread, teller] < clock:
        clocks.known[thread, teller] = clock
        clocks.changed[thread] |= _AT_ONCE if _hands_on(clocks, thread, teller) else _LATER
    if version > clocks.joined[thread, teller]:
        clocks.joined[thread, teller] = version
        if clocks.version[teller] - version < DEPTH:
            source = clocks.snapshot[teller, version % DEPTH]
        else:
            clocks.late[teller] += 1
            if clocks.sparing:
                return
            source = clocks.known[teller]
        if _join(clocks.known[thread], source):
            clocks.changed[thread] |= _AT_ONCE


@unchecked
def _join(known: NDArray[np.int32], source: NDArray[np.int32]) -> bool:
    """Take the greater clocks; True if that changed any. Both have ``THREADS``."""
    grown = 0
    for k in range(THREADS):
        grown |= int(source[k] > known[k])
        known[k] = max(known[k], source[k])
    return grown != 0


@inner
def is_before(clocks: Clocks, epoch: int, thread: int) -> bool:
    """What was done at an epoch is before what ``thread`` does now."""
    doer = epoch >> CLOCK_BITS
    return doer == thread or epoch & CLOCK_MASK <= clocks.known[thread, doer]


@inner
def now(clocks: Clocks, thread: int) -> int:
    """The epoch of ``thread``."""
    return thread << CLOCK_BITS | int(clocks.clock[thread])


@inner
def begin(clocks: Clocks, thread: int, instruction: int) -> None:
    """``thread`` begins an instruction."""
    tick(clocks, thread)
    instruction += clocks.origin
    clocks.doing[thread] = instruction
    at = clocks.begun[thread] % HISTORY
    clocks.begun_at[thread, at] = clocks.clock[thread]
    clocks.begun_what[thread, at] = instruction
    clocks.begun[thread] += 1


def place_of(thread: int) -> tuple[int, int]:
    """Tile of a thread (-1: beside the tiles), and which of the tile's it is."""
    tile, which = divmod(thread, _OF_A_TILE)
    return (-1, -1) if which == _BESIDE else (tile, which)


def memory_of(word: int) -> tuple[int, str, int]:
    """Tile, memory and word in it of the shadow of a word of a tile."""
    tile, word = divmod(word, _TILE_WORDS)
    if word < NARROW_WORDS:
        return tile, "narrow memory", word
    word -= NARROW_WORDS
    if word < _WIDE_WORDS:
        return tile, "wide memory", word
    return tile, "scale/bias buffer", word - _WIDE_WORDS
