"""The timing model of the harness's DMA engine, against cycles worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from darwinn_rtl.dma.timing import Channel, DmaStep, predict


def test_a_word_is_read() -> None:
    # Offered in cycle 1, at the head in 2, in the stream's queue in 3, asked for in 4, on the bus
    # in 5; memory gives the word 4 later in 9, so it is on the bus in 10 and leaves in 11.
    timing = predict([DmaStep(0, 0, 8)], output_bytes=0)
    assert (timing.begins, timing.ends) == ([2], [11])
    burst = timing.bursts[0]
    assert (burst.decided, burst.accepted, burst.words) == (4, 5, (10,))


def test_a_word_is_written() -> None:
    # In the writer's queue in 3, decided in 4, address on the bus in 5, word in 6; memory answers 4
    # later in 10, and the answer is on the bus in 11.
    timing = predict([DmaStep(3, 0, 8)], output_bytes=8)
    assert (timing.begins, timing.ends) == ([2], [11])


def test_a_fence_waits_and_an_interrupt_follows_the_outputs() -> None:
    steps = [DmaStep(3, 0, 8), DmaStep(4), DmaStep(fence=True), DmaStep(0, 0, 8)]
    timing = predict(steps, output_bytes=8)
    assert timing.ends[1] == timing.ends[0] + 1
    assert timing.begins[2] == timing.ends[2] == timing.ends[1] + 1
    assert timing.begins[3] == timing.begins[2] + 1


def test_a_refused_descriptor_takes_one_cycle() -> None:
    timing = predict([DmaStep(1, 0, 0, refused=True), DmaStep(0, 0, 8)], output_bytes=0)
    assert timing.begins == [2, 3]
    assert timing.ends == [2, 12]


@pytest.mark.parametrize(
    ("address", "size", "words"),
    [(0, 128, [16]), (0, 129, [16, 1]), (7, 128, [16, 1]), (4088, 16, [1, 1]), (4095, 2, [1, 1])],
)
def test_bursts_end_at_the_limit_and_at_the_boundary(
    address: int, size: int, words: list[int]
) -> None:
    timing = predict([DmaStep(2, address, size)], output_bytes=0)
    assert [len(burst.words) for burst in timing.bursts] == words


def test_streams_take_turns() -> None:
    steps = [DmaStep(tag, 0, 512) for tag in (0, 1, 2)]
    timing = predict(steps, output_bytes=0)
    assert [burst.tag for burst in timing.bursts[:6]] == [0, 1, 2, 0, 1, 2]


def test_back_pressure_delays_what_it_holds() -> None:
    stalls = np.array([1 << Channel.STREAM_0] * 20 + [0], np.uint32)
    timing = predict([DmaStep(0, 0, 8)], output_bytes=0, stalls=stalls)
    assert timing.ends == [20]


@pytest.mark.parametrize("channel", [Channel.READ_DATA, Channel.STREAM_1])
def test_what_is_held_back_for_ever_is_refused(channel: Channel) -> None:
    stalls = np.array([1 << channel], np.uint32)
    with pytest.raises(ValueError, match=channel.name):
        predict([DmaStep(1, 0, 8)], output_bytes=0, stalls=stalls)


def test_missing_output_is_refused() -> None:
    with pytest.raises(ValueError, match="9 bytes of output"):
        predict([DmaStep(3, 0, 9)], output_bytes=8)
