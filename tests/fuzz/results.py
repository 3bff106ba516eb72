"""What came of many mutants, by format, added up over runs of the fuzzer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
from darwinn_testbench.report.files import write_result

from tests.fuzz.harness import Outcome

_EXAMPLES = 5
"""Numbers of mutants that are kept with a finding."""
_SHOWN = 12


class Tally(msgspec.Struct):
    """What came of the mutants of one format: ``seconds`` of processor time in all, the highest
    ``peak`` in bytes, how often each command had each end.
    """

    mutants: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    peak: int = 0
    ends: dict[str, int] = {}

    def shares(self) -> list[tuple[str, float]]:
        """The most frequent ends, each with its share of the runs of its command."""
        runs: Counter[str] = Counter()
        for end, count in self.ends.items():
            runs[end.split()[0]] += count
        frequent = sorted(self.ends.items(), key=lambda each: -each[1])[:_SHOWN]
        return [(end, count / runs[end.split()[0]]) for end, count in frequent]

    def add(self, outcome: Outcome) -> None:
        """Count one more."""
        self.mutants += 1
        self.seconds += outcome.seconds
        self.longest = max(self.longest, outcome.seconds)
        self.peak = max(self.peak, outcome.peak)
        for done in outcome.done:
            end = f"{done.command} {done.end}"
            self.ends[end] = self.ends.get(end, 0) + 1


class Found(msgspec.Struct):
    """How often there was a finding, and in which mutants first."""

    count: int = 0
    numbers: list[int] = []


class Results(msgspec.Struct):
    """``runs`` are (first number, mutants) each; the mutants by format, the findings by name."""

    runs: list[list[int]] = []
    formats: dict[str, Tally] = {}
    findings: dict[str, Found] = {}

    @classmethod
    def load(cls, path: Path | None) -> Results:
        """What a file keeps; nothing if there is no file yet."""
        if path is None or not path.exists():
            return cls()
        return msgspec.json.decode(path.read_bytes(), type=cls)

    def save(self, path: Path) -> None:
        """Keep it in a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_result(path, msgspec.json.format(msgspec.json.encode(self)))

    def next_number(self) -> int | None:
        """The number after all that have been done; None if none has."""
        return max((first + count for first, count in self.runs), default=None)

    def begin(self, first: int) -> None:
        """A run begins, with this number."""
        self.runs.append([first, 0])

    def add(self, outcome: Outcome) -> None:
        """Count a mutant of the run."""
        self.runs[-1][1] += 1
        self.formats.setdefault(outcome.task.mutant.format, Tally()).add(outcome)

    def found(self, finding: str, number: int) -> int:
        """Count a finding; return how often there has been this one."""
        found = self.findings.setdefault(finding, Found())
        found.count += 1
        if len(found.numbers) < _EXAMPLES:
            found.numbers.append(number)
        return found.count

    def print(self) -> None:
        """A line for each format, and one for each kind of finding."""
        print(f"{'format':<12} {'mutants':>8} {'ms each':>7} {'longest':>7} {'MiB':>5}  ends")
        for name, tally in sorted(self.formats.items()):
            shares = ", ".join(f"{end} {share:.1%}" for end, share in tally.shares())
            each = 1000 * tally.seconds / tally.mutants
            print(
                f"{name:<12} {tally.mutants:8,} {each:7.1f} {tally.longest:5.1f} s "
                f"{tally.peak >> 20:5}  {shares}"
            )
        print(f"{sum(each.mutants for each in self.formats.values()):,} mutants in all")
        for finding, found in sorted(self.findings.items(), key=lambda each: -each[1].count):
            print(f"{found.count:8,} x {finding}: {', '.join(map(str, found.numbers))}")
