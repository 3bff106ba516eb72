"""Functional coverage: bins that a unit's random tests must have hit, declared beside the tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from darwinn_rtl.coverage_report import keep_bins
from hypothesis import event, seed

ROUNDS = 6
"""Rounds of a random test at the most, each with a seed of its own."""


class Coverage:
    """Counts hits of declared bins; ``close`` names those that no test reached."""

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

    def close(self, check: Callable[[], None]) -> None:
        """Run a random test until every bin was hit, with a few more seeds if need be.

        Which examples a seed gives depends a little on what else the process has imported, so a
        rare bin may be missed by the first round and must not fail the gate for that.
        """
        check()
        for number in range(1, ROUNDS):
            if not self.missed():
                break
            seed(number)(check)()
        self.finish()

    def finish(self) -> None:
        """Keep the counts for the report; raise ``AssertionError`` if a bin was never hit."""
        keep_bins(self.unit, {"bins": {name: self.hits[name] for name in self.bins}})
        missed = self.missed()
        assert not missed, f"{self.unit}: bins never hit: {missed}"

    def missed(self) -> list[str]:
        """The bins that were never hit."""
        return [name for name in self.bins if not self.hits[name]]
