"""The order in which the units of the chip run: each as far as its flags and FIFOs let it.

There is no clock here. Scalar core, tiles and buffers run until they block; only when none of them
can go on does the ring bus send one row. The result depends on the encoded flags, tokens and fences
alone; time is the business of the timing model.
"""

from __future__ import annotations

from darwinn_sim import chip
from darwinn_sim.isa.codes import ScalarUnit, TileFlag, TileUnit
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.kernel import clocks, holds, numbering, order, state, traversal
from darwinn_sim.kernel.compiled import entry, inner
from darwinn_sim.kernel.state import Handover
from darwinn_sim.kernel.structure import Records
from darwinn_sim.units import (
    input_pop,
    mesh_bus,
    narrow_to_wide,
    observation,
    ring_bus,
    scalar_core,
    scalar_fence,
    scalar_notes,
    tensor_unit,
    tile_fence,
    wide_to_narrow,
)
from darwinn_sim.units.observation import Seen
from darwinn_sim.units.tables import Tables

# The scalar core stands still, but the rest of the chip may go on.
SETTLES = (scalar_core.BLOCKED, scalar_core.HALTED, scalar_core.STOPPED)

_TILE_FENCE = BY_NAME["TileFence"].opcode


@entry
def run(core: state.Core, tiles: Records[state.Tile], tables: Tables, seen: Seen) -> int:
    """Run until the chip needs the host or can go no further; a reason of ``scalar_core``."""
    while True:
        if observation.has_stopped(seen):
            return scalar_core.STOPPED
        reason = run_core(core, tiles, tables, seen)
        if reason not in SETTLES:
            return reason
        steps = core.steps
        moved = _settle(core, tiles, tables, seen)
        if core.fault:
            return scalar_core.FAULT
        if observation.has_stopped(seen):
            return scalar_core.STOPPED
        if core.work >= core.work_limit:
            return scalar_core.SPENT
        if observation.is_full(seen):
            # A tensor unit may stand still for lack of room: no row may pass it meanwhile.
            return scalar_core.TAP_FULL
        if not moved:
            moved = _send_one_row(core, tiles, tables)
            if core.fault:
                return scalar_core.FAULT
        if not moved and core.steps == steps:
            return reason


@inner
def run_core(core: state.Core, tiles: Records[state.Tile], tables: Tables, seen: Seen) -> int:
    """Run the scalar core until something stops it, or what it hands over cannot be taken."""
    while True:
        reason = scalar_core.run(core, tables, seen.watch[0].stop_pc)
        if reason == scalar_core.HANDS_OVER:
            if not _take(core, tiles, tables):
                return scalar_core.BLOCKED
            reason = scalar_core.pass_on(core, tables)
        scalar_notes.take(seen, core)
        if reason != scalar_core.NEXT:
            return reason


@inner
def _take(core: state.Core, tiles: Records[state.Tile], tables: Tables) -> bool:
    """Take what the scalar core hands over; False if that has to wait."""
    handed = core.handed
    if handed.kind == Handover.DISPATCH:
        return _dispatch_to_tiles(core, tiles, handed)
    if handed.kind == Handover.UNIT:
        return _queue(core, handed)
    if handed.kind == Handover.FENCE:
        return scalar_fence.reached(core, tiles, tables.scalar_fence[handed.row])
    if handed.kind == Handover.PUSH:
        if core.output.length + 4 > chip.HOST_FIFO_BYTES:
            return False
        order.goes_on(core, clocks.CORE, handed.instruction)
        numbering.pushes(core, tables.scalar[handed.row].store_register)
        ring_bus.push_output(
            core, handed.word, state.bytes_of(handed.written), core.pc, clocks.CORE
        )
    return True


@inner
def _dispatch_to_tiles(core: state.Core, tiles: Records[state.Tile], handed: state.Handed) -> bool:
    """Append a tile instruction to the queues of its tiles; False if one of them is full."""
    for number in range(chip.TILES):
        if (handed.target >> number) & 1 and tiles[number].queue_length == chip.TILE_QUEUE:
            return False
    for number in range(chip.TILES):
        if (handed.target >> number) & 1:
            tile = tiles[number]
            slot = (tile.queue_head + tile.queue_length) % chip.TILE_QUEUE
            order.puts(core, clocks.CORE, clocks.tile_queue(number, slot))
            entry = tile.queue[slot]
            entry.instruction = handed.instruction
            entry.base = handed.base
            tile.queue_length += 1
            holds.free(tile, holds.DISPATCHER)
            tile.awake = 1
    return True


@inner
def _queue(core: state.Core, handed: state.Handed) -> bool:
    """Append an instruction to the queue of a unit beside the core; False if that is full."""
    unit = core.units[handed.target]
    if unit.queue_length == chip.UNIT_QUEUE:
        return False
    slot = (unit.queue_head + unit.queue_length) % chip.UNIT_QUEUE
    order.issues(core, handed.target, slot, handed.instruction)
    unit.queue[slot] = handed.row
    unit.queue_length += 1
    return True


