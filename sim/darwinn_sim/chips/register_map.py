"""The registers of a chip: their offsets, widths, fields and values after reset.

One TOML file of ``register_maps/``, or of the user, is one map; the description of a chip names it.
The model, the driver, the RTL's register block and docs/registers.md take the registers from here.

A register stands in the table of its block: ``core`` (with the host interface), ``usb``, ``soc``
(around the core), ``harness``. ``run_controls`` gives control and status of each unit, ``sources``
and ``fields`` name what several registers have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final

import msgspec
from darwinn_formats.errors import FormatError
from darwinn_formats.files import errors_name

from darwinn_sim.chips.quantities import BuiltIn, read_table

WINDOW_BYTES: Final = 1 << 20
"""Bytes of base address register 2, in which all registers stand."""


class Access(Enum):
    """What the host may do with a register."""

    READ_WRITE = "read, write"
    READ_ONLY = "read"
    WRITE_ZERO_TO_CLEAR = "read, write 0 to clear"


@dataclass(frozen=True, slots=True)
class RegisterField:
    """A named group of bits: ``low`` is its least significant bit, ``width`` its bits."""

    name: str
    low: int
    width: int
    meaning: str

    @property
    def mask(self) -> int:
        """The field's bits, in place."""
        return ((1 << self.width) - 1) << self.low

    @property
    def bits(self) -> str:
        """The field's bits in words: ``7:0``, or ``3`` if it is one."""
        return f"{self.low}" if self.width == 1 else f"{self.low + self.width - 1}:{self.low}"

    def extract(self, value: int) -> int:
        """The field's value within the register value ``value``."""
        return (value & self.mask) >> self.low


@dataclass(frozen=True, slots=True)
class Register:
    """One register, or ``count`` of them that stand ``width`` bits apart.

    ``offset`` is the byte offset in base address register 2, ``width`` is in bits, ``reset`` the
    value after reset (``reset_by_pcie``: after power-up with PCIe, where it is another), ``source``
    where offset and meaning are known from.
    """

    name: str
    offset: int
    meaning: str
    source: str
    width: int = 64
    reset: int = 0
    reset_by_pcie: int | None = None
    access: Access = Access.READ_WRITE
    fields: tuple[RegisterField, ...] = ()
    count: int = 1

    @property
    def end(self) -> int:
        """Byte offset behind the register."""
        return self.offset + self.count * self.width // 8

    def field(self, name: str) -> RegisterField:
        """Return the field called ``name``; raise ``KeyError`` if there is none."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"{self.name} has no field {name}")


@dataclass(frozen=True, slots=True)
class RunControl:
    """Offsets of a unit's run control and of its run status.

    A unit without a status is one of every tile; the status of these is not modelled.
    """

    control: int
    status: int | None = None


@dataclass(frozen=True, slots=True)
class RegisterMap:
    """The registers of a chip, by blocks and in the order of their offsets."""

    blocks: Mapping[str, tuple[Register, ...]]
    run_controls: Mapping[str, RunControl]
    """By unit, in the order in which the driver starts and stops them."""


class _Bits(msgspec.Struct, forbid_unknown_fields=True):
    bits: str
    meaning: str


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    """A register as it stands in the file; ``reset`` is a text where TOML has no such number."""

    offset: int
    meaning: str
    source: str
    width: int = 64
    reset: int | str = 0
    reset_by_pcie: int | None = None
    access: str = "read, write"
    fields: str | dict[str, _Bits] = ""
    count: int = 1


class _RunRow(msgspec.Struct, forbid_unknown_fields=True):
    control: int
    status: int | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    run_controls: dict[str, _RunRow]
    core: dict[str, _Row]
    sources: dict[str, str] = {}
    fields: dict[str, dict[str, _Bits]] = {}
    usb: dict[str, _Row] = {}
    soc: dict[str, _Row] = {}
    harness: dict[str, _Row] = {}


BLOCKS: Final = ("core", "usb", "soc", "harness")

BUILT_IN: Final = BuiltIn(__package__, "register_maps")

_MODELLED: Final = "beagle"
"""The map of which the model knows what each register does."""

_FIXED: Final = ("width", "access", "count")
"""What the model has built in of a register; offset and value after reset may be others."""


@cache
def read_register_map(name_or_path: str) -> RegisterMap:
    """A built-in register map by its name, or one from a TOML file.

    Raises ``FormatError`` for a file that is no register map, or that lacks or changes what the
    model needs, ``OSError`` if it cannot be read.
    """
    with errors_name(name_or_path):
        name, table = read_table(BUILT_IN, name_or_path, joined=_joined)
        try:
            file = msgspec.convert(table, _File)
        except msgspec.ValidationError as error:
            raise FormatError(name, str(error)) from error
        found = _map(name, file)
        check_apart(name, [entry for block in found.blocks.values() for entry in block])
        if name_or_path != _MODELLED:
            _check_modelled(name, found, read_register_map(_MODELLED))
    return found


def _joined(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A map that extends another one: it may change single registers."""
    both = {key: base[key] | own[key] for key in base.keys() & own.keys()}
    return {**base, **own, **both}


def _map(name: str, file: _File) -> RegisterMap:
    sets = {key: _fields(f"{name}.fields.{key}", rows) for key, rows in file.fields.items()}
    blocks = {block: list(_registers(name, block, file, sets)) for block in BLOCKS}
    runs = {unit: RunControl(row.control, row.status) for unit, row in file.run_controls.items()}
    blocks["core"] += _run_registers(runs, file.sources, sets)
    offset = attrgetter("offset")
    return RegisterMap(
        {block: tuple(sorted(rows, key=offset)) for block, rows in blocks.items()}, runs
    )


