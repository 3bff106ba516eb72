"""What may come together in the scalar core's units and on the ring: the record, what its programs
are drawn by, and programs in which rows of three senders meet.

Each row has its content. Whichever sender's turn it is, a receiver has the rows of each sender
whole, once and in order, and words of the core lie between units of rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from coincidences import Record
from darwinn_sim import chip
from darwinn_sim.isa.builder import build
from darwinn_sim.isa.codes import DescriptorTag, ScalarFlag, TileFlag
from stimulus import Fields, line

if TYPE_CHECKING:
    from darwinn_rtl.build import Design

TILES, ROW = 2, chip.ROW_WORDS
OUTFEED = 1 << chip.TILES
EVERY = (1 << TILES) - 1
"""The set of all tiles."""
HELD = 8
"""Rows of each tile's wide memory, from 0 on, that it sends."""
PLACES = 300
"""Rows of wide memory from which on a tile keeps those that it gets: on channel B twice as far."""
SPREAD, SPREAD_FROM = "WideToNarrow", 1000
"""A tile's own work, and rows of wide memory that nothing else writes."""
RESULT = chip.SCALAR_MEMORY_WORDS // 2
"""Where rows come to in scalar memory; those that go out stand before it."""
WINDOW, HALF = 1 << 63, 1 << 16
"""Host memory: inputs from there on, and outputs so many bytes behind them: more than there are."""
BATCH = 16
"""Rows that are read from a tile at a time."""
CORE_WORD = 0xC0DE0000
"""The first of the words that the core sends; no row has one."""

UNIT_BYTES = (chip.PARAMETER_UNIT_BYTES, chip.ACTIVATION_UNIT_BYTES, 4)
TAGS = (DescriptorTag.PARAMETERS, DescriptorTag.INPUT)
POPPED = (ScalarFlag.PARAMETER_POP, ScalarFlag.AV_POP)
SENT = (ScalarFlag.PARAMETER_INFEED, ScalarFlag.AV_INFEED, ScalarFlag.SCALAR_INFEED)
UNITS_IDLE = 0b11111
TILE_UNITS_IDLE = (1 << chip.TILE_UNITS) - 1

MOST = 3
"""Senders of a group: each queue has room for what they need, whoever comes last."""
QUEUES = ("dma", "pop", "infeed", "outfeed", "tile", "from", "mark")
"""How the names of the queues begin that take instructions in their order."""

SENDERS = ("infeed", "from")

Row = tuple[int, ...]


@dataclass(frozen=True)
class Knobs:
    """What a program is drawn by: shares from 0 to 1, and numbers.

    Attributes:
        groups: of instructions that are given in any order.
        parts: senders of a group.
        rows: most of a sender.
        words: of a row that is looked at; those of tiles have more.
        inputs: share of senders whose rows come from the host.
        tiles: share that are tiles.
        to_tiles: share of rows for a tile.
        to_both: share of those that go to the outfeed as well.
        to_host: share of rows of the outfeed for the host.
        turns: share of senders that end turns.
        words_of_core: most in a group.
        pieces: most descriptors of an input.
        ahead: bytes that each input stream is given at once beyond those that are popped next.
        cuts: most instructions of a unit for the rows of a sender.
        tile_fences: most at the end of a group.
        work: most words that a tile spreads before a fence that waits for it: what only waits for
            rows is done when one has come, and the ring brings the next one later.
        fences: share of groups that end with a fence of the core.
        marks: most fences among the instructions of a group, which wait for nothing.
        gaps: most cycles between instructions.
        settled: share of groups before which the chip comes to rest: their instructions find
            room, and are given in any order. Others have their senders last, because a row that
            comes before its receiver's instruction takes the place of an earlier one.
        first, last: the queues of a group that are given before or behind all others, as far as
            senders may.
        stalls: of four transfers, those that wait.
        resets: beginnings of the program that a reset breaks off.
    """

    groups: int = 2
    parts: int = 2
    rows: int = 3
    words: int = 16
    inputs: float = 0.5
    tiles: float = 0.3
    to_tiles: float = 0.3
    to_both: float = 0.3
    to_host: float = 0.5
    turns: float = 0.3
    words_of_core: int = 3
    pieces: int = 2
    ahead: int = 0
    cuts: int = 1
    tile_fences: int = 2
    work: int = 0
    fences: float = 0.5
    marks: int = 0
    gaps: int = 0
    settled: float = 0.6
    first: str = ""
    last: str = ""
    stalls: int = 1
    resets: int = 0


