"""Writes instructions for tiles that differ a little: equal ones become one instruction.

Every unit of every tile is described by itself, as if each tile had a program of its own. Tiles
whose description is the same share an instruction, so that a layer whose parts are alike on all
tiles takes one and a layer with a shorter last row and column takes four.
"""

from __future__ import annotations

from collections.abc import Mapping

from darwinn_sim.isa.builder import Values

from darwinn_testbench.compiler.assembler import Assembler
from darwinn_testbench.compiler.program import tile_set


def write(program: Assembler, name: str, by_tile: Mapping[int, Values]) -> None:
    """Write instruction ``name`` with the fields of each tile; equal ones together."""
    groups: dict[tuple[tuple[str, object], ...], list[int]] = {}
    for tile, values in by_tile.items():
        groups.setdefault(_key(values), []).append(tile)
    for tiles in groups.values():
        program.tile(name, tile_set(tiles), by_tile[tiles[0]])


def merged(*parts: Values) -> Values:
    """The fields of all parts together."""
    fields: dict[str, object] = {}
    for part in parts:
        fields |= part
    return fields  # type: ignore[return-value]


def _key(values: Values) -> tuple[tuple[str, object], ...]:
    return tuple(
        (name, tuple(value) if isinstance(value, list | tuple) else value)
        for name, value in sorted(values.items())
    )
