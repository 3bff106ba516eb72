"""Compares the harness's result of a workload with the models: bytes, registers, cycles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from darwinn_rtl.dma.descriptor_model import Outcome
from darwinn_rtl.dma.timing import DmaTiming, predict
from darwinn_rtl.dma.workload import START, Workload, WorkloadResult
from darwinn_rtl.harness import HarnessDescription


class WorkloadMismatch(AssertionError):
    """The RTL differs from the model in its behaviour or its cycles."""


def check_bytes(found: WorkloadResult, expected: WorkloadResult) -> None:
    """Compare streams, host memory and status registers.

    Raises ``WorkloadMismatch`` that names the first difference.
    """
    for tag, data in expected.streams.items():
        _check_equal(f"{tag.name} stream", found.streams[tag], data)
    for start, data in expected.regions.items():
        _check_equal(f"host memory from {start:#x} on", found.regions[start], data)
    for name, value in expected.registers.items():
        if found.registers[name] != value:
            raise WorkloadMismatch(f"register {name}: {found.registers[name]:#x}, not {value:#x}")


def _check_equal(what: str, found: bytes, expected: bytes) -> None:
    if found == expected:
        return
    if len(found) != len(expected):
        raise WorkloadMismatch(f"{what}: {len(found)} bytes, not {len(expected)}")
    pairs = enumerate(zip(found, expected, strict=True))
    place, (was, wanted) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
    raise WorkloadMismatch(f"{what}: byte {place} is {was:#04x}, not {wanted:#04x}")


@dataclass(frozen=True)
class TimingComparison:
    """Cycles of one workload in the RTL and in the model.

    ``difference`` is the largest difference over all beginnings and completions, ``first`` says
    in words where the first one is; empty if there is none.
    """

    transfers: int
    size: int
    cycles_model: int
    cycles_rtl: int
    difference: int
    first: str


def compare_timing(
    workload: Workload, found: WorkloadResult, harness: HarnessDescription
) -> TimingComparison:
    """Predict the workload's cycles and compare each beginning and completion.

    ``harness`` is the RTL's description without the burst limit, which the workload sets. Raises
    ``WorkloadMismatch`` if a descriptor does not begin and complete exactly once, in order and as
    the model says.
    """
    timing = predicted(workload, harness)
    begins, ends = _event_cycles(workload, found.events)
    difference, first = 0, ""
    for what, rtl, model in (("begins", begins, timing.begins), ("ends", ends, timing.ends)):
        apart = np.abs(rtl - np.array(model, np.int64))
        difference = max(difference, int(apart.max(initial=0)))
        if apart.any() and not first:
            place = int(np.argmax(apart != 0))
            first = (
                f"descriptor {place} ({workload.descriptors[place]}) {what} in cycle "
                f"{rtl[place]}, the model says {model[place]}"
            )
    size = sum(step.size for step in workload.steps() if not step.refused)
    return TimingComparison(
        len(workload.descriptors), size, timing.cycles, found.cycles, difference, first
    )


def check_timing(
    workload: Workload, found: WorkloadResult, harness: HarnessDescription
) -> TimingComparison:
    """As ``compare_timing``, and raise ``WorkloadMismatch`` at any difference."""
    comparison = compare_timing(workload, found, harness)
    if comparison.difference:
        raise WorkloadMismatch(comparison.first)
    return comparison


def predicted(workload: Workload, harness: HarnessDescription) -> DmaTiming:
    """The timing model's prediction for ``workload``."""
    limited = harness.limited(workload.burst_limit)
    return predict(
        workload.steps(), output_bytes=len(workload.output), harness=limited, stalls=workload.stalls
    )


def _event_cycles(
    workload: Workload, events: NDArray[np.void]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cycles of every descriptor's beginning and end, from the log."""
    outcomes = np.array([workload.window.outcome(d) for d in workload.descriptors], np.uint32)
    started = events[events["kind"] >= START]
    if not np.array_equal(started["index"], np.arange(len(outcomes))):
        raise WorkloadMismatch("the descriptors do not begin once each and in order")
    wrong = np.flatnonzero(started["kind"] - START != outcomes)
    if wrong.size:
        at = int(wrong[0])
        was, wanted = Outcome(int(started["kind"][at]) - START), Outcome(int(outcomes[at]))
        raise WorkloadMismatch(
            f"descriptor {at} ({workload.descriptors[at]}): {was.name}, not {wanted.name}"
        )
    begins = started["cycle"].astype(np.int64)
    done = events[events["kind"] < START]
    expected = np.flatnonzero(outcomes == Outcome.STARTED)
    if not np.array_equal(np.sort(done["index"]), expected):
        raise WorkloadMismatch("not every good descriptor completes exactly once")
    ends = begins.copy()
    ends[done["index"]] = done["cycle"]
    return begins, ends
