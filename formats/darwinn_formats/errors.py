"""Errors that all packages raise: about the bytes or the text of a file, and about running it."""

from __future__ import annotations

from typing import Any, Self


def printable(text: str) -> str:
    """``text`` in one line that any terminal and XML take: other characters as escape sequences.

    What a file calls its tensors passes through here wherever people or servers read it.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Portable(Exception):
    """An error that can be sent to another process, whatever arguments it was made of.

    By itself Python makes it anew of its text alone, which fails in the process that receives it,
    and in a pool of processes nobody hears of that.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """How ``pickle`` makes it again: with the text and the attributes that it has."""
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[Portable], texts: tuple[Any, ...], attributes: dict[str, Any]) -> Portable:
    error = kind.__new__(kind, *texts)
    error.__dict__.update(attributes)
    return error


class FormatError(Portable):
    """A file, or a value to be written, that breaks its format.

    Attributes:
        file: name of the file, or None where only bytes were given.
        offset: byte offset in the file where the fault is, or None when a value cannot be
            written, or when a file as a whole does not fit.
        field: path of the field, for example ``Package.multi_chip_package[0].signature``.
        reason: what is wrong with it.
    """

    def __init__(
        self, field: str, reason: str, *, offset: int | None = None, file: str | None = None
    ) -> None:
        super().__init__(field, reason)
        self.file = file
        self.offset = offset
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        where = [self.file or "", "" if self.offset is None else f"byte {self.offset}", self.field]
        # Keys and names in a file may hold anything; an error is a line.
        return printable(": ".join([*filter(None, where), self.reason]))

    def within(self, parent: str) -> Self:
        """The same error, its field path prefixed with the name of what holds the field."""
        separator = "" if not self.field or self.field.startswith("[") else "."
        self.field = f"{parent}{separator}{self.field}"
        return self

    def with_file(self, name: str) -> FormatError:
        """A copy of this error that names the file."""
        return FormatError(self.field, self.reason, offset=self.offset, file=name)


class TextError(Portable):
    """Text that is not the text form of a BEF file; ``line`` and ``column`` count from 1."""

    def __init__(self, file: str, line: int, column: int, reason: str) -> None:
        super().__init__(f"{file}:{line}:{column}: {reason}")
        self.file = file
        self.line = line
        self.column = column
        self.reason = reason


class ExecutionError(Portable):
    """A program that cannot be run, or that fails while it runs; the message says where."""


class Unavailable(ExecutionError):
    """An engine that is not installed, or that does not execute programs of this kind."""
