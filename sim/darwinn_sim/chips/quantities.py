"""Parameters that are read from TOML: each has a value, where that comes from, and how well it is
known; its unit and what it may be belong to the parameter.

A file may extend a built-in description and then needs only what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from operator import or_
from pathlib import Path
from typing import Any, ClassVar, Self, TypeGuard, get_type_hints

from darwinn_formats import toml
from darwinn_formats.errors import FormatError
from darwinn_formats.files import read_file


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
    least: float | None = None
    """The value is hardly below this; ``most``: hardly above. Both hold nine times out of ten."""
    most: float | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """Where the value lies nine times out of ten; the value alone if nothing else is known."""
        low = self.value if self.least is None else self.least
        return low, self.value if self.most is None else self.most


@dataclass(frozen=True, slots=True)
class Rule:
    """Unit and ``meaning`` of a parameter, and what its value may be.

    ``multiple``: the value is a multiple of it; with ``power_of_two``, a power of two. ``why`` says
    why no other value can be. A value that is ``compiled`` is a constant of the compiled kernels
    and of the RTL: a process has one. ``absent`` stands for a parameter that is not given, if it
    need not be.
    """

    unit: str
    least: float
    most: float
    meaning: str
    whole: bool = True
    multiple: int = 1
    power_of_two: bool = False
    why: str = ""
    compiled: bool = False
    absent: float | None = None

    def objection(self, value: float) -> str:
        """What is wrong with ``value``, in words; empty if nothing is."""
        why = f": {self.why}" if self.why else ""
        if not self.least <= value <= self.most:
            if self.least == self.most:
                return f"the value {value} is not {self.least:g}, as on every chip{why}"
            return f"the value {value} is not within {self.least:g} to {self.most:g}{why}"
        if self.whole and value != int(value):
            return f"the value {value} is not a whole number"
        if self.whole and int(value) % self.multiple:
            return f"the value {value} is not a multiple of {self.multiple}{why}"
        if self.power_of_two and int(value) & (int(value) - 1):
            return f"the value {value} is not a power of two{why}"
        return ""


@dataclass(frozen=True)
class Description:
    """What descriptions of chips and of host links have in common."""

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
    def from_table(cls, name: str, table: Mapping[str, object], **others: Any) -> Self:
        """A description from a TOML table, and what it has besides parameters.

        Raises ``FormatError`` naming what is wrong.
        """
        known = cls.parameters()
        for key in table:
            if key not in known:
                raise FormatError(f"{name}.{key}", "no such parameter")
        values = {}
        for key, rule in known.items():
            if key in table:
                values[key] = _quantity(f"{name}.{key}", table[key], rule)
            elif rule.absent is None:
                raise FormatError(f"{name}.{key}", "the parameter is missing")
            else:
                values[key] = Quantity(rule.absent, "not given", Confidence.LOW)
        return cls(name=name, **others, **values)

    def as_json(self) -> dict[str, object]:
        """The description as plain values."""
        return {
            name: {
                "value": quantity.value,
                "unit": rule.unit,
                "source": quantity.source,
                "confidence": quantity.confidence.value,
                **_ends(quantity),
            }
            for name, rule in self.parameters().items()
            for quantity in (getattr(self, name),)
        }


_ENDS = ("least", "most")
"""Keys of a parameter's interval."""


def _ends(quantity: Quantity) -> dict[str, float]:
    """The interval of a parameter, as far as it has one."""
    ends = {end: getattr(quantity, end) for end in _ENDS}
    return {end: value for end, value in ends.items() if value is not None}


