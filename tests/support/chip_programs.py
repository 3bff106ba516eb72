"""Random programs of the whole chip: every unit of the scalar side and of the tiles, and fences."""

from __future__ import annotations

from typing import Any

from darwinn_sim import chip
from darwinn_sim.kernel.state import QUEUED_SCALAR_UNITS
from hypothesis import strategies as st
from slow_model.ring_bus import UNIT_BYTES
from slow_model.traversal import walk as walk_elements
from stimulus import Walk
from unit_cases import mesh_bus, narrow_to_wide, ring_bus, tensor_unit, wide_to_narrow
from unit_cases.ring_scalar_side import infeeds

Operation = tuple[str, dict[str, Any]]

ALL_TILES = (1 << chip.TILES) - 1
ALL_UNITS = (1 << 10) - 1
ALL_SCALAR_UNITS = (1 << QUEUED_SCALAR_UNITS) - 1
CONSUMERS = ("RingConsumerA", "RingConsumerB")
OUTFEED = 1 << chip.TILES

FROM_RESET: tuple[Operation, ...] = (
    ("TileFence", {"tiles": ALL_TILES, "reset_flags": (1 << chip.TILE_FLAGS) - 1}),
    ("ScalarFence", {"reset_flags": (1 << chip.SCALAR_FLAGS) - 1}),
)
"""Reset leaves flags as they are; programs begin with flags of 0."""


def preset(flags: dict[int, int], tiles: int) -> list[Operation]:
    """Fences that load flags of tiles, once these have nothing more to do."""
    fence = {"tiles": tiles, "wait_idle": ALL_UNITS}
    return [
        ("TileFence", fence | {"reset_flags": 1 << flag, "reset_value": value & 0xFFFF})
        for flag, value in flags.items()
    ]


def preset_scalar(flags: dict[int, int]) -> list[Operation]:
    """Fences that load flags of the scalar core, once nobody waits for them any more."""
    return [
        (
            "ScalarFence",
            {
                "wait_idle": ALL_SCALAR_UNITS,
                "reset_flags": 1 << flag,
                "reset_value": value & 0xFFFF,
            },
        )
        for flag, value in flags.items()
    ]


def take_rows(targets: int, channel: int, rows: int) -> list[Operation]:
    """Consumers, and an outfeed into scalar memory, for as many rows as are sent to ``targets``."""
    consumer, taken = CONSUMERS[channel], []
    if targets & ALL_TILES:
        write = Walk((rows, 1, 1, 1), (1, 0, 0, 0)).fields(consumer, "wide_write")
        taken.append((consumer, write | {"tiles": targets & ALL_TILES}))
    if targets & OUTFEED:
        # One word of each row, the rest of it is dropped.
        units = Walk((rows, 1, 1), (1, 0, 0)).fields("RingOutfeed", "buffer")
        taken.append(("RingOutfeed", units | {"row_words": 0}))
    return taken


