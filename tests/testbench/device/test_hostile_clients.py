"""Broken and hostile ends of the delegate's connection: said in a line, nothing hangs or stays."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import delegate_client
import numpy as np
import pytest
import rude_chip
from ai_edge_litert.interpreter import Interpreter as LiteRt
from ai_edge_litert.interpreter import load_delegate
from darwinn_formats.errors import FormatError
from darwinn_rtl.bounded import children_of
from darwinn_sim.errors import SimulationError
from darwinn_testbench.compiler import compile_network, edgetpu_model, random_dense
from darwinn_testbench.device.delegate import build, messages, server
from darwinn_testbench.device.delegate.messages import MAGIC, Header, Kind
from darwinn_testbench.device.wire import Content, MessageError
from darwinn_testbench.errors import InputError
from hypothesis import given, settings
from hypothesis import strategies as st
from other_processes import is_gone, told_of
from sample_runs import expected, random_input
from whole_models import options_of

NETWORK = random_dense([8, 8], 0)
PATIENCE = 30.0
"""Seconds until what should end has ended, on a busy machine."""

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")


@pytest.fixture(scope="session")
def library() -> str:
    return str(build.library())


def model() -> bytes:
    return edgetpu_model(NETWORK, compile_network(NETWORK))


def ready(library: str, content: bytes | None = None, **options: object) -> Any:
    delegate = load_delegate(library, options)
    interpreter = LiteRt(model_content=content or model(), experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    return interpreter


def computes(interpreter: Any, seed: int = 0) -> bool:
    image = random_input(NETWORK, seed)
    interpreter.set_tensor(0, image)
    interpreter.invoke()
    return np.array_equal(interpreter.get_tensor(1).ravel(), expected(NETWORK, image))


def chips_of(process: int) -> set[int]:
    """The chip's processes among the children."""
    word = server.__name__.encode()
    return {
        child for child in children_of(process) if word in told_of(child, "cmdline").split(b"\0")
    }


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


# --- one end dies ---------------------------------------------------------------------------------


def test_a_chip_that_is_killed_is_told_and_the_next_one_computes(library: str) -> None:
    before = chips_of(os.getpid())
    interpreter = ready(library)
    assert computes(interpreter)
    (chip,) = chips_of(os.getpid()) - before
    os.kill(chip, signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="the chip's process has ended"):
            computes(interpreter)
    assert computes(ready(library))


def test_clients_that_are_killed_leave_nothing_behind(library: str, tmp_path: Path) -> None:
    path = tmp_path / "model_edgetpu.tflite"
    path.write_bytes(model())
    command = [sys.executable, str(delegate_client.__file__), library, str(path)]
    chips: list[int] = []
    for delay in (0.0, 0.3):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == b"ready\n"
            chips += chips_of(client.pid)
            time.sleep(delay)
            client.kill()
    assert len(chips) == 2
    wait_until(lambda: all(map(is_gone, chips)))
    assert computes(ready(library))


def test_an_interpreter_that_is_deleted_ends_its_chip(library: str) -> None:
    before = chips_of(os.getpid())
    interpreter = ready(library)
    (chip,) = chips_of(os.getpid()) - before
    del interpreter
    wait_until(lambda: is_gone(chip) and chip not in children_of(os.getpid()))


# --- several clients ------------------------------------------------------------------------------


def test_clients_at_the_same_time_get_their_own_results(library: str) -> None:
    interpreters = [ready(library)]
    delegate = load_delegate(library)
    for _ in range(2):
        interpreters.append(LiteRt(model_content=model(), experimental_delegates=[delegate]))
        interpreters[-1].allocate_tensors()
    right: list[bool] = []

    def work(number: int) -> None:
        right.extend(computes(interpreters[number], 10 * number + k) for k in range(10))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE)
    assert right == [True] * 30


