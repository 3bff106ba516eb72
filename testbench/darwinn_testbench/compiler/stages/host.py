"""Inputs from the host and outputs to it.

An input of several pixels comes as the host has it, pixel behind pixel without padding: each row of
tiles gets the bytes of its own rows, and a computation with weights of 1 gives every tile its own
pixels, in whole words. An output leaves the tiles one after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from darwinn_formats.darwinn import Description
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.isa.builder import Values
from darwinn_sim.isa.codes import DescriptorTag, InfeedSource, ScalarFlag, TileFlag

from darwinn_testbench.compiler.assembler import (
    Assembler,
    Transfer,
    Watcher,
    signal,
    wait,
    walk,
)
from darwinn_testbench.compiler.parameters import round_up
from darwinn_testbench.compiler.program import (
    ALL_TILES,
    OUTFEED,
    request_input,
    through_buffer,
    tile_set,
    wrapped,
)
from darwinn_testbench.compiler.stages.compute import Part
from darwinn_testbench.compiler.stages.demand import flat_passes
from darwinn_testbench.compiler.stages.operands import unchanged
from darwinn_testbench.compiler.stages.operations import Port
from darwinn_testbench.compiler.stages.parts import copying, emitting
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.ring import Share, pack, send
from darwinn_testbench.compiler.stages.rows import GROUP, identity
from darwinn_testbench.compiler.stages.storage import (
    TILES,
    Interval,
    Storage,
    behind,
    common,
    length,
    pieces_of,
    row_of,
)
from darwinn_testbench.compiler.stages.writer import merged, write

UNIT = chip.ACTIVATION_UNIT_BYTES
NO_OPERATION = -1


def input_bytes(port: Port) -> int:
    """Bytes of an input as the host sends it."""
    image = port.image
    return round_up(image.pixels * image.channels, UNIT)


def band_phases(
    port: Port, placement: Placement, areas: Areas, before: Storage | None
) -> list[Phase]:
    """Bring a band of an input to the tiles: of each row of tiles what it needs of it.

    Each of them asks for its rows, which may overlap those of its neighbours. Each moves
    the rows that it has of the band ``before`` up.
    """
    storage = placement.parts[port.image.index]
    flat = placement.flats[port.image.index]
    chain = next(each for each in placement.chains if each.fed == port.image.index)
    most = max(map(length, storage.rows.own))
    at_once = max(1, -(-most // flat_passes(storage, chain.flat)))
    coming = storage.rows.own
    phases: list[Phase] = []
    if before is not None:
        coming = tuple(map(behind, before.rows.own, storage.rows.own))
        phases += _moved_up(port, before, storage, areas)
    for number in range(-(-max(map(length, coming)) // at_once)):
        filled = [
            (place, (own[0] + number * at_once, min(own[0] + (number + 1) * at_once, own[1])))
            for place, own in enumerate(coming)
        ]
        filled = [(place, rows) for place, rows in filled if length(rows)]
        for place, rows in filled:
            span = _span(storage, place, rows)
            size = span.end - span.first
            phases.append(_receive(port, [span], flat, areas, size, offset=span.first))
        if filled:
            phases.append(_own_pixels(port, storage, flat, filled, areas))
    return phases


def _moved_up(port: Port, before: Storage, storage: Storage, areas: Areas) -> Iterator[Phase]:
    """Move the rows that a tile has of the band before to where they are in this one."""
    image = port.image
    parts = {}
    for tile in TILES:
        (top, end), (left, right) = map(common, before.own(tile), storage.own(tile))
        source, result = (each.address(tile, top, left) for each in (before, storage))
        if top >= end or left >= right or source == result:
            continue
        steps = image.pitch, storage.row_pitch
        parts[tile] = Part(source, result, end - top, right - left, [], steps, steps)
    if parts:
        row, alone = areas.take(1)
        yield Phase(
            NO_OPERATION,
            f"rows of {port.name} that are there",
            emitting(copying(unchanged(image), image, image.pitch // GROUP, row), parts),
            [Piece(ALL_TILES, row, identity())],
            alone=alone,
        )


def input_phases(port: Port, placement: Placement, areas: Areas) -> list[Phase]:
    """Bring an input to the tiles."""
    size = input_bytes(port)
    if port.image.is_vector:
        base = placement.copies[port.image.index].base
        return [_receive(port, [_Span(0, size, tuple(TILES))], base, areas, size)]
    storage = placement.parts[port.image.index]
    flat = placement.flats[port.image.index]
    passes = flat_passes(storage)
    if passes == 1:
        rounds = [[(place, own) for place, own in enumerate(storage.rows.own)]]
    else:
        # In the order in which the host sends them: rows of tiles one after another.
        rounds = [
            [(place, part)]
            for place, own in enumerate(storage.rows.own)
            for part in pieces_of(own, passes)
        ]
    phases: list[Phase] = []
    for rows in rounds:
        filled = [(place, own) for place, own in rows if length(own)]
        if not filled:
            continue
        spans = [_span(storage, place, own) for place, own in filled]
        first = 0 if phases else size
        phases.append(_receive(port, spans, flat, areas, first, chip.GRID_ROWS * passes))
        phases.append(_own_pixels(port, storage, flat, filled, areas))
    return phases


@dataclass(frozen=True)
class _Span:
    """Bytes of an input, whole units, for a set of tiles."""

    first: int
    end: int
    tiles: tuple[int, ...]


def _span(storage: Storage, place: int, rows: Interval) -> _Span:
    row_bytes = storage.image.width * storage.image.channels
    tiles = tuple(tile for tile in TILES if row_of(tile) == place)
    first = rows[0] * row_bytes // UNIT * UNIT
    return _Span(first, round_up(rows[1] * row_bytes, UNIT), tiles)


def _receive(
    port: Port,
    spans: Sequence[_Span],
    base: int,
    areas: Areas,
    requested: int,
    twice: int = 0,
    offset: int = 0,
) -> Phase:
    """Send bytes of the input to tiles; ``requested`` are those that the host is asked for now.

    ``twice`` are units that are sent in two passes. What was asked for begins at byte ``offset``.
    """

    longest = max(span.end - span.first for span in spans)
    row, alone = areas.reuse(-(-longest // chip.ROW_BYTES))

    def emit(program: Assembler) -> None:
        if requested:
            request_input(program, port.name, requested, twice, offset)
        takes: dict[int, Values] = {}
        spreads: dict[int, Values] = {}
        for span in spans:
            words = (span.end - span.first) // WORD_BYTES
            rows = -(-words // chip.ROW_WORDS)
            for tile in span.tiles:
                takes[tile] = merged(
                    walk("RingConsumerA", "wide_write", row, [(rows, 1)]), signal()
                )
                arrived = Watcher(TileFlag.RING_BUS_READ_A, depth=0, expected=1)
                spreads[tile] = merged(
                    walk("WideToNarrow", "wide_read", row, [(rows, 1)]),
                    walk("WideToNarrow", "narrow_write", base // WORD_BYTES, [(words, 1)]),
                    wait("WideToNarrow", arrived),
                    {"row_loop": 1},
                )
        write(program, "RingConsumerA", takes)
        write(program, "WideToNarrow", spreads)
        for span in spans:
            unit = (span.first - offset) // UNIT
            popped = Watcher(ScalarFlag.AV_POP, depth=0, expected=wrapped(unit + 1))
            count = (span.end - span.first) // UNIT
            program.emit(
                "RingInfeed",
                through_buffer("RingInfeed", unit, count, chip.ACTIVATION_UNITS),
                signal(),
                wait("RingInfeed", popped),
                fifo=InfeedSource.ACTIVATIONS,
                targets=tile_set(span.tiles),
                row_words=chip.ROW_WORDS - 1,
                sync_increment=1,
            )

    return Phase(
        NO_OPERATION, f"input {port.name}", emit, uses_ring=True, alone=alone, receives=True
    )


def _own_pixels(
    port: Port,
    storage: Storage,
    flat: int,
    filled: Sequence[tuple[int, Interval]],
    areas: Areas,
) -> Phase:
    """Give each tile its own pixels, of those of its row of tiles that have come."""
    image = port.image
    row, alone = areas.take(1)
    last = (image.channels - 1) % GROUP + 1
    sums = replace(copying(unchanged(image), image, image.pitch // GROUP, row), last_lanes=last)
    parts = {}
    for place, (top, end) in filled:
        begin = _span(storage, place, (top, end)).first
        for tile in TILES:
            left, right = storage.own(tile)[1]
            if row_of(tile) != place or right <= left:
                continue
            first = (top * image.width + left) * image.channels - begin
            parts[tile] = Part(
                flat + first,
                storage.address(tile, top, left),
                end - top,
                right - left,
                [],
                (image.channels, image.width * image.channels),
                (image.pitch, storage.row_pitch),
            )
    return Phase(
        NO_OPERATION,
        f"pixels of {port.name}",
        emitting(sums, parts),
        [Piece(ALL_TILES, row, identity())],
        alone=alone,
    )


# --- outputs ------------------------------------------------------------------------------------


def output_shares(port: Port, placement: Placement) -> list[Share]:
    """What each tile sends of an output: nothing of its own pixels is sent twice."""
    storage = placement.of(port.image)
    tiles = [0] if storage.is_whole else [tile for tile in TILES if storage.own_pixels(tile)]
    shares = []
    for tile in tiles:
        (top, end), (left, right) = storage.own(tile)
        words = (right - left) * port.image.pitch // WORD_BYTES
        loops = [(words, 1), (end - top, storage.row_pitch // WORD_BYTES)]
        shares.append(Share(tile, storage.word(tile, top, left), loops))
    return shares


def share_bytes(share: Share) -> int:
    """Bytes that leave the chip for a share."""
    return round_up(share.words * WORD_BYTES, UNIT)


def output_phase(port: Port, placement: Placement) -> Phase:
    """Send an output to the host, tile after tile."""
    shares = output_shares(port, placement)
    size = sum(map(share_bytes, shares))

    def emit(program: Assembler) -> None:
        pack(program, shares)
        program.transfer(
            Transfer(
                Description.BASE_ADDRESS_OUTPUT_ACTIVATION, port.name, size, DescriptorTag.OUTPUT
            )
        )
        for share in shares:
            program.emit(
                "RingOutfeed",
                walk("RingOutfeed", "buffer", 0, [(share_bytes(share) // UNIT, 0)]),
                row_words=chip.ROW_WORDS - 1,
                to_host=1,
            )
            send(program, share, OUTFEED)

    return Phase(NO_OPERATION, f"output {port.name}", emit, uses_ring=True)
