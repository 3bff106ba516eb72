"""Parameters of the timing model: of a chip, and of the link to its host, read from TOML.

Each parameter has a value, where that comes from, and how well it is known; its unit belongs to
the parameter. A file may extend a built-in description and then needs only what differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, ClassVar, Self, get_type_hints

from darwinn_formats import toml
from darwinn_formats.brief import brief
from darwinn_formats.errors import FormatError
from darwinn_formats.files import errors_name, read_file

from darwinn_sim.timing.stations import TILE_PLACES, UNIT_PLACES


class Confidence(StrEnum):
    """How well a value is known."""

    HIGH = "high"
    """Stated in the driver or a data sheet, or a law of all public programs."""
    MEDIUM = "medium"
    """Fits published times, and other values that were tried do not."""
    LOW = "low"
    """Assumed: public data cannot tell it from other values."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with where it comes from and how well it is known."""

    value: float
    source: str
    confidence: Confidence


@dataclass(frozen=True, slots=True)
class Rule:
    """Unit of a parameter, and what its value may be."""

    unit: str
    least: float
    most: float
    whole: bool = True


@dataclass(frozen=True)
class _Description:
    """What chip descriptions and host links have in common."""

    name: str
    _rules: ClassVar[Mapping[str, Rule]]

    def __init_subclass__(cls) -> None:
        hints = get_type_hints(cls, include_extras=True)
        cls._rules = {
            name: hint.__metadata__[0]
            for name, hint in hints.items()
            if hasattr(hint, "__metadata__")
        }

    @classmethod
    def parameters(cls) -> Mapping[str, Rule]:
        """The parameters by their names."""
        return cls._rules

    @classmethod
    def from_table(cls, name: str, table: Mapping[str, object], **others: str) -> Self:
        """A description from a TOML table, and what it has besides parameters.

        Raises ``FormatError`` naming what is wrong.
        """
        known = cls.parameters()
        for key in table:
            if key not in known:
                raise FormatError(f"{name}.{key}", "no such parameter")
        values = {}
        for key, rule in known.items():
            if key not in table:
                raise FormatError(f"{name}.{key}", "the parameter is missing")
            values[key] = _quantity(f"{name}.{key}", table[key], rule)
        return cls(name=name, **others, **values)

    def as_json(self) -> dict[str, object]:
        """The description as plain values."""
        return {
            name: {
                "value": quantity.value,
                "unit": rule.unit,
                "source": quantity.source,
                "confidence": quantity.confidence.value,
            }
            for name, rule in self.parameters().items()
            for quantity in (getattr(self, name),)
        }


def _quantity(where: str, table: object, rule: Rule) -> Quantity:
    keys = {"value", "unit", "source", "confidence"}
    if not isinstance(table, dict) or set(table) != keys:
        raise FormatError(where, f"a parameter has exactly {', '.join(sorted(keys))}")
    value = table["value"]
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise FormatError(where, "the value is not a number")
    if not rule.least <= value <= rule.most:
        raise FormatError(where, f"the value {value} is not within {rule.least:g} to {rule.most:g}")
    if rule.whole and value != int(value):
        raise FormatError(where, f"the value {value} is not a whole number")
    if table["unit"] != rule.unit:
        raise FormatError(where, f"the unit is {rule.unit}, not {table['unit']}")
    if table["confidence"] not in list(Confidence):
        raise FormatError(where, f"the confidence is one of {', '.join(Confidence)}")
    if not isinstance(table["source"], str) or not table["source"]:
        raise FormatError(where, "the source is missing")
    return Quantity(value, table["source"], Confidence(table["confidence"]))