def test_a_forked_child_cannot_disturb_the_connection(library: str) -> None:
    interpreter = ready(library)
    child = os.fork()
    if child == 0:
        try:
            computes(interpreter)
        except RuntimeError as error:
            os._exit(0 if "made by another process" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert computes(interpreter)


# --- a chip that answers what it should not -------------------------------------------------------


@pytest.fixture(scope="session")
def rude_library() -> str:
    """The delegate, for another chip's process."""
    return str(build.library_for(rude_chip.__name__, [Path(rude_chip.__file__).parent]))


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("gone", "the chip's process has ended"),
        ("half", "the chip's process has ended"),
        ("silent", "did not answer within 1 s"),
        ("garbage", "something else than a message"),
        ("huge", "something else than a message"),
    ],
)
def test_a_chip_that_does_not_begin_as_it_should(
    rude_library: str, what: str, message: str
) -> None:
    begin = time.monotonic()
    with pytest.raises(ValueError, match=message):
        load_delegate(rude_library, {"rude": what, "timeout": 1})
    assert time.monotonic() - begin < PATIENCE


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("no shapes", "sent other shapes|sent no shape|to prepare"),
        ("rank", "sent no shape"),
        ("negative", "darwinn|to prepare|size"),
        ("short", "outputs of another size"),
        ("long", "outputs of another size"),
    ],
)
def test_a_chip_that_answers_something_else(rude_library: str, what: str, message: str) -> None:
    def attempt() -> None:
        ready(rude_library, rude=what, timeout=5).invoke()

    with pytest.raises(RuntimeError, match=message):
        attempt()


# --- clients that send what they should not -------------------------------------------------------


def serve() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """The chip's process as the delegate starts it, and the delegate's end of the connection."""
    ours, theirs = socket.socketpair()
    with theirs:
        code = (
            f"import os, runpy; os.dup2({theirs.fileno()}, 3); "
            f"runpy.run_module({server.__name__!r}, run_name='__main__', alter_sys=True)"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            pass_fds=(theirs.fileno(),),
            stderr=subprocess.PIPE,
        )
    assert messages.receive(ours) == (Kind.DONE, bytearray())
    return ours, process


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "no message begins with"),
        (Header(MAGIC, 9, 0).pack(), "no message begins with"),
        (Header(MAGIC, Kind.OPEN, 1 << 40).pack(), "a message of 1099511627776 bytes"),
        (Header(MAGIC, Kind.OPEN, 100).pack() + bytes(10), "the stream ends within a message"),
        (Header(MAGIC, Kind.OPEN, 100).pack()[:7], "the stream ends within a message"),
    ],
)
def test_a_broken_stream_is_not_answered(sent: bytes, said: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(sent)
        ours.shutdown(socket.SHUT_WR)
        with pytest.raises(messages.Broken, match=said):
            answers().serve(theirs)


def test_a_broken_stream_ends_the_process_with_one_line() -> None:
    connection, process = serve()
    connection.sendall(Header(MAGIC, Kind.OPEN, 1 << 40).pack())
    # Only one direction ends, so that the process does not end with its client.
    connection.shutdown(socket.SHUT_WR)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    (line,) = errors.decode().splitlines()
    assert "a message of 1099511627776 bytes" in line
    connection.close()


def test_half_a_message_is_not_awaited_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "TIME_LIMIT", 0.2)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(Header(MAGIC, Kind.RUN, 100).pack() + bytes(99))
        with pytest.raises(messages.Broken, match="not complete within"):
            messages.receive(theirs)


def text(value: str) -> bytes:
    return struct.pack("=I", len(value)) + value.encode()


def numbers(*values: int) -> bytes:
    return struct.pack(f"=I{len(values)}i", len(values), *values)


def tensor(index: int, name: str) -> bytes:
    described = struct.pack("=IIfiI", index, 9, 1.0, 0, 0)
    return described + numbers(1, 8) + text(name) + struct.pack("=Q", 0)


OPTIONS = options_of(NETWORK)
OPENING = b"".join(
    [
        struct.pack("=I", 1),
        text("edgetpu-custom-op"),
        struct.pack("=Q", len(OPTIONS)) + OPTIONS,
        numbers(0),
        numbers(1),
        struct.pack("=I", 2),
        tensor(0, NETWORK.source),
        tensor(1, NETWORK.result),
        numbers(0),
        numbers(1),
    ]
)
REFUSED = (FormatError, InputError, MessageError, SimulationError, ValueError)


