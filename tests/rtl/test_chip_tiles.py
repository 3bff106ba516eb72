"""Tiles of the RTL chip together: words over the mesh, rows from tile to tile and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from darwinn_sim import chip
from darwinn_sim.isa.builder import build
from darwinn_sim.isa.table import BY_NAME
from slow_model import mesh_bus as slow
from stimulus import Walk
from tile_runs import require_toolchain
from unit_bench import Bench

ALL = (1 << chip.TILES) - 1
RESULT = chip.SCALAR_MEMORY_WORDS // 2
"""Where the rows come back to in scalar memory; those that go out stand at its beginning."""

Operation = tuple[str, dict[str, Any]]


def in_order(name: str, traversal: str, count: int, base: int = 0) -> dict[str, Any]:
    """A traversal of ``count`` addresses from ``base`` on."""
    loops = BY_NAME[name].field(f"{traversal}_limit").count
    still = [1] * (loops - 1), [0] * (loops - 1)
    return Walk((count, *still[0]), (1, *still[1]), base=base).fields(name, traversal)


def once(name: str, *waits: tuple[int, int]) -> dict[str, Any]:
    """Watchers of flags, each for a value, before all else; ``waits``: (flag, value)."""
    slots = BY_NAME[name].field("watcher_flag").count
    empty = slots - len(waits)
    return {
        "watcher_flag": [flag for flag, _ in waits] + [0] * empty,
        "watcher_expected": [value for _, value in waits] + [0] * empty,
        "watcher_valid": [1] * len(waits) + [0] * empty,
    }


def program(link: str, words: int, targets: list[int], turns: list[int]) -> list[Operation]:
    """A row to each tile, its words over ``link``, as a row to another tile, and back.

    ``targets``: the tile that gets the row of each tile; ``turns``: when each tile sends.
    """
    counts = {"producer_increment": 1, "producer_depth": 7}
    moved = {"read_producer_increment": 0, "write_producer_increment": 1, "write_producer_depth": 7}
    arrived = slow.DIRECTIONS[link][2]
    turn = {"token_producer_increment": 1, "token_producer_depth": 7}
    operations: list[Operation] = [
        ("RingConsumerA", in_order("RingConsumerA", "wide_write", 1) | counts),
        (
            "WideToNarrow",
            in_order("WideToNarrow", "narrow_write", words)
            | {"row_loop": 6, "watcher_side": [0] * 6}
            | once("WideToNarrow", (14, 1))
            | counts,
        ),
        (
            link,
            in_order(link, "narrow_read", words)
            | in_order(link, "narrow_write", words, base=1000)
            | {"watcher_side": [0] * 6}
            | once(link, (11, 1))
            | moved,
        ),
        (
            "NarrowToWide",
            in_order("NarrowToWide", "narrow_read", words, base=1000)
            | {"wide_write_base": 5, "row_loop": 6, "watcher_side": [0] * 6}
            | once("NarrowToWide", (arrived, 1))
            | counts,
        ),
        ("RingConsumerB", in_order("RingConsumerB", "wide_write", 1, base=7) | counts),
    ]
    operations = [(name, fields | {"tiles": ALL}) for name, fields in operations]
    for tile in range(chip.TILES):
        between = once("RingProducer", (13, 1), (18, turns[tile])) | turn
        back = once("RingProducer", (15, 1), (17, tile)) | turn
        send = {"wide_read_base": 5, "consumer_b": 1, "targets": 1 << targets[tile]} | between
        give = {"wide_read_base": 7, "targets": 1 << chip.TILES} | back
        operations += [("RingProducer", fields | {"tiles": 1 << tile}) for fields in (send, give)]
    outfeed = in_order("RingOutfeed", "buffer", 64 * chip.TILES, base=RESULT)
    operations.append(("RingOutfeed", outfeed | {"row_words": 63}))
    for tile in range(chip.TILES):
        row = in_order("RingInfeed", "buffer", 64, base=64 * tile)
        operations.append(("RingInfeed", row | {"fifo": 2, "row_words": 63, "targets": 1 << tile}))
    return operations


@pytest.mark.parametrize(
    "rounds", [1, pytest.param(25, marks=pytest.mark.nightly)], ids=["gate", "nightly"]
)
@pytest.mark.parametrize("link", list(slow.DIRECTIONS))
def test_rows_come_back_over_the_mesh_and_the_ring(link: str, rounds: int) -> None:
    """Each row arrives where torus and targets lead, in the RTL and in the model's engine."""
    require_toolchain()
    from darwinn_testbench.rtl.chip_player import ChipPlayer

    for seed in range(rounds):
        random = np.random.default_rng([seed, list(slow.DIRECTIONS).index(link)])
        words = int(random.integers(1, 65))
        targets, turns = (random.permutation(chip.TILES).tolist() for _ in range(2))
        operations = program(link, words, targets, turns)
        bench = Bench(operations)
        sent = bench.core["memory"].copy()
        player = ChipPlayer(seed)
        player.scalar_memory[:] = sent
        for name, fields in operations:
            player.hand_over(name, build([(name, fields)]), fields.get("tiles", 0))
        player.settle()
        bench.run()
        for tile in range(chip.TILES):
            receiver = targets[slow.neighbour(tile, link)]
            first = RESULT + 64 * receiver
            for memory in (player.scalar_memory, bench.core["memory"]):
                arrived = memory[first : first + words]
                assert np.array_equal(arrived, sent[64 * tile : 64 * tile + words]), (seed, tile)
        player.close()
