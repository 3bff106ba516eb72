"""Mesh bus: four links from each tile to its neighbours in a torus (4 x 4 on Beagle).

A mesh instruction has two sides that run side by side: one reads narrow words and sends them to
the neighbour, the other writes what arrives from the opposite neighbour. With a valid immediate the
writing side stores that constant instead; the sending side still sends.
"""

from __future__ import annotations

import numpy as np

from darwinn_sim import chip
from darwinn_sim.isa.codes import TileFlag, TileUnit
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.kernel import clocks, holds, numbering, order, state, sync, traversal
from darwinn_sim.kernel.compiled import compiled, inner
from darwinn_sim.kernel.instructions import Mesh
from darwinn_sim.kernel.structure import Records
from darwinn_sim.units import memories

SOUTH, WEST, NORTH, EAST = range(4)
"""Links, in the order of the opcodes MeshSouth to MeshEast."""

FIRST_OPCODE = BY_NAME["MeshSouth"].opcode

# Flags of each link: what goes south comes from the north.
INBOUND_FLAG = np.array(
    [
        TileFlag.MESH_INBOUND_FROM_NORTH,
        TileFlag.MESH_INBOUND_FROM_EAST,
        TileFlag.MESH_INBOUND_FROM_SOUTH,
        TileFlag.MESH_INBOUND_FROM_WEST,
    ]
)
OUTBOUND_FLAG = np.array(
    [
        TileFlag.MESH_OUTBOUND_FOR_SOUTH,
        TileFlag.MESH_OUTBOUND_FOR_WEST,
        TileFlag.MESH_OUTBOUND_FOR_NORTH,
        TileFlag.MESH_OUTBOUND_FOR_EAST,
    ]
)
_ROW_STEP = np.array([1, 0, -1, 0])
_COLUMN_STEP = np.array([0, -1, 0, 1])


