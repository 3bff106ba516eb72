"""Where does it begin to differ? Each error once, not everything that follows from it.

The values within a network are looked at in the order in which they are computed. The first that
differs is named, and what follows is computed again from one value on both sides, so that what
differs next does so by an error of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from darwinn_reference.arrays import AnyArray

from darwinn_testbench.layers.check import Finding, TensorRow


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """A value that differs although all values before it are equal on both sides.

    ``name`` and ``operation`` are those of the reference; ``location`` is the place in its sources.
    ``where`` is the place on the other side; ``layers`` are the numbers of layers of a compiled
    program that hold the value. ``paired`` says how the two values were paired, and for two
    programs the order of dimensions. ``unseen`` are values just before it that nothing holds, so
    the error may be theirs. ``first`` marks the first one of a call.
    """

    run: int
    first: bool
    name: str
    operation: str
    where: str
    location: str = ""
    layers: tuple[int, ...] = ()
    unseen: tuple[str, ...] = ()
    paired: str = ""
    elements: int
    differing: int
    max_difference: float

    def __str__(self) -> str:
        order = "the first to differ" if self.first else "differs as well, from equal inputs"
        place = f" ({self.location})" if self.location else ""
        before = f"; earlier tensors not seen: {', '.join(self.unseen)}" if self.unseen else ""
        paired = f" (paired {self.paired})" if self.paired else ""
        of_programs = self.paired and not self.layers
        sides = (" of the reference", "; in the verified program") if of_programs else ("", ", in")
        return (
            f"run {self.run}: {self.name}{sides[0]}, by {self.operation}{place}{sides[1]} "
            f"{self.where}: {order}, "
            f"{self.differing:,} of {self.elements:,} by up to {self.max_difference:g}"
            f"{paired}{before}"
        )


def localise_layers(
    check: Callable[[Mapping[int, AnyArray]], Sequence[TensorRow]], run: int
) -> list[Divergence]:
    """The tensors of a network that layers of a compiled program compute wrongly.

    ``check`` compares every tensor (``check.LayerCheck``) with what the reference computes
    when some tensors are given, by index. Each wrong tensor is given as the chip has it before it
    goes on, since the chip cannot go on from another value.
    """
    given: dict[int, AnyArray] = {}
    found: list[Divergence] = []
    while True:
        rows = check(given)
        wrong = [
            number
            for number, row in enumerate(rows)
            if row.finding is Finding.DIFFERS and row.tensor not in given and row.value is not None
        ]
        if not wrong:
            return found
        first = rows[wrong[0]]
        before = reversed(rows[: wrong[0]])
        unseen = takewhile(lambda row: row.finding is Finding.NOT_MATERIALISED, before)
        names = tuple(row.name for row in unseen)[::-1]
        found.append(_divergence(first, run, names, first=not found))
        assert first.value is not None
        given[first.tensor] = first.value


def _divergence(row: TensorRow, run: int, unseen: tuple[str, ...], *, first: bool) -> Divergence:
    layers = " and ".join(f"layer {number}" for number in row.layers)
    return Divergence(
        run=run,
        first=first,
        name=row.name,
        operation=row.operator,
        where=" and ".join(filter(None, [layers, "what is sent to the host" * row.output])),
        layers=row.layers,
        unseen=unseen,
        elements=row.elements,
        differing=row.differing,
        max_difference=row.max_difference,
        paired=row.paired,
    )
