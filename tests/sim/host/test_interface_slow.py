"""Descriptors on memory of a host, against one array of bytes: what is moved, when, and noted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from darwinn_sim.errors import MemoryFault, UninitialisedRead
from darwinn_sim.host.descriptors import DescriptorFault
from darwinn_sim.host.dma_trace import Transfer, TransferDirection, TransferKind
from darwinn_sim.host.driver import Driver
from darwinn_sim.host.interface import HostInterface
from darwinn_sim.host.memory import HostMemory
from darwinn_sim.host.registers import register
from darwinn_sim.isa.codes import DescriptorTag
from hypothesis import given, settings
from hypothesis import strategies as st

IN, PARAMETERS, OUT = DescriptorTag.INPUT, DescriptorTag.PARAMETERS, DescriptorTag.OUTPUT
INTERRUPT_0 = int(DescriptorTag.INTERRUPT_0)
PAGE = 4096
BYTES = 3 * PAGE
KINDS = {IN: TransferKind.INPUT, PARAMETERS: TransferKind.PARAMETER, OUT: TransferKind.OUTPUT}


class Slow:
    """A buffer byte by byte: what it holds, whether it was written, whether that is known."""

    def __init__(self, strict: bool, follows: bool) -> None:
        self.strict, self.follows = strict, follows
        self.memory = [0] * BYTES
        self.written = [not strict] * BYTES
        self.known = [True] * BYTES
        self.streams: dict[int, list[int]] = {1: [], 2: []}
        self.owed: list[tuple[str, int]] = []
        self.outputs: list[tuple[int, bool]] = []
        self.raised: list[int] = []
        self.paused = False

    def refuses(self, tag: int, place: int, size: int) -> type[Exception] | None:
        """What is wrong with a descriptor of inputs in strict mode."""
        if tag in self.streams and self.strict:
            places = range(place, place + size)
            if any(("byte", each) in self.owed for each in places):
                return MemoryFault
            if not all(self.written[each] for each in places):
                return UninitialisedRead
        return None

    def issue(self, tag: int, place: int, size: int) -> None:
        if tag in self.streams:
            self.streams[tag] += range(place, place + size)
        elif tag == OUT:
            self.owed += [("byte", each) for each in range(place, place + size)]
        else:
            self.owed.append(("interrupt", tag - INTERRUPT_0))
        self.deliver()

    def pull(self, tag: int, limit: int) -> tuple[list[int], list[bool] | None]:
        if self.paused:
            return [], None
        places, self.streams[tag] = self.streams[tag][:limit], self.streams[tag][limit:]
        known = [self.known[each] for each in places] if self.follows else None
        return [self.memory[each] for each in places], known

    def deliver(self) -> None:
        while self.owed and not self.paused:
            what, number = self.owed[0]
            if what == "interrupt":
                self.raised.append(number)
            elif self.outputs:
                self.memory[number], known = self.outputs.pop(0)
                self.written[number] = True
                self.known[number] = known if self.follows else True
            else:
                return
            self.owed.pop(0)


PLACES = st.sampled_from([0, 1, 7, PAGE - 3, PAGE, 2 * PAGE - 1, 2 * PAGE + 5, BYTES - 9])
SIZES = st.integers(1, 9)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("issue"), st.sampled_from([IN, PARAMETERS, OUT]), PLACES, SIZES),
        st.tuples(
            st.just("issue"), st.integers(INTERRUPT_0, INTERRUPT_0 + 3), st.just(0), st.just(0)
        ),
        st.tuples(st.just("store"), st.just(0), PLACES, SIZES),
        st.tuples(
            st.just("pull"), st.sampled_from([IN, PARAMETERS]), st.just(0), st.integers(0, 12)
        ),
        st.tuples(st.just("push"), st.integers(0, 3), st.just(0), SIZES),
        st.tuples(st.just("pause"), st.integers(0, 1), st.just(0), st.just(0)),
    ),
    max_size=25,
)


class Both:
    """The interface behind a driver that has mapped the buffer, and the slow one."""

    def __init__(self, strict: bool, follows: bool) -> None:
        memory = HostMemory(strict=strict)
        if follows and not strict:
            memory.follow()
        self.host = HostInterface(memory)
        self.driver = Driver(self.host, memory, seed=3)
        self.driver.open()
        self.mapped = self.driver._map("a buffer", BYTES, TransferKind.SCRATCH)
        self.slow = Slow(strict, follows)
        self.transfers: list[Transfer] = []
        self.count = 0

    def data(self, size: int) -> bytes:
        self.count += size
        return bytes((self.count + k) % 251 for k in range(size))

    def issue(self, tag: int, place: int, size: int) -> None:
        address = self.mapped.address + place if size else 0
        wrong = self.slow.refuses(tag, place, size)
        outward = TransferDirection.OUTFEED if tag >= OUT else TransferDirection.INFEED
        if tag >= INTERRUPT_0:
            noted = Transfer(TransferKind.INTERRUPT, outward, number=tag - INTERRUPT_0)
        else:
            noted = Transfer(TransferKind.SCRATCH, outward, None, place, size, address)
        self.transfers.append(noted)
        if wrong is None:
            self.host.issue(tag, address, size)
            self.slow.issue(tag, place, size)
            return
        with pytest.raises(wrong):
            self.host.issue(tag, address, size)

    def store(self, _: int, place: int, size: int) -> None:
        data = self.data(size)
        self.mapped.region.store(data, place)
        for k, octet in enumerate(data):
            self.slow.memory[place + k] = octet
            self.slow.written[place + k] = self.slow.known[place + k] = True

    def pull(self, tag: int, _: int, limit: int) -> None:
        known = self.host.next_known(tag, limit)
        found = self.host.pull(tag, limit).tolist()
        expected, flags = self.slow.pull(tag, limit)
        assert found == expected
        assert (None if known is None else known.tolist()) == flags

    def push(self, which: int, _: int, size: int) -> None:
        data = self.data(size)
        known = None if which > 2 else np.arange(size) % 2 < which
        self.host.push(np.frombuffer(data, np.uint8), known)
        flags = [True] * size if known is None else known.tolist()
        self.slow.outputs += zip(data, flags, strict=True)
        self.slow.deliver()

    def pause(self, on: int, _: int, __: int) -> None:
        self.host.registers.write(register("dma_pause").offset, on)
        self.slow.paused = bool(on)
        self.slow.deliver()

    def check(self) -> None:
        host, slow = self.host, self.slow
        region = self.mapped.region
        assert region.payload.tolist() == slow.memory
        if slow.strict:
            lead = region.lead
            assert region.written is not None
            assert region.written[lead : lead + BYTES].tolist() == slow.written
        if slow.follows:
            known = region.payload_known
            assert known is not None
            assert known.tolist() == slow.known
        assert host.interrupts.raised == slow.raised
        assert host.transfers == self.transfers
        waits = bool(slow.owed or any(slow.streams.values()))
        assert host.awaits_host is (slow.paused and waits)
        assert host.owes_output is bool(slow.owed)
        assert host.output_pending is bool(slow.outputs)
        counts = {
            f"{KINDS[DescriptorTag(tag)].value} stream: {len(each)} bytes of issued descriptors "
            "not taken": len(each)
            for tag, each in slow.streams.items()
        }
        octets = sum(what == "byte" for what, _ in slow.owed)
        interrupts = len(slow.owed) - octets
        counts |= {
            f"output stream: {len(slow.outputs)} bytes wait for a descriptor": len(slow.outputs),
            f"output descriptors: {octets} bytes not delivered": octets,
            f"{interrupts} interrupts held behind output descriptors": interrupts,
        }
        assert host.waiting() == tuple(text for text, count in counts.items() if count)


@settings(max_examples=80)
@given(OPERATIONS, st.sampled_from([(False, False), (False, True), (True, True)]))
def test_descriptors(
    operations: list[tuple[str, int, int, int]], strict_and_follows: tuple[bool, bool]
) -> None:
    both = Both(*strict_and_follows)
    for name, *arguments in operations:
        getattr(both, name)(*arguments)
    both.check()
    both.mapped.region.check_guards()
    both.host.clear()
    both.host.forget()
    assert both.host.waiting() == ()
    assert both.host.transfers == []


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("tag", "address", "size", "reason"),
    [
        (0, 64, 8, "unknown tag"),
        (IN, 64, 0, "length 0"),
        (OUT, 64, 0, "length 0"),
        (INTERRUPT_0, 64, 0, "an interrupt has neither address nor size"),
        (INTERRUPT_0 + 3, 0, 1, "an interrupt has neither address nor size"),
        (INTERRUPT_0 + 4, 0, 0, "unknown tag"),
        (-1, 64, 8, "unknown tag"),
    ],
)
def test_descriptors_that_cannot_be(
    strict: bool, tag: int, address: int, size: int, reason: str
) -> None:
    both = Both(strict, strict)
    with pytest.raises(DescriptorFault) as caught:
        both.host.issue(tag, address, size)
    error: Any = caught.value
    assert (error.tag, error.address, error.size, error.reason) == (tag, address, size, reason)
    assert str(error) == f"descriptor tag {tag} address {address:#x} size {size}: {reason}"
    told = both.host.registers.read(register("hib_error_status").offset)
    assert bool(told) is (reason == "length 0")
    assert both.host.transfers == []