@inner
def _settle(core: state.Core, tiles: Records[state.Tile], tables: Tables, seen: Seen) -> bool:
    """Run everything but the ring until nothing moves; True if anything has moved."""
    moved_at_all = False
    moved = True
    while moved and not state.paused(core):
        moved = False
        number = _first_awake(tiles, 0)
        while number < chip.TILES:
            moved |= _advance_tile(core, tiles, number, tables, seen)
            number = _first_awake(tiles, number + 1)
        moved |= _advance_buffers(core, tiles, tables)
        moved_at_all |= moved
    return moved_at_all


@inner
def _first_awake(tiles: Records[state.Tile], first: int) -> int:
    """The first tile that is awake, from one on; as many as there are if none is."""
    for number in range(first, chip.TILES):
        if tiles[number].awake:
            return number
    return chip.TILES


@inner
def _advance_buffers(core: state.Core, tiles: Records[state.Tile], tables: Tables) -> bool:
    moved = False
    for which in (ScalarUnit.PARAMETER_POP, ScalarUnit.AV_POP):
        moved |= advance_pop(core, which, tables)
    moved |= advance_infeed(core, tiles, tables, False)
    moved |= advance_outfeed(core, tables)
    return moved


@inner
def advance_pop(core: state.Core, which: int, tables: Tables) -> bool:
    """Let a unit that takes the host's input go on; True if it moved."""
    unit = core.units[which]
    if _begin_scalar_unit(core, which):
        traversal.start(unit.first, tables.pop[unit.current].buffer)
    if unit.current == state.IDLE:
        return False
    return input_pop.advance(core, unit, tables.pop[unit.current])


@inner
def advance_outfeed(core: state.Core, tables: Tables) -> bool:
    """Let the outfeed take rows that have arrived; True if it moved."""
    unit = core.units[ScalarUnit.RING_OUTFEED]
    if _begin_scalar_unit(core, ScalarUnit.RING_OUTFEED):
        traversal.start(unit.first, tables.outfeed[unit.current].buffer)
    if unit.current == state.IDLE:
        return False
    return ring_bus.outfeed(core, unit, tables.outfeed[unit.current])


@inner
def advance_infeed(
    core: state.Core, tiles: Records[state.Tile], tables: Tables, may_send: bool
) -> bool:
    """Let the infeed collect a row, and send it if it ``may_send``; True if it moved."""
    unit = core.units[ScalarUnit.RING_INFEED]
    if _begin_scalar_unit(core, ScalarUnit.RING_INFEED):
        traversal.start(unit.first, tables.infeed[unit.current].buffer)
    if unit.current == state.IDLE:
        return False
    return ring_bus.infeed(core, tiles, unit, tables.infeed[unit.current], may_send)


@inner
def _begin_scalar_unit(core: state.Core, which: int) -> bool:
    """Take the next instruction of an idle scalar unit; True if there was one."""
    unit = core.units[which]
    if unit.current != state.IDLE or unit.queue_length == 0:
        return False
    order.begins_issued(core, which, unit.queue_head)
    unit.current = unit.queue[unit.queue_head]
    unit.queue_head = (unit.queue_head + 1) % chip.UNIT_QUEUE
    unit.queue_length -= 1
    unit.waited[:] = 0
    unit.position = 0
    unit.words = 0
    return True


@inner
def _send_one_row(core: state.Core, tiles: Records[state.Tile], tables: Tables) -> bool:
    """Let one sender use the ring: the infeed first, then the tiles in order."""
    if advance_infeed(core, tiles, tables, True):
        return True
    for number in range(chip.TILES):
        sent = produce_row(core, tiles, number, tables)
        if sent:
            return True
    return False


@inner
def produce_row(core: state.Core, tiles: Records[state.Tile], number: int, tables: Tables) -> bool:
    """Let the ring producer of a tile send a row; True if it did."""
    unit = tiles[number].units[TileUnit.RING_PRODUCER]
    if unit.current == state.IDLE:
        return False
    row = tables.row[unit.current]
    return ring_bus.produce(core, tiles, number, unit, tables.ring_producer[row])


@inner
def _advance_tile(
    core: state.Core,
    tiles: Records[state.Tile],
    number: int,
    tables: Tables,
    seen: Seen,
) -> bool:
    """Run the units of one tile until none of them can go on; True if anything has moved."""
    tile = tiles[number]
    moved_at_all = False
    end = chip.TILE_UNITS
    while tile.awake and not state.paused(core):
        tile.awake = 0
        moved = dispatch(core, tile, tables)
        if moved:
            end = chip.TILE_UNITS
        which, last = 0, 0
        while which < end:
            if advance_unit(core, tiles, number, which, tables, seen):
                moved, last, end = True, which + 1, chip.TILE_UNITS
            which += 1
        # Units behind the last that has moved have been asked since.
        end = last
        if moved or state.paused(core):
            tile.awake = 1
        moved_at_all |= moved
    return moved_at_all


