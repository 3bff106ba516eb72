"""What the event model counts and how it is numbered: stations, counters and causes of waiting.

A station is a thing that does one element after another: a unit, one side of a mesh unit, the
scalar core, a stream to the host. Stations come in groups of ``GROUP_STATIONS``: the chip's own
first, then each tile's, then the ring. Stations know of each other only by counters: sync flags,
queue and FIFO levels, bytes. A counter never falls, but for the flags that a fence loads.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import ScalarFlag, ScalarUnit, TileFlag, TileUnit
from darwinn_sim.kernel import state

GROUP_STATIONS: Final = 16
CHIP_GROUP: Final = 0
FIRST_TILE_GROUP: Final = 1
RING_GROUP: Final = FIRST_TILE_GROUP + chip.TILES
GROUPS: Final = RING_GROUP + 1
STATIONS: Final = GROUPS * GROUP_STATIONS

# Stations of a tile.
DISPATCH, TENSOR, WRITER, PRODUCER, CONSUMER_A, CONSUMER_B, TO_WIDE, TO_NARROW = range(8)
SEND: Final = 8
"""Sending side of mesh unit k: ``SEND + k``; the receiving side: ``RECEIVE + k``."""
RECEIVE: Final = 12

# Stations of the chip's own group.
CORE, POP_PARAMETERS, POP_ACTIVATIONS, INFEED, OUTFEED, LINK_IN, LINK_OUT = range(7)
LINK_IN_APART: Final = 7
"""Where reads have queues of their own: the station of parameters, the one of activations behind
it; ``LINK_IN`` then has the instructions."""
CHIP_STATIONS: Final = 9
ROW_TAKER: Final = CHIP_STATIONS
"""Whose turn is that of all ring consumers that wait for nothing but the row that has arrived."""

SENDER: Final = PRODUCER
"""Station of a tile's group, and of the chip's own (``INFEED``), that sends rows on the ring: in a
cycle these have their turns last."""

TILE_PLACES: Final = chip.TILE_QUEUE + 1
"""Most instructions that a tile's queue holds, one at its exit among them."""
UNIT_PLACES: Final = chip.UNIT_QUEUE + 1

TILE_STATION_NAMES: Final = (
    "dispatch",
    state.UNIT_NAMES[TileUnit.TENSOR],
    "result writer",
    *state.UNIT_NAMES[TileUnit.RING_PRODUCER : TileUnit.WIDE_TO_NARROW],
    state.UNIT_NAMES[TileUnit.NARROW_TO_WIDE],
    state.UNIT_NAMES[TileUnit.WIDE_TO_NARROW],
    *(f"{unit} send" for unit in state.UNIT_NAMES[TileUnit.MESH_SOUTH :]),
    *(f"{unit} receive" for unit in state.UNIT_NAMES[TileUnit.MESH_SOUTH :]),
)
CHIP_STATION_NAMES: Final = (
    "scalar core",
    *(
        state.SCALAR_UNIT_NAMES[unit]
        for unit in (
            ScalarUnit.PARAMETER_POP,
            ScalarUnit.AV_POP,
            ScalarUnit.RING_INFEED,
            ScalarUnit.RING_OUTFEED,
        )
    ),
    "host link in",
    "host link out",
)

STATION_OF_UNIT: Final = np.array(
    [TENSOR, PRODUCER, CONSUMER_A, CONSUMER_B, TO_NARROW, TO_WIDE, *range(SEND, SEND + 4)]
)
"""Station that takes the instructions of a tile unit (``TileUnit``)."""

UNIT_OF_STATION: Final = np.full(GROUP_STATIONS, -1)
"""The tile unit whose instructions a station takes, -1: none."""
UNIT_OF_STATION[STATION_OF_UNIT] = range(len(STATION_OF_UNIT))

