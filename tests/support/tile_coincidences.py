"""What may come together in a tile: its record, what its programs are drawn by, and programs in
which many units are at work, each at places of its own, beside the slow model.

An instruction may be guarded: each of its blocks of some depth waits for a count of a flag that no
unit counts. Fences behind it load the flag, step by step, and at last with what all wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from coincidences import Record
from darwinn_rtl.tile.bench import LINKS, RingRow
from darwinn_sim import chip
from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.isa.table import BY_NAME
from slow_model import mesh_bus, narrow_to_wide, ring_bus, tensor_unit, wide_to_narrow
from slow_model.memory import Core
from stimulus import Fields, Walk, line, nothing
from tile_units import TileAndModel

if TYPE_CHECKING:
    from darwinn_rtl.build import Design

MAC, SPREAD, PACK, SEND = tensor_unit.MAC, "WideToNarrow", "NarrowToWide", "RingProducer"
CONSUME = ("RingConsumerA", "RingConsumerB")
LINK = tuple(mesh_bus.DIRECTIONS)
UNITS = (MAC, SPREAD, PACK, SEND, *CONSUME, *LINK)

MOST, SCALES = 60, 200
"""Elements of an instruction, and of one that loads scales and biases."""
GO = TileFlag.RING_PRODUCER_A
"""A flag that no unit counts here: turns are those of channel B."""
LEAD = 8 * SCALES
"""How far beyond its beginning a group's flag goes at last: more than any block waits for."""
ROOM = 3
"""Instructions of a unit that may wait while the tile's queue goes on."""

NARROW = {name: 2000 * number for number, name in enumerate((SPREAD, PACK, *LINK))}
"""Words of narrow memory, of each unit its own: what it reads, and from the middle on what it
writes."""
MAC_READS, MAC_WRITES = 4 * 20_000, 4 * 24_000
PARAMETERS, SUMS, SENT, SPREAD_FROM, PACKED, CONSUMED = 0, 250, 500, 750, 1000, (1250, 1500)
"""Rows of wide memory, of each unit its own."""
EVERY_UNIT = (1 << chip.TILE_UNITS) - 1


@dataclass(frozen=True)
class Knobs:
    """What a program is drawn by: shares from 0 to 1, and numbers.

    Attributes:
        stalls: of 256 transfers with the ring and the mesh, those that wait.
        groups: of instructions that are guarded by the same beginning of the flag.
        units: share of units with instructions in a group.
        each: most instructions of a unit in a group.
        longest: elements of an instruction.
        guards: share of instructions that are guarded.
        steps: fences of a group before the last.
        barriers: share of fences that wait for units.
        gaps: most cycles between instructions.
        lanes: of a sum.
        keeps: share of instructions of the tensor unit whose sums stay in it.
        whole: share of instructions whose rows are whole, and not of a word each.
        scales: share of the spreader's for the scale/bias buffer.
        constants: share of the mesh's that write one.
        late: share of rows and words that come late.
        turns: share of rows that end one.
        reset: the program is broken off.
        favoured: a unit that always has instructions.
    """

    stalls: int = 0
    groups: int = 3
    units: float = 0.5
    each: int = 2
    longest: int = 20
    guards: float = 0.4
    steps: int = 3
    barriers: float = 0.3
    gaps: int = 0
    lanes: int = 4
    keeps: float = 0.5
    whole: float = 0.5
    scales: float = 0.3
    constants: float = 0.3
    late: float = 0.2
    turns: float = 0.3
    reset: bool = False
    favoured: tuple[str, ...] = ()


ANY: Mapping[str, tuple[Any, ...]] = {
    "stalls": (0, 0, 60, 150, 230),
    "groups": (1, 2, 4),
    "units": (0.2, 0.5, 1.0),
    "each": (1, 2, ROOM),
    "longest": (1, 3, 20, MOST),
    "guards": (0.0, 0.4, 1.0),
    "steps": (0, 3, 20),
    "barriers": (0.0, 0.3, 0.8),
    "gaps": (0, 0, 3, 20),
    "lanes": (1, 4, 16, 64),
    "keeps": (0.0, 0.5, 1.0),
    "whole": (0.0, 0.5, 1.0),
    "late": (0.0, 0.3, 1.0),
}