@compiled
def neighbour(tile: int, link: int) -> int:
    """Number of the tile that ``link`` of ``tile`` leads to."""
    row = (tile // chip.GRID_COLUMNS + _ROW_STEP[link]) % chip.GRID_ROWS
    column = (tile % chip.GRID_COLUMNS + _COLUMN_STEP[link]) % chip.GRID_COLUMNS
    return int(row * chip.GRID_COLUMNS + column)


@inner
def sends(parameters: Mesh) -> bool:
    """The instruction has a sending side: its traversal is not off."""
    return not parameters.narrow_read.off


@inner
def receives(parameters: Mesh) -> bool:
    """It has a receiving side, be it for the constant."""
    return bool(not parameters.narrow_write.off or parameters.immediate_valid)


@inner
def step_read(read: traversal.State, parameters: Mesh) -> int:
    """Send a word; what the outbound flag grows by. Watchers of side 0 hold it back."""
    return sync.produce(parameters.read_producer, traversal.step(read, parameters.narrow_read))


@inner
def step_write(write: traversal.State, parameters: Mesh) -> int:
    """Write a word; what the inbound flag grows by. Watchers of side 1 hold it back."""
    return sync.produce(parameters.write_producer, traversal.step(write, parameters.narrow_write))


@inner
def begin_read(read: traversal.State, parameters: Mesh, base: int) -> None:
    """Put the sending side at its start: ``base``, if that is not negative."""
    traversal.start(read, parameters.narrow_read)
    if base >= 0:
        read.address = base


@inner
def start(unit: state.Unit, parameters: Mesh) -> None:
    """Begin an instruction; a side that it does not have is done at once."""
    begin_read(unit.first, parameters, unit.base)
    traversal.start(unit.second, parameters.narrow_write)
    unit.first_done = not sends(parameters)
    unit.second_done = not receives(parameters)


@inner
def advance(
    core: state.Core, tiles: Records[state.Tile], number: int, unit: state.Unit, parameters: Mesh
) -> bool:
    """Send and receive until both sides block or the instruction ends; True if a word moved."""
    tile = tiles[number]
    moved = False
    link = _link(parameters)
    which = TileUnit.MESH_SOUTH + link
    if not unit.first_done and holds.is_free(tile, which):
        moved |= _send(core, tile, tiles[neighbour(number, link)], unit, parameters)
    # After the other side, which may have counted what this one waits for.
    if not unit.second_done and holds.is_free(tile, holds.receiver(which)):
        moved |= _receive(core, tile, tiles[neighbour(number, link ^ 2)], unit, parameters)
    if unit.first_done and unit.second_done:
        unit.current = state.IDLE
        holds.free_unit(tile, which)
        return True
    if unit.first_done:
        holds.hold(tile, which)
    elif unit.second_done:
        holds.hold(tile, holds.receiver(which))
    return moved


@inner
def _link(parameters: Mesh) -> int:
    return parameters.opcode - FIRST_OPCODE


@inner
def _checked(core: state.Core, tile: state.Tile, pc: int, address: int) -> int:
    """A word address; outside of narrow memory: a fault, and 0."""
    if memories.lacks_word(address):
        state.fail(core, state.FAULT_NARROW_ADDRESS, pc, tile.number, 4 * address)
        return 0
    return address


@inner
def _send(
    core: state.Core, tile: state.Tile, target: state.Tile, unit: state.Unit, parameters: Mesh
) -> bool:
    read = unit.first
    link = _link(parameters)
    fifo = target.mesh[link]
    which = TileUnit.MESH_SOUTH + link
    thread = clocks.unit(tile.number, which)
    moved = False
    while not read.done:
        if fifo.length == chip.MESH_FIFO_WORDS:
            holds.hold(tile, which)
            break
        obstacle = sync.obstacle(parameters.watchers, unit.waited, tile.flags, read.begins, 0)
        if obstacle:
            holds.wait(tile, which, obstacle)
            break
        order.passes(
            core, thread, tile.number, tile.flags, parameters.watchers, unit.waited, read.begins, 0
        )
        address = memories.word_address(read, parameters.narrow_read)
        address = _checked(core, tile, parameters.pc, address)
        slot = (fifo.head + fifo.length) % chip.MESH_FIFO_WORDS
        order.reads(core, thread, clocks.narrow(tile.number, address))
        order.puts(core, thread, clocks.mesh(target.number, link, slot))
        fifo.data[slot] = tile.narrow[address]
        fifo.written[slot] = tile.narrow_written[address]
        numbering.sends_word(
            core, tile.number, address, target.number, link, slot, fifo.written[slot]
        )
        fifo.length += 1
        sent = step_read(read, parameters)
        order.counts(core, thread, clocks.tile_flag(tile.number, OUTBOUND_FLAG[link]), sent)
        holds.grow(tile, OUTBOUND_FLAG[link], sent)
        moved = True
    if moved:
        holds.free(target, holds.receiver(which))
        target.awake = 1
    unit.first_done = read.done
    return moved


@inner
def _receive(
    core: state.Core, tile: state.Tile, source: state.Tile, unit: state.Unit, parameters: Mesh
) -> bool:
    write = unit.second
    link = _link(parameters)
    fifo = tile.mesh[link]
    which = TileUnit.MESH_SOUTH + link
    thread = clocks.receiver(tile.number, link)
    moved = False
    while not write.done:
        if not parameters.immediate_valid and fifo.length == 0:
            holds.hold(tile, holds.receiver(which))
            break
        if state.paused(core):
            break
        obstacle = sync.obstacle(parameters.watchers, unit.waited, tile.flags, write.begins, 1)
        if obstacle:
            holds.wait(tile, holds.receiver(which), obstacle)
            break
        order.passes(
            core, thread, tile.number, tile.flags, parameters.watchers, unit.waited, write.begins, 1
        )
        address = memories.word_address(write, parameters.narrow_write)
        address = _checked(core, tile, parameters.pc, address)
        word = clocks.narrow(tile.number, address)
        if parameters.immediate_valid:
            order.writes(core, thread, word, tile.narrow[address] == parameters.immediate)
            tile.narrow[address] = parameters.immediate
            tile.narrow_written[address] = state.WRITTEN
        else:
            order.takes(core, thread, clocks.mesh(tile.number, link, fifo.head))
            order.writes(core, thread, word, tile.narrow[address] == fifo.data[fifo.head])
            tile.narrow[address] = fifo.data[fifo.head]
            tile.narrow_written[address] = fifo.written[fifo.head]
            written = fifo.written[fifo.head]
            numbering.receives_word(core, tile.number, address, link, fifo.head, written)
            fifo.head = (fifo.head + 1) % chip.MESH_FIFO_WORDS
            fifo.length -= 1
        arrived = step_write(write, parameters)
        order.counts(core, thread, clocks.tile_flag(tile.number, INBOUND_FLAG[link]), arrived)
        holds.grow(tile, INBOUND_FLAG[link], arrived)
        core.work += 1
        moved = True
    if moved:
        holds.free(source, which)
        source.awake = 1
    unit.second_done = write.done
    return moved
