"""State of the event model as NumPy records.

Time is counted in whole cycles.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel import sync, traversal
from darwinn_sim.kernel.state import QueueEntry
from darwinn_sim.kernel.structure import Int32, Numbers, Record, Records
from darwinn_sim.timing import stations
from darwinn_sim.timing.stretches import Stretches
from darwinn_sim.timing.turns import Turns

NO_INSTRUCTION = -1


class Station(Record):
    """A station. ``waits_on``: counter that it waits for until that has reached ``need``, -1:
    none. ``mark`` is the cycle up to which its time has been booked, ``cause`` what the time
    since then is. ``queued`` and ``taken`` count instructions, ``total`` what it has put into a
    FIFO or taken from one since the start, ``elements`` what it has moved. ``fence_mark`` and
    ``fetch_mark``: how long its tile's dispatch had waited at fences, and the core for
    instructions, when it ran out of instructions. ``stays``: all that its instruction can reach
    is there (``places``), bit 0 of ``first``, bit 1 of ``second``.
    """

    waits_on: int
    need: int
    next_waiter: int
    mark: int
    cause: int
    instruction: int
    row: int
    base: int
    begun: int
    queued: int
    taken: int
    first: traversal.State
    second: traversal.State
    waited: Annotated[Numbers, sync.MAX_WATCHERS]
    ready: int
    done: int
    row_closed: int
    phase: int
    position: int
    words: int
    total: int
    elements: int
    fence_mark: int
    fetch_mark: int
    stays: int


class Clock(Record):
    """The present cycle, how many effects and spans are stored, the ring, and when the link's
    streams are free again (in 1/``LINK_UNITS`` cycles). ``loads`` of the effects load a counter.
    ``row_takers`` are the tiles (bit t: tile t) whose consumer of ``row_channel`` takes the row
    that has arrived. ``more_steps``: the core's trace goes on behind ``Machine.steps``.
    """

    now: int
    effects: int
    loads: int
    spans: int
    ring_free: int
    ring_targets: int
    ring_channel: int
    ring_rows: int
    row_takers: int
    row_channel: int
    link_in_free: int
    link_out_free: int
    more_steps: int
    fault: int
    fault_station: int
    fault_instruction: int
    fault_address: int


LINK_UNITS = 1 << 16

UNREACHABLE = -1
"""``fault``: output has gone to where no buffer is; ``fault_address`` numbers the transfer."""


class Rates(Record):
    """Parameters of chip and link as the kernels use them; ``link_*_time`` in 1/``LINK_UNITS``
    cycles per byte, ``result_queue_cycles`` those in which the words of the queue are written.
    """

    ring_bytes_per_cycle: int
    ring_row_cycles: int
    ring_sender_waits: int
    narrow_to_wide_words_per_cycle: int
    wide_to_narrow_words_per_cycle: int
    mesh_words_per_cycle: int
    result_words_per_cycle: int
    result_queue_cycles: int
    result_cycles: int
    drain_cycles: int
    row_write_cycles: int
    scalar_bundle_cycles: int
    ring_fifo_rows: int
    outfeed_rows: int
    ring_room_at_once: int
    mesh_fifo_words: int
    tile_queue: int
    unit_queue: int
    scalar_queue: int
    instruction_start: int
    scalar_unit_start: int
    host_fifo_bytes: int
    link_word_bytes: int
    reads_apart: int
    read_cycles: int
    write_burst_bytes: int
    write_cycles: int
    write_gap_cycles: int
    interrupt_cycles: int
    link_in_time: int
    link_out_time: int
    link_on_request: int


class Effect(Record):
    """What a station adds to a counter at the end of the cycle, or loads into it."""

    counter: int
    amount: int
    loads: int


FLAG_CYCLES = 1024
"""Results of a tile that flag 0 counts and that are on their way to narrow memory, at most."""

MOST_AHEAD = FLAG_CYCLES // 2
"""The same where the tensor unit ends segments ahead of time; one output or two may come on top."""

MAX_EFFECTS = 1 << 14
"""More than all stations together can have in a cycle."""


class Step(Record):
    """What the scalar core hands over (``state.Handed``) after ``gap`` bundles of its own, with
    one of ``length`` bundles. ``target`` of a chunk is its number.
    """

    kind: int
    gap: int
    length: int
    instruction: int
    row: int
    target: int
    base: int
    address: np.uint64
    size: int


class Transfer(Record):
    """A transfer on the host link. ``number``: of a chunk or an interrupt, for a fence the
    bytes that must have been delivered; ``issued``, ``start`` and ``end`` are cycles (-1: not).
    ``reachable``: bytes of an output before the first that no buffer is for; ``address``: its
    device address, modulo ``BURST_BOUNDARY``.
    """

    kind: int
    size: int
    number: int
    reachable: int
    address: int
    issued: int
    start: int
    end: int


PARAMETERS, ACTIVATIONS, INSTRUCTIONS, HOST_FENCE, OUTPUT, INTERRUPT = range(6)
"""Kinds of transfers; the first two are the numbers of their FIFOs."""


BURST_BOUNDARY = 4096
"""Bytes: no burst crosses a multiple of it (AMBA AXI A3.4.1)."""


class Write(Record):
    """A burst of output whose answer has not come: its ``size``, the cycle ``due`` in which the
    answer comes, and its ``transfer``, of which ``sent`` bytes have left with it."""

    size: int
    due: int
    transfer: int
    sent: int


class Run(Record):
    """A run of a counter (``rates``)."""

    first: int
    last: int
    rate: int


class Span(Record):
    """One execution of an instruction: cycles ``start`` to ``end`` - 1 on station ``station``.

    ``usage`` is how the station spent its cycles, by cause, up to ``end``.
    """

    station: Int32
    instruction: Int32
    start: int
    end: int
    usage: Annotated[Numbers, stations.CAUSES]


class Sides(Record):
    """The sides of the double buffer between two units of a tile (``sync.DoubleBuffered``)."""

    wide_write_second: int
    ring_read_second: int


class Machine(NamedTuple):
    """All arrays of a run.

    ``usage`` is how each station has spent its cycles, by cause, and ``usage_before`` the same as
    it took its instruction; ``by_instruction`` is how instructions that have ended spent theirs.
    ``flag_cycles`` holds, for each tile, the cycles in which results that add to flag 0 are
    written; ``reserved`` the rows sent to each ring FIFO and the bytes sent to each stream.
    ``stretches`` are those of the program's plan. ``steps`` is the present block of the core's
    trace; ``sides`` is indexed by tile,
    ``tile_queue`` by tile and place, ``unit_queue`` by station and place. ``writes`` are bursts of
    output under way, used in turn.
    """

    clock: Records[Clock]
    rates: Records[Rates]
    stations: Records[Station]
    turns: Turns
    counters: Numbers
    runs: Records[Run]
    first_waiter: Numbers
    effects: Records[Effect]
    causes: NDArray[np.int64]
    usage: NDArray[np.int64]
    usage_before: NDArray[np.int64]
    by_instruction: NDArray[np.int64]
    executions: NDArray[np.int64]
    tile_queue: Records[Records[QueueEntry]]
    unit_queue: Records[Records[QueueEntry]]
    sides: Records[Sides]
    reserved: NDArray[np.int64]
    flag_cycles: NDArray[np.int64]
    stretches: Stretches
    steps: Records[Step]
    inbound: Records[Transfer]
    outbound: Records[Transfer]
    writes: Records[Write]
    spans: Records[Span]
