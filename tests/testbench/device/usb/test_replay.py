"""Recorded sessions: the same device answers the same, and one changed bit is found."""

from __future__ import annotations

import gzip
import os
import resource
import struct
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from darwinn_sim.usb.descriptors import Mode, Speed
from darwinn_sim.usb.endpoints import Status, Transfer
from darwinn_sim.usb.errors import Stall
from darwinn_sim.usb.function import UsbFunction
from darwinn_sim.usb.requests import Setup
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.device.answers import Answers
from darwinn_testbench.device.trace import CutShort, Fault, Octets, RecordedSession, SessionFile
from darwinn_testbench.device.usb.events import (
    DECODER,
    Control,
    Device,
    Event,
    Received,
    Recorder,
    Reset,
    Sent,
)
from darwinn_testbench.device.usb.replay import Player, replay
from darwinn_testbench.report import Report, Verdict
from echo_chip import RUN, echo


def message(tag: int, payload: bytes) -> bytes:
    return struct.pack("<II", len(payload), tag) + payload


def recorded(path: Path) -> list[Event]:
    """A session with an echo chip: firmware, an error, two programs, a reset, a third program."""
    with SessionFile(path) as file:
        function = UsbFunction(echo, watchers=(Recorder(file.write),))
        for block, data in enumerate((b"firmware", b"")):
            function.control(Setup(0x21, 1, block, 0, len(data)), data)
            function.control(Setup(0xA1, 3, 0, 0, 6))
        with pytest.raises(Stall):
            function.control(Setup(0x80, 6, 0x300, 0, 255))
        function.reset()
        function.control(Setup(0x80, 6, 0x100, 0, 18))
        for text in (b"first", b"again", b"third"):
            run = Setup(0x40, 0, RUN & 0xFFFF, RUN >> 16, 8)
            function.control(run, (1).to_bytes(8, "little"))
            stream = message(0, bytes((1, 5, 3, 5, 4, 0))) + message(1, text)
            for piece in (stream[:9], stream[9:]):
                function.submit(Transfer(1, lambda transfer: None, data=piece))
            while function.work():
                pass
            for endpoint in (0x82, 0x81):
                function.submit(Transfer(endpoint, lambda transfer: None, length=64))
            if text == b"again":
                function.reset()
        function.reset()
    return list(RecordedSession(path).events(DECODER))


def played(
    events: Iterable[Event], mode: Mode = Mode.BOOT, *, is_cut_short: bool = False
) -> dict[str, Answers]:
    player = Player(UsbFunction(echo, mode=mode))
    for event in events:
        player.play(event)
    player.end(is_cut_short=is_cut_short)
    return {place.name: place.row() for place in player.places}


def differences(events: Iterable[Event]) -> int:
    return sum(row.differences for row in played(events).values())


@pytest.fixture
def events(tmp_path: Path) -> list[Event]:
    return recorded(tmp_path / "session")


def test_the_same_device_answers_the_same(events: list[Event]) -> None:
    rows = played(events)
    assert {name: (row.answers, row.bytes) for name, row in rows.items()} == {
        "control requests": (4, 6 + 6 + 18),
        "endpoint 1": (3, 15),
        "endpoint 2": (3, 48),
        "endpoint 3": (0, 0),
    }
    assert {row.verdict for row in rows.values()} == {Verdict.PASS}


