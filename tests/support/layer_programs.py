"""What the tiles of a made-up layer write: words of images that are spread over the grid."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from darwinn_sim import chip
from darwinn_sim.machine.layers import ComputedLayer
from darwinn_sim.units import observation
from darwinn_testbench.layers.results import Bytes
from numpy.typing import NDArray

WORD = 4


def layer(number: int = 0, **more: Any) -> ComputedLayer:
    fields: dict[str, Any] = {
        "number": number,
        "instructions": tuple(range(chip.TILES)),
        "executions": chip.TILES,
        "tiles": 0xFFFF,
        "copies": False,
        "output_stage": (),
        "output_zero_point": 0,
        "output_16bit": False,
    }
    return ComputedLayer(**(fields | more))


def program(writes: list[int]) -> Any:
    """The tables of a program whose instruction t runs on tile t and writes ``writes[t]`` words."""
    place = np.zeros(chip.TILES, [("writes", "i8")])
    place["writes"] = writes
    plan = SimpleNamespace(place=place)
    return SimpleNamespace(
        chunks=(),
        tables=SimpleNamespace(row=np.arange(chip.TILES), tensor_plan=plan),
    )


def one_pass_words(parts: dict[int, Bytes], generator: np.random.Generator) -> NDArray[np.void]:
    """Words of each tile's bytes (n, 4), in any order, each after a wrong one at its address."""
    records = []
    for tile, data in parts.items():
        base = 4 * int(generator.integers(0, 100))
        gaps = 4 * np.cumsum(generator.integers(1, 3, len(data)))
        order = generator.permutation(len(data))
        right = np.zeros(len(data), observation.TappedWord.dtype)
        right["instruction"] = right["tile"] = tile
        right["address"] = base + gaps
        right["word"] = data.reshape(-1).view("<u4")
        right["count"] = WORD
        wrong = right.copy()
        wrong["word"] ^= np.uint32(0x01010101)
        records.append(np.stack([wrong[order], right[order]], axis=1).reshape(-1))
    words = np.concatenate(records)
    # Tiles run at the same time: only the order within each of them is known.
    turn = generator.permutation(words["tile"])
    mixed = np.empty_like(words)
    for tile in parts:
        mixed[turn == tile] = words[words["tile"] == tile]
    return mixed


def spread(image: Bytes, heights: list[int], widths: list[int]) -> dict[int, Bytes]:
    """The bytes of each tile, (n, 4), of an image (rows, columns, channels)."""
    depth = -(-image.shape[2] // WORD) * WORD
    padded = np.full((*image.shape[:2], depth), 0xEE, np.uint8)
    padded[..., : image.shape[2]] = image
    bottoms, rights = np.cumsum(heights), np.cumsum(widths)
    return {
        4 * r + c: padded[
            bottoms[r] - heights[r] : bottoms[r], rights[c] - widths[c] : rights[c]
        ].reshape(-1, WORD)
        for r in range(4)
        for c in range(4)
        if heights[r] * widths[c]
    }
