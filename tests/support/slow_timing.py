"""Slow event model: every unit a generator that yields once a cycle, written from docs/timing.md.

All of them see flags, queues and FIFOs as they were when the cycle began; what they change is put
off to its end. Only ring and link in are decided within a cycle: the infeed first, then tiles in
order, after rows that may make room at once, and the link's queues in theirs; all other units have
their turns in any order. It takes seconds for thousands of cycles.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from darwinn_sim.kernel.state import Handover
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.timing import ChipDescription, HostLink
from darwinn_sim.timing.trace import blocks
from slow_model.narrow_to_wide import read_target
from slow_model.ring_bus import INFEED_FLAGS, UNIT_BYTES
from slow_model.sync import Watchers, at_least, produce
from slow_model.traversal import Element, walk

Turn = Generator[None, None, None]
Fields = dict[str, Any]

_LINK_UNITS = 65536
_UNITS = 10
_OUTFEED = 16
_INBOUND = (3, 4, 5, 6)
_OUTBOUND = (9, 10, 7, 8)
_MESH_STEP = ((1, 0), (0, -1), (-1, 0), (0, 1))
_QUIET = 100
"""Cycles without any change after which nothing can change any more."""


class Stuck(Exception):
    """Nothing moves, and there is work left."""


@dataclass
class Queue:
    """Instructions for a unit: those that it can see, and counts that fences ask for."""

    items: deque[int] = field(default_factory=deque)
    queued: int = 0
    begun: int = 0
    completed: int = 0


@dataclass
class Tile:
    flags: list[int] = field(default_factory=lambda: [0] * 19)
    fences: int = 0
    queue: Queue = field(default_factory=Queue)
    units: list[Queue] = field(default_factory=lambda: [Queue() for _ in range(_UNITS)])
    mesh: list[list[int]] = field(default_factory=lambda: [[0, 0] for _ in range(4)])
    """Words put into and taken from each mesh FIFO."""
    ring: list[list[int]] = field(default_factory=lambda: [[0, 0, 0] for _ in range(2)])
    """Rows sent to, arrived in and taken from each ring FIFO."""


@dataclass(frozen=True)
class Inbound:
    """What the link brings in: a chunk of the program, or the data of a descriptor.

    ``issued`` descriptors, ``data`` of them for data that comes in, come up to this one, and
    before it ``promised`` bytes go out.
    """

    size: int
    stream: int | None = None
    chunk: int = 0
    issued: int = 0
    data: int = 0
    promised: int = 0


class SlowTiming:
    """One run of a program; ``cycles`` and ``spans`` say how it went."""

    def __init__(
        self,
        program: LoweredProgram,
        chunk_bytes: Sequence[int],
        chip: ChipDescription,
        host: HostLink | None,
        seed: int = 0,
    ) -> None:
        self.program = program
        self.chunk_bytes = chunk_bytes
        self.random = random.Random(seed)
        self.value = {name: int(getattr(chip, name).value) for name in chip.parameters()}
        self.clock = chip.clock.value
        self.host = host
        self.tiles = [Tile() for _ in range(16)]
        self.flags = [0] * 9
        self.units = [Queue() for _ in range(4)]
        self.outfeed_ring = [0, 0, 0]
        self.arrived, self.taken, self.sent = [0, 0], [0, 0], [0, 0]
        self.pushed, self.room_used, self.delivered = 0, 0, 0
        self.answers: deque[tuple[int, int]] = deque()
        self.inputs_issued, self.outputs_issued = 0, 0
        self.loaded, self.halted = 0, 0
        self.issued_in: list[int] = []
        self.ring_free = 0
        self.now = 0
        self.changes: list[Callable[[], None]] = []
        self.fence_loads: list[Callable[[], None]] = []
        self.spans: set[tuple[int, int, int, int]] = set()
        self.last_change = 0
        self.timers: set[int] = set()
        self.scheduled: dict[int, list[list[int]]] = {}
        self.arriving: dict[int, list[list[int]]] = {}
        self.room_in = [0, 0]
        self.in_flight = [[0] * 4 for _ in range(16)]
        self.taken_words = [[0] * 4 for _ in range(16)]
        self.steps = np.concatenate(list(blocks(program)))
        self.queues = (0, 2, 1) if self.value["reads_apart"] else (None,)
        self.fields = [self._fields(k) for k in range(len(program.tables.opcode))]

    def _fields(self, instruction: int) -> Fields:
        chunk, pc = self.program.locate(int(self.program.tables.pc[instruction]))
        decoded = self.program.chunks[chunk]
        (index,) = (decoded.pc == pc).nonzero()[0]
        operation = decoded[int(index)]
        return {"name": operation.instruction.name, **operation.values}

    def later(self, change: Callable[[], None]) -> None:
        self.changes.append(change)

    def add(self, flags: list[int], flag: int, amount: int) -> None:
        if amount:
            self.later(lambda: flags.__setitem__(flag, flags[flag] + amount))

    def count(self, owner: object, name: str, amount: int = 1) -> None:
        self.later(lambda: setattr(owner, name, getattr(owner, name) + amount))

    def run(self) -> None:
        links = [self._link_in(queue) for queue in self.queues]
        senders: list[Turn] = [self._infeed(), *(self._unit(t, 1) for t in range(16))]
        others: list[Turn] = [
            self._core(),
            self._pop(0),
            self._pop(1),
            self._outfeed(),
            self._link_out(),
            *(self._dispatch(t) for t in range(16)),
            *(self._unit(t, u) for t in range(16) for u in range(_UNITS) if u != 1),
        ]
        while self.now - self.last_change < _QUIET or any(t >= self.now for t in self.timers):
            self.random.shuffle(others)
            self._take_answers()
            for turn in (*links, *others, *senders):
                next(turn, None)
            for flags in self.scheduled.pop(self.now, []):
                self.add(flags, 0, 1)
            for fifo in self.arriving.pop(self.now, []):
                self.add(fifo, 1, 1)
            if self.changes or self.fence_loads:
                self.last_change = self.now
            for change in (*self.changes, *self.fence_loads):
                change()
            self.changes.clear()
            self.fence_loads.clear()
            self.now += 1
        if not self._ended():
            raise Stuck

    def _ended(self) -> bool:
        idle = all(
            queue.queued == queue.completed
            for queue in (*self.units, *(unit for tile in self.tiles for unit in tile.units))
        )
        tiles = all(tile.queue.queued == tile.queue.begun for tile in self.tiles)
        return (
            idle
            and tiles
            and self.core_done
            and self.link_out_done
            and self.pushed == self.delivered
            and (self.links_in_done == len(self.queues))
            and self._nothing_is_left()
        )

    def _nothing_is_left(self) -> bool:
        """No FIFO holds what the next program would find there."""
        rows = [self.outfeed_ring, *(fifo for tile in self.tiles for fifo in tile.ring)]
        words = [fifo for tile in self.tiles for fifo in tile.mesh]
        return (
            self.arrived == self.sent
            and all(fifo[1] == fifo[2] for fifo in rows)
            and all(fifo[0] == fifo[1] for fifo in words)
        )

    @property
    def cycles(self) -> int:
        """Up to the end of the last instruction or fence, of the core and the last transfer."""
        ends = (end for _, _, _, end in self.spans)
        return max(self.core_end, self.link_end, self.dispatch_end, max(ends, default=0))

    # The scalar core.

    core_done = link_out_done = False
    links_in_done = 0
    in_free = 0
    core_end = link_end = dispatch_end = 0

    def _sleep(self, cycles: int) -> Turn:
        self.timers.add(self.now + cycles)
        for _ in range(cycles):
            yield

    def _core(self) -> Turn:
        for step in self.steps:
            yield from self._sleep(int(step["gap"]) * self.value["scalar_bundle_cycles"])
            while not self._try_step(step):
                yield
            self.later(lambda: None)
            cycles = int(step["length"]) * self.value["scalar_bundle_cycles"]
            yield from self._sleep(max(self._handovers(step), cycles))
        self.core_done = True
        self.core_end = self.now

    def _handovers(self, step: Any) -> int:
        """A halt is nothing to hand over, a fence behind outputs one to the DMA engine as well."""
        if step["kind"] == Handover.HALT:
            return int(self.value["scalar_bundle_cycles"] > 0)
        orders = step["kind"] == Handover.FENCE and step["target"] > 0
        return 1 + int(orders and self.value["reads_apart"])

    def _try_step(self, step: Any) -> bool:
        kind, target, instruction = int(step["kind"]), int(step["target"]), int(step["instruction"])
        if kind == Handover.CHUNK:
            return self.loaded > target
        if kind == Handover.DISPATCH:
            queues = [self.tiles[t].queue for t in range(16) if target >> t & 1]
            return self._put(queues, "tile_queue", instruction)
        if kind == Handover.FENCE:
            return self._scalar_fence(self.fields[instruction])
        if kind == Handover.UNIT:
            return self._put([self.units[(1, 0, 2, 3)[target]]], "scalar_queue", instruction)
        if kind == Handover.PUSH:
            if self.room_used + 4 - self.delivered > self.value["host_fifo_bytes"]:
                return False
            self._push(4)
        elif kind == Handover.DESCRIPTOR:
            self.issued_in.append(self.now)
            self.count(self, "outputs_issued" if target >= 3 else "inputs_issued")
        elif kind == Handover.HALT:
            self.count(self, "halted")
        return True

    def _put(self, queues: Sequence[Queue], room: str, instruction: int) -> bool:
        """Queue an instruction for all of them, if each has room."""
        if any(queue.queued - queue.begun >= self.value[room] for queue in queues):
            return False
        for queue in queues:
            queue.queued += 1
            self.later(partial(queue.items.append, instruction))
        return True

    def _push(self, size: int) -> None:
        self.room_used += size
        self.count(self, "pushed", size)

    def _scalar_fence(self, fields: Fields) -> bool:
        if not self._fence_is_passed(fields):
            return False
        for t in range(16):
            if fields["reset_tile_fences"] >> t & 1:
                self.fence_loads.append(partial(setattr, self.tiles[t], "fences", 0))
        for flag in range(9):
            if fields["reset_flags"] >> flag & 1:
                self._load(self.flags, flag, fields["reset_value"])
        return True

    def _fence_is_passed(self, fields: Fields) -> bool:
        for t in range(16):
            if fields["tile_fence_valid"] >> t & 1 and (
                self.tiles[t].fences < fields["tile_fence_count"]
            ):
                return False
        for flag in range(9):
            if fields["expected_valid"] >> flag & 1 and not at_least(
                self.flags[flag], fields["expected"][flag]
            ):
                return False
        for bit, unit in ((0, 1), (1, 0), (2, 2), (3, 3), (4, 3)):
            queue = self.units[unit]
            if fields["wait_idle"] >> bit & 1 and queue.completed < queue.queued:
                return False
        return not fields["wait_idle"] >> 4 & 1 or self.delivered >= self.room_used

    def _load(self, flags: list[int], flag: int, value: int) -> None:
        self.fence_loads.append(lambda: flags.__setitem__(flag, value))

    # Tiles.

    def _dispatch(self, number: int) -> Turn:
        tile = self.tiles[number]
        while True:
            while not tile.queue.items:
                yield
            instruction = tile.queue.items[0]
            fields = self.fields[instruction]
            if fields["name"] == "TileFence":
                waited = [tile.units[u] for u in range(_UNITS) if fields["wait_idle"] >> u & 1]
                while any(unit.completed < unit.queued for unit in waited) or (
                    not _tokens_are_counted(tile.flags, fields)
                ):
                    yield
                for flag in range(19):
                    if fields["reset_flags"] >> flag & 1:
                        self._load(tile.flags, flag, fields["reset_value"])
                self.count(tile, "fences", fields["increment"])
            else:
                unit = tile.units[int(self.program.tables.unit[instruction])]
                while not self._put([unit], "unit_queue", instruction):
                    yield
            self.dispatch_end = max(self.dispatch_end, self.now + 1)
            tile.queue.items.popleft()
            self.count(tile.queue, "begun")
            yield

    def _begin(self, queue: Queue) -> Generator[None, None, int]:
        while not queue.items:
            yield
        self.count(queue, "begun")
        return queue.items.popleft()

    def _complete(self, queue: Queue) -> None:
        self.count(queue, "completed")

    def _unit(self, number: int, unit: int) -> Turn:
        queue = self.tiles[number].units[unit]
        while True:
            instruction = yield from self._begin(queue)
            begun = self.now
            fields = self.fields[instruction]
            if fields["name"] != "CoefficientTable":
                start = self.value["instruction_start"]
                # What has nothing to move has ended before its first element would be moved.
                yield from self._sleep(max(0, start - (unit >= 6 and _moves_nothing(fields))))
            drains = unit == 0 and fields["name"] != "CoefficientTable"
            yield from self._execute(number, unit, instruction, fields)
            last = self.value["drain_cycles"] if drains else 1
            # A tensor instruction ends when its results have been written, the others with the
            # cycle of their last element.
            self.spans.add((number, instruction, begun, self.now + last))
            self._complete(queue)
            yield from self._sleep(last)

    def _execute(self, number: int, unit: int, instruction: int, fields: Fields) -> Turn:
        if unit == 0:
            if fields["name"] != "CoefficientTable":
                yield from self._tensor(number, instruction)
            return
        if unit == 1:
            yield from self._produce_rows(number, fields)
        elif unit in (2, 3):
            yield from self._consume_rows(number, unit - 2, fields)
        elif unit == 5:
            yield from self._to_wide(number, fields)
        elif unit == 4:
            yield from self._to_narrow(number, fields)
        else:
            yield from self._mesh(number, unit - 6, fields)

    def _tensor(self, number: int, instruction: int) -> Turn:
        """Flags 1 and 2 count at the end of a segment of the plan, flag 0 with each result."""
        tile = self.tiles[number]
        tables = self.program.tables
        row = int(tables.row[instruction])
        place, parameters = tables.tensor_plan.place[row], tables.tensor[row]
        watchers = Watchers(self.fields[instruction])
        results, empty = 0, self.now
        rate = self.value["result_words_per_cycle"]
        most = self.value["result_queue_words"] // rate
        for k in range(int(place["segment"]), int(place["segment"] + place["segments"])):
            segment = tables.tensor_plan.segment[k]
            begins = {d for d in range(9) if int(segment["waits"]) >> d & 1}
            # ``empty`` is the cycle from which no result waits any more.
            while not watchers.passes(tile.flags, begins):
                yield
            yield from self._sleep(int(segment["count"]) - 1)
            while segment["outputs"] and empty - self.now > most:
                yield
            self.last_change = self.now
            self.add(tile.flags, 1, int(segment["parameter_reads"]))
            self.add(tile.flags, 2, int(segment["sum_writes"]))
            if segment["outputs"]:
                size = 2 if int(parameters["function"]) >> 2 else 1
                empty = max(self.now + 1 + self.value["result_cycles"], empty)
                for word in range(words := -(-int(segment["lanes"]) * size // 4)):
                    written = empty + word // rate
                    if tables.tensor_plan.write_flag[int(place["write"]) + results + word]:
                        self.timers.add(written)
                        self.scheduled.setdefault(written, []).append(tile.flags)
                # A cycle with words of one run has none of the next.
                empty += -(-words // rate)
                results += words
            yield
        yield from self._sleep(max(0, empty - self.now))

    # Units that move words and rows.

    def _produce_rows(self, number: int, fields: Fields) -> Turn:
        tile = self.tiles[number]
        watchers = Watchers(fields)
        channel, targets = fields["consumer_b"], fields["targets"]
        for k, element in enumerate(walk(fields, "wide_read")):
            if k:
                yield
            while not watchers.passes(tile.flags, element.begins):
                yield
            while not self._ring_is_free(channel, targets):
                yield
            yield from self._send(channel, targets, 64)
            self.add(tile.flags, 16, produce(fields, "row_producer", element.ends))
            if produce(fields, "token_producer", element.ends):
                self._pass_token(channel)
                self.add(self.flags, 5 + channel, 1)
                if channel and targets >> _OUTFEED & 1:
                    self.add(self.flags, 5, 1)

    def _fifos(self, channel: int, targets: int) -> list[list[int]]:
        tiles = [self.tiles[t].ring[channel] for t in range(16) if targets >> t & 1]
        return [*tiles, self.outfeed_ring] if targets >> _OUTFEED & 1 else tiles

    def _ring_is_free(self, channel: int, targets: int) -> bool:
        depths = (self.value["ring_fifo_rows"], self.value["outfeed_rows"])
        room = all(
            fifo[0] - fifo[2] < depths[fifo is self.outfeed_ring]
            for fifo in self._fifos(channel, targets)
        )
        return self.ring_free <= self.now and room

    def _take_row(self, fifo: list[int]) -> None:
        """Make room, which senders, who come last in a cycle, see in this one or in the next."""
        if self.value["ring_room_at_once"]:
            fifo[2] += 1
        else:
            self.add(fifo, 2, 1)

    def _send(self, channel: int, targets: int, words: int) -> Turn:
        """Put a row on the ring; its sender goes on with it, or when it arrives."""
        on_way = -(-4 * words // self.value["ring_bytes_per_cycle"])
        cycles = max(self.value["ring_row_cycles"], on_way)
        self.ring_free = self.now + cycles
        self.timers.add(self.ring_free)
        for fifo in self._fifos(channel, targets):
            fifo[0] += 1
            self.arriving.setdefault(self.now + cycles - 1, []).append(fifo)
        if self.value["ring_sender_waits"]:
            yield from self._sleep(cycles - 1)

    def _pass_token(self, channel: int) -> None:
        for tile in self.tiles:
            self.add(tile.flags, 17 + channel, 1)

    def _consume_rows(self, number: int, channel: int, fields: Fields) -> Turn:
        tile = self.tiles[number]
        watchers = Watchers(fields)
        fifo = tile.ring[channel]
        for k, element in enumerate(walk(fields, "wide_write")):
            if k:
                yield
            while not watchers.passes(tile.flags, element.begins):
                yield
            while fifo[1] <= fifo[2]:
                yield
            self._take_row(fifo)
            self.add(tile.flags, 14 + channel, produce(fields, "producer", element.ends))

    def _to_wide(self, number: int, fields: Fields) -> Turn:
        tile = self.tiles[number]
        reading, writing = Watchers(fields, side=0), Watchers(fields, side=1)
        rows = iter(walk(fields, "wide_write"))
        words = moved = 0
        elements = walk(fields, "narrow_read", target=read_target(fields))
        behind = self.value["row_write_cycles"]
        closed = False
        for k, element in enumerate(elements):
            if moved == self.value["narrow_to_wide_words_per_cycle"]:
                yield
                moved = 0
            if closed:
                # The row before is written with this word, or the word waits with it.
                yield from self._write_row(tile, writing, fields, next(rows))
                self.last_change = self.now
                closed = False
            while not reading.passes(tile.flags, element.begins):
                yield
                moved = 0
            moved += 1
            self.last_change = self.now
            words += 1
            full = words == 64 or fields["row_loop"] in element.ends or k == len(elements) - 1
            if full and behind:
                closed, words = True, 0
                moved = self.value["narrow_to_wide_words_per_cycle"]
            elif full:
                if (yield from self._write_row(tile, writing, fields, next(rows))):
                    # The row takes the place of a word in its cycle.
                    moved = 1
                words = 0
        if closed:
            yield
            yield from self._write_row(tile, writing, fields, next(rows))

    def _write_row(
        self, tile: Tile, watchers: Watchers, fields: Fields, row: Element
    ) -> Generator[None, None, bool]:
        """Write a row as soon as it may be; whether it had to wait."""
        waited = False
        while not watchers.passes(tile.flags, row.begins):
            yield
            waited = True
        self.add(tile.flags, 13, produce(fields, "producer", row.ends))
        return waited

    def _to_narrow(self, number: int, fields: Fields) -> Turn:
        tile = self.tiles[number]
        reading, writing = Watchers(fields, side=0), Watchers(fields, side=1)
        rows = iter(walk(fields, "wide_read"))
        flag = 12 if fields["scale_bias"] else 11
        position, moved = 64, 0
        for element in walk(fields, "narrow_write"):
            if moved == self.value["wide_to_narrow_words_per_cycle"]:
                yield
                moved = 0
            while not writing.passes(tile.flags, element.begins):
                yield
                moved = 0
            if position >= 64:
                row = next(rows)
                while not reading.passes(tile.flags, row.begins):
                    yield
                    moved = 0
                position = 0
            moved += 1
            self.last_change = self.now
            position += 2 if fields["scale_bias"] else 1
            if not element.prologue:
                self.add(tile.flags, flag, produce(fields, "producer", element.ends))
                if fields["row_loop"] in element.ends:
                    position = 64

    def _mesh(self, number: int, link: int, fields: Fields) -> Turn:
        """Both sides at once, each at its own pace, until both are done."""
        down, right = _MESH_STEP[link]
        row, column = (number // 4 + down) % 4, (number % 4 + right) % 4
        sides = [
            self._mesh_send(number, 4 * row + column, link, fields),
            self._mesh_receive(number, link, fields),
        ]
        left = [side for side in sides if next(side, self) is not self]
        while left:
            yield
            left = [side for side in left if next(side, self) is not self]

    def _mesh_send(self, number: int, target: int, link: int, fields: Fields) -> Turn:
        tile, fifo = self.tiles[number], self.tiles[target].mesh[link]
        watchers = Watchers(fields, side=0)
        moved = 0
        for element in [] if _is_off(fields, "narrow_read") else walk(fields, "narrow_read"):
            if moved == self.value["mesh_words_per_cycle"]:
                yield
                moved = 0
            in_flight = self.in_flight
            while in_flight[target][link] - fifo[1] >= self.value["mesh_fifo_words"] or (
                not watchers.passes(tile.flags, element.begins)
            ):
                yield
                moved = 0
            moved += 1
            in_flight[target][link] += 1
            self.add(fifo, 0, 1)
            self.add(tile.flags, _OUTBOUND[link], produce(fields, "read_producer", element.ends))

    def _mesh_receive(self, number: int, link: int, fields: Fields) -> Turn:
        tile = self.tiles[number]
        fifo, taken = tile.mesh[link], self.taken_words[number]
        watchers = Watchers(fields, side=1)
        constant = fields["immediate_valid"]
        off = _writes_nothing(fields)
        moved = 0
        for element in [] if off else walk(fields, "narrow_write"):
            if moved == self.value["mesh_words_per_cycle"]:
                yield
                moved = 0
            while (not constant and fifo[0] <= taken[link]) or (
                not watchers.passes(tile.flags, element.begins)
            ):
                yield
                moved = 0
            moved += 1
            if not constant:
                taken[link] += 1
                self.add(fifo, 1, 1)
            self.add(tile.flags, _INBOUND[link], produce(fields, "write_producer", element.ends))

    # The scalar core's units and the host link.

    def _pop(self, unit: int) -> Turn:
        size = (64, 8)[unit]
        queue = self.units[unit]
        while True:
            instruction = yield from self._begin(queue)
            begun, fields = self.now, self.fields[instruction]
            yield from self._sleep(self.value["scalar_unit_start"])
            watchers = Watchers(fields)
            for k, element in enumerate(walk(fields, "buffer")):
                if k:
                    yield
                while self.arrived[unit] - self.sent[unit] < size or not (
                    watchers.passes(self.flags, element.begins)
                ):
                    yield
                self.sent[unit] += size
                self.add(self.taken, unit, size)
                self.add(self.flags, 1 - unit, produce(fields, "producer", element.ends))
            self._end_scalar_unit(queue, instruction, begun)
            yield

    def _end_scalar_unit(self, queue: Queue, instruction: int, begun: int) -> None:
        self.spans.add((-1, instruction, begun, self.now + 1))
        self._complete(queue)

    def _infeed(self) -> Turn:
        queue = self.units[2]
        while True:
            instruction = yield from self._begin(queue)
            begun, fields = self.now, self.fields[instruction]
            yield from self._sleep(self.value["scalar_unit_start"])
            watchers = Watchers(fields)
            unit, words = UNIT_BYTES[fields["fifo"]] // 4, 0
            channel, targets = fields["consumer_b"], fields["targets"]
            elements = walk(fields, "buffer")
            for k, element in enumerate(elements):
                if k:
                    yield
                words += unit
                closes = words >= fields["row_words"] + 1 or k == len(elements) - 1
                while (closes and not self._ring_is_free(channel, targets)) or not (
                    watchers.passes(self.flags, element.begins)
                ):
                    yield
                if closes:
                    yield from self._send(channel, targets, words)
                    words = 0
                amount = fields["sync_increment"] * produce(fields, "producer", element.ends)
                self.add(self.flags, INFEED_FLAGS[fields["fifo"]], amount)
                if produce(fields, "token_producer", element.ends):
                    self._pass_token(channel)
            self._end_scalar_unit(queue, instruction, begun)
            yield

    def _outfeed(self) -> Turn:
        queue = self.units[3]
        while True:
            instruction = yield from self._begin(queue)
            begun, fields = self.now, self.fields[instruction]
            yield from self._sleep(self.value["scalar_unit_start"])
            watchers = Watchers(fields)
            words, position = (2, 0) if fields["to_host"] else (1, 0)
            elements = walk(fields, "buffer")
            for k, element in enumerate(elements):
                if k:
                    yield
                while not self._output_can_go(fields) or not (
                    watchers.passes(self.flags, element.begins)
                ):
                    yield
                position += words
                if fields["to_host"]:
                    self._push(8)
                self.add(self.flags, 7, produce(fields, "producer", element.ends))
                if position >= fields["row_words"] + 1 or k == len(elements) - 1:
                    position = 0
                    self._take_row(self.outfeed_ring)
            self._end_scalar_unit(queue, instruction, begun)
            yield

    def _output_can_go(self, fields: Fields) -> bool:
        room = self.room_used + 8 - self.delivered <= self.value["host_fifo_bytes"]
        there = self.outfeed_ring[1] > self.outfeed_ring[2]
        return there and (room or not fields["to_host"])

    def _burst(self, free: int, size: int, speed: Any) -> tuple[int, int]:
        """When the link is free again, and the cycle in which the last byte arrives."""
        time = round(self.clock / speed.value * _LINK_UNITS) if speed else 0
        free = max(free, self.now * _LINK_UNITS) + size * time
        return free, -(-free // _LINK_UNITS) - 1

    def _inbound(self, queue: int | None) -> Iterator[Inbound]:
        data = issued = promised = 0
        for step in self.steps:
            tag, size = int(step["target"]), int(step["size"])
            if step["kind"] == Handover.CHUNK:
                if queue in (None, 0):
                    yield Inbound(self.chunk_bytes[tag], chunk=tag)
            elif step["kind"] == Handover.DESCRIPTOR:
                issued += 1
                promised += size * (tag >= 3)
                data += tag < 3
                if tag < 3 and queue in (None, tag):
                    yield Inbound(size, (1, 0)[tag - 1], 0, issued, data, promised)

    def _link_in(self, queue: int | None = None) -> Turn:
        """All that comes in, or that of one queue: chunks (0), parameters (2) or activations."""
        on_request = bool(self.host and self.host.on_request.value)
        for transfer in self._inbound(queue):
            asked = -1
            if transfer.stream is None:
                while self.halted < transfer.chunk:
                    yield
                # A halt without a cycle of its own came in the cycle before.
                asked = self.now - 1
                asked -= int(transfer.chunk > 0 and not self.value["scalar_bundle_cycles"])
            else:
                while queue is None and self.delivered < transfer.promised:
                    yield
                while on_request and self.inputs_issued < transfer.data:
                    yield
                if on_request:
                    asked = self.issued_in[transfer.issued - 1]
            yield from self._sleep(max(asked + self.value["read_cycles"] - self.now, 0))
            yield from self._receive(transfer.size, transfer.stream)
            if transfer.stream is None:
                self.count(self, "loaded")
        self.links_in_done += 1

    def _receive(self, left: int, stream: int | None) -> Turn:
        """The bytes of a transfer, word by word; those of a stream only where there is room."""
        speed = self.host.bytes_per_second_in if self.host else None
        while left:
            size = min(self.value["link_word_bytes"], left)
            if stream is not None:
                most = self.value["host_fifo_bytes"] - size
                while self.room_in[stream] - self.taken[stream] > most:
                    yield
                self.room_in[stream] += size
            self.in_free, last = self._burst(self.in_free, size, speed)
            yield from self._sleep(max(last - self.now, 1))
            left -= size
            self.link_end = max(self.link_end, self.now + 1)
            if stream is not None:
                self.add(self.arrived, stream, size)

    def _link_out(self) -> Turn:
        """Bursts one after another, each answered some cycles later; interrupts behind answers."""
        speed = self.host.bytes_per_second_out if self.host else None
        free = sent = 0
        word, longest = self.value["link_word_bytes"], self.value["write_burst_bytes"]
        bursts = longest > 1
        issued = self.steps[self.steps["kind"] == Handover.DESCRIPTOR]
        for number, step in enumerate(issued[issued["target"] >= 3]):
            while self.outputs_issued <= number:
                yield
            left = int(step["size"])
            address = int(step["address"]) % 4096
            # An interrupt has no bytes.
            if not left:
                while self.answers:
                    yield
                self.link_end = max(self.link_end, self.now + self.value["interrupt_cycles"])
            while left:
                most = min(left, max(word, longest))
                if bursts:
                    most = min(most, max(word, longest) - address % word, 4096 - address % 4096)
                while self.pushed < sent + min(longest, most) or (
                    len(self.answers) == self.value["unanswered_writes"]
                ):
                    yield
                size = min(most, self.pushed - sent)
                sent += size
                words = -(-(address % word + size) // word)
                free, last = self._burst(free, words * word if bursts else size, speed)
                free += self.value["write_gap_cycles"] * _LINK_UNITS
                due = max(last + self.value["write_cycles"], self.now + 1)
                self.timers.add(due)
                self.answers.append((due, size))
                yield from self._sleep(max(last - self.now, 1))
                left -= size
                address += size
        self.link_out_done = True

    def _take_answers(self) -> None:
        """Before the link out has its turn: bytes are delivered as their burst is answered."""
        while self.answers and self.answers[0][0] == self.now:
            self.count(self, "delivered", self.answers.popleft()[1])
            self.link_end = max(self.link_end, self.now + 1)


def _tokens_are_counted(flags: list[int], fields: Fields) -> bool:
    awaited = [flag for k, flag in enumerate((17, 18)) if fields["producer_count_valid"] >> k & 1]
    return all(flags[flag] % 65536 == fields["producer_count"] for flag in awaited)


def _is_off(fields: Fields, name: str) -> bool:
    return not any(fields[f"{name}_limit"]) and not fields[f"{name}_stride"][0]


def _writes_nothing(fields: Fields) -> bool:
    """The receiving side of the mesh is off: an immediate is written all the same."""
    return _is_off(fields, "narrow_write") and not fields["immediate_valid"]


def _moves_nothing(fields: Fields) -> bool:
    return _is_off(fields, "narrow_read") and _writes_nothing(fields)
