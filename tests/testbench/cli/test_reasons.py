"""Whatever a command could not do, its JSON says why at the top, and so does standard error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from darwinn_formats import darwinn
from darwinn_formats.darwinn import Executable, Package
from darwinn_sim.isa.table import INSTRUCTIONS
from darwinn_testbench.cli.application import run_command_line
from sample_files import sample
from sample_runs import change

COMMANDS = ("inspect", "disasm", "dma", "layers", "run", "verify", "cycles", "profile", "report")
UNKNOWN_OPCODE = next(code for code in range(1, 64) if code not in INSTRUCTIONS)


def with_unknown_opcode(executable: Executable) -> Executable:
    (chunk,) = executable.instruction_bitstreams
    stream = bytearray(chunk.bitstream)
    first = int.from_bytes(stream[16:18], "little")
    stream[16:18] = (first & ~(0x3F << 6) | UNKNOWN_OPCODE << 6).to_bytes(2, "little")
    return replace(executable, instruction_bitstreams=(replace(chunk, bitstream=bytes(stream)),))


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("refused")
    sample(folder)
    (package,) = darwinn.load(folder / "dense_edgetpu.tflite").packages
    path = folder / "refused.package"
    path.write_bytes(darwinn.dump(changed(package)))
    yield path


def changed(package: Package) -> Package:
    for which in range(len(package.executables)):
        package = change(package, which, with_unknown_opcode)
    return package


def answer(
    capsys: pytest.CaptureFixture[str], command: str, *arguments: str
) -> tuple[int, Any, str]:
    code = run_command_line([command, *arguments, "--json"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out), captured.err


def arguments_of(command: str, file: Path, folder: Path) -> list[str]:
    page = ["--output", str(folder / "page.html")] if command == "report" else []
    return [str(file), *page]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_refused_file(
    command: str, refused: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result, said = answer(capsys, command, *arguments_of(command, refused, tmp_path))
    assert (code, result["verdict"]) == (3, "refused")
    assert f"opcode {UNKNOWN_OPCODE}" in result["message"]
    (line,) = said.splitlines()
    assert line.startswith(f"darwinn {command}: refused: ")
    assert f"opcode {UNKNOWN_OPCODE}" in line


def test_what_else_a_report_says_stays(refused: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, result, _ = answer(capsys, "cycles", str(refused))
    assert "executable 0: " in result["message"]
    assert "cycle-approximate" in result["message"]


@pytest.mark.usefixtures("tasks_performed_here")
def test_a_regression_names_its_first_failure(
    refused: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "nightly.toml"
    manifest.write_text(f'[[case]]\nname = "broken"\nfile = "{refused}"\nseeds = [3]\n')
    code, result, said = answer(
        capsys, "regress", str(manifest), "--journal", str(tmp_path / "out")
    )
    assert (code, result["verdict"]) == (3, "refused")
    for text in (result["message"], said):
        assert "broken" in text
        assert f"opcode {UNKNOWN_OPCODE}" in text
        assert "0 of 1 tasks pass" in text
