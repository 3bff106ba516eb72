"""When the harness's DMA engine begins and completes each descriptor, to the cycle.

The engine is not stepped: every moment follows from earlier ones by a maximum and a sum (a word
leaves when it has arrived and the one before it has left; a burst is asked for when there is room).
Only two things need decisions in the order of time: the descriptor at the head of the queue, and
which stream's burst the read bus takes next. The cycle counts from the one before the first
descriptor is offered, as in ``harness_player.cpp``. Facts: docs/rtl-dma.md, section "Timing".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from darwinn_sim.isa.codes import DescriptorTag
from numpy.typing import NDArray

from darwinn_rtl.harness import HarnessDescription

READ_QUEUES = 3
"""Tags below it are read into a stream of their own."""


class Channel(IntEnum):
    """Channels that a back-pressure pattern can hold back; the value is the bit in its words."""

    READ_ADDRESS = 0
    READ_DATA = 1
    WRITE_ADDRESS = 2
    WRITE_DATA = 3
    WRITE_RESPONSE = 4
    STREAM_0 = 5
    STREAM_1 = 6
    STREAM_2 = 7
    OUTPUT = 8


class DmaStep(NamedTuple):
    """A descriptor as the engine sees it: ``address`` is a bus address, ``size`` in bytes.

    ``refused`` is set for a descriptor that the engine drops with an error.
    """

    tag: int = 0
    address: int = 0
    size: int = 0
    fence: bool = False
    refused: bool = False


class Burst(NamedTuple):
    """A burst on the bus, in cycles: when the engine decided on it, when memory took the address,
    when each word was on the bus (taken, for a write), and when the answer came (writes only)."""

    tag: int
    address: int
    decided: int
    accepted: int
    words: tuple[int, ...]
    answered: int = 0


@dataclass
class DmaTiming:
    """Cycles of each descriptor's beginning and completion, in the order of issue.

    A refused descriptor is completed when it begins. ``bursts`` are in the order of each bus,
    ``leaves`` holds for each read stream the cycles in which the unit takes a beat, ``offered``
    the first and last cycle in which each descriptor waits to be taken into the engine.
    """

    begins: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    bursts: list[Burst] = field(default_factory=list)
    leaves: list[list[int]] = field(default_factory=list)
    offered: list[tuple[int, int]] = field(default_factory=list)

    @property
    def cycles(self) -> int:
        """The cycle of the last event, 0 without any."""
        return max((*self.begins, *self.ends), default=0)


class _Pressure:
    """A repeated back-pressure pattern: for each channel, how long a cycle must wait."""

    def __init__(self, stalls: NDArray[np.uint32] | None) -> None:
        words = np.zeros(1, np.uint32) if stalls is None or not len(stalls) else stalls
        self.period = len(words)
        self.skips = [self._skips((words >> channel & 1).astype(bool)) for channel in Channel]

    def _skips(self, held: NDArray[np.bool_]) -> list[int]:
        """For each cycle of the pattern, cycles until the channel is free; empty if it never is."""
        skips = [0] * self.period
        distance = 0
        if held.all():
            return []
        for cycle in reversed(range(2 * self.period)):
            distance = distance + 1 if held[cycle % self.period] else 0
            skips[cycle % self.period] = distance
        return skips

    def free(self, channel: Channel, cycle: int) -> int:
        """The first cycle from ``cycle`` on in which ``channel`` is not held back."""
        return cycle + self.skips[channel][cycle % self.period]

    def row(self, channel: Channel, first: int, count: int) -> list[int]:
        """Cycles of ``count`` words in a row, the first from ``first`` on."""
        if self.period == 1:
            return list(range(first, first + count))
        skips, period = self.skips[channel], self.period
        cycles = []
        for _ in range(count):
            first += skips[first % period]
            cycles.append(first)
            first += 1
        return cycles


class _Cut(NamedTuple):
    """The next burst of a transfer."""

    words: int
    size: int
    final: bool


def _cut(harness: HarnessDescription, address: int, left: int) -> _Cut:
    """The burst at ``address`` of a transfer of which ``left`` bytes are left."""
    word = harness.data_bytes
    to_boundary = (harness.boundary - address % harness.boundary + word - 1) // word
    words_left = (address % word + left + word - 1) // word
    words = min(words_left, harness.burst_words, to_boundary)
    final = words == words_left
    return _Cut(words, left if final else words * word - address % word, final)


class _ReadStream:
    """One read stream: its queue, the burst it asks for next, and the beats for its unit."""

    def __init__(self, harness: HarnessDescription, pressure: _Pressure, tag: int) -> None:
        self._harness = harness
        self._pressure = pressure
        self._channel = Channel(Channel.STREAM_0 + tag)
        self._steps: list[tuple[int, DmaStep, int]] = []
        self._popped: list[int] = []
        self._expected: list[int] = []
        self._finally_asked = 0
        self._finally_arrived = 0
        self._asked_words = 0
        self.asking = False
        self.address = self._left = 0
        self.ready = 0
        self.leaves: list[int] = []

    def room(self) -> int | None:
        """First cycle in which the queue can take the next descriptor; None: not known yet."""
        full_by = len(self._steps) - self._harness.queue_depth
        if full_by < 0:
            return 0
        return self._popped[full_by] + 1 if full_by < len(self._popped) else None

    @property
    def unfinished(self) -> bool:
        """True while the completion of a descriptor is not known."""
        return self.asking

    def push(self, index: int, step: DmaStep, cycle: int) -> None:
        """Take a descriptor that begins in ``cycle``."""
        self._steps.append((index, step, cycle))
        if not self.asking:
            self._take_next()

    def _take_next(self) -> None:
        place = len(self._popped)
        if place == len(self._steps):
            return
        _, step, begun = self._steps[place]
        cycle = max(begun + 1, self._finally_asked)
        ahead = place - self._harness.expected_transfers
        if ahead >= 0:
            cycle = max(cycle, self._expected[ahead] + 1)
        self._popped.append(cycle)
        self._expected.append(max(cycle + 1, self._finally_arrived))
        self.asking, self.address, self._left = True, step.address, step.size
        self._prepare(cycle + 1)

    def _prepare(self, cycle: int) -> None:
        """Cut the next burst, and see from when on, at ``cycle`` or later, it has room."""
        self.cut = _cut(self._harness, self.address, self._left)
        must_have_left = self._asked_words + self.cut.words - self._harness.buffer_words
        if must_have_left > 0:
            cycle = max(cycle, self.leaves[must_have_left - 1] + 1)
        self.ready = cycle

    def granted(self, cycle: int, arrivals: Sequence[int]) -> tuple[int, int] | None:
        """The burst is asked for in ``cycle`` and its words are on the bus at ``arrivals``.

        Returns the place of the descriptor that ends with it and its completion.
        """
        self._leave(arrivals)
        cut = self.cut
        self._asked_words += cut.words
        self.address += cut.size
        self._left -= cut.size
        if not cut.final:
            self._prepare(cycle + 1)
            return None
        index = self._steps[len(self._popped) - 1][0]
        self._finally_asked, self._finally_arrived = cycle, arrivals[-1]
        self.asking = False
        self._take_next()
        return index, self.leaves[self._asked_words - 1]

    def _leave(self, arrivals: Sequence[int]) -> None:
        """A beat is offered one cycle after its word, and taken one at a time."""
        leaves, period = self.leaves, self._pressure.period
        skips = self._pressure.skips[self._channel]
        last = leaves[-1] if leaves else 0
        for arrival in arrivals:
            last = max(last, arrival) + 1
            last += skips[last % period]
            leaves.append(last)


class _Reader:
    """The read master: shares the bus between the streams, in turn."""

    def __init__(self, harness: HarnessDescription, pressure: _Pressure) -> None:
        self._harness = harness
        self._pressure = pressure
        self.streams = [_ReadStream(harness, pressure, tag) for tag in range(READ_QUEUES)]
        self._served = 0
        self.bursts: list[Burst] = []

    def next_grant(self) -> tuple[int, int] | None:
        """Cycle and stream of the next burst, as far as the descriptors so far decide it."""
        asking = [stream.ready for stream in self.streams if stream.asking]
        if not asking:
            return None
        cycle = min(asking)
        count, harness = len(self.bursts), self._harness
        if count:
            cycle = max(cycle, self.bursts[-1].accepted)
        if count >= harness.outstanding_reads:
            cycle = max(cycle, self.bursts[count - harness.outstanding_reads].words[-1] + 1)
        for distance in range(1, READ_QUEUES + 1):
            tag = (self._served + distance) % READ_QUEUES
            if self.streams[tag].asking and self.streams[tag].ready <= cycle:
                break
        return cycle, tag

    def grant(self, cycle: int, tag: int) -> tuple[int, int] | None:
        """Ask for the stream's burst; returns what ``granted`` of the stream does."""
        harness, pressure, bursts = self._harness, self._pressure, self.bursts
        stream = self.streams[tag]
        accepted = cycle + 1
        if len(bursts) >= harness.memory_requests:
            # Memory has given the last word of a burst one cycle before it is on the bus.
            accepted = max(accepted, bursts[-harness.memory_requests].words[-1])
        accepted = pressure.free(Channel.READ_ADDRESS, accepted)
        given = accepted + max(1, harness.memory_latency)
        if bursts:
            given = max(given, bursts[-1].words[-1])
        row = pressure.row(Channel.READ_DATA, given, stream.cut.words)
        arrivals = tuple(cycle + 1 for cycle in row)
        bursts.append(Burst(tag, stream.address, cycle, accepted, arrivals))
        self._served = tag
        return stream.granted(cycle, arrivals)


