"""Commands that take records of settings: each setting is an option, with its help and bounds."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import partial
from typing import Annotated, Any, get_args, get_origin

from darwinn_testbench.cli.completed import offered
from darwinn_testbench.cli.declared import option
from darwinn_testbench.request.record import Entry, Wanted, entries_of, made, setting_of


def settled(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` with options in the place of the records and settings that it takes.

    A record is made of what the options say. In the place of a record with a source, which has to
    be read first, the command is given what makes it (:class:`Wanted`).
    """
    parameters = _parameters_of(command)
    records, alone = _taken(parameters)

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, kind in records.items():
            told = {each: _told(entry, given.pop(each)) for each, entry in entries_of(kind).items()}
            wanted = get_origin(kinds[name]) is Wanted
            given[name] = partial(made, kind, told) if wanted else made(kind, told)
        for name, entry in alone.items():
            given[name] = entry.read(_told(entry, given[name]))
        command(**given)

    kinds = {each.name: each.annotation for each in parameters}
    options = [new for each in parameters for new in _parameters(each, records, alone)]
    changed: Any = run
    changed.__signature__ = inspect.Signature(options)
    changed.__annotations__ = {each.name: each.annotation for each in options}
    return run


def settings_of(command: Callable[..., None]) -> Mapping[str, Entry]:
    """The settings that ``command`` takes, by name, in records and alone."""
    records, alone = _taken(_parameters_of(command))
    inside = [entries_of(kind) for kind in records.values()]
    return {name: entry for each in (*inside, alone) for name, entry in each.items()}


def _parameters_of(command: Callable[..., None]) -> list[inspect.Parameter]:
    return list(inspect.signature(command, eval_str=True).parameters.values())


def _taken(
    parameters: Sequence[inspect.Parameter],
) -> tuple[Mapping[str, type], Mapping[str, Entry]]:
    """The parameters that are records, and those that are settings by themselves."""
    records = {each.name: kind for each in parameters if (kind := _record_of(each.annotation))}
    alone = {each.name: found for each in parameters if (found := _alone(each))}
    return records, alone


def _told(entry: Entry, value: Any) -> Any:
    """The plain value that an option says: its flag turns off what is on by default."""
    return not value if entry.setting.inverse else value


def _record_of(annotation: Any) -> type | None:
    """The record of settings that a parameter is, or is made of."""
    kind = get_args(annotation)[0] if get_origin(annotation) is Wanted else annotation
    return kind if isinstance(kind, type) and is_dataclass(kind) else None


def _alone(parameter: inspect.Parameter) -> Entry | None:
    """A setting that is a parameter by itself."""
    setting = setting_of(parameter.annotation)
    if setting is None:
        return None
    plain = setting.plain or get_args(parameter.annotation)[0]
    return Entry(parameter.name, setting, plain, parameter.default)


def _parameters(
    parameter: inspect.Parameter, records: Mapping[str, type], alone: Mapping[str, Entry]
) -> Iterator[inspect.Parameter]:
    if parameter.name in records:
        yield from map(_option, entries_of(records[parameter.name]).values())
    elif parameter.name in alone:
        yield _option(alone[parameter.name])
    else:
        yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)


def _option(entry: Entry) -> inspect.Parameter:
    """A setting as a parameter of a command."""
    setting, plain, default = entry.setting, entry.plain, entry.default
    if get_origin(plain) is Sequence:
        plain, default = list[get_args(plain)[0]] | None, None  # type: ignore[misc]
    if setting.inverse:
        default = False
    told: dict[str, Any] = {"min": setting.least, "max": setting.most}
    if setting.offers:
        told["autocompletion"] = offered(setting.offers, setting.suffix)
    bounds = {name: value for name, value in told.items() if value is not None}
    return inspect.Parameter(
        entry.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[plain, option(setting.form, setting.text, **bounds)],
    )
