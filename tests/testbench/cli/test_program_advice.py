"""What comes next, of programs of other formats, fits what was asked for."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from darwinn_testbench.cli.application import run_command_line
from sample_files import sample

SUITE = """
func.func @adds() -> i32 {
  %x = tfrt.constant.i32 41
  tfrt.return %x : i32
}
func.func @fails() -> i32 {
  %x = "tfrt_test.fail"() : () -> i32 // expected-error {{something bad happened}}
  tfrt.return %x : i32
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The samples, a text with expected errors, and one without; the folder is the current one."""
    sample(tmp_path)
    (tmp_path / "suite.mlir").write_text(SUITE)
    (tmp_path / "plain.mlir").write_text(SUITE.partition(" // ")[0] + "\n  tfrt.return %x : i32\n}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "code", "advice"),
    [
        ("inspect dense.pte", 0, "darwinn layers dense.pte shows its operators"),
        ("layers dense.pte", 0, "darwinn run dense.pte --tap '*' shows what they compute"),
        ("profile dense.pte --runs 1", 0, "the same with --html profile.html"),
        ("profile dense.pte --runs 1 --html 'a page.html'", 0, "open 'a page.html' in a browser"),
        ("run dense.pte", 0, "darwinn verify dense.pte --reference PROGRAM"),
        ("run dense.pte --tap *", 0, "the same with --output values.npz"),
        ("run dense.pte --tap * --output v.npz", 0, "--expected v.npz"),
        ("run dense.pte --output o.npz", 0, "--expected o.npz"),
        ("run suite.mlir", 0, "darwinn run suite.mlir --function NAME"),
        ("run suite.mlir --function fails", 1, "darwinn disasm suite.mlir"),
    ],
)
def test_the_next_step_fits_what_was_done(
    line: str, code: int, advice: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(shlex.split(line)) == code
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("next: ")
    assert advice in last


def test_an_open_choice_of_functions_names_the_option(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["layers", "plain.mlir"]) == 2
    assert "which function? adds, fails (--function NAME chooses)" in capsys.readouterr().err
    assert run_command_line(["layers", "plain.mlir", "--function", "other"]) == 2
    assert "no function 'other', only adds, fails" in capsys.readouterr().err
