"""Slow tile: its memories as byte arrays and its flags as a list."""

from __future__ import annotations

from typing import Any

import numpy as np


class Tile:
    """What a tile holds, copied from the record of the engine's tile before a run."""

    def __init__(self, record: Any) -> None:
        self.number = int(record["number"])
        self.narrow = bytearray(record["narrow"].tobytes())
        self.wide = bytearray(record["wide"].tobytes())
        self.scale_bias = bytearray(record["scale_bias"].tobytes())
        self.flags = [int(flag) for flag in record["flags"]]
        self.coefficient = [np.float32(v) for v in record["coefficient"]]
        self.lower_bound = [np.float32(v) for v in record["lower_bound"]]

    def narrow_word(self, address: int) -> bytes:
        """Four bytes of narrow memory at a word address (16 bits, wrapping)."""
        address %= 65536
        return bytes(self.narrow[4 * address : 4 * address + 4])

    def write_narrow_word(self, address: int, word: bytes) -> None:
        """Store four bytes at a word address of narrow memory."""
        address %= 65536
        self.narrow[4 * address : 4 * address + 4] = word

    def row(self, row: int) -> list[bytes]:
        """The 64 words of a row of wide memory."""
        base = 256 * row
        return [bytes(self.wide[base + 4 * w : base + 4 * w + 4]) for w in range(64)]

    def write_row(self, row: int, words: list[bytes]) -> None:
        """Store up to 64 words from the start of a row of wide memory."""
        for k, word in enumerate(words):
            self.wide[256 * row + 4 * k : 256 * row + 4 * k + 4] = word

    def plane(self, granule: int, lane: int) -> int:
        """The byte of a lane in a granule: byte plane granule & 3 of row granule >> 2."""
        return self.wide[256 * (granule >> 2) + 4 * lane + (granule & 3)]


class Core:
    """Scalar memory, input buffers and flags, copied from the record of the engine's core."""

    def __init__(self, record: Any) -> None:
        self.memory = bytearray(record["memory"].tobytes())
        self.activations = bytearray(record["activations"].tobytes())
        self.parameters = bytearray(record["parameters"].tobytes())
        self.flags = [int(flag) for flag in record["flags"]]
        self.output = b""
