"""Texts that say which errors their conversion reports are judged by these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from darwinn_reference.tfrt import parts_of
from darwinn_testbench.cli.application import run_command_line

PARTS = """func.func @first() -> i32 {
  // expected-error @+1 {{has 0 operands, but enclosing function returns 1}}
  tfrt.return
}
// -----
func.func @second() {
  %c = tfrt.new.chain
  %d = "tfrt_test.print_hello"(%c) : (!tfrt.chain) -> !tfrt.chain
  tfrt.return
}

// ----- The third one.
func.func @third(%a: i32) {
  %b = tfrt.add.f32 %a, %a // expected-error {{expects different type than prior uses}}
  tfrt.return
}
"""


def asked(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, dict[str, Any]]:
    path = tmp_path / "own.mlir"
    path.write_text(text)
    code = run_command_line(["run", str(path), *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_parts_keep_their_lines() -> None:
    first, second, third = parts_of(PARTS)
    lines = PARTS.splitlines()
    assert first.splitlines() == lines[:4]
    assert second.splitlines()[5:9] == lines[5:9]
    assert third.splitlines()[12] == lines[12]
    assert not any(third.splitlines()[:11])


def test_each_part_is_judged_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = asked(tmp_path, PARTS, capsys)
    assert code == 0, report
    assert "hello host executor!" in report["printed"]


@pytest.mark.parametrize(
    ("name", "said"),
    [("tfrt_test.fail", "something bad happened"), ("no.such", "unknown kernel name 'no.such'")],
)
def test_a_function_whose_error_is_expected_is_a_test_by_itself(
    name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"""func.func @main() -> i32 {{
      %x = "{name}"() : () -> i32 // expected-error {{{{{said}}}}}
      tfrt.return %x : i32
    }}"""
    code, report = asked(tmp_path, text, capsys)
    assert code == 0, report
    code, _ = asked(tmp_path, text, capsys, "--function", "main")
    assert code in {1, 3}


def test_kernels_of_a_text_have_locations_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """func.func @several() {
      %a = "tfrt_test.unique_loc"() {name = "a"} : () -> !tfrt.chain loc(unknown)
      %b = "tfrt_test.unique_loc"() {name = "b"} : () -> !tfrt.chain loc(unknown)
      tfrt.return
    }
    func.func @nothing() { tfrt.return }"""
    code, report = asked(tmp_path, text, capsys)
    assert code == 0, report
    assert report["printed"].splitlines()[2:] == [
        "--- Running 'several':",
        "--- Running 'nothing':",
    ]


def test_other_errors_and_missing_ones_are_mismatches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PARTS.replace("returns 1}}", "returns 2}}")
    code, report = asked(tmp_path, text, capsys)
    assert code == 1
    first, second = report["warnings"]
    assert first.endswith(
        "own.mlir:3:3: error: 'tfrt.return' op has 0 operands, but enclosing function returns 1"
    )
    assert second.startswith("line 3: expected error")


def test_an_error_that_no_comment_expects_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(line for line in PARTS.splitlines(True) if "@+1" not in line)
    code, report = asked(tmp_path, text, capsys)
    assert (code, "own.mlir:2:3" in report["message"]) == (2, True)


def test_one_part_with_an_expected_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = asked(tmp_path, parts_of(PARTS)[0], capsys)
    assert code == 0
    # A function of it cannot be called.
    code, report = asked(tmp_path, parts_of(PARTS)[0], capsys, "--function", "first")
    assert (code, "own.mlir:3:3" in report["message"]) == (2, True)