_TENSOR = {"favoured": (MAC,)}
_PACKER = {"favoured": (PACK,)}
_SPREADER = {"favoured": (SPREAD,)}
_SENDER = {"favoured": (SEND,)}
_CONSUMERS = {"favoured": CONSUME}
_LINKS = {"favoured": LINK}
_SHORT = {"longest": 1, "each": ROOM, "groups": 4}
RECIPES: Mapping[str, Mapping[str, Any]] = {
    "queue_full": {"units": 1.0, "each": ROOM, "gaps": 0},
    "unit_full": {"units": 0.2, "each": 8, "guards": 0.0, "gaps": 0, "longest": 20},
    "fence_at_head": {"barriers": 0.9, "steps": 3},
    "iteration_waits": _TENSOR | {"guards": 1.0, "steps": 20},
    "sums_wait": _TENSOR | {"lanes": 64, "keeps": 1.0, "guards": 0.0},
    "results_leave": _TENSOR | {"lanes": 64, "keeps": 1.0},
    "row_waits_for_ring": _SENDER | {"stalls": 230},
    "row_a_held": _CONSUMERS | {"guards": 1.0, "steps": 20, "late": 0.0},
    "row_b_held": _CONSUMERS | {"guards": 1.0, "steps": 20, "late": 0.0},
    "row_packed": _PACKER | {"guards": 1.0, "steps": 20},
    "word_waits_to_pack": _PACKER | {"guards": 1.0, "steps": 20},
    "word_waits_to_spread": _SPREADER | {"guards": 1.0, "steps": 20},
    "words_full": _LINKS | {"guards": 1.0, "constants": 0.0, "late": 0.0, "stalls": 0},
    "words_wait": _LINKS | {"stalls": 230},
    "words_here": _LINKS | {"constants": 0.0, "late": 0.3},
    "reset": {"reset": True, "units": 1.0},
    "last_iteration": _TENSOR | _SHORT,
    "last_result": _TENSOR | _SHORT | {"keeps": 1.0},
    "last_row_packed": _PACKER | _SHORT,
    "last_word_spread": _SPREADER | _SHORT,
    "last_row_sent": _SENDER | _SHORT,
    "last_row_consumed": _CONSUMERS | _SHORT,
    "last_word_sent": _LINKS | _SHORT,
    "last_word_received": _LINKS | _SHORT,
    "instruction_taken": _SHORT | {"gaps": 3},
    "tensor_begins": _TENSOR | _SHORT,
    "packer_begins": _PACKER | _SHORT,
    "spreader_begins": _SPREADER | _SHORT,
    "sender_begins": _SENDER | _SHORT,
    "consumer_begins": _CONSUMERS | _SHORT,
    "link_begins": _LINKS | _SHORT,
    "fence_passes": {"steps": 20, "barriers": 0.3},
    "iteration": _TENSOR | {"longest": MOST},
    "sums_leave": _TENSOR | {"keeps": 1.0, "lanes": 4},
    "sums_written": _TENSOR | {"keeps": 0.0, "longest": MOST},
    "result_written": _TENSOR | {"keeps": 1.0, "lanes": 16},
    "word_packed": _PACKER | {"longest": MOST},
    "row_written": _PACKER | {"whole": 0.0, "longest": MOST},
    "row_read": _SPREADER | {"whole": 0.0, "longest": MOST},
    "word_spread": _SPREADER | {"scales": 0.0, "longest": MOST},
    "scales_written": _SPREADER | {"scales": 1.0, "longest": MOST},
    "row_sent": _SENDER | {"longest": MOST},
    "row_arrives": _CONSUMERS | {"longest": MOST, "guards": 0.0},
    "row_consumed": _CONSUMERS | {"longest": MOST},
    "word_sent": _LINKS | {"longest": MOST},
    "word_arrives": _LINKS | {"longest": MOST, "constants": 0.0},
    "word_received": _LINKS | {"longest": MOST},
    "turn_counted": _CONSUMERS | {"turns": 1.0, "longest": MOST},
}

