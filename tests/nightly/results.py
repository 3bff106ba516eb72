"""What came of a night, and of those before: a line of JSON each."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import msgspec


class Result(StrEnum):
    """What came of a job."""

    PASSED = "passed"
    FAILED = "failed"
    LATE = "late"
    """It went on far beyond its time, and was ended."""
    LACKS = "lacks"
    """Something that it needs is not there."""

    @property
    def failed(self) -> bool:
        """Whether the night has failed with it."""
        return self in (Result.FAILED, Result.LATE)


@dataclass(frozen=True)
class Done:
    """A job that is over: its name, what came of it, whole seconds, its last word, what it is
    about, and its figures by name.
    """

    name: str
    result: Result
    seconds: int
    says: str
    about: str
    figures: dict[str, float] = field(default_factory=dict)

    def line(self) -> str:
        """As it is printed."""
        return f"{self.result:<7} {self.name} ({self.seconds} s): {self.says}"


@dataclass(frozen=True)
class Night:
    """A night: when it began, of what commit on what machine, its seed, and its jobs."""

    started: str
    commit: str
    machine: str
    seed: int
    jobs: tuple[Done, ...]

    def result(self, name: str) -> Result | None:
        """Of the job with that name, if it was asked for."""
        return next((each.result for each in self.jobs if each.name == name), None)

    @property
    def figures(self) -> dict[tuple[str, str], float]:
        """Of all jobs, by the job's name and the figure's."""
        return {
            (each.name, name): value for each in self.jobs for name, value in each.figures.items()
        }


@dataclass
class Nights:
    """All nights of a folder, the last one last."""

    path: Path
    all: list[Night] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> Nights:
        """The nights that the file keeps; a line that was cut short is left out."""
        found = []
        for line in path.read_bytes().splitlines() if path.exists() else ():
            try:
                found.append(msgspec.json.decode(line, type=Night))
            except msgspec.DecodeError:
                continue
        return cls(path, found)

    def add(self, night: Night) -> None:
        """Keep another one."""
        self.all.append(night)
        with self.path.open("ab") as stream:
            stream.write(msgspec.json.encode(night) + b"\n")
