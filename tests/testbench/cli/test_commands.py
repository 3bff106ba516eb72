"""The command: usage, exit codes, one-line errors, and JSON whatever happens."""

from __future__ import annotations

import errno
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import darwinn_testbench
import pytest
from darwinn_formats import files
from darwinn_formats.errors import FormatError
from darwinn_sim.errors import Deadlock, UnsupportedInstruction
from darwinn_sim.isa.codec import encode_operations
from darwinn_testbench.cli import commands
from darwinn_testbench.cli import inspect as inspect_command
from darwinn_testbench.cli import verify as verify_command
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.asked import Asked
from darwinn_testbench.errors import InputError
from darwinn_testbench.profile import report as profile_report
from rich.console import Console
from rich.markdown import Markdown
from sample_files import sample

COMMANDS = ("inspect", "disasm", "dma", "layers", "run", "verify")
STREAM = encode_operations([("LoadProgram", {"bundles": 1}), ("Scalar", {}), ("Execute", {})])


@pytest.fixture
def stream_file(tmp_path: Path) -> Path:
    """A bare instruction stream of three bundles."""
    path = tmp_path / "tiny.coral"
    path.write_bytes(STREAM)
    return path


def fail_with(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_with_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"darwinn {command}" in shown
    assert "Examples" in shown
    assert "--json" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "missing.tflite"],
        ["inspect", str(Path(__file__).parent)],
        ["nonsense"],
        ["inspect", "a", "--nonsense"],
        ["run", "a", "--runs", "0"],
        ["run", "a", "--until", "layer"],
        ["run", "a", "--tap", "narrow:99:0:1"],
        ["verify", "a", "--policy", "nearly"],
        ["disasm", "a", "--json", "--output", "-"],
        ["verify", "a", "--json", "--junit", "-"],
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("darwinn")
    assert len(captured.err.strip().splitlines()) == 1
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("form", ["--junit {}", "--junit={}"])
def test_junit_says_that_the_input_was_bad(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit = tmp_path / "result.xml"
    assert run_command_line(["verify", "missing.tflite", *form.format(junit).split()]) == 2
    suite = ElementTree.parse(junit).find("testsuite")
    assert suite is not None
    assert suite.get("name") == "missing.tflite"
    assert suite.get("errors") == "1"
    capsys.readouterr()


@pytest.mark.parametrize("command", COMMANDS)
def test_json_is_printed_for_bad_input_too(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "garbage.tflite"
    path.write_bytes(b"\x1c\x00\x00\x00TFL3" + bytes(40))
    assert run_command_line([command, str(path), "--json"]) == 2
    report = json.loads(capsys.readouterr().out)
    assert report["command"] == command
    assert report["verdict"] == "bad-input"
    assert report["file"] == str(path)
    assert report["rows"] == []
    assert "garbage.tflite: byte" in report["message"]


def test_no_command_shows_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([]) == 2
    shown = capsys.readouterr().out
    assert all(command in shown for command in COMMANDS)


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--version"]) == 0
    assert capsys.readouterr().out.strip()


def test_inspect_and_disasm_read_a_bare_stream(
    stream_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = ("Execute", {"load_pc": 1})
    operations = [("LoadProgram", {"bundles": 1}), ("Scalar", {}), started]
    stream_file.write_bytes(encode_operations(operations))
    assert run_command_line(["inspect", str(stream_file)]) == 0
    shown = capsys.readouterr().out
    assert "1 LoadProgram" in shown
    assert "token" not in shown and "hints" not in shown
    assert run_command_line(["disasm", str(stream_file)]) == 0
    captured = capsys.readouterr()
    assert [line.split()[1] for line in captured.out.splitlines()[1:]] == [
        "LoadProgram",
        "Scalar",
        "Execute",
    ]
    assert captured.err.startswith("pass")


def test_dash_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(STREAM)))
    assert run_command_line(["inspect", "-", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["file"] == "-"
    assert report["kind"] == "stream"
    assert report["rows"][0]["operations"] == {"LoadProgram": 1, "Scalar": 1, "Execute": 1}


@pytest.mark.parametrize("content", [b"nothing", b"\0\0\0\0ET12", b"PK\3\4", b"\x0b\xef\x80"])
def test_errors_name_standard_input(
    content: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert run_command_line(["inspect", "-"]) == 2
    assert capsys.readouterr().err.startswith("darwinn inspect: bad-input: <stdin>: byte ")


def test_a_command_that_cannot_be_loaded_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "load", fail_with(ImportError("no numba")))
    assert run_command_line(["inspect", "model.tflite"]) == 1
    assert capsys.readouterr().err.startswith("darwinn inspect: fault: internal error")


def test_run_offers_only_the_engines_that_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["run", "--help"]) == 0
    assert "rtl" not in capsys.readouterr().out


@pytest.mark.parametrize(("option", "strict"), [([], True), (["--no-strict"], False)])
def test_a_report_is_strict_unless_told_otherwise(
    option: list[str], strict: bool, stream_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Asked] = []

    def answer(asked: Asked) -> None:
        found.append(asked)
        raise InputError("enough")

    monkeypatch.setattr(profile_report, "answer", answer)
    assert run_command_line(["report", str(stream_file), *option]) == 2
    assert [each.strict for each in found] == [strict]


def test_listing_goes_to_a_file_whole(
    stream_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listing = tmp_path / "listing.txt"
    assert run_command_line(["disasm", str(stream_file), "--output", str(listing)]) == 0
    assert "Execute" in listing.read_text()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("arguments", [["--executable", "3"], ["--chunk", "1"]])
def test_a_chunk_that_is_not_there_is_bad_input(
    arguments: list[str], stream_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["disasm", str(stream_file), *arguments]) == 2
    assert f"there is no {arguments[0][2:]} {arguments[1]}: the only" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_narrow_terminal_and_names_no_types_of_python(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run_command_line([name, "--help"]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert not re.search(r"<bool>|\[x>=0\]|\{|…", printed.split("Examples")[0])


@pytest.mark.parametrize("name", commands.SUMMARIES)
def test_help_shows_every_character_of_its_texts(name: str) -> None:
    """An asterisk alone, or a word in angle brackets, is markup."""
    for parameter in commands.load(name).params:
        text = getattr(parameter, "help", None) or ""
        printed = io.StringIO()
        Console(file=printed, width=10_000).print(Markdown(text))
        assert "".join(printed.getvalue().split()) == "".join(text.replace("`", "").split())


def test_what_most_programs_begin_with_is_at_the_root() -> None:
    assert {name for name in darwinn_testbench.__all__ if hasattr(darwinn_testbench, name)} == {
        "__version__",
        "Device",
        "FormatError",
        "InputError",
        "Interpreter",
        "ModelError",
        "Session",
        "SimulationError",
        "StopPoint",
        "Tap",
        "cycles",
        "diff",
        "explain",
        "inspect",
        "layers",
        "open_models",
        "profile",
        "run",
        "verify",
    }
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = darwinn_testbench.nothing


def test_a_bare_stream_that_cannot_run_is_refused_by_name(
    stream_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["dma", str(stream_file)]) == 3
    assert "load_pc = 0 is not implemented" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "verdict"),
    [
        (Deadlock(("tile 3 waits for flag 2",)), 1, "fault"),
        (UnsupportedInstruction(9, 0, 4, "mode", 3), 3, "refused"),
        (PermissionError(13, "Permission denied", "model.tflite"), 2, "bad-input"),
        (ZeroDivisionError("division by zero"), 1, "fault"),
    ],
)
def test_exceptions_become_a_line_and_a_code(
    error: Exception,
    code: int,
    verdict: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(inspect_command, "inspect", fail_with(error))
    assert run_command_line(["inspect", "model.tflite", "--json"]) == code
    captured = capsys.readouterr()
    assert json.loads(captured.out)["verdict"] == verdict
    assert len(captured.err.strip().splitlines()) == 1


def test_an_error_that_names_no_file_is_one_of_the_file_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verify_command, "answer", fail_with(FormatError("batch", "2 of 1")))
    arguments = ["verify", "--reference", "a.tflite", "-i", "b.npy", "--strict", "c.tflite"]
    assert run_command_line([*arguments, "--json"]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["file"] == "c.tflite"
    assert "c.tflite: batch: 2 of 1" in captured.err


def test_output_survives_a_terminal_without_unicode(
    stream_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = stream_file.rename(stream_file.with_name("schön\udcff.coral"))
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert run_command_line(["inspect", str(name)]) == 0
    terminal.flush()
    assert b"sch\\xf6n\\udcff.coral" in terminal.buffer.getvalue()


def test_a_result_that_cannot_be_written_is_named_as_it_was_given(
    stream_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "missing" / "listing.txt"
    assert run_command_line(["disasm", str(stream_file), "--output", str(target)]) == 2
    assert f"bad-input: {target}: No such file" in capsys.readouterr().err


GONE = "| true; exit ${PIPESTATUS[0]}"
"""A reader that is gone before the first word is written: the command takes longer to start."""


def in_a_shell(script: str) -> tuple[int, str]:
    """Exit code and standard error of a script in which ``darwinn`` is the command."""
    command = f"{sys.executable} -c 'from darwinn_testbench.cli import main; main()'"
    script = f'darwinn() {{ {command} "$@"; }}; {script}'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("arguments", "streams", "code"),
    [
        ("inspect {file} --json", ">/dev/full", 2),
        ("inspect missing --json", ">/dev/full", 2),
        ("disasm {file} -o -", ">/dev/full", 2),
        ("inspect {file}", ">&-", 0),
        ("inspect {file}", "2>&-", 0),
        ("inspect -", "<&-", 2),
        ("inspect {file}", GONE, 141),
        ("inspect {file} --json", GONE, 141),
        ("inspect missing --json", GONE, 141),
        ("disasm {file} -o -", GONE, 141),
    ],
)
def test_streams_that_are_full_closed_or_gone(
    arguments: str, streams: str, code: int, stream_file: Path
) -> None:
    found, errors = in_a_shell(f"darwinn {arguments.format(file=stream_file)} {streams}")
    assert found == code
    assert "Traceback" not in errors and "internal error" not in errors
    assert "Exception ignored" not in errors


def test_what_never_ends_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 1000)
    assert run_command_line(["inspect", "/dev/zero"]) == 2
    assert "/dev/zero: size: more than 1000 bytes" in capsys.readouterr().err


def test_interruption_is_exit_130(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect_command, "inspect", fail_with(KeyboardInterrupt()))
    assert run_command_line(["inspect", "model.tflite"]) == 130


def test_a_name_with_control_characters_stays_on_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command_line(["inspect", "a\nb\x1b[31m é.tflite"]) == 2
    assert capsys.readouterr().err == (
        "darwinn inspect: bad-input: a\\nb\\x1b[31m é.tflite: No such file or directory\n"
    )


def test_a_full_disk_is_named_without_its_number(
    stream_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(inspect_command, "inspect", fail_with(full))
    assert run_command_line(["inspect", str(stream_file)]) == 2
    assert capsys.readouterr().err == "darwinn inspect: bad-input: No space left on device\n"


def test_a_result_that_cannot_be_written_is_one_error(
    stream_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = stream_file.parent / "missing" / "result.xml"
    failure = FileNotFoundError(errno.ENOENT, "No such file or directory", str(target))
    monkeypatch.setattr(verify_command, "answer", fail_with(failure))
    assert run_command_line(["verify", str(stream_file), "--junit", str(target)]) == 2
    assert capsys.readouterr().err == (
        f"darwinn verify: bad-input: {target}: No such file or directory\n"
    )


@pytest.mark.parametrize("command", ["cycles", "dma"])
def test_programs_of_other_formats_are_named_where_only_compiled_models_go(
    command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sample(tmp_path)
    assert run_command_line([command, str(tmp_path / "dense.pte")]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert (
        "ExecuTorch: inspect, disasm, layers, run, verify, profile, report and view take it" in line
    )


@pytest.mark.parametrize("command", ["run", "verify"])
@pytest.mark.parametrize("name", ["dense_edgetpu.tflite", "dense.pte"])
def test_several_runs_of_given_inputs_are_refused(
    command: str, name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sample(tmp_path)
    data = tmp_path / "input.bin"
    data.write_bytes(bytes(4096))
    reference = ["--reference", str(tmp_path / "dense.tflite")] if command == "verify" else []
    words = [command, str(tmp_path / name), "--inputs", str(data), "--runs", "3", *reference]
    assert run_command_line(words) == 2
    assert "3 runs: a number of runs applies to generated inputs" in capfd.readouterr().err


def test_report_says_what_it_has_written_and_in_whose_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sample(tmp_path)
    monkeypatch.chdir(tmp_path)
    said = []
    for _ in range(2):
        assert run_command_line(["report", "dense_edgetpu.tflite", "--runs", "1"]) == 0
        said.append(capsys.readouterr().out)
    assert "written: report.html\n" in said[0]
    assert "written: report.html, in the place of an older file\n" in said[1]
