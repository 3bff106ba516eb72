"""Where a refuted element shows: an input for which the chip has another byte than the network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from darwinn_reference.arrays import AnyArray

from darwinn_testbench.chip.inputs import Origin
from darwinn_testbench.report.result import PYTHON_ONLY

NOT_SHOWN = "differs, not shown to be visible"


@dataclass(frozen=True)
class MadeInput:
    """An input that was made: ``fill`` everywhere but at ``places`` (flat indices), where it has
    these ``values``."""

    name: str
    fill: float
    places: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Shown:
    """An ``element`` of ``tensor`` of which the network has one value and the chip another.

    ``is_output``: the tensor is sent to the host; else it is what the refuted operator gives. The
    inputs are those of a ``run``, drawn from ``origin`` unless they were given; or they were
    ``made`` for the element.
    """

    tensor: str
    element: tuple[int, ...]
    network: float
    chip: float
    is_output: bool
    run: int | None = None
    origin: Origin | None = None
    made: tuple[MadeInput, ...] = ()
    inputs: Mapping[str, AnyArray] = field(
        default_factory=dict, repr=False, compare=False, metadata=PYTHON_ONLY
    )

    def __str__(self) -> str:
        what = "output" if self.is_output else "the tensor that it gives, no output that was run:"
        where = ", ".join(map(str, self.element))
        of = "an input made for it" if self.run is None else f"run {self.run}"
        origin = "" if self.origin is None else f" ({self.origin})"
        return (
            f"shown in {of}{origin} at {what} {self.tensor}, element ({where}) is "
            f"{self.network:g}, the chip has {self.chip:g}"
        )
