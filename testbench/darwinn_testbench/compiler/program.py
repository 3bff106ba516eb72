"""What every DarwiNN program is made of, whatever it computes.

The scalar core runs the program. It asks the host for data (descriptors), and hands instructions to
the units: pops, infeed and outfeed beside it, ten units on each tile. From then on all
units run on their own, and only sync flags order them:

- a *producer* of an instruction increments a flag at the end of each block of its loops,
- a *watcher* holds an instruction back until a flag has reached a number,
- a *fence* waits until units are idle, and can load flags with a new value.

A flag belongs to what was done ("a word was written"), so whoever needs that counts it. Each
function below says why each of its watchers is there. Only what somebody waits for is signalled
(compilers signal more: it costs nothing, and the next fence clears it).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from darwinn_formats.darwinn import Description
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.isa.builder import Values
from darwinn_sim.isa.codes import (
    DescriptorTag,
    InfeedSource,
    InputFifo,
    RingChannel,
    ScalarFlag,
    ScalarUnit,
    TileFlag,
    TileUnit,
    WatcherSide,
)

from darwinn_testbench.compiler.assembler import (
    Assembler,
    Loops,
    Transfer,
    Watcher,
    signal,
    skip_first,
    wait,
    walk,
)
from darwinn_testbench.compiler.parameters import Block

ALL_TILES = (1 << chip.TILES) - 1
OUTFEED = 1 << chip.OUTFEED_BIT
"""The scalar core's outfeed as a target of a ring producer."""

PACKED_ROW = chip.WIDE_ROWS - 2
"""Two rows at the top of wide memory in which a tile packs what it sends. The rows in which it
receives are below them: a tile sends to others while it receives from others."""

_ALL_TILE_FLAGS = (1 << len(TileFlag)) - 1
_TURN_FLAGS = 1 << TileFlag.RING_PRODUCER_A | 1 << TileFlag.RING_PRODUCER_B
_ALL_TILE_UNITS = (1 << len(TileUnit)) - 1
_ALL_SCALAR_FLAGS = (1 << len(ScalarFlag)) - 1
_ALL_SCALAR_UNITS = (1 << len(ScalarUnit)) - 1
_RING_UNITS = 1 << ScalarUnit.RING_INFEED | 1 << ScalarUnit.RING_OUTFEED
_FREE_ACTIVATION_UNITS = chip.ACTIVATION_UNITS - 4
_UNIT_WORDS = chip.ACTIVATION_UNIT_BYTES // WORD_BYTES


def tile_set(tiles: Iterable[int]) -> int:
    """The set of tiles as instructions hold it: bit t for tile t."""
    return sum(1 << tile for tile in set(tiles))


# --- fences -------------------------------------------------------------------------------------


def begin(program: Assembler) -> None:
    """Wait for everything that a program before may have left running, and clear all flags."""
    program.tile(
        "TileFence",
        ALL_TILES,
        wait_idle=_ALL_TILE_UNITS,
        reset_flags=_ALL_TILE_FLAGS,
        increment=1,
    )
    _await_tile_fence(program, wait_idle=_ALL_SCALAR_UNITS, reset_flags=_ALL_SCALAR_FLAGS)


def barrier(
    program: Assembler, go_on: Iterable[TileUnit] = (), count_on: Iterable[TileFlag] = ()
) -> None:
    """Let everything so far come to its end, and start counting anew.

    Units that ``go_on`` are not waited for; flags that ``count_on`` keep their counts.

    The tile fence holds each tile's later instructions back until its units are idle; then it
    clears the flags, so that the next step can count from 0. The flags that count turns on the
    ring go on: they are the same on all tiles, and a fence of one tile says nothing of the others.
    For that there is the scalar fence, which waits until all tiles have passed theirs.
    """
    program.tile(
        "TileFence",
        ALL_TILES,
        wait_idle=_ALL_TILE_UNITS & ~sum(1 << unit for unit in go_on),
        reset_flags=_ALL_TILE_FLAGS & ~_TURN_FLAGS & ~sum(1 << flag for flag in count_on),
        increment=1,
    )
    _await_tile_fence(program, wait_idle=_RING_UNITS)


def end(program: Assembler) -> None:
    """Wait until all turns on the ring were taken, put the tiles to sleep, interrupt the host."""
    barrier(program)
    _await_turns(program)
    program.tile(
        "TileFence",
        ALL_TILES,
        wait_idle=_ALL_TILE_UNITS,
        reset_flags=_TURN_FLAGS,
        increment=1,
        narrow_sleep=1,
        wide_sleep=1,
    )
    _await_tile_fence(program, wait_idle=_RING_UNITS)
    program.interrupt()


def _await_turns(program: Assembler) -> None:
    """Wait until every turn on the ring has ended.

    A tile is idle when it has handed its rows to the ring, which may not have taken them to the
    outfeed yet. But at the end of its turn a sender tells the scalar core, too.
    """
    turns = program.turns
    used = {
        ScalarFlag.RING_PRODUCER_A: turns[RingChannel.A],
        ScalarFlag.RING_PRODUCER_B: turns[RingChannel.B],
    }
    flags = sum(1 << flag for flag, count in used.items() if count)
    if flags:
        program.emit(
            "ScalarFence",
            {"expected": [used.get(flag, 0) for flag in ScalarFlag]},
            expected_valid=flags,
            reset_flags=flags,
            wait_idle=_RING_UNITS,
        )


