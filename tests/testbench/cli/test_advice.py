"""Command lines that are nearly right: the error says how they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from darwinn_testbench.cli.application import run_command_line
from picture_models import colour_models, colour_picture


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model, compiled and before, and a picture: the folder is the current one."""
    compiled, before = colour_models()
    (tmp_path / "m_edgetpu.tflite").write_bytes(compiled)
    (tmp_path / "m.tflite").write_bytes(before)
    (tmp_path / "bad.tflite").write_bytes(b"no model")
    (tmp_path / "empty.tflite").touch()
    (tmp_path / "photos").mkdir()
    colour_picture(0, 1).save(tmp_path / "cat.bmp")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("verify m_edgetpu.tflite m.tflite", "is given by --reference MODEL"),
        ("verify m_edgetpu.tflite m.tflite --json", "is given by --reference MODEL"),
        ("classify cat.bmp", "cat.bmp looks like a picture: give IMAGE... MODEL"),
        ("detect m_edgetpu.tflite", "pictures first, the MODEL last"),
        ("classify m_edgetpu.tflite cat.bmp", "cat.bmp: not a model but a picture"),
        ("cycles m.tflite", "darwinn compile or edgetpu_compiler compiles it"),
        ("view m.tflite", "darwinn compile or edgetpu_compiler compiles it"),
        ("view m.tflite bad.tflite", "bad.tflite"),
        ("detect cat.bmp m_edgetpu.tflite", "try darwinn classify"),
        ("cycles m_edgetpu.tflite --max-seconds nan", "'--max-seconds': nan is no number"),
        ("survey . --timeout=NaN", "'--timeout': NaN is no number"),
        ("cycles m_edgetpu.tflite --host nope", "harness, pcie, pcie-pc, usb2, usb3, none"),
        ("cycles m_edgetpu.tflite --model 7", "--executable N is what this command takes"),
        ("evaluate m_edgetpu.tflite . --mean nan", "--mean nan: no number"),
        ("evaluate photos m_edgetpu.tflite", "photos: a folder, and no model: MODEL comes first"),
        ("inspect empty.tflite", "file identifier: the file is empty"),
    ],
)
def test_an_error_says_what_to_do_and_says_it_once(
    line: str, advice: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(line.split()) == 2
    said = capsys.readouterr().err.splitlines()
    assert advice in said[-1]
    assert len(said) == len(set(said))


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("classify cat.bmp cat.bmp bad.tflite --json", "bad.tflite"),
        ("classify --top 3 cat.bmp bad.tflite --fit crop --json", "bad.tflite"),
        ("evaluate bad.tflite cat.bmp --json", "bad.tflite"),
        ("explain bad.tflite m.tflite --json", "bad.tflite"),
        ("inspect bad.tflite --json", "bad.tflite"),
    ],
)
def test_the_file_of_a_failure_is_the_model(
    line: str, file: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(line.split()) == 2
    assert json.loads(capsys.readouterr().out)["file"] == file


def test_a_model_may_be_called_as_a_picture_is(folder: Path) -> None:
    (folder / "m_edgetpu.tflite").rename(folder / "m.png")
    assert run_command_line(["classify", "cat.bmp", "m.png"]) == 0


@pytest.mark.parametrize("command", ["inspect", "cycles", "disasm", "run", "layers"])
def test_a_file_named_like_an_option_is_one_in_the_advice(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "m_edgetpu.tflite").rename(folder / "-m_edgetpu.tflite")
    assert run_command_line([command, "--", "-m_edgetpu.tflite"]) == 0
    captured = capsys.readouterr()
    advice = (captured.err or captured.out).splitlines()[-1]
    assert " ./-m_edgetpu.tflite" in advice and " -m_edgetpu" not in advice