@inner
def dispatch(core: state.Core, tile: state.Tile, tables: Tables) -> bool:
    """Move instructions from the tile's queue to its units, in order, up to a fence that waits."""
    moved = False
    if not holds.is_free(tile, holds.DISPATCHER):
        return moved
    thread = clocks.dispatcher(tile.number)
    while tile.queue_length > 0:
        entry = tile.queue[tile.queue_head]
        instruction = entry.instruction
        if tables.opcode[instruction] == _TILE_FENCE:
            if not tile_fence.reached(tile, tables.tile_fence[tables.row[instruction]]):
                break
            order.takes(core, thread, clocks.tile_queue(tile.number, tile.queue_head))
            order.begins(core, thread, instruction)
            tile_fence.orders(core, tile.number, tables.tile_fence[tables.row[instruction]])
        else:
            which = tables.unit[instruction]
            unit = tile.units[which]
            if unit.queue_length == chip.UNIT_QUEUE:
                break
            place = (unit.queue_head + unit.queue_length) % chip.UNIT_QUEUE
            order.takes(core, thread, clocks.tile_queue(tile.number, tile.queue_head))
            order.puts(core, thread, clocks.unit_queue(tile.number, which, place))
            slot = unit.queue[place]
            slot.instruction = instruction
            slot.base = entry.base
            unit.queue_length += 1
            holds.free_unit(tile, which)
        tile.queue_head = (tile.queue_head + 1) % chip.TILE_QUEUE
        tile.queue_length -= 1
        core.work += 1
        moved = True
    holds.hold(tile, holds.DISPATCHER)
    return moved


@inner
def advance_unit(
    core: state.Core,
    tiles: Records[state.Tile],
    number: int,
    which: int,
    tables: Tables,
    seen: Seen,
) -> bool:
    """Let a unit of a tile go on, with its next instruction if it is idle; True if it moved."""
    tile = tiles[number]
    if not holds.may_go_on(tile, which):
        return False
    unit = tile.units[which]
    begins = unit.current == state.IDLE
    if begins:
        slot = unit.queue_head
        if not state.next_instruction(unit):
            holds.hold_unit(tile, which)
            return False
        holds.free_unit(tile, which)
        _tell_beginning(core, number, which, slot, unit.current)
        _start(tile, unit, which, tables)
    moved = _execute(core, tiles, number, unit, which, tables, seen)
    if begins or unit.current == state.IDLE:
        holds.free(tile, holds.DISPATCHER)
    return moved or begins


@inner
def _tell_beginning(core: state.Core, number: int, which: int, slot: int, instruction: int) -> None:
    """A unit of a tile has taken an instruction from its queue; a mesh unit has two sides."""
    place = clocks.unit_queue(number, which, slot)
    order.takes(core, clocks.unit(number, which), place)
    order.begins(core, clocks.unit(number, which), instruction)
    if which >= TileUnit.MESH_SOUTH:
        receiver = clocks.receiver(number, which - TileUnit.MESH_SOUTH)
        order.takes(core, receiver, place)
        order.shares_sides(core, clocks.unit(number, which), receiver)
        order.begins(core, receiver, instruction)


@inner
def _start(tile: state.Tile, unit: state.Unit, which: int, tables: Tables) -> None:
    row = tables.row[unit.current]
    if which == TileUnit.RING_PRODUCER:
        ring_bus.begin_producer(unit, tables.ring_producer[row], tile)
    elif which == TileUnit.RING_CONSUMER_A or which == TileUnit.RING_CONSUMER_B:
        ring_bus.begin_consumer(unit, tables.ring_consumer[row])
    elif which == TileUnit.NARROW_TO_WIDE:
        narrow_to_wide.begin(unit, tables.narrow_to_wide[row], tile)
    elif which == TileUnit.WIDE_TO_NARROW:
        blocks = tile.flags[TileFlag.WIDE_TO_SCALING]
        wide_to_narrow.begin(unit, tables.wide_to_narrow[row], blocks)
    elif which != TileUnit.TENSOR:
        mesh_bus.start(unit, tables.mesh[row])


@inner
def _execute(
    core: state.Core,
    tiles: Records[state.Tile],
    number: int,
    unit: state.Unit,
    which: int,
    tables: Tables,
    seen: Seen,
) -> bool:
    tile = tiles[number]
    row = tables.row[unit.current]
    if which == TileUnit.TENSOR:
        if tables.opcode[unit.current] == tensor_unit.FUNCTION_TABLE:
            tensor_unit.load_table(core, tile, tables.function_table[row])
            unit.current = state.IDLE
            return True
        return tensor_unit.advance(
            core, tile, unit, tables.tensor[row], tables.tensor_plan, row, seen
        )
    if which == TileUnit.RING_PRODUCER:
        # It goes on where nothing else does: see ``produce_row``.
        holds.hold(tile, which)
        return False
    if which == TileUnit.RING_CONSUMER_A or which == TileUnit.RING_CONSUMER_B:
        return ring_bus.consume(core, tile, unit, tables.ring_consumer[row])
    if which == TileUnit.NARROW_TO_WIDE:
        return narrow_to_wide.advance(core, tile, unit, tables.narrow_to_wide[row])
    if which == TileUnit.WIDE_TO_NARROW:
        return wide_to_narrow.advance(core, tile, unit, tables.wide_to_narrow[row])
    return mesh_bus.advance(core, tiles, number, unit, tables.mesh[row])
