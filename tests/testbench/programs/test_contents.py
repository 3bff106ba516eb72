"""`darwinn inspect` and `darwinn disasm` for ExecuTorch, IREE and BEF files, found by content."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import executorch_files
import iree_modules
import pytest
from darwinn_formats import tfrt
from darwinn_formats.errors import FormatError
from darwinn_testbench.chip.inspection import inspect
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.programs.formats import format_of

BEF_TEXT = """// A function that adds.
func.func @add(%a: i32, %b: i32) -> i32 {
  %c = tfrt.add.i32 %a, %b
  tfrt.return %c : i32
}
"""


def add_module() -> bytes:
    """An IREE module with one function."""
    body: list[iree_modules.Source] = ["entry", ("add.i32", (0, 1, 2)), ("return", ([2],))]
    return iree_modules.module([iree_modules.FunctionSource("add", "0ii_i", body)])


FILES: dict[str, tuple[Callable[[], bytes], str, list[str]]] = {
    "pte": (executorch_files.program_bytes, "ExecuTorch", ["forward", "get"]),
    "bpte": (executorch_files.bundle_bytes, "ExecuTorch", ["forward", "get"]),
    "ptd": (executorch_files.data_bytes, "ExecuTorch", []),
    "vmfb": (add_module, "IREE", ["add"]),
    "bef": (lambda: tfrt.dump(tfrt.from_text(BEF_TEXT)), "BEF", ["add"]),
    "mlir": (BEF_TEXT.encode, "BEF as text", ["add"]),
}


@pytest.fixture(params=FILES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def written(kind: str, folder: Path) -> Path:
    """A file of a kind, under a name that says nothing."""
    path = folder / "program.bin"
    path.write_bytes(FILES[kind][0]())
    return path


def test_inspect_tells_format_functions_and_everything_in_the_file(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(kind, tmp_path)
    _, name, functions = FILES[kind]
    assert run_command_line(["inspect", str(path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["kind"], report["size"]) == (name, path.stat().st_size)
    assert [row["name"] for row in report["rows"]] == functions
    assert report["description"]
    assert run_command_line(["inspect", str(path)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(name)
    assert all(f" {function}: " in shown for function in functions)
    assert max(map(len, shown.replace(str(path), "FILE").splitlines())) <= 80


def test_disasm_lists_every_part(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(kind, tmp_path)
    functions = FILES[kind][2]
    code = run_command_line(["disasm", str(path), "--json"])
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    if not functions:
        assert code == 2
        assert "holds no instructions" in captured.err
        return
    assert code == 0
    assert [row["name"].removeprefix("@") for row in report["rows"]][-len(functions) :] == functions
    assert run_command_line(["disasm", str(path), "--function", functions[0]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 2
    assert functions[0] in lines[0]
    assert run_command_line(["disasm", str(path), "--function", "nothing"]) == 2
    assert functions[0] in capsys.readouterr().err


@pytest.mark.parametrize("command", ["inspect", "disasm", "run", "verify"])
def test_damaged_files_are_one_line_and_exit_2(
    command: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(kind, tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: max(12, len(data) // 2)])
    assert format_of(path) is not None
    assert run_command_line([command, str(path)]) == 2
    message = capsys.readouterr().err.strip()
    assert len(message.splitlines()) == 1
    assert str(path) in message


def test_options_for_the_other_kind_of_file_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written("pte", tmp_path)
    assert run_command_line(["disasm", str(path), "--executable", "0", "--chunk", "1"]) == 2
    assert "--executable, --chunk: only for DarwiNN files" in capsys.readouterr().err


def test_text_that_is_not_the_text_form_is_left_to_others(tmp_path: Path) -> None:
    for text in (b"", b"hello", b"function(", b"func\0"):
        assert format_of(text) is None
    with pytest.raises(FormatError):
        inspect(b"hello")


def listed(path: Path, *words: str) -> tuple[int, str]:
    """Exit status and text of a listing written to a file."""
    output = path.with_suffix(".txt")
    code = run_command_line(["disasm", str(path), *words, "--output", str(output)])
    return code, output.read_text("utf-8") if output.exists() else ""


def test_bef_files_are_listed_as_mlir_in_every_form(tmp_path: Path) -> None:
    path = written("bef", tmp_path)
    file = tfrt.load(path)
    assert listed(path, "--mlir", "plain") == (0, tfrt.to_text(file))
    assert listed(path, "--mlir", "locations") == (0, tfrt.to_text(file, locations=True))
    assert listed(path, "--mlir", "generic") == (0, tfrt.to_text(file, generic=True))
    code, text = listed(path, "--mlir", "exact")
    assert code == 0
    assert tfrt.dump(tfrt.from_text(text)) == path.read_bytes()


@pytest.mark.parametrize(
    ("kind", "words", "said"),
    [
        ("bef", ["--function", "add"], "not a single function"),
        ("pte", [], "not ExecuTorch programs"),
        ("vmfb", [], "not IREE programs"),
    ],
)
def test_mlir_of_what_has_none_is_refused(
    kind: str, words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(kind, tmp_path)
    assert run_command_line(["disasm", str(path), "--mlir", "plain", *words]) == 2
    assert said in capsys.readouterr().err
