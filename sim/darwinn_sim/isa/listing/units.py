"""Instructions of the units that walk memory, in words: everything follows from the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from darwinn_sim.isa.codec import Columns
from darwinn_sim.isa.fields import Field, Instruction, Signal, Traversal
from darwinn_sim.isa.listing.values import (
    Cells,
    Rendered,
    bits_text,
    executing_tiles,
    float_text,
    label,
    tile_set,
    value_or_0,
)
from darwinn_sim.isa.strides import steps
from darwinn_sim.isa.table import TILE_HEADER

_DETAIL_WIDTH = 96


class UnitRenderer:
    """Renders the instructions of a unit that walks memory: everything follows from the table."""

    def __init__(self, instruction: Instruction, columns: Columns, cells: Cells) -> None:
        self._instruction = instruction
        self._cells = cells
        self._steps = {
            walk.name: steps(
                columns[f"{walk.name}_stride"],
                columns[f"{walk.name}_limit"],
                columns[f"{walk.name}_mask"],
            ).tolist()
            for walk in instruction.traversals
        }
        self._plain = _plain_fields(instruction)
        self._has_tiles = "tiles" in cells

    def render(self, row: int, pc: int) -> Rendered:
        """Return operands and details of the instruction in ``row``."""
        cells = self._cells
        plain = [text for field in self._plain if (text := _field_text(field, cells, row))]
        operands = [executing_tiles(cells, row)] if self._has_tiles else []
        details: list[str] = []
        if "main_limit" in cells:
            details.append(_main_loops(cells, row))
        details += [
            _traversal_text(walk, cells, self._steps[walk.name][row], row)
            for walk in self._instruction.traversals
            if not self._is_off(walk, row)
        ]
        details += _waits(self._instruction, cells, row)
        details += _signals(self._instruction, cells, row)
        if "coefficient" in cells:
            details += _coefficients(cells, row)
        if "main_limit" in cells:
            details += _wrapped(plain)
        else:
            operands += plain
        return ", ".join(operands), tuple(details)

    def _is_off(self, walk: Traversal, row: int) -> bool:
        """Return whether a side of a mesh instruction does nothing."""
        if not self._instruction.unit.startswith("mesh_"):
            return False
        name, cells = walk.name, self._cells
        writes_immediate = name == "narrow_write" and cells["immediate_valid"][row]
        moves = cells[f"{name}_stride"][row][0] or any(cells[f"{name}_limit"][row])
        return not moves and not writes_immediate


_SHOWN_ELSEWHERE = frozenset(
    {
        "base_override",
        "main_limit",
        "main_alternate_limit",
        "main_alternate_loop",
        "coefficient",
        "lower_bound",
        *(f"watcher_{part}" for part in ("flag", "depth", "expected", "stride", "valid", "side")),
    }
)


def _plain_fields(instruction: Instruction) -> tuple[Field, ...]:
    """Return the fields that are shown by name and value, as part of no group."""
    grouped = {name for walk in instruction.traversals for name in walk.fields}
    for producer in instruction.producers:
        grouped |= {f"{producer}_increment", f"{producer}_depth"}
    return tuple(
        field
        for field in instruction.fields
        if field not in TILE_HEADER and field.name not in grouped | _SHOWN_ELSEWHERE
    )


def _main_loops(cells: Cells, row: int) -> str:
    limits = cells["main_limit"][row]
    loops = [f"L{loop} {limits[loop] + 1} x" for loop in reversed(range(8)) if limits[loop]]
    text = "main: " + (" > ".join(loops) or "once")
    loop = cells["main_alternate_loop"][row]
    if loop:
        text += f"; last L{loop}: L0 {cells['main_alternate_limit'][row] + 1} x"
    return text


def _traversal_text(walk: Traversal, cells: Cells, step: list[int], row: int) -> str:
    """One traversal as a loop nest with what modifies it."""
    name = walk.name
    limit = cells[f"{name}_limit"][row]
    loops = [
        f"L{loop} {limit[loop] + 1} x {step[loop]:+d}"
        for loop in reversed(range(walk.loops))
        if limit[loop]
    ]
    parts = [f"{name} from {cells[f'{name}_base'][row]}: {' > '.join(loops) or 'once'}"]
    alternate = cells[f"{name}_alternate_loop"][row]
    if alternate:
        inner = 1 if name == "narrow_read" and value_or_0(cells, "transpose", row) else 0
        count = cells[f"{name}_alternate_limit"][row] + 1
        parts.append(f"last L{alternate}: L{inner} {count} x")
    distance = cells[f"{name}_double_offset"][row]
    if distance:
        loop = cells[f"{name}_double_loop"][row]
        second = " (second first)" if cells[f"{name}_double_start"][row] else ""
        parts.append(f"two buffers {distance} apart by L{loop}{second}")
    if walk.prologue and cells[f"{name}_prologue_enable"][row]:
        parts.append(_prologue_text(name, cells, row))
    return "; ".join(parts)


def _prologue_text(name: str, cells: Cells, row: int) -> str:
    base, count, last, stride, loop = (
        cells[f"{name}_prologue_{part}"][row]
        for part in ("base", "inner_limit", "outer_limit", "outer_stride", "loop")
    )
    moving = f", then {stride:+d} up to {last}" if stride else ""
    return f"before L{loop}: {count + 1} from {base}{moving}"


def _waits(instruction: Instruction, cells: Cells, row: int) -> Iterator[str]:
    if not instruction.watchers:
        return
    valid = cells["watcher_valid"][row]
    if instruction.watchers == 1:
        valid = [valid]
    if not any(valid):
        return
    flags = instruction.field("watcher_flag").codes
    assert flags is not None, "every watcher names its flags"
    for index, on in enumerate(valid):
        if on:
            flag, depth, expected, stride = (
                _item(cells[f"watcher_{part}"][row], index)
                for part in ("flag", "depth", "expected", "stride")
            )
            text = f"wait {label(flags, flag)} >= {expected}"
            text += _waiting_text(stride)
            text += f" at L{depth}"
            if len(instruction.traversals) == 2:
                text += f" of {instruction.traversals[cells['watcher_side'][row][index]].name}"
            yield text


@cache
def _waiting_text(stride: int) -> str:
    if stride == 0:
        return ""
    return " + k" if stride == 1 else f" + {stride}*k"


def _item(cell: Any, index: int) -> int:
    return int(cell[index] if isinstance(cell, list) else cell)


def _signals(instruction: Instruction, cells: Cells, row: int) -> Iterator[str]:
    for producer in instruction.producers:
        if not cells[f"{producer}_increment"][row]:
            continue
        given = [
            signal
            for signal in instruction.signals
            if signal.producer == producer
            and (not signal.field or cells[signal.field][row] == signal.value)
        ]
        targets = ", ".join(_signal_text(signal) for signal in given)
        yield f"signal {targets} at L{cells[f'{producer}_depth'][row]}"


@cache
def _signal_text(signal: Signal) -> str:
    owner = {"tile": "", "all tiles": " of all tiles", "scalar core": " of the scalar core"}
    return signal.flag.label + owner[signal.scope]


def _coefficients(cells: Cells, row: int) -> Iterator[str]:
    values = [float_text(bits) for bits in cells["coefficient"][row]]
    bounds = ["-inf", *(float_text(bits) for bits in cells["lower_bound"][row])]
    for segment, bound in enumerate(bounds):
        yield f"from {bound}: {' '.join(values[5 * segment : 5 * segment + 5])}"


def _wrapped(texts: Iterable[str]) -> list[str]:
    """Join texts by commas into lines of limited width."""
    lines: list[str] = []
    for text in texts:
        if lines and len(lines[-1]) + len(text) < _DETAIL_WIDTH:
            lines[-1] += f", {text}"
        else:
            lines.append(text)
    return lines


_SHOWN_AS: Mapping[str, str] = {"targets": "to", "consumer_b": "channel", "fifo": "from"}

_MINUS_ONE = frozenset({"row_words", "block_lanes", "last_block_lanes"})
"""Fields that hold one less than what they count."""

_USUALLY_ONE = frozenset({"sync_increment", "load_pc"})
"""Fields that are shown only if they are not 1."""


def _field_text(field: Field, cells: Cells, row: int) -> str:
    """Return one field as text, or nothing if its value is the usual one."""
    value = cells[field.name][row]
    text = _value_text(field, value)
    if not text:
        return ""
    name = field.shown_as or _SHOWN_AS.get(field.name, field.name)
    return name if text == field.name else f"{name} {text}"


@cache
def _value_text(field: Field, value: int) -> str:
    if field.kind == "tiles":
        return tile_set(value)
    if field.kind == "float32":
        return float_text(value)
    if field.name in _USUALLY_ONE:
        return "" if value == 1 else str(value)
    if field.name in _MINUS_ONE:
        return str(value + 1)
    if field.codes is not None and field.kind != "mask":
        name = label(field.codes, value)
        return "" if name == "none" else name
    if not value:
        return ""
    if field.kind == "flag":
        return field.name
    if field.kind == "mask":
        return bits_text(field.codes, value)
    return f"{value:#x}" if field.name == "immediate" else str(value)
