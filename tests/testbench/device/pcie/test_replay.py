"""Recorded sessions by PCIe: the same device shows no difference, one changed bit is found."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import msgspec
import pytest
from apex_queue import PAGE
from bus_chip import BusChip, program
from darwinn_sim.pcie.function import PcieFunction, Watcher
from darwinn_testbench.device.pcie.events import (
    DECODER,
    Event,
    Interrupt,
    MemoryRead,
    MemoryWrite,
    Recorder,
    RegisterRead,
    RegisterWrite,
)
from darwinn_testbench.device.pcie.log import Log
from darwinn_testbench.device.pcie.replay import Player, replay
from darwinn_testbench.device.trace import Fault, Octets, RecordedSession, SessionFile
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Verdict
from pcie_machine import BUFFER, INPUT_AT, OUTPUT_AT, PROGRAM_AT, Machine

DATA = BUFFER + 0x10_0000
OUTPUT = BUFFER + 0x20_0000
SIZE = 3 * PAGE


def session() -> list[Event]:
    """Two requests on one buffer, whose contents change in between, and a spill to the host."""
    events: list[Event] = []
    machine = Machine(Recorder(events.append))
    chunk = program(
        (1, SIZE, DATA), (3, SIZE, OUTPUT), (1, SIZE, OUTPUT), (3, SIZE, DATA), (4, 0, 0)
    )
    machine.give(PROGRAM_AT, chunk, BUFFER)
    machine.give(INPUT_AT, bytes(SIZE), DATA)
    machine.give(OUTPUT_AT, bytes(SIZE), OUTPUT)
    for number in range(2):
        machine.program.write(INPUT_AT, bytes((number + each) % 256 for each in range(SIZE)))
        machine.queue(BUFFER, len(chunk))
        machine.work()
        machine.write("instruction_queue_int_status", 0)
        machine.write("sc_host_int_status", 0xE)
        assert machine.read("sc_host_int_count") == number + 1
    machine.driver.close()
    return events


EVENTS = session()


def any_session(seed: int) -> list[Event]:
    """Requests that copy anywhere within two buffers, which the host changes now and then.

    Several are queued at once, and the chip begins at once or when all are.
    """
    draw = random.Random(seed)
    events: list[Event] = []
    machine = Machine(Recorder(events.append))
    areas = {DATA: INPUT_AT, OUTPUT: OUTPUT_AT}
    machine.give(PROGRAM_AT, bytes(64 * PAGE), BUFFER)
    for device, host in areas.items():
        machine.give(host, draw.randbytes(SIZE), device)
    for _ in range(6):
        for host in areas.values():
            size = draw.randrange(1, SIZE)
            machine.program.write(host + draw.randrange(SIZE - size), draw.randbytes(size))
        for _ in range(draw.randrange(1, 4)):
            descriptors: list[tuple[int, int, int]] = []
            for _ in range(draw.randrange(1, 4)):
                size = draw.randrange(1, SIZE)
                for tag in (1, 3):
                    area = draw.choice([*areas])
                    descriptors.append((tag, size, area + draw.randrange(SIZE - size)))
            chunk = program(*descriptors, (4, 0, 0))
            at = 256 * machine.tail
            machine.program.write(PROGRAM_AT + at, chunk)
            machine.queue(BUFFER + at, len(chunk))
            if draw.random() < 0.5:
                machine.work()
        machine.work()
        machine.write("sc_host_int_status", 0xE)
        machine.read("sc_host_int_count")
    machine.driver.close()
    return events


def played(events: list[Event], *, is_cut_short: bool = False) -> Player:
    player = Player(PcieFunction(BusChip), events, is_cut_short=is_cut_short)
    player.play()
    return player


def differences(events: list[Event], *, is_cut_short: bool = False) -> list[str]:
    """What differs first in each place; a fault is one, too."""
    player = played(events, is_cut_short=is_cut_short)
    found = [place.message for place in player.places if place.differences]
    unexpected = player.faults.unexpected
    return [*found, str(unexpected)] if unexpected else found


def flipped(data: Octets, bit: int) -> Octets:
    changed = bytearray(data.b)
    changed[bit // 8 % len(changed)] ^= 1 << bit % 8
    return Octets(bytes(changed))


def changed(event: Event, bit: int) -> Event:
    """The event with one bit of the chip's answer flipped."""
    match event:
        case RegisterRead():
            return msgspec.structs.replace(event, value=event.value ^ 1 << bit % 4)
        case MemoryWrite():
            return msgspec.structs.replace(event, data=flipped(event.data, bit))
        case Interrupt():
            return Interrupt(event.vector ^ 1 << bit % 4)
    raise AssertionError


