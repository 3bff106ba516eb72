"""Ring bus: rows from tiles and from the scalar core's buffers to the tiles and to the outfeed.

The ring is slower than everything that it feeds: a row is sent only when no other unit can go on.
The chip relies on that order, since the guards of ring consumers allow a row to land before
wide-to-narrow has finished the last one (docs/chip-facts.md, "Ring bus").
"""

from __future__ import annotations

import numpy as np

from darwinn_sim import chip
from darwinn_sim.isa.codes import InfeedSource, ScalarFlag, ScalarUnit, TileFlag, TileUnit
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.kernel import clocks, holds, numbering, order, state, sync, traversal
from darwinn_sim.kernel.compiled import copy, inner
from darwinn_sim.kernel.instructions import RingConsumer, RingInfeed, RingOutfeed, RingProducer
from darwinn_sim.kernel.structure import Records
from darwinn_sim.units import memories

OUTFEED_TARGET = chip.TILES
"""Bit of a target set that stands for the scalar core's outfeed."""

_ROW_WORK = 8
"""Work that a row counts for beside its words: whatever else may move is looked at before it."""

_CONSUMER_A = BY_NAME["RingConsumerA"].opcode

_INFEED, _OUTFEED = (
    clocks.FIRST_SCALAR_UNIT + 16 * which
    for which in (ScalarUnit.RING_INFEED, ScalarUnit.RING_OUTFEED)
)
INFEED_FLAG = np.array(
    [ScalarFlag.PARAMETER_INFEED, ScalarFlag.AV_INFEED, ScalarFlag.SCALAR_INFEED]
)


@inner
def _has_room(core: state.Core, tiles: Records[state.Tile], channel: int, targets: int) -> bool:
    for number in range(chip.TILES):
        full = tiles[number].ring[channel].length >= chip.RING_FIFO_ROWS
        if (targets >> number) & 1 and full:
            return False
    return not ((targets >> OUTFEED_TARGET) & 1 and core.ring.length >= chip.RING_FIFO_ROWS)


@inner
def _send(
    core: state.Core,
    tiles: Records[state.Tile],
    thread: int,
    channel: int,
    targets: int,
    row: state.Row,
) -> None:
    """Send a row, as thread ``thread``."""
    order.sends_row(core, tiles, thread, channel, targets)
    core.rows_sent += 1
    core.work += row.words + _ROW_WORK
    for number in range(chip.TILES):
        if (targets >> number) & 1:
            fifo = tiles[number].ring[channel]
            slot = (fifo.head + fifo.length) % chip.RING_FIFO_ROWS
            numbering.arrives(core, number, channel, slot, row)
            state.push_row(fifo, row)
            holds.free(tiles[number], TileUnit.RING_CONSUMER_A + channel)
            tiles[number].awake = 1
    if (targets >> OUTFEED_TARGET) & 1:
        slot = (core.ring.head + core.ring.length) % chip.RING_FIFO_ROWS
        numbering.arrives(core, OUTFEED_TARGET, 0, slot, row)
        state.push_row(core.ring, row)


@inner
def _pass_token(
    core: state.Core, tiles: Records[state.Tile], thread: int, channel: int, scalar_flags: int
) -> None:
    """Count a turn on the ring: flag 17 or 18 of every tile; ``scalar_flags`` count it, too."""
    order.passes_token(core, thread, channel, scalar_flags)
    core.work += chip.TILES
    for number in range(chip.TILES):
        holds.grow(tiles[number], TileFlag.RING_PRODUCER_A + channel, 1)
        holds.free(tiles[number], holds.DISPATCHER)
        tiles[number].awake = 1


@inner
def step_producer(unit: sync.TwoSided, parameters: RingProducer) -> int:
    """A row has been sent: the blocks that have ended, for both producers of the instruction."""
    unit.ready = 0
    return traversal.step(unit.first, parameters.wide_read)


@inner
def scalar_tokens(parameters: RingProducer) -> int:
    """Flags of the scalar core (bit f: flag f) that count a turn of a ring producer."""
    flags = 1 << (ScalarFlag.RING_PRODUCER_A + parameters.consumer_b)
    if (parameters.targets >> OUTFEED_TARGET) & 1:
        flags |= 1 << ScalarFlag.RING_PRODUCER_A
    return flags


@inner
def waits_for_watchers(unit: sync.TwoSided) -> bool:
    """The watchers of a consumer's next row have yet to pass."""
    return not unit.ready and traversal.waits_here(unit.first)


@inner
def step_consumer(unit: sync.TwoSided, parameters: RingConsumer) -> int:
    """A row has been written: what flag 14 or 15 grows by."""
    unit.ready = 0
    return sync.produce(parameters.producer, traversal.step(unit.first, parameters.wide_write))


