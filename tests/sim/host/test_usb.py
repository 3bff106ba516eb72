"""The host interface by USB: streams that are pushed, outputs and interrupts in their order."""

from __future__ import annotations

import numpy as np
import pytest
from darwinn_sim.host.descriptors import DescriptorFault
from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.usb import CHUNK_OVERHEAD, MAX_DESCRIPTORS, UsbInterface
from darwinn_sim.isa.codes import DescriptorTag

INPUT, PARAMETERS, OUTPUT = (
    DescriptorTag.INPUT,
    DescriptorTag.PARAMETERS,
    DescriptorTag.OUTPUT,
)


class Host:
    def __init__(self) -> None:
        self.seen: list[bytes | tuple[int, int, int]] = []

    def take_output(self, data: bytes) -> None:
        self.seen.append(data)

    def take_event(self, tag: int, address: int, size: int) -> None:
        self.seen.append((tag, address, size))


def attached() -> tuple[UsbInterface, Host]:
    host = Host()
    return UsbInterface(RegisterFile(), host), host


def array(data: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(data, np.uint8)


def test_chunks_are_fetched_while_the_scalar_core_runs() -> None:
    interface, _ = attached()
    interface.push_chunk(b"chunk")
    assert interface.fetch_chunk() is None
    interface.registers.set("scalar_core_run_control", 1)
    assert interface.held_chunks == 5 + CHUNK_OVERHEAD
    assert interface.fetch_chunk() == b"chunk"
    assert interface.fetch_chunk() is None
    assert interface.held_chunks == 0


def test_no_more_is_pulled_than_descriptors_ask_for() -> None:
    interface, _ = attached()
    interface.push_data(INPUT, b"0123456789")
    assert interface.pull(INPUT, 100).size == 0
    interface.issue(INPUT, 0, 3)
    interface.issue(INPUT, 0, 4)
    assert interface.pull(INPUT, 5).tobytes() == b"01234"
    assert interface.pull(INPUT, 5).tobytes() == b"56"
    interface.issue(INPUT, 0, 8)
    assert interface.pull(INPUT, 100).tobytes() == b"789"
    assert interface.waiting() == ("input stream: 5 bytes of issued descriptors not taken",)
    interface.push_data(INPUT, b"abcdef")
    assert interface.pull(INPUT, 100).tobytes() == b"abcde"
    assert interface.held_data(INPUT) == 1


def test_streams_are_apart() -> None:
    interface, _ = attached()
    interface.push_data(PARAMETERS, b"parameters")
    interface.issue(INPUT, 0, 4)
    assert interface.pull(INPUT, 100).size == 0
    interface.issue(PARAMETERS, 0, 4)
    assert interface.pull(PARAMETERS, 100).tobytes() == b"para"


def test_outputs_and_interrupts_keep_their_order() -> None:
    interface, host = attached()
    interface.issue(OUTPUT, 0x1000, 4)
    interface.issue(DescriptorTag.INTERRUPT_0, 0, 0)
    interface.issue(OUTPUT, 0x2000, 2)
    interface.push(array(b"abc"))
    assert host.seen == [(3, 0x1000, 4), (3, 0x2000, 2), b"abc"]
    interface.push(array(b"defg"))
    assert host.seen[3:] == [b"d", (4, 0, 0), b"ef"]
    assert interface.output_pending
    assert interface.waiting() == ("output stream: 1 bytes wait for a descriptor",)
    assert interface.registers.get("sc_host_int_count") == 1


@pytest.mark.parametrize(
    ("tag", "size", "reason"),
    [(9, 4, "unknown tag"), (1, 0, "length 0"), (4, 4, "neither address nor size")],
)
def test_what_cannot_be_carried_out_is_refused(tag: int, size: int, reason: str) -> None:
    interface, host = attached()
    with pytest.raises(DescriptorFault, match=reason):
        interface.issue(tag, 0, size)
    assert host.seen == []


def test_descriptors_that_wait_are_bounded() -> None:
    interface, _ = attached()
    for _ in range(MAX_DESCRIPTORS):
        interface.issue(INPUT, 0, 1)
    with pytest.raises(DescriptorFault, match="65536 descriptors wait"):
        interface.issue(INPUT, 0, 1)


def test_nothing_is_left_after_clearing() -> None:
    interface, host = attached()
    interface.push_chunk(b"chunk")
    interface.push_data(INPUT, b"data")
    interface.issue(OUTPUT, 0, 4)
    interface.clear()
    interface.push(array(b"abcd"))
    assert interface.held_chunks == interface.held_data(INPUT) == 0
    assert interface.output_pending
    assert host.seen == [(3, 0, 4)]
