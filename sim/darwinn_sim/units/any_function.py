"""A run for any input: the output stage gives random functions of what it is given.

Two words that are equal although all data are random and no result saturates are equal for every
input: what makes them is the same. What depends on a word differs when that word does, which a clip
or a zero of one input could hide. Sums are made as ever, so that copies and constants stay what
they are (``Core.any_input``; ``darwinn_testbench.chip.any_timing`` asks).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import inner, part, unchecked
from darwinn_sim.units.output_stage import OUTPUT_16BIT, RANGE_REDUCTION, TABLE
from darwinn_sim.units.tensor_cells import INTERPOLATE
from darwinn_sim.units.tensor_records import Parameters

_FIRST, _SECOND = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)


@inner
def is_exact(parameters: Parameters) -> bool:
    """Whether the results are the sums themselves, modulo 256."""
    functions = TABLE | RANGE_REDUCTION | OUTPUT_16BIT
    return bool(
        parameters.opcode != INTERPOLATE
        and not parameters.use_scales
        and parameters.output_scale == np.float32(1)
        and parameters.high_clip == np.float32(np.inf)
        and parameters.low_clip == np.float32(-np.inf)
        and not parameters.function & functions
    )


@part
def any_results(tile: state.Tile, unit: state.Unit, parameters: Parameters, lanes: int) -> None:
    """A function of the scaled sums, and of what else decides about the results: into
    ``unit.rounded``."""
    function = mixed(
        np.uint32(parameters.output_zero_point & 0xFFFF)
        ^ np.uint32(parameters.function << 16)
        ^ np.uint32(parameters.symmetric_function << 24 | parameters.odd_function << 25)
    )
    if parameters.function & TABLE:
        function = _with_words(function, tile.coefficient.view(np.uint32))
        function = _with_words(function, tile.lower_bound.view(np.uint32))
    # Bits of the clips, by way of a place for them.
    place = unit.scaled[0]
    unit.scaled[0] = parameters.low_clip
    function = _with_words(function, unit.scaled.view(np.uint32)[:1])
    unit.scaled[0] = parameters.high_clip
    function = _with_words(function, unit.scaled.view(np.uint32)[:1])
    unit.scaled[0] = place
    kept = np.uint32(0xFFFF if parameters.function & OUTPUT_16BIT else 0xFF)
    _function(unit.scaled.view(np.uint32), unit.rounded, function, kept, lanes)


@inner
def _with_words(function: np.uint32, words: NDArray[np.uint32]) -> np.uint32:
    for k in range(len(words)):
        function = mixed(function ^ words[k])
    return function


@unchecked
def _function(
    scaled: NDArray[np.uint32],
    rounded: NDArray[np.uint32],
    function: np.uint32,
    kept: np.uint32,
    lanes: int,
) -> None:
    """Of lanes, of which there are ``chip.LANES`` at most."""
    for lane in range(lanes):
        rounded[lane] = mixed(scaled[lane] ^ function) & kept


@inner
def mixed(word: np.uint32) -> np.uint32:
    """A word that differs where ``word`` does, in about half of its bits (MurmurHash3)."""
    word = np.uint32((word ^ word >> np.uint32(16)) * _FIRST)
    word = np.uint32((word ^ word >> np.uint32(13)) * _SECOND)
    return np.uint32(word ^ word >> np.uint32(16))
