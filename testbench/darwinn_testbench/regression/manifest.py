"""The manifest of a regression: which executables, with which inputs, judged how.

A TOML file of ``[[case]]`` tables; ``[defaults]`` holds what the cases have in common. ``file`` may
be a pattern (``models/*_edgetpu.tflite``): it stands for one case for each file, and ``{name}`` in
the other entries for the file's name without ``_edgetpu.tflite``. Paths, and patterns, are relative
to the manifest, or absolute.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

import msgspec
from darwinn_formats import toml
from darwinn_formats.files import is_there, read_file
from msgspec import Meta

from darwinn_testbench.errors import InputError, PolicyError, unknown
from darwinn_testbench.request.inputs import InputKind
from darwinn_testbench.request.record import Entry, entries_of
from darwinn_testbench.request.records import Verification

_Struct = TypeVar("_Struct", bound=msgspec.Struct)

EngineName = Literal["model", "original", "rtl"]

_SUFFIXES = ("_edgetpu.tflite", ".tflite", ".package", ".bin")
_PATTERN = frozenset("*?[")
_NAME = "{name}"
_PLACEHOLDER = re.compile(r"\{[A-Za-z_]\w*\}")
_CHOICES: Mapping[str, Collection[str]] = {
    "engines": get_args(EngineName),
    "inputs_kind": tuple(each.value for each in InputKind),
}
"""What the items of a key may be, where that is one of a few words."""
_AT_KEY = re.compile(r"`\$\.(\w+)")
_MAX_BYTES = 16 << 20
_MAX_CASES = 100_000


class _Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a manifest says of an executable beside the settings of its verification."""

    file: Annotated[
        str,
        Meta(
            description="Compiled model, program of another format, or a pattern. Paths and "
            "patterns are absolute or relative to the manifest's folder (`../models/*.tflite`)."
        ),
    ]
    name: Annotated[
        str,
        Meta(
            description="A different one for each case; by default that of the file. In the name "
            "of a pattern, `{name}` stands for the name of each file."
        ),
    ] = ""
    seeds: Annotated[
        tuple[Annotated[int, Meta(ge=0)], ...],
        Meta(min_length=1, description="Seeds of generated inputs; each seed is a task."),
    ] = (0,)
    engines: Annotated[
        tuple[EngineName, ...],
        Meta(
            min_length=1,
            description="`model`, `rtl`, or `original` for programs of other formats; each engine "
            "is a task.",
        ),
    ] = ("model",)
    timeout: Annotated[float, Meta(gt=0, description="Seconds for one task.")] = 600.0


SETTINGS: Mapping[str, Entry] = {
    name: entry for name, entry in entries_of(Verification).items() if entry.key
}
"""The settings of a verification that a manifest can say, by the names of their fields."""


def _field(entry: Entry) -> tuple[str, Any, Any]:
    """A setting as a field of a case: with its type, bounds, default and key."""
    kind, setting = entry.plain, entry.setting
    default = True if setting.inverse else entry.default
    if entry.is_list:
        kind, default = GenericAlias(tuple, (get_args(kind)[0], ...)), ()
    elif kind == Path | None:
        kind = str | None
    bounds: dict[str, Any] = {"ge": setting.least, "le": setting.most}
    bounds = {name: bound for name, bound in bounds.items() if bound is not None}
    if bounds:
        bounded = Annotated[int, Meta(**bounds)]
        kind = bounded if default is not None else bounded | None
    return entry.name, kind, msgspec.field(name=entry.key, default=default)


