"""Slow ring bus: rows as lists of words, one sender at a time (docs/chip-facts.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slow_model.memory import Core, Tile
from slow_model.sync import Watchers, produce
from slow_model.traversal import walk

Row = list[bytes]
Fields = Mapping[str, Any]

UNIT_BYTES = {0: 64, 1: 8, 2: 4}
"""Bytes of an infeed's unit: parameters, activations, scalar memory."""

INFEED_FLAGS = {0: 3, 1: 2, 2: 4}
BUFFER_UNITS = {0: 2048, 1: 32768, 2: 4096}
OUTFEED_TARGET = 16


def pass_token(tiles: Mapping[int, Tile], channel: int) -> None:
    """A sender has finished its part: flag 17 or 18 of every tile."""
    for tile in tiles.values():
        tile.flags[17 + channel] += 1


def send(
    sender: Tile, tiles: Mapping[int, Tile], core: Core, fields: Fields, most: int
) -> tuple[list[Row], bool]:
    """Rows that a RingProducer sends, and whether it ends; ``most`` rows find a place."""
    watchers = Watchers(fields)
    channel = fields["consumer_b"]
    rows: list[Row] = []
    for element in walk(fields, "wide_read"):
        if len(rows) == most or not watchers.passes(sender.flags, element.begins):
            return rows, False
        rows.append(sender.row(element.address))
        sender.flags[16] += produce(fields, "row_producer", element.ends)
        if produce(fields, "token_producer", element.ends):
            pass_token(tiles, channel)
            core.flags[5 + channel] += 1
            if channel and fields["targets"] >> OUTFEED_TARGET & 1:
                core.flags[5] += 1
    return rows, True


def places(tile: Tile, fields: Fields) -> int:
    """Rows that a RingConsumer could write before a watcher holds it back."""
    watchers = Watchers(fields)
    elements = walk(fields, "wide_write")
    for count, element in enumerate(elements):
        if not watchers.passes(tile.flags, element.begins):
            return count
    return len(elements)


def consume(tile: Tile, fields: Fields, channel: int, rows: list[Row]) -> bool:
    """Write arriving rows to wide memory; True if the instruction ends."""
    watchers = Watchers(fields)
    arriving = iter(rows)
    for element in walk(fields, "wide_write"):
        if not watchers.passes(tile.flags, element.begins):
            return False
        row = next(arriving, None)
        if row is None:
            return False
        tile.write_row(element.address, row)
        if not element.prologue:
            tile.flags[14 + channel] += produce(fields, "producer", element.ends)
    return True


def infeed(core: Core, tiles: Mapping[int, Tile], fields: Fields) -> tuple[list[Row], bool]:
    """Rows that a RingInfeed closes, and whether it ends."""
    fifo = fields["fifo"]
    memory = {0: core.parameters, 1: core.activations, 2: core.memory}[fifo]
    size = UNIT_BYTES[fifo]
    watchers = Watchers(fields)
    rows: list[Row] = []
    row: Row = []
    elements = walk(fields, "buffer")
    for number, element in enumerate(elements):
        if not watchers.passes(core.flags, element.begins):
            return rows, False
        first = size * (element.address % BUFFER_UNITS[fifo])
        row += [bytes(memory[b : b + 4]) for b in range(first, first + size, 4)]
        if len(row) >= fields["row_words"] + 1 or number == len(elements) - 1:
            rows.append(row)
            row = []
        increment = fields["sync_increment"] * produce(fields, "producer", element.ends)
        core.flags[INFEED_FLAGS[fifo]] += increment
        if produce(fields, "token_producer", element.ends):
            pass_token(tiles, fields["consumer_b"])
    return rows, True


def outfeed(core: Core, fields: Fields, rows: list[Row]) -> bool:
    """Take the first units of each row; the rest of the last row is dropped. True if it ends."""
    watchers = Watchers(fields)
    row: Row = []
    for element in walk(fields, "buffer"):
        if not row:
            if not rows:
                return False
            row = list(rows[0])
        if not watchers.passes(core.flags, element.begins):
            return False
        if fields["to_host"]:
            core.output += row[0] + row[1]
            row = row[2:]
        else:
            address = 4 * (element.address % 4096)
            core.memory[address : address + 4] = row[0]
            row = row[1:]
        core.flags[7] += produce(fields, "producer", element.ends)
        if not row:
            rows.pop(0)
    if row:
        rows.pop(0)
    return True
