"""Random orders of the units: drawn by the seed alone, and the same bytes where flags order all."""

from __future__ import annotations

from collections.abc import Iterator

import averaging_program as sample
import numpy as np
import pytest
from averaging_program import Operation
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator, RunResult
from darwinn_sim.errors import Deadlock, UninitialisedRead
from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.machine import random_schedule
from darwinn_sim.machine.examine import StopPoint, Tap

IMAGE = sample.images()()

RACE = sample.changed("RingInfeed", watcher_stride=[0, 0])
"""The infeed waits for the first unit of the input, and not for the others."""


def run(schedule: int | None, program: list[Operation] | None = None) -> RunResult:
    accelerator = Accelerator(strict=True, schedule=schedule)
    return accelerator.run(sample.executable(program), {"image": IMAGE})


def test_numbers_are_those_of_splitmix64() -> None:
    """As its authors give them for the seed 0."""
    order = random_schedule.Order.zeros(1)[0]
    drawn = [random_schedule.draw(order, 1 << 32) for _ in range(3)]
    assert drawn == [0xE220A839, 0x6E789E6A, 0x06C45D18]


def test_numbers_are_below_the_count() -> None:
    order = random_schedule.Order.zeros(1)[0]
    drawn = [random_schedule.draw(order, 5) for _ in range(200)]
    assert set(drawn) == set(range(5))


def test_an_order_follows_from_its_seed_alone() -> None:
    orders = [random_schedule.RandomOrder(seed).record for seed in (7, 7, 8)]
    assert orders[0] == orders[1] != orders[2]


def test_all_paces_are_drawn() -> None:
    """Nobody slow, the same units of all tiles, whole tiles, and any units of any tile."""
    places = np.array(
        [random_schedule.RandomOrder(seed).record["slow_places"] for seed in range(80)]
    )
    whole = (1 << chip.TILE_UNITS + 1) - 1
    same = (places == places[:, :1]).all(axis=1)
    tiles = np.isin(places, (0, whole)).all(axis=1)
    assert (places == 0).all(axis=1).any()
    assert (same & ~tiles).any() and (tiles & ~same).any() and (~same & ~tiles).any()


def test_all_grains_and_turns_are_drawn() -> None:
    """From 8 to 65,536 work of a unit at a time, and from 2^8 to 2^20 until the host has its turn;
    the host moves from a unit of a FIFO to the whole of it."""
    orders = [random_schedule.RandomOrder(seed) for seed in range(400)]
    assert {int(order.record["grain"]) for order in orders} == set(range(3, 17))
    assert {int(order.record["restless"]) for order in orders} == set(range(13))
    assert {order.work_of_a_turn() for order in orders} == {1 << bits for bits in range(8, 21)}
    moved = {order.host_bytes() for order in orders}
    assert (min(moved), max(moved)) == (chip.ACTIVATION_UNIT_BYTES, chip.HOST_FIFO_BYTES)
    assert {order.host_is_quick() for order in orders} == {False, True}


@pytest.mark.parametrize("schedule", range(60))
def test_a_program_whose_flags_order_all_gives_the_same_bytes(schedule: int) -> None:
    result = run(schedule)
    assert result.outputs == {"averages": sample.expected(IMAGE)}
    assert result.interrupts == [0] and result.statistics["ring_rows"] == 2


def test_a_watcher_that_is_too_weak_shows_in_some_order_and_not_in_the_fixed_one() -> None:
    assert run(None, RACE).outputs == {"averages": sample.expected(IMAGE)}
    found = list(_races(RACE))
    assert 5 < len(found) < 35
    with pytest.raises(UninitialisedRead):
        run(found[0], RACE)


def _races(program: list[Operation]) -> Iterator[int]:
    """The schedules in which strict mode finds that words are read before they are written."""
    for schedule in range(40):
        try:
            run(schedule, program)
        except UninitialisedRead:
            yield schedule


def test_a_program_that_waits_for_ever_does_so_in_every_order() -> None:
    program = sample.changed("TensorSum", watcher_expected=[2, 0, 0, 0, 0, 0])
    for schedule in range(10):
        with pytest.raises(Deadlock, match=TileFlag.RING_BUS_READ_A.name.lower()):
            run(schedule, program)


def test_stop_points_and_taps_are_those_of_the_fixed_order() -> None:
    tap = Tap.parse("layer:0")
    fixed, *others = (
        Accelerator(schedule=schedule).run(
            sample.executable(), {"image": IMAGE}, until=StopPoint.parse("layer:0"), taps=[tap]
        )
        for schedule in (None, 0, 1, 2)
    )
    for other in others:
        assert other.stopped
        assert np.array_equal(other.tapped[0].data, fixed.tapped[0].data)


def test_the_order_counts_from_the_next_power_up() -> None:
    accelerator = Accelerator()
    accelerator.schedule = 3
    accelerator.power_up()
    assert accelerator.chip.schedule == 3
    outputs = accelerator.run(sample.executable(), {"image": IMAGE}).outputs
    assert outputs == {"averages": sample.expected(IMAGE)}


def test_a_host_is_quick_as_often_as_not() -> None:
    quick = sum(random_schedule.RandomOrder(seed).host_is_quick() for seed in range(2000))
    assert 900 < quick < 1100