def flipped(data: Octets, bit: int) -> Octets:
    changed = bytearray(data.b)
    changed[bit // 8 % len(changed)] ^= 1 << bit % 8
    return Octets(bytes(changed))


def test_one_changed_bit_of_an_answer_is_found(events: list[Event]) -> None:
    found = 0
    for number, event in enumerate(events):
        if isinstance(event, Received):
            other: Event = Received(event.endpoint, flipped(event.data, 37 * number))
        elif isinstance(event, Control) and isinstance(event.answer, Octets):
            other = msgspec.structs.replace(event, answer=flipped(event.answer, 37 * number))
        else:
            continue
        assert differences([*events[:number], other, *events[number + 1 :]]) == 1
        found += 1
    assert found == 9


def test_an_answer_in_place_of_a_stall_is_found(events: list[Event]) -> None:
    (number,) = (
        number
        for number, event in enumerate(events)
        if isinstance(event, Control) and event.setup.to_host and event.answer is None
    )
    stalled = events[number]
    assert isinstance(stalled, Control)
    for other in (
        msgspec.structs.replace(stalled, answer=Octets(b"text")),
        msgspec.structs.replace(stalled, value=0x100),
    ):
        assert differences([*events[:number], other, *events[number + 1 :]]) == 1


def stalled_requests(path: Path) -> list[Event]:
    """A session of requests to the device that it does not take: a short register, a setting."""
    with SessionFile(path) as file:
        watchers = (Recorder(file.write),)
        function = UsbFunction(echo, mode=Mode.APPLICATION, watchers=watchers)
        for setup, data in (
            (Setup(0x40, 1, 0xA500, 1, 1), b"\1"),
            (Setup(0x01, 11, 1, 0, 0), b""),
        ):
            with pytest.raises(Stall):
                function.control(setup, data)
        function.control(Setup(0x40, 1, 0xA500, 1, 4), bytes(4))
    return list(RecordedSession(path).events(DECODER))


def test_a_stalled_request_to_the_device_is_compared(tmp_path: Path) -> None:
    path = tmp_path / "session"
    events = stalled_requests(path)
    assert b'["control",64,1,42240,1,{"b":"AQ=="},1,"stall"]' in gzip.decompress(path.read_bytes())
    rows = played(events, Mode.APPLICATION)
    assert {row.verdict for row in rows.values()} == {Verdict.PASS}
    for number, event in enumerate(events):
        assert isinstance(event, Control)
        other = msgspec.structs.replace(event, answer=None if event.answer else "stall")
        changed = [*events[:number], other, *events[number + 1 :]]
        row = played(changed, Mode.APPLICATION)["control requests"]
        assert row.differences == 1
        said = "the device stalls it" if event.answer else "recorded a stall, the device accepts it"
        assert row.message == f"event {number + 1}, {event.setup}: {said}"


def test_pieces_and_the_order_between_endpoints_are_no_part_of_it(events: list[Event]) -> None:
    pieces: list[Event] = []
    for event in events:
        if isinstance(event, Received) and event.endpoint == 1:
            halves = (event.data.b[:2], event.data.b[2:])
            pieces[-1:-1] = [Received(1, Octets(half)) for half in halves]
        elif isinstance(event, Sent):
            pieces += [Sent(1, Octets(bytes([byte]))) for byte in event.data.b]
        else:
            pieces.append(event)
    assert differences(pieces) == 0


def test_what_is_missing_is_found(events: list[Event]) -> None:
    last = max(number for number, event in enumerate(events) if isinstance(event, Received))
    rows = played([*events[:last], *events[last + 1 :]])
    assert rows["endpoint 1"].message == "5 bytes more than the recording has"
    last = max(number for number, event in enumerate(events) if isinstance(event, Sent))
    rows = played([*events[:last], *events[last + 1 :]])
    assert "the device gives nothing" in rows["endpoint 1"].message


def test_the_last_reset_is_written_if_something_was_under_way(tmp_path: Path) -> None:
    for sent, resets in ((b"", 0), (b"half", 1)):
        path = tmp_path / "session"
        with SessionFile(path) as file:
            function = UsbFunction(echo, mode=Mode.APPLICATION, watchers=(Recorder(file.write),))
            function.submit(Transfer(1, lambda transfer: None, data=sent))
            function.reset()
        assert gzip.decompress(path.read_bytes()).count(b'["reset"]') == resets


@pytest.mark.parametrize(
    "event",
    [
        '["control", 256, 0, 0, 0, null, 8, null]',
        '["control", 192, 0, 65536, 0, null, 8, null]',
        '["control", 192, 0, 0, 0, null, 8]',
        '["out", 0, {"b": ""}]',
        '["in", 1, {"b": "?"}]',
        '["reset", 1]',
        '["jump"]',
    ],
)
def test_a_broken_line_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], event: str
) -> None:
    path = tmp_path / "session"
    path.write_bytes(gzip.compress(f'["reset"]\n{event}\n'.encode()))
    assert run_command_line(["device", "--replay", str(path)]) == 2
    assert f"{path}: line 2: " in capsys.readouterr().err


