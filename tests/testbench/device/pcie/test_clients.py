"""Broken and hostile clients of /dev/apex_0: the device survives, and serves the next one."""

from __future__ import annotations

import errno
import os
import random
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import apex_connection
import pytest
from apex_connection import (
    ANSWER,
    CLOSE,
    COHERENT,
    INPUT,
    IOCTL,
    MAP,
    MEMORY,
    MESSAGE,
    OPEN,
    OUTPUT,
    PAGE,
    READ,
    WRITE,
    Connection,
    Reply,
    honest,
)
from apex_script import Script, build_client
from bus_core import BusCore, program
from darwinn_sim.host.interface import DescriptorFault
from darwinn_sim.host.registers import REGISTERS
from darwinn_sim.pcie.function import PcieFunction
from darwinn_testbench.device.pcie import messages, program_memory, server
from darwinn_testbench.device.pcie.server import Device, Server
from darwinn_testbench.device.pcie.wrapped import environment, shim
from darwinn_testbench.errors import Unavailable

DATA = bytes(range(251)) * 400
SOON = 0.3


class Bench:
    """A device that copies, and what is said of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.function = PcieFunction(BusCore)
        self.device = Device(self.function, self.said.append)

    def connect(self, reply: Reply = honest) -> Connection:
        return Connection(self.folder, reply)

    def opened(self, stack: ExitStack, reply: Reply = honest) -> Connection:
        """A client that gets the device as soon as the one before it has gone, or lost it."""
        connection = stack.enter_context(self.connect(reply))
        assert connection.open() == 0
        return connection

    def serves_the_next(self) -> None:
        """Another client gets right results."""
        with ExitStack() as stack:
            assert self.opened(stack).copy(DATA) == DATA


@contextmanager
def bench_in(folder: Path) -> Iterator[Bench]:
    bench = Bench(folder)
    with Server(bench.device, folder):
        yield bench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(messages, "SECONDS", SOON)
    monkeypatch.setattr(program_memory, "SECONDS", SOON)
    with bench_in(tmp_path) as made:
        yield made
        assert made.device.faults == 0


@pytest.fixture(scope="session")
def library() -> Path:
    try:
        return shim()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def client(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_client(tmp_path_factory.mktemp("client"))


@pytest.fixture
def run(bench: Bench, client: Path, library: Path) -> Callable[[Path], subprocess.Popen[bytes]]:
    def start(script: Path) -> subprocess.Popen[bytes]:
        environ = environment(library, bench.folder)
        return subprocess.Popen([client, script], env=environ, stdout=subprocess.PIPE)

    return start


# Messages.


@pytest.mark.parametrize("size", [1, MESSAGE.size - 1])
def test_half_a_message_and_silence(bench: Bench, size: int) -> None:
    with ExitStack() as stack:
        connection = bench.opened(stack)
        connection.socket.sendall(bytes(size))
        assert connection.socket.recv(1) == b"", "it is turned away"
        bench.serves_the_next()
    assert f"{size} of {MESSAGE.size} bytes" in bench.said[0]


def test_half_a_message_and_the_end(bench: Bench) -> None:
    with ExitStack() as stack:
        bench.opened(stack).socket.sendall(bytes(MESSAGE.size // 2))
    bench.serves_the_next()


def test_a_message_in_pieces(bench: Bench) -> None:
    with ExitStack() as stack:
        connection = bench.opened(stack)
        for octet in MESSAGE.pack(READ, 0, 0x48578, *(0,) * 4):
            connection.socket.sendall(bytes([octet]))
        assert MESSAGE.unpack(connection.socket.recv(MESSAGE.size))[2] == 16


@pytest.mark.parametrize("what", [0, 6, 0xFFFF_FFFF])
def test_an_operation_that_is_none(bench: Bench, what: int) -> None:
    with ExitStack() as stack:
        connection = bench.opened(stack)
        with pytest.raises((EOFError, ConnectionError)):
            connection.ask(what)
        bench.serves_the_next()


def test_noise(bench: Bench) -> None:
    noise = random.Random(1)
    for _ in range(20):
        with bench.connect() as connection:
            connection.socket.sendall(noise.randbytes(noise.randrange(1, 500)))
    bench.serves_the_next()


def test_answers_that_nobody_takes(bench: Bench) -> None:
    with ExitStack() as stack:
        connection = bench.opened(stack)
        question = MESSAGE.pack(READ, 0, 0x48578, *(0,) * 4)
        connection.socket.settimeout(SOON)
        with pytest.raises(OSError, match=r"timed out|reset|Broken pipe"):
            while True:
                connection.socket.sendall(question * 1000)
        deadline = time.monotonic() + 20
        while not bench.said and time.monotonic() < deadline:
            time.sleep(0.01)
        assert "an answer is not taken" in bench.said[0]
        bench.serves_the_next()


def test_many_connections(bench: Bench) -> None:
    with ExitStack() as stack:
        for _ in range(server.MAX_CONNECTIONS):
            stack.enter_context(bench.connect())
        late = stack.enter_context(bench.connect())
        with pytest.raises((EOFError, ConnectionError)):
            late.ask(OPEN)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            return bench.serves_the_next()
        except (EOFError, ConnectionError):
            time.sleep(0.01)
    pytest.fail("nobody is served any more")


def test_another_user_is_turned_away(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with bench.connect() as connection, pytest.raises((EOFError, ConnectionError)):
        connection.ask(OPEN)
    monkeypatch.undo()
    bench.serves_the_next()


# What a client may ask.


def any_request(draw: random.Random) -> tuple[int, int, tuple[int, ...]]:
    """Mostly a write to a register of a window; now and then anything."""
    if draw.random() < 0.2:
        words = tuple(draw.getrandbits(draw.choice((1, 13, 33, 64))) for _ in range(5))
        kind = draw.choice((READ, WRITE, IOCTL))
        return kind, draw.choice((0xDC00, 0x7F00)) | draw.randrange(16), words
    entry = draw.choice([each for each in REGISTERS if each.offset & ~0xFFF in server.WINDOWS])
    return WRITE, 0, (entry.offset, draw.getrandbits(draw.choice((1, 2, 9, 64))))


@pytest.mark.parametrize("seed", range(20))
def test_any_requests(tmp_path: Path, seed: int) -> None:
    """The chip may have faults of its own then, and the client is answered."""
    draw = random.Random(seed)
    with bench_in(tmp_path) as bench:
        with ExitStack() as stack:
            connection = bench.opened(stack)
            for _ in range(200):
                kind, argument, words = any_request(draw)
                connection.ask(kind, argument, *words)
        bench.serves_the_next()


@pytest.mark.parametrize(
    ("operation", "argument", "words", "error"),
    [
        (READ, 0, (0x50000,), errno.EINVAL),
        (WRITE, 0, (0x46008, 0), errno.EINVAL),
        (READ, 0, (0x48571,), errno.EINVAL),
        (READ, 0, (1 << 63,), errno.EINVAL),
        (IOCTL, 0xDC63, (), errno.ENOTTY),
        (IOCTL, 0x1234_5678, (), errno.ENOTTY),
        (IOCTL, MAP, (1, PAGE, MEMORY, INPUT), errno.EINVAL),
        (IOCTL, MAP, (0, PAGE, MEMORY, INPUT), errno.EBUSY),
        (IOCTL, MAP, (0, PAGE, (1 << 56) + 4 * PAGE, 0x5000), errno.EFAULT),
        (IOCTL, MAP, (0, (1 << 64) - 1, MEMORY, 0), errno.EINVAL),
        (IOCTL, COHERENT, (0, 1, 4 * PAGE), errno.EBUSY),
        (IOCTL, COHERENT, (0, 1, 1 << 60), errno.EINVAL),
        (IOCTL, 0x7F01, (4,), errno.EINVAL),
    ],
)
def test_what_cannot_be_is_refused(
    bench: Bench, operation: int, argument: int, words: tuple[int, ...], error: int
) -> None:
    with ExitStack() as stack:
        connection = bench.opened(stack)
        assert connection.ask(operation, argument, *words)[0] == error
        assert connection.copy(DATA) == DATA


@pytest.mark.parametrize("operation", [CLOSE, READ, WRITE, IOCTL])
def test_nothing_before_it_is_open(bench: Bench, operation: int) -> None:
    with bench.connect() as connection:
        assert connection.ask(operation, 0, 0x48578)[0] == errno.EBADF
    bench.serves_the_next()


def test_a_client_cannot_shrink_what_it_shares(bench: Bench) -> None:
    with bench.connect() as connection:
        connection.ask(OPEN)
        _, _, descriptor = connection.ask(IOCTL, COHERENT, 0, 1, 4 * PAGE)
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, 0)
        os.close(descriptor)


def test_nobody_else_can_enter_the_folder_of_the_socket(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with bench_in(tmp_path):
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_two_clients_at_once(bench: Bench) -> None:
    with ExitStack() as stack, bench.connect() as second:
        first = bench.opened(stack)
        assert second.open() == errno.EBUSY
        assert first.copy(DATA) == DATA
        assert second.ask(READ, 0, 0x48578)[0] == errno.EBADF
        assert first.ask(CLOSE)[0] == 0
        assert second.open() == 0
        assert second.copy(DATA) == DATA


def test_a_client_opens_it_several_times(bench: Bench) -> None:
    with ExitStack() as stack:
        connection = bench.opened(stack)
        for _ in range(3):
            assert connection.ask(OPEN)[0] == 0
        for _ in range(3):
            assert connection.ask(CLOSE)[0] == 0
        assert connection.copy(DATA) == DATA


# Accesses of the chip to a client's memory.


def late(self: Connection, kind: int, address: int, size: int, data: bytes) -> bytes | None:
    time.sleep(3 * SOON)
    return honest(self, kind, address, size, data)


def never(self: Connection, kind: int, address: int, size: int, data: bytes) -> bytes | None:
    time.sleep(10 * SOON)
    return None


def half(self: Connection, kind: int, address: int, size: int, data: bytes) -> bytes | None:
    whole = honest(self, kind, address, size, data)
    return whole and whole[: len(whole) // 2]


def short(self: Connection, kind: int, address: int, size: int, data: bytes) -> bytes | None:
    return ANSWER.pack(0, size - 1) + bytes(size - 1)


def long(self: Connection, kind: int, address: int, size: int, data: bytes) -> bytes | None:
    return ANSWER.pack(0, 0xFFFF_FFFF)


def refusing(self: Connection, kind: int, address: int, size: int, data: bytes) -> bytes | None:
    return ANSWER.pack(errno.EFAULT, size)


def in_drops(self: Connection, kind: int, address: int, size: int, data: bytes) -> bytes | None:
    """Some bytes now and then: all within one deadline, or not."""
    assert self.channel is not None
    for octet in honest(self, kind, address, size, data) or b"":
        self.channel.sendall(bytes([octet]))
        time.sleep(SOON / 50)
    return b""


@pytest.mark.parametrize("reply", [late, never, half, short, long, refusing, in_drops])
def test_wrong_answers_of_memory(bench: Bench, reply: Reply) -> None:
    with ExitStack() as stack:
        connection = bench.opened(stack, reply)
        with pytest.raises((EOFError, ConnectionError)):
            connection.queue((1, len(DATA), INPUT), (3, len(DATA), OUTPUT), (4, 0, 0))
            while True:
                connection.get("hib_error_status")
                time.sleep(0.01)
        bench.serves_the_next()
    assert "program" in bench.said[0]
    assert "DMA read of" in bench.said[0]


def test_only_writes_are_not_answered(bench: Bench) -> None:
    def reply(self: Connection, kind: int, address: int, size: int, data: bytes) -> bytes | None:
        return honest(self, kind, address, size, data) if kind == 1 else b""

    with ExitStack() as stack:
        connection = bench.opened(stack, reply)
        with pytest.raises((EOFError, ConnectionError)):
            connection.queue((1, len(DATA), INPUT), (3, len(DATA), OUTPUT), (4, 0, 0))
            while True:
                connection.get("hib_error_status")
                time.sleep(0.01)
        bench.serves_the_next()
    assert "DMA write of" in bench.said[0]


def test_a_client_ends_while_its_memory_is_read(bench: Bench) -> None:
    asked = threading.Event()

    def reply(self: Connection, kind: int, address: int, size: int, data: bytes) -> bytes | None:
        asked.set()
        return None

    with ExitStack() as stack:
        bench.opened(stack, reply).queue((1, len(DATA), INPUT))
        assert asked.wait(20)
    bench.serves_the_next()
    assert bench.said == []


# Programs behind the shim.


def copying(folder: Path, *more: str) -> tuple[Script, Path]:
    """A script that copies ``DATA``; where the client puts what comes back."""
    script = Script(folder)
    given = script.map(len(DATA), 1, DATA, within=128)
    taken = script.map(len(DATA), 2, None)
    code = program((1, len(DATA), given), (3, len(DATA), taken), (4, 0, 0))
    script.lines.append(f"queue {script.map(len(code), 1, code):#x} {len(code)}")
    script.lines += more
    script.requests = 1
    return script, script.save(taken)


Start = Callable[[Path], "subprocess.Popen[bytes]"]


def comes_back(folder: Path, run: Start) -> None:
    script, path = copying(folder, "wait 1")
    process = run(script.write("close"))
    assert process.wait(60) == 0
    assert path.read_bytes() == DATA


def test_a_program_finds_and_uses_the_device(bench: Bench, run: Start, tmp_path: Path) -> None:
    script = Script(tmp_path)
    process = run(script.write("list", "instructions", "hammer 300", "close", "open", "close"))
    shown, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert shown == b"apex_0\n"
    comes_back(tmp_path, run)
    assert bench.said == []


@pytest.mark.parametrize(
    "lines", [("handler", "open"), ("open", "handler")], ids=["before", "after"]
)
def test_a_program_has_its_own_faults(
    bench: Bench, run: Start, tmp_path: Path, lines: tuple[str, ...]
) -> None:
    script = Script(tmp_path)
    script.lines = [*lines]
    assert run(script.write("instructions", "crash")).wait(60) == 7
    comes_back(tmp_path, run)


def test_a_program_without_a_handler_crashes(run: Start, tmp_path: Path) -> None:
    assert run(Script(tmp_path).write("crash")).wait(60) == -signal.SIGSEGV
    comes_back(tmp_path, run)


def test_an_instruction_that_cannot_be_carried_out_is_named(
    run: Start, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(Script(tmp_path).write("strings")).wait(60) == -signal.SIGSEGV
    assert "registers cannot be accessed by the instruction f3 48 a5" in capfd.readouterr().err
    comes_back(tmp_path, run)


def test_for_a_child_the_device_is_gone(run: Start, tmp_path: Path) -> None:
    assert run(Script(tmp_path).write("fork", "instructions", "close")).wait(60) == 0
    comes_back(tmp_path, run)


@pytest.mark.parametrize("last", ["close", "drop", "die"])
def test_a_program_leaves_in_the_middle(
    bench: Bench, run: Start, tmp_path: Path, last: str
) -> None:
    script, _ = copying(tmp_path)
    script.lines.pop()
    assert run(script.write(last)).wait(60) in (0, -9)
    comes_back(tmp_path, run)
    assert bench.said == []


def test_a_program_is_killed_at_any_moment(bench: Bench, run: Start, tmp_path: Path) -> None:
    moments = random.Random(4)
    again = [line for each in range(40) for line in ("hammer 5", "close", "open")]
    for _ in range(12):
        process = run(Script(tmp_path).write(*again))
        time.sleep(moments.uniform(0, 0.3))
        process.kill()
        process.wait(60)
    comes_back(tmp_path, run)
    assert bench.said == []


def test_a_program_frees_what_the_chip_reads(bench: Bench, run: Start, tmp_path: Path) -> None:
    script = Script(tmp_path)
    given = script.map(len(DATA), 1, DATA)
    code = program((1, len(DATA), given))
    script.lines.append(f"free {given:#x}")
    script.lines.append(f"queue {script.map(len(code), 1, code):#x} {len(code)}")
    process = run(script.write("sleep 1"))
    assert process.wait(60) == 0
    comes_back(tmp_path, run)
    assert "Bad address" in bench.said[0]


def test_memory_that_is_not_there_is_not_mapped(run: Start, tmp_path: Path) -> None:
    script = Script(tmp_path)
    address = script.map(64, 1, b"")
    mapped = script.lines.pop()
    script.lines += [mapped, f"expect {errno.EBUSY} {mapped}", f"unmap {address:#x}", mapped]
    assert run(script.write("close")).wait(60) == 0


def test_a_second_program_is_told_that_it_is_busy(run: Start, tmp_path: Path) -> None:
    first = run(Script(tmp_path).write("say open", "sleep 60"))
    assert first.stdout is not None
    assert first.stdout.readline() == b"open\n"
    second = Script(tmp_path)
    second.lines = [f"expect {errno.EBUSY} open"]
    assert run(second.write()).wait(60) == 0
    first.kill()
    first.wait(60)
    comes_back(tmp_path, run)


def test_a_fault_is_told_and_ends_with_the_program(
    tmp_path: Path, client: Path, library: Path
) -> None:
    script = Script(tmp_path)
    code = program((1, 64, apex_connection.OUTPUT))
    script.lines.append(f"queue {script.map(len(code), 1, code):#x} {len(code)}")
    with bench_in(tmp_path) as bench:
        environ = environment(library, tmp_path)
        faulty = script.write("wait 1")
        assert subprocess.run([client, faulty], env=environ, check=False).returncode == 3
        bench.serves_the_next()
    assert bench.device.faults == 1
    assert "page fault at device address 0x8000000000300000" in bench.said[0]


def test_a_fault_without_interrupt_is_one(tmp_path: Path) -> None:
    with bench_in(tmp_path) as bench, ExitStack() as stack:
        bench.opened(stack).queue((9, 1, 0))
        assert bench.device.faulted.wait(20)
        assert isinstance(bench.function.core.fault, DescriptorFault)
        stack.close()
        bench.serves_the_next()


def test_the_device_ends_before_the_program(
    tmp_path: Path, client: Path, library: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is read of registers that are gone is all ones, and the program goes on."""
    with bench_in(tmp_path):
        program = subprocess.Popen(
            [client, Script(tmp_path).write("say open", "sleep 0.5", "instructions")],
            env=environment(library, tmp_path),
            stdout=subprocess.PIPE,
        )
        assert program.stdout is not None
        assert program.stdout.readline() == b"open\n"
    assert program.wait(60) == 1
    said = capfd.readouterr().err
    assert "darwinn: /dev/apex_0: the device is gone" in said
    assert "mov: ffffffffffffffff" in said
