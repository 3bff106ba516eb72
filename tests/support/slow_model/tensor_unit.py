"""Slow tensor unit: Python integers and NumPy float32 scalars (docs/chip-facts.md, "Numerics")."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from slow_model.memory import Tile
from slow_model.sync import Watchers, produce
from slow_model.traversal import Element, block_marks, indices, walk

Fields = Mapping[str, Any]
MAC, MAXIMUM, SUM, INTERPOLATE = "TensorMac", "TensorMax", "TensorSum", "TensorInterpolate"
SCALE_FLAG = 12
LOOPS = 8


def wrap(value: int) -> int:
    """The value of a 32-bit two's complement register."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def float32(value: Any) -> np.float32:
    """A float32 field, which tests give as a float or as bits."""
    if isinstance(value, int):
        return np.float32(struct.unpack("<f", struct.pack("<I", value))[0])
    return np.float32(value)


def main_elements(fields: Fields) -> list[Element]:
    """The iterations of the main loops."""
    loop, limit = fields["main_alternate_loop"], fields["main_alternate_limit"]
    elements = [Element(0, index=i) for i in indices(fields["main_limit"], loop, limit)]
    block_marks(elements)
    return elements


def lanes(fields: Fields, index: tuple[int, ...]) -> int:
    """Valid lanes: the last block has its own number."""
    loops = range(fields["output_block_loop"], LOOPS)
    block = [k for k in loops if not fields["reduction_loops"] >> k & 1]
    last = all(index[k] == fields["main_limit"][k] for k in block)
    return int(fields["last_block_lanes" if last else "block_lanes"]) + 1


def reduction_edges(fields: Fields, index: tuple[int, ...]) -> tuple[bool, bool]:
    """Whether an iteration is in the first, and in the last, pass of the reduction loops."""
    limits = list(fields["main_limit"])
    loop = fields["main_alternate_loop"]
    if loop and index[loop] == limits[loop]:
        limits[0] = fields["main_alternate_limit"]
    loops = [k for k in range(LOOPS) if fields["reduction_loops"] >> k & 1]
    return all(index[k] == 0 for k in loops), all(index[k] == limits[k] for k in loops)


def run_ends(fields: Fields) -> list[bool]:
    """For each iteration: sums are emitted after it, since the partial-sum address changes."""
    count = len(main_elements(fields))
    sums = [element.address for element in walk(fields, "partial_sum")]
    return [
        i == count - 1 or sums[i % len(sums)] != sums[(i + 1) % len(sums)] for i in range(count)
    ]


def output_lanes(fields: Fields) -> list[int]:
    """Lanes of every result that leaves the unit."""
    out = []
    for element, ends in zip(main_elements(fields), run_ends(fields), strict=True):
        keeps = fields["partial_sum_read"] in (2, 3)
        if ends and (keeps or reduction_edges(fields, element.index)[1]):
            out.append(lanes(fields, element.index))
    return out


def output_bytes(fields: Fields) -> int:
    """Bytes of a result."""
    return 2 if fields["function"] >> 2 & 1 else 1


def run(tile: Tile, operation: str, fields: Fields) -> bool:
    """Execute one instruction on ``tile``; False if a watcher holds it back, with work left."""
    watchers = Watchers(fields)
    reads, parameters = walk(fields, "narrow_read"), walk(fields, "parameter_read")
    sums, ends = walk(fields, "partial_sum"), run_ends(fields)
    writes = iter(walk(fields, "narrow_write"))
    zero_row = fields["zero_point_base"]
    accumulator: list[int] | None = None
    late: tuple[bytes, Element] | None = None
    elements = main_elements(fields)
    for i, element in enumerate(elements):
        if not watchers.passes(tile.flags, element.begins):
            return False
        count = lanes(fields, element.index)
        first, last = reduction_edges(fields, element.index)
        total = sums[i % len(sums)]
        if accumulator is None:
            accumulator = _begin(tile, operation, fields, total.address, again=not first)
        read, granule = reads[i % len(reads)].address, parameters[i % len(parameters)]
        for lane in range(count):
            terms = _terms(tile, operation, fields, read, granule.address, lane, zero_row, element)
            if operation == MAXIMUM:
                accumulator[lane] = max([accumulator[lane], *terms])
            else:
                accumulator[lane] = wrap(accumulator[lane] + sum(terms))
        if late is not None:
            write_word(tile, fields, *late)
            late = None
        tile.flags[1] += produce(fields, "parameter_read_producer", granule.ends)
        tile.flags[2] += produce(fields, "partial_sum_producer", total.ends)
        if ends[i]:
            if fields["partial_sum_read"] in (0, 1):
                _store(tile, total.address, accumulator[:count])
            if fields["partial_sum_read"] in (2, 3) or last:
                half = scale_half(watchers)
                results = [
                    output(tile, operation, fields, accumulator[lane], lane, half)
                    for lane in range(count)
                ]
                words = words_of(fields, results, writes)
                if is_late(operation, fields, elements, ends, i + 1, watchers, len(words)):
                    late = words.pop()
                for each in words:
                    write_word(tile, fields, *each)
            accumulator = None
        if fields["load_parameter_zero_point"] and fields["output_block_loop"] in element.ends:
            following = zero_row + fields["zero_point_stride"]
            wraps = following > fields["zero_point_limit"]
            zero_row = fields["zero_point_base"] if wraps else following
    assert next(writes, None) is None
    return True


