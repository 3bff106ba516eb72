"""An input that shows a refuted element: the chip has another byte than the network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from darwinn_reference.arrays import AnyArray

from darwinn_testbench.chip.inputs import Origin
from darwinn_testbench.report.result import PYTHON_ONLY

NOT_SHOWN = "no input found that shows it"


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
    """An ``element`` of ``tensor`` that differs between ``network`` and ``chip``.

    ``is_output``: the chip sends the tensor to the host; if not, the refuted operator computes it.
    The inputs are those of a ``run``, generated from ``origin`` unless the user gave them; or they
    were ``made`` for the element.
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
        what = "output" if self.is_output else "inner tensor"
        where = ", ".join(map(str, self.element))
        of = "an input made for it" if self.run is None else f"run {self.run}"
        origin = "" if self.origin is None else f" ({self.origin})"
        return (
            f"shown by {of}{origin}: {what} {self.tensor}, element ({where}) is "
            f"{self.network:g}, the chip has {self.chip:g}"
        )