class _Writer:
    """The write master: outputs and interrupts, one after another."""

    def __init__(self, harness: HarnessDescription, pressure: _Pressure, output: int) -> None:
        self._harness = harness
        self._pressure = pressure
        self._output = output
        self._popped: list[int] = []
        self._idle = 0
        # The unit's side: bytes accepted, and when the next beat is offered.
        self._accepted = 0
        self._offered = 1
        # The bus's side: bytes that have left by the end of a cycle.
        self._sent: list[tuple[int, int]] = [(0, 0)]
        self._seen = 0
        self.bursts: list[Burst] = []

    def room(self) -> int:
        """First cycle in which the queue can take the next descriptor."""
        full_by = len(self._popped) - self._harness.queue_depth
        return self._popped[full_by] + 1 if full_by >= 0 else 0

    def push(self, step: DmaStep, cycle: int) -> int:
        """Take a descriptor that begins in ``cycle``; return when it is completed."""
        popped = max(cycle + 1, self._idle)
        if step.tag != DescriptorTag.OUTPUT:
            if self.bursts:
                popped = max(popped, self.bursts[-1].answered + 1)
            self._popped.append(popped)
            self._idle = popped + 1
            return popped
        self._popped.append(popped)
        address, left = step.address, step.size
        while left:
            cut = _cut(self._harness, address, left)
            popped = self._write(cut, address, popped + 1)
            address += cut.size
            left -= cut.size
        self._idle = popped + 1
        return self.bursts[-1].answered

    def _write(self, cut: _Cut, address: int, cycle: int) -> int:
        """Write a burst, from ``cycle`` on; return the cycle in which it is decided."""
        harness, pressure, bursts = self._harness, self._pressure, self.bursts
        decided = max(cycle, self._collect(self._sent[-1][1] + cut.size) + 1)
        if bursts:
            decided = max(decided, bursts[-1].words[-1] + 1)
        if len(bursts) >= harness.outstanding_writes:
            decided = max(decided, bursts[-harness.outstanding_writes].answered + 1)
        accepted = decided + 1
        if len(bursts) >= harness.memory_requests:
            # Memory has let an answer out one cycle before it is on the bus.
            accepted = max(accepted, bursts[-harness.memory_requests].answered)
        accepted = pressure.free(Channel.WRITE_ADDRESS, accepted)
        words = pressure.row(Channel.WRITE_DATA, accepted + 1, cut.words)
        self._send(words, address % harness.data_bytes, cut.size)
        answer = words[-1] + max(1, harness.memory_latency)
        if bursts:
            answer = max(answer, bursts[-1].answered)
        answer = pressure.free(Channel.WRITE_RESPONSE, answer) + 1
        bursts.append(Burst(DescriptorTag.OUTPUT, address, decided, accepted, tuple(words), answer))
        return decided

    def _send(self, words: Iterable[int], offset: int, size: int) -> None:
        """Bytes leave with each word."""
        sent = self._sent[-1][1]
        end = sent + size
        for cycle in words:
            sent = min(end, sent + self._harness.data_bytes - offset)
            offset = 0
            self._sent.append((cycle, sent))

    def _collect(self, wanted: int) -> int:
        """The cycle in which the ``wanted``-th byte of all is accepted from the unit."""
        if wanted > self._output:
            raise ValueError(f"{wanted} bytes of output are asked for, there are {self._output}")
        word, accepted_in = self._harness.data_bytes, 0
        while self._accepted < wanted:
            must_have_left = self._accepted + word - self._harness.output_bytes
            accepted_in = self._offered
            if must_have_left > 0:
                while self._sent[self._seen][1] < must_have_left:
                    self._seen += 1
                accepted_in = max(accepted_in, self._sent[self._seen][0] + 1)
            self._accepted = min(self._output, self._accepted + word)
            self._offered = self._pressure.free(Channel.OUTPUT, accepted_in) + 1
        return accepted_in


