"""Everything that both models say of a deadlock, line by line, wherever it happens.

The program is that of ``averaging_program``: its fence at pc 65 awaits the tile's fence (pc 64) and
the token of the ring producer (pc 60), which awaits narrow-to-wide (pc 43), which awaits the tensor
unit (pc 26), which awaits the row that the ring infeed (pc 22) sends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import averaging_program as sample
import pytest
from darwinn_sim import timing
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.errors import Deadlock, NotEnded
from darwinn_sim.timing import event_model

IMAGE = sample.images()()

FENCE = "scalar core at chunk 0, pc 65 (ScalarFence): "
LATE = f"{FENCE}tile fence 1 of tiles [{{tile}}], ring_producer_a is 0, expected 1, "
QUEUED = "tile {tile}: 1 instructions queued, the first is TileFence of chunk 0, pc 64: "
OUTFEED = "ring outfeed, 0 queued at chunk 0, pc 58: no flag is watched"
PRODUCER = (
    "tile {tile} ring producer, RingProducer at chunk 0, pc 60: "
    "narrow_to_wide_write (flag 13) is 0, watched for 1"
)
NARROW_TO_WIDE = (
    "tile {tile} narrow-to-wide, NarrowToWide at chunk 0, pc 43: "
    "activation_write (flag 0) is 0, watched for 1"
)
BUSY = "ring outfeed is not idle, host output is not idle"

TIMED_FENCE = (
    "scalar core at ScalarFence at chunk 0, pc 65: "
    "tile {tile} tile fences passed is 0, watched for 1"
)
TIMED_OUT = "host link out, 2 transfers left: bytes for the host is 0, watched for 1"
TIMED_OUTFEED = (
    "ring outfeed, RingOutfeed at chunk 0, pc 58: rows from the ring is 0, watched for 1"
)
TIMED_QUEUED = (
    "tile {tile}: 1 instructions queued, the first is TileFence at chunk 0, pc 64: "
    "tile {tile} instructions completed by a unit is 0, watched for 1"
)
TIMED_PRODUCER = (
    "tile {tile} ring producer, RingProducer at chunk 0, pc 60: "
    "tile {tile} narrow_to_wide_write (flag 13) is 0, watched for 1"
)
TIMED_NARROW_TO_WIDE = (
    "tile {tile} narrow-to-wide, NarrowToWide at chunk 0, pc 43: "
    "tile {tile} activation_write (flag 0) is 0, watched for 1"
)

CASES: dict[str, tuple[str, dict[str, Any], list[str], list[str]]] = {
    "a row that is not sent": (
        "TensorSum",
        sample.watch(6, 14, 2, None),
        [
            f"{LATE}{BUSY}",
            OUTFEED,
            f"{QUEUED}tensor unit is not idle, ring producer is not idle, "
            "narrow-to-wide is not idle",
            "tile {tile} tensor unit, TensorSum at chunk 0, pc 26: "
            "ring_bus_read_a (flag 14) is 1, watched for 2",
            PRODUCER,
            NARROW_TO_WIDE,
        ],
        [
            TIMED_FENCE,
            TIMED_OUT,
            TIMED_OUTFEED,
            TIMED_QUEUED,
            "tile {tile} tensor unit, TensorSum at chunk 0, pc 26: "
            "tile {tile} ring_bus_read_a (flag 14) is 1, watched for 2",
            TIMED_PRODUCER,
            TIMED_NARROW_TO_WIDE,
        ],
    ),
    "an infeed that never begins": (
        "RingInfeed",
        {"watcher_expected": [2, 0]},
        [
            f"{LATE}ring infeed is not idle, {BUSY}",
            "ring infeed, 0 queued at chunk 0, pc 22: av_pop (flag 0) is 32, watched for 33",
            OUTFEED,
            f"{QUEUED}tensor unit is not idle, ring producer is not idle, "
            "ring consumer A is not idle, narrow-to-wide is not idle",
            "tile {tile} tensor unit, TensorSum at chunk 0, pc 26: "
            "ring_bus_read_a (flag 14) is 0, watched for 1",
            PRODUCER,
            "tile {tile} ring consumer A, RingConsumerA at chunk 0, pc 18: no flag is watched",
            NARROW_TO_WIDE,
        ],
        [
            TIMED_FENCE,
            TIMED_OUT,
            "ring infeed, RingInfeed at chunk 0, pc 22: av_pop (flag 0) is 32, watched for 33",
            TIMED_OUTFEED,
            TIMED_QUEUED,
            "tile {tile} tensor unit, TensorSum at chunk 0, pc 26: "
            "tile {tile} ring_bus_read_a (flag 14) is 0, watched for 1",
            TIMED_PRODUCER,
            "tile {tile} ring consumer A, RingConsumerA at chunk 0, pc 18: "
            "tile {tile} rows from the ring is 0, watched for 1",
            TIMED_NARROW_TO_WIDE,
        ],
    ),
    "more input than there is": (
        "PopInput",
        sample.line("buffer", 3, 33, 0),
        [
            f"{FENCE}ring_producer_a is 1, expected 1, activation pop is not idle",
            "activation pop, 0 queued at chunk 0, pc 16: no flag is watched",
        ],
        [
            "scalar core at ScalarFence at chunk 0, pc 65: "
            "instructions completed by a unit is 0, watched for 1",
            "host link out, 1 transfers left: output descriptors is 1, watched for 2",
            "activation pop, PopInput at chunk 0, pc 16: "
            "bytes from the host is 256, watched for 264",
        ],
    ),
    "a token that is lost": (
        "RingProducer",
        {"token_producer_increment": 0},
        [f"{FENCE}ring_producer_a is 0, expected 1"],
        [
            "scalar core at ScalarFence at chunk 0, pc 65: "
            "ring_producer_a (flag 5) is 0, watched for 1",
            "host link out, 1 transfers left: output descriptors is 1, watched for 2",
        ],
    ),
}


@pytest.mark.parametrize("tile", [0, 5, 15])
@pytest.mark.parametrize("case", CASES)
def test_each_line_of_a_deadlock(case: str, tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "TILE", tile)
    name, fields, functional, timed = CASES[case]
    executable = sample.executable(sample.changed(name, **fields))
    models: tuple[tuple[Callable[[], object], list[str]], ...] = (
        (lambda: Accelerator().run(executable, {"image": IMAGE}), functional),
        (lambda: timing.simulate(executable), timed),
    )
    for run, lines in models:
        with pytest.raises(Deadlock) as caught:
            run()
        expected = tuple(line.format(tile=tile) for line in lines)
        assert caught.value.waiting == expected
        assert str(caught.value) == "deadlock: " + "; ".join(expected)


def test_a_run_that_takes_too_long_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many stations as may be told, the first ones."""
    monkeypatch.setattr(event_model, "_STATIONS_TOLD", 2)
    with pytest.raises(NotEnded) as caught:
        timing.simulate(sample.executable(), limit=40)
    rows, *standing = caught.value.doing
    assert caught.value.limit == "40 cycles"
    assert rows == "0 ring rows in 39 cycles"
    assert len(standing) == 2 and standing[0].startswith("scalar core at ")


def test_as_many_cycles_as_are_allowed_are_made() -> None:
    cycles = timing.simulate(sample.executable()).cycles
    assert timing.simulate(sample.executable(), limit=cycles + 1).cycles == cycles
    with pytest.raises(NotEnded, match=rf"after {cycles} cycles: 2 ring rows in {cycles - 1} "):
        timing.simulate(sample.executable(), limit=cycles)
