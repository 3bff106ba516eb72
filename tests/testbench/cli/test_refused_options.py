"""Options that would say nothing, or not what was meant; and commands that output says to try."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from darwinn_testbench.cli import commands
from darwinn_testbench.cli.application import run_command_line
from sample_files import sample


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two words")
    sample(folder)
    return folder


TAKES_MAPS = [
    name
    for name in commands.SUMMARIES
    if any("--map" in each.opts for each in commands.load(name).params)
]


@pytest.mark.parametrize("command", TAKES_MAPS)
def test_a_map_without_a_reference_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert run_command_line([command, str(folder / "dense_edgetpu.tflite"), "--map", "a=b"]) == 2
    assert "--map a=b" in (error := capsys.readouterr().err) and "--reference" in error


@pytest.mark.parametrize(
    ("references", "said"),
    [
        (["A="], "--reference A=: a file is missing: --reference A=MODEL"),
        ([""], "--reference is empty"),
        (["x", "y"], "A has x already; for two models before compilation: --reference A=MODEL"),
        (["A=x", "A=y"], "A has x already"),
    ],
)
def test_a_reference_of_neither_or_both(
    folder: Path, capsys: pytest.CaptureFixture[str], references: list[str], said: str
) -> None:
    file = str(folder / "dense_edgetpu.tflite")
    given = [word for each in references for word in ("-r", each)]
    assert run_command_line(["diff", file, file, *given]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("runs", "said"), [(2, "--runs 20 tries"), (20, "--seed 4 tries")])
def test_more_inputs_are_more_than_there_were(
    folder: Path, capsys: pytest.CaptureFixture[str], runs: int, said: str
) -> None:
    words = [str(folder / "dense_edgetpu.tflite"), "--reference", str(folder / "dense.tflite")]
    options = ["--seed", "3", "--runs", str(runs), "--policy", "lsb:1"]
    assert run_command_line(["verify", *words, *options]) == 0
    assert f"next: {said}" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--no-proof", "--no-hazards"])
def test_what_is_left_out_is_advised(
    folder: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    words = [str(folder / "dense_edgetpu.tflite"), "--reference", str(folder / "dense.tflite")]
    assert run_command_line(["verify", *words, option]) == 0
    assert f"next: the same without {option} says" in capsys.readouterr().out
    assert run_command_line(["verify", *words, option, "--require-proof"]) == 1
    assert f"next: the same without {option} says" in capsys.readouterr().out


def test_what_can_never_be_proved_is_not_proved(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(folder / "dense_edgetpu.tflite"), "--reference", str(folder / "dense.pte")]
    assert run_command_line(["verify", *words, "--runs", "1", "--require-proof"]) == 1
    assert "\nnot-proved" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", ["inspect", "disasm", "layers", "run", "verify", "cycles", "profile", "dma"]
)
def test_a_command_to_try_has_the_file_as_one_word(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    file = str(folder / "dense_edgetpu.tflite")
    assert run_command_line([command, file]) == 0
    printed = capsys.readouterr()
    (line,) = (each for each in (printed.out + printed.err).split("\n") if "next: " in each)
    assert shlex.quote(file) in line
