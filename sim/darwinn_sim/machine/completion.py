"""Whether a program ends in every timing of the units, as one run of it shows (``kernel.waits``).

Every unit does a fixed sequence of things. If nothing that comes too early or too late can hold
back what might have gone on, then a program that has ended once ends in every order of its units
(docs/verification.md, "Deadlocks"). A reason why that cannot be said is a doubt: it is no deadlock,
but random orders (``random_schedule``) are all that is left to look for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from darwinn_formats.brief import brief

from darwinn_sim.kernel import clocks, state
from darwinn_sim.machine.hazards import Access, CheckedPrograms


class Reason(StrEnum):
    """Why it cannot be said that all waits end."""

    ORDER = "order"
    """Nothing orders two accesses of a flag, of scalar memory, or of a tail to which units append:
    what is awaited may be there in one order only."""
    COUNTS = "counts"
    """Nothing orders two that count a flag: who waits for a count may go on behind either."""
    RESET = "reset"
    """A fence may load a flag before somebody has seen that it had reached its count."""
    WRAP = "wrap"
    """A flag of 16 bits may be 32,768 ahead of a count that is awaited, or behind it."""
    DATA = "data"
    """The course of the program may depend on data, or on what memories held beforehand."""
    LENGTH = "length"
    """The run is too long for the clocks."""


_REASONS = {
    clocks.READ_AFTER_WRITE: Reason.ORDER,
    clocks.WRITE_AFTER_WRITE: Reason.ORDER,
    clocks.WRITE_AFTER_READ: Reason.ORDER,
    clocks.COUNT_AFTER_LOAD: Reason.RESET,
    clocks.LOAD_AFTER_COUNT: Reason.RESET,
    clocks.COUNT_AFTER_COUNT: Reason.COUNTS,
    clocks.LOAD_AFTER_WAIT: Reason.RESET,
    clocks.WAIT_TOO_EARLY: Reason.WRAP,
    clocks.WAIT_TOO_LATE: Reason.WRAP,
}

_TEXTS = {
    clocks.READ_AFTER_WRITE: "{second} takes {place}, which {first} may not have changed yet",
    clocks.WRITE_AFTER_WRITE: "{first} and {second} change {place} in either order",
    clocks.WRITE_AFTER_READ: "{second} may change {place} before {first} takes it",
    clocks.COUNT_AFTER_LOAD: "{second} may count {place} before {first} loads or sees it",
    clocks.LOAD_AFTER_COUNT: "{second} may load {place} before {first} counts it",
    clocks.COUNT_AFTER_COUNT: "{first} and {second} count {place} in either order",
    clocks.LOAD_AFTER_WAIT: "{second} may load {place} before {first} has seen its count",
    clocks.WAIT_TOO_EARLY: "{second} may pass {place} 32,768 counts too early",
    clocks.WAIT_TOO_LATE: "{second} may see {place} when it is 32,768 counts beyond",
}


@dataclass(frozen=True)
class Doubt:
    """A reason why a program may stand still in another order of its units: ``place`` is a flag,
    memory or queue, ``text`` says who does what to it. ``times``: how often it was met.
    """

    reason: Reason
    text: str
    place: str = ""
    first: Access | None = None
    second: Access | None = None
    times: int = 1
    file: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.text}" if self.file else self.text


@brief
@dataclass(frozen=True)
class Completion:
    """The doubts of all programs that have run since power-up, the first of each kind."""

    doubts: tuple[Doubt, ...] = ()

    @property
    def shown(self) -> bool:
        """No order of the units lets the programs stand still."""
        return not self.doubts


def found(checked: CheckedPrograms, core: state.Core, origin: str | None) -> Completion:
    """What the clocks of ``core`` doubt; ``origin`` of data that something may depend on."""
    known = core["clocks"]
    doubts = [_doubt(checked, each) for each in known["doubts"][: int(known["doubted"])]]
    if origin is not None:
        text = f"what is executed may depend on data, or on what memories held before{origin}"
        doubts.append(Doubt(Reason.DATA, text))
    if int(known["clock"].max()) >= clocks.CLOCK_MASK:
        doubts.append(Doubt(Reason.LENGTH, "the run is too long to be checked to its end"))
    return Completion(tuple(doubts))


def _doubt(checked: CheckedPrograms, record: clocks.Found) -> Doubt:
    kind = int(record["kind"])
    place, first, second = checked.named(record)
    text = _TEXTS[kind].format(place=place, first=first, second=second)
    return Doubt(_REASONS[kind], text, place, first, second, int(record["words"]))
