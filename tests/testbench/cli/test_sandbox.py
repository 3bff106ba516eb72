"""--sandbox: the same command with limits of the kernel; and so are the processes of `regress`."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from darwinn_rtl.bounded import children_of
from darwinn_testbench.cli import commands, sandbox
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.confinement import Confinement
from darwinn_testbench.regression.pool import ChipWork, perform_here
from other_processes import is_gone, told_of
from sample_files import sample
from threadpoolctl import threadpool_info

WITHOUT = {"accuracy", "delegate", "docs", "harness", "sample", "warm-up"}
DARWINN = "import sys; from darwinn_testbench.cli import main; main(sys.argv[1:])"
PATIENCE = 60


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sandbox")
    sample(folder)
    (folder / "bad").write_bytes(b"nothing that anybody reads")
    return folder / "dense.pte"


@pytest.mark.parametrize("name", commands.SUMMARIES)
def test_commands_that_read_a_file_have_it(name: str) -> None:
    names = {option for each in commands.load(name).params for option in each.opts}
    assert (sandbox.OPTION in names) == (name not in WITHOUT)


@pytest.mark.parametrize("file", ["dense.pte", "bad", "none"])
def test_output_and_exit_code_are_those_of_the_command(
    model: Path, file: str, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["inspect", str(model.with_name(file))]
    plain = run_command_line(words), *capfd.readouterr()
    confined = run_command_line([*words, "--sandbox"]), *capfd.readouterr()
    assert confined == plain


def test_a_page_with_charts_is_written(model: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    compiled = model.with_name("dense_edgetpu.tflite")
    assert run_command_line(["report", str(compiled), "--sandbox", "--output", str(page)]) == 0
    assert page.stat().st_size > 0


def test_what_follows_two_hyphens_is_of_another_command() -> None:
    assert sandbox.is_wanted(["device", "--usb", "--sandbox", "--", "application"])
    assert not sandbox.is_wanted(["device", "--usb", "--", "application", "--sandbox"])


def test_a_signal_is_one_error(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    crashing = tmp_path / "python"
    crashing.write_text("#!/bin/sh\nkill -SEGV $$\n")
    crashing.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(crashing))
    assert run_command_line(["inspect", str(model), "--sandbox", "--json"]) == 1
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert told["verdict"] == "fault" and "SIGSEGV" in told["message"]
    assert captured.err == "darwinn inspect: fault: the process was ended by SIGSEGV\n"


def confined(code: str, limits: Confinement) -> subprocess.CompletedProcess[str]:
    """Python code in a process with limits."""
    begin = f"from darwinn_testbench.confinement import *; confine({limits!r})\n"
    return subprocess.run(
        [sys.executable, "-c", begin + code],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def test_memory_time_and_files_have_limits(tmp_path: Path) -> None:
    limits = Confinement(memory=1 << 30, file=1 << 20, seconds=1)
    assert "MemoryError" in confined("bytes(2 << 30)", limits).stderr
    assert confined("while True: pass", limits).returncode == -signal.SIGXCPU
    path = tmp_path / "large"
    done = confined(f"open({str(path)!r}, 'wb').write(bytes(2 << 20))", limits)
    assert "File too large" in done.stderr
    assert path.stat().st_size == limits.file
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))"
    assert confined(code, limits).stdout == "(0, 0)\n"


def test_a_lower_limit_stays() -> None:
    code = "confine(Confinement(memory=2 << 30)); import resource\n"
    code += "print(resource.getrlimit(resource.RLIMIT_DATA))"
    assert confined(code, Confinement(memory=1 << 30)).stdout == f"{(1 << 30, 1 << 30)}\n"


@pytest.mark.skipif(
    not Path(f"/proc/self/task/{os.getpid()}/children").exists(), reason="Linux says it there"
)
def test_the_process_ends_with_the_one_that_started_it() -> None:
    command = [sys.executable, "-c", DARWINN, "inspect", "-", "--sandbox"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        ends = time.monotonic() + PATIENCE
        while not (found := children_of(process.pid)) and time.monotonic() < ends:
            time.sleep(0.05)
        (child,) = found
        # It waits for its input, which never ends, once it is confined.
        unconfined = b"Max data size             unlimited"
        while unconfined in told_of(child, "limits") and time.monotonic() < ends:
            time.sleep(0.05)
        time.sleep(0.2)
        assert not is_gone(child)
        process.kill()
        while not is_gone(child) and time.monotonic() < ends:
            time.sleep(0.05)
        assert time.monotonic() < ends


@dataclass(frozen=True)
class Limits(ChipWork):
    """Says which limits its process has."""

    key: str = "limits"
    timeout: float = PATIENCE

    def perform(self) -> tuple[int, ...]:
        wanted = (resource.RLIMIT_DATA, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE)
        return tuple(resource.getrlimit(each)[1] for each in wanted)

    def failed(self, message: str) -> tuple[int, ...]:
        raise AssertionError(message)


def test_processes_of_a_regression_have_the_limits() -> None:
    expected = Confinement()
    assert list(perform_here([Limits()])) == [(expected.memory, expected.file, 0)]


@dataclass(frozen=True)
class Threads(ChipWork):
    """Says how many threads matrices are made with."""

    key: str = "threads"
    timeout: float = PATIENCE

    def perform(self) -> set[int]:
        return {each["num_threads"] for each in threadpool_info()}

    def failed(self, message: str) -> set[int]:
        raise AssertionError(message)


def test_processes_of_a_regression_have_one_thread_each_for_matrices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "4")
    assert list(perform_here([Threads()])) == [{1}]
