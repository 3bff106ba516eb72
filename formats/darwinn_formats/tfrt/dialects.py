"""Names of types that upstream has changed: a file keeps those that it was written with.

Everything between reading and writing a text has the present names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, TypeVar

from darwinn_formats.tfrt.text.type_names import OLD_TENSOR, TENSOR

_T = TypeVar("_T")


def is_old(names: Iterable[str]) -> bool:
    """Whether names of types, or a text, are of the time before the change, and not of both."""
    texts = list(names)
    return any(OLD_TENSOR in text for text in texts) and not any(TENSOR in text for text in texts)


def present(value: _T) -> _T:
    """A file, or part of one, with the present names of types."""
    found: _T = _renamed(value, OLD_TENSOR, TENSOR)
    return found


def former(value: _T) -> _T:
    """A file, or part of one, with the names from before the change."""
    found: _T = _renamed(value, TENSOR, OLD_TENSOR)
    return found


def _renamed(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, tuple):
        return tuple(_renamed(each, old, new) for each in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            entry.name: _renamed(getattr(value, entry.name), old, new)
            for entry in dataclasses.fields(value)
            if entry.init
        }
        return dataclasses.replace(value, **fields)
    return value
