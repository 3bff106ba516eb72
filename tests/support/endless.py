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
_ON_ALL = {"tiles": _ALL_TILES}
_RING = ({"tiles": 1, "targets": 2}, {"tiles": 2})
"""Who sends rows, and who takes them."""
_TO_SCALAR_CORE = {"tiles": 1, "targets": 1 << 16}


def _again(*body: Operation) -> list[Operation]:
    """``body`` for ever."""
    bundles = sum(BY_NAME[name].bundles for name, _ in body)
    return [*body, ("Branch", {"relative": 1, "offset": -bundles})]


def _far(name: str, loops: int) -> dict[str, list[int]]:
    """A traversal of as many places as can be asked for, all of them the same."""
    return {f"{name}_limit": [1023] * loops}


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
    "branches": _again(),
    "programs loaded": _again(("LoadProgram", {"start_pc": 0, "bundles": 1})),
    "narrow to wide": _again(("NarrowToWide", _ON_ALL | {"row_loop": 6})),
    "wide to narrow": _again(("WideToNarrow", _ON_ALL | {"row_loop": 6})),
    "mesh": _again(
        ("MeshEast", _ON_ALL | {"immediate_valid": 1}),
        ("MeshWest", _ON_ALL | {"immediate_valid": 1}),
    ),
    "one mesh": [("MeshEast", _ON_ALL | _far("narrow_read", 4) | _far("narrow_write", 4))],
    "ring rows": _again(("RingProducer", _RING[0]), ("RingConsumerA", _RING[1])),
    "one ring": [
        ("RingConsumerA", _RING[1] | _far("wide_write", 4)),
        ("RingProducer", _RING[0] | _far("wide_read", 4)),
    ],
    "outfeed": _again(("RingOutfeed", {"row_words": 63}), ("RingProducer", _TO_SCALAR_CORE)),
}

SEEN: dict[str, list[Operation]] = {
    "inputs": _again(
        *sample.issue(1, sample.INPUT_BYTES, sample.ADDRESS_REGISTERS[sample.INPUT]),
        ("PopInput", sample.line("buffer", 3, 32, 0) | {"fifo": 1}),
    ),
    "outputs": _again(
        *sample.issue(3, sample.OUTPUT_BYTES, sample.ADDRESS_REGISTERS[sample.OUTPUT]),
        (
            "RingOutfeed",
            sample.line("buffer", 3, sample.OUTPUT_BYTES // 8, 0) | {"row_words": 63, "to_host": 1},
        ),
        ("RingProducer", _TO_SCALAR_CORE),
    ),
    "interrupts": _again(("Interrupt", {"interrupt": 0})),
    "descriptors": _again(*sample.issue(4, 0, None)),
}
"""The same, but the host sees them going on."""


ALL = BODIES | SEEN


def executable(name: str) -> Executable:
    """The program of this name, between the beginning and the end of the sample."""
    whole = sample.operations()
    begin = next(k for k, (operation, _) in enumerate(whole) if operation == "ScalarFence") + 1
    return sample.executable([*whole[:begin], *ALL[name]])
