"""The answers of a model before compilation beside the chip's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from corpus_models import path_of
from darwinn_testbench.cli import commands
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.errors import InputError
from darwinn_testbench.vision.answers import (
    KEYPOINTS,
    Answer,
    Box,
    Keypoint,
    Person,
    Region,
    Seen,
)
from darwinn_testbench.vision.beside import agreement_of, overlap, pairs_of, similarity
from darwinn_testbench.vision.look import look
from hypothesis import given
from hypothesis import strategies as st
from picture_models import colour_picture
from sample_files import sample

pytest.importorskip("PIL", reason="pictures are an extra")
SIDES = st.integers(-20, 20)


def box(number: int, score: float, *edges: int) -> Box:
    return Box(str(number), number, score, *edges)


@given(st.tuples(SIDES, SIDES, SIDES, SIDES), st.tuples(SIDES, SIDES, SIDES, SIDES))
def test_an_overlap_is_that_of_the_pixels(
    one: tuple[int, int, int, int], other: tuple[int, int, int, int]
) -> None:
    """Counted pixel by pixel."""
    masks = []
    for left, top, right, bottom in (one, other):
        mask = np.zeros((40, 40), bool)
        if right > left and bottom > top:
            mask[top + 20 : bottom + 20, left + 20 : right + 20] = True
        masks.append(mask)
    together = int((masks[0] | masks[1]).sum())
    found = overlap(box(0, 1, *one), box(0, 1, *other))
    if together:
        assert found == pytest.approx((masks[0] & masks[1]).sum() / together)
    else:
        assert found == float(one == other)


@pytest.mark.parametrize(("alike", "differs"), [(0, True), (3, True), (4, False)])
def test_maps_differ_unless_all_pixels_are_of_one_class(alike: int, *, differs: bool) -> None:
    one = np.zeros((2, 2), np.int64)
    other = (np.arange(4) >= alike).astype(np.int64).reshape(2, 2)
    found = agreement_of(Seen((), classes=one), Seen((), classes=other))
    assert found.pixels == alike / 4
    assert found.differs is differs


def test_boxes_are_the_same_where_class_and_place_are() -> None:
    chip = Seen((box(1, 0.9, 0, 0, 10, 10), box(2, 0.8, 0, 0, 10, 10), box(1, 0.7, 50, 50, 60, 60)))
    others = Seen((box(1, 0.85, 50, 50, 60, 58), box(1, 0.6, 0, 0, 10, 9), box(3, 0.5, 0, 0, 9, 9)))
    pairs = pairs_of(chip, others)
    assert [(each.chip, each.reference) for each in pairs] == [
        (chip.answers[0], others.answers[1]),
        (chip.answers[1], None),
        (chip.answers[2], others.answers[0]),
        (None, others.answers[2]),
    ]
    found = agreement_of(chip, others)
    assert (found.same, found.only_chip, found.only_reference) == (2, 1, 1)
    assert found.score_difference == pytest.approx(0.3)
    assert found.overlap == pytest.approx(0.8)
    assert found.differs
    assert str(found) == (
        "2 answers of both, scores within 0.3000, boxes overlap by 80.0 % or more, "
        "1 of the chip alone, 1 of the reference alone"
    )


def test_maps_are_compared_pixel_by_pixel() -> None:
    zeros = np.zeros((4, 5), np.int64)
    one = zeros.copy()
    one[0, 0] = 1
    answers = (Region("0", 0, 0.95, 19),)
    found = agreement_of(Seen(answers, zeros), Seen(answers, one))
    assert (found.pixels, found.differs) == (0.95, True)
    assert not agreement_of(Seen(answers, zeros), Seen(answers, zeros)).differs
    assert agreement_of(Seen(answers, zeros), Seen(answers, zeros[:2])).pixels is None
    assert agreement_of(Seen((Answer("a", 0, 1.0),)), Seen(())).score_difference is None


def test_the_picture_shows_both_and_what_differs() -> None:
    from darwinn_testbench.vision.drawing import annotated
    from PIL import Image

    image = Image.new("RGB", (120, 90), "white")
    zeros = np.zeros((9, 12), np.int64)
    ones = zeros.copy()
    ones[4:, :] = 1
    alone = Seen((Region("0", 0, 1.0, 108),), zeros)
    both = Seen(alone.answers, zeros, beside=Seen((Region("1", 1, 0.5, 54),), ones))
    assert annotated(image, alone).size == (120, 90)
    drawn = annotated(image, both)
    assert drawn.width == 3 * 120
    assert drawn.height > 90
    different = np.asarray(drawn)[:, 240:]
    red = (different == (230, 0, 60)).all(axis=-1)
    assert red.sum() == 5 * 10 * 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is missing")
    folder = tmp_path_factory.mktemp("beside")
    sample(folder)
    colour_picture(1, seed=1).save(folder / "photo.png")
    return folder


def test_a_reference_is_asked_about_the_same_pictures(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, plain = str(folder / "classifier_edgetpu.tflite"), str(folder / "classifier.tflite")
    words = ["classify", str(folder / "photo.png"), model, "--reference", plain]
    assert run_command_line([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    (row,) = printed["rows"]
    assert printed["reference"] == plain
    assert row["agreement"]["same"] == len(row["answers"]) == len(row["reference"])
    assert row["agreement"]["only_chip"] == row["agreement"]["only_reference"] == 0
    target = folder / "both.png"
    assert run_command_line([*words, "--output", str(target)]) == 0
    assert "photo.png: 3 answers of both, scores within" in capsys.readouterr().out
    assert target.exists()


def test_a_model_before_compilation_answers_alone(folder: Path) -> None:
    picture, plain = folder / "photo.png", folder / "classifier.tflite"
    both = look("classify", picture, folder / "classifier_edgetpu.tflite", reference=plain)
    alone = look("classify", picture, plain)
    assert alone.rows[0].answers == both.rows[0].reference
    assert alone.rows[0].agreement is None
    with pytest.raises(InputError, match="is compiled for the Edge TPU"):
        look("classify", picture, plain, reference=folder / "classifier_edgetpu.tflite")


def test_what_a_reference_does_not_answer_is_seen(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With one answer of each, another network's is another one."""
    model, plain = str(folder / "classifier_edgetpu.tflite"), folder / "classifier.tflite"
    colour_picture(0, seed=1).save(folder / "red.png")
    colour_picture(2, seed=1).save(folder / "blue.png")
    (red,) = look("classify", folder / "red.png", plain, most=1).rows
    (blue,) = look("classify", folder / "blue.png", model, most=1).rows
    found = agreement_of(Seen(blue.answers), Seen(red.answers))
    assert (found.same, found.only_chip, found.only_reference) == (0, 1, 1)


