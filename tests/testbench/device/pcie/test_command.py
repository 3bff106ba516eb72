"""`darwinn device --pcie`: exit codes, recording, replay, faults, and what is refused."""

from __future__ import annotations

import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from apex_script import Script
from darwinn_testbench.cli.application import run_command_line

DARWINN = [sys.executable, "-c", "from darwinn_testbench.cli import main; main()", "device"]
SESSION = "dense_edgetpu.pcie.trace"


def device(*arguments: str | Path) -> int:
    return run_command_line(["device", *map(str, arguments)])


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)])
def test_the_exit_code_is_that_of_the_command(client: Path, script: str, code: int) -> None:
    assert device("--pcie", "--", "sh", "-c", script) == code


def test_a_session_is_recorded_shown_and_replayed(
    client: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = Script(tmp_path).write("list", "close")
    session = tmp_path / "session"
    assert device("--pcie", "--record", session, "--log", "--", client, script) == 0
    shown = capfd.readouterr()
    assert shown.out == "apex_0\n"
    lines = shown.err.splitlines()
    assert "darwinn device: read 48578 instruction_queue_descriptor_size -> 10" in lines
    assert "darwinn device: write 48568 instruction_queue_control <- 5" in lines
    assert device("--replay", session, "--log") == 0
    shown = capfd.readouterr()
    assert "no difference" in shown.out
    assert set(lines) >= {line for line in shown.err.splitlines() if " read " in line}


def test_two_chips_are_two_files(client: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = "import os; print(sorted(os.listdir('/sys/class/apex'))); os.open('/dev/apex_1', 2)"
    options = ("--pcie", "--chips", "2", "--log", "--")
    assert device(*options, sys.executable, "-c", script) == 0
    shown = capfd.readouterr()
    assert shown.out == "['apex_0', 'apex_1']\n"
    opened = {line.split(": ")[1] for line in shown.err.splitlines() if "scu_ctrl_3" in line}
    assert opened == {"pci:1"}


def test_a_log_that_cannot_be_written_changes_nothing(client: Path, tmp_path: Path) -> None:
    script = Script(tmp_path).write("list", "instructions", "close")
    with Path("/dev/full").open("w") as full:
        came = subprocess.run(
            [*DARWINN, "--pcie", "--log", "--", client, script],
            stdout=subprocess.PIPE,
            stderr=full,
            timeout=300,
            check=False,
        )
    assert (came.returncode, came.stdout) == (0, b"apex_0\n")


def test_a_fault_is_said_and_ends_with_1(
    client: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script, session = Script(tmp_path), tmp_path / "session"
    script.lines.append(f"queue {script.map(64, 1, b'no program'):#x} 64")
    path = script.write("wait 1")
    assert device("--pcie", "--record", session, "--", client, path) == 1
    said = capfd.readouterr().err
    assert "darwinn device: fault: " in said
    assert "apex_client: fatal error" in said
    assert device("--replay", session) == 0
    assert "no difference; fault as recorded, event " in capfd.readouterr().out


def test_the_vendors_driver_would_get_the_same(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert device("--replay", traces / SESSION) == 0
    assert "125 events, no difference" in capsys.readouterr().out


def test_sigterm_is_for_the_command(client: Path) -> None:
    script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.1; done"
    process = subprocess.Popen(
        [*DARWINN, "--pcie", "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 9


def test_killed_it_leaves_a_command_s_child_without_the_device(
    client: Path, tmp_path: Path
) -> None:
    """The device is gone for whoever is left of a command, which ends: nothing hangs."""
    script = Script(tmp_path).write("say open", "sleep 0.5", "instructions")
    process = subprocess.Popen(
        [*DARWINN, "--pcie", "--", "sh", "-c", f"({client} {script}; echo status $?) & wait"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    process.kill()
    process.wait(60)
    assert process.stdout.readline() == "status 1\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--pcie"], "--pcie needs a command"),
        (["--pcie", "--usb", "--", "true"], "one of --usb"),
        (["--pcie", "--booted", "--", "true"], "--booted and --speed are for --usb"),
        (["--pcie", "--speed", "high", "--", "true"], "--booted and --speed are for --usb"),
        (["--pcie", "--json", "--", "true"], "--json is for --replay"),
        (["--pcie", "--record", "/no/such/folder", "--", "true"], "No such file or directory"),
        (["--pcie", "--record", "/dev/full", "--", "true"], "No space left on device"),
        (["--pcie", "--", "there-is-no-such-command"], "there-is-no-such-command: No such file"),
    ],
)
def test_what_makes_no_sense_is_said(
    client: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    assert device(*arguments) == 2
    assert reason in capfd.readouterr().err


def test_other_machines_are_refused_by_name(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert device("--pcie", "--", "true") == 3
    assert "aarch64" in capfd.readouterr().err


def test_without_a_compiler_it_is_said_what_to_install(
    client: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", "there-is-no-such-compiler")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert device("--pcie", "--", "true") == 2
    assert "apt-get install gcc" in capfd.readouterr().err
