"""Errors of the references: a model that they cannot use, a program that needs what they lack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from darwinn_formats.errors import ExecutionError, Portable

AND = " and "
"""Between kinds of what is missing, where there are several."""
_MOST_NAMES = 20
"""Names that an error lists: a file may have any number of them."""


def names_of(known: Iterable[str]) -> str:
    """What there is, for an error about a name that is not: the first names, and how many more."""
    names = list(known)
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


class ModelError(Portable):
    """A model that a CPU reference cannot use: names the file and the reason, in one line."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}: {reason}")
        self.file = file
        self.reason = reason


class Unsupported(ExecutionError):
    """A program needs what the reference, or another part of the project, does not have.

    Attributes:
        what: kind of what is missing, for example ``operators`` or ``delegates``; several are
            joined by "and".
        missing: names of all that are missing, sorted, without repetition.
    """

    def __init__(self, what: str, missing: Sequence[str], part: str = "the reference") -> None:
        self.what = what
        self.missing = tuple(sorted(set(missing)))
        super().__init__(f"{what} that {part} does not have: {', '.join(self.missing)}")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of what is missing."""
        return tuple(self.what.split(AND))
