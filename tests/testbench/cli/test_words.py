"""Words of a command line: what is completed, and what is said of wrong ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from darwinn_sim.timing.description import built_in
from darwinn_testbench import policy
from darwinn_testbench.cli import commands
from darwinn_testbench.cli.application import run_command_line
from sample_files import sample

_COMPLETE = "import sys; from darwinn_testbench.cli import main; sys.argv[0] = 'darwinn'; main()"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    sample(folder / "sample")
    (folder / "mine.toml").write_text("")
    (folder / "notes.txt").write_text("")
    return folder


@pytest.fixture(autouse=True)
def _there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("cycles f --chip ", [*built_in("chips"), "mine.toml", "sample/"]),
        ("profile f --host us", ["usb2", "usb3"]),
        ("cycles f --chip = bea", ["beagle-max", "beagle-std"]),
        ("cycles f --chip =", [*built_in("chips"), "mine.toml", "sample/"]),
        ("cycles f --host = none --chip = mi", ["mine.toml"]),
        ("verify f --policy float1", ["float16"]),
        ("verify f --engine o", ["original"]),
        ("calibrate m=1 --base us", ["usb2", "usb3"]),
        ("diff a b --only la", ["layers"]),
        ("diff a b --only memory,cy", ["memory,cycles"]),
        ("diff a b --gate po", ["portable="]),
        ("docs tutorials/s", ["tutorials/slow"]),
        ("docs --schema p", ["project"]),
    ],
)
def test_a_shell_completes_values(
    typed: str, offered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As bash asks for it: a sign of equality is a word of its own."""
    line = f"darwinn {typed}"
    monkeypatch.setenv("_DARWINN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    done = subprocess.run([sys.executable, "-c", _COMPLETE], capture_output=True, text=True)
    assert done.stdout.split() == offered


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cycles", "f", "--csv"], "Option '--csv' takes PATH; - is standard output"),
        (["profile", "f", "--csv"], "Option '--csv' takes PATH; - is standard output"),
        (["cycles", "f", "--host"], "Option '--host' takes NAME"),
        (["diff", "a", "b", "--gate"], "Option '--gate' takes NAME=LIMIT"),
        (["detect", "p", "m", "--fit"], "Option '--fit' requires an argument."),
    ],
)
def test_an_option_without_a_value_says_what_it_takes(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(words) == 2
    name = f"darwinn {words[0]}"
    assert capsys.readouterr() == ("", f"{name}: {said} (see: {name} --help)\n")


@pytest.mark.parametrize("option", ["--install-completion", "--show-completion"])
def test_completion_is_for_the_shell_that_calls(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The library ignores the name of another shell, and installs for this one."""
    assert run_command_line([option, "zsh"]) == 2
    said = f"darwinn: bad-input: {option} is for the shell that calls it: call it in zsh, alone\n"
    assert capsys.readouterr() == ("", said)


def test_an_option_behind_that_of_completion_is_no_shell(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command_line(["--show-completion", "--help"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("option", ["--out", "-o", "--out=x"])
@pytest.mark.parametrize("name", ["survey", "regress", "evaluate"])
def test_an_old_name_is_answered_with_the_present_one(
    name: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line([name, option, "x"]) == 2
    assert ": --journal is what was --out before 0.4 (see: " in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(set(commands.SUMMARIES) - {"accuracy", "warm-up"}))
def test_a_bare_command_says_what_is_missing(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if not any(each.required for each in commands.load(name).params):
        pytest.skip("it needs nothing")
    assert run_command_line([name]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"darwinn {name}: Missing argument '")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("verify f --engine foo", "'foo' is not one of 'model', 'original', 'rtl' (see"),
        ("verify f --seed abc", "Invalid value for '--seed': abc is no integer (see"),
        ("verify f --runs 0", "0 is less than 1 (see"),
        ("view f --port 70000", "70000 is more than 65535 (see"),
        ("evaluate m d --timeout x", "x is no number (see"),
        (r"verify f --seed a\1b", r"a\1b is no integer (see"),
    ],
)
def test_a_wrong_value_is_told_in_plain_words(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(line.split()) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Value error" not in error and "Input should" not in error


def test_help_lists_every_policy() -> None:
    (option,) = (each for each in commands.load("verify").params if "--policy" in each.opts)
    assert all(name in vars(option)["help"] for name in policy.FORMS)
    for name in policy.FORMS:
        policy.parse(name.replace("F", "2").replace("N", "1").replace("ATOL,RTOL", "1,1"))


@pytest.mark.parametrize("columns", ["0", "00", ""])
def test_no_columns_are_no_width(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert run_command_line(["cycles", "sample/dense_edgetpu.tflite"]) == 0
    printed = capsys.readouterr().out
    assert "pass  sample/dense_edgetpu.tflite" in printed
    assert "EXECUTION_ONLY" in printed