def person(x: float, y: float, score: float = 0.9, moved: float = 0.0) -> Person:
    """A person of 100 pixels; ``moved`` is the way of the nose to the right."""
    points = tuple(
        Keypoint(name, x + 100 * (k % 5) / 4 + moved * (not k), y + 100 * (k // 4) / 4, 0.8)
        for k, name in enumerate(KEYPOINTS)
    )
    return Person("person", 0, score, points)


def test_people_are_the_same_where_their_key_points_are() -> None:
    chip = Seen((person(0, 0), person(300, 0)))
    others = Seen((person(301, 0, 0.7, moved=2), person(900, 0)))
    pairs = pairs_of(chip, others)
    assert [(each.chip, each.reference) for each in pairs] == [
        (chip.answers[0], None),
        (chip.answers[1], others.answers[0]),
        (None, others.answers[1]),
    ]
    assert pairs[1].distance == pytest.approx(3)
    found = agreement_of(chip, others)
    assert (found.same, found.only_chip, found.only_reference, found.distance) == (1, 1, 1, 3.0)
    assert "scores within 0.2000, key points within 3.0 pixels" in str(found)


def test_likeness_of_people_is_that_of_coco() -> None:
    """By the formula of its evaluation, for one key point that is away."""
    one, other = person(0, 0, moved=5), person(0, 0)
    area = 100.0 * 100.0
    away = np.exp(-(5.0**2) / (2 * area * (2 * 0.026) ** 2))
    assert similarity(one, other) == pytest.approx((16 + away) / 17)
    assert similarity(other, other) == 1.0
    assert similarity(person(500, 500), other) < 1e-6


def test_key_points_that_are_not_sure_are_left_out() -> None:
    sure = person(0, 0)
    far = Keypoint("nose", 1000.0, 1000.0, 0.01)
    one = Person("person", 0, 0.9, (far, *sure.keypoints[1:]))
    assert similarity(sure, one) == 1.0
    assert pairs_of(Seen((sure,)), Seen((one,)))[0].distance == 0.0


def test_posenet_is_shown_beside_its_reference(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both find the same people, a few pixels apart."""
    pytest.importorskip("ai_edge_litert", reason="LiteRT is missing")
    name = "posenet_mobilenet_v1_075_353_481_16_quant_decoder"
    picture = corpus.parent / "images" / "kite_and_cold.jpg"
    if not picture.exists():
        pytest.skip("no pictures at hand")
    plain = corpus / "tflite" / f"{name}.tflite"
    words = ["pose", str(picture), str(path_of(corpus, name)), "--reference", str(plain)]
    assert run_command_line([*words, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["agreement"]["same"] == len(row["answers"]) == len(row["reference"]) == 2
    assert row["agreement"]["distance"] < 20


def test_each_command_about_pictures_has_a_reference() -> None:
    for name in ("classify", "detect", "segment", "pose"):
        assert any("--reference" in each.opts for each in commands.load(name).params)


def test_pictures_of_one_name_are_told_apart(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(folder / "photo.png", folder / "0.png")
    for name in ("a/x", "b"):
        (folder / "set" / name).mkdir(parents=True)
        shutil.copy(folder / "0.png", folder / "set" / name / "0.png")
    words = ["classify", str(folder / "set"), str(folder / "classifier_edgetpu.tflite")]
    assert run_command_line([*words, "--top", "1", "--output", str(folder / "drawn")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["a/x/0.png", "b/0.png"]
    assert lines[-1] == f"next: {folder / 'drawn'} shows them"
    drawn = {str(each.relative_to(folder / "drawn")) for each in folder.rglob("drawn/**/*.png")}
    assert drawn == {"a/x/0.png", "b/0.png"}
    shutil.copy(folder / "0.png", folder / "set" / "b" / "0.jpg")
    assert run_command_line([*words, "--output", str(folder / "drawn")]) == 2
    assert "several pictures would be b/0.png" in capsys.readouterr().err
