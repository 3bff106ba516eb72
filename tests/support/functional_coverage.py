"""Functional coverage: bins that a unit's random tests must have hit, declared beside the tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hypothesis import event


class Coverage:
    """Counts hits of declared bins; ``assert_complete`` names those that no test reached."""

    def __init__(self, unit: str, bins: Iterable[str]) -> None:
        self.unit = unit
        self.bins = tuple(bins)
        self.hits: Counter[str] = Counter()

    def hit(self, *names: str, when: object = True) -> None:
        """Count a hit of each bin, if ``when`` is true; a bin that is not declared is an error."""
        for name in names if when else ():
            if name not in self.bins:
                raise KeyError(f"{self.unit} declares no coverage bin {name!r}")
            self.hits[name] += 1
            event(f"{self.unit}: {name}")

    def assert_complete(self) -> None:
        """Fail if a declared bin was never hit."""
        missed = [name for name in self.bins if not self.hits[name]]
        assert not missed, f"{self.unit}: bins never hit: {missed}"
