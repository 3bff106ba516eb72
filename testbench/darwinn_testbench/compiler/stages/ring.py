"""Rows over the ring: parts of an image to all tiles, and out to the host.

Senders take turns. What arrives has a row of wide memory for each row sent, so that no place is
used twice, and wide-to-narrow spreads it as it comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from darwinn_sim import chip
from darwinn_sim.isa.codes import RingChannel, TileFlag, WatcherSide

from darwinn_testbench.compiler.assembler import Assembler, Loops, Watcher, signal, wait, walk
from darwinn_testbench.compiler.program import ALL_TILES, PACKED_ROW
from darwinn_testbench.compiler.stages.writer import merged, write

ALL_LOOPS = 6
"""Rows are closed when they are full, and at the end: not where a loop ends."""


@dataclass(frozen=True)
class Share:
    """Words that a tile sends, and where those who receive them put them."""

    tile: int
    read: int
    read_loops: Loops
    write: int = 0
    write_loops: Loops = ()

    @property
    def words(self) -> int:
        """Number of words."""
        count = 1
        for times, _ in self.read_loops:
            count *= times
        return count

    @property
    def rows(self) -> int:
        """Rows of the ring that they take."""
        return -(-self.words // chip.ROW_WORDS)


def pack(program: Assembler, shares: Sequence[Share]) -> None:
    """Have tiles pack their words into two rows in turn, each when it has been sent."""
    sent = Watcher(TileFlag.RING_BUS_WRITE, depth=1, expected=-1, side=WatcherSide.SECOND)
    write(
        program,
        "NarrowToWide",
        {
            share.tile: merged(
                walk("NarrowToWide", "narrow_read", share.read, share.read_loops),
                walk(
                    "NarrowToWide",
                    "wide_write",
                    PACKED_ROW,
                    [(1, 0), (share.rows, 0)],
                    double=(1, 1),
                ),
                signal(depth=1),
                wait("NarrowToWide", sent),
                {"row_loop": ALL_LOOPS},
            )
            for share in shares
        },
    )


def send(program: Assembler, share: Share, targets: int) -> None:
    """Have a tile send what it packs, in its turn."""
    turn = Watcher(TileFlag.RING_PRODUCER_A, depth=2, expected=program.take_turns(RingChannel.A))
    ready = Watcher(TileFlag.NARROW_TO_WIDE_WRITE, depth=1, expected=1)
    program.tile(
        "RingProducer",
        1 << share.tile,
        walk("RingProducer", "wide_read", PACKED_ROW, [(1, 0), (share.rows, 0)], double=(1, 1)),
        signal("row_producer", depth=1),
        signal("token_producer", depth=2),
        wait("RingProducer", turn, ready),
        targets=targets,
    )


def gather(
    program: Assembler,
    shares: Sequence[Share],
    first_row: int,
    targets: int = ALL_TILES,
    *,
    in_place: bool = False,
) -> None:
    """Bring all shares to the tiles in the set ``targets``, by rows of wide memory from
    ``first_row`` on.

    ``in_place``: shares go to where tiles have what they send, so each tile packs its own first.
    """
    shares = sorted(shares, key=lambda share: list(share.write_loops))
    total = sum(share.rows for share in shares)
    program.tile(
        "RingConsumerA",
        targets,
        walk("RingConsumerA", "wide_write", first_row, [(total, 1)]),
        signal(),
    )
    own = {share.tile: share.rows for share in shares} if in_place else {}
    arrived, left = 0, shares
    while left:
        run, loops = _run(left)
        rows = sum(share.rows for share in run)
        spread = merged(
            walk("WideToNarrow", "wide_read", first_row + arrived, [(rows, 1)]),
            walk("WideToNarrow", "narrow_write", run[0].write, [*run[0].write_loops, *loops]),
            {"row_loop": len(run[0].write_loops) if loops else ALL_LOOPS},
        )
        here = Watcher(TileFlag.RING_BUS_READ_A, depth=0, expected=arrived + 1)
        by_tile = {}
        for tile in (tile for tile in range(chip.TILES) if targets >> tile & 1):
            packed = Watcher(TileFlag.NARROW_TO_WIDE_WRITE, depth=1, expected=own.pop(tile, 0))
            watchers = [here, packed] if packed.expected else [here]
            by_tile[tile] = merged(spread, wait("WideToNarrow", *watchers))
        write(program, "WideToNarrow", by_tile)
        arrived, left = arrived + rows, left[len(run) :]
    pack(program, shares)
    for share in shares:
        send(program, share, targets)


def _run(shares: Sequence[Share]) -> tuple[Sequence[Share], Loops]:
    """The first shares that one instruction can spread, and the loops over them.

    They have the same size, and their places are a row, or a grid, at equal distances.
    """
    first = shares[0]
    alike = list(takewhile(lambda each: each.write_loops == first.write_loops, shares))
    starts = [share.write - first.write for share in alike]
    if len(alike) < 2 or starts[1] <= 0:
        return shares[:1], []
    step = starts[1]
    across = sum(1 for _ in takewhile(lambda k: starts[k] == k * step, range(len(starts))))
    loops = [(across, step)]
    count = across
    if len(starts) > across and starts[across] > 0:
        line = starts[across]
        expected = [line * (k // across) + step * (k % across) for k in range(len(starts))]
        equal = sum(1 for _ in takewhile(lambda k: starts[k] == expected[k], range(len(starts))))
        down = equal // across
        if down > 1:
            loops.append((down, line))
            count = across * down
    return alike[:count], loops
