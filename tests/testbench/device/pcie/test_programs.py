"""Programs that open /dev/apex_0 behind the shim, and leave at any moment."""

from __future__ import annotations

import errno
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import apex_connection
import pytest
from apex_bench import DATA, Bench, bench_in
from apex_script import Script
from bus_chip import program
from darwinn_testbench.device.pcie.wrapped import environment


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


@pytest.mark.skipif(
    "avx512bw" not in Path("/proc/cpuinfo").read_text(), reason="this processor has no AVX-512"
)
def test_of_an_avx_512_instruction_it_is_said_what_to_do(
    run: Start, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(Script(tmp_path).write("masked")).wait(60) == -signal.SIGSEGV
    said = capfd.readouterr().err
    assert "62 e1 7f 49 7f 00" in said
    assert "(AVX-512); use one plain access of 8 bytes" in said
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
