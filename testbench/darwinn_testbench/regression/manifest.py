"""The manifest of a regression: which executables, with which inputs, judged how.

A TOML file of ``[[case]]`` tables; ``[defaults]`` holds what the cases have in common. ``file`` may
be a pattern (``models/*_edgetpu.tflite``): it stands for one case for each file, and ``{name}`` in
the other entries for the file's name without ``_edgetpu.tflite``. Paths are relative to the
manifest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from darwinn_formats import toml
from darwinn_formats.files import read_file
from msgspec import Meta

from darwinn_testbench import policy as policies
from darwinn_testbench.chip.input_kinds import InputKind
from darwinn_testbench.errors import InputError

_Struct = TypeVar("_Struct", bound=msgspec.Struct)

EngineName = Literal["model", "original", "rtl"]

_SUFFIXES = ("_edgetpu.tflite", ".tflite", ".package", ".bin")
_PATTERN = frozenset("*?[")
_MAX_BYTES = 16 << 20
_MAX_CASES = 100_000
_MAX_RUNS = 1_000_000_000
_MAX_SCHEDULES = 1_000_000


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One executable and how it is judged; the fields are the keys of a ``[[case]]``.

    ``seeds`` times ``engines`` tasks are made of it, each of ``runs`` inferences
    (one for each kind of inputs, if it is not said). ``timeout`` is in
    seconds for one task.
    """

    file: str
    name: str = ""
    reference: str | None = None
    inputs: tuple[str, ...] = ()
    companions: tuple[str, ...] = msgspec.field(name="with", default=())
    model: Annotated[int, Meta(ge=0)] = 0
    seeds: Annotated[tuple[Annotated[int, Meta(ge=0)], ...], Meta(min_length=1)] = (0,)
    runs: Annotated[int, Meta(ge=1, le=_MAX_RUNS)] | None = None
    inputs_kind: tuple[InputKind, ...] = ()
    engines: Annotated[tuple[EngineName, ...], Meta(min_length=1)] = ("model",)
    schedules: Annotated[int, Meta(ge=0, le=_MAX_SCHEDULES)] = 0
    chip_only: bool = False
    hazards: bool = False
    strict: bool = False
    assumptions: bool = True
    policy: str | None = None
    require_reference: bool = False
    natives: str | None = None
    timeout: Annotated[float, Meta(gt=0)] = 600.0


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
    cases: list[Case] = []
    for number, entry in enumerate(manifest.case, 1):
        where = f"{os.fspath(path)}: case {number}"
        case = _convert({**manifest.defaults, **entry}, Case, where)
        if case.policy is not None:
            policies.parse(case.policy)
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
    return _convert(document, _Manifest, str(path))


def _convert(value: Any, kind: type[_Struct], where: str) -> _Struct:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {error}") from None


def _expanded(case: Case, folder: Path, where: str) -> Iterator[Case]:
    files = [str(folder / case.file)]
    # A file may have brackets in its name.
    if _PATTERN.intersection(case.file) and not (folder / case.file).is_file():
        if Path(case.file).is_absolute():
            raise InputError(f"{where}: $.file: a pattern is relative to the manifest's folder")
        files = sorted(map(str, folder.glob(case.file)))
    if not files:
        raise InputError(f"{where}: $.file: no file matches {case.file} in {folder}")
    for file in files:
        name = _stem(file)

        def resolved(text: str, name: str = name) -> str:
            return str(folder / text.replace("{name}", name))

        yield msgspec.structs.replace(
            case,
            file=file,
            name=case.name.replace("{name}", name) or name,
            reference=None if case.reference is None else resolved(case.reference),
            inputs=tuple(_input(text, resolved) for text in case.inputs),
            companions=tuple(resolved(text) for text in case.companions),
        )


def _input(text: str, resolved: Callable[[str], str]) -> str:
    """An input ``[NAME=]PATH`` with its path resolved."""
    name, equals, path = text.rpartition("=")
    return f"{name}{equals}{resolved(path)}"


def _stem(file: str) -> str:
    name = Path(file).name
    suffix = next((each for each in _SUFFIXES if name.endswith(each)), "")
    return name.removesuffix(suffix) or name


def _refuse_same_names(cases: list[Case], path: str) -> None:
    seen: set[str] = set()
    for case in cases:
        if case.name in seen:
            raise InputError(f'{path}: two cases are called "{case.name}": give them `name`')
        seen.add(case.name)