@inner
def closes_row(unit: sync.Walker, parameters: RingInfeed) -> bool:
    """The next unit of a RingInfeed completes a row, or ends the instruction."""
    words = unit.words + unit_words(parameters.fifo)
    return words > parameters.row_words or is_last(unit.first, parameters.buffer)


@inner
def step_infeed(unit: sync.Walker, parameters: RingInfeed, closes: bool) -> int:
    """A unit has been collected, and its row sent if that ``closes``: the blocks that ended."""
    unit.words = 0 if closes else unit.words + unit_words(parameters.fifo)
    return traversal.step(unit.first, parameters.buffer)


@inner
def infeed_increment(parameters: RingInfeed, ended: int) -> int:
    """What the flag of the buffer grows by."""
    return parameters.sync_increment * sync.produce(parameters.producer, ended)


@inner
def units_before_close(unit: sync.Walker, parameters: RingInfeed) -> int:
    """Units of a RingInfeed before the one that completes the row."""
    return (parameters.row_words - unit.words) // unit_words(parameters.fifo)


@inner
def taken_words(parameters: RingOutfeed) -> int:
    """Words that a RingOutfeed takes from a row at a time."""
    return 2 if parameters.to_host else 1


@inner
def step_outfeed(unit: sync.Walker, parameters: RingOutfeed) -> int:
    """A unit of a row has been taken, and ``position`` is behind it: what flag 7 grows by."""
    unit.position += taken_words(parameters)
    return sync.produce(parameters.producer, traversal.step(unit.first, parameters.buffer))


@inner
def units_before_use(unit: sync.Walker, parameters: RingOutfeed) -> int:
    """Units of a row before the one after which a RingOutfeed needs no more of it."""
    return (parameters.row_words - unit.position) // taken_words(parameters)


@inner
def has_used_row(unit: sync.Walker, parameters: RingOutfeed) -> bool:
    """A RingOutfeed needs no more of the row."""
    return bool(unit.position > parameters.row_words or unit.first.done)


@inner
def begin_producer(
    unit: sync.TwoSided, parameters: RingProducer, tile: sync.DoubleBuffered
) -> None:
    """Put a RingProducer instruction at its start."""
    traversal.start(unit.first, parameters.wide_read)
    if unit.base >= 0:
        unit.first.address = unit.base
    if parameters.wide_read.double_offset:
        unit.first.second ^= tile.ring_read_second


@inner
def end_producer(unit: sync.TwoSided, parameters: RingProducer, tile: sync.DoubleBuffered) -> None:
    """Remember the side of the double buffer for the next instruction."""
    if parameters.wide_read.double_offset:
        tile.ring_read_second = unit.first.second ^ parameters.wide_read.double_start


@inner
def produce(
    core: state.Core,
    tiles: Records[state.Tile],
    number: int,
    unit: state.Unit,
    parameters: RingProducer,
) -> bool:
    """Send one row of a RingProducer, if its watchers and the receivers allow; True if sent."""
    tile = tiles[number]
    read = unit.first
    thread = clocks.unit(number, TileUnit.RING_PRODUCER)
    if not unit.ready:
        if not sync.passes(parameters.watchers, unit.waited, tile.flags, read.begins):
            return False
        order.passes(
            core, thread, number, tile.flags, parameters.watchers, unit.waited, read.begins, -1
        )
        unit.ready = 1
    if not _has_room(core, tiles, parameters.consumer_b, parameters.targets):
        return False
    row = traversal.address(read, parameters.wide_read)
    if memories.lacks_row(row):
        state.fail(core, state.FAULT_WIDE_ADDRESS, parameters.pc, number, row)
        return False
    base = row * chip.ROW_WORDS
    order.reads_row(core, thread, clocks.wide(number, row), chip.ROW_WORDS)
    unit.row.words = chip.ROW_WORDS
    copy(unit.row.data, 0, tile.wide, base, chip.ROW_WORDS)
    copy(unit.row.written, 0, tile.wide_written, base, chip.ROW_WORDS)
    numbering.takes_from_wide(core, number, base, unit.row)
    _send(core, tiles, thread, parameters.consumer_b, parameters.targets, unit.row)
    ended = step_producer(unit, parameters)
    sent = sync.produce(parameters.row_producer, ended)
    order.counts(core, thread, clocks.tile_flag(number, TileFlag.RING_BUS_WRITE), sent)
    holds.grow(tile, TileFlag.RING_BUS_WRITE, sent)
    tile.awake = 1
    if sync.produce(parameters.token_producer, ended):
        tokens = scalar_tokens(parameters)
        _pass_token(core, tiles, thread, parameters.consumer_b, tokens)
        order.counts_tokens(core, thread, tokens)
        for flag in range(chip.SCALAR_FLAGS):
            core.flags[flag] += (tokens >> flag) & 1
    if read.done:
        end_producer(unit, parameters, tile)
        unit.current = state.IDLE
        holds.free(tile, TileUnit.RING_PRODUCER)
        holds.free(tile, holds.DISPATCHER)
    return True