ANY: Mapping[str, tuple[Any, ...]] = {
    "groups": (1, 2, 4),
    "parts": (1, 2, MOST),
    "rows": (1, 3, 6),
    "words": (2, 16, 32, 64),
    "inputs": (0.0, 0.5, 1.0),
    "tiles": (0.0, 0.3, 0.7),
    "to_tiles": (0.0, 0.3, 1.0),
    "to_host": (0.0, 0.5, 1.0),
    "turns": (0.0, 0.5, 1.0),
    "words_of_core": (0, 3, 12, 40),
    "pieces": (1, 3),
    "ahead": (0, 0, 100, 1000),
    "cuts": (1, MOST),
    "tile_fences": (0, 2, 8),
    "work": (0, 40),
    "fences": (0.0, 0.5, 1.0),
    "marks": (0, 3, 8),
    "gaps": (0, 0, 10, 100),
    "settled": (0.0, 0.2, 0.6, 1.0),
    "first": ("", *QUEUES),
    "last": ("", *QUEUES),
    "stalls": (0, 1, 1, 2, 3),
}

_HOST = {"to_host": 1.0, "to_tiles": 0.0}
_MEMORY = {"to_host": 0.0, "to_tiles": 0.0}
_POPS = {"inputs": 1.0, "tiles": 0.0}
_SHORT = {"rows": 1, "words": 2, "groups": 4}
_LONG = {"rows": 1, "words": 2, "groups": 12, "settled": 0.0, "gaps": 0}
_ROWS = {"parts": MOST, "rows": 3, "words": 16, "stalls": 2}
_COMPETE = {"tiles": 0.7, "rows": 6, "parts": MOST, "groups": 4}
RECIPES: Mapping[str, Mapping[str, Any]] = {
    "ring_carries": {"rows": 6, "parts": 2},
    "row_lacks_room": _COMPETE | {"to_host": 0.0, "first": "from"},
    "senders_compete": _COMPETE | {"stalls": 2, "first": "from"},
    "outfeed_full": {"rows": 6, "words": 64} | _MEMORY,
    "row_in_outfeed": {"to_tiles": 0.0},
    "unit_waits_for_host": _HOST | {"rows": 6, "words": 64},
    "output_full": _LONG | _ROWS | {"to_host": 0.3, "to_tiles": 0.0, "words_of_core": 40},
    "beat_waits": _HOST | {"rows": 6, "words": 64},
    "output_unanswered": _HOST,
    "activations_full": _LONG | {"ahead": 1000, "inputs": 0.7},
    "parameters_full": _LONG | {"ahead": 1000, "inputs": 0.7, "words": 16},
    "pop_lacks_bytes": _POPS | {"pieces": 3},
    "infeed_waits": _POPS,
    "row_waits_for_ring": {"tiles": 0.7, "rows": 6},
    "pop_queue_full": _LONG | _POPS | {"words": 16, "rows": 3, "first": "pop", "last": "dma"},
    "infeed_queue_full": _LONG | {"tiles": 0.3},
    "outfeed_queue_full": _LONG | {"to_tiles": 0.3},
    "tiles_lack": _LONG | _ROWS | {"tile_fences": 12, "work": 40, "to_tiles": 0.7, "fences": 0.0},
    "fence_at_head": {"marks": 8, "groups": 4, "rows": 1},
    "reset": {"resets": 12, "groups": 1, "gaps": 0, "marks": 8},
    "last_unit_popped": _POPS | _SHORT,
    "last_row_of_infeed": _SHORT | {"tiles": 0.0},
    "last_unit_of_outfeed": _SHORT | {"to_tiles": 0.0},
    "rest_dropped": {"tiles": 0.7, "words": 2, "to_tiles": 0.0},
    "row_of_tile_arrives": {"tiles": 0.7, "rows": 6},
    "last_word_on_bus": _HOST,
    "pop_given": _POPS | {"groups": 4, "rows": 1},
    "infeed_given": {"groups": 4, "tiles": 0.0, "rows": 1},
    "outfeed_given": {"groups": 4, "to_tiles": 0.0, "rows": 1},
    "tiles_given": {"marks": 8, "tiles": 0.7, "groups": 4},
    "fence_passes": {"marks": 8, "groups": 4},
    "pop_begins": _POPS | _SHORT,
    "infeed_begins": {"groups": 4, "rows": 1, "tiles": 0.3},
    "outfeed_begins": _SHORT | {"to_tiles": 0.0},
    "activation_popped": _POPS | {"words": 2, "rows": 6},
    "parameter_popped": _POPS | {"words": 64, "rows": 6},
    "activations_arrive": _POPS | {"words": 2},
    "parameters_arrive": _POPS | {"words": 64},
    "unit_gathered": {"tiles": 0.0, "words": 64},
    "turn_in_a_row": {"turns": 1.0, "tiles": 0.3, "words": 64},
    "turn_with_a_row": {"turns": 1.0, "words": 16},
    "ring_begins": {"rows": 6, "words": 2},
    "row_at_tile": {"to_tiles": 1.0, "rows": 6},
    "row_at_outfeed": {"to_tiles": 0.0, "rows": 6},
    "unit_for_host": _HOST,
    "word_for_memory": _MEMORY | {"words": 64, "rows": 6},
    "word_of_core": {"words_of_core": 40},
    "beat_taken": _HOST,
    "word_on_bus": _HOST,
    "bus_answers": _HOST,
    "tile_fence_counted": {"marks": 8},
}

