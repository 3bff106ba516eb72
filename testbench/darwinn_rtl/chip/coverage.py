"""Functional coverage of a chip in RTL: each step of its driver, the step before it, and the
moment."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from cocotb_coverage.coverage import CoverCross, CoverPoint, coverage_db, coverage_section


class Act(Enum):
    """A step of a driver."""

    OPEN = "open"
    LOAD = "load parameters"
    INFER = "infer"
    INFER_TWO = "infer two"
    CLOSE = "close"
    RESET = "reset"


class Moment(Enum):
    """The chip's state when the driver begins a step."""

    IDLE = "idle"
    LOADING = "loading parameters"
    INFERRING = "inferring"
    TWO_QUEUED = "inferring, another one queued"


_RUNS = {Act.LOAD, Act.INFER, Act.INFER_TWO}
FOLLOWERS: dict[Act, frozenset[Act]] = {
    Act.OPEN: frozenset({Act.LOAD, Act.CLOSE, Act.RESET}),
    Act.LOAD: frozenset({*_RUNS, Act.CLOSE, Act.RESET}),
    Act.INFER: frozenset({*_RUNS, Act.CLOSE, Act.RESET}),
    Act.INFER_TWO: frozenset({*_RUNS, Act.CLOSE, Act.RESET}),
    Act.CLOSE: frozenset({Act.OPEN, Act.RESET}),
    Act.RESET: frozenset({Act.OPEN}),
}
"""The steps that may follow each step: no inference before parameters are loaded."""

UNDER_WAY = {
    Act.LOAD: Moment.LOADING,
    Act.INFER: Moment.INFERRING,
    Act.INFER_TWO: Moment.TWO_QUEUED,
}
"""Moments at which a reset interrupts work."""


def steps() -> Iterator[tuple[Act, Act, Moment]]:
    """Every step: the one before it, the step, and the moment; a reset may come while the chip
    works."""
    for before, followers in FOLLOWERS.items():
        for act in Act:
            if act in followers:
                yield before, act, Moment.IDLE
                if act is Act.RESET and before in UNDER_WAY:
                    yield before, act, UNDER_WAY[before]


_POSSIBLE = {(before.value, act.value, moment.value) for before, act, moment in steps()}
_IMPOSSIBLE = [
    (before.value, act.value, moment.value)
    for before in Act
    for act in Act
    for moment in Moment
    if (before.value, act.value, moment.value) not in _POSSIBLE
]


@coverage_section(
    CoverPoint("host.before", xf=lambda b, a, m: b.value, bins=[act.value for act in Act]),
    CoverPoint("host.act", xf=lambda b, a, m: a.value, bins=[act.value for act in Act]),
    CoverPoint("host.moment", xf=lambda b, a, m: m.value, bins=[m.value for m in Moment]),
    CoverCross("host.step", items=["host.before", "host.act", "host.moment"], ign_bins=_IMPOSSIBLE),
)
def sample_step(before: Act, act: Act, moment: Moment) -> None:
    """Count a step of the driver."""


ITEMS = ("host.step", "host.act", "host.moment")
"""Coverage items whose bins must all be hit."""


def bins() -> dict[str, dict[str, int]]:
    """Hits of every bin of every item, for the report."""
    return {
        item: {str(name): hits for name, hits in coverage_db[item].detailed_coverage.items()}
        for item in ITEMS
    }


def missing() -> list[tuple[Act, Act, Moment]]:
    """Steps that were never done."""
    hits = coverage_db["host.step"].detailed_coverage
    return [
        (Act(before), Act(act), Moment(moment))
        for (before, act, moment), count in hits.items()
        if not count
    ]
