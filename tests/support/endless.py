"""Programs without end, each of which spends its time on something else."""

from __future__ import annotations

import averaging_program as sample
from averaging_program import Operation
from darwinn_formats.darwinn import Executable
from darwinn_sim.isa.codes import ScalarFlag, ScalarUnit
from darwinn_sim.isa.table import BY_NAME

_ALL_TILES = 0xFFFF
_EVERY_UNIT = 0x3FF
_UNITS = 1 << 20
"""Units of a buffer that a RingInfeed goes through, or those of each of its loops."""

_SCALAR_MEMORY = {"fifo": 2, "targets": 0}


def _again(*body: Operation) -> list[Operation]:
    """``body`` for ever."""
    bundles = sum(BY_NAME[name].bundles for name, _ in body)
    return [*body, ("Branch", {"relative": 1, "offset": -bundles})]


def _unwatched(name: str, **fields: int) -> Operation:
    """An instruction of the sample, on all tiles, that waits for nothing."""
    values = next(values for operation, values in sample.operations() if operation == name)
    kept = {key: value for key, value in values.items() if not key.startswith("watcher")}
    return name, kept | {"tiles": _ALL_TILES} | fields


BODIES: dict[str, list[Operation]] = {
    "bundles": _again(("Scalar", {})),
    "dma fences": _again(
        (
            "ScalarFence",
            {"expected_valid": 1 << ScalarFlag.RING_PRODUCER_B, "wait_idle": 1 << ScalarUnit.DRAIN},
        )
    ),
    "tile fences": _again(
        ("TileFence", {"tiles": _ALL_TILES, "wait_idle": _EVERY_UNIT, "reset_flags": 1})
    ),
    "coefficient tables": _again(("CoefficientTable", {"tiles": _ALL_TILES})),
    "tensor outputs": _again(_unwatched("TensorSum")),
    "tensor functions": _again(_unwatched("TensorSum", function=1)),
    "infeed rows": _again(("RingInfeed", sample.line("buffer", 3, _UNITS, 0) | _SCALAR_MEMORY)),
    "infeed tokens": _again(
        (
            "RingInfeed",
            sample.line("buffer", 3, _UNITS, 0) | _SCALAR_MEMORY | {"token_producer_increment": 1},
        )
    ),
    "one infeed": [
        (
            "RingInfeed",
            {"buffer_limit": [_UNITS - 1] * 3, "buffer_stride": [0] * 3} | _SCALAR_MEMORY,
        )
    ],
}


def executable(name: str) -> Executable:
    """The program of this name, between the beginning and the end of the sample."""
    whole = sample.operations()
    begin = next(k for k, (operation, _) in enumerate(whole) if operation == "ScalarFence") + 1
    return sample.executable([*whole[:begin], *BODIES[name]])
