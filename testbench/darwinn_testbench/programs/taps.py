"""Values within programs, copied out while they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np
from darwinn_reference.protocol import Intermediate

from darwinn_testbench.chip.execution import TapFigures, digest
from darwinn_testbench.errors import InputError
from darwinn_testbench.request.inputs import Keep

MOST_VALUES = 100_000
"""Values that taps copy in one run at most: a loop makes any number of them."""
_MOST_KNOWN = 12
"""Names of values that an error lists."""


@dataclass(frozen=True, kw_only=True)
class ValueTap(TapFigures):
    """A value that was copied in a call.

    ``tap`` is its name in the program, ``member`` what it is called among the results;
    ``operation`` is what made it, ``step`` counts executed steps, ``location`` is where in the
    sources. ``data`` is empty if somebody has kept it.
    """

    member: str
    operation: str
    step: int
    dtype: str
    shape: tuple[int, ...]
    location: str


@dataclass(eq=False)
class ValueTaps:
    """The taps of a run: ``patterns`` are names of values or of operations, with ``*`` and ``?``.

    Attributes:
        patterns: what is copied.
        keep: takes the values as they come; None leaves them in ``found``.
        found: what was copied, in order.
    """

    patterns: Sequence[str]
    keep: Keep | None = None
    found: list[ValueTap] = field(default_factory=list)
    _run: int = 0
    _known: dict[str, None] = field(default_factory=dict)

    def begin(self, run: int) -> None:
        """The next call begins."""
        self._run = run

    def __call__(self, entry: Intermediate) -> None:
        """Copy a value that one of the patterns names.

        Raises:
            InputError: there are too many.
        """
        if len(self._known) <= _MOST_KNOWN:
            self._known[entry.name] = None
        names = (entry.name, entry.operation)
        if not any(fnmatchcase(name, pattern) for pattern in self.patterns for name in names):
            return
        if len(self.found) == MOST_VALUES:
            raise InputError(f"--tap: more than {MOST_VALUES:,} values: name fewer of them")
        data = np.ascontiguousarray(entry.data)
        member = f"tap{len(self.found)}"
        if self.keep is not None:
            self.keep(member, data)
        self.found.append(
            ValueTap(
                run=self._run,
                tap=entry.name,
                bytes=data.nbytes,
                sha256=digest(data),
                data=data.copy() if self.keep is None else np.empty(0, data.dtype),
                member=member,
                operation=entry.operation,
                step=entry.step,
                dtype=str(data.dtype),
                shape=entry.data.shape,
                location=entry.location,
            )
        )

    def refuse_nothing(self) -> None:
        """Refuse patterns that no value has met.

        Raises:
            InputError: naming them, and values that there are.
        """
        missed = [
            pattern
            for pattern in self.patterns
            if not any(
                fnmatchcase(name, pattern)
                for each in self.found
                for name in (each.tap, each.operation)
            )
        ]
        if missed:
            names = list(self._known)[:_MOST_KNOWN]
            more = " ..." if len(self._known) > _MOST_KNOWN else ""
            known = f"{', '.join(names)}{more}" if names else "none"
            raise InputError(
                f"--tap {missed[0]}: no value or operation of this name; values: {known} "
                "(--tap '*' shows each with its operation)"
            )