def test_the_same_device_answers_the_same() -> None:
    assert differences(EVENTS) == []
    places = {place.name: place for place in played(EVENTS).places}
    assert places["interrupt vector 4"].answers == 2
    assert places["register 486D0 sc_host_int_count"].answers == 2
    assert places["memory written"].bytes > 4 * SIZE


@pytest.mark.parametrize("seed", range(25))
def test_any_session_is_answered_the_same(seed: int) -> None:
    events = any_session(seed)
    assert differences(events) == []
    draw = random.Random(seed)
    answers = [n for n, event in enumerate(events) if isinstance(event, MemoryWrite | Interrupt)]
    number = draw.choice(answers)
    wrong = changed(events[number], draw.randrange(1 << 20))
    assert differences([*events[:number], wrong, *events[number + 1 :]])


@pytest.mark.parametrize(
    "number",
    [
        number
        for number, event in enumerate(EVENTS)
        if isinstance(event, RegisterRead | MemoryWrite | Interrupt)
    ],
)
def test_one_changed_bit_of_an_answer_is_found(number: int) -> None:
    event = changed(EVENTS[number], 37 * number)
    assert differences([*EVENTS[:number], event, *EVENTS[number + 1 :]])


@pytest.mark.parametrize("kind", [MemoryRead, MemoryWrite, Interrupt])
def test_what_is_missing_is_found(kind: type[Event]) -> None:
    last = max(number for number, event in enumerate(EVENTS) if isinstance(event, kind))
    assert differences([*EVENTS[:last], *EVENTS[last + 1 :]]) or kind is MemoryRead
    none = [event for event in EVENTS if not isinstance(event, kind)]
    assert differences(none)


def test_a_read_that_the_recording_lacks_is_named() -> None:
    lacking = [
        event
        for event in EVENTS
        if not (isinstance(event, MemoryRead) and event.address >> 12 == INPUT_AT >> 12)
    ]
    assert differences(lacking)[0] == f"the recording has no read of bus address {INPUT_AT:#x}"


def test_counts_may_be_read_later() -> None:
    """The recorded chip had not finished when its counter was read."""
    number, event = next(
        (number, event)
        for number, event in enumerate(EVENTS)
        if isinstance(event, RegisterRead) and event.offset == 0x486D0
    )
    interrupt = next(k for k, e in enumerate(EVENTS) if e == Interrupt(4))
    early = msgspec.structs.replace(event, value=0)
    moved = [*EVENTS[:number], *EVENTS[number + 1 :]]
    assert differences([*moved[:interrupt], early, *moved[interrupt:]]) == []
    assert len(differences([*EVENTS[:number], early, *EVENTS[number + 1 :]])) == 1


def test_a_file_holds_what_was_seen(tmp_path: Path) -> None:
    path = tmp_path / "session"
    with SessionFile(path) as file:
        recorder = Recorder(file.write)
        recorder.register_written(0x485A8, 8, 1)
        recorder.memory_read(1 << 63, b"\0\xff")
        recorder.interrupted(4)
    assert gzip.decompress(path.read_bytes()).splitlines()[0] == b'["wr",296360,8,1]'
    assert RecordedSession(path).first_kind == "wr"
    assert list(RecordedSession(path).events(DECODER)) == [
        RegisterWrite(0x485A8, 8, 1),
        MemoryRead(1 << 63, Octets(b"\0\xff")),
        Interrupt(4),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'["rd", 1, 8]', "length"),
        (b'["rd", 1, 8, -1]', ">= 0"),
        (b'["rd", 1, 8, 1, 2]', "length"),
        (b'["dr", 1, "AA=="]', "object"),
        (b'["dr", 1, {"b": "?"}]', "base64"),
        (b'["out", 1, {"b": ""}]', "Invalid value"),
        (b'{"b": 1}', "array"),
        (b"[" * 100_000, ""),
        (b"\xff", ""),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, text: bytes, reason: str) -> None:
    path = tmp_path / "session"
    path.write_bytes(gzip.compress(b'["irq", 4]\n' + text + b"\n"))
    with pytest.raises(InputError, match="line 2: ") as caught:
        list(RecordedSession(path).events(DECODER))
    assert reason in str(caught.value)


