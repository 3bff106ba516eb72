"""Chips and links to their hosts, as the event model takes them: read from TOML."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Final

import numpy as np
from darwinn_formats.brief import brief
from darwinn_formats.errors import FormatError
from darwinn_formats.files import errors_name

from darwinn_sim.chips import quantities
from darwinn_sim.chips.description import BUILT_IN, ChipDescription, read_chip
from darwinn_sim.chips.quantities import (
    BuiltIn,
    Confidence,
    Description,
    Quantity,
    Rule,
    read_table,
)
from darwinn_sim.chips.selected import check_selected

__all__ = [
    "ChipDescription",
    "Confidence",
    "HostLink",
    "Quantity",
    "built_in",
    "chip_description",
    "host_link",
]

_PLACES: Final = {"chips": BUILT_IN, "hosts": BuiltIn(__package__, "hosts")}


@brief
@dataclass(frozen=True)
class HostLink(Description):
    """The link between host and chip, with the host's share of a request.

    ``correlations`` of parameters that a fit has found: two names, and how what each makes a time
    longer by goes with the other; of a pair that is not named neither tells of the other.
    """

    bytes_per_second_in: Annotated[Quantity, Rule("B/s", 1e3, 1e12, "bandwidth to the chip")]
    bytes_per_second_out: Annotated[Quantity, Rule("B/s", 1e3, 1e12, "bandwidth from it")]
    fixed_seconds: Annotated[
        Quantity, Rule("s", 0, 10, "the host's fixed cost of a request", whole=False)
    ]
    on_request: Annotated[
        Quantity, Rule("flag", 0, 1, "1: the chip fetches by its descriptors; 0: the host pushes")
    ]
    output_copy_seconds: Annotated[
        Quantity,
        Rule(
            "s",
            0,
            1,
            "one copy of a run of output, from the chip's order to that of the tensor",
            whole=False,
            absent=0,
        ),
    ]
    scatter: Annotated[
        Quantity,
        Rule(
            "share",
            0,
            10,
            "distance of nine times in ten from their prediction with the right parameters",
            whole=False,
            absent=0,
        ),
    ]
    clock: Annotated[
        Quantity,
        Rule("Hz", 0, 1e10, "what the host's runtime sets; 0: as the chip is described", absent=0),
    ]

    correlations: tuple[tuple[str, str, float], ...] = ()

    def clocked(self, chip: ChipDescription) -> ChipDescription:
        """The chip at the clock that this host sets, or as it is described if it sets none."""
        return replace(chip, clock=self.clock) if self.clock.value else chip


def chip_description(name_or_path: str) -> ChipDescription:
    """A built-in chip description by its name, or one from a TOML file.

    Raises ``FormatError`` for a file that is no description, or whose sizes are not those of the
    chip that this process simulates; ``OSError`` if it cannot be read.
    """
    description = read_chip(name_or_path)
    check_selected(name_or_path, description)
    return description


def host_link(name_or_path: str) -> HostLink:
    """A built-in host link by its name, or one from a TOML file; raises as the above."""
    with errors_name(name_or_path):
        name, table = read_table(_PLACES["hosts"], name_or_path)
        correlations = _correlations(name, table.pop("correlations", []))
        return HostLink.from_table(name, table, correlations=correlations)


def _correlations(name: str, given: object) -> tuple[tuple[str, str, float], ...]:
    """The correlations of a host's file; raises ``FormatError`` for what is none."""
    known = HostLink.parameters()
    where = f"{name}.correlations"
    found: list[tuple[str, str, float]] = []
    for pair in given if isinstance(given, list) else [None]:
        match pair:
            case [str(one), str(other), float() | int() as value] if (
                {one, other} <= known.keys()
                and one != other
                and -1 <= value <= 1
                and not isinstance(value, bool)
            ):
                found.append((one, other, value))
            case _:
                reason = "a correlation has the names of two parameters and a number from -1 to 1"
                raise FormatError(where, reason)
    if len({frozenset(pair[:2]) for pair in found}) < len(found):
        raise FormatError(where, "two correlations of one pair of parameters")
    if not _are_possible(found):
        raise FormatError(where, "they contradict each other: no errors go together like that")
    return tuple(found)


_LEFT_OUT = 0.05
"""How far below 0 an eigenvalue is by the rounding, and by the small correlations that a fit does
not write."""


def _are_possible(correlations: list[tuple[str, str, float]]) -> bool:
    """Whether errors can go together so: no sum of them may have a variance below 0."""
    places = {name: place for place, name in enumerate(HostLink.parameters())}
    matrix = np.eye(len(places))
    for one, other, value in correlations:
        matrix[places[one], places[other]] = matrix[places[other], places[one]] = value
    return bool(np.linalg.eigvalsh(matrix)[0] > -_LEFT_OUT)


def built_in(folder: str) -> tuple[str, ...]:
    """Names of the built-in descriptions in ``folder`` (chips or hosts)."""
    return quantities.built_in(_PLACES[folder])
