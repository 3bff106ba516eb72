"""Calling conventions: what a function takes and returns, as a text such as ``0rriiCID_v``.

Version ``0``, arguments, ``_`` and results; each is a letter: ``i`` i32, ``I`` i64, ``f`` f32,
``F`` f64, ``r`` a reference. ``C...D`` is a tuple that the caller may repeat, for arguments only,
and ``v`` alone stands for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from darwinn_formats.errors import FormatError

_LETTERS = frozenset("iIfFr")
REGISTER_TYPES = {"i": "i", "I": "l", "f": "f", "F": "d", "r": "r"}
"""Type of a register, in the notation of the opcode table, that a letter stands for."""


@dataclass(frozen=True, slots=True)
class CallingConvention:
    """Arguments and results; an argument is a letter, or the letters of a repeated tuple."""

    text: str
    arguments: tuple[str | tuple[str, ...], ...]
    results: tuple[str, ...]

    @property
    def variadic(self) -> bool:
        """Whether an argument is a repeated tuple."""
        return any(isinstance(argument, tuple) for argument in self.arguments)

    def flat_arguments(self, segments: Sequence[int] = ()) -> Iterator[str]:
        """Letters of all values of a call; ``segments`` holds how often each tuple repeats."""
        for index, argument in enumerate(self.arguments):
            if isinstance(argument, tuple):
                for _ in range(segments[index]):
                    yield from argument
            else:
                yield argument


@lru_cache(maxsize=1024)
def parse(text: str) -> CallingConvention:
    """Read a calling convention.

    Raises:
        FormatError: the text is none; field and offset are left to the caller.
    """
    if not text.startswith("0"):
        raise FormatError("", f"calling convention {text!r} does not start with version 0")
    arguments, _, results = text[1:].partition("_")
    taken = _values(text, arguments)
    returned = _values(text, results)
    plain = tuple(value for value in returned if isinstance(value, str))
    if len(plain) != len(returned):
        raise FormatError("", f"calling convention {text!r} repeats results")
    return CallingConvention(text, taken, plain)


def _values(text: str, letters: str) -> tuple[str | tuple[str, ...], ...]:
    if letters == "v":
        return ()
    values: list[str | tuple[str, ...]] = []
    span: list[str] | None = None
    for letter in letters:
        if letter == "C" and span is None:
            span = []
        elif letter == "D" and span:
            values.append(tuple(span))
            span = None
        elif letter not in _LETTERS:
            raise FormatError("", f"calling convention {text!r} has {letter!r} in a wrong place")
        elif span is None:
            values.append(letter)
        else:
            span.append(letter)
    if span is not None:
        raise FormatError("", f"calling convention {text!r} has a tuple without end")
    return tuple(values)