IMPOSSIBLE = (
    ("queue_full begins|queue_full lasts", "instruction_taken", "there is no room"),
    (
        "fence_at_head ends|unit_full begins|unit_full lasts",
        "fence_passes",
        "no fence is at the head",
    ),
    ("unit_full ends", "fence_passes", "what has waited leaves in this cycle"),
    (
        "iteration_waits *|sums_wait *|results_leave *|last_iteration|last_result",
        "tensor_begins",
        "the unit begins a cycle behind the one in which its way out is found empty",
    ),
    (
        "iteration_waits begins|iteration_waits lasts|sums_wait begins|sums_wait lasts",
        "iteration|sums_leave|sums_written",
        "it waits",
    ),
    ("last_result", "iteration|sums_leave|sums_written", "all sums have left before"),
    ("results_leave ends", "result_written", "none is left"),
    (
        "row_packed begins|row_packed lasts|word_waits_to_pack *|last_row_packed",
        "packer_begins",
        "the unit begins when it is idle, and this is a part of an instruction",
    ),
    (
        "word_waits_to_spread *|last_word_spread",
        "spreader_begins",
        "the same of this unit",
    ),
    ("row_waits_for_ring *|last_row_sent", "sender_begins", "and of this"),
    ("word_waits_to_pack begins|word_waits_to_pack lasts", "word_packed", "it waits"),
    ("last_row_packed", "word_packed", "all words have been read before"),
    ("row_packed ends", "row_written", "it was written in the cycle before"),
    ("row_waits_for_ring begins|row_waits_for_ring lasts", "row_sent", "it waits"),
    (
        "word_waits_to_spread begins|word_waits_to_spread lasts",
        "row_read|word_spread|scales_written",
        "a row is read with its first word, which waits",
    ),
    (
        "row_a_held begins",
        "turn_counted",
        "the ring brings a row at a time, and the turn of one of channel B counts a cycle later",
    ),
    ("row_b_held ends", "turn_counted", "the row whose turn counts has come a cycle before"),
)

TILE = Record(1, "tile_coincidences", Knobs, ANY, RECIPES, IMPOSSIBLE)


def small_tile() -> Design:
    """A tile with queues of three places and links of four words, and the module that counts."""
    from darwinn_rtl.parameters import RATIO
    from darwinn_rtl.tile.bench import design

    sizes = {RATIO: 1, "tile_queue": ROOM, "unit_queue": ROOM, "mesh_fifo_words": 4}
    return replace(TILE.counted(design(1), "tile"), sizes=sizes, optimization="1")


class _NoCore(Core):
    def __init__(self) -> None:
        self.flags = [0] * chip.SCALAR_FLAGS