def faulty(path: Path) -> list[Event]:
    """A session with a message of a wrong tag, the reset after it, and a program that is right."""
    with SessionFile(path) as file:
        function = UsbFunction(
            echo, mode=Mode.APPLICATION, speed=Speed.HIGH, watchers=(Recorder(file.write),)
        )
        function.control(Setup(0x80, 6, 0x100, 0, 18))
        for stream, endpoints in (
            (message(9, b"junk"), ()),
            (message(0, bytes((1, 5, 3, 5, 4, 0))) + message(1, b"right"), (0x82, 0x81)),
        ):
            function.control(Setup(0x40, 0, RUN & 0xFFFF, RUN >> 16, 8), bytes((1, *bytes(7))))
            function.submit(Transfer(1, lambda transfer: None, data=stream))
            while function.work():
                pass
            for endpoint in endpoints:
                function.submit(Transfer(endpoint, lambda transfer: None, length=64))
            function.control(Setup(0xC0, 0, 0x86F0, 4, 8))
            function.reset()
    return list(RecordedSession(path).events(DECODER))


def replay_of(path: Path, events: Iterable[Event], patch: pytest.MonkeyPatch) -> Report[Answers]:
    """What is said of these events, by an echo chip."""

    def new_function(**options: Any) -> UsbFunction:
        return UsbFunction(echo, speed=options["speed"], mode=Mode.APPLICATION)

    patch.setattr("darwinn_testbench.device.usb.replay.new_function", new_function)
    patch.setattr("darwinn_testbench.device.usb.replay.compile_kernels", lambda: None)
    with SessionFile(path) as file:
        for event in events:
            file.write(event)
    return replay(RecordedSession(path))


FAULT = "message at byte 0 of endpoint 1: tag 9 is none that a host sends"


def test_a_session_goes_on_after_a_fault_that_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = faulty(tmp_path / "session")
    (number,) = (n for n, event in enumerate(events, 1) if isinstance(event, Fault))
    report = replay_of(tmp_path / "again", events, monkeypatch)
    assert report.verdict is Verdict.PASS
    assert report.message == (
        f"{len(events)} events, no difference; fault as recorded, event {number}: {FAULT}"
    )
    assert {row.name: row.answers for row in report.rows}["faults"] == 1
    last = next(n for n, event in enumerate(events) if event == Received(1, Octets(b"right")))
    events[last] = Received(1, Octets(b"wrong"))
    assert replay_of(tmp_path / "again", events, monkeypatch).figures["differences"] == 1


def test_of_many_faults_some_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = faulty(tmp_path / "session")
    reset = next(n for n, event in enumerate(events) if isinstance(event, Reset)) + 1
    report = replay_of(tmp_path / "again", 5 * events[:reset] + events[reset:], monkeypatch)
    assert report.verdict is Verdict.PASS
    assert report.message.count("tag 9") == 3
    assert report.message.endswith("; 2 more faults as recorded")


def test_a_fault_that_the_session_does_not_have_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = faulty(tmp_path / "session")
    number = next(n for n, event in enumerate(events) if isinstance(event, Fault))
    for other in ([], [Fault("another one")]):
        changed = [*events[:number], *other, *events[number + 1 :]]
        report = replay_of(tmp_path / "again", changed, monkeypatch)
        assert report.verdict is Verdict.FAULT
        left = len(changed) - number
        assert report.message == f"event {number}: {FAULT}; {left} events after it not played"


