"""Which fields of the tables of a schema some code reads: the tables are watched while it runs."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

GENERATED = "<string>"
"""File of what dataclasses generate: constructors, comparisons and representations."""


class _Watched:
    """A slot of a class that notes who reads it."""

    def __init__(self, slot: Any, member: tuple[type[Any], str], seen: set[Any]) -> None:
        self.slot, self.member, self.seen = slot, member, seen

    def __get__(self, instance: Any, owner: type[Any]) -> Any:
        if instance is None:
            return self.slot
        if sys._getframe(1).f_code.co_filename != GENERATED:
            self.seen.add(self.member)
        return self.slot.__get__(instance, owner)

    def __set__(self, instance: Any, value: Any) -> None:
        self.slot.__set__(instance, value)


@contextmanager
def members_read(tables: Iterable[type[Any]]) -> Iterator[set[tuple[type[Any], str]]]:
    """A set that fills with the fields, as (class, name), that are read until the end.

    ``tables`` are dataclasses with slots. Comparisons and representations are no reading.
    """
    seen: set[tuple[type[Any], str]] = set()
    slots = {
        (table, field.name): table.__dict__[field.name]
        for table in tables
        for field in dataclasses.fields(table)
    }
    for (table, name), slot in slots.items():
        setattr(table, name, _Watched(slot, (table, name), seen))
    try:
        yield seen
    finally:
        for (table, name), slot in slots.items():
            setattr(table, name, slot)
