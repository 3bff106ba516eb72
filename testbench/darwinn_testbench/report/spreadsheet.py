"""The rows of a report as lines of plain values, for spreadsheets and data frames.

A line has the keys of ``--json``. What lies within a value has a column of its own, named by its
keys with a dot between them (``litert.max_difference``); a list of values is joined by semicolons.
Lists of objects, which are tables of their own, are left out.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Line = Mapping[str, Any]
_LAST = ("verdict", "message")


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """JSON values as one line: no value of it is a list or an object."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{key}": each for key, each in flat(value).items()}
        elif not isinstance(value, list):
            found[name] = value
        elif value and not any(isinstance(each, Mapping) for each in value):
            found[name] = "; ".join(map(_text, value))
    return found


def _text(value: Any) -> str:
    """An item of a list; a list of numbers within it as a shape: ``1x224x224x3``."""
    if isinstance(value, list):
        return "x".join(map(_text, value))
    return "" if value is None else str(value)


def columns_of(lines: Iterable[Line]) -> list[str]:
    """The names of all columns, in the order in which they come; verdict and message are last."""
    names = list(dict.fromkeys(name for line in lines for name in line))
    # What has columns for what is within it has none of its own: it is empty in other lines.
    outer = {name[:place] for name in names for place, sign in enumerate(name) if sign == "."}
    names = [name for name in names if name not in outer]
    return [*(name for name in names if name not in _LAST), *(n for n in _LAST if n in names)]


def csv_of(lines: Sequence[Line]) -> bytes:
    """A header and the lines. What UTF-8 cannot hold of a text (half a pair of UTF-16, which JSON
    allows) is escaped.
    """
    stream = io.StringIO()
    columns = columns_of(lines)
    writer = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return stream.getvalue().encode(errors="backslashreplace")