if TYPE_CHECKING:

    class Case(_Case, frozen=True):
        """One executable and how it is judged; the fields are the keys of a ``[[case]]``.

        ``seeds`` times ``engines`` tasks are made of it. ``timeout`` is in seconds for one task.
        The others are the settings of a verification.
        """

        def __init__(self, **keys: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

else:
    Case = msgspec.defstruct(
        "Case",
        [_field(entry) for entry in SETTINGS.values()],
        bases=(_Case,),
        module=__name__,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def settings_of(case: Case) -> dict[str, Any]:
    """The settings of a case as plain values, by name."""
    return {name: getattr(case, name) for name in SETTINGS}


class _Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    case: Annotated[tuple[dict[str, Any], ...], Meta(min_length=1, max_length=_MAX_CASES)]
    defaults: dict[str, Any] = {}


def load(path: str | os.PathLike[str]) -> tuple[Case, ...]:
    """The cases of a manifest, patterns expanded, paths made relative to the current folder.

    Raises:
        FormatError: it is larger than a manifest can be.
        InputError: naming file and field, or line and column, and the reason.
        OSError: the manifest cannot be read.
    """
    manifest = _read(Path(path))
    _refuse_unknown(manifest.defaults, Case, f"{os.fspath(path)}: defaults")
    cases: list[Case] = []
    for number, entry in enumerate(manifest.case, 1):
        where = f"{os.fspath(path)}: case {number}"
        case = _convert({**manifest.defaults, **entry}, Case, where)
        _check_texts(case, where)
        cases += _expanded(case, Path(path).parent, where)
        if len(cases) > _MAX_CASES:
            raise InputError(f"{where}: more than {_MAX_CASES} cases")
    _refuse_same_names(cases, os.fspath(path))
    return tuple(cases)


def _read(path: Path) -> _Manifest:
    try:
        document = toml.parse(read_file(path, _MAX_BYTES))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start}: not UTF-8") from None
    except ValueError as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    _refuse_unknown(document, _Manifest, str(path))
    if "case" not in document:
        raise InputError(f"{path}: no case: a manifest has a [[case]] for each file or pattern")
    return _convert(document, _Manifest, str(path))


def _convert(value: Mapping[str, Any], kind: type[_Struct], where: str) -> _Struct:
    _refuse_unknown(value, kind, where)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        key = _AT_KEY.search(str(error))
        choices = _CHOICES.get(key[1], ()) if key else ()
        legal = f": one of {', '.join(choices)}" if choices else ""
        raise InputError(f"{where}: {error}{legal}") from None


def _refuse_unknown(table: Mapping[str, Any], kind: type[_Struct], where: str) -> None:
    """InputError for a key that ``kind`` does not have, with the one that is like it."""
    known = [each.encode_name for each in msgspec.structs.fields(kind)]
    for key in table:
        if key not in known:
            raise InputError(f"{where}: {unknown(key, known)}")


def _check_texts(case: Case, where: str) -> None:
    """InputError for a text that says nothing, as of a policy."""
    for name, entry in SETTINGS.items():
        try:
            entry.read(getattr(case, name))
        except PolicyError as error:
            raise InputError(f"{where}: $.{entry.key}: {error}") from None


def _expanded(case: Case, folder: Path, where: str) -> Iterator[Case]:
    files, told = _files(case.file, folder, where), settings_of(case)
    _refuse_placeholders(case.name, f"{where}: $.name")
    if len(files) > 1 and case.name and _NAME not in case.name:
        raise InputError(
            f'{where}: $.name: {len(files)} files match, and all would be called "{case.name}": '
            f"{_NAME} in it stands for the name of each"
        )
    for file in files:
        name = _stem(file)

        def resolved(text: str, name: str = name) -> str:
            path = folder / text.replace(_NAME, name)
            if not is_there(path):
                _refuse_placeholders(text, where)
            return str(path)

        located = {key: SETTINGS[key].paths(value, resolved) for key, value in told.items()}
        called = case.name.replace(_NAME, name) or name
        yield msgspec.structs.replace(case, file=file, name=called, **located)


def _files(text: str, folder: Path, where: str) -> Sequence[str]:
    """The files that an entry `file` stands for."""
    # A file may have brackets in its name.
    path = folder / text
    if not _PATTERN.intersection(text) or (is_there(path) and path.is_file()):
        return [str(path)]
    root = Path(text).anchor
    try:
        files = sorted(map(str, (Path(root) if root else folder).glob(text.removeprefix(root))))
    except ValueError as error:
        raise InputError(f"{where}: $.file: {text}: {error}") from None
    if not files:
        raise InputError(f"{where}: $.file: no file matches {text}" + f" in {folder}" * (not root))
    return files


def _refuse_placeholders(text: str, where: str) -> None:
    """InputError for a word in braces that stands for nothing."""
    unknown = next((each for each in _PLACEHOLDER.findall(text) if each != _NAME), None)
    if unknown is not None:
        raise InputError(
            f"{where}: {text}: {unknown} stands for nothing: {_NAME} is that of the file"
        )


def _stem(file: str) -> str:
    name = Path(file).name
    suffix = next((each for each in _SUFFIXES if name.endswith(each)), "")
    return name.removesuffix(suffix) or name


def _refuse_same_names(cases: list[Case], path: str) -> None:
    seen: set[str] = set()
    for case in cases:
        if case.name in seen:
            raise InputError(
                f'{path}: two cases are called "{case.name}": give each a `name` of its own'
            )
        seen.add(case.name)
