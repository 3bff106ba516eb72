"""What docs/whole-models.md says can be typed as it stands there."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
from corpus_models import path_of
from darwinn_formats.tflite import BuiltinOperator
from darwinn_testbench.chip.images import open_image
from darwinn_testbench.chip.whole import WholeModel, open_segment
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import (
    compile_network,
    edgetpu_model,
    random_convolution,
    random_dense,
    uncompiled,
)
from darwinn_testbench.vision.preparation import Fit, prepare
from picture_models import COLOURS, colour_folders, colour_models, colour_picture
from shown_output import calls_of, lines
from whole_models import renamed, with_floats

PAGE = Path(__file__).parents[3] / "docs" / "whole-models.md"


PUBLIC = "## Public pictures"
"""The section whose pictures and models are not the project's own."""


def parts() -> tuple[str, str]:
    """The page without the section of public pictures, and that section."""
    before, _, rest = PAGE.read_text().partition(PUBLIC)
    section, mark, after = rest.partition("\n## ")
    return before + mark + after, section


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def types(page: str, least: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Types the commands of a page, and compares what they print with what is shown."""
    calls = list(calls_of(page))
    assert len(calls) >= least
    for command, shown in calls:
        assert run_command_line(shlex.split(command)) == 0, command
        printed = lines(capsys.readouterr().out)
        if shown.strip():
            assert printed == lines(shown), command


def test_commands_of_the_page_print_what_it_shows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    types(parts()[0], 12, capsys)


def test_public_pictures_are_answered_as_the_page_shows(
    corpus: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = corpus.parent / "images"
    if not images.is_dir():
        pytest.skip("there are no pictures beside the corpus")
    for path in (*images.iterdir(), *(corpus / "darwinn").iterdir()):
        (folder / path.name).symlink_to(path)
    types(parts()[1], 4, capsys)
    for name in ("found", "mask", "people"):
        assert (folder / f"{name}.png").stat().st_size > 1000


def test_the_sheep_is_the_networks_own_answer(corpus: Path) -> None:
    """DeepLab's mask by LiteRT itself, on the model before compilation and the same pixels."""
    interpreters = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is missing")
    picture = corpus.parent / "images" / "dog_segmentation.bmp"
    if not picture.is_file():
        pytest.skip("there are no pictures beside the corpus")
    name = "deeplabv3_mnv2_dm05_pascal_quant"
    segment = open_segment(path_of(corpus, name))
    assert isinstance(segment, WholeModel)
    segment.prepare()
    (port,) = segment.ports
    pixels, _ = prepare(open_image(picture, 3), port, Fit.STRETCH, None)
    (mask,) = segment.infer({port.name: pixels}).outputs.values()
    interpreter = interpreters.Interpreter(str(corpus / "tflite" / f"{name}.tflite"))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], pixels)
    interpreter.invoke()
    other = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    sheep, dog = (int(np.count_nonzero(other == number)) for number in (17, 12))
    text = " ".join(parts()[1].split())
    assert f"takes {sheep:,} pixels for a sheep and {dog:,} for a dog" in text
    equal = int(np.count_nonzero(mask == other))
    said = f"agree on {equal:,} of {mask.size:,} pixels ({100 * equal / mask.size:.2f} %)"
    assert said in text