def _quantity(where: str, table: object, rule: Rule) -> Quantity:
    keys = {"value", "unit", "source", "confidence"}
    if not isinstance(table, dict) or set(table) - set(_ENDS) != keys:
        raise FormatError(
            where,
            f"a parameter has exactly {', '.join(sorted(keys))} (and {' and '.join(_ENDS)}, if its "
            "interval is known)",
        )
    value = table["value"]
    if not _is_number(value):
        raise FormatError(where, "the value is not a number")
    objection = rule.objection(value)
    if objection:
        raise FormatError(where, objection)
    ends: list[float] = []
    for text in _ENDS:
        end = table.get(text, value)
        if not _is_number(end):
            raise FormatError(where, f"{text} is not a number")
        if not rule.least <= end <= rule.most:
            raise FormatError(where, f"{text} {end} is not within {rule.least:g} to {rule.most:g}")
        ends.append(end)
    if not ends[0] <= value <= ends[1]:
        raise FormatError(where, f"the value {value} is not within {ends[0]} to {ends[1]}")
    if table["unit"] != rule.unit:
        raise FormatError(where, f"the unit is {rule.unit}, not {table['unit']}")
    if table["confidence"] not in list(Confidence):
        raise FormatError(where, f"the confidence is one of {', '.join(Confidence)}")
    if not isinstance(table["source"], str) or not table["source"]:
        raise FormatError(where, "the source is missing")
    return Quantity(
        value,
        table["source"],
        Confidence(table["confidence"]),
        *(table.get(end) for end in _ENDS),
    )


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class BuiltIn:
    """Where built-in descriptions of a kind are: in a folder of a package, or in itself."""

    package: str
    folder: str = ""

    @property
    def files(self) -> Traversable:
        """The folder."""
        return resources.files(self.package).joinpath(self.folder)


@cache
def built_in(place: BuiltIn) -> tuple[str, ...]:
    """Names of the built-in descriptions."""
    files = place.files.iterdir()
    return tuple(sorted(Path(f.name).stem for f in files if f.name.endswith(".toml")))


def read_table(
    place: BuiltIn,
    name_or_path: str,
    seen: Mapping[str, None] | None = None,
    *,
    joined: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]] = or_,
) -> tuple[str, dict[str, Any]]:
    """Name and parameters of a description, with those of what it extends.

    TOML files that a file names count from its folder. ``joined`` gives the parameters of the
    extended description with those of the extending one.

    Raises ``FormatError`` for a file that is no description, ``OSError`` if it cannot be read.
    """
    seen = seen or {}
    if name_or_path in built_in(place):
        name, table = name_or_path, dict(_built_in_table(place, name_or_path))
    else:
        path = Path(name_or_path)
        if path.suffix != ".toml":
            known = ", ".join(built_in(place))
            field = f"extends {name_or_path!r}" if seen else ""
            raise FormatError(field, f"neither a TOML file nor one of {known}")
        name, table = path.stem, _in_folder(path.parent, _parsed(path.stem, read_file(path)))
        name_or_path = str(path.resolve())
    if name_or_path in seen:
        raise FormatError(name, "the description extends itself")
    base = table.pop("extends", None)
    if base is None:
        return name, table
    if not isinstance(base, str):
        raise FormatError(f"{name}.extends", "not the name of a description")
    _, inherited = read_table(place, base, {**seen, name_or_path: None}, joined=joined)
    return name, joined(inherited, table)


_NAMING = ("extends", "host", "register_map")
"""Keys by which a description names another one."""


def _in_folder(folder: Path, table: dict[str, object]) -> dict[str, object]:
    """The table of a file in ``folder``, with the paths of the files that it names."""
    named = {key: table[key] for key in _NAMING if key in table}
    return table | {
        key: str(folder / name)
        for key, name in named.items()
        if isinstance(name, str) and name.endswith(".toml")
    }


@cache
def _built_in_table(place: BuiltIn, name: str) -> Mapping[str, object]:
    """A built-in description as it stands in its file; every process reads one."""
    return _parsed(name, place.files.joinpath(f"{name}.toml").read_bytes())


def _parsed(name: str, text: bytes) -> dict[str, object]:
    try:
        return toml.parse(text)
    except ValueError as error:
        raise FormatError(name, f"not TOML: {error}") from error
