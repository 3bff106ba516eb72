"""Published latencies and users' own, read from TOML."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import msgspec
from darwinn_formats.files import read_file

from darwinn_testbench.report import InputError


class Tail(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The end of another binary, in place of the last ``layers`` layers of a model's own.

    The last ``tail_layers`` of the other one are taken, the first of which is a pool that takes
    ``pool_scale`` times as long in the model.
    """

    binary: str
    layers: int
    tail_layers: int
    pool_scale: float


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands for a model, and its size for the baselines: multiplications of the graph, and
    bytes that an inference must move (tensors, and weights that are not cached)."""

    binary: str
    macs: int
    bytes: int
    tail: Tail | None = None


class Host(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A host: a built-in link or a TOML file, with a bandwidth of its own and its source."""

    link: str
    bytes_per_second_in: int | None = None
    bandwidth_source: str = ""


class Measurement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Latencies in milliseconds by model, all from one source and one host."""

    source: str
    host: str
    milliseconds: dict[str, float]


class LeftOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Published figures that are not compared, and why."""

    models: list[str]
    source: str
    milliseconds: str
    reason: str


class Points(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that is in a file of points."""

    models: dict[str, Model] = {}
    hosts: dict[str, Host] = {}
    measurements: list[Measurement] = []
    left_out: list[LeftOut] = []

    def __post_init__(self) -> None:
        for measurement in self.measurements:
            if measurement.host not in self.hosts:
                raise ValueError(f"there is no host {measurement.host!r}")
            for model in measurement.milliseconds:
                if model not in self.models:
                    raise ValueError(f"there is no model {model!r}")


def published() -> Points:
    """The published latencies that come with the program."""
    text = resources.files(__package__).joinpath("published.toml").read_bytes()
    return msgspec.toml.decode(text, type=Points)


def load(path: Path) -> Points:
    """Points from a TOML file; raises ``InputError`` naming what is wrong, ``FormatError``
    if it is too large, or ``OSError``."""
    try:
        return msgspec.toml.decode(read_file(path), type=Points)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a file of points: {error}") from error
