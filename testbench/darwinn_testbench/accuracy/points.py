"""Published latencies and users' own, read from TOML."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from darwinn_formats import toml
from darwinn_formats.files import read_file
from darwinn_sim.timing import HostLink, built_in

from darwinn_testbench.errors import InputError

_PATHS = (".tflite", ".package")
"""How a binary ends that is given by its path; others are names."""

_Positive = Annotated[int, msgspec.Meta(gt=0)]
_Count = Annotated[int, msgspec.Meta(ge=1)]
_BANDWIDTH = HostLink.parameters()["bytes_per_second_in"]
_Bandwidth = Annotated[int, msgspec.Meta(ge=int(_BANDWIDTH.least), le=int(_BANDWIDTH.most))]


class Tail(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The end of another binary, in place of the last ``layers`` layers of a model's own.

    The last ``tail_layers`` of the other one are taken, the first of which is a pool that takes
    ``pool_scale`` times as long in the model.
    """

    binary: str
    layers: _Count
    tail_layers: _Count
    pool_scale: Annotated[float, msgspec.Meta(gt=0)]


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands for a model, and its size for the baselines: multiplications of the graph, and
    bytes that an inference must move (tensors, and weights that are not cached).

    Without a size that of the binary is taken: what it multiplies and what it moves. ``origin`` is
    where the binary can be had.
    """

    binary: str
    origin: str = ""
    macs: _Positive | None = None
    bytes: _Positive | None = None
    tail: Tail | None = None


class Host(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A host: a built-in link or a TOML file, with a bandwidth of its own and its source.

    ``machine``, ``interface`` and ``clock`` say what is known of it, in words. ``chip`` is the
    description of the chip behind it, if it is not the one that is asked for.
    """

    link: str
    machine: str = ""
    interface: str = ""
    clock: str = ""
    chip: str = ""
    bytes_per_second_in: _Bandwidth | None = None
    bandwidth_source: str = ""


class Measurement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Latencies in milliseconds by model, all from one source and one host: one of the file's, a
    built-in link or a TOML file."""

    host: str
    milliseconds: dict[str, float]
    source: str = ""

    def __post_init__(self) -> None:
        for model, time in self.milliseconds.items():
            if not 0 < time < math.inf:
                raise ValueError(f"{model}: {time} ms is no time")


class LeftOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Published figures that are not compared, and why."""

    models: list[str]
    source: str
    milliseconds: str
    reason: str


class Points(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that is in a file of points. Paths in it count from ``folder``."""

    folder: Path
    models: dict[str, Model] = {}
    hosts: dict[str, Host] = {}
    measurements: list[Measurement] = []
    left_out: list[LeftOut] = []

    def __post_init__(self) -> None:
        for measurement in self.measurements:
            _check_host(measurement.host, self.hosts)
            for model in measurement.milliseconds:
                if model not in self.models:
                    known = ", ".join(self.models) or "none"
                    raise ValueError(f"there is no model {model!r}, only: {known}")

    def binary(self, name: str, models: Path) -> Path:
        """The file of a binary: of its own path, or of its name in the folder ``models``."""
        return self.folder / name if name.endswith(_PATHS) else models / f"{name}_edgetpu.tflite"

    def host(self, name: str) -> Host:
        """The host of a measurement, its link as the timing model takes it."""
        host = self.hosts.get(name, Host(name))
        if host.link in built_in("hosts"):
            return host
        return msgspec.structs.replace(host, link=str(self.folder / host.link))


def _check_host(name: str, hosts: Mapping[str, Host]) -> None:
    known = dict.fromkeys([*hosts, *built_in("hosts")])
    if name not in known and not name.endswith(".toml"):
        raise ValueError(f"there is no host {name!r}, only: {', '.join(known)}, or a TOML file")


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tables of a file, not looked into: what is wrong in one is said with its name."""

    models: dict[str, Any] = {}
    hosts: dict[str, Any] = {}
    measurements: list[Any] = []
    left_out: list[Any] = []


_Entry = TypeVar("_Entry")


def published() -> Points:
    """The published latencies that come with the program."""
    return _read(resources.files(__package__).joinpath("published.toml").read_bytes(), Path())


def evidence() -> Points:
    """All published latencies whose executable is public, most of them not in any corpus."""
    return _read(resources.files(__package__).joinpath("evidence.toml").read_bytes(), Path())


def load(path: Path) -> Points:
    """Points from a TOML file; raises ``InputError`` naming what is wrong, ``FormatError``
    if it is too large, or ``OSError``."""
    try:
        points = _read(read_file(path), path.parent)
    except ValueError as error:
        raise InputError(f"{path}: not a file of points: {error}") from error
    if not points.measurements:
        raise InputError(f"{path}: there are no [[measurements]]")
    return points


def _read(text: bytes, folder: Path) -> Points:
    file = msgspec.convert(toml.parse(text), _File)
    return Points(
        folder,
        {name: _entry(f"model {name!r}", table, Model) for name, table in file.models.items()},
        {name: _entry(f"host {name!r}", table, Host) for name, table in file.hosts.items()},
        _measurements(file.measurements),
        _entries("left_out", file.left_out, LeftOut),
    )


def _measurements(tables: list[Any]) -> list[Measurement]:
    for number, table in enumerate(tables, 1):
        times = table.get("milliseconds") if isinstance(table, dict) else None
        for model, time in times.items() if isinstance(times, dict) else ():
            if isinstance(time, dict):
                hint = 'quote a name with a dot: { "mobilenet_v2_1.0" = 2.4 }'
                raise ValueError(f"measurement {number}: {model}: no time but a table; {hint}")
    return _entries("measurement", tables, Measurement)


def _entries(what: str, tables: list[Any], kind: type[_Entry]) -> list[_Entry]:
    return [_entry(f"{what} {number}", table, kind) for number, table in enumerate(tables, 1)]


def _entry(what: str, table: Any, kind: type[_Entry]) -> _Entry:
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{what}: {error}") from error
