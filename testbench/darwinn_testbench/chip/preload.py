"""Contents of wide memory that a host has put there before a program runs.

Compiled models bring their parameters along; some bare streams read parameters that nothing in the
stream writes. Whoever runs such a stream declares them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from darwinn_formats.files import read_file
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator

from darwinn_testbench.errors import InputError

_FORM = re.compile(r"wide:(?P<tiles>[\d,-]+):(?P<row>\w+)(:(?P<end>\w+))?=(?P<source>.+)", re.S)
_PATTERN = re.compile(r"pattern:(?P<seed>\d+)")


@dataclass(frozen=True)
class Preload:
    """Bytes for wide memory of one tile, from ``row`` on."""

    tile: int
    row: int
    data: bytes = field(repr=False)

    def __post_init__(self) -> None:
        end = self.row * chip.ROW_BYTES + len(self.data)
        if not 0 <= self.tile < chip.TILES:
            raise InputError(f"there is no tile {self.tile}: tiles are 0 to {chip.TILES - 1}")
        if self.row < 0 or not self.data or end > chip.WIDE_ROWS * chip.ROW_BYTES:
            raise InputError(
                f"{len(self.data)} bytes from row {self.row} on: wide memory has "
                f"{chip.WIDE_ROWS} rows of {chip.ROW_BYTES} bytes"
            )

    def apply(self, accelerator: Accelerator) -> None:
        """Put the bytes into the chip."""
        accelerator.preload_wide(self.tile, self.row, self.data)


def parse(text: str) -> tuple[Preload, ...]:
    """Read ``wide:TILES:ROW=FILE`` or ``wide:TILES:ROW:END=pattern:SEED``.

    TILES are numbers and ranges (``0``, ``0-3``, ``0,5-7``). Every tile gets the bytes of the file;
    of a pattern, uniformly random bytes for rows ROW to END (exclusive), which differ from tile to
    tile and follow from the seed.

    Raises:
        InputError: another form, no such tile, or bytes that do not fit.
        FormatError: a file of more than wide memory holds.
        OSError: the file cannot be read.
    """
    form = _FORM.fullmatch(text)
    if form is None:
        raise InputError(
            f"{text!r} is neither wide:TILES:ROW=FILE nor wide:TILES:ROW:END=pattern:SEED"
        )
    row = _number(text, form["row"])
    end = None if form["end"] is None else _number(text, form["end"])
    tiles = tuple(_tiles(text, form["tiles"]))
    pattern = _PATTERN.fullmatch(form["source"])
    if pattern is not None:
        if end is None:
            raise InputError(f"{text!r}: a pattern needs the row at which it ends")
        if not row < end <= chip.WIDE_ROWS:
            raise InputError(f"{text!r}: wide memory has rows 0 to {chip.WIDE_ROWS - 1}")
        size, seed = (end - row) * chip.ROW_BYTES, int(pattern["seed"])
        return tuple(
            Preload(tile, row, np.random.default_rng([seed, tile]).bytes(size)) for tile in tiles
        )
    data = read_file(form["source"], chip.WIDE_ROWS * chip.ROW_BYTES)
    if end is not None and len(data) != (end - row) * chip.ROW_BYTES:
        raise InputError(f"{text!r}: the file has {len(data)} bytes, which is not that many rows")
    return tuple(Preload(tile, row, data) for tile in tiles)


def _number(text: str, word: str) -> int:
    try:
        return int(word, 0)
    except ValueError:
        raise InputError(f"{text!r}: {word!r} is no row number") from None


def _tiles(text: str, words: str) -> Iterator[int]:
    for word in words.split(","):
        limits = re.fullmatch(r"(\d{1,2})(?:-(\d{1,2}))?", word)
        if limits is None:
            raise InputError(f"{text!r}: {word!r} is neither a tile nor a range of tiles")
        yield from range(int(limits[1]), int(limits[2] or limits[1]) + 1)
