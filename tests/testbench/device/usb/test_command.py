"""`darwinn device`: exit codes, recording, faults, and what is refused."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.cli.commands import load
from darwinn_testbench.device.sockets import private_folder
from darwinn_testbench.device.usb import attach
from numba.core import event
from usbip_client import UsbIpClient

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

DARWINN = [sys.executable, "-c", "from darwinn_testbench.cli import main; main()", "device"]

GARBAGE = """
import usb.core
device = usb.core.find(idVendor=0x18D1)
device.ctrl_transfer(0x40, 0, 0x4018, 4, (1).to_bytes(8, "little"))
device.write(1, b"\\x04\\0\\0\\0\\x09\\0\\0\\0junk")
try:
    device.read(0x81, 64, 20_000)
except usb.core.USBError as error:
    print(error)
"""

CONFIGURED = """
import usb.core
device = usb.core.find(idVendor=0x18D1)
device.ctrl_transfer(0x80, 6, 0x200, 0, 521)
device.ctrl_transfer(0xC0, 1, 0xA318, 1, 4)
"""

LOADS = """
import usb.core
device = usb.core.find(idVendor=0x1A6E, idProduct=0x089A)
device.ctrl_transfer(0x21, 1, 0, 0, b"firmware")
"""

LOOK = """
import usb.core
device = usb.core.find(idVendor=0x18D1)
print(device.ctrl_transfer(0xC0, 1, 0x4018, 4, 4).tolist())
"""


class Device(Protocol):
    """`darwinn device` in this process: its exit code, and what it and its command print."""

    def __call__(self, *arguments: str) -> tuple[int, str, str]: ...


@pytest.fixture
def device(capfd: pytest.CaptureFixture[str]) -> Device:
    def call(*arguments: str) -> tuple[int, str, str]:
        return run_command_line(["device", *arguments]), *capfd.readouterr()

    return call


@needs_compiler
@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill $$", 143)]
)
def test_the_exit_code_is_that_of_the_command(script: str, code: int) -> None:
    assert run_command_line(["device", "--usb", "--", "sh", "-c", script]) == code


TWO = """
import usb.core
for device in usb.core.find(find_all=True, idVendor=0x18D1):
    device.ctrl_transfer(0xC0, 1, 0x4018, 4, 4)
    print(device.port_number)
