"""Ring producer and consumers of the RTL's tile: random instructions against the slow model."""

from __future__ import annotations

from typing import Any

import pytest
from darwinn_rtl.tile.bench import RingRow
from darwinn_sim import chip
from darwinn_sim.isa.codes import TileFlag
from functional_coverage import Coverage
from hypothesis import strategies as st
from nightly import nightly_too
from slow_model import ring_bus as slow
from slow_model.memory import Core
from slow_model.sync import produce
from slow_model.traversal import walk
from stimulus import NO_AIMS, Aims, Walk, near_edges
from tile_units import TileAndModel, check_unit, limit_of
from traversal_coverage import bins
from traversal_coverage import cover as cover_traversal
from unit_cases import ring_bus as unit

BINS = (
    *unit.BINS,
    "rows of fewer words",
    "too few rows",
    "stalls",
)


@st.composite
def cases(draw: Any, aims: Aims = NO_AIMS) -> tuple[Any, list[list[bytes]], int, int]:
    """Instructions for a producer and a consumer, rows for the consumer, stalls of the ring."""
    case = draw(unit.cases(aims=aims))
    places = len(walk(case[1], "wide_write"))
    count = draw(st.one_of(st.just(places), near_edges(0, places)))
    random = draw(st.randoms(use_true_random=False))
    sizes = [draw(st.sampled_from([64, 64, 4, 1, 63])) for _ in range(count)]
    rows = [[random.randbytes(4) for _ in range(size)] for size in sizes]
    return case, rows, random.getrandbits(32), draw(st.sampled_from([0, 64, 200]))


class _NoCore(Core):
    """The scalar core's flags, which the tile does not have."""

    def __init__(self) -> None:
        self.flags = [0] * 9


@nightly_too
def test_random_instructions_send_and_write_the_rows_of_the_slow_model(nightly: bool) -> None:
    """A producer and a consumer at once; memories, flags and rows agree, tokens included."""
    coverage = Coverage("RTL ring bus", (*bins(*unit.TRAVERSALS), *BINS))

    def check(case: tuple[Any, list[list[bytes]], int, int]) -> None:
        (sending, receiving, sender, flags), rows, seed, share = case
        channel = sending["consumer_b"]
        pair = TileAndModel(flags)
        sent, sending_ends = slow.send(pair.slow, {}, _NoCore(), sending, 1 << 16)
        receiving_ends = slow.consume(pair.slow, receiving, channel, rows)
        pair.rtl.stall(seed, share)
        for row in rows:
            words = tuple(int.from_bytes(word, "little") for word in row)
            pair.rtl.send_row(RingRow(words, channel))
        pair.give(("RingConsumerA", "RingConsumerB")[channel], receiving)
        pair.give("RingProducer", sending)
        pair.run(limit_of(len(sent) + len(rows), share))
        assert pair.rtl.idle == (sending_ends and receiving_ends), "end of the instructions"
        elements = walk(sending, "wide_read")[: len(sent)]
        expected = [
            RingRow(
                tuple(int.from_bytes(word, "little") for word in row),
                channel,
                sending["targets"],
                bool(produce(sending, "token_producer", element.ends)),
            )
            for row, element in zip(sent, elements, strict=True)
        ]
        assert pair.rtl.rows_out() == expected, "rows sent"
        cover_traversal(coverage, sending, "wide_read")
        cover_traversal(coverage, receiving, "wide_write")
        unit.cover(coverage, sending, receiving, sender)
        coverage.hit("producer held back", when=not sending_ends)
        coverage.hit("consumer held back", when=not receiving_ends)
        coverage.hit("rows of fewer words", when=any(len(row) < 64 for row in rows))
        coverage.hit("too few rows", when=len(rows) < len(walk(receiving, "wide_write")))
        coverage.hit("stalls", when=share and sent)

    check_unit(coverage, unit.TRAVERSALS, cases, check, nightly=nightly, instructions=2)


NO_COUNTS = {"producer_increment": 0, "producer_depth": 7}


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("value", [0, 3])
@pytest.mark.parametrize(("reset", "sides"), [(16, [0, 0]), (13, [0, 1]), (None, [0, 1])])
def test_the_read_side_goes_on_until_a_fence_loads_its_flag(
    reset: int | None, sides: list[int], value: int, start: int
) -> None:
    """docs/chip-facts.md: a producer's double buffer goes on across instructions."""
    pair = TileAndModel({})
    one = Walk((1, 1, 1, 1), (0, 0, 0, 0), base=20, double=(0, 5, start))
    fields = one.fields("RingProducer", "wide_read") | {"targets": 1}
    pair.give("RingProducer", fields)
    pair.load_flag(reset, value)
    pair.give("RingProducer", fields)
    pair.run()
    assert pair.rtl.idle
    sent = [[word.to_bytes(4, "little") for word in row.words] for row in pair.rtl.rows_out()]
    assert sent == [pair.slow.row(20 + 5 * (side ^ start)) for side in sides]


