"""What a tensor instruction takes from its memories, against loops over lanes and products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from darwinn_sim import chip
from darwinn_sim.analysis import operands
from darwinn_sim.analysis.operands import PARAMETER_MARK, Group, Taken
from darwinn_sim.isa.builder import build, frame, traversal
from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.machine.lowering import lower
from darwinn_sim.units import tensor_cells
from darwinn_sim.units.tensor_records import Parameters
from hypothesis import given
from hypothesis import strategies as st
from slow_model import tensor_unit as slow
from slow_model.traversal import walk
from stimulus import constrained_random
from tensor_stimulus import instructions

MAC, INTERPOLATE = int(tensor_cells.MAC), int(tensor_cells.INTERPOLATE)
SUM = next(code for code in range(64) if code not in (MAC, INTERPOLATE))
GRANULES = 4 * chip.WIDE_ROWS
BRING_ROWS = (
    TileFlag.WIDE_TO_SCALING,
    TileFlag.NARROW_TO_WIDE_WRITE,
    TileFlag.RING_BUS_READ_A,
    TileFlag.RING_BUS_READ_B,
)
WORDS = st.integers(0, 0xFFFFFFFF)


def instruction(opcode: int, **fields: int) -> Parameters:
    made = Parameters.zeros(1)[0]
    made["opcode"] = opcode
    for name, value in fields.items():
        made[name] = value
    return made


@given(
    st.sampled_from((MAC, SUM)),
    st.booleans(),
    st.integers(1, 4),
    st.lists(st.integers(0, GRANULES - 8), max_size=6),
    st.integers(1, chip.LANES),
)
def test_parameters_are_whole_planes_of_rows(
    opcode: int, wide: bool, products: int, granules: list[int], lanes: int
) -> None:
    """Granule g is byte plane g % 4 of row g / 4; each lane has a word of a row.

    A product takes a plane, or two of 16 bits. Without products, what stands in the middle of a
    word is one value; at its beginning as many are taken as there are products.
    """
    expected = set()
    for granule in granules:
        of_one = 2 if wide else 1
        count = of_one if opcode != MAC and granule % 4 else of_one * products
        for plane in range(granule, granule + count):
            for lane in range(lanes):
                expected.add(chip.ROW_BYTES * (plane // 4) + 4 * lane + plane % 4)
    made = instruction(opcode, parameter_16bit=int(wide), products=products)
    found = operands._parameter_bytes(made, np.array(granules, np.int64), lanes)
    assert len(found) == len(set(found.tolist()))
    assert set(found.tolist()) == expected


@given(
    st.sampled_from((MAC, SUM)),
    st.booleans(),
    st.lists(st.one_of(st.integers(-2, 2), st.integers(chip.WIDE_ROWS - 2, chip.WIDE_ROWS + 2))),
    st.integers(1, chip.LANES),
)
def test_zero_points_are_words_of_rows_that_there_are(
    opcode: int, loads: bool, rows: list[int], lanes: int
) -> None:
    there = {row for row in rows if row in range(chip.WIDE_ROWS)} if opcode == MAC and loads else ()
    expected = {
        chip.ROW_BYTES * row + 4 * lane + k
        for row in there
        for lane in range(lanes)
        for k in range(4)
    }
    made = instruction(opcode, load_parameter_zero_point=int(loads))
    found = operands._zero_point_bytes(made, np.array(rows, np.int64), lanes)
    assert found.tolist() == sorted(expected)


@given(
    st.sampled_from((MAC, SUM)),
    st.integers(1, 4),
    st.integers(-6, 2),
    st.integers(-2, 6),
)
def test_parameters_end_with_their_memory(
    opcode: int, products: int, below: int, above: int
) -> None:
    """What a damaged program takes beyond it is left out."""
    granules = np.array([below, GRANULES - 4 + above], np.int64)
    made = instruction(opcode, products=products)
    found = operands._parameter_bytes(made, granules, 1)
    taken = set()
    for granule in granules.tolist():
        count = 1 if opcode != MAC and granule % 4 else products
        taken |= {each for each in range(granule, granule + count) if 0 <= each < GRANULES}
    expected = {chip.ROW_BYTES * (each // 4) + each % 4 for each in taken}
    assert set(found.tolist()) == expected


@given(
    st.sampled_from((MAC, SUM, INTERPOLATE)),
    st.booleans(),
    st.integers(1, 4),
    st.integers(0, 63),
    st.lists(st.integers(0, chip.NARROW_ADDRESS_BYTES - 1), max_size=6),
)
def test_operands_are_as_many_bytes_as_are_multiplied(
    opcode: int, wide: bool, products: int, block_lanes: int, addresses: list[int]
) -> None:
    """They go on at the beginning of narrow memory, as its addresses do."""
    width = {MAC: products * (2 if wide else 1), INTERPOLATE: block_lanes + 1, SUM: 0}[opcode]
    expected = {
        (address + k) & tensor_cells.NARROW_MASK for address in addresses for k in range(width)
    }
    made = instruction(
        opcode, activation_16bit=int(wide), products=products, block_lanes=block_lanes
    )
    found = operands._operand_bytes(made, np.array(addresses, np.int64))
    assert found.tolist() == sorted(expected)


@given(st.lists(st.tuples(st.sampled_from(TileFlag), st.integers(0, 7)), max_size=6))
def test_rows_are_awaited_by_the_flags_of_those_that_bring_them(
    watched: list[tuple[TileFlag, int]],
) -> None:
    made = Parameters.zeros(1)[0]
    made["watchers"]["count"] = len(watched)
    for k, (flag, depth) in enumerate(watched):
        made["watchers"]["flag"][k], made["watchers"]["depth"][k] = flag, depth
    # What a watcher has that does not count is not looked at.
    made["watchers"]["flag"][len(watched) :] = TileFlag.RING_BUS_READ_A
    expected = {depth for flag, depth in watched if flag in BRING_ROWS}
    assert operands._arrival_depths(made) == sum(1 << depth for depth in expected)


@given(st.sets(st.integers(0, 63), max_size=20), st.lists(WORDS, min_size=16, max_size=16))
def test_bytes_that_are_not_taken_are_zero(taken: set[int], words: list[int]) -> None:
    memory = np.array(words, np.uint32)
    found = Taken.of(np.array(sorted(taken), np.int64))
    expected: dict[int, tuple[int, int]] = {}
    for place in sorted(taken):
        word = place // 4
        whole = words[word] >> 24 == PARAMETER_MARK
        mask = 0xFFFFFFFF if whole else expected.get(word, (0, 0))[1] | 0xFF << 8 * (place % 4)
        expected[word] = words[word] & mask, mask
    assert found.words.tolist() == list(expected)
    assert found.take(memory).tolist() == [value for value, _ in expected.values()]


def test_nothing_is_taken_from_nowhere() -> None:
    found = Taken.of(operands.no_places())
    assert found.words.size == found.masks.size == 0
    assert found.take(np.ones(4, np.uint32)).size == 0


@given(st.lists(WORDS, min_size=4, max_size=4), st.lists(st.integers(0, 15), max_size=9))
def test_what_is_made_is_neither_zero_nor_a_parameter(
    words: list[int], addresses: list[int]
) -> None:
    narrow = np.array(words, np.uint32)
    made = Group(np.array(addresses, np.int64)).made(narrow)
    assert made.tolist() == [
        words[place // 4] >> 8 * (place % 4) & 0xFF != 0
        and words[place // 4] >> 24 != PARAMETER_MARK
        for place in addresses
    ]


@pytest.mark.parametrize("size", [10, 1 << 12])
@given(values=st.lists(st.integers(0, 9), max_size=40))
def test_addresses_come_once_and_in_order(size: int, values: list[int]) -> None:
    """Few of many, and many of few, which are found in another way."""
    found = operands._addresses(np.array(values, np.int64), size)
    assert found.tolist() == sorted(set(values))


@constrained_random(60)
@given(instructions("TensorMac"))
def test_operands_of_the_first_and_the_last_result(fields: dict[str, Any]) -> None:
    """Of all iterations that are reduced to it; with an alternate limit, of a run of sums."""
    tables = lower((frame(build([("TensorMac", fields)])),)).tables
    addresses = [element.address for element in walk(fields, "narrow_read")]
    limits, elements = fields["main_limit"], slow.main_elements(fields)
    kept = [k for k in range(8) if not fields["reduction_loops"] >> k & 1]
    for last in (False, True):
        if fields["main_alternate_loop"]:
            ends = [0, *(k + 1 for k, end in enumerate(slow.run_ends(fields)) if end)]
            expected = addresses[ends[-2] :] if last else addresses[: ends[1]]
        else:
            wanted = [limits[k] if last else 0 for k in kept]
            expected = [
                address
                for address, element in zip(addresses, elements, strict=True)
                if [element.index[k] for k in kept] == wanted
            ]
        assert operands.group_operands(tables, 0, last=last).tolist() == expected


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_operands_of_few_sums_with_a_shorter_last_one(runs: int) -> None:
    """Two iterations of each sum, but one of the last."""
    loops, alternate = [(2, 3), (runs, 50)], (1, 1)
    fields = {
        **traversal("TensorMac", "narrow_read", 100, loops, alternate=alternate),
        **traversal("TensorMac", "partial_sum", 0, [(2, 0), (runs, 4)], alternate=alternate),
        "main_limit": [1, runs - 1, *[0] * 6],
        "main_alternate_loop": 1,
        "reduction_loops": 1,
        "partial_sum_read": 3,
    }
    tables = lower((frame(build([("TensorMac", fields)])),)).tables
    first, last = (operands.group_operands(tables, 0, last=each).tolist() for each in (False, True))
    assert first == ([100] if runs == 1 else [100, 103])
    assert last == [100 + 50 * (runs - 1)]
