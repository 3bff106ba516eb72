"""What the command line says of the host of a BEF file, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats import tfrt
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.errors import InputError
from darwinn_testbench.request.records import HostOptions

SUITE = """
func.func @start() {
  %c = tfrt.new.chain
  %d = "tfrt_test.print_hello"(%c) : (!tfrt.chain) -> !tfrt.chain
  tfrt.return
}
func.func @fails() -> i32 {
  %x = "tfrt_test.fail"() : () -> i32
  tfrt.return %x : i32
}
func.func @twice(%x: i32) -> i32 {
  %y = tfrt.add.i32 %x, %x
  tfrt.return %y : i32
}
"""


@pytest.fixture
def suite(tmp_path: Path) -> str:
    path = tmp_path / "own.bef"
    path.write_bytes(tfrt.dump(tfrt.from_text(SUITE)))
    return str(path)


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = run_command_line([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_suite_is_run_as_asked(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--init-function", "fails", "--work-queue", "mstd:2,3", "--error-codes"]
    code, report = asked(capsys, "run", suite, *words)
    assert report["printed"].splitlines()[1:] == [
        "Choosing Multi-threaded C++ work queue (2 threads, 3 blocking threads) work queue.",
        "--- Running 'fails':",
        "'fails' returned <<error: something bad happened, code: INTERNAL>>",
        "--- Running 'start':",
        "hello host executor!",
        "--- Not running 'twice' because it has arguments.",
    ]
    # No comment of a BEF file expects the error.
    assert code == 1


def test_the_first_function_comes_before_the_one_that_is_called(
    suite: str, capsys: pytest.CaptureFixture[str]
) -> None:
    number = Path(suite).with_name("x.npy")
    np.save(number, np.int32(21))
    words = ["--function", "twice", "--inputs", str(number), "--init-function", "start"]
    code, report = asked(capsys, "run", suite, *words)
    assert (code, report["printed"]) == (0, "hello host executor!\n")
    assert report["rows"][0]["maximum"] == 42
    code, report = asked(capsys, "run", suite, "--function", "fails", "--error-codes")
    assert report["message"].endswith("something bad happened, code: INTERNAL")
    assert code == 1


def test_a_reference_has_a_host_too(suite: str) -> None:
    inputs = [{"arg0": np.int32(4)}]
    told = HostOptions(work_queue="mstd:2", init_function="start")
    report = verify(suite, suite, inputs, function="twice", host=told)
    assert not report.verdict.failed
    with pytest.raises(InputError, match="no such function without arguments"):
        verify(suite, suite, inputs, function="twice", host=HostOptions(init_function="twice"))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--work-queue", "mstd:none"], "a queue is s, mstd"),
        (["--init-function", "none"], "no such function without arguments"),
    ],
)
def test_what_there_is_not_is_bad_input(
    suite: str, words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = asked(capsys, "run", suite, *words)
    assert (code, reason in report["message"]) == (2, True)


def test_other_programs_have_no_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["sample", str(tmp_path)]) == 0
    capsys.readouterr()
    for file in ("dense.pte", "dense_edgetpu.tflite"):
        code, report = asked(capsys, "run", str(tmp_path / file), "--work-queue", "s")
        assert (code, "--work-queue" in report["message"]) == (2, True), report
    with pytest.raises(InputError, match="are for BEF files"):
        verify(tmp_path / "dense.pte", host=HostOptions(error_codes=True))


def test_unknown_kernels_are_refused_once_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uses = '"no.such"() : () -> ()\n' * 50
    body = f"() {{ {uses} tfrt.return }}\n"
    path = tmp_path / "unknown.bef"
    path.write_bytes(tfrt.dump(tfrt.from_text(f"func.func @a{body}func.func @b{body}")))
    code, report = asked(capsys, "run", str(path))
    assert (code, report["message"].count("no.such")) == (3, 1)