def test_a_fault_that_only_the_session_has_is_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = faulty(tmp_path / "session")
    number, reset = (
        next(n for n, event in enumerate(events) if isinstance(event, kind))
        for kind in (Fault, Reset)
    )
    events.insert(len(events), Fault("late"))
    report = replay_of(tmp_path / "again", events, monkeypatch)
    row = report.rows[-1]
    assert (report.verdict, row.name, row.differences) == (Verdict.MISMATCH, "faults", 1)
    assert row.message == f"event {len(events)}: recorded 'late', the device has no fault"
    moved = [
        *events[:number],
        *events[number + 1 : reset + 1],
        events[number],
        *events[reset + 1 : -1],
    ]
    report = replay_of(tmp_path / "again", moved, monkeypatch)
    assert report.rows[-1].message == f"event {reset} ends the fault that event {reset + 1} is"


@pytest.fixture(scope="module")
def trace() -> Path:
    """A recorded session of the vendor's driver."""
    folder = os.environ.get("DARWINN_TRACES")
    if not folder and "DARWINN_CORPUS" in os.environ:
        folder = str(Path(os.environ["DARWINN_CORPUS"]).parent / "traces")
    path = Path(folder or "") / "dense_edgetpu.usb.trace"
    if not folder or not path.is_file():
        pytest.skip("no recorded sessions: neither DARWINN_TRACES nor a folder beside the corpus")
    return path


def test_the_vendors_driver_would_get_the_same(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["device", "--replay", str(trace)]) == 0
    assert "243 events, no difference" in capsys.readouterr().out


@pytest.mark.parametrize("endpoint", [1, 2])
def test_a_bit_that_the_vendors_driver_did_not_get_is_found(
    trace: Path, tmp_path: Path, endpoint: int
) -> None:
    events = list(RecordedSession(trace).events(DECODER))
    number = next(
        number
        for number, event in enumerate(events)
        if isinstance(event, Received) and event.endpoint == endpoint
    )
    event = events[number]
    assert isinstance(event, Received)
    events[number] = Received(endpoint, flipped(event.data, 100))
    path = tmp_path / "changed"
    with SessionFile(path) as file:
        for event in events:
            file.write(event)
    report = replay(RecordedSession(path))
    assert report.verdict is Verdict.MISMATCH
    assert report.figures["differences"] == 1


def test_the_speed_is_that_of_the_recorded_device(tmp_path: Path) -> None:
    path = tmp_path / "session"
    with SessionFile(path) as file:
        function = UsbFunction(echo, speed=Speed.HIGH, watchers=(Recorder(file.write),))
        function.control(Setup(0x80, 6, 0x100, 0, 18))
        function.control(Setup(0x80, 6, 0x200, 0, 521))
    assert replay(RecordedSession(path)).verdict is Verdict.PASS


@pytest.mark.parametrize("speed", [Speed.HIGH, Speed.SUPER])
@pytest.mark.parametrize("mode", [Mode.BOOT, Mode.APPLICATION])
def test_what_the_session_began_with_is_in_it(tmp_path: Path, mode: Mode, speed: Speed) -> None:
    """The only request is for the configuration, which tells neither mode nor speed to a reader."""
    path = tmp_path / "session"
    with SessionFile(path) as file:
        recorder = Recorder(file.write, Device.of(mode, speed))
        function = UsbFunction(echo, mode=mode, speed=speed, watchers=(recorder,))
        function.control(Setup(0x80, 6, 0x200, 0, 521))
    report = replay(RecordedSession(path))
    assert (report.verdict, report.figures["events"]) == (Verdict.PASS, 1)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ('["device", "boot", "low"]', "line 1: Invalid enum value 'low'"),
        ('["device", "boot", "high"]', "the session has no events"),
        ('["reset"]\n["device", "boot", "high"]', 'after 1 event there is another "device"'),
    ],
)
def test_a_wrong_beginning_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: str, reason: str
) -> None:
    path = tmp_path / "session"
    path.write_bytes(gzip.compress(f"{lines}\n".encode()))
    assert run_command_line(["device", "--replay", str(path)]) == 2
    assert f"{path}: {reason}" in capsys.readouterr().err


def test_a_session_is_read_once_so_that_a_pipe_will_do(tmp_path: Path) -> None:
    path, pipe = tmp_path / "session", tmp_path / "pipe"
    events = recorded(path)
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(path.read_bytes()), daemon=True)
    writer.start()
    session = RecordedSession(pipe)
    assert session.first_kind == "control"
    assert list(session.events(DECODER)) == events


