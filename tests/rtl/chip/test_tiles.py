"""Tiles of the RTL chip together: words over the mesh, rows from tile to tile, late ones too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from darwinn_sim import chip
from darwinn_sim.isa.builder import build
from darwinn_sim.isa.table import BY_NAME
from harness_runs import require_toolchain
from slow_model import mesh_bus as slow
from stimulus import Walk
from unit_bench import Bench

ALL = (1 << chip.TILES) - 1
RESULT = chip.SCALAR_MEMORY_WORDS // 2
"""Where the rows come back to in scalar memory; those that go out stand at its beginning."""

PIECES = 4
"""Rows that tiles gather, one behind the other."""

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


def pieces(words: int, delays: list[int]) -> list[Operation]:
    """Four rows for all tiles, of each of which a tile keeps ``words`` words, and those back.

    Every tile takes each row to the same place of wide memory, with the guards that a compiler
    gives (64 words less than there should be), and is busy for its number of ``delays`` before.
    """
    row_size, fence = 64, {"wait_idle": (1 << 10) - 1}
    operations: list[Operation] = []
    for tile, delay in enumerate(delays):
        constant = in_order("MeshNorth", "narrow_write", delay, base=1000) | {"immediate_valid": 1}
        operations.append(("MeshNorth", constant | {"tiles": 1 << tile}))
    counts = {"producer_increment": 1, "tiles": ALL}
    operations.append(("TileFence", fence | {"tiles": ALL}))
    for row in range(PIECES):
        spread = in_order("WideToNarrow", "narrow_write", words, base=words * row)
        spread |= once("WideToNarrow", (14, row + 1)) | {"row_loop": 6, "watcher_side": [0] * 6}
        guard = once("RingConsumerA", (11, words * row - row_size))
        operations += [
            ("WideToNarrow", spread | counts),
            (
                "RingConsumerA",
                in_order("RingConsumerA", "wide_write", 1) | guard | counts | {"producer_depth": 7},
            ),
        ]
    operations += [
        ("TileFence", fence | {"tiles": ALL}),
        (
            "NarrowToWide",
            in_order("NarrowToWide", "narrow_read", PIECES * words)
            | {"wide_write_base": 5, "row_loop": 6, "producer_depth": 7}
            | counts,
        ),
    ]
    for tile in range(chip.TILES):
        back = {"wide_read_base": 5, "targets": 1 << chip.TILES, "tiles": 1 << tile}
        turn = {"token_producer_increment": 1, "token_producer_depth": 7}
        waits = once("RingProducer", (13, 1), (17, tile))
        operations.append(("RingProducer", back | waits | turn))
    outfeed = in_order("RingOutfeed", "buffer", row_size * chip.TILES, base=RESULT)
    operations.append(("RingOutfeed", outfeed | {"row_words": row_size - 1}))
    infeed = in_order("RingInfeed", "buffer", row_size * PIECES)
    operations.append(("RingInfeed", infeed | {"fifo": 2, "row_words": 63, "targets": ALL}))
    return operations


def test_rows_wait_on_the_ring_for_tiles_that_are_late() -> None:
    """What is for a busy tile does not land in one place of wide memory all at once.

    The guards would allow it: programs rely on a row being spread before the next one comes.
    """
    require_toolchain()
    from darwinn_rtl.chip.player import ChipPlayer

    random = np.random.default_rng(5)
    words, delays = 16, random.integers(1, 1000, chip.TILES).tolist()
    player = ChipPlayer(5)
    sent = random.integers(1 << 32, size=player.scalar_memory.size, dtype=np.uint32)
    player.scalar_memory[:] = sent
    for name, fields in pieces(words, delays):
        player.hand_over(name, build([(name, fields)]), fields.get("tiles", 0))
    player.settle()
    wanted = sent[: 64 * PIECES].reshape(PIECES, 64)[:, :words].ravel()
    arrived = player.scalar_memory[RESULT:].reshape(-1, 64)[: chip.TILES, : wanted.size]
    late = np.flatnonzero((arrived != wanted).any(axis=1))
    assert not late.size, [(int(tile), delays[tile]) for tile in late]
    player.close()


@pytest.mark.parametrize(
    "rounds", [1, pytest.param(25, marks=pytest.mark.nightly)], ids=["gate", "nightly"]
)
@pytest.mark.parametrize("link", list(slow.DIRECTIONS))
def test_rows_come_back_over_the_mesh_and_the_ring(link: str, rounds: int) -> None:
    """Each row arrives where torus and targets lead, in the RTL and in the model's engine."""
    require_toolchain()
    from darwinn_rtl.chip.player import ChipPlayer

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
