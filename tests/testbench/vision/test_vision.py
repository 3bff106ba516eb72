"""Pictures through whole models: prepared as pycoral does it, answered, and drawn."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
from corpus_models import path_of
from darwinn_formats import files
from darwinn_testbench.chip.images import open_image, picture_shape
from darwinn_testbench.chip.inputs import TensorPort
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import (
    compile_network,
    edgetpu_model,
    random_convolution,
    random_dense,
)
from darwinn_testbench.errors import InputError
from darwinn_testbench.vision.answers import (
    KEYPOINTS,
    Box,
    Person,
    Question,
    Region,
    Seen,
    boxes,
    classes,
    people,
    regions,
)
from darwinn_testbench.vision.drawing import annotated, colour_of
from darwinn_testbench.vision.labels import labels_of_model, nameless, read_labels
from darwinn_testbench.vision.preparation import Fit, Normalisation, Placement, prepare
from darwinn_testbench.vision.shapes import class_count, tasks_of
from hypothesis import given, settings
from hypothesis import strategies as st
from picture_models import COLOURS, SIZE, colour_models, colour_picture
from PIL import Image

ALL = Question({}, 100, 0.0)
WHOLE = Placement(100, 50, (100, 50), 0, 0, 2.0, 4.0)


def port(
    shape: tuple[int, ...], dtype: str = "u1", scale: float = 0.0, zero: int = 0
) -> TensorPort:
    return TensorPort("x", shape, np.dtype(dtype), scale, zero)


def output(value: object, dtype: str = "f4") -> tuple[TensorPort, np.ndarray]:
    array = np.array(value, dtype)
    return port(array.shape, dtype), array


@pytest.mark.parametrize("wide", [47, 94, 173])
def test_rounding_keeps_the_middle_within_the_picture(wide: int) -> None:
    picture = Image.new("L", (wide, wide + 37), 9)
    tensor, _ = prepare(picture, port((1, 96, 96, 1)), Fit.CROP)
    assert (tensor == 9).all()


@pytest.mark.parametrize(
    "shape", [(1, 0, 4, 3), (1, 4, 0, 1), (0, 4), (1, 16), (1, 96, 64), (1, 1, 1)]
)
def test_a_tensor_without_pixels_is_no_picture(shape: tuple[int, ...]) -> None:
    assert picture_shape(shape) is None


def test_a_grey_picture_may_have_no_dimension_for_channels() -> None:
    assert picture_shape((28, 28)) == picture_shape((1, 28, 28)) == (28, 28, 1)


def test_grey_of_16_bits_is_that_of_its_upper_8(tmp_path: Path) -> None:
    levels = np.arange(256, dtype=np.uint16).reshape(16, 16) * 256 + 255
    Image.fromarray(levels).save(tmp_path / "grey.png")
    (tmp_path / "grey.pgm").write_bytes(b"P5 16 16 65535\n" + levels.astype(">u2").tobytes())
    for name in ("grey.png", "grey.pgm"):
        for channels in (1, 3, 4):
            found = np.asarray(open_image(tmp_path / name, channels)).reshape(16, 16, channels)
            assert (found[..., 0] == np.arange(256).reshape(16, 16)).all()
    (tmp_path / "real.pgm").write_bytes(b"Pf 1 1 -1.0\n\0\0\0\0")
    with pytest.raises(InputError, match="floating point"):
        open_image(tmp_path / "real.pgm", 3)


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    for path in (tmp_path / "pipe.png", Path("/dev/zero")):
        with pytest.raises(InputError, match="no regular file"):
            open_image(path, 3)
    with pytest.raises(InputError, match="null"):
        open_image(Path("a\0b.png"), 3)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 90), st.integers(1, 90), st.integers(1, 40), st.integers(1, 40), st.data())
def test_a_place_in_the_input_is_the_same_place_in_the_picture(
    wide: int, high: int, width: int, height: int, data: st.DataObject
) -> None:
    fit = data.draw(st.sampled_from(list(Fit)))
    tensor, placement = prepare(Image.new("L", (wide, high), 9), port((1, height, width, 1)), fit)
    assert tensor.shape == (1, height, width, 1)
    right, bottom = placement.shown
    assert (tensor[0, :bottom, :right] == 9).all()
    assert tensor.sum() == 9 * right * bottom
    left, top = placement.x(0), placement.y(0)
    if fit is Fit.CROP:
        assert left >= -1e-9 and top >= -1e-9
        assert left + placement.x(width) == pytest.approx(wide)
        assert top + placement.y(height) == pytest.approx(high)
        assert placement.scale_x == pytest.approx(placement.scale_y)
    elif fit is Fit.STRETCH:
        assert (left, top) == (0, 0)
        assert placement.x(width) == pytest.approx(wide)
        assert placement.y(height) == pytest.approx(high)
    else:
        assert placement.scale_x == placement.scale_y
        ratio = min(width / wide, height / high)
        assert placement.shown == (max(int(wide * ratio), 1), max(int(high * ratio), 1))


def pycoral(pixels: np.ndarray, mean: float, std: float, scale: float, zero: int) -> np.ndarray:
    """examples/classify_image.py of google-coral/pycoral."""
    if abs(scale * std - 1) < 1e-5 and abs(mean - zero) < 1e-5:
        return pixels
    normalized = (np.asarray(pixels) - mean) / (std * scale) + zero
    np.clip(normalized, 0, 255, out=normalized)
    return normalized.astype(np.uint8)


@given(
    st.floats(0, 255), st.floats(1, 255), st.floats(0.001, 0.1), st.integers(0, 255), st.integers(0)
)
def test_pixels_are_normalised_and_quantised_as_by_pycoral(
    mean: float, std: float, scale: float, zero: int, seed: int
) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (4, 4, 3)).astype(np.uint8)
    given_port = port((1, 4, 4, 3), "u1", scale, zero)
    tensor, _ = prepare(Image.fromarray(pixels), given_port, Fit.STRETCH, Normalisation(mean, std))
    assert np.array_equal(tensor[0], pycoral(pixels, mean, std, scale, zero))
    same, _ = prepare(
        Image.fromarray(pixels), given_port, Fit.STRETCH, Normalisation(zero, 1 / scale)
    )
    plain, _ = prepare(Image.fromarray(pixels), given_port, Fit.STRETCH)
    assert np.array_equal(plain[0], pixels)
    assert np.array_equal(same, plain)


def test_pixels_of_signed_and_floating_inputs() -> None:
    image = Image.fromarray(np.array([[0, 255]], np.uint8))
    signed, _ = prepare(image, port((1, 1, 2, 1), "i1", 1 / 128, 0), Fit.STRETCH)
    assert signed.ravel().tolist() == [-128, 127]
    floats, _ = prepare(image, port((1, 1, 2, 1), "f4"), Fit.STRETCH)
    assert floats.ravel().tolist() == [-1, 1]
    ranged = TensorPort("x", (1, 1, 2, 1), np.dtype("f4"), limits=(0.0, 2.0))
    assert prepare(image, ranged, Fit.STRETCH)[0].ravel().tolist() == [0, 2]
    with pytest.raises(InputError, match="--mean"):
        prepare(image, port((1, 1, 2, 1), "i2"), Fit.STRETCH)


def test_label_files_of_both_kinds(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("none\nfirst one\n\nthird\n")
    (tmp_path / "b").write_text("5  five\n17: seventeen\n")
    (tmp_path / "c").write_bytes(b"\xff\xfe")
    assert read_labels(tmp_path / "a") == {0: "none", 1: "first one", 3: "third"}
    assert read_labels(tmp_path / "b") == {5: "five", 17: "seventeen"}
    with pytest.raises(InputError, match="UTF-8"):
        read_labels(tmp_path / "c")


def test_a_label_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_bytes(b"\xef\xbb\xbf7 cat\r\n8 dog\r\n")
    assert read_labels(tmp_path / "labels.txt") == {7: "cat", 8: "dog"}


def test_only_ends_of_lines_end_a_label(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("one\u2028two\x0cthree\r\nfour\rfive\n", newline="")
    assert read_labels(tmp_path / "labels.txt") == {
        0: "one\u2028two\x0cthree",
        1: "four",
        2: "five",
    }


def with_files(files: dict[str, str]) -> bytes:
    """A model with an archive behind it, as of TensorFlow Lite's metadata."""
    stream = io.BytesIO(b"what stands for a model")
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


