"""TOML of unknown origin: within the bounds of the format, and with text that can be a path."""

from __future__ import annotations

import tomllib
from typing import Any

_INTEGERS = range(-(1 << 63), 1 << 63)


def parse(data: bytes) -> dict[str, Any]:
    """The document in ``data``.

    Raises:
        ValueError: it is not UTF-8 (``UnicodeDecodeError``), not TOML, nested beyond measure, or
            has an integer of more than 64 bits, which TOML has not, or the character NUL in a text.
    """
    try:
        document = tomllib.loads(data.decode())
    except RecursionError as error:
        raise ValueError(str(error)) from None
    left: list[Any] = [document]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value
        elif isinstance(value, int) and value not in _INTEGERS:
            raise ValueError("an integer of more than 64 bits")
        elif isinstance(value, str) and "\0" in value:
            raise ValueError(f"the character NUL in {value!r}")
    return document