def test_the_read_side_goes_on_while_a_fence_waits() -> None:
    """It starts anew when the fence passes, and not before."""
    pair = TileAndModel({})
    one = Walk((1, 1, 1, 1), (0, 0, 0, 0), base=20, double=(0, 5, 0))
    fields = one.fields("RingProducer", "wide_read") | {"targets": 1}
    pair.let_a_fence_wait("RingProducer", fields, TileFlag.RING_BUS_WRITE)
    sent = [[word.to_bytes(4, "little") for word in row.words] for row in pair.rtl.rows_out()]
    assert sent == [pair.slow.row(20 + 5 * side) for side in (0, 1, 0)]


@pytest.mark.parametrize("other", [*range(chip.TILE_FLAGS), None])
def test_the_read_side_starts_anew_whatever_else_a_fence_loads(other: int | None) -> None:
    """Flag 16 alone, with each of the others, and all at once."""
    pair = TileAndModel({})
    every = (1 << chip.TILE_FLAGS) - 1
    loaded = every if other is None else 1 << 16 | 1 << other
    one = Walk((1, 1, 1, 1), (0, 0, 0, 0), base=20, double=(0, 5, 0))
    for _ in range(2):
        pair.give("RingProducer", one.fields("RingProducer", "wide_read") | {"targets": 1})
        pair.give("TileFence", {"wait_idle": 0x3FF, "reset_flags": loaded})
    pair.run()
    assert pair.rtl.idle
    sent = [[word.to_bytes(4, "little") for word in row.words] for row in pair.rtl.rows_out()]
    assert sent == [pair.slow.row(20)] * 2


def test_each_token_counts_one_on_its_channel() -> None:
    """Of rows that come one behind another, some with a token; the flags go over 16 bits."""
    flags = (int(TileFlag.RING_PRODUCER_A), int(TileFlag.RING_PRODUCER_B))
    tokens = ((1, 0, 1, 1, 1, 0, 1), (0, 1, 0, 1, 1, 0, 0))
    pair = TileAndModel({flags[0]: 0xFFFE, flags[1]: 7})
    for channel, name in enumerate(("RingConsumerA", "RingConsumerB")):
        write = Walk((7, 1, 1, 1), (1, 0, 0, 0), base=1000 + 100 * channel)
        fields = write.fields(name, "wide_write") | NO_COUNTS
        rows = [[bytes([channel, k, 0, 0])] * 64 for k in range(7)]
        for row, token in zip(rows, tokens[channel], strict=True):
            words = tuple(int.from_bytes(word, "little") for word in row)
            pair.rtl.send_row(RingRow(words, channel, token=bool(token)))
        pair.give(name, fields)
        assert slow.consume(pair.slow, fields, channel, rows)
        pair.slow.flags[flags[channel]] += sum(tokens[channel])
    pair.run()
    assert pair.rtl.idle


@pytest.mark.parametrize("reached", [3, 2])
@pytest.mark.parametrize("length", [1, 2, 300])
def test_a_watcher_of_every_element_waits_for_a_prologue_once(length: int, reached: int) -> None:
    """For its first element; the first of the body has waited with it, and others wait each."""
    pair = TileAndModel({1: reached})
    places = Walk((3, 1, 1, 1), (1, 0, 0, 0), base=100, prologue=(3, 200, length, 200, 0))
    fields = places.fields("RingConsumerA", "wide_write") | NO_COUNTS | {"producer_depth": 3}
    for part in ("valid", "flag", "expected", "stride"):
        fields[f"watcher_{part}"] = [1, 0, 0]
    fields["watcher_depth"] = [0, 0, 0]
    rows = [
        [(64 * k + word).to_bytes(4, "little") for word in range(64)] for k in range(length + 3)
    ]
    ends = slow.consume(pair.slow, fields, 0, rows)
    assert ends == (reached == 3)
    pair.give("RingConsumerA", fields)
    for row in rows:
        pair.rtl.send_row(RingRow(tuple(int.from_bytes(word, "little") for word in row), 0))
    pair.run()
    assert pair.rtl.idle == ends
