"""Requests: frozen records whose fields are settings, and all that follows from them."""

from __future__ import annotations

import errno
import inspect
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import cache, wraps
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from darwinn_formats.errors import Unavailable
from darwinn_formats.files import Source

from darwinn_testbench.errors import InputError
from darwinn_testbench.report.progress import ProgressCallback, silent
from darwinn_testbench.report.shell import as_file
from darwinn_testbench.request.project import is_overridden, is_taken
from darwinn_testbench.request.scope import Scope, only_for
from darwinn_testbench.request.setting import Setting, Use

P = ParamSpec("P")
Answer = TypeVar("Answer")
Asked = TypeVar("Asked", bound="Request")
Made = TypeVar("Made", covariant=True)
_NOTHING: tuple[object, ...] = (None, (), [])


@dataclass(frozen=True)
class Entry:
    """A setting of a record: the field that holds it, and the record within it that has that.

    ``plain`` is the type of its value in a command and a manifest, ``default`` that of the record.
    """

    name: str
    setting: Setting
    plain: Any
    default: Any
    inside: str = ""

    @property
    def key(self) -> str:
        """Its key in a manifest; empty if it has none."""
        return self.name if self.setting.key is None else self.setting.key

    @property
    def is_list(self) -> bool:
        """Whether it may be repeated."""
        return get_origin(self.plain) is Sequence

    def value_in(self, request: object) -> Any:
        """The value that a request has."""
        return getattr(getattr(request, self.inside) if self.inside else request, self.name)

    def is_given(self, value: object) -> bool:
        """Whether the value says anything: it is not that of a request in which nothing is said."""
        if value is self.default or any(value is each or value == each for each in _NOTHING):
            return False
        return bool(value is False if self.setting.inverse else value != self.default)

    def read(self, value: Any) -> Any:
        """The value of the record for a plain one."""
        if value is None or (self.setting.inverse and value):
            return self.default
        if isinstance(value, list | tuple) and not value:
            return self.default
        reads = self.setting.read is not None and isinstance(value, str)
        return self.setting.read(value) if reads and self.setting.read else value

    def plain_of(self, value: Any) -> Any:
        """The plain value of one of the record."""
        if self.setting.inverse:
            return value is not False
        return str(value) if self.setting.read is not None and value is not None else value

    def paths(self, value: Any, changed: Callable[[str], str]) -> Any:
        """The plain value with its paths changed: of what names files the texts, but for what
        stands before ``=`` where a name may."""
        if self.setting.use not in (Use.FILE, Use.RESULT) or value is None:
            return value
        named = self.setting.metavar.startswith("[NAME=]")

        def path(text: Any) -> Any:
            if not isinstance(text, str | os.PathLike):
                return text
            before, equals, after = os.fspath(text).rpartition("=") if named else ("", "", text)
            return f"{before}{equals}{changed(os.fspath(after))}"

        if isinstance(value, str | os.PathLike):
            return path(value)
        return tuple(map(path, value)) if isinstance(value, list | tuple) else value

    def words(self, value: Any) -> list[str]:
        """How a command line says it, of a value that says anything."""
        option = self.setting.option
        if isinstance(value, bool):
            return [self.setting.flag(value)]
        return [
            word for each in (value if self.is_list else [value]) for word in (option, str(each))
        ]


@cache
def entries_of(record: type) -> Mapping[str, Entry]:
    """The settings of a record and of the records within it, by name: positional ones first."""
    hints = get_type_hints(record, include_extras=True)
    found: dict[str, Entry] = {}
    for item in sorted(fields(record), key=lambda item: item.kw_only is True):
        hint = hints[item.name]
        setting = setting_of(hint)
        if setting is not None:
            plain = setting.plain or get_args(hint)[0]
            found[item.name] = Entry(item.name, setting, plain, _default_of(item))
        elif isinstance(hint, type) and is_dataclass(hint):
            inner = entries_of(hint)
            found |= {name: replace(each, inside=item.name) for name, each in inner.items()}
    return found


def setting_of(hint: Any) -> Setting | None:
    """The setting in an annotation, if there is one."""
    if get_origin(hint) is not Annotated:
        return None
    return next((each for each in get_args(hint) if isinstance(each, Setting)), None)


def _default_of(item: Field[Any]) -> Any:
    if item.default_factory is not MISSING:
        return item.default_factory()
    return None if item.default is MISSING else item.default


def made(
    record: Callable[..., Answer], plain: Mapping[str, Any], *sources: Source, **more: Any
) -> Answer:
    """A record of ``sources`` with the settings that plain values say, by name; ``more`` are other
    fields."""
    outer: dict[str, Any] = dict(more)
    inner: dict[str, dict[str, Any]] = {}
    for name, entry in entries_of(_as_type(record)).items():
        if name in plain:
            where = inner.setdefault(entry.inside, {}) if entry.inside else outer
            where[name] = entry.read(plain[name])
    for name, told in inner.items():
        outer[name] = _types_of(_as_type(record))[name](**told)
    return record(*sources, **outer)


@cache
def _types_of(record: type) -> Mapping[str, Any]:
    """The types of the fields of a record: to read them takes a millisecond."""
    return get_type_hints(record)


