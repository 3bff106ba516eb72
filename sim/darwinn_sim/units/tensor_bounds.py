"""What is known of all iterations of a tensor instruction, by the ends of its traversals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.units.memories import NARROW_MASK

_GRANULES = 4 * chip.WIDE_ROWS


def may_leave(tensor: NDArray[np.void]) -> NDArray[np.bool_]:
    """For each of some tensor instructions False if all its addresses are there.

    Nearly all stay within the memories, and so need not be looked at iteration by iteration.
    """
    leave: NDArray[np.bool_] = (
        addresses_may_leave(tensor)
        | _leaves(tensor["partial_sum"], _GRANULES - 1)
        | (tensor["load_parameter_zero_point"] != 0)
    )
    return leave


def addresses_may_leave(tensor: NDArray[np.void]) -> NDArray[np.bool_]:
    """The same of the addresses that a plan has for each iteration and word of results, not only
    for each segment.
    """
    leave: NDArray[np.bool_] = _leaves(
        tensor["narrow_write"], chip.NARROW_BYTES - chip.WORD_BYTES
    ) | _leaves(tensor["parameter_read"], last_granules(tensor))
    return leave


def last_granules(tensor: NDArray[np.void]) -> NDArray[np.int64]:
    """The last granule from which on wide memory has all planes that an iteration reads."""
    planes: NDArray[np.int64] = tensor["products"] * np.where(tensor["parameter_16bit"], 2, 1)
    return _GRANULES - planes


def are_plain(tensor: NDArray[np.void]) -> NDArray[np.bool_]:
    """For each of some tensor instructions True if all its iterations are plain
    (``tensor_products``), so that none has to be looked at: nearly all are.
    """
    plain: NDArray[np.bool_] = (
        ~_leaves(tensor["narrow_read"], NARROW_MASK - 3)
        & ~_leaves(tensor["parameter_read"], _GRANULES - 1)
        & _are_multiples(tensor["parameter_read"], 4)
    )
    return plain


def _limits(walks: NDArray[np.void]) -> NDArray[np.int64]:
    """The greatest limit of each loop: an alternate one may be."""
    rows, target = np.arange(len(walks)), walks["alternate_target"]
    limit: NDArray[np.int64] = walks["limit"].copy()
    other = np.where(walks["alternate_loop"] != 0, walks["alternate_limit"], 0)
    limit[rows, target] = np.maximum(limit[rows, target], other)
    return limit


def _leaves(walks: NDArray[np.void], last: int | NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which traversals may reach an address below 0 or beyond ``last``."""
    reach, offset = _limits(walks) * walks["step"], walks["double_offset"]
    least = walks["base"] + np.minimum(reach, 0).sum(axis=1) + np.minimum(offset, 0)
    greatest = walks["base"] + np.maximum(reach, 0).sum(axis=1) + np.maximum(offset, 0)
    leaves: NDArray[np.bool_] = (least < 0) | (greatest > last) | (walks["prologue_length"] != 0)
    return leaves


def _are_multiples(walks: NDArray[np.void], factor: int) -> NDArray[np.bool_]:
    """Which traversals, without a prologue, have only addresses that are multiples."""
    steps = np.where(_limits(walks) > 0, walks["step"], 0) % factor
    multiples: NDArray[np.bool_] = (
        (walks["base"] % factor == 0)
        & (walks["double_offset"] % factor == 0)
        & (steps == 0).all(axis=1)
    )
    return multiples