STATION_OF_SCALAR_UNIT: Final = np.array([POP_ACTIVATIONS, POP_PARAMETERS, INFEED, OUTFEED])
"""Station of a unit beside the scalar core (``ScalarUnit``)."""
SCALAR_UNIT_OF_STATION: Final = np.full(GROUP_STATIONS, -1)
"""The reverse; -1: none."""
SCALAR_UNIT_OF_STATION[STATION_OF_SCALAR_UNIT] = range(len(STATION_OF_SCALAR_UNIT))


# Counters of a tile: its flags, then these.
FENCES: Final = chip.TILE_FLAGS
PUSHED: Final = FENCES + 1
TAKEN: Final = PUSHED + 1
QUEUED: Final = TAKEN + 1
BEGUN: Final = QUEUED + chip.TILE_UNITS
COMPLETED: Final = BEGUN + chip.TILE_UNITS
MESH_PUSHED: Final = COMPLETED + chip.TILE_UNITS
MESH_POPPED: Final = MESH_PUSHED + 4
ROWS_ARRIVED: Final = MESH_POPPED + 4
ROWS_POPPED: Final = ROWS_ARRIVED + 2
TILE_COUNTERS: Final = ROWS_POPPED + 2

# Counters of the chip, after those of all tiles: the scalar flags, then these.
CHIP_COUNTERS: Final = chip.TILES * TILE_COUNTERS
UNIT_QUEUED: Final = chip.SCALAR_FLAGS
UNIT_BEGUN: Final = UNIT_QUEUED + state.QUEUED_SCALAR_UNITS
UNIT_COMPLETED: Final = UNIT_BEGUN + state.QUEUED_SCALAR_UNITS
BYTES_ARRIVED: Final = UNIT_COMPLETED + state.QUEUED_SCALAR_UNITS
BYTES_TAKEN: Final = BYTES_ARRIVED + 2
BYTES_PUSHED: Final = BYTES_TAKEN + 2
BYTES_DELIVERED: Final = BYTES_PUSHED + 1
INPUTS_ISSUED: Final = BYTES_DELIVERED + 1
OUTPUTS_ISSUED: Final = INPUTS_ISSUED + 1
CHUNKS_LOADED: Final = OUTPUTS_ISSUED + 1
CHUNKS_HALTED: Final = CHUNKS_LOADED + 1
OUTFEED_ARRIVED: Final = CHUNKS_HALTED + 1
OUTFEED_POPPED: Final = OUTFEED_ARRIVED + 1
OWN_COUNTERS: Final = OUTFEED_POPPED + 1
COUNTERS: Final = CHIP_COUNTERS + OWN_COUNTERS

STREAMS: Final = chip.TILES + 1
"""Row of ``Machine.reserved`` for the host's input streams, after the tiles and the outfeed."""


class Cause(IntEnum):
    """What a station does with a cycle: it works, or it waits for something."""

    BUSY = 0
    PARAMETERS = 1
    ACTIVATIONS = 2
    RING = 3
    MESH = 4
    FENCE = 5
    HOST_LINK = 6
    INSTRUCTION_FETCH = 7
    COMPUTE = 8
    """Results, sums or room that a computing unit has yet to give."""
    DISPATCH = 9
    """It has no instruction: the scalar core has not sent one, or it waits in the tile's queue."""
    FINISHED = 10
    """After its last instruction."""

    @property
    def label(self) -> str:
        """The cause in words."""
        return self.name.lower().replace("_", " ")


CAUSES: Final = len(Cause)