def is_late(
    operation: str,
    fields: Fields,
    elements: list[Element],
    ends: list[bool],
    i: int,
    watchers: Watchers,
    words: int,
) -> bool:
    """The last of ``words`` of results is on its way while iteration ``i`` reads: that is a run of
    its own, which no watcher holds back, and whose sums leave if it waits for words before."""
    if operation != MAC or i == len(elements) or not ends[i]:
        return False
    if any(each["depth"] in elements[i].begins for each in watchers.watchers):
        return False
    leaves = fields["partial_sum_read"] in (2, 3) or reduction_edges(fields, elements[i].index)[1]
    return words == 1 or leaves


def _begin(tile: Tile, operation: str, fields: Fields, address: int, *, again: bool) -> list[int]:
    """Sums of all lanes before a run of them: what is in memory, or that of nothing."""
    if fields["partial_sum_read"] in (0, 2) or (fields["partial_sum_read"] == 1 and again):
        return [int.from_bytes(word, "little", signed=True) for word in tile.row(address >> 2)]
    return [0 if operation != MAXIMUM else -(1 << 30)] * 64


def _store(tile: Tile, address: int, sums: list[int]) -> None:
    tile.write_row(address >> 2, [total.to_bytes(4, "little", signed=True) for total in sums])


def _terms(
    tile: Tile,
    operation: str,
    fields: Fields,
    read: int,
    granule: int,
    lane: int,
    zero_row: int,
    element: Element,
) -> list[int]:
    """What one iteration adds to (or compares with) the sum of a lane."""
    if operation == INTERPOLATE:
        return [_tap(tile, fields, read, lane, element.index)]
    wide = fields["parameter_16bit"]
    if operation != MAC:
        made = [k for k in working(fields, wide) if granule % 4 == 0 or k == 0]
        zero = 0 if operation == MAXIMUM else fields["parameter_zero_point"]
        return [_parameter(tile, granule + (1 + wide) * k, lane, wide) - zero for k in made]
    zero = fields["parameter_zero_point"]
    if fields["load_parameter_zero_point"]:
        zero = int.from_bytes(tile.row(zero_row)[lane], "little", signed=True)
    terms = []
    for k in working(fields, wide + fields["activation_16bit"]):
        parameter = _parameter(tile, granule + (1 + wide) * k, lane, wide)
        terms.append(_activation(tile, fields, read, k) * (parameter - zero))
    return terms


def working(fields: Fields, wide_operands: int) -> list[int]:
    """Products of a step whose multipliers work: 1, 2 or 4 of each.

    Raises:
        ValueError: nobody knows what a product is of which a part works.
    """
    multipliers = 1 << wide_operands
    works = [not fields["mac_disable"] >> k & 1 for k in range(4)]
    groups = [works[k : k + multipliers] for k in range(0, 4, multipliers)]
    if any(len(set(group)) > 1 for group in groups):
        raise ValueError("mac_disable stills a part of the multipliers of a 16-bit product")
    return [k for k, group in enumerate(groups) if group[0]]


def products(fields: Fields) -> int:
    """Products of a step: four 8 x 8, two with one 16-bit operand, one with two."""
    return len(working(fields, fields["activation_16bit"] + fields["parameter_16bit"]))


def _parameter(tile: Tile, granule: int, lane: int, wide: int) -> int:
    low = tile.plane(granule, lane)
    return low | tile.plane(granule + 1, lane) << 8 if wide else low


def _activation(tile: Tile, fields: Fields, address: int, k: int) -> int:
    size = 2 if fields["activation_16bit"] else 1
    first = address + size * k
    value = int.from_bytes(tile.narrow[first : first + size], "little")
    return value - int(fields["activation_zero_point"])