def _registers(
    name: str, block: str, file: _File, sets: Mapping[str, tuple[RegisterField, ...]]
) -> Iterator[Register]:
    rows: Mapping[str, _Row] = getattr(file, block)
    for key, row in rows.items():
        where = f"{name}.{block}.{key}"
        yield Register(
            key,
            row.offset,
            row.meaning,
            file.sources.get(row.source, row.source),
            row.width,
            _number(f"{where}.reset", row.reset),
            row.reset_by_pcie,
            _access(f"{where}.access", row.access),
            _fields_of(where, row.fields, sets),
            row.count,
        )


def _number(where: str, value: int | str) -> int:
    try:
        return int(value, 0) if isinstance(value, str) else value
    except ValueError as error:
        raise FormatError(where, f"{value!r} is not a number") from error


def _access(where: str, text: str) -> Access:
    try:
        return Access(text)
    except ValueError as error:
        known = "; ".join(access.value for access in Access)
        raise FormatError(where, f"{text!r} is none of: {known}") from error


def _fields_of(
    where: str, given: str | Mapping[str, _Bits], sets: Mapping[str, tuple[RegisterField, ...]]
) -> tuple[RegisterField, ...]:
    if not isinstance(given, str):
        return _fields(where, given)
    if given and given not in sets:
        raise FormatError(f"{where}.fields", f"there is no [fields.{given}]")
    return sets.get(given, ())


def _fields(where: str, rows: Mapping[str, _Bits]) -> tuple[RegisterField, ...]:
    return tuple(
        RegisterField(name, *_bits(f"{where}.{name}", row.bits), row.meaning)
        for name, row in rows.items()
    )


_BITS: Final = tuple(map(str, range(64)))


def _bits(where: str, text: str) -> tuple[int, int]:
    """Lowest bit and number of bits of ``7:0`` or ``3``."""
    high, colon, low = text.partition(":")
    ends = [_BITS.index(end) for end in (high, low if colon else high) if end in _BITS]
    if len(ends) != 2 or ends[0] < ends[1]:
        raise FormatError(
            where, f"the bits {text!r} are neither a number from 0 to 63 nor high:low of such"
        )
    return ends[1], ends[0] - ends[1] + 1


def _run_registers(
    runs: Mapping[str, RunControl],
    sources: Mapping[str, str],
    sets: Mapping[str, tuple[RegisterField, ...]],
) -> Iterator[Register]:
    for unit, run in runs.items():
        where = "of every tile (broadcast by tileconfig0)" if run.status is None else "of the core"
        yield Register(
            f"{unit}_run_control",
            run.control,
            f"starts and stops unit {unit} {where}",
            sources.get("traced", ""),
            fields=sets.get("run_control", ()),
        )
        if run.status is not None:
            yield Register(
                f"{unit}_run_status",
                run.status,
                f"state of unit {unit}",
                sources.get("driver", ""),
                access=Access.READ_ONLY,
                fields=sets.get("run_status", ()),
            )


def check_apart(name: str, registers: Sequence[Register]) -> None:
    """Refuse registers that overlap, that do not fit, or whose fields do not.

    Raises ``FormatError`` naming the register.
    """
    for register in registers:
        objection = next(_objections(register), "")
        if objection:
            raise FormatError(f"{name}.{register.name}", objection)
    for before, after in pairwise(sorted(registers, key=attrgetter("offset"))):
        if before.end > after.offset:
            raise FormatError(
                f"{name}.{after.name}", f"overlaps {before.name}, which ends at {before.end:#x}"
            )


def _objections(register: Register) -> Iterator[str]:
    if register.width not in (32, 64):
        yield f"the width {register.width} is neither 32 nor 64"
        return
    if register.count < 1:
        yield f"the count {register.count} is not positive"
    if register.offset % (register.width // 8):
        yield f"the offset {register.offset:#x} is not a multiple of {register.width // 8}"
    if not register.offset >= 0 or register.end > WINDOW_BYTES:
        yield f"the offset {register.offset:#x} is not within {WINDOW_BYTES:#x} bytes"
    for value in (register.reset, register.reset_by_pcie or 0):
        if not 0 <= value < 1 << register.width:
            yield f"the value {value:#x} does not fit in {register.width} bits"
    used = 0
    for field in register.fields:
        if field.mask >> register.width:
            yield f"the field {field.name} does not fit in {register.width} bits"
        if used & field.mask:
            yield f"the field {field.name} overlaps another"
        used |= field.mask


def _check_modelled(name: str, found: RegisterMap, model: RegisterMap) -> None:
    """Refuse a map that lacks or changes what the model has built in."""
    if list(found.run_controls) != list(model.run_controls):
        raise FormatError(f"{name}.run_controls", _needs("units", model.run_controls))
    for block, registers in model.blocks.items():
        own = {register.name: register for register in found.blocks[block]}
        for expected in registers:
            where = f"{name}.{block}.{expected.name}"
            if expected.name not in own:
                raise FormatError(where, "the register is missing, and the model needs it")
            for part in _FIXED:
                here, there = (getattr(each, part) for each in (own[expected.name], expected))
                if here != there:
                    shown = getattr(there, "value", there)
                    raise FormatError(f"{where}.{part}", f"the model has {shown!r} built in")
            if {field.name for field in expected.fields} - {
                field.name for field in own[expected.name].fields
            }:
                raise FormatError(
                    f"{where}.fields", _needs("fields", (each.name for each in expected.fields))
                )


def _needs(what: str, names: Iterable[str]) -> str:
    return f"the model needs the {what} {', '.join(names)}"
