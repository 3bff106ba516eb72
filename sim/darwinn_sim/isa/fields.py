"""The vocabulary of the instruction table: fields, and groups of fields that are shared.

Bits are numbered from the least significant bit of the first byte of an instruction's first bundle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any, Literal, get_args

from darwinn_sim.isa.codes import CODES, Code, ScalarFlag, TileFlag, TileUnit
from darwinn_sim.isa.evidence import EVIDENCE

BUNDLE_BYTES = 16
"""Bytes in a bundle, the unit of program memory (docs/isa.md)."""

Confidence = Literal["high", "medium", "low", "open"]
Kind = Literal["uint", "int", "flag", "float32", "tiles", "mask", "register"]
_CONFIDENCES: dict[str, Confidence] = {name: name for name in get_args(Confidence)}
_KINDS: dict[str, Kind] = {name: name for name in get_args(Kind)}


class Grade(StrEnum):
    """How sure it is what a value of a field does (docs/isa.md, "Values by grade")."""

    KNOWN = "known"
    """Real programs hold it, and their results are right."""
    ASSUMED = "assumed"
    """No known program holds it; it is executed by the rule that its neighbours follow."""
    REFUSED = "refused"
    """No rule can be given."""


@dataclass(frozen=True, slots=True)
class Graded:
    """Values of a field that are not known, with their grade.

    The field holds one of ``values`` (with ``others``: none of them; with ``mask``: one of these
    bits), while each field in ``given`` (``name``, or ``name[k]`` for one repetition) holds one of
    its values. ``reason`` is what an assumed value is executed as, in one sentence, or why a value
    is refused; ``rtl`` says that the SystemVerilog executes it so, too.
    """

    grade: Grade
    values: tuple[int, ...] | range
    reason: str
    others: bool = False
    mask: int = 0
    given: tuple[tuple[str, tuple[int, ...] | range], ...] = ()
    rtl: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an instruction, or ``count`` like fields that stand ``pitch`` bits apart.

    ``offset`` and ``width`` are in bits. ``kind`` says how a person should see the value;
    only ``int`` is sign-extended when decoded. ``confidence`` is how well the meaning is
    established, ``evidence`` from what. ``codes`` names the values of the field, or its bits if
    it is a mask. ``shown_as`` is what a listing calls it where the name would mislead. ``grades``
    are the values that are not known; the first entry that names a value decides, and a value that
    none names is known.
    """

    name: str
    width: int
    kind: Kind = "uint"
    meaning: str = ""
    confidence: Confidence = "high"
    evidence: str = ""
    count: int = 1
    pitch: int = 0
    offset: int = -1
    codes: type[Code] | None = None
    shown_as: str = ""
    grades: tuple[Graded, ...] = ()

    @property
    def signed(self) -> bool:
        """True if the value is two's complement."""
        return self.kind == "int"

    @property
    def range(self) -> tuple[int, int]:
        """Lowest and highest value that the field can hold."""
        if self.signed:
            return -(1 << (self.width - 1)), (1 << (self.width - 1)) - 1
        return 0, (1 << self.width) - 1

    @property
    def end(self) -> int:
        """The bit after the last bit of the field (of its last repetition)."""
        return self.offset + (self.count - 1) * self.pitch + self.width

    def offsets(self) -> tuple[int, ...]:
        """The bit offset of each repetition."""
        return tuple(self.offset + k * self.pitch for k in range(self.count))


