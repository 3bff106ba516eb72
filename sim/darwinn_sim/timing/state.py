"""State of the event model as NumPy records.

Time is counted in whole cycles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel import sync, traversal
from darwinn_sim.timing import stations

NEVER = np.iinfo(np.int64).max
NO_INSTRUCTION = -1

STATION = np.dtype(
    [
        ("waits_on", "i8"),
        ("need", "i8"),
        ("next_waiter", "i8"),
        ("mark", "i8"),
        ("cause", "i8"),
        ("instruction", "i8"),
        ("row", "i8"),
        ("begun", "i8"),
        ("queue", "i8", (stations.UNIT_PLACES,)),
        ("queued", "i8"),
        ("taken", "i8"),
        ("first", traversal.State.dtype),
        ("second", traversal.State.dtype),
        ("waited", "i8", (sync.MAX_WATCHERS,)),
        ("ready", "i8"),
        ("done", "i8"),
        ("row_closed", "i8"),
        ("held_up", "i8"),
        ("phase", "i8"),
        ("position", "i8"),
        ("words", "i8"),
        ("total", "i8"),
        ("elements", "i8"),
        ("fence_mark", "i8"),
        ("fetch_mark", "i8"),
    ]
)
"""A station. ``waits_on``: counter that it waits for until that has
reached ``need``, -1: none. ``mark`` is the cycle up to which its time has been booked, ``cause``
what the time since then is. ``queued`` and ``taken`` count instructions, ``total`` what it has put
into a FIFO or taken from one since the start, ``elements`` what it has moved. ``fence_mark`` and
``fetch_mark``: how long its tile's dispatch had waited at fences, and the core for instructions,
when it ran out of instructions."""

CLOCK = np.dtype(
    [
        ("now", "i8"),
        ("effects", "i8"),
        ("spans", "i8"),
        ("ring_free", "i8"),
        ("ring_from", "i8"),
        ("ring_targets", "i8"),
        ("ring_channel", "i8"),
        ("ring_rows", "i8"),
        ("link_in_free", "i8"),
        ("link_out_free", "i8"),
        ("fault", "i8"),
        ("fault_station", "i8"),
        ("fault_instruction", "i8"),
    ]
)
"""The present cycle, how many effects and spans are stored, the ring, and when the link's streams
are free again (in 1/``LINK_UNITS`` cycles)."""

LINK_UNITS = 1 << 16

RATES = np.dtype(
    [
        ("ring_bytes_per_cycle", "i8"),
        ("ring_row_cycles", "i8"),
        ("ring_sender_waits", "i8"),
        ("narrow_to_wide_words_per_cycle", "i8"),
        ("wide_to_narrow_words_per_cycle", "i8"),
        ("mesh_words_per_cycle", "i8"),
        ("result_words_per_cycle", "i8"),
        ("result_queue_words", "i8"),
        ("result_cycles", "i8"),
        ("drain_cycles", "i8"),
        ("row_write_cycles", "i8"),
        ("scalar_bundle_cycles", "i8"),
        ("ring_fifo_rows", "i8"),
        ("outfeed_rows", "i8"),
        ("ring_room_at_once", "i8"),
        ("mesh_fifo_words", "i8"),
        ("tile_queue", "i8"),
        ("unit_queue", "i8"),
        ("scalar_queue", "i8"),
        ("instruction_start", "i8"),
        ("scalar_unit_start", "i8"),
        ("host_fifo_bytes", "i8"),
        ("link_word_bytes", "i8"),
        ("reads_apart", "i8"),
        ("read_cycles", "i8"),
        ("write_burst_bytes", "i8"),
        ("write_cycles", "i8"),
        ("interrupt_cycles", "i8"),
        ("link_in_time", "i8"),
        ("link_out_time", "i8"),
        ("link_on_request", "i8"),
    ]
)
"""Parameters of chip and link as the kernels use them; ``link_*_time`` in 1/``LINK_UNITS`` cycles
per byte."""

EFFECT = np.dtype([("counter", "i8"), ("amount", "i8"), ("loads", "i8")])
FLAG_CYCLES = 1024
"""Results of a tile that flag 0 counts and that are on their way to narrow memory, at most."""

MOST_AHEAD = FLAG_CYCLES // 2
"""The same where the tensor unit ends segments ahead of time; one output or two may come on top."""

MAX_EFFECTS = 1 << 14
"""More than all stations together can have in a cycle."""

STEP = np.dtype(
    [
        ("kind", "i8"),
        ("gap", "i8"),
        ("length", "i8"),
        ("instruction", "i8"),
        ("row", "i8"),
        ("target", "i8"),
        ("address", "u8"),
        ("size", "i8"),
    ]
)
"""What the scalar core hands over (``state.HANDED``) after ``gap`` bundles of its own, with one of
``length`` bundles. ``target`` of a chunk is its number."""

TRANSFER = np.dtype(
    [
        ("kind", "i8"),
        ("size", "i8"),
        ("number", "i8"),
        ("issued", "i8"),
        ("start", "i8"),
        ("end", "i8"),
    ]
)
"""A transfer on the host link. ``number``: of a chunk or an interrupt, for a fence the bytes that
must have been delivered; ``issued``, ``start`` and ``end`` are cycles (-1: not)."""

PARAMETERS, ACTIVATIONS, INSTRUCTIONS, HOST_FENCE, OUTPUT, INTERRUPT = range(6)
"""Kinds of transfers; the first two are the numbers of their FIFOs."""

RUN = np.dtype([("first", "i8"), ("last", "i8"), ("rate", "i8")])
"""A run of a counter (``rates``)."""

SPAN = np.dtype([("station", "i4"), ("instruction", "i4"), ("start", "i8"), ("end", "i8")])
"""One execution of an instruction: cycles ``start`` to ``end`` - 1 on station ``station``."""


class Machine(NamedTuple):
    """All arrays of a run.

    ``wake`` is the cycle of each station's next turn, ``group_wake`` the earliest of each group.
    ``flag_cycles`` holds, for each tile, the cycles in which results that add to flag 0 are
    written; ``reserved`` the rows sent to each ring FIFO and the bytes sent to each stream.
    """

    clock: NDArray[np.void]
    rates: NDArray[np.void]
    stations: NDArray[np.void]
    wake: NDArray[np.int64]
    group_wake: NDArray[np.int64]
    counters: NDArray[np.int64]
    runs: NDArray[np.void]
    first_waiter: NDArray[np.int64]
    effects: NDArray[np.void]
    causes: NDArray[np.int64]
    usage: NDArray[np.int64]
    by_instruction: NDArray[np.int64]
    executions: NDArray[np.int64]
    tile_queue: NDArray[np.int64]
    reserved: NDArray[np.int64]
    flag_cycles: NDArray[np.int64]
    steps: NDArray[np.void]
    inbound: NDArray[np.void]
    outbound: NDArray[np.void]
    spans: NDArray[np.void]
