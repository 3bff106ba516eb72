"""Defaults of a project: ``darwinn.toml``, or ``[tool.darwinn]`` of ``pyproject.toml``.

The nearest of the two holds, from the working folder upwards. Keys are the options of settings that
say ``project``, without their dashes; a flag ``--no-NAME`` is ``NAME = false``, and ``--NAME`` on a
command line takes it back. They are defaults of the command line alone: a manifest, and a caller of
the library, say all that they mean.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from darwinn_testbench.errors import InputError, unknown
from darwinn_testbench.request.setting import Setting, Use

FILE, SHARED_FILE = "darwinn.toml", "pyproject.toml"
TABLE = "darwinn"
"""The table of ``[tool]`` in a file that other tools share."""


@dataclass(frozen=True)
class Project:
    """Defaults by key, and the file that has them; no file has none."""

    file: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Key:
    """A key: its setting, and the plain type of its value."""

    setting: Setting
    plain: type


_TAKEN: ContextVar[frozenset[str]] = ContextVar("options by a project", default=frozenset())
_OVERRIDDEN: ContextVar[frozenset[str]] = ContextVar("options in its place", default=frozenset())


def key_of(setting: Setting) -> str:
    """The key of a setting: ``--no-hazards`` is ``hazards``."""
    return setting.option.removeprefix("--no-" if setting.inverse else "--")


def plain_type(hint: Any) -> type:
    """The type of a value: of an optional one, what it is where it is there."""
    found = [each for each in (hint, *get_args(hint)) if isinstance(each, type)]
    return next(each for each in found if each is not type(None))


def found(folder: Path, keys: Callable[[], Mapping[str, Key]]) -> Project:
    """The defaults for work in ``folder``; ``keys`` gives those that there are.

    Raises:
        InputError: the file is no TOML; a key is unknown, or its value does not fit.
        OSError: the file cannot be read.
    """
    for place in (folder, *folder.parents):
        own, shared = place / FILE, place / SHARED_FILE
        if own.is_file():
            return _checked(own, _read(own), keys())
        if shared.is_file():
            table = _read(shared).get("tool", {}).get(TABLE)
            if table is not None:
                return _checked(shared, table, keys())
    return Project()


def _read(file: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: {error}") from None


def _checked(file: Path, table: Mapping[str, Any], keys: Mapping[str, Key]) -> Project:
    values = {}
    for name, value in table.items():
        if name not in keys:
            raise InputError(f"{file}: {_instead_of(name, keys)}")
        values[name] = _value(file, name, value, keys[name])
    return Project(file, values)


def _instead_of(name: str, keys: Mapping[str, Key]) -> str:
    """What is wrong with a key that there is not."""
    if name == "tool":
        return f"[tool.{TABLE}] is a table of {SHARED_FILE}; in {FILE} the keys stand alone"
    return unknown(name, sorted(keys))


def opposite_of(setting: Setting) -> str:
    """The flag that takes back what a project says: ``--hazards``, or ``--no-strict``."""
    return f"--{key_of(setting)}" if setting.inverse else f"--no-{key_of(setting)}"


def _value(file: Path, name: str, value: Any, key: Key) -> Any:
    """The plain value of a key; a file is named from the folder of the project."""
    takes = (int, float) if key.plain is float else (key.plain,)
    if type(value) not in takes:
        raise InputError(f"{file}: {name} = {value!r}: must be {_WORDS[key.plain]}")
    setting = key.setting
    for bound, beyond, word in ((setting.least, -1, "least"), (setting.most, 1, "most")):
        if bound is not None and (value - bound) * beyond > 0:
            raise InputError(f"{file}: {name} = {value!r}: must be at {word} {bound:g}")
    if setting.use is Use.FILE and value not in setting.offers:
        return str(file.parent / value)
    return value


_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


@contextmanager
def taken(options: frozenset[str], overridden: frozenset[str] = frozenset()) -> Iterator[None]:
    """Let requests know which options a project has said: they are not refused where they do not
    apply; and which of them were typed all the same, as those are said in every advice."""
    tokens = _TAKEN.set(options), _OVERRIDDEN.set(overridden)
    try:
        yield
    finally:
        _TAKEN.reset(tokens[0])
        _OVERRIDDEN.reset(tokens[1])


def is_taken(setting: Setting) -> bool:
    """Whether a project, and not the command line, has said a setting."""
    return setting.option in _TAKEN.get()


def is_overridden(setting: Setting) -> bool:
    """Whether the command line has said a setting in the place of a project."""
    return setting.option in _OVERRIDDEN.get()
