"""Computations of a vector that every tile makes for itself, step by step."""

from __future__ import annotations

from darwinn_sim.chip import WORD_BYTES

from darwinn_testbench.compiler.assembler import Assembler, Loops, walk
from darwinn_testbench.compiler.program import ALL_TILES
from darwinn_testbench.compiler.stages.compute import Part, Sums, compute
from darwinn_testbench.compiler.stages.storage import TILES


def pack_rows(
    program: Assembler,
    source: int,
    loops: Loops,
    row: int,
    rows: int,
    *,
    turned: bool = False,
    register: int | None = None,
) -> None:
    """Words of narrow memory, from byte ``source`` on, become rows; ``turned``, each four of them
    by columns. With a ``register`` they begin at the word that it has."""
    program.tile(
        "NarrowToWide",
        ALL_TILES,
        walk("NarrowToWide", "narrow_read", source // WORD_BYTES, loops),
        walk("NarrowToWide", "wide_write", row, [(rows, 1)]),
        row_loop=1,
        transpose=int(turned),
        **({} if register is None else {"base_override": 1, "base_register": register}),
    )


def on_all_tiles(program: Assembler, sums: Sums, source: int, target: int, read: Loops) -> None:
    """The same sums on all tiles: ``read`` are the loops of one of them."""
    part = Part(source, target, 1, 1, read, (0, 0), (0, 0))
    compute(program, sums, dict.fromkeys(TILES, part))
