"""Tensors that are spread over the tiles as the compiler does it are put together again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from darwinn_sim import chip
from darwinn_sim.units import observation
from darwinn_testbench.layers.results import Bytes, Pass, Shape, readings, results
from hypothesis import given
from hypothesis import strategies as st
from layer_programs import WORD, layer, one_pass_words, program, spread


def one_pass(parts: dict[int, Bytes], generator: np.random.Generator, number: int = 0) -> Pass:
    writes = [2 * len(parts.get(tile, ())) for tile in range(chip.TILES)]
    whole, executions = results(program(writes), layer(number), one_pass_words(parts, generator))
    assert executions == (whole,)
    return whole


def joined(parts: Sequence[Pass], shape: Shape) -> list[Bytes]:
    """The tensors that ``parts`` can be, by each reading."""
    tensors = []
    for found in readings(parts, shape):
        tensor = np.zeros(shape, np.uint8)
        for piece in found:
            piece.cut(tensor)[:] = piece.data
        tensors.append(tensor)
    return tensors


bands = st.lists(st.integers(0, 3), min_size=4, max_size=4).filter(any)
seeds = st.integers(0, 2**32)


@given(bands, bands, st.integers(1, 9), seeds)
def test_images_on_the_grid(
    heights: list[int], widths: list[int], channels: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    image = generator.integers(0, 256, (sum(heights), sum(widths), channels), np.uint8)
    part = one_pass(spread(image, heights, widths), generator)
    shape = (sum(heights), sum(widths), channels)
    if shape[0] * shape[1] > 1:
        (found,) = joined([part], shape)
        np.testing.assert_array_equal(found, image)
    assert not joined([part], (shape[0] + 1, shape[1], channels))
    assert not joined([part], (shape[0], shape[1], channels + 4))


@given(st.integers(1, 200), st.integers(1, 16), seeds)
def test_one_position_is_spread_by_channels(channels: int, tiles: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    vector = generator.integers(0, 256, channels, np.uint8)
    padded = np.resize(vector, -(-channels // WORD) * WORD)
    each = -(-len(padded) // (WORD * tiles)) * WORD
    parts = {
        tile: padded[tile * each : (tile + 1) * each].reshape(-1, WORD)
        for tile in range(tiles)
        if tile * each < len(padded)
    }
    shape = (1, 1, channels)
    (found,) = joined([one_pass(parts, generator)], shape)
    np.testing.assert_array_equal(found[0, 0], vector)


@given(bands, bands, st.integers(0, 2), st.booleans(), seeds)
def test_two_bands_may_overlap(
    heights: list[int], widths: list[int], overlap: int, columns: bool, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    extent = sum(heights)
    overlap = min(overlap, extent - 1)
    size = 2 * extent - overlap
    image = generator.integers(0, 256, (size, sum(widths), 5), np.uint8)
    halves = image[:extent], image[size - extent :]
    shape: Shape = (size, sum(widths), 5)
    if columns:
        image = image.transpose(1, 0, 2)
        shape = (shape[1], shape[0], 5)
        parts = [spread(each.transpose(1, 0, 2), widths, heights) for each in halves]
    else:
        parts = [spread(each, heights, widths) for each in halves]
    found = joined([one_pass(each, generator, k) for k, each in enumerate(parts)], shape)
    assert 1 <= len(found) <= 2
    assert any(np.array_equal(each, image) for each in found)


def test_more_than_two_bands_must_fit_exactly() -> None:
    generator = np.random.default_rng(1)
    image = generator.integers(0, 256, (6, 4, 8), np.uint8)
    parts = [
        one_pass(spread(image[k : k + 2], [1, 1, 0, 0], [1, 1, 1, 1]), generator) for k in (0, 2, 4)
    ]
    (found,) = joined(parts, (6, 4, 8))
    np.testing.assert_array_equal(found, image)
    assert not joined(parts, (5, 4, 8))


def test_bands_of_channels() -> None:
    generator = np.random.default_rng(2)
    vector = generator.integers(0, 256, 120, np.uint8)
    parts = [
        one_pass({0: part[:32].reshape(-1, WORD), 1: part[32:].reshape(-1, WORD)}, generator)
        for part in np.split(vector, 3)
    ]
    (found,) = joined(parts, (1, 1, 120))
    np.testing.assert_array_equal(found[0, 0], vector)
    assert not joined(parts, (1, 1, 116))
    assert not joined(parts, (1, 1, 124))


def test_executions_follow_each_other() -> None:
    """A loop of the scalar core executes a layer once for each position."""
    generator = np.random.default_rng(3)
    sequence = generator.integers(0, 256, (7, 12), np.uint8)
    taps = [one_pass_words({5: row.reshape(-1, WORD)}, generator) for row in sequence]
    for tap in taps:
        tap["address"] = np.unique(tap["address"], return_inverse=True)[1] * WORD
    whole, executions = results(program([6] * chip.TILES), layer(), np.concatenate(taps))
    assert len(executions) == 7
    (found,) = joined(executions, (1, 7, 12))
    np.testing.assert_array_equal(found[0], sequence)
    (last,) = joined([whole], (1, 1, 12))
    np.testing.assert_array_equal(last[0, 0], sequence[-1])


def test_bytes_beyond_the_last_lane_are_dropped() -> None:
    tap = observation.TappedWord.zeros(2)
    tap["address"], tap["word"], tap["count"] = [0, 4], [0x04030201, 0x0605], [4, 2]
    whole, _ = results(program([2] * chip.TILES), layer(), tap)
    assert whole.channels.tolist() == [1, 2, 3, 4, 5, 6]
