"""No result takes the place of what its command reads, or of another result."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from darwinn_testbench.cli import commands
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.cli.outputs import OUTPUTS, TEXTS

READS = {
    "--against", "--base", "--chip", "--data", "--expected", "--host", "--inputs", "--labels",
    "--models", "--natives", "--points", "--preload", "--program", "--reference", "--replay",
    "--then", "--times", "--with",
}  # fmt: skip
"""Options that name what is read, or may."""

LINKS: dict[str, Callable[[Path, Path], object]] = {
    "the file": lambda file, target: file.rename(target),
    "a hard link": lambda file, target: os.link(file, target),
    "a link": lambda file, target: target.symlink_to(file.name),
}


def options() -> Iterator[tuple[str, Any]]:
    """Every option of every command that takes a text or a path."""
    for name in commands.SUMMARIES:
        for parameter in commands.load(name).params:
            kind = str(vars(parameter)["type_descriptor"].annotation)
            if parameter.param_type_name == "option" and re.search(r"\b(str|Path)\b", kind):
                yield name, parameter


def paths() -> Iterator[tuple[str, str, list[str]]]:
    """What names a file or a folder, and a command line in which it is empty."""
    for name, parameter in options():
        if parameter.opts[0] not in TEXTS:
            yield name, parameter.opts[0], [name, parameter.opts[0], ""]
    for name in set(commands.SUMMARIES) - {"delegate", "device", "docs"}:
        places = [each for each in commands.load(name).params if each.param_type_name == "argument"]
        for empty in places:
            words = {"ACTION": "export", empty.metavar: ""}
            if empty.metavar not in ("ACTION", "SHELL"):
                line = [name, *(words.get(each.metavar, "x") for each in places)]
                yield name, (empty.metavar or "").strip("[]."), line


def writing() -> Iterator[tuple[str, str]]:
    """Options that write, of the commands that read a file."""
    without = ("harness", "warm-up")
    found = ((name, option.opts[0]) for name, option in options() if name not in without)
    return (each for each in found if each[1] in OUTPUTS)


def test_every_option_says_what_its_value_is() -> None:
    """A new one has to be listed: as one that writes, one that reads, or one of neither."""
    found = {parameter.opts[0] for _, parameter in options()}
    assert found == {each for each in (*OUTPUTS, *TEXTS, *READS) if each.startswith("-")}
    assert len(list(writing())) > 40


def test_what_begins_with_path_writes_unless_it_is_known_to_read() -> None:
    for _, parameter in options():
        if parameter.metavar == "PATH" and parameter.opts[0] != "--expected":
            assert parameter.opts[0] in OUTPUTS


@pytest.mark.parametrize(("command", "place", "line"), sorted(paths()))
def test_no_path_is_empty(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    place: str,
    line: list[str],
) -> None:
    """An empty path would be the current folder: `harness export ""` wrote there."""
    monkeypatch.chdir(tmp_path)
    assert run_command_line(line) == 2
    assert f"darwinn {command}: bad-input: {place} is empty" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_word_of_a_command_line_may_be_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["delegate", "--", sys.executable, "-c", "", ""]) == 0
    assert "empty" not in capsys.readouterr().err


@pytest.fixture
def folder(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(samples, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def reading(command: str, file: str) -> list[str]:
    """Words that have a command read the file: by every argument, or else by an option."""
    without = {"accuracy": "--points", "device": "--replay", "generate": "--against"}
    if command in without:
        return [without[command], file]
    kinds = [each.param_type_name for each in commands.load(command).params]
    return [file] * kinds.count("argument")


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(("command", "option"), list(writing()))
def test_no_result_replaces_what_is_read(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, option: str, link: str
) -> None:
    file, target = folder / "dense_edgetpu.tflite", folder / "result.json"
    before = file.read_bytes()
    LINKS[link](file, target)
    read = file if file.exists() else target
    assert run_command_line([command, option, str(target), *reading(command, str(read))]) == 2
    error = capsys.readouterr().err
    assert f"result.json: {option} would replace the file itself" in error
    assert target.read_bytes() == read.read_bytes() == before


@pytest.mark.parametrize(
    "line",
    [
        "explain dense.tflite dense_edgetpu.tflite --html dense_edgetpu.tflite",
        "report dense_edgetpu.tflite -r dense.tflite --output dense.tflite",
        "report dense_edgetpu.tflite -r dense.tflite --sandbox --output ./dense.tflite",
        "run dense_edgetpu.tflite -i x=dense.tflite -o dense.tflite",
        "calibrate dense_edgetpu.tflite=1 dense.tflite=2 -o dense.tflite",
        "run dense_edgetpu.tflite --preload wide:0:0=dense.tflite -o dense.tflite",
        "diff dense_edgetpu.tflite dense.package -r A=dense.tflite --html dense.tflite",
        "verify dense_edgetpu.tflite --junit dense.tflite --no-such-option -r dense.tflite",
        "verify dense_edgetpu.tflite --junit=dense.tflite --reference=dense.tflite --runs 0",
        "profile link.cycles.json --model-explorer link",
        "verify link.gtkw --waves link.fst --engine rtl",
    ],
)
def test_wherever_the_file_stands_in_the_command_line(folder: Path, line: str) -> None:
    """Also in the value of an option, and where the command fails of something else before."""
    for name in ("link.cycles.json", "link.gtkw"):
        (folder / name).symlink_to("dense_edgetpu.tflite")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert run_command_line(line.split()) == 2
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("profile dense_edgetpu.tflite --csv x --html ./x", "--html and --csv"),
        ("profile dense_edgetpu.tflite --html x.cycles.json --model-explorer x", "--html and"),
        ("verify dense_edgetpu.tflite --junit x --sarif link", "--junit and --sarif"),
        ("regress dense.tflite --journal x --markdown x", "--journal"),
    ],
)
def test_two_results_are_two_files(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str, named: str
) -> None:
    (folder / "link").symlink_to("x")
    assert run_command_line(line.split()) == 2
    error = capsys.readouterr().err
    assert named in error and "both write it" in error
    assert not list(folder.glob("x.*"))


def test_what_keeps_nothing_takes_several(folder: Path) -> None:
    line = "verify dense_edgetpu.tflite --junit /dev/null --sarif /dev/null --runs 1"
    assert run_command_line(line.split()) == 0


def test_a_text_is_no_file(folder: Path) -> None:
    """A result may be called as what an option says, again and again."""
    run = "run dense_edgetpu.tflite --inputs-kind noise --runs 1 --output noise"
    diff = "diff dense_edgetpu.tflite dense_edgetpu.tflite --only cycles --html cycles"
    for line in (run, diff) * 2:
        assert run_command_line(line.split()) == 0


def test_standard_input_is_a_file_as_well(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "dense_edgetpu.tflite"
    before = file.read_bytes()
    with file.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert run_command_line(["profile", "-", "--html", file.name]) == 2
    assert "FILE reads" in capsys.readouterr().err
    assert file.read_bytes() == before
