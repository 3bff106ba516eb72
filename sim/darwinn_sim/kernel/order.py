"""What units tell the checker of hazards: who does what, and by what that is ordered.

The kernels of the units call these hooks. Where the core has no clocks nothing is compiled of them,
not even a call; where it has (:class:`CheckedCore`), a variant of all kernels is compiled.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import DescriptorTag, InputFifo, ScalarFlag, TileFlag, TileUnit
from darwinn_sim.kernel import clocks, shadow, state, sync, waits
from darwinn_sim.kernel.compiled import compiled, inner
from darwinn_sim.kernel.hooks import hook_of
from darwinn_sim.kernel.structure import Record, Records


class _Checked(Record):
    """What the checker needs, before all else: numba must not take a core with clocks for one
    without, as it would if what they share were in the same places."""

    clocks: clocks.Clocks


class CheckedCore(state.Core, _Checked, align=True):
    """A scalar core beside which clocks stand."""


def new_core() -> Records[state.Core]:
    """As ``state.new_core``, with clocks."""
    core = CheckedCore.zeros(1)
    state.power_up(cast("Records[state.Core]", core))
    core["clocks"]["clock"] = 1
    core["clocks"]["doing"] = -1
    return cast("Records[state.Core]", core)


hook = hook_of("clocks")
"""For a core that has clocks."""


@hook
@inner
def begins(core: CheckedCore, thread: int, instruction: int) -> None:
    """A thread begins an instruction."""
    clocks.begin(core.clocks, thread, instruction)


@hook
@inner
def goes_on(core: CheckedCore, thread: int, instruction: int) -> None:
    """A thread goes on with an instruction, or begins another one."""
    if core.clocks.doing[thread] != core.clocks.origin + instruction:
        clocks.begin(core.clocks, thread, instruction)


@hook
@inner
def puts(core: CheckedCore, thread: int, place: int) -> None:
    """Something is handed on, in a place of a queue or FIFO."""
    _tell_at(core.clocks, thread, place)


@inner
def _tell_at(known: clocks.Clocks, thread: int, place: int) -> None:
    dispatches = thread % 16 == clocks.DISPATCHER
    known.told[place] = (
        clocks.tell_of_stream(known, thread) if dispatches else clocks.tell(known, thread)
    )
    known.told_version[place] = known.version[thread]
    clocks.tick(known, thread)


@hook
@inner
def issues(core: CheckedCore, which: int, slot: int, instruction: int) -> None:
    """The scalar core queues an instruction for a unit beside it."""
    place = clocks.scalar_queue(which, slot)
    core.clocks.issued[place - clocks.SCALAR_QUEUES] = instruction
    _tell_at(core.clocks, clocks.CORE, place)


@hook
@inner
def begins_issued(core: CheckedCore, which: int, slot: int) -> None:
    """A unit beside the core takes an instruction from its queue."""
    known = core.clocks
    thread = clocks.scalar_unit(which)
    place = clocks.scalar_queue(which, slot)
    clocks.learn(known, thread, known.told[place], known.told_version[place])
    clocks.begin(known, thread, known.issued[place - clocks.SCALAR_QUEUES])


@hook
@inner
def takes(core: CheckedCore, thread: int, place: int) -> None:
    """What was handed on is taken."""
    known = core.clocks
    clocks.learn(known, thread, known.told[place], known.told_version[place])


@inner
def learn_all(known: clocks.Clocks, thread: int, other: int) -> None:
    """What another thread has done so far is before what ``thread`` does from now on."""
    epoch = clocks.tell(known, other)
    clocks.learn(known, thread, epoch, known.version[other])
    clocks.tick(known, other)


@hook
@inner
def sends_row(
    core: CheckedCore, tiles: Records[state.Tile], thread: int, channel: int, targets: int
) -> None:
    """A row is sent to tiles, and to the outfeed as if that were a tile behind the last.

    That is one event: who takes the row knows that all others get it before what is sent later.
    """
    known = core.clocks
    for tile in range(chip.TILES + 1):
        if (targets >> tile) & 1:
            rows = clocks.row_fifo(tile, channel)
            at = known.sent[rows] % clocks.WAITING
            if known.sent[rows] >= clocks.WAITING:
                clocks.learn(known, thread, known.free[rows, at], known.free_version[rows, at])
            known.sent[rows] += 1
    for tile in range(chip.TILES + 1):
        if (targets >> tile) & 1:
            word = clocks.RING_BASE + clocks.row_fifo(tile, channel)
            shadow.write(known, thread, word, False)
    epoch = clocks.tell(known, thread)
    for tile in range(chip.TILES + 1):
        if (targets >> tile) & 1:
            fifo = tiles[tile].ring[channel] if tile < chip.TILES else core.ring
            slot = (fifo.head + fifo.length) % chip.RING_FIFO_ROWS
            place = _row_place(tile, channel, slot)
            known.told[place] = epoch
            known.told_version[place] = known.version[thread]
    clocks.tick(known, thread)


@inner
def _row_place(tile: int, channel: int, slot: int) -> int:
    return clocks.ring(tile, channel, slot) if tile < chip.TILES else clocks.outfeed(slot)


@hook
@inner
def takes_row(core: CheckedCore, thread: int, tile: int, channel: int, slot: int) -> None:
    """A row is taken that has waited in a tile, or for the outfeed: there is room for another."""
    known = core.clocks
    place = _row_place(tile, channel, slot)
    clocks.learn(known, thread, known.told[place], known.told_version[place])
    rows = clocks.row_fifo(tile, channel)
    at = known.taken_rows[rows] % clocks.WAITING
    known.free[rows, at] = clocks.tell(known, thread)
    known.free_version[rows, at] = known.version[thread]
    known.taken_rows[rows] += 1
    clocks.tick(known, thread)


@hook
@inner
def counts(core: CheckedCore, thread: int, flag: int, number: int) -> None:
    """A flag grows by a number."""
    count(core.clocks, thread, flag, number)


@inner
def count(known: clocks.Clocks, thread: int, flag: int, number: int) -> None:
    """A flag grows by a number."""
    if number <= 0:
        return
    if thread < clocks.FIRST_CHANNEL or thread % 16 != 15:
        waits.counts(known, thread, flag, number)
    record = known.flags[flag]
    if not waits.counts_turns(flag) and not clocks.is_before(known, record.last_load, thread):
        word = clocks.FLAG_BASE + flag
        shadow.find(known, clocks.COUNT_AFTER_LOAD, word, record.last_load, thread, False)
    epoch = clocks.tell_of_stream(known, thread)
    version = known.version[thread]
    kept = min(number, clocks.kept(flag))
    record.count += number - kept
    for _ in range(kept):
        record.count += 1
        at = clocks.entry(flag, record.count)
        known.counted[at] = epoch
        known.counted_version[at] = version
    clocks.tick(known, thread)


@inner
def load(known: clocks.Clocks, thread: int, flag: int, value: int) -> None:
    """A fence loads a flag. Programs also load what a flag holds already, while units wait for it:
    nobody sees that, as long as nobody counts it meanwhile."""
    record = known.flags[flag]
    if record.count == 0 and record.value == value:
        record.last_load = clocks.tell(known, thread)
        clocks.tick(known, thread)
        return
    record.value = value
    last: int = known.counted[clocks.entry(flag, record.count)]
    if waits.counts_turns(flag):
        last = record.sender
    if record.count and not clocks.is_before(known, last, thread):
        word = clocks.FLAG_BASE + flag
        shadow.find(known, clocks.LOAD_AFTER_COUNT, word, last, thread, False)
    shadow.write(known, thread, clocks.FLAG_BASE + flag, False)
    waits.loads(known, thread, flag)
    record.count = 0
    record.loaded = record.last_load = clocks.tell(known, thread)
    record.loaded_version = known.version[thread]
    clocks.tick(known, thread)


@inner
def reach(known: clocks.Clocks, thread: int, flag: int, beyond: int) -> None:
    """A thread has waited for a flag, which by now is ``beyond`` what it has waited for."""
    record = known.flags[flag]
    shadow.read(known, thread, clocks.FLAG_BASE + flag)
    number = record.count - beyond
    waits.awaits(known, thread, flag, number)
    oldest = record.count - clocks.kept(flag) + 1
    known.behind[flag] += 0 < number < oldest
    if number <= 0 or (known.sparing and number < oldest):
        clocks.learn(known, thread, record.loaded, record.loaded_version)
        return
    at = clocks.entry(flag, max(number, oldest))
    clocks.learn(known, thread, known.counted[at], known.counted_version[at])


@hook
@inner
def passes(
    core: CheckedCore,
    thread: int,
    place: int,
    flags: NDArray[np.int64],
    watchers: sync.Watchers,
    waited: NDArray[np.int64],
    begins: int,
    side: int,
) -> None:
    """Watchers have passed (``sync.obstacle``) of the flags of a tile, or of the scalar core."""
    for k in range(watchers.count):
        if (side < 0 or watchers.side[k] == side) and (begins >> watchers.depth[k]) & 1:
            expected = watchers.expected[k] + (waited[k] - 1) * watchers.stride[k]
            flag = watchers.flag[k]
            beyond = (flags[flag] - expected) & sync.FLAG_MASK
            reach(core.clocks, thread, clocks.tile_flag(place, flag), beyond)


@hook
@inner
def passes_token(core: CheckedCore, thread: int, number: int, scalar_flags: int) -> None:
    """A sender counts its turn on a channel of the ring: on all tiles, and on flags of the scalar
    core (bit f: flag f). That is one event: who has seen one of them knows of the others."""
    known = core.clocks
    for flag in range(ScalarFlag.RING_PRODUCER_A, ScalarFlag.RING_PRODUCER_B + 1):
        if (scalar_flags >> flag) & 1:
            waits.counts(known, thread, clocks.scalar_flag(flag), 1)
    for tile in range(chip.TILES):
        flag = clocks.tile_flag(tile, TileFlag.RING_PRODUCER_A + number)
        waits.counts(known, thread, flag, 1)
        known.flags[flag].sender = clocks.now(known, thread)
    learn_all(known, clocks.channel(number), thread)
    for tile in range(chip.TILES):
        flag = clocks.tile_flag(tile, TileFlag.RING_PRODUCER_A + number)
        record = known.flags[flag]
        for earlier in (record.exact, record.last_load):
            if not clocks.is_before(known, earlier, thread):
                word = clocks.FLAG_BASE + flag
                shadow.find(known, clocks.COUNT_AFTER_LOAD, word, earlier, thread, False)
        count(known, clocks.channel(number), flag, 1)


@hook
@inner
def counts_tokens(core: CheckedCore, thread: int, flags: int) -> None:
    """A ring producer counts its turn on flags of the scalar core (bit f: flag f)."""
    known = core.clocks
    for number in range(2):
        flag = ScalarFlag.RING_PRODUCER_A + number
        if (flags >> flag) & 1:
            learn_all(known, clocks.turns_at_core(number), thread)
            count(known, clocks.turns_at_core(number), clocks.scalar_flag(flag), 1)


@hook
@inner
def shares_sides(core: CheckedCore, sender: int, receiver: int) -> None:
    """Both sides of a mesh unit have ended their instruction before the next one begins."""
    learn_all(core.clocks, sender, receiver)
    learn_all(core.clocks, receiver, sender)


@hook
@inner
def spreads(core: CheckedCore, tile: int, words: int) -> None:
    """Words leave wide-to-narrow."""
    known = core.clocks
    thread = clocks.unit(tile, TileUnit.WIDE_TO_NARROW)
    for _ in range(words):
        known.spread_at[tile, known.spread[tile] % clocks.AHEAD] = known.clock[thread]
        known.spread[tile] += 1


@hook
@inner
def reads(core: CheckedCore, thread: int, word: int) -> None:
    """A thread reads a word."""
    shadow.read(core.clocks, thread, word)


@hook
@inner
def reads_row(core: CheckedCore, thread: int, first: int, count: int) -> None:
    """A thread reads words."""
    shadow.read_row(core.clocks, thread, first, count)


@hook
@inner
def writes(core: CheckedCore, thread: int, word: int, same: bool) -> None:
    """A thread writes a word; ``same``: what it held already."""
    shadow.write(core.clocks, thread, word, same)


@hook
@inner
def writes_row(
    core: CheckedCore,
    thread: int,
    first: int,
    count: int,
    old: NDArray[np.uint32],
    old_first: int,
    new: NDArray[np.uint32],
) -> None:
    """A thread writes words of ``new`` over those of ``old`` from ``old_first`` on."""
    shadow.write_row(core.clocks, thread, first, count, old, old_first, new)


@hook
@inner
def writes_units(core: CheckedCore, thread: int, first: int, count: int) -> None:
    """A thread writes words of which nobody asks what they held."""
    for word in range(first, first + count):
        shadow.write(core.clocks, thread, word, False)


@hook
@inner
def brings_data(core: CheckedCore, address: int) -> None:
    """A word of the tiles has come into scalar memory: for who asks whether all waits end it is
    one that nothing may follow from which decides anything."""
    if core.clocks.sparing:
        core.memory_written[address] = np.uint32(0)


@hook
@inner
def takes_input(core: CheckedCore, thread: int, fifo: int, count: int) -> None:
    """A thread takes bytes of an input stream: the descriptor that brought the last of them has
    been issued."""
    known = core.clocks
    known.bytes_taken[fifo] += count
    for number in range(
        max(known.descriptors[fifo] - clocks.DESCRIPTORS, 0), known.descriptors[fifo]
    ):
        issued = known.inputs[fifo * clocks.DESCRIPTORS + number % clocks.DESCRIPTORS]
        if issued.begin < known.bytes_taken[fifo] <= issued.end:
            clocks.learn(known, thread, issued.epoch, issued.version)
            return


@compiled
def descriptor_issued(core: Any, tag: int, size: int) -> None:
    """The scalar core has issued a descriptor; what it brings is taken behind that."""
    if tag != DescriptorTag.PARAMETERS and tag != DescriptorTag.INPUT:
        return
    fifo = InputFifo.PARAMETERS if tag == DescriptorTag.PARAMETERS else InputFifo.ACTIVATIONS
    known = core.clocks
    number = known.descriptors[fifo] % clocks.DESCRIPTORS
    issued = known.inputs[fifo * clocks.DESCRIPTORS + number]
    known.descriptors[fifo] += 1
    issued.begin = known.bytes_issued[fifo]
    known.bytes_issued[fifo] += size
    issued.end = known.bytes_issued[fifo]
    issued.epoch = clocks.tell(known, clocks.CORE)
    issued.version = known.version[clocks.CORE]
    clocks.tick(known, clocks.CORE)
