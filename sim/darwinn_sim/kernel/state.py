"""What the chip holds: memories, flags, queues and the progress of every unit, as NumPy records.

Kernels see one ``TILE`` record per tile and one ``CORE`` record for the scalar core, its units and
the host's FIFOs. Beside each memory stands a shadow of the same shape, with a 1 in each byte whose
value follows from what has been written: a copy carries it along, a unit that computes marks what
it makes of unwritten bytes, and strict mode asks where it matters: in an address, a branch, a
descriptor, an output. In the scalar core, which takes words apart, the shadow has a 1 for each bit.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import ScalarUnit, TileUnit
from darwinn_sim.kernel import sync, traversal
from darwinn_sim.kernel.compiled import Record, copy, inner

UNIT_NAMES = tuple(unit.meaning for unit in TileUnit)
"""Units of a tile, by their numbers."""

SCALAR_UNIT_NAMES = tuple(unit.meaning for unit in ScalarUnit)
"""Units beside the scalar core, by their numbers. The last, the host output, has no queue."""

QUEUED_SCALAR_UNITS = int(ScalarUnit.DRAIN)

WRITTEN = np.uint32(0x01010101)
"""Shadow of a word all of whose bytes have been written."""

ALL_BITS = np.uint32(0xFFFFFFFF)
"""The same in the scalar core, whose shadows have a 1 for each bit."""

IDLE = -1
"""``current`` of a unit that executes nothing."""

ROW = np.dtype(
    [("words", "i8"), ("data", "u4", (chip.ROW_WORDS,)), ("written", "u4", (chip.ROW_WORDS,))]
)
"""A row on the ring bus: ``words`` 32-bit words, each with its shadow."""

QUEUE_ENTRY = np.dtype([("instruction", "i8"), ("base", "i8")])
"""An instruction on its way to a unit; ``base`` overrides a base address, -1: it does not."""

UNIT = np.dtype(
    [
        ("current", "i8"),
        ("base", "i8"),
        ("queue", QUEUE_ENTRY, (chip.UNIT_QUEUE,)),
        ("queue_head", "i8"),
        ("queue_length", "i8"),
        ("first", traversal.STATE),
        ("second", traversal.STATE),
        ("waited", "i8", (sync.MAX_WATCHERS,)),
        ("ready", "i8"),
        ("first_done", "i8"),
        ("second_done", "i8"),
        ("position", "i8"),
        ("words", "i8"),
        ("row_closed", "i8"),
        ("row", ROW),
        ("accumulator", "i4", (chip.LANES,)),
        ("scaled", "f4", (chip.LANES,)),
        ("rounded", "u4", (chip.LANES,)),
        ("lane_written", "u4", (chip.LANES,)),
    ]
)
"""A tile unit: its queue, the instruction it executes, and where that stands. ``first`` and
``second`` are the states of the instruction's traversals; ``ready``: the watchers of its next
element have passed; ``words``: in the row that is gathered, or of results. Stations of the event
model call these the same, and so both go by the same steps."""

WORD_FIFO = np.dtype(
    [
        ("head", "i8"),
        ("length", "i8"),
        ("data", "u4", (chip.MESH_FIFO_WORDS,)),
        ("written", "u4", (chip.MESH_FIFO_WORDS,)),
    ]
)
ROW_FIFO = np.dtype([("head", "i8"), ("length", "i8"), ("rows", ROW, (chip.RING_FIFO_ROWS,))])

SHOWN_WORDS = 512
SHOWN = np.dtype([("word", "u4"), ("octets", "u4")])
"""A word that an observer has been shown, and which bytes of it (bit k: byte k); 0: no word."""

TILE = np.dtype(
    [
        ("number", "i8"),
        ("narrow", "u4", (chip.NARROW_ADDRESS_BYTES // 4,)),
        ("wide", "u4", (chip.WIDE_ROWS * chip.ROW_WORDS,)),
        ("scale_bias", "u4", (chip.SCALE_BIAS_WORDS,)),
        ("coefficient", "f4", (chip.TABLE_SEGMENTS * chip.TABLE_COEFFICIENTS,)),
        ("lower_bound", "f4", (chip.TABLE_SEGMENTS - 1,)),
        ("narrow_written", "u4", (chip.NARROW_ADDRESS_BYTES // 4,)),
        ("wide_written", "u4", (chip.WIDE_ROWS * chip.ROW_WORDS,)),
        ("scale_bias_written", "u4", (chip.SCALE_BIAS_WORDS,)),
        ("table_written", "i8"),
        ("flags", "i8", (chip.TILE_FLAGS,)),
        ("fence_count", "i8"),
        ("awake", "i8"),
        ("queue", QUEUE_ENTRY, (chip.TILE_QUEUE,)),
        ("queue_head", "i8"),
        ("queue_length", "i8"),
        ("units", UNIT, (chip.TILE_UNITS,)),
        ("ring", ROW_FIFO, (2,)),
        ("mesh", WORD_FIFO, (4,)),
        ("wide_write_second", "i8"),
        ("ring_read_second", "i8"),
        ("shown", SHOWN, (2, SHOWN_WORDS)),
    ],
    align=True,
)
"""A tile. ``awake``: something has happened that may let one of its units go on.
``wide_write_second`` and ``ring_read_second`` keep the side of the double buffer that
narrow-to-wide and the ring producer share, until a fence resets their flags. ``shown``: what an
observer has been shown of narrow and of wide memory (``observation``)."""

BYTE_FIFO = np.dtype(
    [
        ("head", "i8"),
        ("length", "i8"),
        ("data", "u1", (chip.HOST_FIFO_BYTES,)),
        ("written", "u1", (chip.HOST_FIFO_BYTES,)),
    ]
)

SCALAR_UNIT = np.dtype(
    [
        ("current", "i8"),
        ("queue", "i8", (chip.UNIT_QUEUE,)),
        ("queue_head", "i8"),
        ("queue_length", "i8"),
        ("first", traversal.STATE),
        ("waited", "i8", (sync.MAX_WATCHERS,)),
        ("position", "i8"),
        ("words", "i8"),
        ("row", ROW),
    ]
)
"""PopInput (one unit per FIFO), RingInfeed or RingOutfeed."""


class Handover(IntEnum):
    """What the scalar core asks of others with an instruction."""

    NOTHING = 0
    """The instruction concerns the core alone."""
    CHUNK = 1
    """To fetch a chunk of instructions, before its first one."""
    DISPATCH = 2
    """To take an instruction into the queues of the tiles ``target``; ``base`` goes with it."""
    FENCE = 3
    """To wait for units and flags; ``target`` is 1 for what DMA hints call a fence."""
    UNIT = 4
    """To take an instruction into the queue of unit ``target`` beside the core."""
    PUSH = 5
    """To append ``word``, of which bits ``written`` follow from written ones, to the output."""
    DESCRIPTOR = 6
    """To move ``size`` bytes at ``address`` for tag ``target``, or to raise an interrupt."""
    HALT = 7
    """Nothing more of this chunk."""


HANDED = np.dtype(
    [
        ("kind", "i8"),
        ("instruction", "i8"),
        ("row", "i8"),
        ("target", "i8"),
        ("base", "i8"),
        ("address", "u8"),
        ("size", "i8"),
        ("word", "u4"),
        ("written", "u4"),
    ]
)
"""An instruction as the scalar core hands it over: a ``Handover``, the instruction with its row in
its table, and what registers say of it. ``base`` replaces a base address, -1: it does not."""

LOOP = np.dtype([("start", "i8"), ("end", "i8"), ("left", "i8")])
MAX_LOOP_DEPTH = 16

CORE = np.dtype(
    [
        ("registers", "u4", (chip.SCALAR_REGISTERS,)),
        ("registers_written", "u4", (chip.SCALAR_REGISTERS,)),
        ("operands", "u4", (chip.SCALAR_REGISTERS,)),
        ("operands_written", "u4", (chip.SCALAR_REGISTERS,)),
        ("immediate", "u4", (1,)),
        ("predicates", "i8", (chip.PREDICATES,)),
        ("predicates_written", "i8", (chip.PREDICATES,)),
        ("memory", "u4", (chip.SCALAR_MEMORY_WORDS,)),
        ("memory_written", "u4", (chip.SCALAR_MEMORY_WORDS,)),
        ("descriptor", "u4", (4,)),
        ("pc", "i8"),
        ("end_pc", "i8"),
        ("halted", "i8"),
        ("handed", HANDED),
        ("loops", LOOP, (MAX_LOOP_DEPTH,)),
        ("loop_depth", "i8"),
        ("flags", "i8", (chip.SCALAR_FLAGS,)),
        ("units", SCALAR_UNIT, (QUEUED_SCALAR_UNITS,)),
        ("activations", "u1", (chip.ACTIVATION_UNITS * chip.ACTIVATION_UNIT_BYTES,)),
        ("parameters", "u1", (chip.PARAMETER_UNITS * chip.PARAMETER_UNIT_BYTES,)),
        ("activations_written", "u1", (chip.ACTIVATION_UNITS * chip.ACTIVATION_UNIT_BYTES,)),
        ("parameters_written", "u1", (chip.PARAMETER_UNITS * chip.PARAMETER_UNIT_BYTES,)),
        ("input", BYTE_FIFO, (2,)),
        ("output", BYTE_FIFO),
        ("output_pending", "i8"),
        ("ring", ROW_FIFO),
        ("steps", "i8"),
        ("bundles", "i8"),
        ("work", "i8"),
        ("work_limit", "i8"),
        ("stop_pc", "i8"),
        ("strict", "i8"),
        ("random", "u8"),
        ("fault", "i8"),
        ("fault_pc", "i8"),
        ("fault_tile", "i8"),
        ("fault_address", "i8"),
        ("uninitialised", "i8"),
        ("origin_pc", "i8"),
        ("origin_tile", "i8"),
        ("origin_address", "i8"),
        ("iterations", "i8"),
        ("rows_sent", "i8"),
        ("until_first", "i8"),
        ("until_last", "i8"),
        ("until_left", "i8"),
        ("observed_tile", "i8"),
        ("tap_begin", "i8"),
        ("tap_end", "i8"),
        ("tap_length", "i8"),
    ],
    align=True,
)
"""The scalar core with its memory, units and buffers, the FIFOs to the host, and bookkeeping of the
run. ``handed`` is what the core hands over or has handed over last. ``steps`` counts instructions,
``bundles`` those that they stand in, ``work`` the elements that units have moved, too; they pause
at ``work_limit``.
``until_left`` counts the executions of instructions ``until_first`` to ``until_last`` that are
awaited; at 0 the run stops, -1: none are. ``observed_tile`` stands before a segment that
is to be observed. ``origin_*`` name the first operand that
nothing had written. ``operands`` are the registers as they were before the present bundle.
``output_pending``: bytes have left the FIFO but not yet reached the host. ``input[0]`` is the
parameter stream, ``input[1]`` the activation stream. ``pc`` counts bundles through all chunks of
the executable."""

TAP = np.dtype(
    [("instruction", "i4"), ("tile", "i4"), ("address", "i4"), ("word", "u4"), ("count", "i4")]
)
"""One word that a tensor instruction wrote to narrow memory, at a byte address; ``count`` of its
bytes are results."""

(
    NO_FAULT,
    FAULT_NARROW_ADDRESS,
    FAULT_WIDE_ADDRESS,
    FAULT_SCALE_BIAS_ADDRESS,
    FAULT_SCALAR_ADDRESS,
    FAULT_RESULT_COUNT,
    FAULT_WORD_COUNT,
    FAULT_ROW_COUNT,
    FAULT_PROGRAM_COUNTER,
    FAULT_LOOP_DEPTH,
    FAULT_UNINITIALISED,
) = range(11)

FAULT_REASONS = {
    FAULT_NARROW_ADDRESS: ("narrow memory", "address outside the memory"),
    FAULT_WIDE_ADDRESS: ("wide memory", "row outside the memory"),
    FAULT_SCALE_BIAS_ADDRESS: ("scale/bias buffer", "address outside the buffer"),
    FAULT_SCALAR_ADDRESS: ("scalar memory", "address outside the memory"),
    FAULT_RESULT_COUNT: ("tensor unit", "the write traversal ends before or after the results"),
    FAULT_WORD_COUNT: ("wide-to-narrow", "the rows that are read are not those that are written"),
    FAULT_ROW_COUNT: ("narrow-to-wide", "the write traversal ends before or after the rows"),
    FAULT_PROGRAM_COUNTER: ("scalar core", "the program counter leaves the chunk"),
    FAULT_LOOP_DEPTH: ("scalar core", "too many nested hardware loops"),
    FAULT_UNINITIALISED: ("strict mode", "read of memory that nothing has written"),
}


def new_tiles() -> NDArray[np.void]:
    """Sixteen tiles after power-up: zeroed, marked as never written, all units idle."""
    tiles = np.zeros(chip.TILES, TILE)
    tiles["number"] = np.arange(chip.TILES)
    tiles["units"]["current"] = IDLE
    return tiles


def new_core() -> NDArray[np.void]:
    """The scalar core after power-up: an array of one ``CORE``."""
    core = np.zeros(1, CORE)
    core["units"]["current"] = IDLE
    core["stop_pc"] = -1
    # No program relies on what a predicate is after power-up; none is known to be a fault.
    core["predicates_written"] = 1
    core["until_left"] = -1
    return core


@inner
def fail(core: Record, fault: int, pc: int, tile: int, address: int) -> None:
    """Record the first fault of the run; kernels stop at the next opportunity."""
    if core.fault == NO_FAULT:
        core.fault = fault
        core.fault_pc = pc
        core.fault_tile = tile
        core.fault_address = address


@inner
def uninitialised(core: Record, fault_pc: int, tile: int, address: int) -> None:
    """Count a use of an element that nothing has written; in strict mode it is a fault."""
    core.uninitialised += 1
    if core.strict:
        fail(core, FAULT_UNINITIALISED, fault_pc, tile, address)


@inner
def originates(core: Record, pc: int, tile: int, address: int) -> None:
    """Remember the first operand that nothing has written: where to look for the cause."""
    if core.origin_pc < 0:
        core.origin_pc = pc
        core.origin_tile = tile
        core.origin_address = address


@inner
def bits_of(written: np.uint32) -> np.uint32:
    """Shadow by bits of a shadow by bytes."""
    return np.uint32((np.uint64(written) * np.uint64(0xFF)) & np.uint64(0xFFFFFFFF))


@inner
def bytes_of(bits: np.uint32) -> np.uint32:
    """Shadow by bytes of a shadow by bits: a byte is written if all its bits are."""
    written = np.uint32(0)
    for k in range(4):
        if (bits >> np.uint32(8 * k)) & np.uint32(0xFF) == np.uint32(0xFF):
            written |= np.uint32(1) << np.uint32(8 * k)
    return written


@inner
def paused(core: Record) -> bool:
    """True if units must stop where they are.

    There is a fault, the run's share of work is used up, or the awaited layer is complete.
    """
    return bool(core.fault != NO_FAULT or core.work >= core.work_limit or core.until_left == 0)


@inner
def next_instruction(unit: Record) -> bool:
    """Take the next instruction from the queue of an idle tile unit; False if there is none."""
    if unit.queue_length == 0:
        return False
    entry = unit.queue[unit.queue_head]
    unit.current = entry.instruction
    unit.base = entry.base
    unit.queue_head = (unit.queue_head + 1) % chip.UNIT_QUEUE
    unit.queue_length -= 1
    unit.waited[:] = 0
    unit.ready = 0
    unit.first_done = 0
    unit.second_done = 0
    unit.position = 0
    unit.words = 0
    unit.row_closed = 0
    return True


@inner
def idle(unit: Record) -> bool:
    """True if a unit has neither an instruction nor a queued one."""
    return unit.current == IDLE and unit.queue_length == 0  # type: ignore[no-any-return]


@inner
def push_row(fifo: Record, row: Record) -> None:
    """Append a row to a ring FIFO that has room."""
    slot = fifo.rows[(fifo.head + fifo.length) % chip.RING_FIFO_ROWS]
    slot.words = row.words
    copy(slot.data, 0, row.data, 0, row.words)
    copy(slot.written, 0, row.written, 0, row.words)
    fifo.length += 1


@inner
def pop_row(fifo: Record) -> None:
    """Remove the oldest row of a ring FIFO."""
    fifo.head = (fifo.head + 1) % chip.RING_FIFO_ROWS
    fifo.length -= 1
