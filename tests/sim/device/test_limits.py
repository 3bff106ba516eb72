"""Programs without end: what they cost before they are ended, and what is said of them."""

from __future__ import annotations

import re
import time
from types import SimpleNamespace
from typing import Any

import averaging_program as sample
import endless
import pytest
from darwinn_formats.limits import Limits, limited
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.device.run import ProgramRun
from darwinn_sim.errors import NotEnded
from darwinn_sim.timing.event_model import simulate
from darwinn_sim.timing.trace import MAX_DESCRIPTORS
from darwinn_sim.units import scalar_core

IMAGE = sample.images()()
WORK = 1 << 24

# What each does per unit of work, at most: it takes about as long as a bundle or longer.
MOST = {
    "bundles": ("bundles", 1.0),
    "dma fences": ("bundles", 1 / 4096),
    "tile fences": ("bundles", 1 / 8),
    "coefficient tables": ("bundles", 1 / 8),
    "tensor outputs": ("tensor iterations", 1 / 16),
    "tensor functions": ("tensor iterations", 1 / 32),
    "infeed rows": ("ring rows", 1 / 8),
    "infeed tokens": ("ring rows", 1 / 16),
    "one infeed": ("ring rows", 1 / 8),
}


def ended(name: str, accelerator: Accelerator) -> NotEnded:
    with pytest.raises(NotEnded) as caught:
        accelerator.run(endless.executable(name), {"image": IMAGE})
    return caught.value


def moved(error: NotEnded) -> dict[str, int]:
    counts = re.findall(r"(\d+) (bundles|tensor iterations|ring rows)", error.doing[0])
    return {what: int(count) for count, what in counts}


@pytest.mark.parametrize("name", MOST)
def test_work_counts_what_takes_long(name: str) -> None:
    """Otherwise the limit is reached after hours, as by 2**31 fences that the host serves."""
    error = ended(name, Accelerator(work_limit=WORK))
    assert error.limit == f"{WORK} steps"
    what, share = MOST[name]
    assert 0 < moved(error)[what] <= WORK * share


@pytest.mark.parametrize("name", endless.BODIES)
def test_seconds_without_progress_end_a_program(name: str) -> None:
    with limited(Limits(seconds=0.05)):
        accelerator = Accelerator()
    begin = time.thread_time()
    error = ended(name, accelerator)
    assert error.limit == "0.05 s (--max-seconds)" and time.thread_time() - begin < 20
    assert "chunk 0, pc" in str(error)
    assert accelerator.run(sample.executable(), {"image": IMAGE}).outputs == {
        "averages": sample.expected(IMAGE)
    }


def test_it_is_said_where_the_units_stand() -> None:
    text = str(ended("one infeed", Accelerator(work_limit=WORK)))
    assert "RingInfeed at chunk 0, pc" in text or "ring infeed" in text
    assert "0 bundles" not in text.split(";")[1]


@pytest.mark.parametrize("name", endless.SEEN)
def test_the_host_waits_longer_for_what_it_sees_going_on(name: str) -> None:
    begin = time.thread_time()
    with limited(Limits(seconds=0.02)):
        error = ended(name, Accelerator())
    assert re.fullmatch(r"0\.6 s, 30 times --max-seconds|\d+ steps|0\.02 s .*", error.limit)
    assert time.thread_time() - begin < 20


@pytest.mark.parametrize("name", [*endless.BODIES, *endless.SEEN])
def test_the_event_model_is_ended_as_well(name: str) -> None:
    simulate(sample.executable())
    begin = time.thread_time()
    with limited(Limits(seconds=0.05)), pytest.raises(NotEnded) as caught:
        simulate(endless.executable(name))
    # A quick machine is through as many descriptors as there may be before the time is.
    limit = caught.value.limit
    assert "--max-seconds" in limit or limit == f"{MAX_DESCRIPTORS} descriptors"
    assert time.thread_time() - begin < 20
    assert "chunk 0, pc" in str(caught.value)


def test_work_is_counted_to_the_last_step() -> None:
    accelerator = Accelerator()
    accelerator.run(sample.executable(), {"image": IMAGE})
    work = int(accelerator.chip.core["work"])
    run = Accelerator(work_limit=work + 1).run(sample.executable(), {"image": IMAGE})
    assert run.outputs == {"averages": sample.expected(IMAGE)}
    with pytest.raises(NotEnded, match=f"{work} steps"):
        Accelerator(work_limit=work).run(sample.executable(), {"image": IMAGE})


@pytest.mark.parametrize(("standing", "more"), [(0, 0), (4, 0), (5, 1), (9, 5)])
def test_four_units_are_told_and_how_many_there_are_besides(standing: int, more: int) -> None:
    lines = tuple(f"unit {k}" for k in range(standing))
    made: Any = SimpleNamespace(
        _counted=lambda: [12, 7, 5], _counts=[10, 7, 1], waiting=lambda: lines
    )
    moved, *told = ProgramRun._doing(made)
    assert moved == ("2 bundles, 0 tensor iterations, 4 ring rows since the host last saw it go on")
    assert told == [*lines[:4], *([f"and {more} more"] if more else [])]


@pytest.mark.parametrize(("work", "ends"), [(9, False), (10, True), (11, True)])
def test_a_run_is_ended_by_its_work_where_it_has_been_stopped_for_that(
    work: int, ends: bool
) -> None:
    """Not where it has halted, or waits for the host, with its last step."""
    for reason in range(8):
        made: Any = SimpleNamespace(
            core={"work": work},
            device=SimpleNamespace(work_limit=10, limits=Limits()),
            _clock=None,
            _doing=lambda: ("somewhere",),
        )
        if ends and reason == scalar_core.SPENT:
            with pytest.raises(NotEnded, match="after 10 steps: somewhere"):
                ProgramRun._look(made, reason)
        else:
            ProgramRun._look(made, reason)
            assert made._clock is not None
