"""Random workloads that reach all of host memory: pieces of it at any of its 2^40 bytes.

:mod:`programs` draws from 64 KiB, where transfers often touch. This module has the addresses, sizes
and numbers that do not fit there: beyond 32 bits, across a multiple of a power of two, up to the
last byte, more than 16 bits long, many descriptors before a fence, and many in all.
"""

from __future__ import annotations

from random import Random

import numpy as np
from darwinn_sim.isa.codes import DescriptorTag

from darwinn_rtl.dma.descriptor_model import (
    ADDRESS_BITS,
    READ_TAGS,
    Descriptor,
    DescriptorModel,
    Outcome,
    Pieces,
    Window,
)
from darwinn_rtl.dma.timing import Channel
from darwinn_rtl.dma.workload import STALL_CYCLES, Workload, WorkloadResult

SPACE = 1 << ADDRESS_BITS
"""Bytes of bus addresses."""

EDGES = (12, 16, 20, 24, 31, 32, 36, 39)
"""Programs aim at carries beyond these bits of an address."""

SIZES = (8, 12, 16)
"""Programs aim at sizes around these powers of two."""

LARGE = 20
"""The largest transfers are around this power of two."""

BEFORE_A_FENCE = (7, 8, 15, 16, 17, 31, 32, 33, 47, 48)
"""Numbers of pending descriptors when a fence comes: as many as the queues hold, and fewer."""

TAGS = (*READ_TAGS, DescriptorTag.OUTPUT)
"""Of descriptors that move bytes."""

_MARGIN = 64
"""Mapped bytes around a transfer, which must not change."""
_APART = 1 << 13


