"""The README's commands print what it shows of them, on the public model that it names."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
from darwinn_testbench.cli.application import run_command_line
from shown_output import calls_of, lines

README = Path(__file__).parents[3] / "README.md"


def test_commands_of_the_readme_print_what_it_shows(
    corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    images = corpus.parent / "images"
    if not images.is_dir():
        pytest.skip("there are no pictures beside the corpus")
    name = "mobilenet_v2_1.0_224_quant"
    for path in (
        corpus / "darwinn" / f"{name}_edgetpu.tflite",
        corpus / "tflite" / f"{name}.tflite",
        images / "cat.bmp",
        images / "imagenet_labels.txt",
    ):
        # A copy: `compile` writes beside the model.
        shutil.copyfile(path, tmp_path / path.name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    calls = list(calls_of(README.read_text()))
    assert len(calls) >= 3
    for command, shown in calls:
        assert run_command_line(shlex.split(command, comments=True)) == 0, command
        printed = lines(capsys.readouterr().out)
        if shown.strip():
            assert printed == lines(shown), command
