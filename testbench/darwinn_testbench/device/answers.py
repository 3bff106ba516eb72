"""What a device answered where a recorded session was played, against what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from darwinn_sim.errors import SimulationError

from darwinn_testbench.device.trace import RecordedSession
from darwinn_testbench.report import Report, Row, Verdict, one_line

_CUT_SHORT = "; the recording is cut short: what came after them is not in it"


@dataclass(frozen=True, kw_only=True)
class Answers(Row):
    """What the device answered in one place: how many answers, their bytes, how many differ."""

    answers: int
    bytes: int
    differences: int


class Place:
    """Where answers come from; keeps the first difference."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.answers = self.bytes = self.differences = 0
        self.message = ""

    def count(self, size: int) -> None:
        """One answer of ``size`` bytes."""
        self.answers += 1
        self.bytes += size

    def differ(self, text: str) -> None:
        """A difference."""
        self.differences += 1
        self.message = self.message or text

    def row(self) -> Answers:
        """What was found."""
        return Answers(
            name=self.name,
            verdict=Verdict.MISMATCH if self.differences else Verdict.PASS,
            message=self.message,
            answers=self.answers,
            bytes=self.bytes,
            differences=self.differences,
        )


def report(
    session: RecordedSession,
    events: int,
    places: Sequence[Place],
    fault: SimulationError | None,
) -> Report[Answers]:
    """The report of a session whose first ``events`` were played, to its end or to a fault."""
    differences = sum(place.differences for place in places)
    return Report(
        command="device",
        file=str(session.path),
        rows=tuple(place.row() for place in places),
        figures={"events": events, "differences": differences},
        decided=Verdict.FAULT if fault else None,
        message=f"event {events}: {one_line(fault)}"
        if fault
        else _summary(events, differences) + _CUT_SHORT * session.is_cut_short,
    )


def _summary(events: int, differences: int) -> str:
    if not differences:
        return f"{events:,} events, no difference"
    return f"{events:,} events, {differences:,} difference{'s' * (differences > 1)}"
