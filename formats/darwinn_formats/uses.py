"""Each table of a format declares here what the project does with its members.

Every member is loaded and checked. ``uses`` says which ones are shown (``darwinn inspect`` and
``disasm``) and which ones an execution depends on; docs/members.md lists them all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Flag
from types import MappingProxyType
from typing import Any, TypeVar

T = TypeVar("T")


class Use(Flag):
    """The uses of a member's value, after it was loaded and checked."""

    READ = 0
    SHOWN = 1
    EXECUTED = 2


BOTH = Use.SHOWN | Use.EXECUTED


@dataclass(frozen=True, slots=True)
class Uses:
    """The members of a table, in the words of the format's document.

    Attributes:
        name: of the table.
        names: of each member, by that of its dataclass field.
        members: what happens with each member, by that of its dataclass field; empty for a table
            without fields.
        refused: for members of which some values are refused, words of the refusal.
        unions: names that the document gives to the unions of fields.
        whole: what happens with the table itself, which counts where it is one of a union.
        is_later: whether the document does not have the table; ``later`` are such members.
    """

    name: str
    names: Mapping[str, str]
    members: Mapping[str, Use]
    refused: Mapping[str, str]
    unions: Mapping[str, str]
    whole: Use
    is_later: bool
    later: frozenset[str]


_KNOWN: dict[type[Any], Uses] = {}


def uses(
    name: str = "",
    *,
    names: Mapping[str, str] | None = None,
    read: str = "",
    shown: str = "",
    executed: str = "",
    refused: Mapping[str, str] | None = None,
    unions: Mapping[str, str] | None = None,
    later: str = "",
    whole: Use = BOTH,
    is_later: bool = False,
) -> Callable[[type[T]], type[T]]:
    """Say what happens with the members of a dataclass: both shown and executed, or as given.

    Args:
        name: of the table in the document, where the class has another.
        names: of members in the document, by field, where they differ.
        read, shown, executed: fields, apart by spaces, of which the value is only loaded, only
            shown, or only executed.
        refused: words of the refusal of some values, by field.
        unions: names that the document gives to the unions of fields.
        later: fields that newer versions of the format have, and the document does not.
        whole: of the table itself.
        is_later: the document does not have the table.
    """
    exceptions = {Use.READ: read, Use.SHOWN: shown, Use.EXECUTED: executed}
    told = {field: use for use, fields in exceptions.items() for field in fields.split()}

    def mark(table: type[T]) -> type[T]:
        fields = [field.name for field in dataclasses.fields(table) if field.compare]  # type: ignore[arg-type]
        for field in (*told, *(names or ()), *(refused or ()), *(unions or ()), *later.split()):
            if field not in fields:
                raise TypeError(f"{table.__name__} has no field {field}")
        _KNOWN[table] = Uses(
            name or table.__name__,
            MappingProxyType({field: (names or {}).get(field, field) for field in fields}),
            MappingProxyType({field: told.get(field, BOTH) for field in fields}),
            MappingProxyType(dict(refused or {})),
            MappingProxyType(dict(unions or {})),
            whole,
            is_later,
            frozenset(later.split()),
        )
        return table

    return mark


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a file that is no field of a flatbuffer.

    Attributes:
        section: where the document describes it: a section of a file, a production of a grammar.
        name: of the part within the section; empty for the section itself.
        held: class and field that hold its value, None if nothing does.
        use: what happens with a part that nothing holds.
        refused: words of the refusal where some values are refused.
    """

    section: str
    name: str = ""
    held: tuple[type[Any], str] | None = None
    use: Use = Use.READ
    refused: str = ""

    @property
    def what_happens(self) -> Use:
        """The uses of the value."""
        return self.use if self.held is None else uses_of(self.held[0]).members[self.held[1]]


def uses_of(table: type[Any]) -> Uses:
    """The uses that a table declares; KeyError for a class without ``uses``."""
    return _KNOWN[table]


def tables_of(module: str) -> list[type[Any]]:
    """Tables that a module declares, in its order."""
    return [table for table in _KNOWN if table.__module__ == module]
