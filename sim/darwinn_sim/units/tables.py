"""A lowered program as the kernels of the units see it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.units.tensor_plan import TensorPlan

Table = NDArray[np.void]


class Tables(NamedTuple):
    """A program as the kernels see it: all chunks of an executable, one after another.

    ``at`` maps a program counter (bundles through all chunks) to an instruction, -1 inside one.
    ``opcode``, ``row`` (in the table of its kind), ``unit`` (of a tile; -1: none), ``pc`` and
    ``dispatch`` are indexed by instruction.
    """

    at: NDArray[np.int64]
    opcode: NDArray[np.int64]
    row: NDArray[np.int64]
    unit: NDArray[np.int64]
    pc: NDArray[np.int64]
    scalar: Table
    branch: Table
    loop: Table
    scalar_fence: Table
    dispatch: Table
    pop: Table
    infeed: Table
    outfeed: Table
    tensor: Table
    tensor_plan: TensorPlan
    function_table: Table
    ring_producer: Table
    ring_consumer: Table
    narrow_to_wide: Table
    wide_to_narrow: Table
    mesh: Table
    tile_fence: Table
