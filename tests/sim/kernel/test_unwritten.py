"""Bits that follow from written bits stay as they are, whatever the unwritten ones hold."""

from __future__ import annotations

import numpy as np
import pytest
from darwinn_sim.kernel import state
from darwinn_sim.kernel.unwritten import _flip, change
from darwinn_sim.units.scalar_alu import (
    compared_written,
    integer_alu,
    moved_bytes,
    result_written,
)
from hypothesis import given, settings
from hypothesis import strategies as st

WORDS = st.integers(0, 0xFFFFFFFF)
MASKS = st.one_of(WORDS, st.sampled_from((0, 0xFF, 0xFFFF00, 0x7FFFFFFF, 0xFFFFFFFF)))
INTEGER = {1: "add", 2: "subtract", 3: "and", 4: "or", 5: "xor", 6: "left", 7: "right", 15: "move"}


def slow(operation: int, a: int, b: int) -> int:
    """The operation on Python's integers."""
    shift = b % 32
    results = {1: a + b, 2: a - b, 3: a & b, 4: a | b, 5: a ^ b}
    results |= {6: a << shift, 7: a >> shift, 15: b}
    return results[operation] % (1 << 32)


def known(operation: int, a: int, a_written: int, b: int, b_written: int) -> int:
    return int(result_written(operation, *map(np.uint32, (a, a_written, b, b_written))))


@pytest.mark.parametrize("operation", INTEGER, ids=INTEGER.get)
@given(a=WORDS, b=WORDS, a_written=MASKS, b_written=MASKS, other_a=WORDS, other_b=WORDS)
def test_known_bits_do_not_depend_on_unwritten_ones(
    operation: int, a: int, b: int, a_written: int, b_written: int, other_a: int, other_b: int
) -> None:
    again_a = a & a_written | other_a & ~a_written
    again_b = b & b_written | other_b & ~b_written
    bits = known(operation, a, a_written, b, b_written)
    one, other = slow(operation, a, b), slow(operation, again_a, again_b)
    assert int(integer_alu(operation, np.uint32(a), np.uint32(b))) == one
    assert (one ^ other) & bits == 0


BYTES = st.sampled_from([sum(0xFF << 8 * k for k in range(4) if m >> k & 1) for m in range(16)])
"""Shadows of words some bytes of which are written."""
PARTS = st.one_of(WORDS, BYTES, st.sampled_from([8, 16, 24, 7, 9]))


@pytest.mark.parametrize("operation", INTEGER, ids=INTEGER.get)
@given(
    words=st.tuples(PARTS, PARTS),
    written=st.tuples(BYTES, BYTES),
    others=st.lists(st.tuples(WORDS, WORDS), min_size=8, max_size=8, unique=True),
)
def test_moved_bytes_are_those_of_an_operand(
    operation: int,
    words: tuple[int, int],
    written: tuple[int, int],
    others: list[tuple[int, int]],
) -> None:
    """Always of the same one, at the same place, whatever is in the bytes that are not written."""
    a, b = words
    moved = int(moved_bytes(operation, *map(np.uint32, (a, written[0], b, written[1]))))
    filled = [
        [word & mask | fill & ~mask for word, mask, fill in zip(words, written, each, strict=True)]
        for each in others
    ]
    results = [slow(operation, *each).to_bytes(4, "little") for each in filled]
    operands = [b"".join(word.to_bytes(4, "little") for word in each) for each in filled]
    for k in range(4):
        if moved >> 8 * k & 0xFF:
            assert moved >> 8 * k & 0xFF == 0xFF
            column = [each[k] for each in results]
            places = [[each[place] for each in operands] for place in range(8)]
            assert column in places or not any(column)


@pytest.mark.parametrize("operation", [3, 4, 5], ids=["and", "or", "xor"])
@given(a=WORDS, b=WORDS, a_written=MASKS, b_written=MASKS)
def test_unknown_bits_of_a_bitwise_operation_can_change(
    operation: int, a: int, b: int, a_written: int, b_written: int
) -> None:
    bits = known(operation, a, a_written, b, b_written)
    unwritten_a, unwritten_b = ~a_written & 0xFFFFFFFF, ~b_written & 0xFFFFFFFF
    results = [
        slow(operation, a ^ flip_a, b ^ flip_b)
        for flip_a in (0, unwritten_a)
        for flip_b in (0, unwritten_b)
    ]
    changes = 0
    for each in results[1:]:
        changes |= results[0] ^ each
    assert changes == ~bits & 0xFFFFFFFF


@pytest.mark.parametrize("operation", [9, 10, 12, 13])
@given(a=WORDS, b=WORDS, a_written=MASKS, b_written=MASKS, other_a=WORDS, other_b=WORDS)
def test_a_known_comparison_does_not_depend_on_unwritten_bits(
    operation: int, a: int, b: int, a_written: int, b_written: int, other_a: int, other_b: int
) -> None:
    words = map(np.uint32, (a, a_written, b, b_written))
    if compared_written(operation, *words):
        again_a = a & a_written | other_a & ~a_written
        again_b = b & b_written | other_b & ~b_written
        if operation < 11:
            assert (a == b) == (again_a == again_b)
        else:
            assert (a, b) == (again_a & 0xFFFFFFFF, again_b & 0xFFFFFFFF)


@given(st.binary(min_size=8, max_size=8), st.binary(min_size=8, max_size=8), st.integers(0, 99))
def test_what_nothing_has_written_is_another_byte(data: bytes, mask: bytes, seed: int) -> None:
    """Every bit of it, or some of each byte at random; what is written stays as it is."""
    before, written = np.frombuffer(data, np.uint8), np.frombuffer(mask, np.uint8)
    all_bits = before.copy()
    _flip(all_bits, written, None)
    assert (all_bits ^ before).tolist() == (~written).tolist()
    some = before.copy()
    _flip(some, written, np.random.default_rng(seed))
    assert not ((some ^ before) & written).any()
    assert (some != before)[written == 0].all()


OF_TILES = ("narrow", "wide", "scale_bias")
OF_THE_CORE = ("memory", "registers", "activations", "parameters")
TABLES = ("coefficient", "lower_bound")


@settings(max_examples=6)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_every_memory_changes_where_nothing_has_written_it(seed: int, some_bits: bool) -> None:
    """Tables are written as a whole."""
    random = np.random.default_rng(seed)
    tiles, core = state.Tile.zeros(3), state.Core.zeros(1)
    tiles["table_written"] = [0, 1, 0]
    # Shadows of scalar memory and registers have a bit for each bit, the others one for each byte.
    for memory, names in ((tiles, OF_TILES), (core, OF_THE_CORE)):
        for name in names:
            octets, shadow = (memory[each].view(np.uint8) for each in (name, f"{name}_written"))
            octets[:] = random.integers(0, 256, octets.shape)
            shadow[:] = random.integers(0, 2, shadow.shape)
            if name in ("memory", "registers"):
                shadow *= np.uint8(0xFF)
    before = tiles.copy(), core.copy()
    change(tiles, core, random if some_bits else None)
    for old, new, names in ((before[0], tiles, OF_TILES), (before[1], core, OF_THE_CORE)):
        for name in names:
            was, now = (each[name].view(np.uint8) for each in (old, new))
            written = new[f"{name}_written"].view(np.uint8) != 0
            assert np.array_equal(was != now, ~written), name
    for name in TABLES:
        same = before[0][name] == tiles[name]
        assert [row.any() for row in same] == [False, True, False] and same[1].all()