@dataclass(frozen=True, slots=True)
class Traversal:
    """A tensor traversal unit's parameters inside an instruction.

    ``name`` prefixes the ``fields``: ``<name>_base``, ``_stride`` (``loops`` values), ``_limit``
    and the others that ``layout.py`` lists, those of the prologue only if it has one. ``unit`` is
    what an address counts.
    """

    name: str
    loops: int
    prologue: bool
    unit: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Signal:
    """A sync flag that a producer increments.

    ``scope`` says whose flag: that of the executing tile, of all tiles, or of the scalar core.
    With ``field``, the signal is given only while that field has ``value``.
    """

    flag: TileFlag | ScalarFlag
    scope: Literal["tile", "all tiles", "scalar core"]
    field: str = ""
    value: int = 0
    producer: str = ""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One opcode: its length in bundles, the unit that executes it, and its fields.

    ``traversals`` are its address generators, ``producers`` the prefixes of its producers' fields
    (``<producer>_increment``, ``<producer>_depth``), ``watchers`` how many watchers it has
    (repeated fields ``watcher_flag`` ...), ``signals`` the flags that its producers increment.
    """

    opcode: int
    name: str
    bundles: int
    unit: str
    summary: str
    fields: tuple[Field, ...]
    traversals: tuple[Traversal, ...] = ()
    producers: tuple[str, ...] = ()
    watchers: int = 0
    signals: tuple[Signal, ...] = ()

    @property
    def bits(self) -> int:
        """Length of the instruction in bits."""
        return 8 * BUNDLE_BYTES * self.bundles

    @property
    def tile_unit(self) -> TileUnit | None:
        """The unit of a tile that executes it, if one does."""
        return TileUnit.__members__.get(self.unit.removesuffix("_unit").upper())

    @property
    def graded_fields(self) -> tuple[Field, ...]:
        """The fields that have values which are not known."""
        return tuple(field for field in self.fields if field.grades)

    def field(self, name: str) -> Field:
        """Return the field called ``name``; raise ``KeyError`` if there is none."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"{self.name} has no field {name}")


_FIELD = re.compile(
    r"(?P<name>\w+)(?:/(?P<shown_as>\w+))? (?P<width>\d+)(?:x(?P<count>\d+))? (?P<kind>\w+) "
    r"(?P<meaning>.+?\.)(?: \((?P<codes>\w+)\))? "
    r"\[(?P<confidence>\w+)(?:: (?P<evidence>.+)| (?P<key>\w+))\]"
)


def read(text: str) -> tuple[Field, ...]:
    """Read fields from lines of a table, not yet placed.

    A field is a line, which goes on where the next begins deeper::

        name[/what a listing shows] width[xcount] kind Meaning. [(Codes)] [confidence evidence]

    The evidence is a key of ``evidence.py``, or text after a colon.

    Raises:
        ValueError: a line that is no field, or a kind, a confidence, codes or evidence that do not
            exist.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    margin = len(lines[0]) - len(lines[0].lstrip())
    entries: list[str] = []
    for line in lines:
        words = " ".join(line.split())
        if line[margin] == " ":
            entries[-1] += f" {words}"
        else:
            entries.append(words)
    return tuple(_read_field(entry) for entry in entries)


@cache
def _read_field(entry: str) -> Field:
    match = _FIELD.fullmatch(entry)
    if match is None:
        raise ValueError(f"no field of the instruction table: {entry}")
    part: dict[str, Any] = match.groupdict()
    try:
        return Field(
            part["name"],
            int(part["width"]),
            _KINDS[part["kind"]],
            part["meaning"],
            _CONFIDENCES[part["confidence"]],
            part["evidence"] or EVIDENCE[part["key"]],
            count=int(part["count"] or 1),
            codes=part["codes"] and CODES[part["codes"]],
            shown_as=part["shown_as"] or "",
        )
    except KeyError as error:
        raise ValueError(f"unknown {error}: {entry}") from error


def place(fields: Iterable[Field], start: int = 0) -> tuple[Field, ...]:
    """Lay fields out one after another from bit ``start``.

    A field that already has an offset is kept there, and the next one follows its first
    repetition's group (a group of interleaved repetitions is placed by its builder).
    """
    placed: list[Field] = []
    offset = start
    for field in fields:
        if field.offset < 0:
            field = replace(field, offset=offset, pitch=field.pitch or field.width)
        placed.append(field)
        offset = max(offset, field.end)
    return tuple(placed)


def interleave(count: int, members: Iterable[Field], start: int) -> tuple[Field, ...]:
    """``count`` copies of a record of fields, one record after another, from bit ``start``."""
    record = place(members, start)
    pitch = record[-1].end - start
    return tuple(replace(field, count=count, pitch=pitch) for field in record)
