"""Inputs from the host and outputs to it.

An input of several pixels comes as the host has it, pixel behind pixel without padding: each row of
tiles gets the bytes of its own rows, and a computation with weights of 1 gives every tile its own
pixels, in whole words. An output leaves the tiles one after another.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
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
    OUTFEED,
    request_input,
    through_buffer,
    tile_set,
    wrapped,
)
from darwinn_testbench.compiler.stages.compute import Part, Sums, compute
from darwinn_testbench.compiler.stages.operations import OutputStage, Port
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.ring import Share, pack, send
from darwinn_testbench.compiler.stages.rows import GROUP, identity, lane_rows
from darwinn_testbench.compiler.stages.storage import (
    TILES,
    Storage,
    row_of,
)
from darwinn_testbench.compiler.stages.writer import merged, write

UNIT = chip.ACTIVATION_UNIT_BYTES
NO_OPERATION = -1


def input_bytes(port: Port) -> int:
    """Bytes of an input as the host sends it."""
    image = port.image
    return round_up(image.pixels * image.channels, UNIT)


def input_phases(port: Port, placement: Placement, areas: Areas) -> list[Phase]:
    """Bring an input to the tiles."""
    size = input_bytes(port)
    if port.image.is_vector:
        base = placement.copies[port.image.index].base
        spans = dict.fromkeys(range(chip.GRID), (0, size))
        return [_receive(port, size, spans, base, areas)]
    storage = placement.parts[port.image.index]
    flat = placement.flats[port.image.index]
    row_bytes = port.image.width * port.image.channels
    spans = {}
    for place, (first, end) in enumerate(storage.rows.own):
        if end > first:
            begin = first * row_bytes // UNIT * UNIT
            spans[place] = (begin, round_up(end * row_bytes, UNIT))
    return [
        _receive(port, size, spans, flat, areas),
        _own_pixels(port, storage, flat, {k: first for k, (first, _) in spans.items()}, areas),
    ]


def _receive(
    port: Port, size: int, spans: Mapping[int, tuple[int, int]], base: int, areas: Areas
) -> Phase:
    """Send bytes of the input to rows of tiles: the same bytes to all at once, if they are."""
    targets: dict[tuple[int, int], list[int]] = {}
    for tile in TILES:
        if row_of(tile) in spans:
            targets.setdefault(spans[row_of(tile)], []).append(tile)

    def emit(program: Assembler) -> None:
        request_input(program, port.name, size)
        takes: dict[int, Values] = {}
        spreads: dict[int, Values] = {}
        for (first, end), tiles in targets.items():
            words = (end - first) // WORD_BYTES
            rows = -(-words // chip.ROW_WORDS)
            for tile in tiles:
                takes[tile] = merged(
                    walk("RingConsumerA", "wide_write", areas.spread, [(rows, 1)]), signal()
                )
                arrived = Watcher(TileFlag.RING_BUS_READ_A, depth=0, expected=1)
                spreads[tile] = merged(
                    walk("WideToNarrow", "wide_read", areas.spread, [(rows, 1)]),
                    walk("WideToNarrow", "narrow_write", base // WORD_BYTES, [(words, 1)]),
                    wait("WideToNarrow", arrived),
                    {"row_loop": 1},
                )
        write(program, "RingConsumerA", takes)
        write(program, "WideToNarrow", spreads)
        for (first, end), tiles in targets.items():
            unit = first // UNIT
            popped = Watcher(ScalarFlag.AV_POP, depth=0, expected=wrapped(unit + 1))
            program.emit(
                "RingInfeed",
                through_buffer("RingInfeed", unit, (end - first) // UNIT, chip.ACTIVATION_UNITS),
                signal(),
                wait("RingInfeed", popped),
                fifo=InfeedSource.ACTIVATIONS,
                targets=tile_set(tiles),
                row_words=chip.ROW_WORDS - 1,
                sync_increment=1,
            )

    return Phase(NO_OPERATION, f"input {port.name}", emit, uses_ring=True)


def _own_pixels(
    port: Port, storage: Storage, flat: int, begins: Mapping[int, int], areas: Areas
) -> Phase:
    """Give each tile its own pixels, of those of its row of tiles."""
    image = port.image
    zero = image.zero_point
    stage = OutputStage(
        np.ones(1, np.float32),
        np.zeros(1, np.int32),
        np.float32(-zero),
        np.float32(255 - zero),
        zero,
    )
    grouped = image.channels % GROUP == 0
    taps = 1 if grouped else image.pitch // GROUP
    if grouped:
        rows = [identity()]
    else:
        weights = np.zeros((image.pitch, taps, GROUP), np.uint8)
        channels = np.arange(image.channels)
        weights[channels, channels // GROUP, channels % GROUP] = 1
        rows = lane_rows(weights, 0, stage)
    row, alone = areas.take(sum(map(len, rows)))
    last = (image.pitch - 1) % chip.LANES + 1
    sums = Sums(
        stage,
        zero,
        0,
        taps,
        image.pitch // GROUP if grouped else len(rows),
        GROUP if grouped else min(chip.LANES, image.pitch),
        GROUP if grouped else last,
        GROUP if grouped else 0,
        row,
        0 if grouped else taps,
        [(taps, 1)],
    )
    parts = {}
    for tile in TILES:
        if not storage.own_pixels(tile):
            continue
        (top, end), (left, right) = storage.own(tile)
        first = (top * image.width + left) * image.channels - begins[row_of(tile)]
        parts[tile] = Part(
            flat + first,
            storage.address(tile, top, left),
            end - top,
            right - left,
            [(taps, GROUP)],
            (image.channels, image.width * image.channels),
            (image.pitch, storage.row_pitch),
        )
    pieces = []
    for block in rows:
        pieces.append(Piece(tile_set(TILES), row, block))
        row += len(block)
    return Phase(
        NO_OPERATION,
        f"pixels of {port.name}",
        lambda program: compute(program, sums, parts),
        pieces,
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


