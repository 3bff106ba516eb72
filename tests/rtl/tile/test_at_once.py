"""All units of a tile in the same cycles, each at places of its own: each does what it does alone,
in arrays and in block RAM."""

from __future__ import annotations

from typing import Any

import pytest
from darwinn_rtl.tile.bench import LINKS, RingRow
from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.isa.table import BY_NAME
from slow_model import mesh_bus, narrow_to_wide, ring_bus, tensor_unit, wide_to_narrow
from slow_model.memory import Core
from stimulus import Walk, line, nothing
from tensor_stimulus import scale_bias
from tile_units import TileAndModel

MAC, SPREAD, PACK, SEND = tensor_unit.MAC, "WideToNarrow", "NarrowToWide", "RingProducer"
CONSUME = ("RingConsumerA", "RingConsumerB")

COUNT = 200
"""Elements of each unit, of which it moves one a cycle."""

NARROW = {name: 2000 * number for number, name in enumerate((SPREAD, PACK, *mesh_bus.DIRECTIONS))}
"""Words of narrow memory, of each unit its own: what it reads, and from the middle on what it
writes."""

MAC_READS, MAC_WRITES = 4 * 20_000, 4 * 21_000
"""Bytes of the tensor unit's."""

PARAMETERS, SUMS, ZERO_POINTS, SENT, SPREAD_FROM, PACKED, CONSUMED = (
    *(0, 250, 400, 500, 750, 1000, (1250, 1500)),
)
"""Rows of wide memory, of each unit its own."""

GO = TileFlag.RING_PRODUCER_A
"""A flag that no unit counts here."""


class _NoCore(Core):
    def __init__(self) -> None:
        self.flags = [0] * 9


def _waiting(name: str, **fields: Any) -> dict[str, Any]:
    """All else is off, but the producers, and each side waits for the flag before all else."""
    every = nothing(name) | fields
    slots = len(every["watcher_valid"])
    rest = [0] * (slots - 2)
    outermost = (1 << BY_NAME[name].field("watcher_depth").width) - 1
    every |= {"watcher_valid": [1, 1, *rest], "watcher_flag": [int(GO)] * slots}
    every |= {"watcher_expected": [1, 1, *rest], "watcher_depth": [outermost] * slots}
    if "watcher_side" in every:
        every["watcher_side"] = [0, 1, *rest]
    return every | {field: 1 for field in every if field.endswith("producer_increment")}


def _sums(**more: int) -> dict[str, Any]:
    """Each sum is begun in a first pass, written, and finished in a second; rows of zero points."""
    one, still = (1,) * 6, (0,) * 6
    half = COUNT // 2
    fields = {
        "main_limit": [half - 1, 1, 0, 0, 0, 0, 0, 0],
        "reduction_loops": 2,
        "partial_sum_read": 1,
        "load_parameter_zero_point": 1,
        "zero_point_base": ZERO_POINTS,
        "zero_point_stride": 1,
        "zero_point_limit": ZERO_POINTS + 49,
        "last_block_lanes": 3,
        "block_lanes": 3,
        "output_scale": 2.0**-10,
        "high_clip": 255.0,
    }
    for name, walk in {
        "narrow_read": Walk((half, 2, *one), (4, 400, *still), base=MAC_READS),
        "parameter_read": Walk((half, 2, *one), (4, 400, *still), base=4 * PARAMETERS),
        "partial_sum": Walk((half, 2, *one), (4, 0, *still), base=4 * SUMS),
        "narrow_write": Walk((half, 1, *one), (4, 0, *still), base=MAC_WRITES),
    }.items():
        fields |= walk.fields(MAC, name)
    return _waiting(MAC, **fields, **more)