def predict(
    steps: Sequence[DmaStep],
    *,
    output_bytes: int,
    harness: HarnessDescription | None = None,
    stalls: NDArray[np.uint32] | None = None,
) -> DmaTiming:
    """Predict the cycles of a descriptor program on ``harness.sv`` with ``host_memory.sv``.

    Args:
        steps: the descriptors in order.
        output_bytes: bytes that the units give to the output stream in total.
        harness: sizes and latencies; the RTL's defaults without it.
        stalls: uint32 of shape (cycles,), repeated: bit ``Channel`` holds that channel back.

    Raises ``ValueError`` if the program never ends: too few bytes of output, or a channel that is
    needed and always held back.
    """
    harness = harness or HarnessDescription()
    pressure = _Pressure(stalls)
    needed = {Channel.READ_ADDRESS, Channel.READ_DATA} if any(map(_reads, steps)) else set()
    needed |= {Channel(Channel.STREAM_0 + step.tag) for step in steps if _reads(step)}
    if output_bytes:
        needed |= {Channel.WRITE_ADDRESS, Channel.WRITE_DATA, Channel.WRITE_RESPONSE}
        needed.add(Channel.OUTPUT)
    for channel in sorted(needed):
        if not pressure.skips[channel]:
            raise ValueError(f"the program never ends: {channel.name} is always held back")
    return _Engine(harness, pressure, output_bytes).run(steps)