NAMES = {0: "person", 7: "it's a truck"}


@pytest.mark.parametrize(
    ("files", "labels"),
    [
        ({"labels.txt": "cat\ndog\n"}, {0: "cat", 1: "dog"}),
        ({"vocabulary.txt": "a\nb", "my_labels.txt": "7 cat\n"}, {7: "cat"}),
        ({"a.txt": "a", "b.txt": "b"}, {}),
        ({"temp_meta.txt": repr({"task": "detect", "names": NAMES})}, NAMES),
        ({"metadata.json": json.dumps({"names": NAMES})}, NAMES),
        ({"metadata.json": json.dumps({"names": ["cat"]})}, {}),
        ({"temp_meta.txt": "{" * 100_000}, {}),
        ({"labels.txt": "x" * (1 << 21)}, {}),
        ({}, {}),
    ],
)
def test_a_model_names_its_classes_itself(files: dict[str, str], labels: dict[int, str]) -> None:
    assert labels_of_model(with_files(files)) == labels


@settings(max_examples=200, deadline=None)
@given(st.integers(0), st.integers(0, 255))
def test_a_damaged_archive_has_no_names_or_others(place: int, value: int) -> None:
    data = bytearray(with_files({"labels.txt": "cat\ndog\n"}))
    data[place % len(data)] = value
    assert len(labels_of_model(bytes(data))) <= 3