_GIVEN = "pop_given|infeed_given|outfeed_given|tiles_given|word_of_core"
_ARRIVES = "row_at_*|turn_with_a_row"
IMPOSSIBLE = (
    ("reset", f"{_GIVEN}|fence_passes", "whoever drives the chip offers nothing in reset"),
    (
        "fence_at_head begins|fence_at_head lasts",
        _GIVEN,
        "the core hands over one thing at a time",
    ),
    (
        "tiles_lack begins|tiles_lack lasts",
        "pop_given|infeed_given|outfeed_given|word_of_core|fence_passes",
        "the same of an instruction of tiles",
    ),
    ("fence_at_head ends", "fence_passes", "none is at the head any more"),
    ("activations_full begins|activations_full lasts", "activations_arrive", "there is no room"),
    ("parameters_full begins|parameters_full lasts", "parameters_arrive", "there is no room"),
    ("infeed_queue_full begins|infeed_queue_full lasts", "infeed_given", "there is no room"),
    ("outfeed_queue_full begins|outfeed_queue_full lasts", "outfeed_given", "there is no room"),
    ("output_full begins|output_full lasts", "unit_for_host|word_of_core", "there is no room"),
    (
        "infeed_queue_full begins|infeed_queue_full lasts",
        "infeed_begins",
        "as one begins the one before it has left its place",
    ),
    (
        "outfeed_queue_full begins|outfeed_queue_full lasts",
        "outfeed_begins",
        "as one begins the one before it has left its place",
    ),
    ("beat_waits begins|beat_waits lasts", "beat_taken", "it waits"),
    ("output_unanswered ends", "bus_answers", "all are answered"),
    ("output_unanswered begins", "bus_answers", "memory takes longer than a cycle"),
    (
        "output_unanswered begins",
        "word_on_bus",
        "a burst is begun when the words of the one before it have gone",
    ),
    (
        "infeed_queue_full ends",
        f"{_ARRIVES}|unit_gathered|turn_in_a_row",
        "a last row has arrived in the cycle before, and the next instruction begins",
    ),
    (
        "outfeed_queue_full ends",
        "unit_for_host|word_for_memory",
        "the next instruction begins in this cycle",
    ),
    (
        "infeed_waits *|row_waits_for_ring *|last_row_of_infeed",
        "infeed_begins",
        "an instruction is at work, which begins a cycle before its first unit",
    ),
    (
        "unit_waits_for_flag *|unit_waits_for_host *|last_unit_of_outfeed|rest_dropped",
        "outfeed_begins",
        "an instruction is at work, which begins a cycle before its first unit",
    ),
    (
        "infeed_waits begins|infeed_waits lasts|row_waits_for_ring begins|row_waits_for_ring lasts",
        "unit_gathered",
        "it waits",
    ),
    ("infeed_waits begins|infeed_waits lasts", "turn_in_a_row", "it waits"),
    (
        "row_waits_for_ring *|last_row_of_infeed",
        "turn_in_a_row",
        "this unit closes a row, with which its turn goes",
    ),
    (
        "unit_waits_for_flag begins|unit_waits_for_flag lasts|"
        "unit_waits_for_host begins|unit_waits_for_host lasts",
        "unit_for_host|word_for_memory",
        "it waits",
    ),
    ("unit_waits_for_host ends", "word_for_memory", "the unit that has waited goes to the host"),
    ("unit_waits_for_host ends", "word_of_core", "a word of the core goes before a unit"),
    ("row_in_outfeed ends", "unit_for_host|word_for_memory", "there is no row"),
    (
        "ring_carries begins|ring_carries ends|row_lacks_room *|senders_compete *|"
        "outfeed_full begins|row_in_outfeed begins",
        _ARRIVES,
        "the ring is free or has just begun, and a row takes several cycles",
    ),
    ("outfeed_full *", "row_at_outfeed", "a row sets out when there is room, and takes several"),
    (
        "ring_carries begins|ring_carries lasts|row_of_tile_arrives|last_row_of_infeed|"
        "row_waits_for_ring ends",
        "ring_begins",
        "it carries a row, to the cycle in which that arrives",
    ),
    ("row_lacks_room begins|row_lacks_room lasts", "ring_begins", "no row has room"),
    ("senders_compete ends", "ring_begins", "it has begun in the cycle before"),
)