def _as_type(record: Callable[..., Any]) -> type:
    assert isinstance(record, type)
    return record


def plain_of(request: Request) -> dict[str, Any]:
    """The settings of a request as plain values, by name."""
    record: type = type(request)
    found = entries_of(record).items()
    return {name: entry.plain_of(entry.value_in(request)) for name, entry in found}


def words_of(record: type, plain: Mapping[str, Any], always: Collection[str] = ()) -> list[str]:
    """The options that say the plain values, by name, of a request; values before flags.

    Those of ``always`` are said even where they are the defaults.
    """
    told = [
        entry.words(plain[name])
        for name, entry in entries_of(record).items()
        if name in plain and (name in always or _is_said(entry, plain[name]))
    ]
    told.sort(key=lambda words: len(words) == 1)
    return [word for words in told for word in words]


def _is_said(entry: Entry, value: Any) -> bool:
    """Whether a command has to say a value: also a default, where a project has another one."""
    if entry.is_given(value):
        return True
    return is_overridden(entry.setting) and value is not None and not isinstance(value, bool)


def command_line(
    command: str,
    file: str,
    record: type,
    plain: Mapping[str, Any],
    always: Collection[str] = (),
) -> str:
    """The command, for a shell, that asks for what the plain values say."""
    return shlex.join(["darwinn", command, as_file(file), *words_of(record, plain, always)])


@dataclass(frozen=True)
class Request:
    """What a function of the library is asked; each kind of request has fields of its own.

    ``progress`` is told what is being done.
    """

    progress: ProgressCallback = field(default=silent, kw_only=True, compare=False, repr=False)

    @property
    def given(self) -> list[Entry]:
        """The settings that say anything."""
        record: type = type(self)
        values = ((each, each.value_in(self)) for each in entries_of(record).values())
        return [each for each, value in values if each.is_given(value)]

    def refuse(self, *beyond: Scope) -> None:
        """Refuse settings that apply to something in ``beyond``, or that mean nothing alone.

        Raises:
            InputError: there is such a setting.
            Unavailable: a choice applies to something in ``beyond``.
            OSError: a result cannot be written where it should be.
        """
        # A project says what holds for all its files, so it is no mistake where it does not apply.
        given = [each for each in self.given if not is_taken(each.setting)]
        for scope in beyond:
            only_for(scope, (name for each in given for name in self._names(each, scope)))
        for entry in self.given:
            for choice, (scope, why) in entry.setting.choices.items():
                if scope in beyond and entry.value_in(self) == choice:
                    raise Unavailable(why)
        for entry in self.given:
            setting, value = entry.setting, entry.value_in(self)
            if setting.needs is not None and not self._has(
                setting.needs.names, setting.needs.value
            ):
                first = value[0] if entry.is_list else value
                raise InputError(setting.needs.why.format(value=first))
            if setting.use is Use.RESULT:
                refuse_no_file(value)

    def _names(self, entry: Entry, scope: Scope) -> Iterable[str]:
        """The option of a setting, if it applies to ``scope`` alone."""
        said = entry.setting.flag(entry.value_in(self) is not False)
        return [said] if entry.setting.scope is scope else []

    def _has(self, names: Sequence[str], value: object) -> bool:
        values = [getattr(self, name, None) for name in names]
        return value in values if value is not None else any(values)

    def part(self, record: Callable[..., Made], **more: Any) -> Made:
        """The fields of this request that another record has as well, with ``more``."""
        names = {
            item.name for item in fields(_as_type(record)) if item.init and hasattr(self, item.name)
        }
        return record(**({name: getattr(self, name) for name in names} | more))

    def but(self, **changed: Any) -> Self:
        """The same request with other values."""
        return replace(self, **changed)


def refuse_no_file(path: str | os.PathLike[str] | None) -> None:
    """Refuse a place where no file can be written, before the work that leads to it.

    Raises:
        OSError: it is a folder, or in none.
    """
    if path is None or str(path) == "-":
        return
    if Path(path).is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))


class Wanted(Protocol[Made]):
    """A request but for its sources: what a command is given in its place."""

    def __call__(self, *sources: Source, **more: Any) -> Made:
        """The request."""


def _signature(record: Callable[..., Any], answer: Callable[..., Any]) -> inspect.Signature:
    """The fields of the record as ``help`` shows them, with plain types; ``progress`` is last."""
    hints = get_type_hints(record)
    found = inspect.signature(record).parameters.values()
    named = [each.replace(annotation=hints[each.name]) for each in found]
    named.sort(key=lambda each: (each.kind, each.name == "progress"))
    gives = inspect.signature(answer).return_annotation
    return inspect.Signature(named, return_annotation=gives)


def takes(
    record: Callable[P, Asked], name: str
) -> Callable[[Callable[[Asked], Answer]], Callable[P, Answer]]:
    """A function of a request becomes ``name``, a function of the record's fields."""

    def decorated(answer: Callable[[Asked], Answer]) -> Callable[P, Answer]:
        @wraps(answer)
        def called(*arguments: P.args, **named: P.kwargs) -> Answer:
            return answer(record(*arguments, **named))

        changed: Any = called
        changed.__signature__ = _signature(record, answer)
        changed.__name__ = changed.__qualname__ = name
        return called

    return decorated
