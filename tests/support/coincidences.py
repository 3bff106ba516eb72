"""What may come together in the units of the chip: bins of conditions and handshakes, the reasons
why some pairs cannot be, and programs that are drawn towards those that are still missing.

Each record has a module in ``rtl/bench/`` whose structures name its levels, events and handshakes,
and which tells which of their pairs have come. A level is a condition three times: it begins, it
lasts, it has ended in this cycle. The first cycle of reset is a condition of every record.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from darwinn_rtl.source_files import source

if TYPE_CHECKING:
    from darwinn_rtl.build import Design

_STRUCT = re.compile(r"typedef struct packed \{(.*?)\} (\w+)_t;", re.DOTALL)
_FIELD = re.compile(r"logic +(\w+);")
PHASES = ("begins", "lasts", "ends")
RESET = "reset"

Pair = tuple[str, str]
"""A condition and a handshake."""


@dataclass(frozen=True)
class Record:
    """Conditions and handshakes of some units, and what is known of their pairs.

    Attributes:
        number: by which the module tells of its pairs.
        module: that counts.
        knobs: a dataclass with defaults: what a program is drawn by.
        anything: what a knob is set to where no recipe says anything.
        recipes: how a condition or a handshake is made frequent.
        impossible: patterns of conditions and handshakes that cannot come together, each with the
            reason.
    """

    number: int
    module: str
    knobs: type
    anything: Mapping[str, tuple[Any, ...]]
    recipes: Mapping[str, Mapping[str, Any]]
    impossible: tuple[tuple[str, str, str], ...]

    def counted(self, design: Design, inside: str) -> Design:
        """``design`` with the module that counts in its module ``inside``."""
        sources = (*design.c_sources, "coincidences.cpp")
        return replace(design, c_sources=sources, bound={inside: self.module})

    @cached_property
    def _named(self) -> dict[str, list[str]]:
        text = source(f"{self.module}.sv").read_text()
        return {name: _FIELD.findall(body) for body, name in _STRUCT.findall(text)}

    @property
    def handshakes(self) -> list[str]:
        """Names of all handshakes."""
        return self._named["handshakes"]

    @cached_property
    def conditions(self) -> list[str]:
        """Names of all conditions, as the module counts them from the highest on."""
        levels = [f"{level} {phase}" for phase in PHASES for level in self._named["levels"]]
        return [*levels, RESET, *self._named["events"]]

    def pair(self, number: int) -> Pair:
        """The pair of a number that the module tells: from the last one on, which is 0."""
        condition, handshake = divmod(number, len(self.handshakes))
        return self.conditions[-1 - condition], self.handshakes[-1 - handshake]

    def told(self, library: Path | None = None) -> set[Pair]:
        """The pairs that have come first since the last call, in this program or in a library."""
        opened = ctypes.CDLL(None if library is None else str(library))
        pairs = ctypes.POINTER(ctypes.c_uint32)()
        count = opened.coincidences_told(self.number, ctypes.byref(pairs))
        return {self.pair(number) for number in pairs[:count]}

    def reason(self, pair: Pair) -> str:
        """Why a pair cannot be; empty if it can."""
        condition, handshake = pair
        for conditions, handshakes, why in self.impossible:
            if _is_one(condition, conditions) and _is_one(handshake, handshakes):
                return why
        return ""

    @cached_property
    def possible(self) -> frozenset[Pair]:
        """Every pair that can be."""
        found = ((condition, shake) for condition in self.conditions for shake in self.handshakes)
        return frozenset(pair for pair in found if not self.reason(pair))

    def drawn(self, random: Random, missing: Iterable[Pair]) -> Any:
        """Knobs for the next program: most are made for a pair that is missing."""
        chosen = replace(
            self.knobs(), **{name: random.choice(of) for name, of in self.anything.items()}
        )
        aims = sorted(missing)
        if not aims or random.random() < 0.2:
            return replace(chosen, **self.recipes[random.choice(sorted(self.recipes))])
        condition, handshake = random.choice(aims)
        names = (condition.partition(" ")[0], handshake)
        parts = [self.recipes.get(name, {}) for name in names]
        random.shuffle(parts)
        for part in parts:
            chosen = replace(chosen, **part)
        # A recipe says what makes a thing frequent; now and then something else does.
        name = random.choice([each.name for each in fields(chosen) if each.name in self.anything])
        return replace(chosen, **{name: random.choice(self.anything[name])})


@dataclass
class Seen:
    """The pairs of a record that have come in a run."""

    record: Record
    pairs: set[Pair]

    @property
    def missing(self) -> frozenset[Pair]:
        """Those that can be and have not come."""
        return self.record.possible - self.pairs

    def take(self, told: Iterable[Pair]) -> None:
        """Add pairs; none is one that is said to be impossible."""
        self.pairs |= set(told)
        wrong = {pair: why for pair in self.pairs if (why := self.record.reason(pair))}
        assert not wrong, f"said to be impossible: {wrong}"

    @property
    def bins(self) -> dict[str, int]:
        """A bin for each pair that can be."""
        return {", ".join(pair): int(pair in self.pairs) for pair in sorted(self.record.possible)}

    def come(self, least: float) -> str:
        """How many have come, and which have not: at least this share of all that can."""
        bins = self.bins
        left = [name for name, hits in bins.items() if not hits]
        assert len(left) <= (1 - least) * len(bins), f"{len(left)} never hit: {left}"
        return f"{len(bins) - len(left)} of {len(bins)} pairs, all but {left}"


def _is_one(name: str, patterns: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns.split("|"))