_TILE_CAUSES: Final = {
    **dict.fromkeys(
        (TileFlag.ACTIVATION_WRITE, TileFlag.WIDE_TO_NARROW_WRITE, TileFlag.NARROW_TO_WIDE_WRITE),
        Cause.ACTIVATIONS,
    ),
    **dict.fromkeys((TileFlag.PARAMETER_READ, TileFlag.PARTIAL_SUM_WRITE), Cause.COMPUTE),
    **dict.fromkeys(
        range(TileFlag.MESH_INBOUND_FROM_NORTH, TileFlag.WIDE_TO_NARROW_WRITE), Cause.MESH
    ),
    TileFlag.WIDE_TO_SCALING: Cause.PARAMETERS,
    **dict.fromkeys(range(TileFlag.RING_BUS_READ_A, chip.TILE_FLAGS), Cause.RING),
    FENCES: Cause.FENCE,
    PUSHED: Cause.DISPATCH,
    TAKEN: Cause.COMPUTE,
    **dict.fromkeys(range(QUEUED, BEGUN), Cause.DISPATCH),
    **dict.fromkeys(range(BEGUN, COMPLETED), Cause.COMPUTE),
    **dict.fromkeys(range(COMPLETED, MESH_PUSHED), Cause.FENCE),
    **dict.fromkeys(range(MESH_PUSHED, ROWS_ARRIVED), Cause.MESH),
    **dict.fromkeys(range(ROWS_ARRIVED, TILE_COUNTERS), Cause.RING),
}
_CHIP_CAUSES: Final = {
    ScalarFlag.AV_POP: Cause.HOST_LINK,
    ScalarFlag.PARAMETER_POP: Cause.HOST_LINK,
    **dict.fromkeys(range(ScalarFlag.AV_INFEED, chip.SCALAR_FLAGS), Cause.RING),
    **dict.fromkeys(range(UNIT_QUEUED, UNIT_BEGUN), Cause.DISPATCH),
    **dict.fromkeys(range(UNIT_BEGUN, UNIT_COMPLETED), Cause.RING),
    **dict.fromkeys(range(UNIT_COMPLETED, BYTES_ARRIVED), Cause.FENCE),
    BYTES_ARRIVED: Cause.HOST_LINK,
    BYTES_ARRIVED + 1: Cause.HOST_LINK,
    BYTES_TAKEN: Cause.RING,
    BYTES_TAKEN + 1: Cause.RING,
    BYTES_PUSHED: Cause.RING,
    BYTES_DELIVERED: Cause.HOST_LINK,
    INPUTS_ISSUED: Cause.DISPATCH,
    OUTPUTS_ISSUED: Cause.DISPATCH,
    CHUNKS_LOADED: Cause.INSTRUCTION_FETCH,
    CHUNKS_HALTED: Cause.DISPATCH,
    OUTFEED_ARRIVED: Cause.RING,
    OUTFEED_POPPED: Cause.RING,
}


def causes() -> NDArray[np.int64]:
    """Cause of a wait: shape ``(GROUP_STATIONS, TILE_COUNTERS + OWN_COUNTERS)``.

    The row is the station's number in its group, the column the counter, those of all tiles as one.
    """
    table = np.zeros((GROUP_STATIONS, TILE_COUNTERS + OWN_COUNTERS), np.int64)
    for counter, cause in _TILE_CAUSES.items():
        table[:, counter] = cause
    for counter, cause in _CHIP_CAUSES.items():
        table[:, TILE_COUNTERS + counter] = cause
    # Rows that reach the tensor unit by the ring are its parameters; the core waits at fences.
    table[TENSOR, [TileFlag.RING_BUS_READ_A, TileFlag.RING_BUS_READ_B]] = Cause.PARAMETERS
    table[CORE, [*range(chip.TILE_FLAGS), *range(TILE_COUNTERS, TILE_COUNTERS + UNIT_QUEUED)]] = (
        Cause.FENCE
    )
    return table


def _turn_order() -> NDArray[np.int64]:
    every = np.arange(STATIONS)
    last = (every % GROUP_STATIONS == SENDER) | (every // GROUP_STATIONS == RING_GROUP)
    return np.concatenate([every[~last], every[last]])


TURN_ORDER: Final = _turn_order()
"""Stations in the order of their turns in a cycle: who sends on the ring comes after all others,
and the ring behind that.
"""