def test_classes_are_those_of_the_highest_scores() -> None:
    scores = np.array([[3, 200, 7, 200]], np.uint8)
    outputs = [(port(scores.shape, "u1", 0.005, 0), scores)]
    found = classes(outputs, WHOLE, Question({3: "last"}, 3, 0.02)).answers
    assert [(each.number, each.label, each.score) for each in found] == [
        (1, "1", 1.0),
        (3, "last", 1.0),
        (2, "2", 0.035),
    ]
    with pytest.raises(InputError, match="one vector of scores"):
        classes([output(np.zeros((1, 4, 4, 2)))], WHOLE, ALL)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)], ids=["TF 1", "TF 2"])
def test_boxes_of_both_orders_of_outputs(order: tuple[int, ...]) -> None:
    ssd = [
        output([[[0.1, 0.2, 0.5, 0.6], [0, 0, 1, 1], [0, 0, 0, 0]]]),
        output([[16, 2, 0]]),
        output([[0.5, 0.75, 0.9]]),
        output([2]),
    ]
    found = boxes([ssd[k] for k in order], WHOLE, Question({2: "car"}, 9, 0.5)).answers
    assert found == (
        Box("car", 2, 0.75, 0, 0, 200, 200),
        Box("16", 16, 0.5, 40, 20, 120, 100),
    )
    with pytest.raises(InputError, match="SSD"):
        boxes(ssd[:3], WHOLE, ALL)


