"""Broken and hostile clients of /dev/apex_0: the device survives, and serves the next one."""

from __future__ import annotations

import errno
import os
import random
import stat
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from apex_bench import DATA, PATIENCE, SOON, Bench, bench_in, wait_at_most
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
    READ,
    WRITE,
    Connection,
    Reply,
    honest,
)
from apex_queue import PAGE
from darwinn_sim.host.descriptors import DescriptorFault
from darwinn_sim.host.registers import REGISTERS
from darwinn_testbench.device.pcie import messages, program_memory, server


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices do not wait long for what clients owe; until the next client is served."""
    for module in (messages, program_memory):
        monkeypatch.setattr(module, "SECONDS", SOON)


# Messages.


@pytest.mark.usefixtures("hasty")
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


@pytest.mark.usefixtures("hasty")
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
    entry = draw.choice(
        [each for each in REGISTERS if each.offset & ~0xFFF in messages.REGISTER_PAGES]
    )
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


def any_message(draw: random.Random) -> bytes:
    """Mostly of a kind that there is, in any order and with any fields; or anything."""
    if draw.random() < 0.05:
        return draw.randbytes(draw.randrange(200))
    if draw.random() < 0.5:
        kind, argument, words = any_request(draw)
        return MESSAGE.pack(kind, argument, *words, *(0,) * (5 - len(words)))
    words = tuple(draw.choice((0, 1, PAGE, draw.getrandbits(64))) for _ in range(5))
    return MESSAGE.pack(draw.choice((OPEN, OPEN, CLOSE, draw.getrandbits(3))), 0, *words)


@pytest.mark.usefixtures("hasty")
def test_any_sequences(bench: Bench) -> None:
    """Nobody answers for memory, answers are read or not, and the last message may be half."""
    for seed in range(200):
        draw = random.Random(seed)
        messages = [any_message(draw) for _ in range(draw.randrange(1, 20))]
        if draw.random() < 0.3:
            messages[-1] = messages[-1][: draw.randrange(len(messages[-1]) + 1)]
        with bench.connect() as connection, suppress(OSError):
            for each in messages:
                connection.socket.sendall(each)
            if draw.random() < 0.5:
                connection.socket.settimeout(0.02)
                connection.socket.recv(1 << 12)
        with ExitStack() as stack:
            wait_at_most(PATIENCE)
            assert bench.opened(stack).copy(DATA[:999]) == DATA[:999], f"seed {seed}"
            wait_at_most(SOON)


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


def copies_until_it_is_turned_away(connection: Connection) -> None:
    with pytest.raises((EOFError, ConnectionError)):
        connection.queue((1, len(DATA), INPUT), (3, len(DATA), OUTPUT), (4, 0, 0))
        while True:
            connection.get("hib_error_status")
            time.sleep(0.01)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("reply", [late, never, half, short, long, refusing, in_drops])
def test_wrong_answers_of_memory(bench: Bench, reply: Reply) -> None:
    with ExitStack() as stack:
        copies_until_it_is_turned_away(bench.opened(stack, reply))
        bench.serves_the_next()
    assert "program" in bench.said[0]
    assert "DMA read of" in bench.said[0]


@pytest.mark.usefixtures("hasty")
def test_only_writes_are_not_answered(bench: Bench) -> None:
    def reply(self: Connection, kind: int, address: int, size: int, data: bytes) -> bytes | None:
        return honest(self, kind, address, size, data) if kind == 1 else b""

    with ExitStack() as stack:
        copies_until_it_is_turned_away(bench.opened(stack, reply))
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


def test_a_fault_without_interrupt_is_one(tmp_path: Path) -> None:
    with bench_in(tmp_path) as bench, ExitStack() as stack:
        bench.opened(stack).queue((9, 1, 0))
        assert bench.device.faulted.wait(20)
        assert isinstance(bench.function.chip.fault, DescriptorFault)
        stack.close()
        bench.serves_the_next()