@st.composite
def rows_of_the_infeed(draw: Any) -> list[Operation]:
    """An infeed from any of its buffers, and whoever takes its rows."""
    fields, flags = draw(infeeds())
    fields["targets"] = draw(st.sampled_from([ALL_TILES, fields["targets"]]))
    unit = UNIT_BYTES[fields["fifo"]] // 4
    units_of_row = -(-(fields["row_words"] + 1) // unit)
    rows = -(-len(walk_elements(fields, "buffer")) // units_of_row)
    taken = take_rows(fields["targets"], fields["consumer_b"], rows)
    return [*preset_scalar(flags), *taken, ("RingInfeed", fields)]


@st.composite
def rows_of_a_tile(draw: Any) -> list[Operation]:
    """A ring producer, and whoever takes its rows."""
    sending, receiving, sender, flags = draw(ring_bus.cases())
    consumer = CONSUMERS[sending["consumer_b"]]
    rows = len(walk_elements(receiving, "wide_write"))
    taken = take_rows(sending["targets"] & OUTFEED, 0, rows)
    tiles = sending["targets"] & ALL_TILES
    return [
        *preset(flags, tiles | 1 << sender),
        *taken,
        (consumer, receiving | {"tiles": tiles}),
        ("RingProducer", sending | {"tiles": 1 << sender}),
    ]


@st.composite
def words_of_the_mesh(draw: Any) -> list[Operation]:
    """An instruction of a mesh port, on some tiles or on all."""
    name, fields, tiles, flags = draw(mesh_bus.cases())
    return [*preset(flags, tiles), (name, fields | {"tiles": tiles})]


@st.composite
def work_of_a_tile(draw: Any) -> list[Operation]:
    """An instruction of the tensor unit or of the units beside it."""
    name, fields, flags = draw(
        st.one_of(
            narrow_to_wide.cases().map(lambda case: ("NarrowToWide", case[0], case[1])),
            wide_to_narrow.cases().map(lambda case: ("WideToNarrow", case[0], case[1])),
            *map(tensor_unit.operations, ("TensorMac", "TensorMax", "TensorSum")),
        )
    )
    tiles = draw(st.sampled_from([1, 1 << 15, ALL_TILES]))
    return [*preset(flags, tiles), (name, fields | {"tiles": tiles})]


@st.composite
def fences(draw: Any) -> list[Operation]:
    """A fence of tiles that the scalar core waits for, or one of its own units."""
    tiles = draw(st.integers(1, ALL_TILES))
    units = draw(st.sampled_from([0, ALL_UNITS, 1, 1 << 1, 1 << 2, 1 << 4, 1 << 6]))
    fence = {"tiles": tiles, "wait_idle": units, "increment": 1}
    awaited = {"tile_fence_valid": tiles, "tile_fence_count": 1, "reset_tile_fences": tiles}
    idle = {"wait_idle": draw(st.integers(0, 15))}
    return [("TileFence", fence), ("ScalarFence", awaited | idle)]


@st.composite
def counted_turns(draw: Any) -> list[Operation]:
    """A sender that passes the turn with its rows, or in the middle of them, and tiles that count.

    Those that await fewer turns than there are must not be late.
    """
    channel = draw(st.integers(0, 1))
    turns = draw(st.integers(1, 5))
    flag = 1 << chip.TILE_FLAGS - 2 + channel
    counting = {
        "tiles": draw(st.integers(1, ALL_TILES)),
        "producer_count_valid": 1 << channel,
        "producer_count": draw(st.integers(0, turns)),
        "wait_idle": draw(st.sampled_from([0, 1 << 4, 1 << 5])),
        "reset_flags": draw(st.sampled_from([0, flag])),
    }
    sends = {"consumer_b": channel, "token_producer_increment": 1}
    if draw(st.booleans()):
        units = Walk((turns, 1, 1), (1, 0, 0)).fields("RingInfeed", "buffer")
        row_words = draw(st.integers(0, 5))
        rows = -(-turns // (row_words + 1))
        sends |= units | {"fifo": 2, "row_words": row_words, "targets": 1}
        sender: Operation = ("RingInfeed", sends)
    else:
        rows = turns
        read = Walk((turns, 1, 1, 1), (1, 0, 0, 0)).fields("RingProducer", "wide_read")
        tiles = {"targets": 1, "tiles": 1 << draw(st.integers(0, chip.TILES - 1))}
        sender = ("RingProducer", sends | read | tiles)
    return [
        ("TileFence", {"tiles": ALL_TILES, "reset_flags": flag}),
        *take_rows(1, channel, rows),
        sender,
        ("TileFence", counting),
        *work_behind(counting["tiles"]),
    ]


def work_behind(tiles: int) -> list[Operation]:
    """Something of a known length that shows when the fence before it was passed."""
    fill = Walk((40, 1, 1, 1), (1, 0, 0, 0)).fields("MeshSouth", "narrow_write")
    return [("MeshSouth", fill | {"tiles": tiles, "immediate_valid": 1})]


def programs() -> st.SearchStrategy[list[Operation]]:
    """Some of all of these, one behind the other; some of them get stuck."""
    parts = st.one_of(
        rows_of_the_infeed(), rows_of_a_tile(), words_of_the_mesh(), work_of_a_tile(), fences()
    )
    return st.lists(parts, min_size=1, max_size=6).map(
        lambda drawn: [*FROM_RESET, *(operation for part in drawn for operation in part)]
    )
