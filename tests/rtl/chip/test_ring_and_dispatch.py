"""Moments at the ring, the dispatch and the scalar fence that whole programs do not bring about."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from chip_runs import rtl_chip
from darwinn_sim import chip
from darwinn_sim.errors import SimulationError
from darwinn_sim.isa.builder import build
from darwinn_sim.isa.codes import DescriptorTag, ScalarFlag, ScalarUnit, TileFlag
from darwinn_sim.timing.description import chip_description
from harness_runs import require_toolchain
from stimulus import Walk
from stimulus import line as _line

OUTFEED = 1 << chip.TILES
ROW = chip.ROW_WORDS
RESULT = chip.SCALAR_MEMORY_WORDS // 2
"""Where rows come back to in scalar memory; those that go out stand at its beginning."""
ALL = (1 << chip.TILES) - 1
SHORT = 200
"""Cycles without any progress after which a wait is taken for one without end."""


class Chip:
    """The RTL's chip after reset, with random words in scalar memory."""

    def __init__(self, rtl: Any = None) -> None:
        self.rtl = rtl or rtl_chip()
        self.rtl.reset()
        assert not self.rtl.scalar_flags.any()
        assert not self.rtl.tile_flags.any()
        words = self.rtl.scalar_memory.size
        self.rtl.scalar_memory[:] = np.random.default_rng(7).integers(1 << 32, size=words)
        self.rows = self.rtl.scalar_memory[: RESULT // ROW * ROW].reshape(-1, ROW).copy()

    def give(
        self, name: str, fields: dict[str, Any], tiles: int = 0, base: int | None = None
    ) -> None:
        self.rtl.hand_over(
            name, build([(name, fields | ({"tiles": tiles} if tiles else {}))]), tiles, base
        )

    def infeed(self, row: int, targets: int, channel: int = 0, **more: int) -> None:
        """Send a row of scalar memory."""
        walk = _line("RingInfeed", "buffer", ROW, ROW * row)
        fixed = {"fifo": 2, "row_words": ROW - 1, "targets": targets, "consumer_b": channel}
        self.give("RingInfeed", walk | fixed | more)

    def consume(self, tile: int, channel: int, rows: int, base: int) -> None:
        name = f"RingConsumer{'AB'[channel]}"
        counts = {"producer_increment": 1, "producer_depth": 0}
        self.give(name, _line(name, "wide_write", rows, base) | counts, 1 << tile)

    def send(self, tile: int, row: int, *, token: int = 0) -> None:
        """Have a tile send a row of wide memory to the outfeed."""
        counts = {"token_producer_increment": token, "token_producer_depth": 7}
        fields = {"wide_read_base": row, "targets": OUTFEED}
        self.give("RingProducer", fields | counts, 1 << tile)

    def collect(self, rows: int, **more: int) -> None:
        walk = _line("RingOutfeed", "buffer", ROW * rows, RESULT)
        self.give("RingOutfeed", walk | {"row_words": ROW - 1} | more)

    def collected(self, rows: int) -> list[int]:
        """Which rows have come back, by the numbers of those that went out."""
        came = self.rtl.scalar_memory[RESULT : RESULT + ROW * rows].reshape(rows, ROW)
        return [int(np.flatnonzero((self.rows == row).all(axis=1))[0]) for row in came]

    def flag(self, tile: int, flag: TileFlag) -> int:
        return int(self.rtl.tile_flags[tile, flag])


SENDER_ROWS = 5
"""Where the rows that a tile sends stand in its wide memory."""


def _send(playing: Chip, sender: int | None, row: int, channel: int) -> None:
    """Send a row to tile 0: the infeed does, or a tile that has it."""
    if sender is None:
        playing.infeed(row, 1, channel)
    else:
        fields = {"wide_read_base": SENDER_ROWS + row, "targets": 1, "consumer_b": channel}
        playing.give("RingProducer", fields, 1 << sender)


@pytest.mark.parametrize("sender", [None, 2, 15])
@pytest.mark.parametrize("full", [0, 1])
def test_rows_wait_for_room_on_their_own_channel(full: int, sender: int | None) -> None:
    """While nobody takes the row on one channel, the other goes on, and no row is lost."""
    playing, free = Chip(), 1 - full
    flags = (TileFlag.RING_BUS_READ_A, TileFlag.RING_BUS_READ_B)
    if sender is not None:
        playing.consume(sender, 0, 3, base=SENDER_ROWS)
        for row in range(3):
            playing.infeed(row, 1 << sender)
        # The tile beside it has sent on the channel that is free, to where there is room.
        elsewhere = {"targets": OUTFEED, "consumer_b": free}
        playing.give("RingProducer", elsewhere, 1 << (sender ^ 1))
        playing.collect(1)
        playing.rtl.settle()
    _send(playing, sender, 0, full)
    playing.consume(0, free, 1, base=100)
    _send(playing, sender, 1, free)
    playing.rtl.run(400)
    assert playing.flag(0, flags[free]) == 1
    _send(playing, sender, 2, full)  # there is no room for it yet
    playing.rtl.run(400)
    playing.consume(0, full, 2, base=101)
    playing.rtl.run(400)
    assert playing.flag(0, flags[full]) == 2
    for row in (100, 101, 102):
        playing.send(0, row)
    playing.collect(3)
    playing.rtl.settle()
    assert playing.collected(3) == [1, 0, 2]


def test_rows_of_a_tile_wait_for_room_in_the_outfeed() -> None:
    """More than it holds, sent long before anybody takes them."""
    playing, rows = Chip(), 8
    playing.consume(6, 0, rows, base=SENDER_ROWS)
    for row in range(rows):
        playing.infeed(row, 1 << 6)
    playing.rtl.settle()
    sent = _line("RingProducer", "wide_read", rows, SENDER_ROWS)
    playing.give("RingProducer", sent | {"targets": OUTFEED}, 1 << 6)
    playing.rtl.run(120 * rows)
    playing.collect(rows)
    playing.rtl.settle()
    assert playing.collected(rows) == list(range(rows))


@pytest.mark.parametrize("tile", [None, 6])
def test_an_outfeed_that_is_full_as_its_instruction_begins_has_no_room(tile: int | None) -> None:
    """The instruction waits for its flag long enough for a row that found room to arrive."""
    playing, rows = Chip(), 7
    if tile is not None:
        playing.consume(tile, 0, rows, base=SENDER_ROWS)
        for row in range(rows):
            playing.infeed(row, 1 << tile)
        playing.rtl.settle()
    sent = _line("RingProducer", "wide_read", rows, SENDER_ROWS) | {"targets": OUTFEED}
    if tile is not None:
        playing.give("RingProducer", sent, 1 << tile)
    for row in range(rows if tile is None else 0):
        playing.infeed(row, OUTFEED)
    playing.rtl.run(120 * rows)
    waits = {"watcher_valid": 1, "watcher_flag": NOBODYS, "watcher_expected": 1}
    playing.collect(rows, **waits)
    playing.rtl.run(4 * 120)
    playing.give("ScalarFence", {"reset_flags": 1 << NOBODYS, "reset_value": 1})
    playing.rtl.settle()
    assert playing.collected(rows) == list(range(rows))


@pytest.mark.parametrize("outfeed", [0, 1])
@pytest.mark.parametrize("channel", [0, 1])
def test_a_token_counts_for_the_core_too(channel: int, outfeed: int) -> None:
    """On the flag of its channel, and of channel B on that of A as well if it goes to the outfeed:
    docs/chip-facts.md."""
    playing = Chip()
    _rows_in_tiles(playing, [3])
    before = playing.rtl.scalar_flags.copy()
    playing.consume(1, channel, 1, base=7)
    counts = {"token_producer_increment": 1, "token_producer_depth": 0, "consumer_b": channel}
    targets = 2 | OUTFEED * outfeed
    playing.give("RingProducer", counts | {"wide_read_base": 5, "targets": targets}, 1 << 3)
    if outfeed:
        playing.collect(1)
    playing.rtl.settle()
    wanted = {
        ScalarFlag.RING_PRODUCER_A: outfeed or not channel,
        ScalarFlag.RING_PRODUCER_B: channel,
    }
    for flag, count in wanted.items():
        assert playing.rtl.scalar_flags[flag] == before[flag] + count, flag.name


def _rows_in_tiles(playing: Chip, tiles: list[int]) -> None:
    """A row of its own number for each of these tiles, into row 5 of their wide memories."""
    for tile in tiles:
        playing.consume(tile, 0, 1, base=5)
        playing.infeed(tile, 1 << tile)
    playing.rtl.settle()


def test_the_infeed_goes_first_and_then_tiles_in_order() -> None:
    """All have a row while the ring carries another one.

    The infeed gathers its next row while the first tile's is carried, and goes before the others.
    """
    playing, tiles = Chip(), [0, 2, 3, 9, 15]
    _rows_in_tiles(playing, tiles)
    playing.infeed(5, OUTFEED)
    playing.rtl.run(80)  # it is on the ring
    for tile in reversed(tiles):
        playing.send(tile, 5)
    playing.infeed(6, OUTFEED)
    playing.rtl.run(20)
    playing.collect(len(tiles) + 2)
    playing.rtl.settle()
    assert playing.collected(len(tiles) + 2) == [5, tiles[0], 6, *tiles[1:]]


@pytest.mark.parametrize("watched", [0, 1])
@pytest.mark.parametrize("channel", [0, 1])
@pytest.mark.parametrize("of_tile", [0, 1])
def test_no_turn_is_lost_where_two_end_at_once(of_tile: int, channel: int, watched: int) -> None:
    """The infeed ends a turn in every cycle, and in one of them a row of a tile ends another, of
    this channel or the other; also where each of its units has waited for a number of its own."""
    playing, elements = Chip(), 6 * ROW
    _rows_in_tiles(playing, [3])
    before = playing.rtl.tile_flags[:, 17:19].copy()
    turn: dict[str, Any] = {"token_producer_increment": 1, "consumer_b": channel}
    if watched:
        playing.give("ScalarFence", {"reset_flags": 1 << NOBODYS, "reset_value": elements})
        ones = {f"watcher_{part}": [1, 0] for part in ("valid", "expected", "stride")}
        turn |= ones | {"watcher_flag": [NOBODYS, 0]}
    walk = _line("RingInfeed", "buffer", elements)
    playing.collect(1 + elements // ROW)
    fields = {"wide_read_base": 5, "targets": OUTFEED, "token_producer_increment": 1}
    playing.give("RingProducer", fields | {"token_producer_depth": 7, "consumer_b": of_tile}, 8)
    playing.rtl.run(45)
    playing.give("RingInfeed", walk | {"fifo": 2, "row_words": ROW - 1, "targets": OUTFEED} | turn)
    playing.rtl.settle()
    turns = playing.rtl.tile_flags[:, 17:19] - before
    expected = [elements * (c == channel) + (c == of_tile) for c in (0, 1)]
    assert turns.tolist() == [expected] * chip.TILES
    scalar = (ScalarFlag.RING_PRODUCER_A, ScalarFlag.RING_PRODUCER_B)[of_tile]
    assert int(playing.rtl.scalar_flags[scalar]) == 1


NOBODYS = 8
"""A flag that no unit counts."""


def test_an_instruction_reaches_each_of_its_tiles_once() -> None:
    """Tile 0 has no room for a thousand cycles, while tile 1 could take it again and again."""
    playing = Chip()
    busy = _line("MeshNorth", "narrow_write", 1000) | {"immediate_valid": 1}
    one = {"immediate_valid": 1, "write_producer_increment": 1, "write_producer_depth": 7}
    playing.give("MeshNorth", busy, 1)
    playing.give("TileFence", {"wait_idle": 0x3FF}, 1)
    for _ in range(64):
        playing.give("TileFence", {}, 1)
    playing.give("MeshNorth", one, 0b11)
    playing.give("MeshNorth", one, 0b10)
    playing.rtl.settle()
    counts = playing.rtl.tile_flags[:, TileFlag.MESH_INBOUND_FROM_SOUTH].tolist()
    assert counts == [1, 2, *[0] * (chip.TILES - 2)]


def _row_in_narrow_memory(playing: Chip, row: int, place: int) -> None:
    """Put a row of the infeed's into tile 0, its words from ``place`` on."""
    playing.infeed(row, 1)
    playing.consume(0, 0, 1, base=0)
    playing.rtl.settle()
    spread = _line("WideToNarrow", "narrow_write", ROW, place)
    playing.give("WideToNarrow", spread | {"row_loop": 6}, 1)
    playing.rtl.settle()


def test_a_base_from_the_core_reaches_a_tile_bit_by_bit() -> None:
    """A tile reads where the core says, whatever base stands in the instruction."""
    playing = Chip()
    for row in range(16):
        place = 1 << row
        _row_in_narrow_memory(playing, row, place)
        gather = _line("NarrowToWide", "narrow_read", ROW) | {"wide_write_base": 5, "row_loop": 6}
        playing.give("NarrowToWide", gather, 1, base=place)
        playing.rtl.settle()
        playing.send(0, 5)
        playing.collect(1)
        playing.rtl.settle()
        assert playing.collected(1) == [row]


def test_a_base_from_the_core_is_for_its_instruction_alone() -> None:
    """Of several that stand one behind another, of which some have one."""
    playing, places = Chip(), (0, 100, 20_000, 1000)
    for row, place in enumerate(places):
        _row_in_narrow_memory(playing, row, place)
    for row, place in enumerate(places):
        from_core = row % 2 == 0
        own = places[-1] if from_core else place
        gather = _line("NarrowToWide", "narrow_read", ROW, own) | {"wide_write_base": 5 + row}
        base = place if from_core else None
        playing.give("NarrowToWide", gather | {"row_loop": 6}, 1, base=base)
    playing.rtl.settle()
    for row in range(len(places)):
        playing.send(0, 5 + row)
    playing.collect(len(places))
    playing.rtl.settle()
    assert playing.collected(len(places)) == list(range(len(places)))


def _passes(playing: Chip, fields: dict[str, Any]) -> bool:
    """Whether the scalar core passes a fence, or would wait for ever."""
    return _ends(partial(playing.give, "ScalarFence", fields))


def _ends(wait: Callable[[], None]) -> bool:
    """Whether a wait ends, or nothing moves any more; a rule that is broken is neither."""
    from darwinn_rtl.player import RtlTimeout

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("darwinn_rtl.player.STANDSTILL", SHORT)
        try:
            wait()
        except RtlTimeout:
            return False
    return True


@pytest.mark.parametrize("flag", range(chip.SCALAR_FLAGS))
def test_a_scalar_fence_waits_for_each_flag_and_loads_each(flag: int) -> None:
    """A flag has reached a value up to half a turn behind it; those not named may be anything."""
    for value, awaited, passes in (
        (300, 300, True),
        (300, 301, False),
        (4, 5, False),
        (3, 7, False),
        (5, 65530, True),
        (65530, 5, False),
        (0x8000 + 7, 8, True),
        (0x8000 + 7, 7, False),
    ):
        playing = Chip()
        playing.rtl.scalar_flags[:] = awaited - 1
        playing.rtl.scalar_flags[flag] = value
        expected = [awaited] * chip.SCALAR_FLAGS
        fields = {"expected": expected, "expected_valid": 1 << flag}
        loads = {"reset_flags": 1 << flag, "reset_value": 4242}
        assert _passes(playing, fields | loads) == passes, (value, awaited)
        if passes:  # the other one still waits, and may not be taken back
            playing.rtl.run(2)
        wanted = [(awaited - 1) % 65536] * chip.SCALAR_FLAGS
        wanted[flag] = 4242 if passes else value
        assert playing.rtl.scalar_flags.tolist() == wanted


@pytest.mark.parametrize("count", [1, 17, 300])
def test_a_scalar_fence_counts_the_fences_of_each_tile(count: int) -> None:
    """Tile 4 has passed one less than tiles 0 and 15; what is not asked for may be missing."""
    playing, most = Chip(), 1 << 0 | 1 << 15
    for number in range(count):
        playing.give("TileFence", {"increment": 1}, most | (1 << 4 if number else 0))
        playing.give("TileFence", {}, ALL)  # counts nowhere
    playing.rtl.settle()
    assert _passes(playing, {"tile_fence_valid": most, "tile_fence_count": count})
    assert _passes(playing, {"tile_fence_valid": 1 << 4, "tile_fence_count": count - 1})
    forget = {"reset_tile_fences": 1 << 15}
    assert _passes(playing, {"tile_fence_valid": most, "tile_fence_count": count} | forget)
    assert _passes(playing, {"tile_fence_valid": 1, "tile_fence_count": count})
    assert not _passes(playing, {"tile_fence_valid": 1 << 15, "tile_fence_count": 1})
    playing.rtl.reset()
    assert not _passes(playing, {"tile_fence_valid": 1 << 4, "tile_fence_count": count})


def test_the_infeed_counts_by_its_increment() -> None:
    """All 16 bits of the increment count, and the flag wraps."""
    playing, counted = Chip(), 0
    for increment in (1, 16, 65535, 65530):
        by = {"sync_increment": increment, "producer_increment": 1, "producer_depth": 3}
        playing.infeed(1, 0, **by)
        playing.rtl.settle()
        counted = (counted + increment) % 65536
        assert int(playing.rtl.scalar_flags[ScalarFlag.SCALAR_INFEED]) == counted


def test_a_row_that_is_offered_stays_so() -> None:
    """A fence that loads the awaited flag takes nothing back, in whatever cycle: every row comes,
    once and in order."""
    rows = 4
    watch = {"watcher_valid": [1, 0], "watcher_flag": [int(ScalarFlag.AV_INFEED), 0]}
    words = _line("RingInfeed", "buffer", rows) | {"fifo": 2, "row_words": 0, "targets": OUTFEED}
    taken = _line("RingOutfeed", "buffer", rows, RESULT) | {"row_words": 0}
    load = {"reset_flags": 1 << ScalarFlag.AV_INFEED}
    for cycles in range(30):
        playing = Chip()
        playing.give("RingOutfeed", taken)
        playing.give("RingInfeed", words | watch)
        playing.rtl.run(cycles)
        playing.give("ScalarFence", load | {"reset_value": 0xFFFF})
        playing.rtl.run(20)
        playing.give("ScalarFence", load)
        playing.rtl.settle()
        came = playing.rtl.scalar_memory[RESULT : RESULT + rows]
        np.testing.assert_array_equal(came, playing.rows[0, :rows], f"after {cycles} cycles")


def test_words_of_the_core_go_between_units_of_the_outfeed() -> None:
    """Each unit of 8 bytes and each word of 4 leaves once and in its order, to the last byte."""
    playing, rows, words = Chip(), 3, [0xFEED0000 + k for k in range(40)]
    size = rows * chip.ROW_BYTES + 4 * len(words)
    host = np.zeros(size, np.uint8)
    playing.rtl.unmap_all()
    playing.rtl.map(0, host.ctypes.data, size)
    playing.rtl.descriptor(DescriptorTag.OUTPUT, 1 << 63, size)
    units = Walk((32 * rows, 1, 1), (0, 0, 0)).fields("RingOutfeed", "buffer")
    playing.give("RingOutfeed", units | {"to_host": 1, "row_words": ROW - 1})
    for row in range(rows):
        playing.infeed(row, OUTFEED)
    for k, word in enumerate(words):
        playing.rtl.push(word)
        playing.rtl.run(k % 13)
    playing.rtl.settle()
    left = playing.rows[:rows].tobytes()
    came, number = host.tobytes(), 0
    while came:
        if came[:4] == (0xFEED0000 + number).to_bytes(4, "little"):
            came, number = came[4:], number + 1
        else:
            assert came[:8] == left[:8]
            came, left = came[8:], left[8:]
    assert not left
    assert number == len(words)


def test_the_chip_is_not_done_while_output_waits_for_its_place() -> None:
    """Words that the DMA engine holds, without a descriptor that says where they go, wherever in a
    word of the bus that is."""
    playing, words = Chip(), np.arange(1, 4, dtype="<u4")
    for offset in range(8):
        host = np.zeros(offset + words.nbytes, np.uint8)
        playing.rtl.unmap_all()
        playing.rtl.map(0, host.ctypes.data, host.size)
        for word in words:
            playing.rtl.push(int(word))
        assert not _ends(playing.rtl.settle)
        playing.rtl.descriptor(DescriptorTag.OUTPUT, 1 << 63 | offset, words.nbytes)
        playing.rtl.settle()
        assert host.tobytes() == bytes(offset) + words.tobytes()


def test_the_chip_is_not_done_while_the_dma_engine_is_full_of_output() -> None:
    """A row is as much as it has room for."""
    playing, host = Chip(), np.zeros(chip.ROW_BYTES, np.uint8)
    playing.rtl.unmap_all()
    playing.rtl.map(0, host.ctypes.data, host.size)
    units = Walk((32, 1, 1), (0, 0, 0)).fields("RingOutfeed", "buffer")
    playing.give("RingOutfeed", units | {"to_host": 1, "row_words": ROW - 1})
    playing.infeed(0, OUTFEED)
    assert not _ends(playing.rtl.settle)
    playing.rtl.descriptor(DescriptorTag.OUTPUT, 1 << 63, host.size)
    playing.rtl.settle()
    assert host.tobytes() == playing.rows[0].tobytes()


def test_a_unit_that_is_offered_stays_so() -> None:
    """A fence that loads the awaited flag takes none back that waits for room at the host, in
    whatever cycle; the one behind it waits for the flag, and all come in order."""
    rows = 2
    units, flag = rows * chip.ROW_BYTES // 8, int(ScalarFlag.RING_OUTFEED)
    load = {"reset_flags": 1 << NOBODYS}
    watch = {"watcher_valid": 1, "watcher_expected": 1, "watcher_flag": NOBODYS}
    taken = _line("RingOutfeed", "buffer", units) | {"to_host": 1, "row_words": ROW - 1}
    for cycles in (*range(10, 50), 600):
        playing, host = Chip(), np.zeros(rows * chip.ROW_BYTES, np.uint8)
        playing.rtl.unmap_all()
        playing.rtl.map(0, host.ctypes.data, host.size)
        for row in range(rows):
            playing.infeed(row, OUTFEED)
        playing.rtl.run(600)
        playing.give("ScalarFence", load | {"reset_value": 1})
        playing.give("RingOutfeed", taken | watch | {"producer_increment": 1})
        playing.rtl.run(cycles)
        playing.give("ScalarFence", load | {"reset_value": 0})
        before = int(playing.rtl.scalar_flags[flag])
        assert before < units
        playing.rtl.descriptor(DescriptorTag.OUTPUT, 1 << 63, host.size)
        playing.rtl.run(200)
        if cycles == 600:  # it waits for room by now
            assert int(playing.rtl.scalar_flags[flag]) == before + 1
        playing.give("ScalarFence", load | {"reset_value": 1})
        playing.rtl.settle()
        assert int(playing.rtl.scalar_flags[flag]) == units
        assert host.tobytes() == playing.rows[:rows].tobytes()


@pytest.mark.parametrize("late", [0, 1])
def test_units_that_wait_for_room_at_the_host_have_waited_for_their_flag(late: int) -> None:
    """Each for a number of its own, once, however long there is no room; the flag is as much as the
    last one needs, or one less."""
    rows = 2
    units = rows * chip.ROW_BYTES // 8
    for missing in (0, 1):
        playing, host = Chip(), np.zeros(rows * chip.ROW_BYTES, np.uint8)
        playing.rtl.unmap_all()
        playing.rtl.map(0, host.ctypes.data, host.size)
        playing.give("ScalarFence", {"reset_flags": 1 << NOBODYS, "reset_value": units - missing})
        taken = _line("RingOutfeed", "buffer", units) | {"to_host": 1, "row_words": ROW - 1}
        ones = {f"watcher_{part}": 1 for part in ("valid", "expected", "stride")}
        playing.give("RingOutfeed", taken | ones | {"watcher_flag": NOBODYS})
        for row in range(rows):
            playing.infeed(row, OUTFEED)
        playing.rtl.run(600 * late)
        playing.rtl.descriptor(DescriptorTag.OUTPUT, 1 << 63, host.size - 8 * missing)
        playing.rtl.run(600)
        assert _ends(playing.rtl.settle) == (not missing)
        wanted = playing.rows[:rows].tobytes()[: host.size - 8 * missing]
        assert host.tobytes() == wanted + bytes(8 * missing)


@pytest.mark.parametrize("fifo", [0, 1, 2], ids=["parameters", "activations", "scalar memory"])
def test_a_row_closes_with_the_unit_that_reaches_its_length(fifo: int) -> None:
    """Also where a row is no whole number of units: it has the rest of the last one as well."""
    playing = Chip()
    buffer = (playing.rtl.parameters, playing.rtl.activations, playing.rtl.scalar_memory)[fifo]
    if fifo < 2:
        buffer[:] = np.random.default_rng(19).integers(256, size=buffer.size)
    words = buffer.view("<u4").copy()
    unit = (chip.PARAMETER_UNIT_BYTES, chip.ACTIVATION_UNIT_BYTES, 4)[fifo] // 4
    for row_words in range(ROW):
        size = -(-(row_words + 1) // unit) * unit
        playing.give(
            "RingOutfeed",
            _line("RingOutfeed", "buffer", 2 * size, RESULT) | {"row_words": size - 1},
        )
        sends = {"fifo": fifo, "row_words": row_words, "targets": OUTFEED}
        _moves(playing, "RingInfeed", 2 * size // unit, 0, **sends)
        before = playing.rtl.rows
        playing.rtl.settle()
        assert playing.rtl.rows - before == 2, row_words
        came = playing.rtl.scalar_memory[RESULT : RESULT + 2 * size]
        assert came.tolist() == words[: 2 * size].tolist(), row_words


@pytest.mark.parametrize("to_host", [0, 1], ids=["scalar memory", "host"])
def test_a_row_ends_with_the_unit_that_reaches_its_length(to_host: int) -> None:
    """Also where a row is no whole number of units: the last one has a word more of it."""
    playing, unit = Chip(), 1 + to_host
    for row_words in range(ROW):
        size = -(-(row_words + 1) // unit) * unit
        came = np.zeros(2 * size, "<u4")
        playing.rtl.unmap_all()
        playing.rtl.map(0, came.ctypes.data, came.nbytes)
        if to_host:
            playing.rtl.descriptor(DescriptorTag.OUTPUT, 1 << 63, came.nbytes)
        taken = _line("RingOutfeed", "buffer", 2 * size // unit, RESULT)
        playing.give("RingOutfeed", taken | {"to_host": to_host, "row_words": row_words})
        for row in range(2):
            playing.infeed(row, OUTFEED)
        playing.rtl.settle()
        if not to_host:
            came[:] = playing.rtl.scalar_memory[RESULT : RESULT + 2 * size]
        wanted = playing.rows[:2].view("<u4").reshape(2, ROW)[:, :size]
        assert came.tolist() == wanted.ravel().tolist(), row_words


@pytest.mark.parametrize("fifo", [0, 1], ids=["parameters", "activations"])
def test_a_unit_is_taken_in_whatever_comes_behind_it(fifo: int) -> None:
    """In the cycle in which all of its bytes are there."""
    tag = (DescriptorTag.PARAMETERS, DescriptorTag.INPUT)[fifo]
    flag = (ScalarFlag.PARAMETER_POP, ScalarFlag.AV_POP)[fifo]
    unit = (chip.PARAMETER_UNIT_BYTES, chip.ACTIVATION_UNIT_BYTES)[fifo]
    cycles = set()
    for units in (1, 2, 3, 9):
        playing, host = Chip(), np.zeros(unit * units, np.uint8)
        playing.rtl.unmap_all()
        playing.rtl.map(0, host.ctypes.data, host.size)
        walk = _line("PopInput", "buffer", units)
        playing.give("PopInput", walk | {"fifo": fifo, "producer_increment": 1})
        playing.rtl.descriptor(tag, 1 << 63, host.size)
        cycles.add(next(k for k in range(400) if _after_a_cycle(playing, int(flag))))
    assert len(cycles) == 1


def _after_a_cycle(playing: Chip, flag: int) -> int:
    playing.rtl.run(1)
    return int(playing.rtl.scalar_flags[flag])


@pytest.mark.parametrize("fifo", [0, 1, 2], ids=["parameters", "activations", "scalar memory"])
def test_the_infeed_reaches_every_place_of_its_buffers(fifo: int) -> None:
    """A row from each power of two on, and the last one."""
    playing = Chip()
    rtl = playing.rtl
    buffer = (rtl.parameters, rtl.activations, rtl.scalar_memory.view(np.uint8))[fifo]
    unit = (chip.PARAMETER_UNIT_BYTES, chip.ACTIVATION_UNIT_BYTES, 4)[fifo]
    buffer[:] = np.random.default_rng(11).integers(256, size=buffer.size)
    units, each = buffer.size // unit, chip.ROW_BYTES // unit
    taken = RESULT if fifo == 2 else units  # where rows come back to
    for base in (*(1 << k for k in range(taken.bit_length() - 1)), taken - each):
        first = min(base, taken - each)
        walk = _line("RingInfeed", "buffer", each, first)
        sends = {"fifo": fifo, "row_words": ROW - 1, "targets": OUTFEED}
        playing.collect(1)
        playing.give("RingInfeed", walk | sends)
        rtl.settle()
        came = rtl.scalar_memory[RESULT : RESULT + ROW].view(np.uint8)
        assert (came == buffer[unit * first : unit * first + chip.ROW_BYTES]).all(), first


NEVER = {"watcher_flag": [8, 8], "watcher_expected": [9, 9], "watcher_valid": [1, 1]}
WAITING: dict[ScalarUnit, tuple[str, dict[str, Any]]] = {
    ScalarUnit.AV_POP: ("PopInput", _line("PopInput", "buffer", 1) | {"fifo": 1}),
    ScalarUnit.PARAMETER_POP: ("PopInput", _line("PopInput", "buffer", 1) | {"fifo": 0}),
    ScalarUnit.RING_INFEED: ("RingInfeed", _line("RingInfeed", "buffer", 1) | NEVER),
    ScalarUnit.RING_OUTFEED: ("RingOutfeed", _line("RingOutfeed", "buffer", 1)),
}
"""An instruction of each unit that nothing comes for."""


def test_a_scalar_fence_waits_for_each_unit() -> None:
    """One has something to do that does not end; the others are idle."""
    every = sum(1 << unit for unit in WAITING)
    for unit, (name, fields) in WAITING.items():
        playing = Chip()
        playing.give(name, fields)
        playing.rtl.run(10)
        assert _passes(playing, {"wait_idle": every & ~(1 << unit)}), unit
        assert not _passes(playing, {"wait_idle": 1 << unit}), unit


@pytest.mark.parametrize("unit", WAITING, ids=lambda unit: unit.name)
def test_a_full_queue_holds_back_the_core(unit: ScalarUnit) -> None:
    """No instruction is taken that there is no room for, though other queues are empty."""
    playing, (name, fields) = Chip(), WAITING[unit]
    room = int(chip_description("harness").unit_queue.value)
    taken = 0
    while taken < 2 * room and _ends(partial(playing.give, name, fields)):
        taken += 1
    assert room <= taken <= room + 2


def _every_place(units: int, size: int) -> list[int]:
    """From each power of two on, and at the end, where so many units find room."""
    return [*(1 << k for k in range(units.bit_length()) if (1 << k) + size <= units), units - size]


def _moves(playing: Chip, name: str, count: int, base: int, **more: int) -> None:
    """Have a unit of the core move one unit after another from a place on."""
    playing.give(name, _line(name, "buffer", count, base) | more)


def _rows(playing: Chip, fifo: int, base: int, rows: int, each: int) -> bytes:
    """Rows of a buffer, from a unit on, as they come back over the ring."""
    sends = {"fifo": fifo, "row_words": ROW - 1, "targets": OUTFEED}
    playing.collect(rows)
    _moves(playing, "RingInfeed", each * rows, base, **sends)
    playing.rtl.settle()
    came: bytes = playing.rtl.scalar_memory[RESULT : RESULT + ROW * rows].tobytes()
    return came


@pytest.mark.parametrize("fifo", [0, 1], ids=["parameters", "activations"])
def test_pops_reach_every_place_of_their_buffers(fifo: int) -> None:
    """Wherever the infeed has read before; and nothing else is written."""
    playing, rows, random = Chip(), 2, np.random.default_rng(13)
    rtl, unit = playing.rtl, (chip.PARAMETER_UNIT_BYTES, chip.ACTIVATION_UNIT_BYTES)[fifo]
    buffer, each = (rtl.parameters, rtl.activations)[fifo], chip.ROW_BYTES // unit
    buffer[:] = random.integers(256, size=buffer.size)
    wanted = buffer.copy()
    tag = (DescriptorTag.PARAMETERS, DescriptorTag.INPUT)[fifo]
    for base in _every_place(buffer.size // unit, rows * each):
        place = slice(unit * base, unit * base + rows * chip.ROW_BYTES)
        for reads in (1, rows):
            host = random.integers(256, size=rows * chip.ROW_BYTES, dtype=np.uint8)
            rtl.unmap_all()
            rtl.map(0, host.ctypes.data, host.size)
            rtl.descriptor(tag, 1 << 63, host.size)
            _moves(playing, "PopInput", rows * each, base, fifo=fifo)
            rtl.settle()
            wanted[place] = host
            assert (buffer == wanted).all(), base
            assert (
                _rows(playing, fifo, base, reads, each) == host[: reads * chip.ROW_BYTES].tobytes()
            )


def test_the_outfeed_reaches_every_place_of_scalar_memory() -> None:
    """Nothing else is written."""
    playing = Chip()
    wanted = playing.rtl.scalar_memory.copy()
    for row, base in enumerate(_every_place(wanted.size, ROW), ROW):
        wanted[:ROW] = row
        playing.rtl.scalar_memory[:ROW] = row
        _moves(playing, "RingOutfeed", ROW, base, row_words=ROW - 1)
        playing.infeed(0, OUTFEED)
        playing.rtl.settle()
        wanted[base : base + ROW] = row
        assert (playing.rtl.scalar_memory == wanted).all(), base


COUNTING = {"producer_increment": 1, "producer_depth": 0}
COUNTS: dict[ScalarUnit, tuple[str, dict[str, Any], ScalarFlag]] = {
    ScalarUnit.AV_POP: ("PopInput", {"fifo": 1}, ScalarFlag.AV_POP),
    ScalarUnit.PARAMETER_POP: ("PopInput", {"fifo": 0}, ScalarFlag.PARAMETER_POP),
    ScalarUnit.RING_INFEED: (
        "RingInfeed",
        {"fifo": 2, "sync_increment": 1},
        ScalarFlag.SCALAR_INFEED,
    ),
    ScalarUnit.RING_OUTFEED: ("RingOutfeed", {}, ScalarFlag.RING_OUTFEED),
}
"""An instruction of each unit, which moves one unit and counts it."""


@pytest.mark.parametrize(
    "counted",
    [pytest.param((1,) * 4, id="all"), pytest.param((1, 0, 0, 1, 1, 0, 1, 0), id="some")],
)
@pytest.mark.parametrize("unit", COUNTS, ids=lambda unit: unit.name)
def test_a_scalar_fence_waits_for_all_instructions_of_a_unit(
    unit: ScalarUnit, counted: tuple[int, ...]
) -> None:
    """As many as wait, of one element each, with what they need there at once; each counts if it
    says so, whatever the one before it and the one behind it do."""
    playing, (name, fields, flag) = Chip(), COUNTS[unit]
    host = np.arange(len(counted) * chip.PARAMETER_UNIT_BYTES, dtype=np.uint16).astype(np.uint8)
    playing.rtl.unmap_all()
    playing.rtl.map(0, host.ctypes.data, host.size)
    for tag in (DescriptorTag.PARAMETERS, DescriptorTag.INPUT):
        playing.rtl.descriptor(tag, 1 << 63, host.size)
    for row in range(len(counted) if unit is ScalarUnit.RING_OUTFEED else 0):
        playing.infeed(row, OUTFEED)
    playing.rtl.run(600)
    for number, counts in enumerate(counted):
        _moves(playing, name, 1, number, **fields, **(COUNTING if counts else {}))
    playing.give("ScalarFence", {"wait_idle": 1 << unit})
    assert int(playing.rtl.scalar_flags[flag]) == sum(counted)


def test_a_scalar_fence_waits_for_output_that_has_not_come() -> None:
    """The outfeed has an instruction, and no row yet: its output has not been delivered."""
    playing = Chip()
    name, fields = WAITING[ScalarUnit.RING_OUTFEED]
    playing.give(name, fields | {"to_host": 1})
    playing.rtl.run(10)
    assert not _passes(playing, {"wait_idle": 1 << ScalarUnit.DRAIN})


@pytest.mark.nightly
@pytest.mark.parametrize("width", [4, 16, 32])
def test_bytes_go_through_the_chip_on_a_bus_of_any_width(width: int) -> None:
    """From the host into each buffer, over the ring, and back to the host with words of the core
    behind them, from any place in a word of the bus to any other."""
    from darwinn_rtl.chip.player import ChipPlayer, design

    playing, random = Chip(ChipPlayer(2026, design(1, DataBytes=width))), np.random.default_rng(17)
    rtl, words, rows = playing.rtl, [0xC0DE0000 + k for k in range(5)], 6
    given, end = rows * chip.ROW_BYTES, 4 * len(words)
    for offset in range(width):
        first, place = offset, 4096 + (7 * offset + 3) % width
        host = random.integers(256, size=3 * 4096, dtype=np.uint8)
        for fifo, unit in enumerate((chip.PARAMETER_UNIT_BYTES, chip.ACTIVATION_UNIT_BYTES)):
            wanted = host.copy()
            wanted[place : place + given] = host[first : first + given]
            wanted[place + given : place + given + end] = np.array(words, "<u4").view(np.uint8)
            rtl.unmap_all()
            rtl.map(0, host.ctypes.data, host.size)
            tag = (DescriptorTag.PARAMETERS, DescriptorTag.INPUT)[fifo]
            rtl.descriptor(tag, 1 << 63 | first, given)
            units = given // unit
            _moves(playing, "PopInput", units, 0, fifo=fifo)
            playing.give("ScalarFence", {"wait_idle": 1 << (1 - fifo)})
            sent = {"fifo": fifo, "row_words": ROW - 1, "targets": OUTFEED}
            _moves(playing, "RingInfeed", units, 0, **sent)
            _moves(playing, "RingOutfeed", given // 8, 0, row_words=ROW - 1, to_host=1)
            rtl.run(120 * rows)  # all that has room before it has its place
            rtl.descriptor(DescriptorTag.OUTPUT, 1 << 63 | place, given + end)
            rtl.run(120 * rows)
            for word in words:
                rtl.push(word)
            rtl.settle()
            assert (host == wanted).all(), (offset, fifo)


def test_the_queue_of_a_tile_holds_what_it_is_said_to() -> None:
    """Behind a fence that waits at its exit; one more waits in the dispatch."""
    playing = Chip()
    playing.give("MeshNorth", _line("MeshNorth", "narrow_write", 1), 1)  # a word that never comes
    playing.give("TileFence", {"wait_idle": 0x3FF}, 1)
    room, taken = int(chip_description("harness").tile_queue.value), 1
    while taken < 2 * room and _ends(partial(playing.give, "TileFence", {}, 1)):
        taken += 1
    assert taken in (room, room + 1)


RECEIVERS = (1 << 0, 1 << 15, OUTFEED)


@pytest.mark.parametrize("sender", [None, 2])
@pytest.mark.parametrize("full", RECEIVERS)
def test_a_row_waits_for_room_at_each_of_its_receivers(full: int, sender: int | None) -> None:
    """Nobody has it before the last of them can take it; then each has it once."""
    playing, waiting = Chip(), 1
    tiles = [target.bit_length() - 1 for target in RECEIVERS[:2]]
    if sender is not None:
        _rows_in_tiles(playing, [sender])
    if full == OUTFEED:
        waiting = int(chip_description("harness").outfeed_rows.value)
    for _ in range(waiting):
        playing.infeed(7, full)
    playing.rtl.settle()
    for tile in tiles:
        if full != 1 << tile:
            playing.consume(tile, 0, 1, base=100)
    if full != OUTFEED:
        playing.collect(1)
    before = playing.rtl.scalar_memory.copy()
    if sender is None:
        playing.infeed(2, sum(RECEIVERS))
    else:
        playing.give("RingProducer", {"wide_read_base": 5, "targets": sum(RECEIVERS)}, 1 << sender)
    playing.rtl.run(400)
    assert (playing.rtl.scalar_memory == before).all()
    assert [playing.flag(tile, TileFlag.RING_BUS_READ_A) for tile in tiles] == [0, 0]
    if full == OUTFEED:
        playing.collect(waiting + 1)
    else:
        playing.consume(full.bit_length() - 1, 0, 2, base=99)
    playing.rtl.settle()
    came = waiting + 1 if full == OUTFEED else 1
    assert playing.collected(came) == [7] * (came - 1) + [2]
    for tile in tiles:
        assert playing.flag(tile, TileFlag.RING_BUS_READ_A) == 1 + (full == 1 << tile)
        playing.send(tile, 100)
    playing.collect(2)
    playing.rtl.settle()
    assert playing.collected(2) == [2, 2]


def test_a_row_goes_where_it_is_sent_each_time() -> None:
    """The same row of a tile, to each tile on each channel, with a token or without."""
    playing, sender = Chip(), 3
    _rows_in_tiles(playing, [sender])
    flags = [TileFlag.RING_BUS_READ_A, TileFlag.RING_BUS_READ_B]
    tokens = [TileFlag.RING_PRODUCER_A, TileFlag.RING_PRODUCER_B]
    wanted = playing.rtl.tile_flags.astype(int)
    for tile in range(chip.TILES):
        for channel, token in ((0, 0), (1, 0), (1, 1), (0, 1)):
            playing.consume(tile, channel, 1, base=7)
            turn = {"token_producer_increment": token, "token_producer_depth": 7}
            row = {"wide_read_base": 5, "targets": 1 << tile, "consumer_b": channel}
            playing.give("RingProducer", row | turn, 1 << sender)
            wanted[tile, flags[channel]] += 1
            wanted[:, tokens[channel]] += token
    playing.rtl.settle()
    assert playing.rtl.tile_flags.tolist() == wanted.tolist()


@pytest.mark.parametrize("channel", [0, 1])
def test_a_short_row_leaves_the_rest_of_its_place(channel: int) -> None:
    """Of each size, over another one that was there before."""
    playing, place = Chip(), 7
    for size in range(1, ROW + 1):
        playing.consume(0, channel, 1, base=place)
        playing.infeed(0, 1, channel)
        playing.infeed(2, 0)  # what the infeed still holds of a row is none of these
        playing.consume(0, channel, 1, base=place)
        short = _line("RingInfeed", "buffer", size, ROW)
        sends = {"fifo": 2, "row_words": size - 1, "targets": 1, "consumer_b": channel}
        playing.give("RingInfeed", short | sends)
        playing.rtl.settle()
        playing.send(0, place)
        playing.collect(1)
        playing.rtl.settle()
        came = playing.rtl.scalar_memory[RESULT : RESULT + ROW].tolist()
        assert came == [*playing.rows[1][:size], *playing.rows[0][size:]], size


def test_a_rule_that_a_tile_breaks_ends_the_run() -> None:
    """Each tile is a simulation of its own; the chip says what has happened in it."""
    require_toolchain()
    from darwinn_rtl.chip.player import ChipPlayer

    player = ChipPlayer(1)
    outside = _line("MeshNorth", "narrow_write", 1, chip.NARROW_BYTES // 4)
    player.hand_over("MeshNorth", build([("MeshNorth", outside | {"immediate_valid": 1})]), 1 << 11)
    with pytest.raises(SimulationError, match="word outside narrow memory"):
        player.settle()
    player.close()
