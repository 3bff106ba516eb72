"""The lines that are kept, one for each time that the project was measured, and what was lost."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

ALLOWED = 1.10
"""The most that a ratio may be of the one in the record."""

LOOP = "one thread"
"""Name of the calibration loop that is measured now (``measures.calibration``)."""

BUSY = 1.3
"""The most that the calibration loop may take of what it took, for a line to be kept."""

UNSTEADY = 1.2
"""The most that the calibration loop beside a measure may take of what it takes beside another, for
a line to be kept."""


@dataclass(frozen=True)
class Entry:
    """A measurement: least processor seconds of the action and of the calibration loop."""

    seconds: float
    calibration: float

    @property
    def ratio(self) -> float:
        """The action in calibration loops: what machines have in common, as far as they do."""
        return self.seconds / self.calibration

    def best(self, other: Entry) -> Entry:
        """The least of both: what else a machine does only makes it slower."""
        return Entry(min(self.seconds, other.seconds), min(self.calibration, other.calibration))


@dataclass(frozen=True)
class Line:
    """When the project was measured, at what commit, on what machine, and what came out.

    ``loop`` names the calibration loop: what has another one cannot be compared.
    """

    when: str
    commit: str
    machine: str
    measures: Mapping[str, Entry]
    loop: str = "all threads"


@dataclass(frozen=True)
class Change:
    """A measure beside the last one of its name in the record, if there is any."""

    name: str
    entry: Entry
    before: Entry | None

    @property
    def times(self) -> float | None:
        """How many times the ratio in the record: below 1 is quicker."""
        return None if self.before is None else self.entry.ratio / self.before.ratio

    @property
    def lost(self) -> bool:
        """Whether it takes longer than is allowed."""
        return self.times is not None and self.times > ALLOWED


def read(path: Path) -> list[Line]:
    """The lines of a file, the last one last; of a file that is not there none.

    Raises:
        ValueError: a line is not one of ours; it names file and line.
    """
    lines = []
    for number, text in enumerate(path.read_bytes().splitlines() if path.exists() else (), 1):
        try:
            lines.append(msgspec.json.decode(text, type=Line))
        except msgspec.DecodeError as error:
            raise ValueError(f"{path}:{number}: not a line of the record: {error}") from None
    return lines


def append(path: Path, line: Line) -> None:
    """Keep another line, written at once."""
    with path.open("ab") as stream:
        stream.write(msgspec.json.encode(line) + b"\n")
        stream.flush()
        os.fsync(stream.fileno())


def busier(lines: Sequence[Line], machine: str, entries: Mapping[str, Entry]) -> float:
    """How many times the calibration loop takes what it took for the last line of this machine; 1
    where there is none."""
    same = [line for line in lines if line.machine == machine and line.loop == LOOP]
    if not same:
        return 1.0
    now, then = (
        min(each.calibration for each in measures.values())
        for measures in (entries, same[-1].measures)
    )
    return now / then


def unsteadiness(entries: Mapping[str, Entry]) -> float:
    """How many times the quickest calibration loop of a line the slowest one takes: what the
    machine did meanwhile, which measures of memory and of arithmetic do not feel alike."""
    loops = [each.calibration for each in entries.values()]
    return max(loops) / min(loops)


def change(lines: Sequence[Line], machine: str, name: str, entry: Entry) -> Change:
    """Beside the last one on this machine or, where there is none, on any."""
    known = [line for line in lines if name in line.measures and line.loop == LOOP]
    same = [line for line in known if line.machine == machine]
    last = (same or known)[-1:]
    return Change(name, entry, last[0].measures[name] if last else None)
