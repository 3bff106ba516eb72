"""Random legal orders of the units after the fixed one: do they give the same outputs?

A program that misses a flag or a fence gives the right bytes in one order of the chip's units and
others in another one (``darwinn_sim.machine.random_schedule``). Each order has a seed of its own.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from darwinn_formats.brief import brief
from darwinn_reference.arrays import AnyArray
from darwinn_sim.errors import NotEnded, SimulationError

from darwinn_testbench.chip.inputs import TensorMap
from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.report import Verdict, counted, one_line, verdict_of
from darwinn_testbench.report.progress import ProgressCallback, silent


class Inferred(NamedTuple):
    """What an inference was given, by tensor name, and what the chips sent to the host, or the
    ``fault`` that ended it, which is then the last one."""

    inputs: TensorMap
    outputs: dict[str, AnyArray]
    fault: str = ""


def faulted(error: Exception, inputs: TensorMap) -> list[Inferred]:
    """The inference that an error has ended, if it may end otherwise in another order: not one that
    is refused, nor one without end, which would take as long in each.
    """
    if isinstance(error, NotEnded) or verdict_of(error) is not Verdict.FAULT:
        return []
    return [Inferred(inputs, {}, one_line(error))]


@dataclass(frozen=True)
class Difference:
    """Where the order ``schedule`` (a seed) first gives something else, in inference ``run``.

    ``byte`` of ``output`` is ``actual`` instead of ``expected``, and ``differing`` of its ``size``
    bytes are others; or there is a ``fault``, and no output. Neither: there is no fault, where the
    fixed order has one.
    """

    schedule: int
    run: int
    output: str | None = None
    byte: int | None = None
    expected: int | None = None
    actual: int | None = None
    differing: int = 0
    size: int = 0
    fault: str = ""

    def __str__(self) -> str:
        where = f"schedule {self.schedule}, run {self.run}"
        if self.fault:
            return f"{where}: {self.fault}"
        if self.output is None:
            return f"{where}: no fault"
        return (
            f"{where}, output {self.output}: byte {self.byte:#x} is {self.actual:#04x}, not "
            f"{self.expected:#04x}; {self.differing:,} of {self.size:,} bytes differ"
        )


@brief
@dataclass(frozen=True)
class Schedules:
    """What ``count`` schedules gave, the first of which has the seed ``seed``, the next one more;
    a difference for each that gave something else than the fixed order, which had this ``fault``.
    """

    count: int
    seed: int
    seconds: float
    differences: tuple[Difference, ...]
    fault: str = ""

    @property
    def verdict(self) -> Verdict:
        """RACE if the outputs depend on the order."""
        return Verdict.RACE if self.differences else Verdict.PASS

    def __str__(self) -> str:
        tried = f"{counted(self.count, 'schedule')} from seed {self.seed}"
        if not self.differences:
            return f"{tried}: {'a fault in each' if self.fault else 'the same bytes'}"
        first = self.differences[0]
        return (
            f"{len(self.differences)} of {tried} differ: {first} "
            f"(--schedules 1 --schedule-seed {first.schedule} repeats it)"
        )


_MOST_LINES = 5
"""Differences that are told one by one; the JSON has all."""


def schedule_lines(schedules: Schedules | None) -> list[str]:
    """What tables say of the schedules that differ, after the first."""
    if schedules is None:
        return []
    later = schedules.differences[1:]
    if not later:
        return []
    lines = ["further schedules that differ (the verdict names the first):"]
    lines += [f"  {each}" for each in later[:_MOST_LINES]]
    rest = len(later) - _MOST_LINES
    return [*lines, f"  {rest} more"] if rest > 0 else lines


def check_schedules(
    pipeline: Pipeline,
    done: Sequence[Inferred],
    count: int,
    seed: int,
    progress: ProgressCallback = silent,
) -> Schedules:
    """Make the inferences ``done`` again in ``count`` random orders, parameters included.

    The chips are powered up before each order and at the end.
    """
    begin = time.perf_counter()
    found = []
    for number in range(count):
        progress(f"schedule {number + 1} of {count}", number, count)
        difference = _difference(pipeline, done, seed + number)
        found += [] if difference is None else [difference]
    _power_up(pipeline, None)
    return Schedules(count, seed, time.perf_counter() - begin, tuple(found), done[-1].fault)


def _power_up(pipeline: Pipeline, schedule: int | None) -> None:
    for accelerator in pipeline.accelerators:
        accelerator.schedule = schedule
    pipeline.power_up()


def _difference(pipeline: Pipeline, done: Sequence[Inferred], schedule: int) -> Difference | None:
    """The first difference of one order; None if there is none."""
    _power_up(pipeline, schedule)
    for run, (inputs, outputs, fault) in enumerate(done):
        try:
            actual = pipeline.sent(pipeline.infer(inputs))
        except SimulationError as error:
            return None if fault else Difference(schedule, run, fault=one_line(error))
        if fault:
            return Difference(schedule, run)
        for name, expected in outputs.items():
            a, b = (np.frombuffer(each.tobytes(), np.uint8) for each in (expected, actual[name]))
            places = np.flatnonzero(a != b)
            if places.size:
                at = int(places[0])
                values = (at, int(a[at]), int(b[at]), places.size, a.size)
                return Difference(schedule, run, name, *values)
    return None