@pytest.mark.parametrize("place", [0, 1, 3], ids=["boxes", "classes", "count"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_boxes_that_are_no_numbers_are_refused(place: int, value: float) -> None:
    values = [np.zeros((1, 1, 4)), np.zeros((1, 1)), np.ones((1, 1)), np.ones(1)]
    values[place].flat[0] = value
    with pytest.raises(InputError, match="the model"):
        boxes([output(each) for each in values], WHOLE, ALL)


def test_a_threshold_is_a_number() -> None:
    with pytest.raises(InputError, match="nan"):
        Question({}, 1, float("nan"))


def test_regions_leave_out_what_is_not_of_the_picture() -> None:
    half = Placement(4, 4, (4, 2), 0, 0, 1, 1)
    numbers = np.array([[0, 0, 5, 0], [0, 0, 5, 0], [1, 1, 1, 1], [1, 1, 1, 1]])
    by_number = regions([output(numbers[None], "i8")], half, ALL)
    assert by_number.answers == (Region("0", 0, 0.75, 6), Region("5", 5, 0.25, 2))
    scores = np.eye(6)[numbers]
    assert regions([output(scores[None])], half, ALL).answers == by_number.answers


def test_people_of_posenet_and_of_movenet() -> None:
    points = np.zeros((1, 2, 17, 2), np.float32)
    points[0, 0] = (10, 20)
    many = [output(points), output(np.full((1, 2, 17), 0.5)), output([[0.75, 0.1]]), output([1.0])]
    (person,) = people(many, WHOLE, ALL).answers
    assert isinstance(person, Person)
    assert [each.name for each in person.keypoints] == list(KEYPOINTS)
    assert (person.keypoints[0].x, person.keypoints[0].y, person.score) == (40, 40, 0.75)
    single = np.full((1, 1, 17, 3), 0.5, np.float32)
    (person,) = people([output(single)], WHOLE, ALL).answers
    assert isinstance(person, Person)
    assert (person.keypoints[3].x, person.keypoints[3].y, person.score) == (100, 100, 0.5)
    with pytest.raises(InputError, match="key points"):
        people([output(np.zeros((1, 5)))], WHOLE, ALL)


def test_what_is_seen_is_drawn() -> None:
    picture = Image.new("RGB", (60, 40), (90, 90, 90))
    found = boxes(
        [output([[[0.25, 0.25, 0.75, 0.75]]]), output([[0]]), output([[0.9]]), output([1])],
        Placement(60, 40, (60, 40), 0, 0, 1, 1),
        ALL,
    )
    assert annotated(picture, found).getpixel((44, 29)) == colour_of(1)
    classes_seen = regions([output(np.full((1, 40, 60), 3), "i4")], WHOLE, ALL)
    changed = annotated(picture, classes_seen)
    assert changed.getpixel((59, 39)) != (90, 90, 90)
    background = regions([output(np.zeros((1, 40, 60)), "i4")], WHOLE, ALL)
    assert annotated(picture, background).getpixel((59, 39)) == (90, 90, 90)
    assert picture.getpixel((44, 29)) == (90, 90, 90)


def test_a_box_far_outside_is_drawn_as_far_as_there_is_a_picture() -> None:
    far = 10**30
    picture = Image.new("RGB", (60, 40), (90, 90, 90))
    drawn = annotated(picture, Seen((Box("x", 1, 0.5, 30, -far, far, far),)))
    assert drawn.getpixel((30, 39)) == colour_of(2)
    assert drawn.getpixel((10, 39)) == (90, 90, 90) == drawn.getpixel((50, 39))


def test_the_command_names_colours_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled, _ = colour_models()
    (tmp_path / "m.tflite").write_bytes(compiled)
    (tmp_path / "labels.txt").write_text("\n".join(COLOURS))
    pictures = [str(tmp_path / f"{name}.png") for name in COLOURS]
    for colour, path in enumerate(pictures):
        colour_picture(colour, colour).save(path)
    words = [str(tmp_path / "m.tflite"), "--labels", str(tmp_path / "labels.txt")]
    assert run_command_line(["classify", *pictures, *words, "--json", "--top", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["answers"][0]["label"] for row in found["rows"]] == list(COLOURS)
    assert [len(row["answers"]) for row in found["rows"]] == [2, 2, 2]
    assert [each["name"] for each in found["cpu_operators"]] == ["RESHAPE"]
    drawn = tmp_path / "drawn"
    assert run_command_line(["classify", *pictures, *words, "--output", str(drawn)]) == 0
    assert sorted(each.name for each in drawn.iterdir()) == sorted(f"{k}.png" for k in COLOURS)
    assert "green" in capsys.readouterr().out
    assert run_command_line(["detect", pictures[0], *words]) == 2
    assert "this needs boxes" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["classify", "run", "verify"])
def test_a_model_is_read_once(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For its labels, its graph and what the CPU computes of it, whatever becomes of the file."""
    model, picture = str(tmp_path / "m.tflite"), str(tmp_path / "red.png")
    Path(model).write_bytes(colour_models()[0])
    colour_picture(0, 0).save(picture)
    read: list[str] = []
    original = files.read_stream

    def counted(stream: BinaryIO, name: str, limit: int | None = None) -> bytes:
        read.append(name)
        return original(stream, name, limit)

    monkeypatch.setattr(files, "read_stream", counted)
    words = [picture, model] if command == "classify" else [model, "--inputs", picture]
    assert run_command_line([command, *words]) == 0
    assert read.count(model) == 1


def test_a_bad_picture_costs_its_row_and_a_bad_target_no_inference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.tflite").write_bytes(colour_models()[0])
    colour_picture(2, 2).save(tmp_path / "blue.png")
    (tmp_path / "bad.png").write_text("no picture")
    model, pictures = (
        str(tmp_path / "m.tflite"),
        [str(tmp_path / f"{k}.png") for k in ("bad", "blue")],
    )
    assert run_command_line(["classify", *pictures, model, "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert [row["verdict"] for row in found["rows"]] == ["bad-input", "pass"]
    assert found["rows"][0]["message"].startswith("not a readable image")
    assert found["rows"][1]["answers"][0]["number"] == 2
    assert run_command_line(["classify", pictures[1], model, "-o", str(tmp_path / "x.gif")]) == 2
    assert "not as .gif" in capsys.readouterr().err
    before = (tmp_path / "blue.png").read_bytes()
    for target in (pictures[1], str(tmp_path)):
        assert run_command_line(["classify", pictures[1], model, "-o", target]) == 2
        assert "--output would replace the " in capsys.readouterr().err
    assert (tmp_path / "blue.png").read_bytes() == before


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (COLOURS, ""),
        (COLOURS[1:], "labels for 2 classes, the model has 3: names may be wrong; the first class"),
        (
            ("background", *COLOURS),
            "labels for 4 classes, the model has 3: names may be wrong; the",
        ),
        (COLOURS[:1] * 80, "labels for 80 classes, the model has 3: names may be wrong; give --l"),
    ],
)
def test_labels_of_other_classes_than_the_models_are_doubted(
    names: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.tflite").write_bytes(colour_models()[0])
    (tmp_path / "labels.txt").write_text("\n".join(names))
    colour_picture(2, 2).save(tmp_path / "p.png")
    words = ["classify", str(tmp_path / "p.png"), str(tmp_path / "m.tflite")]
    words += ["--labels", str(tmp_path / "labels.txt")]
    assert run_command_line([*words, "--json"]) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert [each[: len(said)] for each in warnings] == [said] * bool(said)
    assert run_command_line(words) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("warning") == bool(said)
    assert shown.count(f"warning: {said}") == bool(said)


@pytest.mark.parametrize(("names", "doubts"), [(6, 0), (5, 1), (7, 1)])
def test_labels_of_a_map_of_scores_are_counted(
    names: int, doubts: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = random_convolution(8, 8, 4, 6, 1, kernel=3)
    (tmp_path / "m.tflite").write_bytes(edgetpu_model(network, compile_network(network)))
    (tmp_path / "labels.txt").write_text("\n".join(map(chr, range(97, 97 + names))))
    colour_picture(0, 1).save(tmp_path / "p.png")
    words = ["segment", str(tmp_path / "p.png"), str(tmp_path / "m.tflite"), "--json"]
    assert run_command_line([*words, "--labels", str(tmp_path / "labels.txt")]) == 0
    assert len(json.loads(capsys.readouterr().out)["warnings"]) == doubts


def test_numbers_beyond_all_names_are_doubted() -> None:
    """Where shapes do not say how many classes there are: an SSD's numbers, an ARG_MAX."""
    assert nameless({0: "a", 5: "b"}, [0, 3, 5]) == nameless({}, [7]) == ()
    (warning,) = nameless({0: "a", 5: "b"}, [0, 17, 3])
    assert "class 17, labels end with class 5" in warning


@pytest.mark.parametrize(
    ("shapes", "tasks", "classes"),
    [
        ([(1, 1001)], ("classify",), {"classify": 1001}),
        ([(1, 1, 1, 1024)], ("classify",), {"classify": 1024}),
        ([(1, 10, 4), (1, 10), (1, 10), (1,)], ("detect",), {}),
        ([(1, 10), (1, 10, 4), (1,), (1, 10)], ("detect",), {}),
        ([(1, 84, 8400)], ("detect",), {"detect": 80}),
        ([(1, 25200, 85)], ("detect",), {"detect": 80}),
        ([(1, 56, 8400)], ("pose",), {"detect": 52}),
        ([(1, 513, 513)], ("segment",), {}),
        ([(1, 65, 65, 21)], ("segment",), {"segment": 21}),
        ([(1, 9), (1, 9)], (), {}),
        ([()], (), {}),
    ],
)
def test_shapes_say_what_reads_outputs_and_how_many_classes_there_are(
    shapes: list[tuple[int, ...]], tasks: tuple[str, ...], classes: dict[str, int]
) -> None:
    assert tasks_of(shapes, (640, 640)) == tasks
    for task in ("classify", "detect"):
        assert class_count(task, shapes, (640, 640)) == classes.get(task)
    if tasks == ("segment",):
        assert class_count("segment", shapes, (640, 640)) == classes.get("segment")


def test_what_reads_another_kind_of_outputs_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.tflite").write_bytes(colour_models()[0])
    colour_picture(2, 2).save(tmp_path / "p.png")
    for command in ("detect", "segment", "pose"):
        words = [command, str(tmp_path / "p.png"), str(tmp_path / "m.tflite")]
        assert run_command_line(words) == 2
        assert capsys.readouterr().err.endswith("try darwinn classify\n")


def test_a_convolution_segments(tmp_path: Path) -> None:
    network = random_convolution(8, 8, 4, 6, 1, kernel=3)
    (tmp_path / "m.tflite").write_bytes(edgetpu_model(network, compile_network(network)))
    colour_picture(0, 1).save(tmp_path / "p.png")
    target = tmp_path / "mask.png"
    words = ["segment", str(tmp_path / "p.png"), str(tmp_path / "m.tflite"), "-o", str(target)]
    assert run_command_line(words) == 0
    with Image.open(target) as image:
        assert image.size == (20, 20)


def test_a_picture_is_refused_where_the_input_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = random_dense([SIZE * SIZE, 4], 1)
    (tmp_path / "m.tflite").write_bytes(edgetpu_model(network, compile_network(network)))
    colour_picture(0, 1).save(tmp_path / "p.png")
    model, picture = str(tmp_path / "m.tflite"), str(tmp_path / "p.png")
    assert run_command_line(["run", model, "--inputs", picture]) == 2
    assert "is no image" in capsys.readouterr().err
    assert run_command_line(["classify", picture, model]) == 2
    assert "no picture" in capsys.readouterr().err


def asked(
    corpus: Path, capsys: pytest.CaptureFixture[str], words: list[str], picture: str
) -> list[dict[str, Any]]:
    """The answers about a public picture."""
    images = corpus.parent / "images"
    if not images.is_dir():
        pytest.skip("there are no pictures beside the corpus")
    command, *others = words
    assert run_command_line([command, str(images / picture), *others, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    answers: list[dict[str, Any]] = row["answers"]
    return answers


def test_an_ssd_in_two_segments_finds_the_cat(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ssd = "ssd_mobilenet_v1_coco_quant_postprocess_segment_{}_of_2"
    first, second = (str(path_of(corpus, ssd.format(k))) for k in (0, 1))
    labels = str(corpus.parent / "images" / "coco_labels.txt")
    words = ["detect", first, "--then", second, "--labels", labels]
    (cat, *_) = asked(corpus, capsys, words, "cat_720p.jpg")
    assert (cat["label"], cat["number"]) == ("cat", 16)
    # Its head is in the middle of the upper half of 1280 x 720 pixels.
    assert cat["left"] < 600 < cat["right"]
    assert cat["top"] < 200 < cat["bottom"]


@pytest.mark.parametrize(
    ("model", "kite"), [("yolov5n_int8_160", "33"), ("yolov8n_full_integer_quant", "kite")]
)
def test_yolo_finds_kites_and_people(
    wild: Path, capsys: pytest.CaptureFixture[str], model: str, kite: str
) -> None:
    words = ["detect", str(path_of(wild, model))]
    found = asked(wild, capsys, words, "kite_and_cold.jpg")
    (large, *_) = [each for each in found if each["label"] == kite]
    assert 560 < large["left"] < 620 < 660 < large["right"] < 700
    assert 50 < large["top"] < 90 < 130 < large["bottom"] < 170
    assert {each["number"] for each in found} == {0, 33}


def test_posenet_finds_the_people_who_are_near(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(path_of(corpus, "posenet_mobilenet_v1_075_353_481_16_quant_decoder"))
    people_found = asked(corpus, capsys, ["pose", model], "kite_and_cold.jpg")
    hips = [
        (each["x"], each["y"])
        for person in people_found
        for each in person["keypoints"]
        if each["name"] == "right hip"
    ]
    assert len(people_found) >= 1
    assert all(x < 400 and 500 < y < 900 for x, y in hips)


@pytest.mark.parametrize(
    ("picture", "label"),
    [("cat.bmp", "Egyptian cat"), ("bird.bmp", "chickadee")],
)
def test_mobilenet_knows_its_pictures(
    corpus: Path, capsys: pytest.CaptureFixture[str], picture: str, label: str
) -> None:
    model = str(path_of(corpus, "mobilenet_v1_0.5_160_quant"))
    words = ["classify", model, "--labels", str(corpus.parent / "images" / "imagenet_labels.txt")]
    assert label in [each["label"] for each in asked(corpus, capsys, words, picture)]
