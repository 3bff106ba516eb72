"""What a tensor instruction reads, byte by byte, and the marks that it leaves as results.

A word of narrow or wide memory whose highest byte is 0xFF is one of parameters, and read whole: the
rest of it is its place. Of other words each byte is a mark. Those of the second half are told
apart by another tile, which has a 1 in the place of each of their bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from slow_model.memory import Tile
from slow_model.sync import Watchers
from slow_model.tensor_unit import (
    INTERPOLATE,
    MAC,
    Fields,
    is_late,
    lanes,
    main_elements,
    output_bytes,
    reduction_edges,
    run_ends,
    scale_half,
    tap_offset,
    words_of,
    working,
    write_word,
)
from slow_model.traversal import Element, walk

PARAMETER = 0xFF
SECOND_HALF = 256


@dataclass
class Reads:
    """Marks and places of parameters of a memory."""

    marks: set[int] = field(default_factory=set)
    places: set[int] = field(default_factory=set)

    def byte(self, word: bytes, halves: bytes, k: int) -> None:
        """Byte ``k`` of a word is read."""
        if word[3] == PARAMETER:
            self.places.add(int.from_bytes(word[:3], "little"))
        else:
            self.marks.add(word[k] + SECOND_HALF * halves[k])


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


def halves_of(record: Any) -> Tile:
    """The tile that tells marks of the second half apart, for a record of the engine's tile."""
    kept = {name: record[name] for name in ("number", "flags", "coefficient", "lower_bound")}
    second = {
        name: np.array(record[f"{name}_written"].view(np.uint8) == 0)
        for name in ("narrow", "wide", "scale_bias")
    }
    return Tile(kept | second)


def run(tile: Tile, halves: Tile, operation: str, fields: Fields, mark: int) -> Noted:
    """Execute one instruction, as far as watchers let it: each result is the mark in each byte."""
    noted = Noted()
    watchers = Watchers(fields)
    reads, parameters = walk(fields, "narrow_read"), walk(fields, "parameter_read")
    writes, half_writes = (iter(walk(fields, "narrow_write")) for _ in range(2))
    zero_row = fields["zero_point_base"]
    ends = run_ends(fields)
    late: list[tuple[Tile, bytes, Element]] = []
    elements = main_elements(fields)
    for i, element in enumerate(elements):
        if not watchers.passes(tile.flags, element.begins):
            break
        noted.begun = True
        count = lanes(fields, element.index)
        address = reads[i % len(reads)].address
        if operation == INTERPOLATE:
            address += tap_offset(fields, element.index)
        for each in range(address, address + _width(operation, fields, count)):
            noted.activations.byte(_word(tile, each), _word(halves, each), each % 4)
        if operation == MAC and _is_made(_word(tile, address), address % 4):
            noted.made.add(i)
        for plane in _planes(operation, fields, parameters[i % len(parameters)].address):
            words, half_words = (each.row(plane // 4)[:count] for each in (tile, halves))
            for word, half_word in zip(words, half_words, strict=True):
                noted.parameters.byte(word, half_word, plane % 4)
        if operation == MAC and fields["load_parameter_zero_point"]:
            _whole(noted.parameters, tile.row(zero_row)[:count], halves.row(zero_row)[:count])
            if fields["output_block_loop"] in element.ends:
                zero_row = _next_zero_row(fields, zero_row)
        _write_all(fields, late)
        late = []
        keeps = fields["partial_sum_read"] in (2, 3)
        if ends[i] and (keeps or reduction_edges(fields, element.index)[1]):
            if operation != INTERPOLATE:
                _note_scales(noted, (tile, halves), fields, 64 * scale_half(watchers), count)
            results = (
                (tile, mark % SECOND_HALF, writes),
                (halves, mark // SECOND_HALF, half_writes),
            )
            for one, octet, places in results:
                given = [(one, *each) for each in _octets(fields, octet, count, places)]
                if is_late(operation, fields, elements, ends, i + 1, watchers, len(given)):
                    late.append(given.pop())
                _write_all(fields, given)
    return noted


def _next_zero_row(fields: Fields, row: int) -> int:
    row += fields["zero_point_stride"]
    return int(fields["zero_point_base"]) if row > fields["zero_point_limit"] else row


def _note_scales(
    noted: Noted, tiles: tuple[Tile, Tile], fields: Fields, row: int, count: int
) -> None:
    for name, first in (("use_scales", row), ("apply_bias", 128 + row)):
        if fields.get(name):
            _whole(noted.scales, *(_scales(each, first, count) for each in tiles))


def _octets(
    fields: Fields, octet: int, count: int, places: Iterator[Element]
) -> list[tuple[bytes, Element]]:
    result = int.from_bytes([octet] * output_bytes(fields))
    return words_of(fields, [result] * count, places)


def _write_all(fields: Fields, words: Iterable[tuple[Tile, bytes, Element]]) -> None:
    for tile, word, place in words:
        write_word(tile, fields, word, place)


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


def _whole(reads: Reads, words: Iterable[bytes], halves: Iterable[bytes]) -> None:
    for word, half_word in zip(words, halves, strict=True):
        for k in range(4):
            reads.byte(word, half_word, k)


def _scales(tile: Tile, first: int, count: int) -> list[bytes]:
    return [bytes(tile.scale_bias[4 * k : 4 * k + 4]) for k in range(first, first + count)]


def _word(tile: Tile, address: int) -> bytes:
    begin = address // 4 * 4
    return bytes(tile.narrow[begin : begin + 4])


def _is_made(word: bytes, k: int) -> bool:
    return word[3] != PARAMETER and word[k] != 0
