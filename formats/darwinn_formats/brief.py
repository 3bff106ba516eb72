"""Short forms of values that hold much: for a prompt, a log and a notebook.

``brief`` is a decorator of dataclasses whose fields hold programs, arrays or long lists. What it
shows tells a reader what the thing is and how much is in it; the fields have all of it. In a
notebook arrays by name are drawn as histograms, and a class with a method ``figure`` adds the SVG
that it gives.
"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from darwinn_formats.figure import histogram
from darwinn_formats.names import readable

MOST = 1500
"""Characters of the whole form."""
_MOST_TEXT = 80
"""Characters of one field."""
_MOST_ITEMS = 4
"""Items of a sequence, and keys of a mapping, that are shown."""
_MOST_FIGURES = 6

Type = TypeVar("Type", bound=type[Any])


def brief(target: Type) -> Type:
    """Give a dataclass, or a named tuple, a short ``repr`` and a table for notebooks."""
    for name, shown in (("__repr__", _repr), ("_repr_html_", _repr_html)):
        setattr(target, name, shown)
    return target


def brief_value(value: Any) -> str:
    """A value in one line of at most ``_MOST_TEXT`` characters or so; arrays by shape and type."""
    if isinstance(value, np.ndarray):
        return f"array({'x'.join(map(str, value.shape))}, {value.dtype.name})"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value):,} bytes>"
    if isinstance(value, Enum):
        return str(value.value if isinstance(value, str) else value.name)
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        return _named(value)
    if isinstance(value, Mapping):
        return _several(
            "{", (f"{_text(key)}: {_plain(value[key])}" for key in value), len(value), "}"
        )
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str):
        return _several("[", map(_plain, value), len(value), "]")
    return _text(value)


def table_of(rows: Iterable[Sequence[str]], headings: Sequence[str] = ()) -> str:
    """An HTML table; cells are escaped."""
    head = "".join(f"<th>{_escaped(each)}</th>" for each in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{_escaped(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"
    )


def _repr(self: Any) -> str:
    parts, room = [], MOST
    for name, value in _fields(self):
        part = f"{name}={brief_value(value)}"
        room -= len(part) + 2
        if room < 0:
            parts.append("…")
            break
        parts.append(part)
    return f"{type(self).__name__}({', '.join(parts)})"


def _repr_html(self: Any) -> str:
    title = f"<strong>{_escaped(type(self).__name__)}</strong>"
    drawn = self.figure() if hasattr(self, "figure") else ""
    arrays = [value for _, value in _fields(self) if isinstance(value, Mapping)]
    return (
        title
        + table_of((name, brief_value(value)) for name, value in _fields(self))
        + drawn
        + histograms([(str(name), each[name]) for each in arrays for name in each])
    )


def histograms(values: Iterable[tuple[str, Any]]) -> str:
    """The first few arrays among ``values``, by name, as SVG."""
    arrays = ((name, value) for name, value in values if isinstance(value, np.ndarray))
    return "".join(histogram(value, name) for name, value in islice(arrays, _MOST_FIGURES))


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    if dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            if each.repr:
                yield each.name, getattr(value, each.name)
    else:
        yield from zip(value._fields, value, strict=True)


def _named(value: Any) -> str:
    """The type of something with fields, and the first of them that is a text, to tell it by."""
    texts = (each for _, each in _fields(value) if isinstance(each, str) and each)
    first = next(texts, "")
    return f"{type(value).__name__}({_text(first) if first else '…'})"


def _plain(value: Any) -> str:
    """An item of something: nothing of what is in it."""
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str | bytes):
        return f"<{len(value):,} items>"
    return brief_value(value)


def _several(begin: str, items: Iterator[str], count: int, end: str) -> str:
    shown: list[str] = []
    for item in items:
        if len(shown) == _MOST_ITEMS or sum(map(len, shown)) + len(item) > _MOST_TEXT:
            shown.append(f"… {count:,} in all")
            break
        shown.append(item)
    return begin + ", ".join(shown) + end


def _text(value: Any) -> str:
    """Of a text its ends; of anything whose form may be long, its type."""
    if isinstance(value, str):
        half = _MOST_TEXT // 2
        whole = len(value) <= _MOST_TEXT
        return repr(value if whole else f"{value[:half]}…{value[-half:]}")
    if value is None or isinstance(value, bool | int | float | complex | np.generic):
        text = str(value)
        return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"
    return f"<{type(value).__name__}>"


def _escaped(text: str) -> str:
    return html.escape(readable(text))
