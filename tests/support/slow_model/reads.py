"""What a tensor instruction reads, byte by byte, and the marks that it leaves as results.

A word of narrow or wide memory whose highest byte is 0xFF is one of parameters, and read whole: the
rest of it is its place. Of other words each byte is a mark.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from slow_model.memory import Tile
from slow_model.sync import Watchers
from slow_model.tensor_unit import (
    INTERPOLATE,
    MAC,
    Fields,
    lanes,
    main_elements,
    output_bytes,
    reduction_edges,
    run_ends,
    scale_half,
    tap_offset,
    working,
    write_results,
)
from slow_model.traversal import walk

PARAMETER = 0xFF


@dataclass
class Reads:
    """Marks and places of parameters of a memory."""

    marks: set[int] = field(default_factory=set)
    places: set[int] = field(default_factory=set)

    def byte(self, word: bytes | bytearray, k: int) -> None:
        """Byte ``k`` of a word is read."""
        if word[3] == PARAMETER:
            self.places.add(int.from_bytes(word[:3], "little"))
        else:
            self.marks.add(word[k])


@dataclass
class Noted:
    """What is read, by memory; ``made``: iterations whose first activation somebody has made;
    ``begun``: any have been executed.
    """

    activations: Reads = field(default_factory=Reads)
    parameters: Reads = field(default_factory=Reads)
    scales: Reads = field(default_factory=Reads)
    made: set[int] = field(default_factory=set)
    begun: bool = False


def run(tile: Tile, operation: str, fields: Fields, mark: int) -> Noted:
    """Execute one instruction, as far as watchers let it: each result is the mark in each byte."""
    noted = Noted()
    watchers = Watchers(fields)
    reads, parameters = walk(fields, "narrow_read"), walk(fields, "parameter_read")
    writes = iter(walk(fields, "narrow_write"))
    zero_row = fields["zero_point_base"]
    ends = run_ends(fields)
    for i, element in enumerate(main_elements(fields)):
        if not watchers.passes(tile.flags, element.begins):
            break
        noted.begun = True
        count = lanes(fields, element.index)
        address = reads[i % len(reads)].address
        if operation == INTERPOLATE:
            address += tap_offset(fields, element.index)
        for each in range(address, address + _width(operation, fields, count)):
            noted.activations.byte(_word(tile, each), each % 4)
        if operation == MAC and _is_made(_word(tile, address), address % 4):
            noted.made.add(i)
        for plane in _planes(operation, fields, parameters[i % len(parameters)].address):
            for word in tile.row(plane // 4)[:count]:
                noted.parameters.byte(word, plane % 4)
        if operation == MAC and fields["load_parameter_zero_point"]:
            _whole(noted.parameters, tile.row(zero_row)[:count])
            if fields["output_block_loop"] in element.ends:
                zero_row += fields["zero_point_stride"]
                if zero_row > fields["zero_point_limit"]:
                    zero_row = fields["zero_point_base"]
        keeps = fields["partial_sum_read"] in (2, 3)
        if ends[i] and (keeps or reduction_edges(fields, element.index)[1]):
            half = 64 * scale_half(watchers)
            for name, first in (("use_scales", half), ("apply_bias", 128 + half)):
                if fields.get(name) and operation != INTERPOLATE:
                    words = [
                        tile.scale_bias[4 * k : 4 * k + 4] for k in range(first, first + count)
                    ]
                    _whole(noted.scales, words)
            size = output_bytes(fields)
            write_results(tile, fields, [int.from_bytes([mark] * size)] * count, writes)
    return noted


def _width(operation: str, fields: Fields, count: int) -> int:
    """Bytes of activations that an iteration reads: up to the last that is multiplied."""
    if operation == INTERPOLATE:
        return count
    if operation != MAC:
        return 0
    size = 1 + int(fields["activation_16bit"])
    return size * (1 + max(working(fields, fields["parameter_16bit"] + size - 1)))


def _planes(operation: str, fields: Fields, granule: int) -> range:
    """Bytes of each lane, through rows: up to the last that is taken."""
    if operation == INTERPOLATE:
        return range(0)
    wide = fields["parameter_16bit"]
    if operation == MAC:
        values = 1 + max(working(fields, wide + fields["activation_16bit"]))
    else:
        values = 1 if granule % 4 else 1 + max(working(fields, wide))
    return range(granule, granule + values * (1 + wide))


def _whole(reads: Reads, words: Iterable[bytes | bytearray]) -> None:
    for word in words:
        for k in range(4):
            reads.byte(word, k)


def _word(tile: Tile, address: int) -> bytes:
    begin = address // 4 * 4
    return bytes(tile.narrow[begin : begin + 4])


def _is_made(word: bytes, k: int) -> bool:
    return word[3] != PARAMETER and word[k] != 0
