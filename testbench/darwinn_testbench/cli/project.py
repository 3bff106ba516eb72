"""Defaults of a project in a command line, and the notice that names them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

from darwinn_testbench.cli.limited import Costs
from darwinn_testbench.cli.terminal import print_line
from darwinn_testbench.request import project
from darwinn_testbench.request.project import Key
from darwinn_testbench.request.record import Entry, setting_of


@cache
def keys() -> Mapping[str, Key]:
    """Every key of a project, from the tables of settings."""
    return {
        project.key_of(setting): Key(setting, project.plain_type(setting.plain or hint))
        for setting, hint in _settings()
        if setting.project
    }


def _settings() -> Iterator[tuple[Any, Any]]:
    # Imported here: few commands are called in a project, and no other should wait for the chip.
    from darwinn_testbench.request import settings, timing

    costs = get_type_hints(Costs, include_extras=True)
    hints = [costs[each.name] for each in fields(Costs)]
    for hint in (*vars(settings).values(), *vars(timing).values(), *hints):
        setting = setting_of(hint)
        if setting is not None:
            yield setting, get_args(hint)[0]


@dataclass(frozen=True)
class Defaults:
    """Values for the parameters of a command, by name; how the file says each; the file."""

    values: dict[str, Any]
    said: Mapping[str, str]
    file: Path | None

    def tell(self, command: str, changed: Iterable[str]) -> None:
        """Name what a project has changed of this call."""
        if told := ", ".join(self.said[name] for name in changed):
            print_line(f"darwinn {command}: {told} ({self.file})")


def without_opposites(
    entries: Mapping[str, Entry], words: Sequence[str]
) -> tuple[list[str], frozenset[str]]:
    """The words of a command line without the flags that take back what a project says, and the
    names of the parameters that these are about.

    Of a flag and the one that takes it back the last holds. Words behind ``--`` are no flags.
    """
    opposites = {
        project.opposite_of(entry.setting): (name, entry.setting.option)
        for name, entry in entries.items()
        if entry.setting.project and entry.plain is bool
    }
    end = words.index("--") if "--" in words else len(words)
    left: list[str] = []
    taken_back = set()
    for word in words[:end]:
        if word in opposites:
            name, flag = opposites[word]
            taken_back.add(name)
            left = [each for each in left if each != flag]
        else:
            left.append(word)
    return [*left, *words[end:]], frozenset(taken_back)


def defaults_of(entries: Mapping[str, Entry], taken_back: Collection[str] = ()) -> Defaults:
    """The defaults of the project in whose folder the command is called, but for those that the
    command line takes back.

    Raises:
        InputError, OSError: as ``project.found``.
    """
    found = project.found(Path.cwd(), keys)
    values: dict[str, Any] = {}
    said: dict[str, str] = {}
    for name, entry in entries.items():
        key = project.key_of(entry.setting)
        if entry.setting.project and key in found.values and name not in taken_back:
            value = found.values[key]
            values[name] = not value if entry.setting.inverse else value
            said[name] = f"{key} = {_shown(value)}"
    return Defaults(values, said, found.file)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