CORE = Record(2, "core_coincidences", Knobs, ANY, RECIPES, IMPOSSIBLE)


def small_chip() -> Design:
    """Two tiles that are held back at random, short queues, a quick ring, and the module that
    counts."""
    from darwinn_rtl.chip.player import design

    sizes = {"scalar_queue": 2, "tile_queue": 3, "unit_queue": 3, "outfeed_rows": 2}
    chosen = design(TILES, stalls=True)
    quick = {**chosen.parameters, "RingCyclesPerRow": 8}
    return replace(CORE.counted(chosen, "chip"), parameters=quick, sizes=sizes, optimization="1")


class CoreProgram:
    """Instructions for the core's units and for tiles, and what each receiver has at last."""

    def __init__(self, rtl: Any, knobs: Knobs, random: Random) -> None:
        self.rtl, self.knobs, self.random = rtl, knobs, random
        self.steps: dict[str, list[Callable[[], None]]] = {}
        self.host = np.frombuffer(bytearray(random.randbytes(2 * HALF)), np.uint8).copy()
        self.given = 0  # bytes of inputs
        self.streams = [bytearray(), bytearray()]  # of each, those that descriptors bring
        self.output_at = HALF
        self.output_begins = self.output_at
        self.memory_at = RESULT
        self.words_of_core = 0
        self.buffers = [0, 0]  # units of each that have been popped
        self.flags: dict[int, int] = defaultdict(int)
        self.turns = [0, 0]
        self.passed = [0] * TILES  # fences of each tile that the core has not waited for
        self.expected: dict[Any, list[list[Row]]] = defaultdict(lambda: [[], [], []])
        self.destinations: list[bool] = []  # of the outfeed's rows: to the host
        # Where the chip comes to no rest, the infeed has the other one. A row that took the place
        # of another sender's could leave that one behind a fence that waits for what follows it.
        self.channel_of_tiles = random.randint(0, 1)

    def play(self) -> None:
        """Give all to the chip, let it come to its end, and compare."""
        rtl, random = self.rtl, self.random
        rtl.stall(self.knobs.stalls)
        rtl.reset()
        rtl.unmap_all()
        rtl.map(0, self.host.ctypes.data, self.host.size)
        for _ in range(self.knobs.resets):
            self.forget()
            left = random.randint(0, 40)
            while left > 0:
                self.group()
                left -= self.carry_out(settled=False, most=left)
            rtl.run(random.randint(0, random.choice((2, 20, 120))))
            rtl.reset()
        self.forget()
        before = self.host.copy()
        for _ in range(self.knobs.groups):
            settled = random.random() < self.knobs.settled
            if settled:
                rtl.settle()
            self.group()
            self.carry_out(settled=settled)
            self.fences()
        rtl.settle()
        self.compare(before)

    def forget(self) -> None:
        """Begin anew, on a chip that has been reset."""
        self.steps.clear()
        self.given = 0
        self.streams = [bytearray(), bytearray()]
        self.output_at = self.output_begins
        self.memory_at = RESULT
        self.words_of_core = 0
        self.buffers = [0, 0]
        self.flags.clear()
        self.turns = [0, 0]
        self.passed = [0] * TILES
        self.expected.clear()
        self.destinations.clear()

    # Giving.

    def give(self, queue: str, name: str, fields: Fields, tiles: int = 0) -> None:
        """An instruction of a queue, which takes its own in their order."""
        bits = build([(name, fields | ({"tiles": tiles} if tiles else {}))])
        self.queued(queue, partial(self.rtl.hand_over, name, bits, tiles))

    def queued(self, queue: str, step: Callable[[], None]) -> None:
        self.steps.setdefault(queue, []).append(step)

    def carry_out(self, *, settled: bool, most: int | None = None) -> int:
        """Give what is planned, of any queue first, but no more than ``most``; how much it was."""
        done = 0
        while self.steps and done != most:
            queue = self.random.choice(self.next_queues(settled))
            self.steps[queue].pop(0)()
            done += 1
            if not self.steps[queue]:
                del self.steps[queue]
            if self.knobs.gaps:
                self.rtl.run(self.random.randint(0, self.knobs.gaps))
        return done

    def next_queues(self, settled: bool) -> list[str]:
        """Those of which one is given next."""
        queues, knobs = sorted(self.steps), self.knobs
        orders: list[tuple[str | tuple[str, ...], bool]]
        orders = [(knobs.first, True), (knobs.last, False)]
        for kind, comes in orders if settled else [(SENDERS, False), *orders]:
            chosen = [queue for queue in queues if queue.startswith(kind) == comes]
            queues = chosen if kind and chosen else queues
        return queues

    # Planning.

    def group(self) -> None:
        """Some senders with whoever takes their rows, and the fences behind them."""
        knobs, random = self.knobs, self.random
        begun = self.output_at
        for _ in range(knobs.parts):
            self.sender()
        words = random.randint(0, knobs.words_of_core)
        self.output_at += 4 * words
        size = self.output_at - begun
        if size:
            tag, address = DescriptorTag.OUTPUT, WINDOW + begun
            self.queued("dma", partial(self.rtl.descriptor, tag, address, size))
        for _ in range(words):
            self.queued("dma", partial(self.rtl.push, CORE_WORD + self.words_of_core))
            self.words_of_core += 1
        for _ in range(random.randint(0, knobs.marks)):
            self.mark()

    def mark(self) -> None:
        """A fence of the core, or of tiles, that waits for nothing."""
        if self.random.random() < 0.5:
            self.give("mark", "ScalarFence", {})
        else:
            tiles = self.random.randint(1, EVERY)
            self.give("mark", "TileFence", {"increment": 1}, tiles)
            self.count(tiles)

    def fences(self) -> None:
        """Fences behind all that they wait for."""
        knobs, random = self.knobs, self.random
        for _ in range(random.randint(0, knobs.tile_fences)):
            self.tile_fence(random.randint(1, EVERY), random.choice((0, TILE_UNITS_IDLE)))
        if random.random() > knobs.fences:
            return
        # Of both tiles the core waits for as many as each has had, and forgets them.
        most = max(self.passed)
        for tile in range(TILES):
            while self.passed[tile] < most:
                self.tile_fence(1 << tile, 0)
        fields = {"tile_fence_valid": EVERY, "tile_fence_count": most, "reset_tile_fences": EVERY}
        _give(self.rtl, "ScalarFence", fields | {"wait_idle": random.choice((0, UNITS_IDLE))})
        self.passed = [0] * TILES

    def tile_fence(self, tiles: int, waits: int) -> None:
        """A fence of tiles that the core counts."""
        if waits and self.knobs.work:
            count = self.random.randint(1, self.knobs.work)
            walks = line(SPREAD, "wide_read", count, SPREAD_FROM) | line(
                SPREAD, "narrow_write", count
            )
            _give(self.rtl, SPREAD, walks, tiles)
        _give(self.rtl, "TileFence", {"wait_idle": waits, "increment": 1}, tiles)
        self.count(tiles)

    def count(self, tiles: int) -> None:
        """These tiles have one more fence that the core has not waited for."""
        self.passed = [count + (tiles >> tile & 1) for tile, count in enumerate(self.passed)]

    def sender(self) -> None:
        """Rows of the infeed or of a tile."""
        knobs, random = self.knobs, self.random
        count, to_tile = random.randint(1, knobs.rows), random.random() < knobs.to_tiles
        from_tile = random.randrange(TILES) if random.random() < knobs.tiles else None
        channel = random.randint(0, 1)
        if knobs.settled < 1:
            channel = self.channel_of_tiles ^ (from_tile is None)
        targets = 0
        if to_tile:
            tile = random.randrange(TILES) if from_tile is None else 1 - from_tile
            targets |= 1 << tile
            self.consumer(tile, channel, count)
        if not to_tile or random.random() < knobs.to_both:
            targets |= OUTFEED
            self.outfeed(count)
        turns = random.random() < knobs.turns
        ends = {"targets": targets, "consumer_b": channel, "token_producer_increment": int(turns)}
        each = turns and random.random() < 0.5
        whole = 3 if from_tile is None else 7
        ends["token_producer_depth"] = 0 if each else whole
        if from_tile is None:
            rows, units, given = self.infeed(count, ends)
        else:
            rows, given = self.rows_of_tile(from_tile, count, ends)
            units = count
        ended = turns * (units if each else given)
        self.turns[channel] += ended
        if from_tile is not None:
            self.flags[ScalarFlag.RING_PRODUCER_A] += ended * (not channel or targets >= OUTFEED)
            self.flags[ScalarFlag.RING_PRODUCER_B] += ended * channel
        number = 0 if from_tile is None else 1 + from_tile
        if to_tile:
            self.expected[tile, channel][number] += rows
        if targets >= OUTFEED:
            self.expected[OUTFEED][number] += rows

    def cut(self, count: int) -> list[int]:
        """How many elements each instruction of a unit takes; its queue has room for all."""
        most = min(self.knobs.cuts, MOST // self.knobs.parts, count)
        between = self.random.sample(range(1, count), self.random.randrange(most))
        return [end - begin for begin, end in pairwise((0, *sorted(between), count))]

    def infeed(self, count: int, ends: Fields) -> tuple[list[Row], int, int]:
        """Rows of the infeed, the units of them, and the instructions; of bytes that come from the
        host, with what brings them."""
        knobs, random = self.knobs, self.random
        fifo = 2
        if random.random() < knobs.inputs:
            fifo = random.randint(0, 1) if knobs.words % 16 == 0 else 1
        of_row = 4 * knobs.words // UNIT_BYTES[fifo]
        units = of_row * count
        if fifo == 2:
            base = random.randrange(RESULT - units)
            words = self.rtl.scalar_memory[base : base + units].copy()
        else:
            base = self.buffers[fifo]
            self.buffers[fifo] += units
            words = self.input(fifo, units, base)
        increment = random.choice((0, 1, 1000))
        self.flags[SENT[fifo]] += units * increment
        pieces = self.cut(count)
        for each in pieces:
            fields = line("RingInfeed", "buffer", of_row * each, base) | ends
            fields |= {"fifo": fifo, "row_words": knobs.words - 1}
            fields |= {"producer_increment": 1, "sync_increment": increment}
            if fifo != 2:
                fields |= {
                    "watcher_valid": [1, 0],
                    "watcher_flag": [int(POPPED[fifo]), 0],
                    "watcher_expected": [base + 1, 0],
                    "watcher_stride": [1, 0],
                }
            self.give("infeed", "RingInfeed", fields)
            base += of_row * each
        rows = words.reshape(count, knobs.words)
        return [tuple(row.tolist()) for row in rows], units, len(pieces)

    def input(self, fifo: int, units: int, base: int) -> Any:
        """Bytes of the host for a buffer, in some pieces; as words."""
        size, popped, stream = UNIT_BYTES[fifo] * units, UNIT_BYTES[fifo] * base, self.streams[fifo]
        lacks = max(0, popped + size - len(stream))
        lacks += self.knobs.ahead if lacks else 0
        first, self.given = self.given, self.given + lacks
        stream += self.host[first : self.given].tobytes()
        between = sorted(self.random.randint(0, lacks) for _ in range(self.knobs.pieces - 1))
        for begin, end in pairwise((0, *between, lacks)):
            if begin < end:
                address = WINDOW + first + begin
                descriptor = partial(self.rtl.descriptor, TAGS[fifo], address, end - begin)
                self.queued("dma", descriptor)
        self.flags[POPPED[fifo]] += units
        for each in self.cut(units):
            fields = line("PopInput", "buffer", each, base) | {"fifo": fifo}
            self.give(f"pop {fifo}", "PopInput", fields | {"producer_increment": 1})
            base += each
        return np.frombuffer(bytes(stream[popped : popped + size]), "<u4")

    def rows_of_tile(self, tile: int, count: int, ends: Fields) -> tuple[list[Row], int]:
        """Rows that a tile holds, and the instructions that send them."""
        base = self.random.randrange(HELD - count + 1)
        rows = held_rows(self.rtl, tile)[base : base + count, : self.knobs.words]
        pieces = self.cut(count)
        for each in pieces:
            fields = line("RingProducer", "wide_read", each, base) | ends
            self.give(f"from {tile}", "RingProducer", fields, 1 << tile)
            base += each
        return [tuple(row.tolist()) for row in rows], len(pieces)

    def consumer(self, tile: int, channel: int, count: int) -> None:
        """A tile takes rows, behind those that it has."""
        name = f"RingConsumer{'AB'[channel]}"
        base = PLACES * (1 + channel) + sum(map(len, self.expected[tile, channel]))
        for each in self.cut(count):
            self.give(f"tile {tile}", name, line(name, "wide_write", each, base), 1 << tile)
            base += each

    def outfeed(self, count: int) -> None:
        """Rows go to the host or to scalar memory."""
        words = self.knobs.words
        size = count * words
        to_host = self.random.random() < self.knobs.to_host
        to_host |= self.memory_at + size > chip.SCALAR_MEMORY_WORDS
        of_row = words // 2 if to_host else words
        base = 0 if to_host else self.memory_at
        for each in self.cut(count):
            fields = line("RingOutfeed", "buffer", of_row * each, base)
            fields |= {"to_host": int(to_host), "row_words": words - 1, "producer_increment": 1}
            self.give("outfeed", "RingOutfeed", fields)
            base += 0 if to_host else of_row * each
        self.flags[ScalarFlag.RING_OUTFEED] += of_row * count
        self.destinations += [to_host] * count
        if to_host:
            self.output_at += 4 * size
        else:
            self.memory_at += size

    # Comparing.

    def compare(self, before: Any) -> None:
        """Rows of each receiver, words of the core, flags, and host memory beside the outputs."""
        rtl, words = self.rtl, self.knobs.words
        output = self.host[self.output_begins : self.output_at].view("<u4").tolist()
        units: list[int] = []
        of_core: list[int] = []
        at = 0
        while at < len(output):
            if output[at] == CORE_WORD + len(of_core):
                of_core.append(output[at])
                at += 1
            else:
                units += output[at : at + 2]
                at += 2
        assert len(of_core) == self.words_of_core, "words of the core"
        memory = rtl.scalar_memory[RESULT : self.memory_at].tolist()
        streams = {True: iter(_cut(units, words)), False: iter(_cut(memory, words))}
        rows = [next(streams[to_host]) for to_host in self.destinations]
        assert is_merged(rows, self.expected.pop(OUTFEED, [])), "rows of the outfeed"
        flags = {flag: int(value) for flag, value in enumerate(rtl.scalar_flags) if value}
        wanted = {int(flag): count % 65536 for flag, count in self.flags.items()}
        assert flags == {flag: count for flag, count in wanted.items() if count}, "flags"
        turns = rtl.tile_flags[:, [TileFlag.RING_PRODUCER_A, TileFlag.RING_PRODUCER_B]]
        assert turns.tolist() == [self.turns] * TILES, "turns"
        before[self.output_begins : self.output_at] = self.host[self.output_begins : self.output_at]
        assert (self.host == before).all(), "host memory"
        for (tile, channel), sent in self.expected.items():
            base, count = PLACES * (1 + channel), sum(map(len, sent))
            came = [
                row
                for first in range(0, count, BATCH)
                for row in read_rows(rtl, tile, base + first, min(BATCH, count - first))
            ]
            assert is_merged([row[:words] for row in came], sent), f"tile {tile}, {channel}"


def _cut(words: Sequence[int], size: int) -> list[Row]:
    return [tuple(words[at : at + size]) for at in range(0, len(words), size)]


def is_merged(rows: Sequence[Row], sent: Iterable[Sequence[Row]]) -> bool:
    """Whether ``rows`` are those of all senders, of each in its order."""
    of_each = list(sent)
    reached = {(0,) * len(of_each)}
    for row in rows:
        reached = {
            (*at[:number], at[number] + 1, *at[number + 1 :])
            for at in reached
            for number, own in enumerate(of_each)
            if at[number] < len(own) and own[at[number]] == row
        }
    return tuple(map(len, of_each)) in reached


def held_rows(rtl: Any, tile: int) -> Any:
    """The rows that a tile holds: at first those of scalar memory (``fill``)."""
    words = rtl.scalar_memory[:RESULT].reshape(-1, ROW)
    return words[tile * HELD : (tile + 1) * HELD]


def _give(rtl: Any, name: str, fields: Fields, tiles: int = 0) -> None:
    bits = build([(name, fields | ({"tiles": tiles} if tiles else {}))])
    rtl.hand_over(name, bits, tiles)


def fill(rtl: Any) -> None:
    """Random words in scalar memory, and rows of it in the tiles."""
    rtl.scalar_memory[:] = np.random.default_rng(3).integers(1 << 31, size=rtl.scalar_memory.size)
    for tile in range(TILES):
        _give(rtl, "RingConsumerA", line("RingConsumerA", "wide_write", HELD), 1 << tile)
        walk = line("RingInfeed", "buffer", HELD * ROW, tile * HELD * ROW)
        _give(rtl, "RingInfeed", walk | {"fifo": 2, "row_words": ROW - 1, "targets": 1 << tile})
    rtl.settle()


def read_rows(rtl: Any, tile: int, base: int, count: int) -> list[Row]:
    """Rows of a tile's wide memory, over the ring."""
    taken = line("RingOutfeed", "buffer", count * ROW, RESULT) | {"row_words": ROW - 1}
    _give(rtl, "RingOutfeed", taken)
    fields = line("RingProducer", "wide_read", count, base) | {"targets": OUTFEED}
    _give(rtl, "RingProducer", fields, 1 << tile)
    rtl.settle()
    return _cut(rtl.scalar_memory[RESULT : RESULT + count * ROW].tolist(), ROW)
