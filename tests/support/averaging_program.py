"""A small whole program: the average of each four input bytes, computed on one tile.

256 input bytes become a row of wide memory, the tensor unit sums the four bytes of each lane, and
64 result bytes go back to the host. Tests change a field here and there to see it fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from darwinn_formats.darwinn import (
    Description,
    Executable,
    FieldOffset,
    InputLayer,
    InstructionBitstream,
    Layer,
    Meta,
    OutputLayer,
    Package,
    Position,
    dump,
)
from darwinn_sim.isa.builder import build, frame

Operation = tuple[str, dict[str, Any]]

INPUT_BYTES, OUTPUT_BYTES = 256, 64
TILE = 5
ROW, RESULT_ROW, RESULT_BYTE = 10, 20, 4096

INPUT = (Description.BASE_ADDRESS_INPUT_ACTIVATION, "image")
OUTPUT = (Description.BASE_ADDRESS_OUTPUT_ACTIVATION, "averages")
ADDRESS_REGISTERS = {INPUT: (1, 2), OUTPUT: (3, 4)}
_MOVE = {"alu_op": 15, "alu_immediate": 1}
_TAG_REGISTER = 6


def expected(image: bytes) -> bytes:
    """The averages, halves rounded to even."""
    sums = np.frombuffer(image, np.uint8).reshape(-1, 4).sum(axis=1, dtype=np.float32)
    return bytes(np.rint(sums * np.float32(0.25)).astype(np.uint8))


def watch(slots: int, flag: int, value: int, side: int | None = 0) -> dict[str, Any]:
    """The first watcher of an instruction with ``slots`` of them, the others off."""
    rest = [0] * (slots - 1)
    fields: dict[str, Any] = {
        "watcher_flag": [flag, *rest],
        "watcher_expected": [value, *rest],
        "watcher_valid": [1, *rest],
    }
    if side is not None:
        fields["watcher_side"] = [side, *rest]
    return fields


def issue(tag: int, size: int, address: tuple[int, int] | None) -> list[Operation]:
    """Fill in the four words of a descriptor and issue it."""
    low, high = address or (31, 31)
    words: list[Operation] = [
        ("Scalar", _MOVE | {"alu_destination": 5, "alu_b": size}),
        ("Scalar", _MOVE | {"alu_destination": _TAG_REGISTER, "alu_b": tag}),
        ("Scalar", _MOVE | {"alu_destination": 31, "alu_b": 0}),
    ]
    for word, register in enumerate((low, high, 5, _TAG_REGISTER)):
        words.append(("Scalar", {"store_op": 5, "store_address": word, "store_register": register}))
    return [*words, ("Scalar", {"store_op": 6})]


def line(name: str, loops: int, count: int, base: int, step: int = 1) -> dict[str, Any]:
    """A traversal of ``count`` addresses from ``base`` on, of an instruction with ``loops``."""
    limit = count - 1
    return {
        f"{name}_base": base,
        f"{name}_limit": [limit] + [0] * (loops - 1),
        f"{name}_stride": [step] + [-limit * step] * (loops - 1),
        f"{name}_mask": 1,
    }


def operations() -> list[Operation]:
    """The program without framing: first the moves that the linker patches."""
    tiles = {"tiles": 1 << TILE}
    all_flags, units = (1 << 19) - 1, 0x3FF
    reset: list[Operation] = [
        ("TileFence", {"tiles": 0xFFFF, "reset_flags": all_flags, "increment": 1}),
        (
            "ScalarFence",
            {
                "tile_fence_valid": 0xFFFF,
                "tile_fence_count": 1,
                "reset_tile_fences": 0xFFFF,
                "reset_flags": 0x1FF,
            },
        ),
    ]
    addresses: list[Operation] = [
        ("Scalar", _MOVE | {"alu_destination": register})
        for registers in ADDRESS_REGISTERS.values()
        for register in registers
    ]
    infeed_watch = {
        "watcher_flag": [0, 0],
        "watcher_expected": [1, 0],
        "watcher_stride": [1, 0],
        "watcher_valid": [1, 0],
    }
    take: list[Operation] = [
        ("PopInput", line("buffer", 3, 32, 0) | {"fifo": 1, "producer_increment": 1}),
        ("RingConsumerA", tiles | {"wide_write_base": ROW, "producer_increment": 1}),
        (
            "RingInfeed",
            line("buffer", 3, 32, 0)
            | infeed_watch
            | {"fifo": 1, "targets": 1 << TILE, "row_words": 63},
        ),
    ]
    compute: list[Operation] = [
        (
            "TensorSum",
            tiles
            | line("narrow_write", 8, OUTPUT_BYTES // 4, RESULT_BYTE, 4)
            | {"parameter_read_base": 4 * ROW, "partial_sum_read": 3, "last_block_lanes": 63}
            | {"output_scale": 0.25, "high_clip": 255.0, "low_clip": 0.0}
            | {"narrow_write_producer_increment": 1, "narrow_write_producer_depth": 8}
            | watch(6, 14, 1, None),
        ),
        (
            "NarrowToWide",
            tiles
            | line("narrow_read", 6, OUTPUT_BYTES // 4, RESULT_BYTE // 4)
            | {"wide_write_base": RESULT_ROW, "row_loop": 6, "producer_increment": 1}
            | watch(6, 0, 1),
        ),
    ]
    give: list[Operation] = [
        *issue(3, OUTPUT_BYTES, ADDRESS_REGISTERS[OUTPUT]),
        ("RingOutfeed", line("buffer", 3, OUTPUT_BYTES // 8, 0) | {"row_words": 63, "to_host": 1}),
        (
            "RingProducer",
            tiles
            | {"wide_read_base": RESULT_ROW, "targets": 1 << 16, "token_producer_increment": 1}
            | watch(3, 13, 1),
        ),
        ("TileFence", {"tiles": 0xFFFF, "wait_idle": units, "increment": 1}),
        (
            "ScalarFence",
            {
                "tile_fence_valid": 0xFFFF,
                "tile_fence_count": 1,
                "reset_tile_fences": 0xFFFF,
                "expected": [0, 0, 0, 0, 0, 1, 0, 0, 0],
                "expected_valid": 1 << 5,
                "wait_idle": 31,
            },
        ),
        *issue(4, 0, None),
    ]
    return [
        *addresses,
        *reset,
        *issue(1, INPUT_BYTES, ADDRESS_REGISTERS[INPUT]),
        *take,
        *compute,
        *give,
    ]


def changed(name: str, **fields: Any) -> list[Operation]:
    """The program with other values in the first instruction called ``name``."""
    program = operations()
    place = [operation for operation, _ in program].index(name)
    program[place] = (name, program[place][1] | fields)
    return program


def without(name: str) -> list[Operation]:
    """The program without its first instruction called ``name``."""
    program = operations()
    del program[[operation for operation, _ in program].index(name)]
    return program


def _moves() -> tuple[FieldOffset, ...]:
    offsets: list[FieldOffset] = []
    for (description, name), _ in ADDRESS_REGISTERS.items():
        for position in (Position.LOWER_32BIT, Position.UPPER_32BIT):
            bundle = 1 + len(offsets)
            meta = Meta(description, 0, name, position)
            offsets.append(FieldOffset(meta, 128 * bundle + 70))
    return tuple(offsets)


def executable(program: Sequence[Operation] | None = None, *, split: int = 0) -> Executable:
    """The program as an executable; ``split``: in two chunks, after so many instructions."""
    whole = list(program if program is not None else operations())
    parts = [whole[:split], whole[split:]] if split else [whole]
    bitstreams = tuple(
        InstructionBitstream(
            frame(build(part), last=number == len(parts) - 1), _moves() if number == 0 else ()
        )
        for number, part in enumerate(parts)
    )
    return Executable(
        instruction_bitstreams=bitstreams,
        batch_size=1,
        input_layers=(Layer(name="image", size_bytes=INPUT_BYTES),),
        output_layers=(Layer(name="averages", size_bytes=OUTPUT_BYTES, any_layer=OutputLayer()),),
    )


def package(program: Sequence[Operation] | None = None, *, split: int = 0) -> bytes:
    """The program as a package, whose layers are vectors; ``split`` as of :func:`executable`."""
    bare = executable(program, split=split)
    (given,), (result,) = bare.input_layers, bare.output_layers
    given = replace(given, any_layer=InputLayer(), y_dim=1, x_dim=1, z_dim=INPUT_BYTES)
    result = replace(result, y_dim=1, x_dim=1, z_dim=OUTPUT_BYTES)
    whole = replace(bare, input_layers=(given,), output_layers=(result,))
    return dump(Package.of(whole, min_runtime_version=12, compiler_version=""))


def images() -> Callable[[], bytes]:
    """A source of random inputs, the same in every run."""
    random = np.random.default_rng(11)
    return lambda: random.bytes(INPUT_BYTES)