@pytest.mark.parametrize("cut", [1, 9])
def test_a_cut_file_has_what_is_before_the_cut(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "session"
    whole = gzip.compress(b'["irq", 4]\n' * 99)
    path.write_bytes(whole[:-cut])
    session = RecordedSession(path)
    found = list(session.events(DECODER))
    assert found == len(found) * [Interrupt(4)] != []
    assert session.is_cut_short
    path.write_bytes(whole[:12])
    with pytest.raises(InputError, match="no events"):
        RecordedSession(path)


@pytest.mark.parametrize("seed", range(10))
def test_a_session_may_be_cut_short_anywhere(seed: int) -> None:
    events = any_session(seed)
    draw = random.Random(seed)
    answers = [n for n, event in enumerate(events) if isinstance(event, MemoryWrite | Interrupt)]
    for size in {len(events), *draw.sample(range(1, len(events)), 20)}:
        assert differences(events[:size], is_cut_short=True) == []
    number = answers[0]
    wrong = changed(events[number], draw.randrange(1 << 20))
    assert differences([*events[:number], wrong, *events[number + 1 : -1]], is_cut_short=True)


def test_an_empty_session_is_none(tmp_path: Path) -> None:
    path = tmp_path / "session"
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(InputError, match="no events"):
        RecordedSession(path)


def file_of(path: Path, events: list[Event]) -> Path:
    with SessionFile(path) as file:
        for event in events:
            file.write(event)
    return path


def new_function(watchers: tuple[Watcher, ...]) -> PcieFunction:
    return PcieFunction(BusChip, watchers=watchers)


def test_a_session_is_reported(tmp_path: Path) -> None:
    lines: list[str] = []
    found = replay(
        RecordedSession(file_of(tmp_path / "session", EVENTS)), new_function, (Log(lines.append),)
    )
    assert found.verdict is Verdict.PASS
    assert found.message == f"{len(EVENTS)} events, no difference"
    assert "read 486D0 sc_host_int_count -> 2" in lines
    assert "write 485A8 instruction_queue_tail <- 1" in lines
    assert "interrupt 4" in lines


def test_a_fault_of_the_chip_is_reported(tmp_path: Path) -> None:
    """An entry of the page table is another one than recorded."""
    number = next(
        number
        for number, event in enumerate(EVENTS)
        if isinstance(event, RegisterWrite) and event.offset >= 0x5C000
    )
    event = EVENTS[number]
    assert isinstance(event, RegisterWrite)
    wrong = msgspec.structs.replace(event, value=event.value & ~1)
    events = [*EVENTS[:number], wrong, *EVENTS[number + 1 :]]
    found = replay(RecordedSession(file_of(tmp_path / "session", events)), new_function)
    assert found.verdict is Verdict.FAULT
    assert "page fault at device address" in found.message


def faulty_session() -> list[Event]:
    """A chunk at an address that is not mapped, the reset after it, and a request that is right."""
    events: list[Event] = []
    machine = Machine(Recorder(events.append))
    machine.queue(BUFFER + SIZE, 16)
    machine.work()
    assert machine.read("hib_error_status")
    machine.driver.close()
    machine.open()
    chunk = program((1, SIZE, DATA), (3, SIZE, OUTPUT), (4, 0, 0))
    for address, data, device in (
        (PROGRAM_AT, chunk, BUFFER),
        (INPUT_AT, b"right" * 100, DATA),
        (OUTPUT_AT, bytes(SIZE), OUTPUT),
    ):
        machine.give(address, data.ljust(SIZE, b"\0"), device)
    machine.queue(BUFFER, len(chunk))
    machine.work()
    assert machine.read("sc_host_int_count") == 1
    machine.driver.close()
    return events


def test_a_session_goes_on_after_a_fault_that_it_has(tmp_path: Path) -> None:
    events = faulty_session()
    (number,) = (n for n, event in enumerate(events) if isinstance(event, Fault))
    found = replay(RecordedSession(file_of(tmp_path / "session", events)), new_function)
    assert found.verdict is Verdict.PASS
    assert found.message.startswith(
        f"{len(events)} events, no difference; fault as recorded, event {number + 1}: page fault"
    )
    lacking = [*events[:number], *events[number + 1 :]]
    found = replay(RecordedSession(file_of(tmp_path / "session", lacking)), new_function)
    assert found.verdict is Verdict.FAULT
    assert found.message.endswith(" events after it not played")
    last = max(n for n, event in enumerate(events) if isinstance(event, MemoryWrite))
    wrong = [*events[:last], changed(events[last], 1), *events[last + 1 :]]
    found = replay(RecordedSession(file_of(tmp_path / "session", wrong)), new_function)
    assert (found.verdict, found.figures["differences"]) == (Verdict.MISMATCH, 1)


def test_an_access_that_cannot_be_is_bad_input(tmp_path: Path) -> None:
    path = file_of(tmp_path / "session", [Interrupt(4), RegisterWrite(1 << 20, 8, 0)])
    with pytest.raises(InputError, match="line 2: 8 bytes at 0x100000 are no register"):
        replay(RecordedSession(path), new_function)
