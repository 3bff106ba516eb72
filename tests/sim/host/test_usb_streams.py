"""What a host pushes by USB, and what the chip takes and gives, against plain queues of bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from darwinn_sim.host import usb
from darwinn_sim.host.descriptors import DescriptorFault
from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.registers import register
from darwinn_sim.host.usb import CHUNK_OVERHEAD, UsbInterface
from darwinn_sim.isa.codes import DescriptorTag
from hypothesis import given, settings
from hypothesis import strategies as st

IN, PARAMETERS, OUT = DescriptorTag.INPUT, DescriptorTag.PARAMETERS, DescriptorTag.OUTPUT
INTERRUPT_0 = int(DescriptorTag.INTERRUPT_0)


class Host:
    """Notes all that it is told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def take_output(self, data: bytes) -> None:
        self.told.append(("output", data))

    def take_event(self, tag: int, address: int, size: int) -> None:
        self.told.append(("event", tag, address, size))


class Slow:
    """Bytes by stream, what is asked for of them, and what is owed to the host, byte for byte."""

    def __init__(self) -> None:
        self.pushed: dict[int, list[int]] = {1: [], 2: []}
        self.wanted: dict[int, int] = {1: 0, 2: 0}
        self.owed: list[str | int] = []
        self.outputs: list[int] = []
        self.told: list[tuple[Any, ...]] = []

    def issue(self, tag: int, address: int, size: int) -> None:
        if tag < INTERRUPT_0:
            self.told.append(("event", tag, address, size))
        if tag in self.wanted:
            self.wanted[tag] += size
        elif tag == OUT:
            self.owed += ["byte"] * size
        else:
            self.owed.append(tag)
        self.deliver()

    def pull(self, tag: int, limit: int) -> list[int]:
        count = min(limit, self.wanted[tag], len(self.pushed[tag]))
        taken, self.pushed[tag] = self.pushed[tag][:count], self.pushed[tag][count:]
        self.wanted[tag] -= count
        return taken

    def waiting(self) -> tuple[str, ...]:
        interrupts = sum(each != "byte" for each in self.owed)
        texts = {
            f"input stream: {self.wanted[1]} bytes of issued descriptors not taken": self.wanted[1],
            f"parameter stream: {self.wanted[2]} bytes of issued descriptors not taken": (
                self.wanted[2]
            ),
            f"output stream: {len(self.outputs)} bytes wait for a descriptor": len(self.outputs),
            f"output descriptors: {len(self.owed) - interrupts} bytes not delivered": (
                len(self.owed) - interrupts
            ),
            f"{interrupts} interrupts held behind output descriptors": interrupts,
        }
        return tuple(text for text, count in texts.items() if count)

    def deliver(self) -> None:
        while self.owed and (self.owed[0] != "byte" or self.outputs):
            first = self.owed.pop(0)
            if first == "byte":
                self.told.append(("byte", self.outputs.pop(0)))
            else:
                self.told.append(("event", first, 0, 0))


def by_bytes(told: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [
        each
        for event in told
        for each in ([("byte", octet) for octet in event[1]] if event[0] == "output" else [event])
    ]


SIZES = st.integers(1, 9)
TAGS = st.sampled_from([IN, PARAMETERS])
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("issue"), st.sampled_from([IN, PARAMETERS, OUT]), SIZES),
        st.tuples(st.just("issue"), st.integers(INTERRUPT_0, INTERRUPT_0 + 3), st.just(0)),
        st.tuples(st.just("push_data"), TAGS, SIZES),
        st.tuples(st.just("pull"), TAGS, st.integers(0, 12)),
        st.tuples(st.just("push"), st.just(0), SIZES),
        st.tuples(st.just("clear"), st.just(0), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=200)
@given(OPERATIONS)
def test_streams(operations: list[tuple[str, int, int]]) -> None:
    host, slow = Host(), Slow()
    interface = UsbInterface(RegisterFile(), host)
    count = 0
    for name, tag, size in operations:
        data = bytes((count + k) % 251 for k in range(size))
        if name == "issue":
            address = 64 if size else 0
            interface.issue(tag, address, size)
            slow.issue(tag, address, size)
        elif name == "push_data":
            interface.push_data(DescriptorTag(tag), data)
            slow.pushed[tag] += data
            count += size
        elif name == "pull":
            assert interface.pull(tag, size).tolist() == slow.pull(tag, size)
        elif name == "push":
            interface.push(np.frombuffer(data, np.uint8))
            slow.outputs += data
            slow.deliver()
            count += size
        else:
            interface.clear()
            told, slow = slow.told, Slow()
            slow.told = told
        assert by_bytes(host.told) == slow.told
        for each in (IN, PARAMETERS):
            assert interface.held_data(each) == len(slow.pushed[each])
        starved = [each for each in (1, 2) if slow.wanted[each] and not slow.pushed[each]]
        assert interface.awaits_host is bool(starved)
        assert interface.owes_output is bool(slow.owed)
        assert interface.output_pending is bool(slow.outputs)
        assert interface.waiting() == slow.waiting()


def test_chunks_are_taken_in_order_while_the_core_runs() -> None:
    registers = RegisterFile()
    interface = UsbInterface(registers, Host())
    chunks = [bytes([k]) * (k + 1) for k in range(3)]
    for chunk in chunks:
        interface.push_chunk(chunk)
    assert interface.held_chunks == 6 + 3 * CHUNK_OVERHEAD
    assert interface.fetch_chunk() is None
    start_core(interface)
    assert [interface.fetch_chunk() for _ in range(4)] == [*chunks, None]
    assert interface.held_chunks == 0


def start_core(interface: UsbInterface) -> None:
    interface.registers.write(register("scalar_core_run_control").offset, 1)


@pytest.mark.parametrize("tag", [IN, OUT])
def test_so_many_descriptors_wait(tag: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usb, "MAX_DESCRIPTORS", 3)
    interface = UsbInterface(RegisterFile(), Host())
    for _ in range(3):
        interface.issue(tag, 0, 4)
    with pytest.raises(DescriptorFault, match="more than 3 descriptors wait for bytes"):
        interface.issue(IN, 0, 4)


def test_what_is_held_leaves_in_order() -> None:
    """Outputs and interrupts are handed over with what they tell the host, in bytes."""
    host = Host()
    interface = UsbInterface(RegisterFile(), host)
    held: list[tuple[Callable[[], None], int]] = []

    def hold(act: Callable[[], None], size: int = 0) -> None:
        held.append((act, size))

    interface.hold = hold
    interface.push(np.arange(5, dtype=np.uint8))
    interface.issue(OUT, 0, 3)
    interface.issue(INTERRUPT_0 + 2, 0, 0)
    interface.issue(OUT, 0, 4)
    assert [size for _, size in held] == [3, 0, 2]
    assert [each[0] for each in host.told] == ["event", "event"]
    host.told.clear()
    for act, _ in held:
        act()
    assert host.told == [
        ("output", bytes((0, 1, 2))),
        ("event", INTERRUPT_0 + 2, 0, 0),
        ("output", bytes((3, 4))),
    ]
    assert interface.interrupts.raised == [2]
    interface.forget()
    assert interface.interrupts.raised == []
