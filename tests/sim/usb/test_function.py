"""The USB function: modes, requests, bounds, faults, and resets at any moment."""

from __future__ import annotations

import queue
import struct
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from darwinn_sim.device.turns import Turns
from darwinn_sim.device.worker import Worker
from darwinn_sim.usb import function as usb
from darwinn_sim.usb import messages
from darwinn_sim.usb.descriptors import EVENTS, OUTPUTS, Mode, Speed
from darwinn_sim.usb.endpoints import Status, Transfer
from darwinn_sim.usb.errors import ProtocolFault, Stall
from darwinn_sim.usb.function import UsbFunction, _Intake
from darwinn_sim.usb.requests import Setup
from echo_chip import RUN, EchoChip, echo

INTERRUPT = struct.pack("<QIB3x", 0, 0, 4)


def application(speed: Speed = Speed.SUPER) -> UsbFunction:
    function = UsbFunction(echo, mode=Mode.APPLICATION, speed=speed)
    write(function, RUN, 1)
    return function


def read(function: UsbFunction, offset: int, bits: int = 64) -> int:
    setup = Setup(0xC0, bits == 32, offset & 0xFFFF, offset >> 16, bits // 8)
    return int.from_bytes(function.control(setup), "little")


def write(function: UsbFunction, offset: int, value: int, bits: int = 64) -> None:
    setup = Setup(0x40, bits == 32, offset & 0xFFFF, offset >> 16, bits // 8)
    function.control(setup, value.to_bytes(bits // 8, "little"))


def ignore(transfer: Transfer) -> None:
    pass


def send(function: UsbFunction, data: bytes, endpoint: int = 1) -> Transfer:
    transfer = Transfer(endpoint, ignore, data=data)
    function.submit(transfer)
    return transfer


def receive(function: UsbFunction, endpoint: int, length: int = 4096) -> Transfer:
    transfer = Transfer(endpoint, ignore, length=length)
    function.submit(transfer)
    return transfer


def message(tag: int, payload: bytes) -> bytes:
    return struct.pack("<II", len(payload), tag) + payload


def settle(function: UsbFunction) -> None:
    while function.work():
        pass


# A program that asks for 5 bytes of input, gives 5 bytes of output, and interrupts.
PROGRAM = message(0, bytes((1, 5, 3, 5, 4, 0)))


def download(function: UsbFunction) -> None:
    for block, data in enumerate((b"firmware", b"")):
        function.control(Setup(0x21, 1, block, 0, len(data)), data)
        function.control(Setup(0xA1, 3, 0, 0, 6))


def test_firmware_and_a_reset_make_another_device_of_it() -> None:
    function = UsbFunction(echo)
    changes: list[int] = []
    function.changed = lambda: changes.append(function.address)
    boot = function.device_descriptor()
    assert boot[8:12] == bytes.fromhex("6e1a 9a08")
    assert not function.reset()
    download(function)
    assert function.device_descriptor() == boot
    assert function.reset()
    assert function.device_descriptor()[8:12] == bytes.fromhex("d118 0293")
    assert changes == [2]
    assert not function.reset()


def test_a_detached_device_boots_again() -> None:
    function = application()
    function.control(Setup(0x21, 0, 100, 0, 0))
    assert function.device_descriptor()[8:12] == bytes.fromhex("d118 0293")
    assert function.reset()
    assert function.device_descriptor()[8:12] == bytes.fromhex("6e1a 9a08")
    assert not function.reset()


def test_part_of_the_firmware_does_not_start() -> None:
    function = UsbFunction(echo)
    function.control(Setup(0x21, 1, 0, 0, 5), b"begin")
    assert not function.reset()
    assert function.mode is Mode.BOOT


def test_boot_mode_has_no_registers_and_no_bulk_endpoints() -> None:
    function = UsbFunction(echo)
    with pytest.raises(Stall, match="no such request in boot mode"):
        read(function, RUN)
    assert send(function, b"x").status is Status.STALLED


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("speed", Speed)
def test_descriptors_say_their_lengths(mode: Mode, speed: Speed) -> None:
    function = UsbFunction(echo, mode=mode, speed=speed)
    for kind, header in ((1, 0), (2, 2), (15, 2)):
        text = function.control(Setup(0x80, 6, kind << 8, 0, 512))
        total = struct.unpack_from("<H", text, 2)[0] if header else 18
        assert len(text) == total < 256
        at = 0
        while at < len(text):
            assert text[at] >= 2
            at += text[at]
        assert at == len(text)
        assert function.control(Setup(0x80, 6, kind << 8, 0, 9)) == text[:9]


def test_the_boot_configuration_is_the_recorded_one() -> None:
    recorded = "09021b00010100807009040000 00fe010200 092107e80300010101"
    function = UsbFunction(echo)
    assert function.configuration_descriptor() == bytes.fromhex(recorded)


@pytest.mark.parametrize(
    "setup",
    [
        Setup(0x80, 6, 0x300, 0, 255),
        Setup(0x80, 6, 0x201, 0, 255),
        Setup(0x00, 9, 2, 0, 0),
        Setup(0x81, 10, 0, 1, 1),
        Setup(0x81, 10, 0, 0x100, 1),
        Setup(0x01, 11, 0, 0x100, 0),
        Setup(0x01, 11, 1, 0, 0),
        Setup(0xC0, 2, 0, 0, 8),
        Setup(0x40, 0, 0x4018, 4, 4),
        Setup(0xE0, 0, 0, 0, 8),
        Setup(0x80, 99, 0, 0, 8),
    ],
    ids=str,
)
def test_requests_that_make_no_sense_are_stalled(setup: Setup) -> None:
    function = application()
    with pytest.raises(Stall):
        function.control(setup, b"")


def test_a_stream_is_fed_when_something_has_arrived() -> None:
    fed: list[bytes] = []

    class Noting:
        held = room = 0

        def where(self) -> str:
            return ""

        def feed(self, piece: bytes | bytearray) -> None:
            fed.append(bytes(piece))

    intake = _Intake()
    intake.feed(bytearray(b"nobody"))
    intake.stream = Noting()
    for arrived in (b"", b"abc", b""):
        intake.feed(bytearray(arrived))
    assert fed == [b"abc"]


@pytest.mark.parametrize(
    ("speed", "version", "packet"), [(Speed.HIGH, 0x0210, 64), (Speed.SUPER, 0x0310, 9)]
)
def test_the_device_says_its_version_and_its_packets(
    speed: Speed, version: int, packet: int
) -> None:
    """Of endpoint 0: in bytes, or at SuperSpeed the exponent of 2 (USB 3.2, 9.6.1)."""
    described = application(speed).control(Setup(0x80, 6, 0x100, 0, 18))
    assert (int.from_bytes(described[2:4], "little"), described[7]) == (version, packet)


def test_the_only_interface_has_one_setting() -> None:
    function = application()
    assert function.control(Setup(0x01, 11, 0, 0, 0), b"") == b""
    assert function.control(Setup(0x81, 10, 0, 0, 1)) == b"\0"


def test_outputs_come_in_packets_of_the_length_that_the_host_sets() -> None:
    function = application(Speed.HIGH)
    write(function, 0x4C058, 1)
    send(function, message(0, bytes((1, 20, 3, 20, 4, 0))) + message(1, bytes(range(20))))
    settle(function)
    assert receive(function, OUTPUTS).data == bytes(range(20))
    assert receive(function, EVENTS).data == INTERRUPT
    assert function.quiet


def test_programs_are_not_separated_by_waiting() -> None:
    function = application()
    send(function, PROGRAM + message(1, b"first") + PROGRAM + message(1, b"again"))
    settle(function)
    assert [receive(function, OUTPUTS).data for _ in range(2)] == [b"first", b"again"]
    assert [receive(function, EVENTS).data for _ in range(2)] == [INTERRUPT] * 2


def test_descriptors_are_announced_to_hosts_that_ask() -> None:
    function = application()
    write(function, 0x4C148, 0xFF)
    send(function, PROGRAM + message(1, b"input"))
    settle(function)
    tags = [struct.unpack("<QIB3x", receive(function, EVENTS).data) for _ in range(3)]
    assert tags == [(0, 5, 1), (0, 5, 3), (0, 0, 4)]


def test_a_host_that_sends_ahead_waits_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "HELD_BYTES", 1000)
    function = application()
    first = send(function, message(1, bytes(3000)))
    settle(function)
    assert first.status is None
    assert 1000 <= first.actual < 1010
    # What the chip takes makes room.
    assert function.cancel(first)
    function.reset()
    write(function, RUN, 1)
    late = send(function, message(0, bytes((1, 200) * 15)) + message(1, bytes(2950)))
    settle(function)
    assert late.status is Status.COMPLETED


def test_what_nothing_takes_is_said_once_until_a_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "HELD_BYTES", 1000)
    said: list[str] = []
    function = application()
    function.watchers = (Saying(said),)
    settle(function)
    # A chip that has bytes to come says nothing; nor does one that has room.
    send(function, PROGRAM + message(1, bytes(900)))
    function.look()
    settle(function)
    function.look()
    assert said == []
    waiting = send(function, message(2, bytes(900)))
    settle(function)
    function.look()
    assert said == []
    monkeypatch.setattr(usb, "STUCK_SECONDS", 0.0)
    for _ in range(2):
        function.look()
    assert function.cancel(waiting)
    assert said == [
        "endpoint 1 is full: no descriptor asks for 1,000 bytes of message 2 after an instruction "
        "chunk (900 bytes of tag 2)"
    ]
    function.reset()
    write(function, RUN, 1)
    cancelled = send(function, message(1, bytes(3000)))
    settle(function)
    assert function.cancel(cancelled)
    assert len(said) == 2


class Saying(usb.Watcher):
    """Keeps what nothing takes."""

    def __init__(self, said: list[str]) -> None:
        self.said = said

    def untaken(self, reason: str) -> None:
        self.said.append(reason)


def test_a_host_that_does_not_read_makes_the_chip_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usb, "UNREAD_EVENTS", 3)
    function = application()
    for _ in range(10):
        send(function, message(0, bytes((4, 0))))
        settle(function)
    assert not function.quiet
    for _ in range(10):
        assert receive(function, EVENTS).data == INTERRUPT
        settle(function)
    assert function.quiet


@pytest.mark.parametrize("waiting", [None, OUTPUTS, EVENTS])
@pytest.mark.parametrize("sent", [b"", b"x"])
@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("seconds", [None, 0.0, 1.0])
def test_quiet_is_what_has_nothing_under_way(
    waiting: int | None,
    sent: bytes,
    goes_on: bool,
    seconds: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each cause alone keeps it from that, as all of them do; work due at once is work."""
    function = application()
    monkeypatch.setattr(function.chip, "advance", lambda: goes_on)
    assert function.work() is goes_on
    function.patience = lambda: seconds
    if waiting == OUTPUTS:
        function.take_output(b"y")
    elif waiting == EVENTS:
        function.take_event(4, 0, 0)
    send(function, sent)
    causes = (waiting is not None, sent != b"", goes_on, seconds is not None)
    assert function.quiet is not any(causes)


def test_a_host_that_reads_wakes_a_chip_that_waits_for_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(usb, "UNREAD_EVENTS", 3)
    function = application()
    events: queue.Queue[bytes] = queue.Queue()
    with Worker(function):
        for _ in range(10):
            send(function, message(0, bytes((4, 0))))
        for _ in range(10):
            function.submit(Transfer(EVENTS, lambda each: events.put(each.data), length=16))
            assert events.get(timeout=20) == INTERRUPT


def test_a_host_that_reads_what_is_there_wakes_nobody() -> None:
    function = application()
    send(function, PROGRAM + message(1, b"right"))
    settle(function)
    woken: list[None] = []
    function.wake = lambda: woken.append(None)
    assert receive(function, OUTPUTS).data == b"right"
    assert receive(function, EVENTS).data == INTERRUPT
    assert receive(function, EVENTS).status is None
    assert not woken


@pytest.mark.parametrize(
    ("data", "endpoint", "reason"),
    [
        (message(9, b"x"), 1, "tag 9 is none"),
        (b"instructions", 2, "endpoint 2, which takes none unless multi_bo_ep is 1"),
        (message(0, bytes((1, 0))), 1, "length 0"),
        (message(0, bytes((8, 1))), 1, "unknown tag"),
    ],
)
def test_a_fault_is_told_and_a_reset_mends_it(data: bytes, endpoint: int, reason: str) -> None:
    function = application()
    write(function, usb.FATAL_CONTROL, 1)
    armed = receive(function, OUTPUTS)
    send(function, data, endpoint)
    settle(function)
    assert reason in str(function.fault)
    assert receive(function, 0x83).data == struct.pack("<I", 1)
    assert read(function, 0x486F0)
    assert armed.status is Status.STALLED
    assert send(function, PROGRAM).status is Status.STALLED
    assert receive(function, EVENTS).status is Status.STALLED
    function.reset()
    assert function.fault is None
    assert not read(function, 0x486F0)
    write(function, RUN, 1)
    send(function, PROGRAM + message(1, b"right"))
    settle(function)
    assert receive(function, OUTPUTS).data == b"right"


def test_an_endpoint_for_each_kind_of_data() -> None:
    function = application()
    write(function, usb.MULTI_ENDPOINT, 1)
    send(function, b"inputs", 2)
    send(function, b"parameters", 3)
    settle(function)
    # The chip is asked for what has come: chunks of a real one say their length themselves.
    chip = function.chip
    assert isinstance(chip, EchoChip)
    chip.host.push_chunk(bytes((2, 10, 1, 6, 3, 16, 4, 0)))
    settle(function)
    came = sorted(receive(function, OUTPUTS).data for _ in range(2))
    assert came == [b"inputs", b"parameters"]
    assert receive(function, EVENTS).data == INTERRUPT
    function.reset()
    write(function, RUN, 1)
    send(function, PROGRAM + message(1, b"right"))
    settle(function)
    assert receive(function, OUTPUTS).data == b"right"


def test_endpoints_are_bounded_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "HELD_BYTES", 1000)
    function = application()
    write(function, usb.MULTI_ENDPOINT, 1)
    ahead = send(function, bytes(3000), 3)
    settle(function)
    assert (ahead.status, ahead.actual) == (None, 1000)
    assert send(function, b"input", 2).status is Status.COMPLETED


def test_credits_that_the_host_counts_are_refused_by_name() -> None:
    function = application()
    assert read(function, usb.CREDITS) == 0
    assert function.fault is None
    write(function, usb.MULTI_ENDPOINT, 1)
    read(function, usb.CREDITS)
    assert isinstance(function.fault, ProtocolFault)
    assert "USB_OPERATING_MODE=1) are not implemented" in str(function.fault)


def test_tiny_chunks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "HELD_CHUNK_BYTES", 10_000)
    function = application()
    write(function, RUN, 0)
    sent = 0
    while send(function, message(0, b"x")).status is not None:
        settle(function)
        sent += 1
        assert sent < 1000
    assert sent > 10


@pytest.mark.parametrize("cut", range(0, 40, 3))
def test_a_reset_leaves_nothing_of_a_message_that_was_cut(cut: int) -> None:
    function = application()
    stream = PROGRAM + message(1, b"lost!") + PROGRAM
    send(function, stream[:cut])
    settle(function)
    armed = receive(function, 0x83)
    function.reset()
    assert armed.status is Status.NO_DEVICE
    assert function.quiet
    write(function, RUN, 1)
    send(function, PROGRAM + message(1, b"right"))
    settle(function)
    assert receive(function, OUTPUTS).data == b"right"
    assert receive(function, EVENTS).data == INTERRUPT


def test_a_worker_computes_while_the_host_does_other_things() -> None:
    function = application()
    with Worker(function):
        for text in (b"first", b"again"):
            arrived: queue.Queue[Transfer] = queue.Queue()
            function.submit(Transfer(OUTPUTS, arrived.put, length=64))
            send(function, PROGRAM + message(1, text))
            assert arrived.get(timeout=10).data == text


def test_turns_are_taken_in_order() -> None:
    turns = Turns()
    order: list[int] = []
    started = [threading.Event() for _ in range(3)]

    def take(number: int) -> None:
        started[number].set()
        with turns:
            order.append(number)

    with turns:
        threads = []
        for number in range(3):
            thread = threading.Thread(target=take, args=(number,))
            thread.start()
            started[number].wait(10)
            while len(turns._waiting) <= number:
                pass
            threads.append(thread)
    for thread in threads:
        thread.join(10)
    assert order == [0, 1, 2]


def test_a_core_is_reset_with_the_bus() -> None:
    function = application()
    chip = function.chip
    assert isinstance(chip, EchoChip)
    before = chip.resets
    function.reset()
    assert chip.resets == before + 1


@pytest.mark.parametrize("error", [ValueError("of ours"), ProtocolFault("of the program")])
def test_whatever_goes_wrong_in_the_chip_is_a_fault(error: Exception) -> None:
    function = application()

    def fail(*_: object) -> bool:
        raise error

    chip = function.chip
    assert isinstance(chip, EchoChip)
    chip.advance = fail  # type: ignore[method-assign]
    armed = receive(function, OUTPUTS)
    assert not function.work()
    assert str(error) in str(function.fault)
    assert armed.status is Status.STALLED
    del chip.advance
    function.reset()
    chip.write = fail  # type: ignore[method-assign,assignment]
    write(function, RUN, 1)
    assert str(error) in str(function.fault)


@pytest.mark.parametrize("mode", Mode)
def test_requests_to_what_is_not_there_stall(mode: Mode) -> None:
    function = UsbFunction(echo, mode=mode)
    endpoints = [0x81, 0x82, 0x83, 1, 2, 3] if mode is Mode.APPLICATION else []
    for recipient, there in ((1, {0}), (2, {0, 0x80, *endpoints})):
        for index in (*range(8), *range(0x80, 0x88), 0x99):
            for setup in (
                Setup(0x80 | recipient, 0, 0, index, 2),
                Setup(recipient, 1, 0, index, 0),
                Setup(recipient, 3, 0, index, 0),
            ):
                if index in there:
                    assert function.control(setup) == bytes(setup.length)
                else:
                    with pytest.raises(Stall, match="there is no"):
                        function.control(setup)


def test_what_may_let_the_chip_go_on_wakes_it() -> None:
    """Registers that are written, and bytes for it; not registers that are read."""
    function = application()
    woken = 0

    def wake() -> None:
        nonlocal woken
        woken += 1

    function.wake = wake
    write(function, RUN, 1)
    assert woken == 1
    read(function, RUN)
    receive(function, OUTPUTS)
    assert woken == 1
    send(function, b"x")
    assert woken == 2


def test_the_first_fault_is_the_one_that_is_told() -> None:
    told: list[object] = []
    function = application()
    watcher: Any = SimpleNamespace(fault=told.append)
    function.watchers = (watcher,)
    first, second = ProtocolFault("first"), ProtocolFault("second")
    function._fail(first)
    function._fail(second)
    assert function.fault is first
    assert told == [first]


@pytest.mark.parametrize(
    ("octets", "events", "waits"), [(0, 0, 0), (63, 2, 0), (64, 0, 1), (0, 3, 1), (65, 4, 1)]
)
def test_a_chip_waits_for_a_host_that_reads_nothing(
    octets: int, events: int, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With so many bytes of outputs, or events; whoever reads then lets it go on."""
    monkeypatch.setattr(usb, "UNREAD_BYTES", 64)
    monkeypatch.setattr(usb, "UNREAD_EVENTS", 3)
    function = application()
    steps: list[str] = []

    def advance() -> bool:
        steps.append("advanced")
        return False

    monkeypatch.setattr(function.chip, "advance", advance)
    function._ins[OUTPUTS].put(bytes(octets))
    for _ in range(events):
        function._ins[EVENTS].put(bytes(usb.EVENT_BYTES))
    assert function.unread(OUTPUTS) == octets
    assert function.work() is False
    assert bool(steps) is not waits
    woken: list[str] = []
    function.wake = lambda: woken.append("woken")
    receive(function, OUTPUTS)
    assert bool(woken) is bool(waits)
