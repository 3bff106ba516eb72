"""What a device answered where a recorded session was played, against what was recorded."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from darwinn_sim.errors import SimulationError

from darwinn_testbench.device.trace import Fault, Passed, RecordedSession
from darwinn_testbench.report import Report, Row, Verdict, counted, one_line

_SHOWN_FAULTS = 3
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


class Faults:
    """Faults of the device against those of the session, which have to come in the same order.

    The chip may come to one at another moment than then, but not after the session has it, and it
    has to last at least that long.

    Args:
        events: of the session.
    """

    def __init__(self, events: Sequence[Passed]) -> None:
        self.unexpected: SimulationError | None = None
        """A fault that the session does not have."""
        self.reproduced: list[str] = []
        """Those that it has, too."""
        self.place = Place("faults")
        self._recorded = deque(
            (number, event.text)
            for number, event in enumerate(events, 1)
            if isinstance(event, Fault)
        )
        self.any_recorded = bool(self._recorded)
        self._present: SimulationError | None = None
        self._since = 0
        """Number of the session's event for the fault that is present."""

    def look(self, number: int, fault: SimulationError | None) -> None:
        """Event ``number`` has been played; ``fault`` is what keeps the chip from its work now."""
        if fault is not self._present:
            if self._present is not None and number < self._since:
                self.place.differ(f"event {number} ends the fault that event {self._since} is")
            self._present = fault
            if fault is not None:
                self._compare(fault)
        while self._recorded and self._recorded[0][0] <= number:
            _, text = self._recorded.popleft()
            self.place.differ(f"event {number}: recorded {text!r}, the device has no fault")

    def _compare(self, fault: SimulationError) -> None:
        text = one_line(fault)
        if not self._recorded or self._recorded[0][1] != text:
            self.unexpected = fault
            return
        self._since, _ = self._recorded.popleft()
        self.place.count(0)
        self.reproduced.append(f"event {self._since}: {text}")


def report(
    session: RecordedSession,
    played: int,
    events: int,
    places: Sequence[Place],
    faults: Faults,
) -> Report[Answers]:
    """The report of a session of so many ``events``, all played or those up to a fault."""
    if faults.any_recorded:
        places = (*places, faults.place)
    left = events - played
    not_played = f"; {counted(left, 'event')} after it not played" if left else ""
    differences = sum(place.differences for place in places)
    return Report(
        command="device",
        file=str(session.path),
        rows=tuple(place.row() for place in places),
        figures={
            "events": played,
            "differences": differences,
            "cut_short": session.is_cut_short,
        },
        decided=Verdict.FAULT if faults.unexpected else None,
        message=f"event {played}: {one_line(faults.unexpected)}{not_played}"
        if faults.unexpected
        else _summary(played, differences, faults.reproduced)
        + not_played
        + _CUT_SHORT * session.is_cut_short,
    )


def _summary(events: int, differences: int, faults: Sequence[str]) -> str:
    found = counted(differences, "difference") if differences else "no difference"
    said = "".join(f"; fault as recorded, {each}" for each in faults[:_SHOWN_FAULTS])
    if more := len(faults[_SHOWN_FAULTS:]):
        said += f"; {counted(more, 'more fault')} as recorded"
    return f"{counted(events, 'event')}, {found}{said}"