def _tap(tile: Tile, fields: Fields, read: int, lane: int, index: tuple[int, ...]) -> int:
    """A byte times the weights of its column and its row; of the nearest pixel, the byte."""
    weight = 1
    for axis, tap in (("x", index[0]), ("y", index[1])):
        fraction = _position(fields, axis, index) % 128
        if not fields["apply_bias"]:
            weight *= fraction if tap else 128 - fraction
    return tile.narrow[read + tap_offset(fields, index) + lane] * weight


def tap_offset(fields: Fields, index: tuple[int, ...]) -> int:
    """Bytes from the traversal's address to the tap of an interpolation."""
    half = 64 if fields["apply_bias"] else 0
    return sum(
        (_position(fields, axis, index) + half) // 128 * int(fields[f"{axis}_pitch"])
        for axis in ("x", "y")
    )


def _position(fields: Fields, axis: str, index: tuple[int, ...]) -> int:
    """Where a tap is along an axis, in 128ths of a pixel."""
    return int(fields[f"{axis}_start"] + fields[f"{axis}_step"] * index[fields[f"{axis}_loop"]])


def scale_half(watchers: Watchers) -> int:
    """The half that the watcher of flag 12 has last waited for: parity of its block number."""
    for watcher in watchers.watchers:
        if watcher["flag"] == SCALE_FLAG:
            waited = watcher["iteration"] - 1
            return (watcher["expected"] + waited * watcher["stride"] - 1) % 2
    return 0


def _lane_word(tile: Tile, word: int) -> bytes:
    return bytes(tile.scale_bias[4 * word : 4 * word + 4])


def output(tile: Tile, operation: str, fields: Fields, total: int, lane: int, half: int) -> int:
    """One result: bias, scale, clip, function, rounding, offset, saturation."""
    bias = fields.get("immediate_bias", 0)
    if fields["apply_bias"] and operation != INTERPOLATE:
        bias = int.from_bytes(_lane_word(tile, 128 + 64 * half + lane), "little", signed=True)
    y = np.float32(max(-(1 << 31), min((1 << 31) - 1, total + bias)))
    scale = float32(fields["output_scale"])
    if fields["use_scales"]:
        scale = np.float32(struct.unpack("<f", _lane_word(tile, 64 * half + lane))[0]) * scale
    y = y * scale
    highest = 65535 if output_bytes(fields) == 2 else 255
    if operation == INTERPOLATE:
        return min(max(int(np.rint(y)), 0), highest)
    high, low = float32(fields["high_clip"]), float32(fields["low_clip"])
    y = max(min(y, high), low)
    if fields["function"] & 1:
        y = function(tile, fields, y)
    result = int(np.rint(y)) + int(fields["output_zero_point"])
    if np.isinf(high) and highest == 255:
        return result % 256
    return min(max(result, 0), highest)


def function(tile: Tile, fields: Fields, y: np.float32) -> np.float32:
    """The coefficient table, with range reduction x = m * 4^k and with symmetry."""
    x = abs(y) if fields["symmetric_function"] else y
    k = 0
    if fields["function"] >> 1 & 1 and 0 < x < np.inf:
        while float(x) / 4.0**k >= 4:
            k += 1
        while float(x) / 4.0**k < 1:
            k -= 1
    value = table(tile, np.float32(float(x) / 4.0**k)) * np.float32(2.0**-k)
    return -value if fields["odd_function"] and y < 0 else value


def table(tile: Tile, y: np.float32) -> np.float32:
    """Horner's rule in float32 with the coefficients of the segment that holds ``y``."""
    segment = sum(bound <= y for bound in tile.lower_bound)
    coefficients = tile.coefficient[5 * segment : 5 * segment + 5]
    value = coefficients[4]
    for coefficient in reversed(coefficients[:4]):
        value = value * y + coefficient
    return value


def words_of(
    fields: Fields, results: list[int], writes: Iterator[Element]
) -> list[tuple[bytes, Element]]:
    """Four bytes an access, each with its place; bytes beyond the last lane are 0."""
    size = output_bytes(fields)
    data = b"".join(result.to_bytes(size, "little") for result in results)
    parts = [data[first : first + 4].ljust(4, b"\0") for first in range(0, len(data), 4)]
    return [(part, next(writes)) for part in parts]


def write_word(tile: Tile, fields: Fields, word: bytes, place: Element) -> None:
    """Write a word to its place, and count it."""
    tile.narrow[place.address : place.address + 4] = word
    tile.flags[0] += produce(fields, "narrow_write_producer", place.ends)
