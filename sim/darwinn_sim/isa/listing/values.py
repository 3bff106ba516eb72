"""Values of fields in words: codes, masks, tiles, numbers."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from darwinn_sim.isa.codes import Code

Cells = Mapping[str, list[Any]]
"""Column values by field name, as Python numbers (lists of numbers for a repeated field)."""

Rendered = tuple[str, tuple[str, ...]]
"""Operands and details of one instruction."""

Render = Callable[[int, int], Rendered]
"""Renders the instruction in a row of its opcode's columns; the second number is its pc."""

_OUTFEED_BIT = 16


@cache
def tile_set(mask: int) -> str:
    """Return a tile bitmap in words: ``tile 5``, ``tiles 0-15``, ``tiles {0,5,8-11}, outfeed``."""
    numbers = [tile for tile in range(20) if mask >> tile & 1 and tile != _OUTFEED_BIT]
    runs: list[tuple[int, int]] = []
    for tile in numbers:
        if runs and runs[-1][1] == tile - 1:
            runs[-1] = (runs[-1][0], tile)
        else:
            runs.append((tile, tile))
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    if not numbers:
        tiles = "" if mask else "no tile"
    elif len(numbers) == 1:
        tiles = f"tile {texts[0]}"
    else:
        tiles = f"tiles {texts[0]}" if len(texts) == 1 else "tiles {" + ",".join(texts) + "}"
    outfeed = "outfeed" if mask >> _OUTFEED_BIT & 1 else ""
    return ", ".join(text for text in (tiles, outfeed) if text)


def executing_tiles(cells: Cells, row: int) -> str:
    """Return the tiles of a tile instruction, or the registers that name them, and its tag."""
    tiles = tile_set(cells["tiles"][row])
    if value_or_0(cells, "tiles_override", row):
        tiles = f"tiles of r{cells['tiles_register'][row]}"
    if value_or_0(cells, "base_override", row):
        tiles += f", base r{cells['base_register'][row]}"
    return f"{tiles}, #{cells['tag'][row]}"


def value_or_0(cells: Cells, name: str, row: int) -> int:
    """Return the value of a field that not every instruction has; 0 if this one has not."""
    column = cells.get(name)
    return 0 if column is None else int(column[row])


@cache
def label(codes: type[Code], value: int) -> str:
    """Return a code by its name, or the number that is none of them."""
    try:
        return codes(value).label
    except ValueError:
        return f"?{value}"


@cache
def bits_text(codes: type[Code] | None, mask: int) -> str:
    """Return the bits of a mask by name; of a mask that is nearly full, those it lacks."""
    bits = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
    if codes is None:
        return "{" + ", ".join(map(str, bits)) + "}"
    lacking = [code.label for code in codes if code not in bits]
    if not lacking and len(bits) == len(codes):
        return "all"
    if len(lacking) < len(bits):
        return "all but {" + ", ".join(lacking) + "}"
    return "{" + ", ".join(label(codes, bit) for bit in bits) + "}"


@cache
def float_text(bits: int) -> str:
    """Return the bits of a float32 as a number."""
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    return f"{value:.9g}"
