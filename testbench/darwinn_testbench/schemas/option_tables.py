"""Tables of the commands' options: from the application itself, and from the settings it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from typing import Any, Literal, get_args, get_origin

import typer

from darwinn_testbench.cli import commands
from darwinn_testbench.cli.application import application
from darwinn_testbench.cli.limited import Costs
from darwinn_testbench.cli.listed import Listed
from darwinn_testbench.cli.results import Results
from darwinn_testbench.request.record import Entry
from darwinn_testbench.request.scope import Scope

WHOLE = "darwinn"
"""Stands for the application, whose options come before the command."""
SHARED = "many commands"
"""Stands for the options that many commands have, the same in each."""

_SHARED_NAMES = frozenset(
    each.name for record in (Costs, Listed, Results) for each in fields(record)
)
_HEADINGS = ("option", "value", "default", "applies to", "effect")


@dataclass(frozen=True)
class OptionRow:
    """An option as the tables show it; each is the text of a cell."""

    option: str
    value: str
    default: str
    scope: str
    text: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of its row."""
        return self.option, self.value, self.default, self.scope, self.text


@cache
def names() -> Sequence[str]:
    """The commands of the application."""
    group: Any = typer.main.get_command(application())
    return tuple(group.commands)


@cache
def options_of(command: str) -> Mapping[str, OptionRow]:
    """All options of a command, by parameter, in the order of its help."""
    if command == WHOLE:
        found: Any = typer.main.get_command(application())
        return _rows(found.params, {})
    return _rows(commands.load(command).params, commands.settings(command))


def _rows(params: Iterable[Any], settings: Mapping[str, Entry]) -> Mapping[str, OptionRow]:
    return {
        each.name: _row(each, settings)
        for each in params
        if each.param_type_name == "option" and not each.hidden
    }


def _row(param: Any, settings: Mapping[str, Entry]) -> OptionRow:
    spelled = ", ".join(_code(word) for word in (*param.opts, *param.secondary_opts))
    entry = settings.get(param.name)
    scope = "" if entry is None else "; ".join(_applies(entry, settings))
    text = " ".join(param.help.split()).replace("|", "&#124;")
    return OptionRow(spelled, _value(param), _default(param), scope, text)


def _value(param: Any) -> str:
    if param.is_flag:
        return ""
    said = param.metavar or "|".join(_choices(param))
    parts = [", ".join(map(_code, said.split("|"))) if "[" not in said else _code(said)]
    if bounds := _bounds(param.min, param.max):
        parts.append(bounds)
    if param.multiple:
        parts.append("repeatable")
    return "; ".join(parts)


def _choices(param: Any) -> Iterable[str]:
    kind = param.type_descriptor.annotation
    for each in (kind, *get_args(kind)):
        if isinstance(each, type) and issubclass(each, Enum):
            return [str(one.value) for one in each]
        if get_origin(each) is Literal:
            return get_args(each)
    raise AssertionError(f"{param.name}: neither a metavar nor choices")


def _bounds(least: float | None, most: float | None) -> str:
    if least is None:
        return "" if most is None else f"at most {_number(most)}"
    return f"at least {_number(least)}" if most is None else f"{_number(least)} to {_number(most)}"


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else str(value)


def _default(param: Any) -> str:
    if isinstance(param.show_default, str):
        return _code(param.show_default)
    value = param.default
    if value is None or value is False or value in ((), []):
        return ""
    if value is True:
        return _code(param.opts[0])
    if isinstance(value, Enum):
        value = value.value
    return _code(_number(value) if isinstance(value, int | float) else str(value))


def _applies(entry: Entry, settings: Mapping[str, Entry]) -> Iterable[str]:
    setting = entry.setting
    if setting.scope is not Scope.ANYTHING:
        yield str(setting.scope)
    for choice, (_, why) in setting.choices.items():
        if choice in _offered(setting.metavar, choice):
            whom = why.partition(" is for ")[2].partition(":")[0]
            yield f"{_code(str(getattr(choice, 'value', choice)))}: {whom}"
    if setting.needs is not None:
        told = [settings[name].setting.option for name in setting.needs.names if name in settings]
        value = setting.needs.value
        more = "" if value is None else f" {getattr(value, 'value', value)}"
        yield "with " + " or ".join(_code(f"{option}{more}") for option in told)


def _offered(metavar: str, choice: Any) -> Sequence[Any]:
    """The choice, if the option offers it: those that it lists, or all."""
    return [choice] if not metavar or str(choice.value) in metavar.split("|") else []


def _code(text: str) -> str:
    # A bar would end the cell.
    return f"<code>{text.replace('|', '&#124;')}</code>" if "|" in text else f"`{text}`"


def table_of(subject: str) -> str:
    """The table for a mark: of one command, of several with the same options, or of what is shared.

    Raises:
        ValueError: the mark names no command.
    """
    if subject == SHARED:
        return _shared_table()
    told = subject.split(", ")
    unknown = [name for name in told if name not in (WHOLE, *names())]
    if unknown:
        raise ValueError(f"options of {', '.join(unknown)}: there is no such command")
    merged = _merged({name: options_of(name) for name in told})
    own = [row.cells for name, row in merged.items() if not _is_shared(name, row)]
    shared = [row.option.split(", ")[0] for name, row in merged.items() if _is_shared(name, row)]
    text = _table(_HEADINGS, own) if own else ""
    if shared:
        link = "[options that many commands share](cli.md#options-that-many-commands-share)"
        text += f"{chr(10) if own else ''}And {link}: {', '.join(shared)}.\n"
    return text


def _merged(rows: Mapping[str, Mapping[str, OptionRow]]) -> Mapping[str, OptionRow]:
    """The options of several commands as one: a cell in which they differ says whose is which."""
    keys = list(dict.fromkeys(key for each in rows.values() for key in each))
    return {
        key: _joined({name: each[key] for name, each in rows.items() if key in each}, rows)
        for key in keys
    }


def _joined(rows: Mapping[str, OptionRow], all_rows: Mapping[str, Any]) -> OptionRow:
    cells = []
    for column in zip(*(row.cells for row in rows.values()), strict=True):
        users: dict[str, list[str]] = {}
        for name, cell in zip(rows, column, strict=True):
            users.setdefault(cell, []).append(name)
        alone = len(users) == 1
        cells.append(
            column[0]
            if alone
            else "; ".join(f"{cell} ({', '.join(who)})" for cell, who in users.items())
        )
    first, *rest = cells
    if len(rows) < len(all_rows):
        first += f" ({', '.join(rows)})"
    return OptionRow(first, *rest)


@cache
def _shared() -> Mapping[str, OptionRow]:
    found = [options_of(name) for name in names()]
    return {key: row for each in found for key, row in each.items() if key in _SHARED_NAMES}


def _is_shared(name: str, row: OptionRow) -> bool:
    return _shared().get(name) == row


def _shared_table() -> str:
    lines = [(*row.cells, _users(key, row)) for key, row in _shared().items()]
    return _table((*_HEADINGS, "commands"), lines)


def _users(key: str, row: OptionRow) -> str:
    users = [name for name in names() if options_of(name).get(key) == row]
    others = [name for name in names() if name not in users]
    if len(others) < len(users):
        return "all but " + ", ".join(map(_code, others)) if others else "all"
    return ", ".join(map(_code, users))


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, without the columns that are empty."""
    kept = [k for k in range(len(headings)) if any(row[k] for row in rows)]
    lines = (headings, ("---",) * len(headings), *rows)
    return "".join(f"| {' | '.join(line[k] for k in kept)} |\n" for line in lines)