class TileProgram:
    """Instructions for a tile, and what they leave in the slow model and on its borders."""

    def __init__(self, pair: TileAndModel, knobs: Knobs, random: Random) -> None:
        self.pair, self.knobs, self.random = pair, knobs, random
        self.go = random.choice((0, 0x7FF0, 0xFFF0))
        self.rows: list[tuple[int, ...]] = []
        self.words: dict[int, list[int]] = {link: [] for link in range(LINKS)}
        self.late: list[Callable[[], None]] = []

    def play(self) -> None:
        """Give all to the tile, let it come to its end, and compare."""
        knobs, random, pair = self.knobs, self.random, self.pair
        pair.rtl.flags[GO] = (self.go - 1) % 65536
        pair.slow.flags[GO] = self.go + knobs.groups * (LEAD + 1) - 1  # none waits in the model
        for _ in range(knobs.groups):
            self.group()
        if knobs.reset:
            pair.rtl.run(random.randint(0, 300))
            pair.rtl.reset()
            return
        pair.rtl.run(random.choice((0, 30, 300)))
        for comes in self.late:
            comes()
        pair.run(60_000)
        assert pair.rtl.idle
        assert [row.words for row in pair.rtl.rows_out()] == self.rows
        for link, words in self.words.items():
            assert pair.rtl.words_out(link) == words, LINK[link]

    def group(self) -> None:
        """Instructions of some units in any order, and the fences that let them go on."""
        knobs, random = self.knobs, self.random
        chosen = [
            name
            for name in UNITS
            if name in knobs.favoured or random.random() < knobs.units
            for _ in range(random.randint(1, knobs.each))
        ]
        random.shuffle(chosen)
        guarded = dict.fromkeys(UNITS, ROOM)
        for name in chosen:
            guards = guarded[name] > 0 and random.random() < knobs.guards
            guarded[name] -= 1  # those behind one that waits wait as well
            if guarded[name] < 0 and knobs.guards:
                continue
            self.instruction(name, self.guard(name) if guards else {})
            self.pause()
        for step in range(knobs.steps):
            self.fence(self.go + step * random.randint(1, 3), 0)
        self.fence(self.go + LEAD, 0)
        self.go += LEAD + 1
        if random.random() < knobs.barriers and not knobs.late:
            self.fence(self.go - 1, random.choice((EVERY_UNIT, random.getrandbits(10))))

    def pause(self) -> None:
        """Some cycles between two instructions."""
        if self.knobs.gaps:
            self.pair.rtl.run(self.random.randint(0, self.knobs.gaps))

    def fence(self, value: int, waits: int) -> None:
        """A fence that loads the flag."""
        loads = {"reset_flags": 1 << GO, "reset_value": value % 65536}
        self.pair.give("TileFence", {"wait_idle": waits, **loads})
        self.pause()

    def guard(self, name: str) -> Fields:
        """Watchers of both sides: each block of a depth waits for the next count of the flag."""
        table, random = BY_NAME[name], self.random
        slots = table.field("watcher_valid").count
        rest = [0] * (slots - 2)
        deepest = (1 << table.field("watcher_depth").width) - 1
        depths = [random.choice((0, 0, 1, deepest)) for _ in range(2)]
        first = [self.go + random.choice((0, 0, 1, 5)) for _ in range(2)]
        fields: Fields = {
            "watcher_valid": [1, 1, *rest],
            "watcher_flag": [int(GO)] * slots,
            "watcher_expected": [(count + 0x8000) % 65536 - 0x8000 for count in first] + rest,
            "watcher_stride": [random.choice((0, 1, 7)) for _ in range(2)] + rest,
            "watcher_depth": [*depths, *rest],
        }
        if any(field.name == "watcher_side" for field in table.fields):
            fields["watcher_side"] = [0, 1, *rest]
        return fields

    def count(self) -> int:
        """Elements of an instruction."""
        return self.random.randint(1, self.knobs.longest)

    def instruction(self, name: str, guard: Fields) -> None:
        """An instruction of a unit, to the tile and to the model."""
        makes = {MAC: self.sums, SPREAD: self.spread, PACK: self.pack, SEND: self.send}
        if name in makes:
            makes[name](guard)
        elif name in CONSUME:
            self.consume(name, guard)
        else:
            self.link(name, guard)

    def given(self, name: str, guard: Fields, **fields: Any) -> Fields:
        """Give it, with all its producers on; return its fields."""
        every = nothing(name) | guard | fields
        every |= {field: 1 for field in every if field.endswith("producer_increment")}
        if name == SEND:
            every["token_producer_increment"] = 0
        self.pair.give(name, every)
        return every

    def sums(self, guard: Fields) -> None:
        """Sums that stay in the unit and leave one by one, or begin and end in wide memory."""
        lanes, one, still = self.knobs.lanes, (1,) * 6, (0,) * 6
        words, keeps = -(-lanes // 4), self.random.random() < self.knobs.keeps
        count, passes = min(self.count(), 500 // words), 1 if keeps else 2
        walks = {
            "narrow_read": Walk((count, passes, *one), (4, 400, *still), base=MAC_READS),
            "parameter_read": Walk((count, passes, *one), (4, 400, *still), base=4 * PARAMETERS),
            "partial_sum": Walk((count, passes, *one), (4, 0, *still), base=4 * SUMS),
            "narrow_write": Walk((count * words, 1, *one), (4, 0, *still), base=MAC_WRITES),
        }
        fields = guard | {
            "main_limit": [count - 1, passes - 1, *still],
            "reduction_loops": 2 * (not keeps),
            "partial_sum_read": 3 if keeps else 1,
            "last_block_lanes": lanes - 1,
            "block_lanes": lanes - 1,
            "output_scale": 2.0**-10,
            "high_clip": 255.0,
        }
        for name, walk in walks.items():
            fields |= walk.fields(MAC, name)
        assert tensor_unit.run(self.pair.slow, MAC, self.given(MAC, fields))

    def spread(self, guard: Fields) -> None:
        """Words of rows, or scales and biases."""
        if self.random.random() < self.knobs.scales:
            steps = Walk((25, 2, 4, 1, 1, 1), (1, 64, 0, 0, 0, 0), base=32)
            fields = line(SPREAD, "wide_read", SCALES, SPREAD_FROM)
            fields |= steps.fields(SPREAD, "narrow_write") | {"scale_bias": 1}
        else:
            count, whole = self.count(), self.random.random() < self.knobs.whole
            fields = line(SPREAD, "wide_read", 1 if whole else count, SPREAD_FROM)
            fields |= line(SPREAD, "narrow_write", count, NARROW[SPREAD] + 1000)
            fields |= {"row_loop": 7 * whole}
        assert wide_to_narrow.run(self.pair.slow, self.given(SPREAD, guard, **fields))

    def pack(self, guard: Fields) -> None:
        """Rows of a word each, or of all words, turned or not."""
        count, whole = self.count(), self.random.random() < self.knobs.whole
        fields = line(PACK, "narrow_read", count, NARROW[PACK])
        fields |= line(PACK, "wide_write", 1 if whole else count, PACKED) | {"row_loop": 7 * whole}
        turns = self.random.choice((0, 0, 1))
        fields |= {"transpose": turns, "transpose_16bit": turns * self.random.randint(0, 1)}
        assert narrow_to_wide.run(self.pair.slow, self.given(PACK, guard, **fields))

    def send(self, guard: Fields) -> None:
        """Rows for the ring."""
        fields = self.given(SEND, guard, **line(SEND, "wide_read", self.count(), SENT), targets=1)
        rows, ends = ring_bus.send(self.pair.slow, {}, _NoCore(), fields, 1 << 16)
        assert ends
        self.rows += map(_numbers, rows)

    def consume(self, name: str, guard: Fields) -> None:
        """Rows from the ring, of any size."""
        channel, random, count = CONSUME.index(name), self.random, self.count()
        fields = line(name, "wide_write", count, CONSUMED[channel])
        coming = [
            [random.randbytes(4) for _ in range(random.choice((1, 3, 64)))] for _ in range(count)
        ]
        turns = [bool(channel) and random.random() < self.knobs.turns for _ in coming]
        self.comes(
            *(
                lambda row=row, turn=turn: self.pair.rtl.send_row(
                    RingRow(_numbers(row), channel, token=turn)
                )
                for row, turn in zip(coming, turns, strict=True)
            )
        )
        assert ring_bus.consume(self.pair.slow, self.given(name, guard, **fields), channel, coming)
        self.pair.slow.flags[TileFlag.RING_PRODUCER_B] += sum(turns)

    def link(self, name: str, guard: Fields) -> None:
        """Words to a neighbour and from the other one, or a constant; one side may be off."""
        random, number = self.random, LINK.index(name)
        sides = random.choice((1, 2, 3, 3))
        fields: Fields = {}
        if sides & 1:
            fields |= line(name, "narrow_read", self.count(), NARROW[name])
        coming: list[bytes] = []
        if sides & 2:
            count = self.count()
            fields |= line(name, "narrow_write", count, NARROW[name] + 1000)
            if random.random() < self.knobs.constants:
                fields |= {"immediate_valid": 1, "immediate": random.getrandbits(32)}
            else:
                coming = [random.randbytes(4) for _ in range(count)]
        self.comes(
            *(lambda word=word: self.pair.rtl.send_word(number, word) for word in _numbers(coming))
        )
        fields = self.given(name, guard, **fields)
        sent, ends = mesh_bus.send(self.pair.slow, name, fields)
        assert mesh_bus.receive(self.pair.slow, name, fields, coming) and ends
        self.words[number] += _numbers(sent)

    def comes(self, *arrivals: Callable[[], None]) -> None:
        """What arrives comes at once, or, from some point on, when all instructions have been
        given."""
        if self.late or self.random.random() < self.knobs.late:
            self.late += arrivals
            return
        for arrives in arrivals:
            arrives()


def _numbers(words: list[bytes]) -> tuple[int, ...]:
    return tuple(int.from_bytes(word, "little") for word in words)