def part_of(path: Path) -> Path:
    """What is beside a recording that is not whole."""
    (part,) = path.parent.glob(f"{path.name}.*.part")
    return part


def test_a_recording_has_each_event_as_soon_as_it_has_passed(
    tmp_path: Path, events: list[Event]
) -> None:
    path = tmp_path / "another"
    with SessionFile(path) as file:
        for number, event in enumerate(events, 1):
            file.write(event)
            session = RecordedSession(part_of(path))
            assert list(session.events(DECODER)) == events[:number]
            assert session.is_cut_short
    assert list(RecordedSession(path).events(DECODER)) == events
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "session"]


def test_a_session_may_be_cut_short_anywhere(events: list[Event]) -> None:
    for size in range(1, len(events)):
        rows = played(events[:size], is_cut_short=True).values()
        assert [row.message for row in rows if row.differences] == []
    last = max(n for n, event in enumerate(events) if isinstance(event, Received))
    event = events[last]
    assert isinstance(event, Received)
    wrong = Received(event.endpoint, flipped(event.data, 1))
    assert sum(row.differences for row in played([*events[:last], wrong]).values())


def test_that_a_replayed_session_is_cut_short_is_said(tmp_path: Path) -> None:
    path = tmp_path / "session"
    event = msgspec.json.encode(Sent(1, Octets(b"")))
    path.write_bytes(gzip.compress(event + b"\n" + event + b"\n")[:-5])
    report = replay(RecordedSession(path))
    assert report.verdict is Verdict.PASS
    assert report.message.startswith("2 events, no difference; the recording is cut short")
    assert report.to_dict()["cut_short"] is True


def test_that_a_replayed_session_is_whole_is_said(tmp_path: Path) -> None:
    path = tmp_path / "session"
    path.write_bytes(gzip.compress(msgspec.json.encode(Sent(1, Octets(b""))) + b"\n"))
    report = replay(RecordedSession(path))
    assert report.message == "1 event, no difference"
    assert report.to_dict()["cut_short"] is False


@pytest.fixture
def small_files() -> Iterator[None]:
    """Files have 64 KiB at most: as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("small_files")
def test_what_could_be_written_of_a_recording_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "session"
    path.write_bytes(b"older")
    events = [Sent(1, Octets(os.urandom(1 << 14))) for _ in range(9)]
    with pytest.raises(CutShort) as caught, SessionFile(path) as file:
        for event in events:
            file.write(event)
    part = part_of(path)
    assert str(caught.value) == (
        f"{path}: File too large: the recording is cut short; 3 events are in {part}"
    )
    assert list(RecordedSession(part).events(DECODER)) == events[:3]
    assert path.read_bytes() == b"older"


def test_a_device_goes_on_when_the_recording_does_not() -> None:
    done: list[Transfer] = []
    with (
        pytest.raises(CutShort, match=r"^/dev/full: No space left"),
        SessionFile(Path("/dev/full")) as file,
    ):
        function = UsbFunction(echo, mode=Mode.APPLICATION, watchers=(Recorder(file.write),))
        for _ in range(2):
            function.submit(Transfer(1, done.append, data=os.urandom(1 << 15)))
    assert [each.status for each in done] == 2 * [Status.COMPLETED]


def test_an_older_recording_stays_until_another_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "session"
    path.write_bytes(b"older")
    with pytest.raises(PermissionError, match="of the device"), SessionFile(path) as file:
        file.write(Reset())
        raise PermissionError("of the device")
    assert path.read_bytes() == b"older"
    part_of(path).unlink()
    with pytest.raises(PermissionError), SessionFile(path):
        raise PermissionError("before anything has passed")
    with SessionFile(path) as first, SessionFile(path) as second:
        first.write(Reset())
        assert path.read_bytes() == b"older"
        second.write(Sent(1, Octets(b"")))
    assert list(RecordedSession(path).events(DECODER)) == [Reset()]
    assert list(tmp_path.iterdir()) == [path]
