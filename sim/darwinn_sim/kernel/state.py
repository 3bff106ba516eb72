"""What the chip holds: memories, flags, queues and the progress of every unit, as NumPy records.

Kernels see one ``Tile`` record per tile and one ``Core`` record for the scalar core, its units and
the host's FIFOs. Beside each memory stands a shadow of the same shape, with a 1 in each byte whose
value follows from what has been written: a copy carries it along, a unit that computes marks what
it makes of unwritten bytes, and strict mode asks where it matters: in an address, a branch, a
descriptor, an output. In the scalar core, which takes words apart, the shadow has a 1 for each bit.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import ScalarUnit, TileUnit
from darwinn_sim.kernel import sync, traversal
from darwinn_sim.kernel.compiled import copy, inner
from darwinn_sim.kernel.structure import Numbers, Record, Records

UNIT_NAMES = tuple(unit.meaning for unit in TileUnit)
"""Units of a tile, by their numbers."""

SCALAR_UNIT_NAMES = tuple(unit.meaning for unit in ScalarUnit)
"""Units beside the scalar core, by their numbers. The last, the host output, has no queue."""

QUEUED_SCALAR_UNITS = int(ScalarUnit.DRAIN)

WRITTEN = np.uint32(0x01010101)
"""Shadow of a word all of whose bytes have been written."""

ALL_BITS = np.uint32(0xFFFFFFFF)
"""The same in the scalar core, whose shadows have a 1 for each bit."""

MESH_LINKS = 4
"""Mesh units of a tile; each has two sides."""

NARROW, WIDE, SCALE_BIAS, TABLE, OUTPUT = range(5)
MEMORY_NAMES = (
    "narrow memory",
    "wide memory",
    "scale/bias buffer",
    "function table",
    "output to the host",
)
"""Where an operand was that nothing had written: ``Core.origin_memory``, and its name. Of the
output it is not known any more what it was copied from."""

IDLE = -1
"""``current`` of a unit that executes nothing."""


class Row(Record):
    """A row on the ring bus: ``words`` 32-bit words, each with its shadow."""

    words: int
    data: Annotated[NDArray[np.uint32], chip.ROW_WORDS]
    written: Annotated[NDArray[np.uint32], chip.ROW_WORDS]


class QueueEntry(Record):
    """An instruction on its way to a unit; ``base`` overrides a base address, -1: it does not."""

    instruction: int
    base: int


class Unit(Record):
    """A tile unit: its queue, the instruction it executes, and where that stands. ``first`` and
    ``second`` are the states of the instruction's traversals; ``ready``: the watchers of its next
    element have passed; ``words``: in the row that is gathered, or of results. Stations of the
    event model call these the same, and so both go by the same steps. ``late``: the number of the
    result, from 1 on, that is not in its place yet.
    """

    current: int
    base: int
    queue: Annotated[Records[QueueEntry], chip.UNIT_QUEUE]
    queue_head: int
    queue_length: int
    first: traversal.State
    second: traversal.State
    waited: Annotated[Numbers, sync.MAX_WATCHERS]
    ready: int
    first_done: int
    second_done: int
    position: int
    words: int
    late: int
    row_closed: int
    row: Row
    accumulator: Annotated[NDArray[np.int32], chip.LANES]
    scaled: Annotated[NDArray[np.float32], chip.LANES]
    rounded: Annotated[NDArray[np.uint32], chip.LANES]
    lane_written: Annotated[NDArray[np.uint32], chip.LANES]


class WordFifo(Record):
    """Words on a mesh link, each with its shadow."""

    head: int
    length: int
    data: Annotated[NDArray[np.uint32], chip.MESH_FIFO_WORDS]
    written: Annotated[NDArray[np.uint32], chip.MESH_FIFO_WORDS]


class RowFifo(Record):
    """Rows that have arrived from the ring bus."""

    head: int
    length: int
    rows: Annotated[Records[Row], chip.RING_FIFO_ROWS]


class Tile(Record, align=True):
    """A tile. ``awake``: something has happened that may let one of its units go on; ``held``:
    which of them cannot; of those that wait for a flag, ``obstacles`` have which count, and
    ``waiting`` has who waits for each (``holds``). ``wide_write_second`` and ``ring_read_second``
    keep the side
    of the double buffer that narrow-to-wide and the ring producer share, until a fence resets their
    flags. ``wide_writes`` counts rows of wide memory that units have written: while it stays, all
    are as they were.
    """

    number: int
    narrow: Annotated[NDArray[np.uint32], chip.NARROW_ADDRESS_BYTES // 4]
    wide: Annotated[NDArray[np.uint32], chip.WIDE_ROWS * chip.ROW_WORDS]
    scale_bias: Annotated[NDArray[np.uint32], chip.SCALE_BIAS_WORDS]
    coefficient: Annotated[NDArray[np.float32], chip.TABLE_SEGMENTS * chip.TABLE_COEFFICIENTS]
    lower_bound: Annotated[NDArray[np.float32], chip.TABLE_SEGMENTS - 1]
    narrow_written: Annotated[NDArray[np.uint32], chip.NARROW_ADDRESS_BYTES // 4]
    wide_written: Annotated[NDArray[np.uint32], chip.WIDE_ROWS * chip.ROW_WORDS]
    scale_bias_written: Annotated[NDArray[np.uint32], chip.SCALE_BIAS_WORDS]
    table_written: int
    flags: Annotated[Numbers, chip.TILE_FLAGS]
    fence_count: int
    awake: int
    held: int
    obstacles: Annotated[Numbers, chip.TILE_UNITS + MESH_LINKS]
    waiting: Annotated[Numbers, chip.TILE_FLAGS]
    queue: Annotated[Records[QueueEntry], chip.TILE_QUEUE]
    queue_head: int
    queue_length: int
    units: Annotated[Records[Unit], chip.TILE_UNITS]
    ring: Annotated[Records[RowFifo], 2]
    mesh: Annotated[Records[WordFifo], MESH_LINKS]
    wide_write_second: int
    ring_read_second: int
    wide_writes: int


class ByteFifo(Record):
    """Bytes between host and chip; ``written`` has a 1 for each that follows from written ones."""

    head: int
    length: int
    data: Annotated[NDArray[np.uint8], chip.HOST_FIFO_BYTES]
    written: Annotated[NDArray[np.uint8], chip.HOST_FIFO_BYTES]


class BufferUnit(Record):
    """PopInput (one unit per FIFO), RingInfeed or RingOutfeed."""

    current: int
    queue: Annotated[Numbers, chip.UNIT_QUEUE]
    queue_head: int
    queue_length: int
    first: traversal.State
    waited: Annotated[Numbers, sync.MAX_WATCHERS]
    position: int
    words: int
    row: Row


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


class Handed(Record):
    """An instruction as the scalar core hands it over: a ``Handover``, the instruction with its row
    in its table, and what registers say of it. ``base`` replaces a base address, -1: it does not.
    """

    kind: int
    instruction: int
    row: int
    target: int
    base: int
    address: np.uint64
    size: int
    word: np.uint32
    written: np.uint32


class HardwareLoop(Record):
    """A loop that is being executed: program counters of its body, and passes that are left."""

    start: int
    end: int
    left: int


class Computed(Record):
    """What a slot of a scalar bundle has computed from data: an operation (``scalar_alu``) on words
    of which some bits are written, for a register."""

    operation: int
    register: int
    a: np.uint32
    a_written: np.uint32
    b: np.uint32
    b_written: np.uint32


MAX_LOOP_DEPTH = 16


class Core(Record, align=True):
    """The scalar core with its memory, units and buffers, the FIFOs to the host, and bookkeeping of
    the run. ``handed`` is what the core hands over or has handed over last. ``steps`` counts
    instructions, ``bundles`` those that they stand in, ``work`` the elements that units have moved,
    too; they pause at ``work_limit``. ``origin_*`` name the first operand that nothing had written.
    ``operands`` are the registers as they were before the present bundle; if it is ``noting`` that,
    as many slots of the last one have ``computed`` from data what ``results`` say.
    ``output_pending``: bytes have left the FIFO but not yet reached the host. ``input[0]`` is the
    parameter stream, ``input[1]`` the activation stream. ``pc`` counts bundles through all chunks
    of the executable. A run for ``any_input`` computes random functions of data
    (``units.any_function``): what is computed counts as unwritten, and its use as a fault.
    """

    registers: Annotated[NDArray[np.uint32], chip.SCALAR_REGISTERS]
    registers_written: Annotated[NDArray[np.uint32], chip.SCALAR_REGISTERS]
    operands: Annotated[NDArray[np.uint32], chip.SCALAR_REGISTERS]
    operands_written: Annotated[NDArray[np.uint32], chip.SCALAR_REGISTERS]
    noting: int
    computed: int
    results: Annotated[Records[Computed], 2]
    predicates: Annotated[Numbers, chip.PREDICATES]
    predicates_written: Annotated[Numbers, chip.PREDICATES]
    memory: Annotated[NDArray[np.uint32], chip.SCALAR_MEMORY_WORDS]
    memory_written: Annotated[NDArray[np.uint32], chip.SCALAR_MEMORY_WORDS]
    descriptor: Annotated[NDArray[np.uint32], 4]
    pc: int
    end_pc: int
    halted: int
    handed: Handed
    loops: Annotated[Records[HardwareLoop], MAX_LOOP_DEPTH]
    loop_depth: int
    flags: Annotated[Numbers, chip.SCALAR_FLAGS]
    units: Annotated[Records[BufferUnit], QUEUED_SCALAR_UNITS]
    activations: Annotated[NDArray[np.uint8], chip.ACTIVATION_UNITS * chip.ACTIVATION_UNIT_BYTES]
    parameters: Annotated[NDArray[np.uint8], chip.PARAMETER_UNITS * chip.PARAMETER_UNIT_BYTES]
    activations_written: Annotated[
        NDArray[np.uint8], chip.ACTIVATION_UNITS * chip.ACTIVATION_UNIT_BYTES
    ]
    parameters_written: Annotated[
        NDArray[np.uint8], chip.PARAMETER_UNITS * chip.PARAMETER_UNIT_BYTES
    ]
    input: Annotated[Records[ByteFifo], 2]
    output: ByteFifo
    output_pending: int
    ring: RowFifo
    steps: int
    bundles: int
    work: int
    work_limit: int
    strict: int
    any_input: int
    random: np.uint64
    fault: int
    fault_pc: int
    fault_tile: int
    fault_address: int
    uninitialised: int
    origin_pc: int
    origin_tile: int
    origin_memory: int
    origin_address: int
    iterations: int
    rows_sent: int


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


def new_tiles() -> Records[Tile]:
    """The tiles after power-up: zeroed, marked as never written, all units idle."""
    tiles = Tile.zeros(chip.TILES)
    tiles["number"] = np.arange(chip.TILES)
    tiles["units"]["current"] = IDLE
    return tiles


def new_core() -> Records[Core]:
    """The scalar core after power-up: an array of one ``Core``."""
    core = Core.zeros(1)
    power_up(core)
    return core


def power_up(core: Records[Core]) -> None:
    """Give a zeroed scalar core what is not 0 after power-up."""
    core["units"]["current"] = IDLE
    # No program relies on what a predicate is after power-up; none is known to be a fault.
    core["predicates_written"] = 1


@inner
def fail(core: Core, fault: int, pc: int, tile: int, address: int) -> None:
    """Record the first fault of the run; kernels stop at the next opportunity."""
    if core.fault == NO_FAULT:
        core.fault = fault
        core.fault_pc = pc
        core.fault_tile = tile
        core.fault_address = address


@inner
def uninitialised(core: Core, fault_pc: int, tile: int, address: int) -> None:
    """Count a use of an element that nothing has written; in strict mode it is a fault, and in a
    run for any input."""
    core.uninitialised += 1
    if core.strict or core.any_input:
        fail(core, FAULT_UNINITIALISED, fault_pc, tile, address)


@inner
def originates(core: Core, pc: int, tile: int, memory: int, address: int) -> None:
    """Remember the first operand that nothing has written: where to look for the cause."""
    if core.origin_pc < 0:
        core.origin_pc = pc
        core.origin_tile = tile
        core.origin_memory = memory
        core.origin_address = address


@inner
def bits_of(written: np.uint32) -> np.uint32:
    """Shadow by bits of a shadow by bytes: what is not 0 is written."""
    bits = np.uint32(0)
    for k in range(4):
        if (written >> np.uint32(8 * k)) & np.uint32(0xFF) != np.uint32(0):
            bits |= np.uint32(0xFF) << np.uint32(8 * k)
    return bits


@inner
def bytes_of(bits: np.uint32) -> np.uint32:
    """Shadow by bytes of a shadow by bits: a byte is written if all its bits are."""
    written = np.uint32(0)
    for k in range(4):
        if (bits >> np.uint32(8 * k)) & np.uint32(0xFF) == np.uint32(0xFF):
            written |= np.uint32(1) << np.uint32(8 * k)
    return written


@inner
def paused(core: Core) -> bool:
    """True if units must stop where they are.

    There is a fault, or the run's share of work is used up.
    """
    return bool(core.fault != NO_FAULT or core.work >= core.work_limit)


@inner
def stand_still(core: Core) -> None:
    """Let nothing move until there is work to do again."""
    core.work_limit = core.work


@inner
def next_instruction(unit: Unit) -> bool:
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
    unit.late = 0
    unit.row_closed = 0
    return True


@inner
def idle(unit: Unit | BufferUnit) -> bool:
    """True if a unit has neither an instruction nor a queued one."""
    return unit.current == IDLE and unit.queue_length == 0


@inner
def push_row(fifo: RowFifo, row: Row) -> None:
    """Append a row to a ring FIFO that has room."""
    slot = fifo.rows[(fifo.head + fifo.length) % chip.RING_FIFO_ROWS]
    slot.words = row.words
    copy(slot.data, 0, row.data, 0, row.words)
    copy(slot.written, 0, row.written, 0, row.words)
    fifo.length += 1


@inner
def pop_row(fifo: RowFifo) -> None:
    """Remove the oldest row of a ring FIFO."""
    fifo.head = (fifo.head + 1) % chip.RING_FIFO_ROWS
    fifo.length -= 1