@brief
@dataclass(frozen=True)
class ChipDescription(_Description):
    """What the event model needs to know of a chip; ``host`` is the link that it is usually on."""

    host: str
    clock: Annotated[Quantity, Rule("Hz", 1e3, 1e10)]
    memory_clock_ratio: Annotated[Quantity, Rule("cycle/cycle", 1, 64)]
    ring_bytes_per_cycle: Annotated[Quantity, Rule("B/cycle", 1, 256)]
    ring_row_cycles: Annotated[Quantity, Rule("cycle", 1, 1 << 16)]
    ring_sender_waits: Annotated[Quantity, Rule("flag", 0, 1)]
    narrow_to_wide_words_per_cycle: Annotated[Quantity, Rule("word/cycle", 1, 64)]
    wide_to_narrow_words_per_cycle: Annotated[Quantity, Rule("word/cycle", 1, 64)]
    mesh_words_per_cycle: Annotated[Quantity, Rule("word/cycle", 1, 64)]
    result_words_per_cycle: Annotated[Quantity, Rule("word/cycle", 1, 64)]
    result_queue_words: Annotated[Quantity, Rule("word", 0, 128)]
    result_cycles: Annotated[Quantity, Rule("cycle", 0, 1 << 16)]
    drain_cycles: Annotated[Quantity, Rule("cycle", 0, 1)]
    row_write_cycles: Annotated[Quantity, Rule("cycle", 0, 1)]
    scalar_bundle_cycles: Annotated[Quantity, Rule("cycle", 0, 1 << 16)]
    ring_fifo_rows: Annotated[Quantity, Rule("row", 1, 1024)]
    outfeed_rows: Annotated[Quantity, Rule("row", 1, 1024)]
    ring_room_at_once: Annotated[Quantity, Rule("flag", 0, 1)]
    mesh_fifo_words: Annotated[Quantity, Rule("word", 1, 1 << 16)]
    tile_queue: Annotated[Quantity, Rule("instruction", 1, TILE_PLACES)]
    unit_queue: Annotated[Quantity, Rule("instruction", 1, UNIT_PLACES)]
    scalar_queue: Annotated[Quantity, Rule("instruction", 1, UNIT_PLACES)]
    instruction_start: Annotated[Quantity, Rule("cycle", 0, 1 << 16)]
    scalar_unit_start: Annotated[Quantity, Rule("cycle", 0, 1 << 16)]
    host_fifo_bytes: Annotated[Quantity, Rule("B", 128, 1 << 20)]
    link_word_bytes: Annotated[Quantity, Rule("B", 1, 128)]
    reads_apart: Annotated[Quantity, Rule("flag", 0, 1)]
    read_cycles: Annotated[Quantity, Rule("cycle", 0, 1 << 16)]
    write_burst_bytes: Annotated[Quantity, Rule("B", 1, 128)]
    write_cycles: Annotated[Quantity, Rule("cycle", 0, 1 << 16)]
    interrupt_cycles: Annotated[Quantity, Rule("cycle", 1, 1 << 16)]


@brief
@dataclass(frozen=True)
class HostLink(_Description):
    """The link between host and chip, with the host's share of a request."""

    bytes_per_second_in: Annotated[Quantity, Rule("B/s", 1e3, 1e12)]
    bytes_per_second_out: Annotated[Quantity, Rule("B/s", 1e3, 1e12)]
    fixed_seconds: Annotated[Quantity, Rule("s", 0, 10, whole=False)]
    on_request: Annotated[Quantity, Rule("flag", 0, 1)]


def chip_description(name_or_path: str) -> ChipDescription:
    """A built-in chip description by its name, or one from a TOML file.

    Raises ``FormatError`` for a file that is no description, ``OSError`` if it cannot be read.
    """
    with errors_name(name_or_path):
        name, table = _read("chips", name_or_path, {})
        host = table.pop("host", None)
        description = ChipDescription.from_table(name, table, host=str(host))
        if not isinstance(host, str):
            raise FormatError(f"{name}.host", "not the name of a host link")
    return description


def host_link(name_or_path: str) -> HostLink:
    """A built-in host link by its name, or one from a TOML file; raises as the above."""
    with errors_name(name_or_path):
        return HostLink.from_table(*_read("hosts", name_or_path, {}))


@cache
def built_in(folder: str) -> tuple[str, ...]:
    """Names of the built-in descriptions in ``folder`` (chips or hosts)."""
    files = resources.files(__package__).joinpath(folder).iterdir()
    return tuple(sorted(Path(f.name).stem for f in files if f.name.endswith(".toml")))


def _read(
    folder: str, name_or_path: str, seen: Mapping[str, None]
) -> tuple[str, dict[str, object]]:
    """Name and parameters of a description, with those of what it extends."""
    if name_or_path in built_in(folder):
        name, table = name_or_path, dict(_built_in_table(folder, name_or_path))
    else:
        path = Path(name_or_path)
        if path.suffix != ".toml":
            known = ", ".join(built_in(folder))
            field = f"extends {name_or_path!r}" if seen else ""
            raise FormatError(field, f"neither a TOML file nor one of {known}")
        name, table = path.stem, _parsed(path.stem, read_file(path))
    if name_or_path in seen:
        raise FormatError(name, "the description extends itself")
    base = table.pop("extends", None)
    if base is None:
        return name, table
    if not isinstance(base, str):
        raise FormatError(f"{name}.extends", "not the name of a description")
    _, inherited = _read(folder, base, {**seen, name_or_path: None})
    return name, inherited | table


@cache
def _built_in_table(folder: str, name: str) -> Mapping[str, object]:
    """A built-in description as it stands in its file; every run of ``cycles`` asks for one."""
    file = resources.files(__package__).joinpath(folder, f"{name}.toml")
    return _parsed(name, file.read_bytes())


def _parsed(name: str, text: bytes) -> dict[str, object]:
    try:
        return toml.parse(text)
    except ValueError as error:
        raise FormatError(name, f"not TOML: {error}") from error