def _await_tile_fence(program: Assembler, **values: int) -> None:
    """Wait until every tile has passed a fence since the last time, and clear that count."""
    program.emit(
        "ScalarFence",
        tile_fence_count=1,
        tile_fence_valid=ALL_TILES,
        reset_tile_fences=ALL_TILES,
        **values,
    )


# --- parameters ---------------------------------------------------------------------------------


def load_parameters(program: Assembler, blocks: Sequence[Block]) -> None:
    """Load the parameters into the wide memories of the tiles.

    One descriptor asks the host for all of them; the pop takes them into the parameter buffer, and
    for each block the infeed sends its rows over ring channel A to the consumer of its tile.
    """
    size = sum(block.rows.size for block in blocks)
    units = sum(block.units for block in blocks)
    program.transfer(
        Transfer(Description.BASE_ADDRESS_PARAMETER, "", size, DescriptorTag.PARAMETERS)
    )
    # Unit k may only come in when unit k - 2048, whose place it takes, has been sent.
    room = Watcher(
        ScalarFlag.PARAMETER_INFEED, depth=0, expected=1 - min(units, chip.PARAMETER_UNITS)
    )
    program.emit(
        "PopInput",
        through_buffer("PopInput", 0, units, chip.PARAMETER_UNITS),
        signal(),
        wait("PopInput", room),
        fifo=InputFifo.PARAMETERS,
    )
    sent = 0
    for block in blocks:
        program.tile(
            "RingConsumerA",
            1 << block.tile,
            walk("RingConsumerA", "wide_write", block.row, [(len(block.rows), 1)]),
        )
        # A unit can be sent when it, and so all before it, has been popped.
        popped = Watcher(ScalarFlag.PARAMETER_POP, depth=0, expected=wrapped(sent + 1))
        program.emit(
            "RingInfeed",
            through_buffer("RingInfeed", sent, block.units, chip.PARAMETER_UNITS),
            signal(),
            wait("RingInfeed", popped),
            fifo=InfeedSource.PARAMETERS,
            targets=1 << block.tile,
            row_words=block.row_words - 1,
            sync_increment=1,
        )
        sent += block.units