def far_workload(random: Random, *, transfers: int = 6, large: bool = False) -> Workload:
    """Transfers at any place that do not touch each other, with refused ones and fences between.

    With ``large`` one is longer than 2^20 bytes or just below.
    """
    size = random.choice((SPACE, SPACE + random.getrandbits(30), SPACE - random.getrandbits(20)))
    base = random.choice((0, 1 << 63, random.getrandbits(63), (1 << 64) - SPACE))
    window = Window(base, size)
    reach = min(size, SPACE)
    placed: list[tuple[int, int]] = []
    descriptors: list[Descriptor] = []
    for number in range(transfers):
        length = _near(random, LARGE) if large and number == 0 else _size(random)
        placed.append((_place(random, length, reach, placed), length))
        descriptors.append(Descriptor(random.choice(TAGS), base + placed[-1][0], length))
        if random.random() < 0.4:
            descriptors.append(_refused(random, window))
        if random.random() < 0.2:
            descriptors.append(Descriptor(fence=True))
    regions = {}
    for start, length in placed:
        first = max(0, start // 8 * 8 - _MARGIN)
        regions[first] = random.randbytes(min(reach, start + length + _MARGIN) - first)
    return Workload(descriptors, regions, _output(random, descriptors, window), window=window)


def fenced_workload(random: Random, before: int) -> Workload:
    """``before`` descriptors that cannot complete for a while, a fence, and one descriptor after
    it."""
    tags = [TAGS[k % len(TAGS)] for k in range(before)]
    random.shuffle(tags)
    descriptors = [Descriptor(tag, 8 * k, random.randint(1, 8)) for k, tag in enumerate(tags)]
    descriptors += [Descriptor(fence=True), Descriptor(READ_TAGS[0], 0, 8)]
    held = [Channel.STREAM_0, Channel.STREAM_1, Channel.STREAM_2, Channel.WRITE_RESPONSE]
    stalls = np.zeros(STALL_CYCLES, np.uint32)
    stalls[1 : 20 * before] = sum(1 << channel for channel in held)
    window = Window(0, 1 << 16)
    regions = {0: random.randbytes(8 * before)}
    return Workload(descriptors, regions, _output(random, descriptors, window), stalls, window)


def long_workload(random: Random, count: int) -> Workload:
    """``count`` short descriptors, of which the last one is refused. Reads and writes use different
    bytes, because nothing orders them."""
    window = Window(0, 1 << 16)
    descriptors = [_short(random, window.size // 2) for _ in range(count - 1)]
    descriptors.append(Descriptor(READ_TAGS[0], window.size, 8))
    regions = {0: random.randbytes(window.size)}
    return Workload(descriptors, regions, _output(random, descriptors, window), window=window)


def _short(random: Random, half: int) -> Descriptor:
    """Reads of the first half of memory, writes to the second, interrupts."""
    if random.random() < 0.1:
        return Descriptor(DescriptorTag.INTERRUPT_0 + random.randrange(4))
    tag, size = random.choice(TAGS), random.randint(1, 12)
    address = random.randrange(half - size)
    return Descriptor(tag, address + half * (tag == DescriptorTag.OUTPUT), size)


def endless_workload(random: Random) -> Workload:
    """A transfer of almost 4 GiB from within a word: with what precedes it, more than 32 bits."""
    return transfer_of((1 << 32) - random.randint(1, 7), random.choice(TAGS), random, offset=7)


def transfer_of(size: int, tag: DescriptorTag, random: Random, *, offset: int = 0) -> Workload:
    """A single transfer from any byte of a word on, of which the first 4 KiB are within reach."""
    start = random.getrandbits(36) << 3 | offset
    return Workload(
        [Descriptor(tag, start, size)],
        {start // 8 * 8: random.randbytes(1 << 12)},
        random.randbytes(1 << 12),
        window=Window(0, SPACE),
    )


def refused_workload(random: Random) -> Workload:
    """Bad descriptors of each kind, for each bit of an address or a size that makes them bad."""
    window, numbers = Window(1 << 63, 1 << 12), [1 << bit for bit in range(64)]
    bad = [Descriptor(address=number, fence=True) for number in numbers]
    bad += [Descriptor(size=number, fence=True) for number in numbers[:32]]
    for tag in range(DescriptorTag.INTERRUPT_0, DescriptorTag.INTERRUPT_0 + 4):
        bad += [Descriptor(tag, number) for number in numbers]
        bad += [Descriptor(tag, size=number) for number in numbers[:32]]
    for tag in TAGS:
        bad += [Descriptor(tag, window.base, number | 8) for number in numbers[12:32]]
        bad += [Descriptor(tag, window.base ^ number, 8) for number in numbers[12:]]
    random.shuffle(bad)
    return Workload(bad, {}, b"", window=window)


def window_workload(random: Random, window: Window) -> Workload:
    """Transfers up to both ends of a window, and a byte beyond each."""
    reach, tags = min(window.size, SPACE), random.sample(TAGS, 4)
    size = min(reach, random.randint(1, 9))
    places = ((0, size), (-1, 1), (reach - size, size), (reach, 1))
    descriptors = []
    for tag, (start, length) in zip(tags, places, strict=True):
        address = (window.base + start) % (1 << 64)
        descriptors += [Descriptor(tag, address, length), Descriptor(fence=True)]
    first = max(0, reach - size - _MARGIN) // 8 * 8
    regions = {0: random.randbytes(min(_MARGIN, first)), first: random.randbytes(reach - first)}
    regions = {start: data for start, data in regions.items() if data}
    return Workload(descriptors, regions, _output(random, descriptors, window), window=window)


def expected(workload: Workload, word_bytes: int) -> WorkloadResult:
    """The descriptor model's result for a workload without words that answer with an error."""
    memory = Pieces({start: bytearray(data) for start, data in workload.regions.items()})
    model, place = DescriptorModel(memory, workload.window, word_bytes), 0
    for descriptor in workload.descriptors:
        size = descriptor.size if _writes(descriptor, workload.window) else 0
        model.perform(descriptor, workload.output[place : place + size])
        place += size
    return WorkloadResult(
        {start: bytes(data) for start, data in memory.pieces.items()},
        {tag: bytes(data) for tag, data in model.streams.items()},
        registers=model.status() | model.error_descriptor(),
    )


def _near(random: Random, power: int) -> int:
    return (1 << power) + random.randint(-9, 9)


def _size(random: Random) -> int:
    return random.choice((random.randint(1, 64), _near(random, random.choice(SIZES))))


def _place(random: Random, size: int, reach: int, placed: list[tuple[int, int]]) -> int:
    """Where a transfer begins: anywhere, across an edge, or so that it ends with memory."""
    while True:
        edge = random.randrange(1, SPACE >> (power := random.choice(EDGES))) << power
        start = random.choice(
            (
                random.randrange(reach - size),
                edge - random.randint(0, min(size, 1 << 12)),
                edge - random.randint(0, min(size, 1 << 12)),
                reach - size,
            )
        )
        clear = all(start + size + _APART < at or at + n + _APART < start for at, n in placed)
        if clear and start + size <= reach:
            return start


def _refused(random: Random, window: Window) -> Descriptor:
    """A transfer with a byte out of reach."""
    end = window.base + min(window.size, SPACE)
    beyond = window.base + (1 << random.randint(ADDRESS_BITS, 63)) + random.getrandbits(20)
    candidates = [
        Descriptor(random.choice(TAGS), address % (1 << 64), size)
        for address, size in (
            (end - random.randint(0, 8), random.randint(9, 99)),
            (end - 1, 2),
            (end - 8, (1 << 32) - 1),
            (beyond, 8),
            (window.base - 1, 8),
        )
    ]
    faults = (Outcome.INBOUND_FAULT, Outcome.EXTENDED_FAULT)
    return random.choice([each for each in candidates if window.outcome(each) in faults])


def _writes(descriptor: Descriptor, window: Window) -> bool:
    output = descriptor.is_data and descriptor.tag == DescriptorTag.OUTPUT
    return output and window.outcome(descriptor) is Outcome.STARTED


def _output(random: Random, descriptors: list[Descriptor], window: Window) -> bytes:
    return random.randbytes(sum(each.size for each in descriptors if _writes(each, window)))
