"""The times of an inference in which no layer computes, as parts with a name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from darwinn_sim.timing import Timing

BEFORE, BETWEEN, AFTER = "before layer 0", "between layers", "after the last layer"


@dataclass(frozen=True)
class Uncovered:
    """Cycles ``start`` to ``end`` - 1, in which no layer is executed; ``name`` says where."""

    name: str
    start: int
    end: int

    @property
    def cycles(self) -> int:
        """How long it is."""
        return self.end - self.start


def uncovered(timing: Timing) -> Iterator[Uncovered]:
    """The parts of the inference that lie in no layer, in order; together with them it is whole."""
    executed = sorted((layer.start, layer.end) for layer in timing.layers if layer.start >= 0)
    covered = 0
    for number, (start, end) in enumerate(executed):
        if start > covered:
            yield Uncovered(BETWEEN if number else BEFORE, covered, start)
        covered = max(covered, end)
    if timing.cycles > covered:
        yield Uncovered(AFTER if executed else BEFORE, covered, timing.cycles)


def cycles_before_layers(timing: Timing) -> int:
    """Cycles until the first layer begins: all of them where there is none."""
    return next((part.cycles for part in uncovered(timing) if part.name == BEFORE), 0)
