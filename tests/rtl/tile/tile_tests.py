"""Random programs of one tile, rows in to rows and words out, against the slow model's units."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyuvm
from darwinn_rtl.tile.bench import RingRow
from darwinn_rtl.tile.environment import TileEnvironment, TileProgram, TileTest
from darwinn_sim import chip
from darwinn_sim.isa.builder import build
from darwinn_sim.isa.table import BY_NAME
from slow_model import mesh_bus, narrow_to_wide, ring_bus, tensor_unit, wide_to_narrow
from slow_model.memory import Core, Tile
from stimulus import Walk, nothing

PROGRAMS = 25
MESH = tuple(mesh_bus.DIRECTIONS)
WHOLE = 7
"""A depth that stands for the whole traversal."""

FENCE = ("TileFence", {"wait_idle": (1 << chip.TILE_UNITS) - 1, "increment": 1})


def fields(name: str, **values: Any) -> dict[str, Any]:
    """All fields of an instruction but its opcode, 0 where no value is given."""
    return nothing(name) | values


def line(name: str, traversal: str, count: int, base: int, step: int = 1) -> dict[str, Any]:
    """A traversal of ``count`` addresses from ``base`` on."""
    loops = BY_NAME[name].field(f"{traversal}_limit").count
    rest = loops - 1
    walk = Walk((count, *[1] * rest), (step, *[0] * rest), base=base)
    return walk.fields(name, traversal)


def counting(name: str) -> dict[str, int]:
    """A producer that counts at the end."""
    return {f"{name}_increment": 1, f"{name}_depth": WHOLE}


def random_program(random: Random) -> TileProgram:
    """Rows to wide memory, from there to narrow memory, through the tensor unit, and out again."""
    rows = random.randint(1, 3)
    words = chip.ROW_WORDS * rows
    first, packed = random.randint(0, 900), random.randint(1000, 2000)
    narrow = random.randint(0, 8000)
    link = random.choice(MESH)
    sent = random.randint(1, words)
    channel, targets = random.randint(0, 1), random.getrandbits(chip.TILES + 1)
    lanes = random.randint(1, chip.LANES)
    steps = random.randint(1, 16 * rows)
    operations = [
        (
            "RingConsumerA",
            line("RingConsumerA", "wide_write", rows, first) | counting("producer"),
        ),
        FENCE,
        (
            "WideToNarrow",
            line("WideToNarrow", "wide_read", rows, first)
            | line("WideToNarrow", "narrow_write", words, narrow)
            | counting("producer")
            | {"row_loop": 6},
        ),
        FENCE,
        (link, line(link, "narrow_read", sent, narrow) | counting("read_producer")),
        FENCE,
        (
            "TensorMac",
            line("TensorMac", "narrow_read", steps, 4 * narrow, 4)
            | line("TensorMac", "parameter_read", rows, 4 * first, 4)
            | line("TensorMac", "narrow_write", -(-lanes // 4), 4 * narrow + 4 * (words - 16), 4)
            | counting("narrow_write_producer")
            | counting("parameter_read_producer")
            | {
                "main_limit": [steps - 1, 0, 0, 0, 0, 0, 0, 0],
                "reduction_loops": 1,
                "partial_sum_read": 3,
                "last_block_lanes": lanes - 1,
                "output_scale": 2.0 ** -random.randint(6, 16),
                "high_clip": 255.0,
                "activation_zero_point": random.randrange(256),
                "parameter_zero_point": random.randrange(256),
                "output_zero_point": random.randrange(256),
            },
        ),
        FENCE,
        (
            "NarrowToWide",
            line("NarrowToWide", "narrow_read", words, narrow)
            | line("NarrowToWide", "wide_write", rows, packed)
            | counting("producer")
            | {"row_loop": 6, "transpose": random.randint(0, 1)},
        ),
        FENCE,
        (
            "RingProducer",
            line("RingProducer", "wide_read", rows, packed)
            | counting("row_producer")
            | counting("token_producer")
            | {"consumer_b": channel, "targets": targets},
        ),
    ]
    return expected(random, [(name, fields(name, **values)) for name, values in operations], rows)


def expected(
    random: Random, operations: list[tuple[str, dict[str, Any]]], rows: int
) -> TileProgram:
    """The program of ``operations``, and what comes of it on the slow model."""
    tile, core = empty_tile(), Core(empty_core())
    arriving = [[random.getrandbits(32) for _ in range(chip.ROW_WORDS)] for _ in range(rows)]
    program = TileProgram(
        [build([operation]) for operation in operations], list(arriving), [], {}, []
    )
    for name, values in operations:
        if name == "TileFence":
            program.fences += values["increment"]
        elif name == "RingConsumerA":
            data = [[word.to_bytes(4, "little") for word in row] for row in arriving]
            assert ring_bus.consume(tile, values, 0, data)
        elif name == "WideToNarrow":
            assert wide_to_narrow.run(tile, values)
        elif name == "TensorMac":
            assert tensor_unit.run(tile, name, values)
        elif name == "NarrowToWide":
            assert narrow_to_wide.run(tile, values)
        elif name == "RingProducer":
            sent, done = ring_bus.send(tile, {0: tile}, core, values, rows)
            assert done
            program.rows_out = ring_rows(sent, values)
            # The token is counted by the ring, which is not there.
            tile.flags[17 + values["consumer_b"]] = 0
        else:
            words, done = mesh_bus.send(tile, name, values)
            assert done
            link = MESH.index(name)
            program.words_out[link] = [int.from_bytes(word, "little") for word in words]
    program.flags = [flag & 0xFFFF for flag in tile.flags]
    return program


def ring_rows(rows: list[list[bytes]], values: dict[str, Any]) -> list[RingRow]:
    """Rows as the ring sees them; the token goes with the last."""
    return [
        RingRow(
            tuple(int.from_bytes(word, "little") for word in row),
            channel=values["consumer_b"],
            targets=values["targets"],
            token=number == len(rows) - 1,
        )
        for number, row in enumerate(rows)
    ]


def empty_tile() -> Tile:
    """A slow tile that holds nothing."""
    return Tile(
        {
            "number": 0,
            "narrow": np.zeros(chip.NARROW_ADDRESS_BYTES // 4, np.uint32),
            "wide": np.zeros(chip.WIDE_ROWS * chip.ROW_WORDS, np.uint32),
            "scale_bias": np.zeros(chip.SCALE_BIAS_WORDS, np.uint32),
            "flags": np.zeros(chip.TILE_FLAGS, np.int64),
            "coefficient": (),
            "lower_bound": (),
        }
    )


def empty_core() -> dict[str, Any]:
    """What a slow core is made of, empty."""
    nothing = np.zeros(0, np.uint8)
    flags = np.zeros(chip.SCALAR_FLAGS, np.int64)
    return {"memory": nothing, "activations": nothing, "parameters": nothing, "flags": flags}


@pyuvm.test()
class RowsThroughTheTile(TileTest):
    """Every instruction, row, word and flag is the slow model's, under random back-pressure."""

    async def scenario(self, environment: TileEnvironment) -> None:
        for _ in range(PROGRAMS):
            await environment.run_program(random_program(self.bench.random))
        assert len(environment.scoreboard.units) >= 6, environment.scoreboard.units
