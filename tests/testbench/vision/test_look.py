"""The library's call that asks a model about pictures, and the classifier of the sample."""

from __future__ import annotations

from pathlib import Path

import pytest
from darwinn_testbench.compiler.classifier import COLOURS
from darwinn_testbench.errors import InputError
from darwinn_testbench.evaluation.run import evaluate
from darwinn_testbench.vision.look import USUAL, look
from picture_models import colour_folders, colour_picture
from sample_files import sample


@pytest.fixture
def model(tmp_path: Path) -> Path:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is missing")
    sample(tmp_path)
    return tmp_path / "classifier_edgetpu.tflite"


@pytest.mark.parametrize("colour", range(3))
def test_the_sample_sees_the_colour_that_there_is_most_of(model: Path, colour: int) -> None:
    picture = model.parent / "photo.png"
    colour_picture(colour, seed=colour).save(picture)
    (model.parent / "labels.txt").write_text("\n".join(COLOURS))
    named = dict(enumerate(COLOURS))
    reports = [
        look("classify", picture, model, labels=named),
        look("classify", str(picture), str(model), labels=str(model.parent / "labels.txt")),
        look("classify", [picture], model.read_bytes(), labels=named),
    ]
    for report in reports:
        (row,) = report.rows
        assert row.answers[0].label == COLOURS[colour]
        assert sum(each.score for each in row.answers) == pytest.approx(1, abs=1e-3)
        assert row.answers == reports[0].rows[0].answers
    (row,) = look("classify", picture, model).rows
    assert row.answers[0].label == str(colour)


def test_what_is_not_said_is_usual_and_what_is_said_counts(model: Path) -> None:
    picture = model.parent / "photo.png"
    colour_picture(0, seed=1).save(picture)
    assert len(look("classify", picture, model).rows[0].answers) == len(COLOURS)
    assert look("classify", picture, model).figures["fit"] == USUAL["classify"].fit
    assert len(look("classify", picture, model, most=1).rows[0].answers) == 1
    assert look("classify", picture, model, threshold=1.1).rows[0].answers == ()


def test_a_task_that_is_none_is_refused_by_name(model: Path) -> None:
    with pytest.raises(InputError, match="describe: ask for classify, detect, segment, pose"):
        look("describe", model, model)


@pytest.mark.usefixtures("tasks_performed_here")
def test_a_data_set_needs_no_more_than_a_model_and_a_file_of_names(model: Path) -> None:
    folder = model.parent
    colour_folders(folder / "photos", 2)
    (folder / "labels.txt").write_text("\n".join(COLOURS))
    report = evaluate(
        folder / "photos", model, folder / "out", labels=folder / "labels.txt", jobs=1
    )
    assert (report.figures["chip_accuracy"].top1, report.figures["pictures"]) == (6, 6)
    assert report.figures["reference"] is None