def through_buffer(instruction: str, first: int, units: int, capacity: int) -> Values:
    """Traversal of ``units`` places of a ring buffer, from that of unit ``first``.

    The buffer has two halves: loop 0 walks one, and double buffering takes the other in the next
    iteration of loop 1.
    """
    half = capacity // 2
    rounds = -(-units // half)
    return walk(
        instruction,
        "buffer",
        first % capacity,
        [(half, 1), (rounds, 0)],
        last=units - (rounds - 1) * half,
        double=(1, half),
    )


def wrapped(count: int) -> int:
    """A count as a flag of 16 bits holds it, signed: compared by its difference to the flag."""
    return (count + (1 << 15)) % (1 << 16) - (1 << 15)


# --- input --------------------------------------------------------------------------------------


def request_input(
    program: Assembler, name: str, size: int, twice: int = 0, offset: int = 0
) -> None:
    """Ask the host for the input and pop it into the activation buffer; ``size`` in bytes.

    ``twice`` are the units that are sent twice at most, where bands of the input overlap: they are
    counted as free twice. What is asked for begins ``offset`` bytes behind the first one.
    """
    # The pop counts the free places of the buffer: at the start nearly all of them.
    program.emit(
        "ScalarFence",
        reset_flags=1 << ScalarFlag.AV_INFEED,
        reset_value=_FREE_ACTIVATION_UNITS - twice,
        wait_idle=_RING_UNITS,
    )
    program.emit("ScalarFence", reset_flags=1 << ScalarFlag.AV_POP, wait_idle=_RING_UNITS)
    program.emit(
        "PopInput",
        through_buffer("PopInput", 0, size // chip.ACTIVATION_UNIT_BYTES, chip.ACTIVATION_UNITS),
        signal(),
        wait("PopInput", Watcher(ScalarFlag.AV_INFEED, depth=0, expected=0)),
        fifo=InputFifo.ACTIVATIONS,
    )
    program.transfer(
        Transfer(Description.BASE_ADDRESS_INPUT_ACTIVATION, name, size, DescriptorTag.INPUT, offset)
    )


def send_input(program: Assembler, first: int, size: int, targets: int) -> None:
    """Send ``size`` bytes of the input, from byte ``first``, to all tiles in ``targets``.

    They travel as rows of 64 words on ring channel A; the tiles need a consumer for them.
    """
    unit = first // chip.ACTIVATION_UNIT_BYTES
    units = size // chip.ACTIVATION_UNIT_BYTES
    program.emit(
        "RingInfeed",
        through_buffer("RingInfeed", unit, units, chip.ACTIVATION_UNITS),
        signal(),
        wait("RingInfeed", Watcher(ScalarFlag.AV_POP, depth=0, expected=unit + 1)),
        fifo=InfeedSource.ACTIVATIONS,
        targets=targets,
        row_words=chip.ROW_WORDS - 1,
        sync_increment=1,
    )


def consume_rows(
    program: Assembler, tiles: int, rows: int, row_words: int, places: int = 2
) -> Values:
    """Have ring consumer A take ``rows`` rows of up to ``row_words`` words, for wide-to-narrow.

    They go to ``places`` rows of wide memory in turn: while one is filled the others
    are spread over narrow memory. Row k takes the place of row k - places, of which wide-to-narrow
    must have written the last word. Returns the traversal for wide-to-narrow to read them by.
    """
    base = PACKED_ROW - places
    rounds = -(-rows // places)
    last = rows - (rounds - 1) * places
    loops = [(places, 1), (rounds, 0)]
    free = Watcher(
        TileFlag.WIDE_TO_NARROW_WRITE,
        depth=0,
        expected=-row_words * (places - 1),
        stride=row_words,
        side=WatcherSide.SECOND,
    )
    program.tile(
        "RingConsumerA",
        tiles,
        walk("RingConsumerA", "wide_write", base, loops, last=last),
        signal(),
        wait("RingConsumerA", free),
    )
    return walk("WideToNarrow", "wide_read", base, loops, last=last)


def spread_rows(
    program: Assembler,
    tiles: int,
    rows: Values,
    base: int,
    loops: Loops,
    *,
    row_loop: int,
    last: int = 0,
    skipped: int = 0,
) -> None:
    """Have wide-to-narrow write the words of consumed rows to narrow memory.

    Args:
        program: what is written.
        tiles: set of tiles.
        rows: what :func:`consume_rows` returned.
        base: first word of narrow memory.
        loops: where the words go, in words.
        row_loop: a new row is taken when 64 words are used, and where this loop begins anew.
        last: how often loop 0 runs in the last iteration of loop 1, 0: as often as ever.
        skipped: words before those that the tile needs. A unit cannot drop words: they are written
            first, to where the needed ones will overwrite them.
    """
    arrived = Watcher(TileFlag.RING_BUS_READ_A, depth=0, expected=1)
    program.tile(
        "WideToNarrow",
        tiles,
        rows,
        walk("WideToNarrow", "narrow_write", base, loops, last=last),
        skip_first("narrow_write", base, skipped, loop=1),
        signal(),
        wait("WideToNarrow", arrived),
        row_loop=row_loop,
    )


# --- from tile to tile, and out -----------------------------------------------------------------


def pack_rows(program: Assembler, tiles: int, base: int, words: int) -> None:
    """Have narrow-to-wide pack ``words`` words of narrow memory into rows for the ring producer.

    Two rows are filled in turn. Row k takes the place of row k - 2, which must have been sent.
    """
    rows = -(-words // chip.ROW_WORDS)
    sent = Watcher(TileFlag.RING_BUS_WRITE, depth=1, expected=-1, side=WatcherSide.SECOND)
    program.tile(
        "NarrowToWide",
        tiles,
        walk("NarrowToWide", "narrow_read", base, [(words, 1)]),
        walk("NarrowToWide", "wide_write", PACKED_ROW, [(1, 0), (rows, 0)], double=(1, 1)),
        signal(depth=1),
        wait("NarrowToWide", sent),
        row_loop=1,
    )


def send_packed(program: Assembler, tile: int, words: int, targets: int) -> None:
    """Have a tile send the rows that :func:`pack_rows` fills, in its turn, to ``targets``."""
    rows = -(-words // chip.ROW_WORDS)
    turn = Watcher(TileFlag.RING_PRODUCER_A, depth=2, expected=program.take_turns(RingChannel.A))
    packed = Watcher(TileFlag.NARROW_TO_WIDE_WRITE, depth=1, expected=1)
    program.tile(
        "RingProducer",
        1 << tile,
        walk("RingProducer", "wide_read", PACKED_ROW, [(1, 0), (rows, 0)], double=(1, 1)),
        signal("row_producer", depth=1),
        signal("token_producer", depth=2),
        wait("RingProducer", turn, packed),
        targets=targets,
    )


def send_output(program: Assembler, name: str, base: int, words: dict[int, int]) -> None:
    """Send the output to the host: tile after tile, ``words[tile]`` words from word ``base``.

    The outfeed is told how many units of 8 bytes belong to the output; it drops what follows them
    in a row. Tiles with the same number of words share the packing instruction.
    """
    size = sum(words.values()) * WORD_BYTES
    for count in sorted(set(words.values())):
        pack_rows(program, tile_set(tile for tile in words if words[tile] == count), base, count)
    program.transfer(
        Transfer(Description.BASE_ADDRESS_OUTPUT_ACTIVATION, name, size, DescriptorTag.OUTPUT)
    )
    for tile, count in words.items():
        program.emit(
            "RingOutfeed",
            walk("RingOutfeed", "buffer", 0, [(count // _UNIT_WORDS, 0)]),
            row_words=chip.ROW_WORDS - 1,
            to_host=1,
        )
        send_packed(program, tile, count, OUTFEED)