def answers() -> server.Answers:
    return server.Answers({"strict": False, "assumptions": True})


def test_what_a_request_asks_is_checked() -> None:
    found = answers()
    opened = b"".join(found.answer(Kind.OPEN, OPENING))
    assert opened == struct.pack("=I", 1) + numbers(1, 8)
    image = random_input(NETWORK, 0)
    run = struct.pack("=I", 1) + image.tobytes()
    assert b"".join(found.answer(Kind.RUN, run)) == expected(NETWORK, image).tobytes()
    for kind, content, message in [
        (Kind.RUN, struct.pack("=I", 2) + image.tobytes(), "part 2, which is not open"),
        (Kind.RUN, run[:-1], "within a field"),
        (Kind.RUN, run + b"\0", "1 bytes too many"),
        (Kind.RUN, b"", "within a field"),
        (Kind.DONE, run, "DONE of part 1"),
        (Kind.OPEN, OPENING[:-1], "within a field"),
        (Kind.OPEN, OPENING + b"\0", "1 bytes too many"),
        (Kind.OPEN, OPENING[:-4] + struct.pack("=i", 7), "there is no tensor 7"),
        (Kind.OPEN, struct.pack("=I", 1 << 31), "entries, more than"),
        (Kind.OPEN, OPENING.replace(b"edgetpu-custom-op", b"edgetpu-custom-oq"), "no custom op"),
        (Kind.OPEN, OPENING.replace(numbers(1, 8), numbers(1 << 30, 1 << 30)), "has the shape"),
    ]:
        with pytest.raises(REFUSED, match=message):
            found.answer(kind, content)
    assert b"".join(found.answer(Kind.RUN, run)) == expected(NETWORK, image).tobytes()
    assert found.answer(Kind.CLOSE, struct.pack("=I", 1)) == []
    with pytest.raises(MessageError, match="not open"):
        found.answer(Kind.RUN, run)


def test_a_defect_of_ours_is_told_and_the_process_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def defect(*_: object) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(server, "read_opening", defect)
    ours, theirs = socket.socketpair()
    with ours:
        for _ in range(2):
            messages.send(ours, Kind.OPEN, [OPENING])
        ours.shutdown(socket.SHUT_WR)
        with theirs:
            answers().serve(theirs)
        for _ in range(2):
            message = messages.receive(ours)
            assert message is not None
            assert message[0] is Kind.ERROR
            assert b"internal error, please report it: KeyError" in message[1]
    assert "Traceback" in capsys.readouterr().err


def test_open_parts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAXIMUM_PARTS", 2)
    found = answers()
    for _ in range(2):
        found.answer(Kind.OPEN, OPENING)
    with pytest.raises(MessageError, match="2 parts are open"):
        found.answer(Kind.OPEN, OPENING)
    found.answer(Kind.CLOSE, struct.pack("=I", 1))
    assert struct.pack("=I", 3) == found.answer(Kind.OPEN, OPENING)[0]


@settings(max_examples=300)
@given(data=st.data())
def test_any_opening_is_answered_or_refused(data: st.DataObject) -> None:
    """Openings with changed bytes, most of them where the format speaks and not in the options."""
    changed = bytearray(OPENING)
    outside = [*range(40), *range(len(OPENING) - 150, len(OPENING))]
    places = st.one_of(st.sampled_from(outside), st.integers(0, len(OPENING) - 1))
    for place in data.draw(st.lists(places, min_size=1, max_size=4)):
        changed[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(len(OPENING) - 200, len(OPENING)))
    try:
        answers().answer(Kind.OPEN, changed[:cut])
    except REFUSED as error:
        assert str(error)


def test_content_ends_where_it_says() -> None:
    content = Content(text("abc") + b"xy")
    assert content.text() == "abc"
    with pytest.raises(MessageError, match="2 bytes too many"):
        content.end()
