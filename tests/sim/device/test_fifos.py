"""Byte FIFOs of the chip, which are rings, against plain queues; what is left in any FIFO."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from darwinn_sim import chip
from darwinn_sim.device.run import ProgramRun, _append, _take_all
from darwinn_sim.kernel import state
from darwinn_sim.machine.diagnosis import left_texts, tokens_text
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

SIZE = chip.HOST_FIFO_BYTES
COUNTS = st.one_of(st.integers(0, 9), st.sampled_from([SIZE // 2, SIZE - 3, SIZE]))


@settings(max_examples=25)
@given(
    st.integers(0, SIZE - 1),
    st.lists(st.tuples(COUNTS, st.sampled_from([None, 0, 1, 2]), st.booleans()), max_size=6),
)
def test_bytes_come_out_as_they_went_in(
    head: int, operations: list[tuple[int, int | None, bool]]
) -> None:
    core: Any = state.new_core()[0]
    fifo, slow = core["output"], deque[tuple[int, bool]]()
    fifo["head"] = head
    random = np.random.default_rng(head)
    for count, known, empty in operations:
        count = min(count, SIZE - len(slow))
        data = random.integers(0, 256, count, np.uint8)
        written = None if known is None else np.arange(count) % 3 < known
        _append(fifo, data, written)
        which = [True] * count if written is None else written.tolist()
        slow.extend(zip(data.tolist(), which, strict=True))
        assert int(fifo["length"]) == len(slow)
        places = (int(fifo["head"]) + np.arange(len(slow))) % SIZE
        assert fifo["written"][places].tolist() == [int(flag) for _, flag in slow]
        if empty:
            octets, flags = _take_all(fifo)
            assert list(zip(octets.tolist(), flags.tolist(), strict=True)) == list(slow)
            slow.clear()
            assert int(fifo["length"]) == 0
            assert 0 <= int(fifo["head"]) < SIZE


@given(
    st.lists(st.integers(0, 1), min_size=2, max_size=2),
    st.integers(0, 2),
    st.sets(st.tuples(st.integers(0, 15), st.integers(0, 1)), max_size=3),
    st.sets(st.tuples(st.integers(0, 15), st.integers(0, 3)), max_size=3),
)
def test_what_is_left_is_told(
    octets: list[int], outfeed: int, rows: set[tuple[int, int]], words: set[tuple[int, int]]
) -> None:
    by_row, by_word = np.zeros((16, 2), np.int64), np.zeros((16, 4), np.int64)
    for tile, channel in rows:
        by_row[tile, channel] = 3
    for tile, link in words:
        by_word[tile, link] = 4
    expected = [
        f"{count} bytes of input stream {name}"
        for name, count in zip(("parameters", "activations"), octets, strict=True)
        if count
    ]
    expected += [f"{outfeed} rows of the ring for the outfeed"] if outfeed else []
    for tile in range(16):
        expected += [
            f"3 rows of the ring for tile {tile}, channel {'AB'[channel]}"
            for channel in range(2)
            if (tile, channel) in rows
        ]
        expected += [
            f"4 words of the mesh for tile {tile}, link {link}"
            for link in range(4)
            if (tile, link) in words
        ]
    found = left_texts(np.array(octets), outfeed, by_row, by_word)
    assert found == tuple(f"{each} are left: no instruction takes them" for each in expected)


@given(st.sampled_from([17, 18]), st.integers(0, 3 << 16), st.integers(0, 0xFFFF))
def test_tokens_are_counted_modulo_16_bits(flag: int, tokens: int, awaited: int) -> None:
    value = tokens % 65536
    name = f"ring_producer_{'ab'[flag - 17]}"
    passed = ", which has been passed" if value > awaited else ""
    expected = f"{name} (flag {flag}) is {value}, awaited at {awaited}{passed}"
    assert tokens_text(flag, tokens, awaited) == expected


@pytest.mark.parametrize("size", [1, 64, (1 << 20) - 1, 1 << 20, (1 << 21) + 5])
@pytest.mark.parametrize("tag", [1, 2, 3, 4])
def test_without_tiles_descriptors_are_served_in_pieces(tag: int, size: int) -> None:
    """What they bring is taken, and what they ask for is drawn: any byte."""
    pulled: list[tuple[int, int]] = []
    pushed: list[NDArray[np.uint8]] = []
    made: Any = SimpleNamespace(
        host=SimpleNamespace(pull=lambda *each: pulled.append(each), push=pushed.append),
        device=SimpleNamespace(random=np.random.default_rng(7)),
    )
    ProgramRun._move(made, tag, size)
    pieces = [min(1 << 20, size - begin) for begin in range(0, size, 1 << 20)]
    assert pulled == ([(tag, piece) for piece in pieces] if tag in (1, 2) else [])
    assert [len(each) for each in pushed] == (pieces if tag == 3 else [])
    for each in pushed:
        assert each.dtype == np.uint8
        assert len(each) < 4096 or set(np.unique(each).tolist()) == set(range(256))
