"""What random instructions seldom meet, of each unit of a tile that moves words: every watcher at
every depth, let pass exactly as often as it waits or once less, and every bit of an address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from darwinn_rtl.tile.bench import LINKS, RingRow, TileFailure
from darwinn_sim import chip
from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.isa.table import BY_NAME
from exact_waits import exact_waits
from slow_model import mesh_bus, narrow_to_wide, ring_bus, wide_to_narrow
from slow_model.memory import Core
from slow_model.traversal import walk
from stimulus import Walk, around_powers, line, nothing, signed_powers
from tile_units import LIMIT, TileAndModel

ROWS, WORDS = chip.WIDE_ROWS, chip.NARROW_BYTES // 4
ARRIVING = 8
"""Words or rows that come for a unit."""

Fields = dict[str, Any]


class _NoCore(Core):
    def __init__(self) -> None:
        self.flags = [0] * 9


@dataclass
class Done:
    """Whether an instruction ends, and what it sends meanwhile."""

    ends: bool
    rows: list[list[bytes]] = field(default_factory=list)
    words: dict[int, list[bytes]] = field(default_factory=dict)


@dataclass(frozen=True)
class Unit:
    """An instruction; the places that the traversals of its sides have; what the slow model makes
    of it, which gives the RTL what arrives meanwhile."""

    name: str
    places: dict[str, int]
    run: Callable[[TileAndModel, Fields], Done]

    def fields(self, counts: tuple[int, ...], bases: dict[str, int]) -> Fields:
        """Those of traversals of ``counts`` elements, one behind another; all else is off."""
        found = nothing(self.name)
        for side, name in enumerate(self.places):
            inner = [1, 2, 4][: len(counts)]
            pad = len(found[f"{name}_limit"]) - len(counts)
            walked = Walk(
                (*counts, *[1] * pad), (*inner, *[0] * pad), base=bases.get(name, 100 + 50 * side)
            )
            found |= walked.fields(self.name, name)
        return found


def _produce(pair: TileAndModel, fields: Fields) -> Done:
    rows, ends = ring_bus.send(pair.slow, {}, _NoCore(), fields, 1 << 16)
    return Done(ends, rows)


def _consume(channel: int) -> Callable[[TileAndModel, Fields], Done]:
    def run(pair: TileAndModel, fields: Fields) -> Done:
        rows = [[(64 * k + w).to_bytes(4, "little") for w in range(64)] for k in range(ARRIVING)]
        for row in rows:
            pair.rtl.send_row(RingRow(_numbers(row), channel))
        return Done(ring_bus.consume(pair.slow, fields, channel, rows))

    return run


def _mesh(link: int, name: str) -> Unit:
    def run(pair: TileAndModel, fields: Fields) -> Done:
        words = [bytes([link, k, 3, 4]) for k in range(ARRIVING)]
        for word in _numbers(words):
            pair.rtl.send_word(link, word)
        sent, sending_ends = mesh_bus.send(pair.slow, name, fields)
        ends = mesh_bus.receive(pair.slow, name, fields, words) and sending_ends
        return Done(ends, words={link: sent})

    return Unit(name, {"narrow_read": WORDS, "narrow_write": WORDS}, run)


def _numbers(words: list[bytes]) -> tuple[int, ...]:
    return tuple(int.from_bytes(word, "little") for word in words)


UNITS = (
    Unit("RingProducer", {"wide_read": ROWS}, _produce),
    Unit("RingConsumerA", {"wide_write": ROWS}, _consume(0)),
    Unit("RingConsumerB", {"wide_write": ROWS}, _consume(1)),
    Unit(
        "NarrowToWide",
        {"narrow_read": WORDS, "wide_write": ROWS},
        lambda pair, fields: Done(narrow_to_wide.run(pair.slow, fields)),
    ),
    Unit(
        "WideToNarrow",
        {"wide_read": ROWS, "narrow_write": WORDS},
        lambda pair, fields: Done(wide_to_narrow.run(pair.slow, fields)),
    ),
    *(_mesh(link, name) for link, name in enumerate(mesh_bus.DIRECTIONS)),
)

units = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)


def check(unit: Unit, fields: Fields, flags: dict[int, int], limit: int = LIMIT) -> bool:
    """Both do the same; whether the instruction ends."""
    pair = TileAndModel(flags)
    done = unit.run(pair, fields)
    pair.give(unit.name, fields)
    pair.run(limit)
    assert pair.rtl.idle == done.ends, "end of the instruction"
    assert [row.words for row in pair.rtl.rows_out()] == [_numbers(row) for row in done.rows]
    for link in range(LINKS):
        assert tuple(pair.rtl.words_out(link)) == _numbers(done.words.get(link, []))
    return done.ends


@units
def test_a_watcher_waits_once_for_each_of_its_blocks(unit: Unit) -> None:
    plain = unit.fields((2, 2, 2), {})

    def begins(traversal: str, depth: int) -> int:
        return sum(depth in element.begins for element in walk(plain, traversal))

    for wait in exact_waits(unit.name, tuple(unit.places), chip.TILE_FLAGS, begins):
        assert check(unit, {**plain, **wait.fields}, wait.flags) == wait.passes


@units
def test_every_bit_of_an_address_counts(unit: Unit) -> None:
    for name, places in unit.places.items():
        bits = [1 << bit for bit in range(places.bit_length())]
        for base in {0, places - 2, *bits, *(bit - 1 for bit in bits)}:
            if base + 2 <= places:
                assert check(unit, unit.fields((2,), {name: base}), {})


def test_every_bit_of_a_loop_counts() -> None:
    """More elements than a memory has places: words to a neighbour, all from the same one."""
    unit = next(each for each in UNITS if each.name == "MeshSouth")
    plain = unit.fields((), {})
    loops = len(plain["narrow_read_limit"])
    for loop in range(loops):
        for bit in range(8, 16) if loop == 0 else (15,):
            counts = [1] * loops
            counts[loop] += 1 << bit
            long = Walk(tuple(counts), (0,) * loops, base=100).fields(unit.name, "narrow_read")
            assert check(unit, {**plain, **long}, {}, 1 << 18)


@units
def test_a_reset_at_any_moment_leaves_nothing_behind(unit: Unit) -> None:
    """Of an instruction with a double buffer, whose side goes on to the next where flag 16 guards
    it."""
    fields = unit.fields((2, 2), {}) | {f"{name}_double_offset": 300 for name in unit.places}
    fields |= {f"{name}_double_start": 1 for name in unit.places}
    watchers = len(fields["watcher_valid"])
    fields["watcher_valid"] = [1] + [0] * (watchers - 1)
    fields["watcher_flag"] = [int(TileFlag.RING_BUS_WRITE)] * watchers
    fields["watcher_depth"] = [3] * watchers
    whole = TileAndModel({})
    unit.run(whole, fields)
    whole.give(unit.name, fields)
    for cycles in range(whole.run() + 1):
        broken_off = TileAndModel({})
        unit.run(broken_off, fields)
        broken_off.give(unit.name, fields)
        broken_off.rtl.run(cycles)
        assert check(unit, fields, {})


@units
def test_every_bit_of_a_stride_and_of_a_reset_counts(unit: Unit) -> None:
    """Of three elements, the second pass being shorter by one; forward and backward."""
    plain = unit.fields((3,), {})
    for name, places in unit.places.items():
        rest = len(plain[f"{name}_limit"]) - 2
        for step in signed_powers(unit.name, f"{name}_alternate_reset"):
            base = 0 if step > 0 else places - 3
            steps = (step, 2, *[0] * rest)
            short = Walk((2, 2, *[1] * rest), steps, base=base, alternate=(1, 1))
            if abs(step) < places - 3:
                assert check(unit, {**plain, **short.fields(unit.name, name)}, {}), (name, step)


@units
def test_every_bit_of_the_distance_of_a_double_buffer_counts(unit: Unit) -> None:
    """There and back, from either side on."""
    plain = unit.fields((3,), {})
    for name, places in unit.places.items():
        rest = len(plain[f"{name}_limit"]) - 1
        for distance in around_powers(places - 3):
            double = (0, distance, distance & 1)
            walked = Walk((3, *[1] * rest), (1, *[0] * rest), double=double)
            assert check(unit, {**plain, **walked.fields(unit.name, name)}, {}), (name, distance)


SPREADER = next(each for each in UNITS if each.name == "WideToNarrow")


def _prologues(blocks: int, prologue: tuple[int, int, int, int, int]) -> Fields:
    """So many words, the last of memory, and a prologue before each of them."""
    counts, steps = (1, blocks, 1, 1, 1, 1), (0, 1, 0, 0, 0, 0)
    words = Walk(counts, steps, base=WORDS - blocks, prologue=prologue)
    fields = nothing(SPREADER.name) | {"row_loop": 7}
    fields |= words.fields(SPREADER.name, "narrow_write")
    rows = wide_to_narrow.rows_needed(fields)
    return fields | Walk((rows, 1, 1, 1), (0, 0, 0, 0)).fields(SPREADER.name, "wide_read")


def test_every_bit_of_the_length_of_a_prologue_counts() -> None:
    for bit in range(BY_NAME[SPREADER.name].field("narrow_write_prologue_inner_limit").width):
        length = (1 << bit) + 1
        assert check(SPREADER, _prologues(1, (0, 0, length, 0, 0)), {}, LIMIT + length)


@pytest.mark.parametrize("base", [1, WORDS - 100])
def test_a_prologue_begins_anew_however_far_its_next_base_is(base: int) -> None:
    """It goes on where that is the last base; beyond it, and beyond all that 16 bits can name, it
    begins at the first."""
    for step in around_powers(1 << 16):
        for last_base in (base, base + step - 1, base + step):
            if last_base < WORDS:
                assert check(SPREADER, _prologues(4, (0, base, 1, last_base, step)), {})


@units
def test_a_place_behind_the_last_ends_the_run(unit: Unit) -> None:
    """Whichever side it is of, with a line that says so."""
    for name, places in unit.places.items():
        pair = TileAndModel({})
        for number in range(2):
            for link in range(LINKS):
                pair.rtl.send_word(link, number)
            pair.rtl.send_row(RingRow((number,), int(unit.name.endswith("B"))))
        pair.give(unit.name, unit.fields((2,), {name: places - 1}))
        with pytest.raises(TileFailure, match=r"outside (narrow|wide) memory"):
            pair.rtl.run(LIMIT)


def test_every_bit_of_the_loop_of_an_alternate_limit_counts() -> None:
    """Its last pass is the one that is shorter, and no other."""
    for bit in range(13):
        passes = (1 << bit) + 1
        count = 2 * passes - 1
        walked = Walk((2, passes, 1, 1, 1, 1), (1, 0, 0, 0, 0, 0), base=100, alternate=(1, 1))
        fields = nothing("NarrowToWide") | walked.fields("NarrowToWide", "narrow_read")
        fields |= line("NarrowToWide", "wide_write", -(-count // 64)) | {"row_loop": 7}
        pair = TileAndModel({})
        pair.give("NarrowToWide", fields)
        assert narrow_to_wide.run(pair.slow, fields)
        pair.run(LIMIT + count)
        assert pair.rtl.idle, bit
