"""A program without doubts ends in every order; programs that a fault was made in, and by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import averaging_program as sample
import pytest
from averaging_program import TILE, Operation, watch
from chip_programs import FROM_RESET, counted_turns, programs
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.kernel import order, state
from darwinn_sim.machine import diagnosis, random_schedule, schedule
from darwinn_sim.machine.completion import Completion, Reason
from darwinn_sim.machine.lowering import LoweredProgram, lower
from darwinn_sim.units import scalar_core
from darwinn_sim.units.observation import new_observation
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

SCHEDULES = 6
_WORK = 1 << 20
IMAGE = sample.images()()

_found: Counter[str] = Counter()


def ends(program: LoweredProgram, number: int | None) -> tuple[bool, int]:
    """Whether a program ends in the fixed order, or in that of a seed, and how many doubts there
    are."""
    core = (order.new_core() if number is None else state.new_core())[0]
    tiles = state.new_tiles()
    core["pc"] = program.entries[0]
    core["end_pc"] = program.chunks[0].bundles
    core["work_limit"] = _WORK
    chip = (core, tiles, program.tables, new_observation())
    if number is None:
        core["clocks"]["sparing"] = 1
        reason = schedule.run(*chip)
    else:
        reason = random_schedule.run(*chip, random_schedule.RandomOrder(number).record)
    ended = reason == scalar_core.HALTED and not diagnosis.waiting(core, tiles, program)
    return ended, int(core["clocks"]["doubted"]) if number is None else 0


def weakened(
    operations: list[Operation], dropped: int, watcher: int, weaker: int
) -> list[Operation]:
    """A program in which a fence waits for less, or a watcher for nothing, less or more, or which
    counts another way."""
    kept = list(operations)
    place = len(FROM_RESET) + dropped % max(len(kept) - len(FROM_RESET), 1)
    if place >= len(kept):
        return kept
    name, fields = kept[place]
    if "Fence" in name:
        lost = ("wait_idle", "producer_count_valid", "reset_flags")[weaker % 3]
        kept[place] = (name, {**fields, lost if lost in fields else "wait_idle": 0})
    elif "watcher_valid" in fields:
        field = ("watcher_valid", "watcher_expected", "watcher_stride")[weaker % 3]
        values = list(fields.get(field, [0] * len(fields["watcher_valid"])))
        at = watcher % len(values)
        values[at] = 0 if field == "watcher_valid" else values[at] ^ (1 << weaker % 2)
        kept[place] = (name, {**fields, field: values})
    return kept


@seed(5)
@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(
    st.one_of(programs(), counted_turns().map(lambda drawn: [*FROM_RESET, *drawn])),
    st.integers(0, 100),
    st.integers(0, 5),
    st.integers(0, 5),
)
def check_random_programs(
    program: list[Operation], dropped: int, watcher: int, weaker: int
) -> None:
    lowered = lower((frame(build(weakened(program, dropped, watcher, weaker))),))
    ended, doubts = ends(lowered, None)
    if not ended:
        return
    deadlocks = [number for number in range(SCHEDULES) if not ends(lowered, number)[0]]
    _found["deadlock" if deadlocks else "doubts" if doubts else "none"] += 1
    assert doubts or not deadlocks


def test_a_program_without_doubts_ends_in_every_order() -> None:
    _found.clear()
    check_random_programs()
    assert _found["none"] >= 20 and _found["doubts"] >= 5, _found


def completion(program: Sequence[Operation] | None) -> Completion:
    """What is doubted of a program."""
    accelerator = Accelerator(hazards=True)
    accelerator.completion = True
    accelerator.power_up()
    accelerator.run(sample.executable(program), {"image": IMAGE})
    return accelerator.found_completion()


def with_more(before: str, *more: Operation) -> list[Operation]:
    """The program with further instructions before one."""
    program = list(sample.changed(before))
    place = [name for name, _ in program].index(before)
    return [*program[:place], *more, *program[place:]]


def test_a_program_whose_flags_order_all_ends() -> None:
    assert completion(None) == Completion() and Completion().shown


def test_a_hazard_of_data_is_no_doubt() -> None:
    """The infeed may send a unit that has not come yet: that changes bytes, and nothing else."""
    assert completion(sample.changed("RingInfeed", watcher_stride=[0, 0])).shown


@pytest.mark.parametrize("awaited", [True, False])
def test_rows_of_two_senders(awaited: bool) -> None:
    """Another tile sends a row to the tile that the infeed sends to, with and without its turn."""
    sender = (
        "RingProducer",
        {"tiles": 1 << TILE + 1, "wide_read_base": 30, "targets": 1 << TILE}
        | watch(3, 17, 1)
        | {"watcher_valid": [int(awaited), 0, 0]},
    )
    consumer = ("RingConsumerA", {"tiles": 1 << TILE, "wide_write_base": 40})
    program = with_more("TensorSum", sender, consumer)
    if awaited:
        turn = {"token_producer_increment": 1, "token_producer_depth": 3}
        own = {"watcher_valid": [1, 1, 0], "watcher_flag": [13, 17, 0]}
        own["watcher_expected"] = [1, 1, 0]
        program = [(name, each | turn if name == "RingInfeed" else each) for name, each in program]
        program = [
            (name, each | own if name == "RingProducer" and each["targets"] == 1 << 16 else each)
            for name, each in program
        ]
    doubts = completion(program).doubts
    assert bool(doubts) is not awaited
    if doubts:
        assert doubts[0].reason is Reason.ORDER
        assert doubts[0].place == f"ring channel A to tile {TILE}"
        assert str(doubts[0]).endswith(f"change ring channel A to tile {TILE} in either order")


def test_a_load_of_a_flag_before_its_count_is_seen() -> None:
    fence = ("TileFence", {"tiles": 1 << TILE, "reset_flags": 1 << 2})
    program = [
        (name, each | {"partial_sum_producer_increment": 1} if name == "TensorSum" else each)
        for name, each in with_more("NarrowToWide", fence)
    ]
    (doubt,) = completion(program).doubts
    assert doubt.reason is Reason.RESET
    assert doubt.place == f"flag 2 (partial_sum_write) of tile {TILE}"
    who = [each.instruction for each in (doubt.first, doubt.second) if each is not None]
    assert sorted(who) == ["TensorSum", "TileFence"]
