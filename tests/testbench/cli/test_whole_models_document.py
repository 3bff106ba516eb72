"""What docs/whole-models.md says can be typed as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from darwinn_formats.tflite import BuiltinOperator
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import (
    compile_network,
    edgetpu_model,
    random_convolution,
    random_dense,
    uncompiled,
)
from picture_models import COLOURS, colour_folders, colour_models, colour_picture
from whole_models import renamed, with_floats

PAGE = Path(__file__).parents[3] / "docs" / "whole-models.md"


def test_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    network = random_dense([24, 24], 1)
    for name, model in (
        ("model_edgetpu", edgetpu_model(network, compile_network(network))),
        ("model", uncompiled(network)),
    ):
        Path(f"{name}.tflite").write_bytes(with_floats(model, BuiltinOperator.ABS))
    other = renamed(Path("model.tflite").read_bytes(), {"floats in": "given", "last": "result"})
    Path("renamed.tflite").write_bytes(other)
    segmenter = random_convolution(8, 8, 4, 6, 1, kernel=3)
    Path("segmenter_edgetpu.tflite").write_bytes(
        edgetpu_model(segmenter, compile_network(segmenter))
    )
    for name, model in zip(("classifier_edgetpu", "classifier"), colour_models(), strict=True):
        Path(f"{name}.tflite").write_bytes(model)
    colour_folders(Path("photos"), 1)
    Path("photos.csv").write_text("image,label\nphotos/red/0.png,red\n")
    Path("labels.txt").write_text("\n".join(COLOURS))
    colour_picture(1, 1).save("photo.png")
    commands = re.findall(r"^\$ darwinn (.+)", PAGE.read_text(), re.M)
    assert len(commands) >= 7
    for command in commands:
        assert run_command_line(shlex.split(command)) == 0, command