@inner
def begin_consumer(unit: sync.TwoSided, parameters: RingConsumer) -> None:
    """Put a RingConsumer instruction at its start."""
    traversal.start(unit.first, parameters.wide_write)
    if unit.base >= 0:
        unit.first.address = unit.base


@inner
def consume(core: state.Core, tile: state.Tile, unit: state.Unit, parameters: RingConsumer) -> bool:
    """Write rows that have arrived until there is none or a watcher blocks; True if any."""
    write = unit.first
    channel = parameters.opcode - _CONSUMER_A
    fifo = tile.ring[channel]
    which = TileUnit.RING_CONSUMER_A + channel
    thread = clocks.unit(tile.number, which)
    flag = TileFlag.RING_BUS_READ_A + channel
    moved = False
    while not write.done:
        if waits_for_watchers(unit):
            obstacle = sync.obstacle(parameters.watchers, unit.waited, tile.flags, write.begins, -1)
            if obstacle:
                holds.wait(tile, which, obstacle)
                return moved
            order.passes(
                core,
                thread,
                tile.number,
                tile.flags,
                parameters.watchers,
                unit.waited,
                write.begins,
                -1,
            )
            unit.ready = 1
        if fifo.length == 0:
            holds.hold(tile, which)
            return moved
        address = traversal.address(write, parameters.wide_write)
        if memories.lacks_row(address):
            state.fail(core, state.FAULT_WIDE_ADDRESS, parameters.pc, tile.number, address)
            return moved
        row = fifo.rows[fifo.head]
        base = address * chip.ROW_WORDS
        order.takes_row(core, thread, tile.number, channel, fifo.head)
        first = clocks.wide(tile.number, address)
        order.writes_row(core, thread, first, row.words, tile.wide, base, row.data)
        tile.wide_writes += 1
        copy(tile.wide, base, row.data, 0, row.words)
        copy(tile.wide_written, base, row.written, 0, row.words)
        numbering.consumes(core, tile.number, channel, fifo.head, base, row)
        state.pop_row(fifo)
        arrived = step_consumer(unit, parameters)
        order.counts(core, thread, clocks.tile_flag(tile.number, flag), arrived)
        holds.grow(tile, flag, arrived)
        moved = True
    unit.current = state.IDLE
    return True


@inner
def infeed(
    core: state.Core,
    tiles: Records[state.Tile],
    unit: state.BufferUnit,
    parameters: RingInfeed,
    may_send: bool,
) -> bool:
    """Collect units of a RingInfeed into a row; send the full row if ``may_send``.

    Returns True if anything moved.
    """
    moved = False
    read = unit.first
    while not read.done:
        closes = closes_row(unit, parameters)
        if closes and not (
            may_send and _has_room(core, tiles, parameters.consumer_b, parameters.targets)
        ):
            return moved
        if not sync.passes(parameters.watchers, unit.waited, core.flags, read.begins):
            return moved
        order.passes(
            core,
            _INFEED,
            chip.TILES,
            core.flags,
            parameters.watchers,
            unit.waited,
            read.begins,
            -1,
        )
        _collect(core, unit, parameters, unit_words(parameters.fifo))
        ended = step_infeed(unit, parameters, closes)
        flag = INFEED_FLAG[parameters.fifo]
        free = infeed_increment(parameters, ended)
        order.counts(core, _INFEED, clocks.scalar_flag(flag), free)
        core.flags[flag] += free
        moved = True
        if closes:
            numbering.sends_infeed(core, unit.row)
            _send(core, tiles, _INFEED, parameters.consumer_b, parameters.targets, unit.row)
            may_send = False
        if sync.produce(parameters.token_producer, ended):
            _pass_token(core, tiles, _INFEED, parameters.consumer_b, 0)
            if not read.done:
                # A tile fence that awaits this very number of tokens sees it before the next one.
                return True
    unit.current = state.IDLE
    return True


@inner
def unit_words(fifo: int) -> int:
    """Words of a unit of the buffer that a RingInfeed reads."""
    if fifo == InfeedSource.PARAMETERS:
        return chip.PARAMETER_UNIT_BYTES // 4
    if fifo == InfeedSource.ACTIVATIONS:
        return chip.ACTIVATION_UNIT_BYTES // 4
    return 1