def _reads(step: DmaStep) -> bool:
    return not step.fence and not step.refused and step.tag < READ_QUEUES


class _Engine:
    """The queue of descriptors, in front of both masters."""

    def __init__(self, harness: HarnessDescription, pressure: _Pressure, output: int) -> None:
        self._harness = harness
        self._reader = _Reader(harness, pressure)
        self._writer = _Writer(harness, pressure, output)
        self._latest_end = -1

    def run(self, steps: Sequence[DmaStep]) -> DmaTiming:
        """Let every descriptor begin, then finish what has begun."""
        timing = DmaTiming(ends=[-1] * len(steps))
        reader = self._reader
        while True:
            index = len(timing.begins)
            begin = self._begin(timing, steps[index]) if index < len(steps) else None
            grant = reader.next_grant()
            if begin is not None and (grant is None or begin <= grant[0]):
                self._start(timing, index, steps[index], begin)
            elif grant is not None:
                ended = reader.grant(*grant)
                if ended is not None:
                    timing.ends[ended[0]] = ended[1]
                    self._latest_end = max(self._latest_end, ended[1])
            else:
                break
        timing.bursts = [*reader.bursts, *self._writer.bursts]
        timing.leaves = [stream.leaves for stream in reader.streams]
        return timing

    def _begin(self, timing: DmaTiming, step: DmaStep) -> int | None:
        """When the next descriptor begins; None while that is not known."""
        index = len(timing.begins)
        if index == len(timing.offered):
            first = timing.offered[-1][1] + 1 if index else 1
            full_by = index - self._harness.fifo_depth
            taken = max(first, timing.begins[full_by] + 1) if full_by >= 0 else first
            timing.offered.append((first, taken))
        begin = timing.offered[index][1] + 1
        if index:
            begin = max(begin, timing.begins[-1] + 1)
        if step.refused:
            return begin
        if step.fence:
            unfinished = any(stream.unfinished for stream in self._reader.streams)
            return None if unfinished else max(begin, self._latest_end + 1)
        room = self._reader.streams[step.tag].room() if _reads(step) else self._writer.room()
        return None if room is None else max(begin, room)

    def _start(self, timing: DmaTiming, index: int, step: DmaStep, begin: int) -> None:
        timing.begins.append(begin)
        if _reads(step):
            self._reader.streams[step.tag].push(index, step, begin)
            return
        passes = step.refused or step.fence
        timing.ends[index] = begin if passes else self._writer.push(step, begin)
        if not step.refused:
            self._latest_end = max(self._latest_end, timing.ends[index])