"""


@needs_compiler
def test_each_of_two_chips_is_named_logged_and_recorded(device: Device, tmp_path: Path) -> None:
    pytest.importorskip("usb.core", reason="PyUSB is not installed")
    options = ("--usb", "--booted", "--chips", "2", "--log", "--timed")
    session = str(tmp_path / "session.trace")
    code, printed, errors = device(*options, "--record", session, "--", sys.executable, "-c", TWO)
    assert (code, printed) == (0, "1\n2\n")
    for number in range(2):
        assert f"darwinn device: usb:{number}: read 44018 scalar_core_run_control -> 0" in errors
        assert f"darwinn device: usb:{number}: timed: 0 programs" in errors
        assert device("--replay", str(tmp_path / f"session.{number}.trace"))[0] == 0
    assert len(list(tmp_path.iterdir())) == 2


@needs_compiler
def test_a_fault_is_said_and_ends_with_1(device: Device, tmp_path: Path) -> None:
    pytest.importorskip("usb.core", reason="PyUSB is not installed")
    path = tmp_path / "session"
    code, printed, errors = device(
        *("--usb", "--booted", "--record", str(path), "--log", "--"),
        *(sys.executable, "-c", GARBAGE),
    )
    assert code == 1
    assert "Pipe error" in printed
    fault = "fault: message at byte 0 of endpoint 1: tag 9 is none that a host sends"
    assert f"darwinn device: {fault}" in errors.splitlines()
    assert "darwinn device: write 44018 scalar_core_run_control <- 1" in errors.splitlines()
    code, printed, _ = device("--replay", str(path))
    assert code == 0
    assert "fault as recorded, event 4: message at byte 0 of endpoint 1: tag 9" in printed


@needs_compiler
def test_a_recording_that_fails_hides_no_exit_status(device: Device) -> None:
    pytest.importorskip("usb.core", reason="PyUSB is not installed")
    command = (sys.executable, "-c", LOOK + "raise SystemExit(7)")
    code, _, errors = device("--usb", "--booted", "--record", "/dev/full", "--", *command)
    assert code == 2
    assert errors.splitlines()[-1] == (
        "darwinn device: bad-input: /dev/full: No space left on device: the recording is cut short"
        "; the command's exit status was 7"
    )


@needs_compiler
def test_a_recording_survives_the_device(device: Device, tmp_path: Path) -> None:
    pytest.importorskip("usb.core", reason="PyUSB is not installed")
    command = [sys.executable, "-uc", LOOK + "import time; time.sleep(200)"]
    process = subprocess.Popen(
        [*DARWINN, "--usb", "--booted", "--record", str(tmp_path / "session"), "--", *command],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "[0, 0, 0, 0]\n"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(60)
    (part,) = tmp_path.iterdir()
    assert part.match("session.*.part")
    code, printed, _ = device("--replay", str(part))
    assert code == 0
    assert "no difference; the recording is cut short" in printed


@needs_compiler
def test_a_replay_has_the_device_of_the_recording(device: Device, tmp_path: Path) -> None:
    pytest.importorskip("usb.core", reason="PyUSB is not installed")
    path = tmp_path / "session"
    command = (sys.executable, "-c", CONFIGURED)
    words = ("--usb", "--booted", "--speed", "high", "--record", str(path), "--", *command)
    assert device(*words)[0] == 0
    lines = gzip.decompress(path.read_bytes()).splitlines()
    assert lines[0] == b'["device","application","high"]'
    assert device("--replay", str(path))[0] == 0


@needs_compiler
def test_that_no_firmware_came_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    said = "device stayed 1A6E:089A, waiting for firmware"
    assert run_command_line(["device", "--usb", "--", "true"]) == 0
    assert said in capfd.readouterr().err
    assert run_command_line(["device", "--usb", "--booted", "--", "true"]) == 0
    assert said not in capfd.readouterr().err


@needs_compiler
def test_that_firmware_came_is_not_denied(device: Device) -> None:
    pytest.importorskip("usb.core", reason="PyUSB is not installed")
    assert device("--usb", "--", sys.executable, "-c", LOADS) == (0, "", "")


@pytest.mark.parametrize("name", ["device", "delegate"])
def test_options_behind_a_command_are_its_own(name: str) -> None:
    words = ["python3", "x.py", "--log", "--help"]
    for between in ([], ["--"]):
        options = ["--usb"] if name == "device" else []
        params = load(name).make_context(name, [*options, *between, *words]).params
        assert [*params["command"]] == words
        assert not params.get("log")


@needs_compiler
def test_a_log_that_cannot_be_written_changes_nothing() -> None:
    pytest.importorskip("usb.core", reason="PyUSB is not installed")
    with Path("/dev/full").open("w") as full:
        came = subprocess.run(
            [*DARWINN, "--usb", "--booted", "--log", "--", sys.executable, "-c", LOOK],
            stdout=subprocess.PIPE,
            stderr=full,
            timeout=300,
            check=False,
        )
    assert (came.returncode, came.stdout) == (0, b"[0, 0, 0, 0]\n")


def test_a_session_may_come_by_a_pipe(device: Device, tmp_path: Path) -> None:
    session = gzip.compress(b'["out", 1, {"b": ""}]\n' * 3)
    for packed, expected, said in (
        (session, 0, "3 events, no difference"),
        (gzip.compress(b""), 2, "the session has no events"),
    ):
        (tmp_path / "session").write_bytes(packed)
        with subprocess.Popen(["cat", tmp_path / "session"], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            code, *printed = device("--replay", f"/dev/fd/{writer.stdout.fileno()}")
        assert code == expected
        assert said in "".join(printed)


@needs_compiler
def test_a_command_that_waits_for_ever_after_a_fault_is_ended(device: Device) -> None:
    pytest.importorskip("usb.core", reason="PyUSB is not installed")
    begin = time.monotonic()
    waiting = GARBAGE + "import time; time.sleep(200)"
    assert device("--usb", "--booted", "--", sys.executable, "-c", waiting)[0] == 1
    assert time.monotonic() - begin < 150


def until(count: int) -> str:
    """Commands of a shell that wait until its variable n is ``count``, for a minute at most."""
    return f"i=0; while test $n -lt {count} -a $i -lt 600; do i=$((i+1)); sleep 0.1; done"


@needs_compiler
@pytest.mark.usefixtures("signals_not_ignored")
def test_signals_are_for_the_command() -> None:
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
    traps = "; ".join(f"trap 'n=$((n+1)); echo {each.value}' {each.value}" for each in numbers)
    script = f"n=5; {traps}; echo ready; {until(9)}; exit $n"
    process = subprocess.Popen(
        [*DARWINN, "--usb", "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for number in numbers:
        process.send_signal(number)
        assert process.stdout.readline() == f"{number.value}\n"
    assert process.wait(60) == 9


@needs_compiler
@pytest.mark.usefixtures("signals_not_ignored")
def test_an_interruption_reaches_the_command_once() -> None:
    """By the key, sent to the group of processes, and sent to the front end alone."""
    script = f"n=3; trap 'n=$((n+1)); echo $n' INT; echo ready; {until(6)}; "
    script += "for i in 1 2 3 4 5; do sleep 0.2; done; "
    in_terminal = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);" + DARWINN[2]
    keyboard, terminal = os.openpty()
    process = subprocess.Popen(
        [*DARWINN[:2], in_terminal, "device", "--usb", "--", "sh", "-c", script + "exit $n"],
        stdin=terminal,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    sends: tuple[Callable[[], object], ...] = (
        lambda: os.write(keyboard, b"\x03"),
        lambda: os.killpg(process.pid, signal.SIGINT),
        lambda: process.send_signal(signal.SIGINT),
    )
    for number, send in enumerate(sends):
        send()
        assert process.stdout.readline() == f"{4 + number}\n"
        # A second one would be counted by now.
        time.sleep(0.5)
    assert process.wait(60) == 6
    assert process.stdout.read() == ""
    os.close(keyboard)
    os.close(terminal)


@needs_compiler
@pytest.mark.parametrize("front_end", [["device", "--usb"], ["delegate"]])
def test_killed_it_leaves_neither_the_command_nor_a_folder(
    front_end: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    process = subprocess.Popen(
        [*DARWINN[:-1], *front_end, "--", "sh", "-c", "echo ready; exec sleep 200"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.wait(60)
    # What the command had of its standard output is closed when it is no more.
    assert process.stdout.read() == ""
    with private_folder() as folder:
        assert [each for each in tmp_path.iterdir() if each != folder] == []
        with private_folder():
            assert folder.exists()


@pytest.mark.usefixtures("signals_not_ignored")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_by_usbip_until_it_is_interrupted(number: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [*DARWINN, "--usbip", "--port", str(port)], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"attach -r 127\.0\.0\.1 -b (\S+)", line)
    assert found, line
    assert UsbIpClient(port).devices() == [(found[1], 5, 0x18D1, 0x9302)]
    process.send_signal(number)
    assert process.wait(60) == 0


def test_a_port_in_use_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run_command_line(["device", "--usbip", "--port", str(port)]) == 2
    assert f"--port {port}: Address already in use (127.0.0.1)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ["--log"],
            "exactly one of --usb -- COMMAND, --pcie -- COMMAND, --usbip and --replay FILE",
        ),
        (["--usb"], "--usb needs a command"),
        (["--usb", "--replay", "x", "--", "true"], "exactly one of --usb"),
        (["--replay", "x", "y"], "--replay takes no command: a command needs --usb or --pcie"),
        (["--usbip", "--chips", "2"], "--chips is for --usb and --pcie"),
        (["--replay", "x", "--chips", "2"], "--replay takes no --chips"),
        (["--usb", "--chips", "17", "--", "true"], "17 is more than 16"),
        (["--usbip", "--", "true"], "a command needs --usb or --pcie"),
        (["--usb", "--port", "3240", "--", "true"], "--port is for --usbip"),
        (["--replay", "x", "--booted"], "--replay takes no --booted or --speed: "),
        (["--replay", "x", "--speed", "high"], "a recorded session says both"),
        (["--replay", "x", "--record", "y"], "--replay takes no --record"),
        (["--replay", "there-is-no-such-file"], "No such file or directory"),
        (["--usb", "--json", "--", "true"], "--json is for --replay"),
        (["--usb", "--record", "/no/such/folder", "--", "true"], "No such file or directory"),
        (["--usb", "--", "there-is-no-such-command"], "there-is-no-such-command: No such file"),
    ],
)
def test_what_makes_no_sense_is_said(
    capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    if arguments[0] == "--usb" and shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    assert run_command_line(["device", *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_without_a_compiler_it_is_said_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", "there-is-no-such-compiler")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run_command_line(["device", "--usb", "--", "true"]) == 2
    assert "apt-get install gcc" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_that_kernels_are_compiled_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def compile_kernels() -> None:
        with event.trigger_event("numba:compile"):
            pass

    monkeypatch.setattr(attach, "compile_kernels", compile_kernels)
    assert run_command_line(["device", "--usb", "--", "true"]) == 0
    assert "compiling the model of the chip" in capsys.readouterr().err
