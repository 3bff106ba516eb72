"""Commands that take several files: folders among them, and one bad file among many."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from darwinn_testbench.cli import files
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.errors import InputError


@pytest.fixture
def folder(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(samples, tmp_path / "models" / "deep")
    (tmp_path / "models" / "notes.txt").write_text("no model")
    cut = (tmp_path / "models" / "deep" / "dense_edgetpu.tflite").read_bytes()[:-4000]
    (tmp_path / "models" / "cut_edgetpu.tflite").write_bytes(cut)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = run_command_line([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_folder_is_the_models_that_it_holds(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = printed(capsys, "cycles", "models")
    names = {row["name"].partition(":")[0] for row in report["rows"]}
    deep = folder / "models" / "deep"
    compiled = {*deep.glob("*_edgetpu.tflite"), *deep.glob("*.package")}
    assert names == {path.name for path in compiled} | {"cut_edgetpu.tflite"}
    (bad,) = (row for row in report["rows"] if row["verdict"] == "bad-input")
    assert bad["name"] == "cut_edgetpu.tflite"
    assert all(row["cycles"] for row in report["rows"] if row is not bad)
    assert code == 2


def test_several_files_are_looked_at(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"models/deep/{name}" for name in ("dense_edgetpu.tflite", "dense.pte")]
    code, report = printed(capsys, "inspect", *names)
    assert code == 0
    assert [each["file"] for each in report["files"]] == names
    assert {row["name"].partition(":")[0] for row in report["rows"]} == {
        Path(name).name for name in names
    }
    assert run_command_line(["inspect", *names]) == 0
    told = capsys.readouterr().out
    assert all(f"{file}:" in told.splitlines() for file in names)


def test_of_a_folder_every_program_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = printed(capsys, "inspect", "models", "missing")
    suffixes = {Path(each["file"]).suffix for each in report["files"]}
    assert suffixes == {".tflite", ".package", ".pte", ".bef"}
    bad = {row["name"]: row["message"] for row in report["rows"] if row["verdict"] == "bad-input"}
    assert set(bad) == {"cut_edgetpu.tflite", "missing"}
    assert bad["missing"] == "No such file or directory"
    assert code == 2
    assert run_command_line(["inspect", "models", "missing"]) == 2
    assert "bad-input: No such file or directory" in capsys.readouterr().out


def test_a_folder_of_too_much_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "models" / "empty_edgetpu.tflite").touch()
    monkeypatch.setattr(files, "MOST_FILES", 5)
    for command in ("inspect", "cycles", "view"):
        assert run_command_line([command, "models"]) == 2
        assert "models: more than 5 files, " in capsys.readouterr().err
    count = sum(1 for path in (folder / "models").rglob("*") if path.is_file())
    monkeypatch.setattr(files, "MOST_FILES", count + 2)
    assert len(files.program_files(["models"])) < count


def test_nobody_waits_for_a_file_that_a_kernel_makes_up() -> None:
    """/proc/kmsg of it says nothing until something happens."""
    with pytest.raises(InputError, match="no compiled model"):
        files.compiled_files(["/proc/self/net"])


def test_a_baseline_is_compared_of_the_other_files(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["cycles", "missing", "--baseline", "cycles.json"]) == 2
    capsys.readouterr()
    words = ["cycles", "models", "missing", "--baseline", "cycles.json"]
    code, report = printed(capsys, *words, "--update", "--reason", "first")
    assert code == 2
    unmeasured = {"cut_edgetpu.tflite", "missing"}
    assert {row["name"] for row in report["unmeasured"]} == unmeasured
    code, report = printed(capsys, *words)
    assert code == 2
    assert {row["verdict"] for row in report["rows"]} == {"pass"}
    assert len(report["rows"]) > 6
    assert {row["name"] for row in report["unmeasured"]} == unmeasured
    assert run_command_line(words) == 2
    assert "missing: No such file or directory" in capsys.readouterr().out
    code, report = printed(capsys, *words[:1], "missing", *words[3:])
    assert (code, report["rows"]) == (2, [])


def test_coverage_is_that_of_the_other_files(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deep = sorted(map(str, (folder / "models" / "deep").glob("*_edgetpu.tflite")))
    code, expected = printed(capsys, "inspect", "--coverage", *deep)
    assert code == 0
    bad = ["models/cut_edgetpu.tflite", "missing"]
    code, report = printed(capsys, "inspect", "--coverage", *bad, *deep)
    assert code == 2
    assert report["total"] == expected["total"]
    failed = [row for row in report["rows"] if row["verdict"] == "bad-input"]
    assert [row["name"] for row in failed] == bad
    assert report["rows"][: len(expected["rows"])] == expected["rows"]


@pytest.mark.parametrize("command", ["inspect", "cycles", "view"])
def test_a_folder_without_any_is_named(
    folder: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line([command, "empty"]) == 2
    assert "in this folder" in capsys.readouterr().err


def test_pictures_are_known_by_their_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.ppm", "b.PPM"):
        (folder / "empty" / name).write_bytes(b"P6 4 4 255\n" + bytes(48))
    (folder / "empty" / "c.ppm").write_bytes(b"P6")
    (folder / "empty" / "labels.txt").write_text("0 cat")
    model = "models/deep/convolution_edgetpu.tflite"
    code, report = printed(capsys, "segment", "empty", model)
    rows = {Path(row["name"]).name: row["verdict"] for row in report["rows"]}
    assert rows == {"a.ppm": "pass", "b.PPM": "pass", "c.ppm": "bad-input"}
    assert code == 2


@pytest.mark.parametrize("command", [["inspect"], ["inspect", "--coverage"], ["cycles"]])
def test_a_name_that_is_not_utf8_opens_its_file(
    folder: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    """Alone in a folder, and beside others: it is escaped where it is shown, and only there."""
    model = (folder / "models" / "deep" / "dense_edgetpu.tflite").read_bytes()
    file = Path(os.fsdecode(b"empty/ok\xff.tflite"))
    file.write_bytes(model)
    assert run_command_line([*command, "empty"]) == 0
    capsys.readouterr()
    (folder / "empty" / "other.tflite").write_bytes(model)
    code, report = printed(capsys, *command, "empty")
    assert code == 0
    assert {row["verdict"] for row in report["rows"]} == {"pass"}
    assert run_command_line([*command, "empty"]) == 0
    capsys.readouterr().out.encode()


@pytest.mark.usefixtures("tasks_performed_here")
def test_a_survey_says_that_such_a_name_cannot_be_kept(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = (folder / "models" / "deep" / "dense_edgetpu.tflite").read_bytes()
    Path(os.fsdecode(b"empty/ok\xff.tflite")).write_bytes(model)
    Path(os.fsdecode(b"empty/notes\xff.txt")).write_text("no model")
    code, report = printed(capsys, "survey", "empty", "--journal", "kept")
    assert code == 2
    (row,) = report["rows"]
    assert row["name"] == r"ok\xff.tflite" and "not UTF-8" in row["message"]
    assert [Path(each["file"]).name for each in report["left_out"]] == [r"notes\xff.txt"]


@pytest.mark.parametrize(
    "line",
    [
        *("inspect pipe", "run pipe", "verify pipe", "explain pipe", "cycles pipe"),
        *("verify FILE --reference pipe", "explain FILE pipe", "diff FILE pipe", "regress pipe"),
    ],
)
def test_nobody_waits_for_a_pipe(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    """One that nobody writes to: opening it would take until the alarm."""
    os.mkfifo("pipe")
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits for the pipe"))
    signal.alarm(30)
    try:
        code = run_command_line(line.replace("FILE", "models/deep/dense_edgetpu.tflite").split())
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert code == 2
    assert "pipe: a pipe" in capsys.readouterr().err


def test_a_pipe_that_is_open_already_is_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with subprocess.Popen(
        ["cat", "models/deep/dense_edgetpu.tflite"], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        code, report = printed(capsys, "inspect", f"/dev/fd/{writer.stdout.fileno()}")
    assert (code, report["verdict"]) == (0, "pass")