@inner
def is_last(position: traversal.State, parameters: traversal.Parameters) -> bool:
    """True at the last element of a traversal."""
    if position.prologue_left:
        return False
    for loop in range(parameters.loops):
        if position.index[loop] < traversal.limit_of(position, parameters, loop):
            return False
    return True


@inner
def _collect(core: state.Core, unit: state.BufferUnit, parameters: RingInfeed, words: int) -> None:
    """Append one unit of the buffer to the row."""
    row = unit.row
    address = traversal.address(unit.first, parameters.buffer)
    first = unit.words
    if parameters.fifo == InfeedSource.SCALAR_MEMORY:
        address %= chip.SCALAR_MEMORY_WORDS
        order.reads(core, _INFEED, clocks.SCALAR_BASE + address)
        row.data[first] = core.memory[address]
        row.written[first] = state.bytes_of(core.memory_written[address])
        numbering.collects_scalar(core, row, first, address)
    elif parameters.fifo == InfeedSource.ACTIVATIONS:
        address %= chip.ACTIVATION_UNITS
        order.reads_row(core, _INFEED, clocks.ACTIVATION_BASE + words * address, words)
        source = core.activations.view(np.uint32)
        copy(row.data, first, source, words * address, words)
        copy(row.written, first, core.activations_written.view(np.uint32), words * address, words)
        numbering.collects_activations(core, first, 4 * words * address, words)
    else:
        address %= chip.PARAMETER_UNITS
        order.reads_row(core, _INFEED, clocks.PARAMETER_BASE + words * address, words)
        source = core.parameters.view(np.uint32)
        copy(row.data, first, source, words * address, words)
        copy(row.written, first, core.parameters_written.view(np.uint32), words * address, words)
        numbering.collects_parameters(core, first, words * address, words)
    row.words = first + words


@inner
def outfeed(core: state.Core, unit: state.BufferUnit, parameters: RingOutfeed) -> bool:
    """Take units from the rows that have arrived, to the host or to scalar memory."""
    write = unit.first
    fifo = core.ring
    moved = False
    while not write.done:
        if fifo.length == 0:
            return moved
        if parameters.to_host and core.output.length + 8 > chip.HOST_FIFO_BYTES:
            return moved
        if not sync.passes(parameters.watchers, unit.waited, core.flags, write.begins):
            return moved
        order.passes(
            core,
            _OUTFEED,
            chip.TILES,
            core.flags,
            parameters.watchers,
            unit.waited,
            write.begins,
            -1,
        )
        if unit.position == 0:
            order.takes_row(core, _OUTFEED, chip.TILES, 0, fifo.head)
        row = fifo.rows[fifo.head]
        if parameters.to_host:
            for k in range(2):
                word = unit.position + k
                numbering.feeds_out(core, fifo.head, word)
                push_output(core, row.data[word], row.written[word], parameters.pc, _OUTFEED)
        else:
            address = traversal.address(write, parameters.buffer) % chip.SCALAR_MEMORY_WORDS
            same = core.memory[address] == row.data[unit.position]
            order.writes(core, _OUTFEED, clocks.SCALAR_BASE + address, same)
            core.memory[address] = row.data[unit.position]
            core.memory_written[address] = state.bits_of(row.written[unit.position])
            numbering.feeds_memory(core, fifo.head, unit.position, address)
            order.brings_data(core, address)
        taken = step_outfeed(unit, parameters)
        order.counts(core, _OUTFEED, clocks.scalar_flag(ScalarFlag.RING_OUTFEED), taken)
        core.flags[ScalarFlag.RING_OUTFEED] += taken
        moved = True
        if has_used_row(unit, parameters):
            state.pop_row(fifo)
            unit.position = 0
    unit.current = state.IDLE
    return True


@inner
def push_output(
    core: state.Core, word: np.uint32, written: np.uint32, pc: int, thread: int
) -> None:
    """Append the four bytes of a word to the output FIFO, which has room for them.

    Bytes that follow from unwritten ones are no fault here: the host may have no use for them.
    """
    if written != state.WRITTEN:
        state.originates(core, pc, -1, state.OUTPUT, core.output.length)
    order.writes(core, thread, clocks.OUTPUT_TAIL, False)
    fifo = core.output
    for k in range(4):
        slot = (fifo.head + fifo.length) % chip.HOST_FIFO_BYTES
        fifo.data[slot] = (word >> np.uint32(8 * k)) & np.uint32(0xFF)
        fifo.written[slot] = (written >> np.uint32(8 * k)) & np.uint32(1)
        fifo.length += 1