def _spread(*, scales: bool) -> dict[str, Any]:
    """Words of narrow memory, or scales and biases, again and again: of the half that is free."""
    fields = _waiting(SPREAD, **line(SPREAD, "wide_read", COUNT, SPREAD_FROM))
    if not scales:
        return fields | line(SPREAD, "narrow_write", COUNT, NARROW[SPREAD] + 1000)
    steps = Walk((25, 2, 4, 1, 1, 1), (1, 64, 0, 0, 0, 0), base=32)
    return fields | steps.fields(SPREAD, "narrow_write") | {"scale_bias": 1}


def _give_all(pair: TileAndModel, *, scales: bool) -> tuple[list[list[bytes]], list[list[bytes]]]:
    """An instruction for each unit, and what comes for it; the rows and words that leave."""
    give, slow = pair.give, pair.slow
    sums = _sums(use_scales=int(scales), apply_bias=int(scales))
    give(MAC, sums)
    assert tensor_unit.run(slow, MAC, sums)
    spread = _spread(scales=scales)
    give(SPREAD, spread)
    assert wide_to_narrow.run(slow, spread)
    pack = _waiting(PACK, **line(PACK, "narrow_read", COUNT, NARROW[PACK]))
    pack |= line(PACK, "wide_write", COUNT, PACKED)
    give(PACK, pack)
    assert narrow_to_wide.run(slow, pack)
    send = _waiting(SEND, **line(SEND, "wide_read", COUNT, SENT), targets=1)
    give(SEND, send | {"token_producer_increment": 0})
    rows, ends = ring_bus.send(slow, {}, _NoCore(), send | {"token_producer_increment": 0}, 1 << 16)
    assert ends
    for channel, name in enumerate(CONSUME):
        consume = _waiting(name, **line(name, "wide_write", COUNT // 2, CONSUMED[channel]))
        coming = [[bytes([channel, k, w, 1]) for w in range(64)] for k in range(COUNT // 2)]
        for row in coming:
            pair.rtl.send_row(RingRow(_numbers(row), channel))
        give(name, consume)
        assert ring_bus.consume(slow, consume, channel, coming)
    words = []
    for link, name in enumerate(mesh_bus.DIRECTIONS):
        mesh = _waiting(name, **line(name, "narrow_read", COUNT, NARROW[name]))
        mesh |= line(name, "narrow_write", COUNT, NARROW[name] + 1000)
        arriving = [bytes([link, k, 2, 3]) for k in range(COUNT)]
        for word in _numbers(arriving):
            pair.rtl.send_word(link, word)
        give(name, mesh)
        sent, ends = mesh_bus.send(slow, name, mesh)
        words.append(sent)
        assert mesh_bus.receive(slow, name, mesh, arriving) and ends
    return rows, words


def _numbers(words: list[bytes]) -> tuple[int, ...]:
    return tuple(int.from_bytes(word, "little") for word in words)


@pytest.mark.parametrize("scales", [False, True], ids=["words", "scales"])
@pytest.mark.parametrize(
    "ratio",
    [
        pytest.param(1, id="array"),
        # The gate builds block RAM for test_block_ram.py.
        pytest.param(7, id="block RAM", marks=(pytest.mark.nightly, pytest.mark.asked_of_mutants)),
    ],
)
def test_units_at_once_do_what_each_does_alone(ratio: int, scales: bool) -> None:
    pair = TileAndModel({GO: 0}, ratio)
    pair.rtl.stall(0, 0)
    pair.rtl.scale_bias[:] = scale_bias(7)
    pair.slow.scale_bias[:] = scale_bias(7).tobytes()
    pair.slow.flags[GO] = 1
    rows, words = _give_all(pair, scales=scales)
    pair.rtl.run(2 * COUNT)  # what comes has come
    assert pair.rtl.units_idle == 0
    pair.give("TileFence", {"reset_flags": 1 << GO, "reset_value": 1})
    assert pair.run() < COUNT + 30, "they were not at work in the same cycles"
    assert pair.rtl.idle
    assert [row.words for row in pair.rtl.rows_out()] == [_numbers(row) for row in rows]
    for link in range(LINKS):
        assert tuple(pair.rtl.words_out(link)) == _numbers(words[link])
