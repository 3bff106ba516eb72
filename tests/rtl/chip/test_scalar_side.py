"""PopInput, RingInfeed and RingOutfeed of the RTL: random instructions against the slow models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from chip_runs import ScalarSide
from darwinn_sim import chip
from darwinn_sim.isa.builder import build
from darwinn_sim.timing.description import chip_description
from exact_waits import exact_waits
from nightly import check_cases, nightly_too
from slow_model import input_pop as slow_pop
from slow_model import ring_bus as slow_ring
from slow_model.memory import Tile
from slow_model.traversal import walk
from stimulus import Walk, nothing
from unit_bench import Bench
from unit_cases import input_pop
from unit_cases.ring_scalar_side import infeeds, outfeeds

EXAMPLES = 100
OUTFEED_EXAMPLES = 60
"""Fewer: each has several rows to wait for."""

ROW_CYCLES = 110
"""More than a row takes on the ring."""

OUTFEED = 1 << chip.TILES


@nightly_too
def test_pops_fill_the_buffers(nightly: bool) -> None:
    """Buffers and flags agree; so does whether a watcher or a short stream holds the unit back."""
    check_cases("RTL PopInput", input_pop.cases(), check_pop, EXAMPLES, nightly=nightly)


def check_pop(case: tuple[dict[str, Any], dict[int, int], bytes]) -> None:
    fields, flags, stream = case
    both = ScalarSide(flags)
    if stream:
        both.stream(fields["fifo"], stream)
    both.give("PopInput", fields)
    left = slow_pop.run(both.slow, fields, stream)
    popped = (len(stream) - len(left)) // slow_pop.UNIT_BYTES[fields["fifo"]]
    both.compare(400 + len(stream))
    assert both.rtl.idle == (popped == len(walk(fields, "buffer")))


@pytest.mark.parametrize("fifo", [0, 1])
def test_a_pop_begins_with_the_bytes_that_wait(fifo: int) -> None:
    """Of its first unit some have come with what the pop before it has taken."""
    size = slow_pop.UNIT_BYTES[fifo]
    fields = nothing("PopInput") | {"fifo": fifo}
    fields |= Walk((1, 1, 1), (1, 0, 0), base=7).fields("PopInput", "buffer")
    for early in range(1, size, 1 if fifo else 7):
        both, stream = ScalarSide({}), bytes(range(1, 2 * size + 1))
        for part in (stream[: size + early], stream[size + early :]):
            both.give("PopInput", fields)
            both.rtl.run(100)
            both.rtl.unmap_all()
            both.stream(fifo, part)
            both.rtl.run(400)
        slow_pop.run(both.slow, fields, slow_pop.run(both.slow, fields, stream))
        both.compare(400)


@nightly_too
def test_infeeds_send_their_rows(nightly: bool) -> None:
    """The rows, taken whole by an outfeed, flags and turns agree; also where a watcher waits."""
    check_cases("RTL RingInfeed", infeeds(), check_infeed, EXAMPLES, nightly=nightly)


def check_infeed(case: tuple[dict[str, Any], dict[int, int]]) -> None:
    fields, flags = case
    fields |= {"targets": OUTFEED}
    both = ScalarSide(flags)
    whole, _ = slow_ring.infeed(Bench([]).slow_core(), {}, fields | {"watcher_valid": [0, 0]})
    words = sum(map(len, whole))
    to_host = all(len(row) % 2 == 0 for row in whole)
    # A word of scalar memory that is not sent takes what cannot go to the host in pairs.
    sent_from = {element.address % chip.SCALAR_MEMORY_WORDS for element in walk(fields, "buffer")}
    free = next(k for k in range(chip.SCALAR_MEMORY_WORDS) if k not in sent_from)
    taken: dict[str, Any] = {"row_words": fields["row_words"], "producer_increment": 0}
    taken |= {"producer_depth": 0, "watcher_valid": 0, "to_host": int(to_host)}
    units = Walk((words // 2 if to_host else words, 1, 1), (0, 0, 0), base=free)
    taken |= units.fields("RingOutfeed", "buffer")
    record = Bench([])
    tiles = {number: Tile(record.tiles[number]) for number in range(chip.TILES)}
    rows, ended = slow_ring.infeed(both.slow, tiles, fields)
    sent = sum(map(len, rows))
    assert slow_ring.outfeed(both.slow, taken, list(rows)) == ended
    both.collect(len(both.slow.output))
    both.give("RingOutfeed", taken)
    both.give("RingInfeed", fields)
    both.compare(400 + ROW_CYCLES * len(rows) + 4 * sent)
    both.compare_output()
    both.compare_tokens(fields["consumer_b"], tiles[0].flags[17 + fields["consumer_b"]])
    assert both.rtl.idle == ended


@nightly_too
def test_outfeeds_take_their_units(nightly: bool) -> None:
    """What reaches host or scalar memory agrees, for two outfeeds of one stream of rows."""
    check_cases("RTL RingOutfeed", outfeeds(), check_outfeed, OUTFEED_EXAMPLES, nightly=nightly)


def check_outfeed(case: tuple[dict[str, Any], int, dict[int, int]]) -> None:
    fields, rows, flags = case
    both = ScalarSide(flags)
    sender = Walk((8 * rows, 1, 1), (1, 0, 0)).fields("RingInfeed", "buffer")
    sender |= {"fifo": 0, "row_words": 63, "targets": OUTFEED, "sync_increment": 1}
    sender |= {"producer_increment": 0, "producer_depth": 0, "watcher_valid": [0, 0]}
    sender |= {"token_producer_increment": 0, "token_producer_depth": 0, "consumer_b": 0}
    sent, _ = slow_ring.infeed(both.slow, {}, sender)
    # Each row counts as long as the outfeed says; the rest of its words is not taken.
    stream = [row[: fields["row_words"] + 1] for row in sent]
    ended = all(slow_ring.outfeed(both.slow, fields, stream) for _ in range(2))
    both.collect(len(both.slow.output))
    for _ in range(2):
        both.give("RingOutfeed", fields)
    both.give("RingInfeed", sender)
    both.compare(400 + ROW_CYCLES * len(sent) + 2 * len(walk(fields, "buffer")))
    both.compare_output()
    assert both.rtl.idle == ended


def _blocks(name: str) -> tuple[dict[str, Any], Callable[[str, int], int]]:
    """Fields of an instruction of eight elements that produces nothing, and how many blocks of a
    depth there are."""
    fields = Walk((2, 2, 2), (1, 2, 4)).fields(name, "buffer")
    fields |= {"producer_increment": 0, "producer_depth": 0}
    elements = walk(fields, "buffer")
    return fields, lambda _, depth: sum(depth in each.begins for each in elements)


def test_a_watcher_waits_once_for_each_of_its_blocks() -> None:
    pop, begins = _blocks("PopInput")
    for fifo, size in enumerate(slow_pop.UNIT_BYTES):
        stream = bytes(k % 251 for k in range(8 * size))
        for wait in exact_waits("PopInput", ["buffer"], chip.SCALAR_FLAGS, begins):
            check_pop((pop | {"fifo": fifo} | wait.fields, wait.flags, stream))
    infeed, begins = _blocks("RingInfeed")
    off = {"token_producer_increment": 0, "token_producer_depth": 0, "sync_increment": 1}
    infeed |= off | {"fifo": 2, "row_words": 7, "consumer_b": 0}
    for wait in exact_waits("RingInfeed", ["buffer"], chip.SCALAR_FLAGS, begins):
        check_infeed((infeed | wait.fields, wait.flags))
    outfeed, begins = _blocks("RingOutfeed")
    for wait in exact_waits("RingOutfeed", ["buffer"], chip.SCALAR_FLAGS, begins):
        check_outfeed((outfeed | {"row_words": 15, "to_host": 0} | wait.fields, 1, wait.flags))


def test_a_full_outfeed_holds_the_ring() -> None:
    """Four rows wait before an outfeed that stands still; the others come when it goes on."""
    both = ScalarSide({2: 0})
    rows = 6
    sender = Walk((4 * rows, 1, 1), (1, 0, 0)).fields("RingInfeed", "buffer")
    both.give("RingInfeed", sender | {"fifo": 0, "row_words": 63, "targets": OUTFEED})
    units = Walk((32 * rows, 1, 1), (0, 0, 0)).fields("RingOutfeed", "buffer")
    waits = {"watcher_valid": 1, "watcher_flag": 2, "watcher_depth": 0, "watcher_expected": 1}
    both.collect(chip.ROW_BYTES * rows)
    both.give("RingOutfeed", units | waits | {"to_host": 1, "row_words": 63})
    both.rtl.run(ROW_CYCLES * rows)
    assert both.rtl.rows == chip_description("harness").outfeed_rows.value
    both.give("ScalarFence", {"reset_flags": 1 << 2, "reset_value": 1})
    both.rtl.settle()
    both.slow.output = bytes(both.slow.parameters[: chip.ROW_BYTES * rows])
    both.compare_output()


def test_fences_wait_and_load() -> None:
    """A fence waits for flags, units and tile fences, then loads flags and forgets the fences."""
    both = ScalarSide({0: 0})
    from darwinn_rtl.player import RtlTimeout

    stream = bytes(range(256)) * 2
    both.stream(1, stream)
    units = Walk((64, 1, 1), (1, 0, 0)).fields("PopInput", "buffer")
    both.give("PopInput", units | {"fifo": 1, "producer_increment": 1})
    both.give_tiles("TileFence", {"tiles": 0b101, "increment": 1})
    expected: dict[str, Any] = {
        "expected": [64, *[0] * 8],
        "expected_valid": 1,
        "wait_idle": 0b11111,
    }
    tiles = {"tile_fence_valid": 0b101, "tile_fence_count": 1, "reset_tile_fences": 0b101}
    both.give("ScalarFence", expected | tiles | {"reset_flags": 0b11, "reset_value": 7})
    assert both.rtl.activations[: len(stream)].tobytes() == stream
    assert both.rtl.scalar_flags.tolist()[:3] == [7, 7, 0]
    # The fences of the tiles are forgotten: the next one waits for another.
    waits = build([("ScalarFence", tiles)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("darwinn_rtl.player.STANDSTILL", 2500)
        begin = both.rtl.cycle
        with pytest.raises(RtlTimeout):
            both.rtl.hand_over("ScalarFence", waits)
        assert both.rtl.cycle - begin > 2500, "the fence did not wait"
