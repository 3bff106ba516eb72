"""Classify, detect, segment, find people: what applications do with pictures, both ways."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import coral_adapters as coral
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRt
from ai_edge_litert.interpreter import load_delegate
from corpus_models import path_of
from darwinn_testbench import Interpreter
from darwinn_testbench.device.delegate import build

Opener = Callable[[str], Any]


def with_delegate(model: Path) -> Any:
    delegate = load_delegate(str(build.library()), {"device": "usb:0"})
    return LiteRt(str(model), experimental_delegates=[delegate])


@pytest.fixture(params=["interpreter", "delegate"])
def opened(request: pytest.FixtureRequest, corpus: Path) -> Opener:
    """Opens a compiled model of the corpus by name."""
    if request.param == "delegate" and not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    make: Callable[[Path], Any] = Interpreter if request.param == "interpreter" else with_delegate

    def open_(name: str) -> Any:
        interpreter = make(path_of(corpus, name))
        interpreter.allocate_tensors()
        return interpreter

    return open_


@pytest.fixture
def pictures(corpus: Path) -> Path:
    folder = corpus.parent / "images"
    if not folder.exists():
        pytest.skip("there are no pictures beside the corpus")
    return folder


def test_a_cat_is_classified(opened: Opener, pictures: Path) -> None:
    interpreter = opened("mobilenet_v2_1.0_224_quant")
    coral.set_input(interpreter, pictures / "cat.bmp")
    interpreter.invoke()
    names = coral.labels(pictures / "imagenet_labels.txt")
    found = [names[each.id] for each in coral.get_classes(interpreter, 3)]
    assert any("cat" in name for name in found[:1]), found


def test_a_cat_is_detected_by_two_segments(opened: Opener, pictures: Path) -> None:
    """The second segment takes what the first gives, by name, as a pipeline of Coral does it."""
    first, second = (
        opened(f"ssd_mobilenet_v1_coco_quant_postprocess_segment_{k}_of_2") for k in range(2)
    )
    coral.set_input(first, pictures / "cat.bmp")
    first.invoke()
    given = {each["name"]: first.get_tensor(each["index"]) for each in first.get_output_details()}
    for each in second.get_input_details():
        second.set_tensor(each["index"], given[each["name"]])
    second.invoke()
    count = int(coral.output_tensor(second, 3)[0])
    ids, scores = (coral.output_tensor(second, k)[0][:count] for k in (1, 2))
    names = coral.labels(pictures / "coco_labels.txt")
    assert names[int(ids[np.argmax(scores)])] == "cat"
    assert scores.max() > 0.5


def test_a_dog_is_segmented_as_on_a_cpu(opened: Opener, corpus: Path, pictures: Path) -> None:
    """This small network takes most of the dog for a sheep, compiled or not."""
    name = "deeplabv3_mnv2_dm05_pascal_quant"
    on_cpu = LiteRt(str(corpus / "tflite" / f"{name}.tflite"))
    on_cpu.allocate_tensors()
    segments = []
    for interpreter in (on_cpu, opened(name)):
        coral.set_input(interpreter, pictures / "dog_segmentation.bmp")
        interpreter.invoke()
        segments.append(coral.get_segments(interpreter).copy())
    assert (segments[0] == segments[1]).mean() > 0.99
    names = coral.labels(pictures / "pascal_voc_segmentation_labels.txt")
    counts = np.bincount(segments[1].ravel().astype(int))
    assert {names[int(k)] for k in np.flatnonzero(counts > 10_000)} == {
        "background",
        "dog",
        "sheep",
    }


def test_a_person_is_found(opened: Opener, pictures: Path) -> None:
    interpreter = opened("posenet_mobilenet_v1_075_353_481_16_quant_decoder")
    coral.set_input(interpreter, pictures / "grace_hopper.bmp")
    interpreter.invoke()
    (person,) = coral.get_poses(interpreter)
    nose, left_eye, right_eye = person[:3]
    assert max(left_eye[0], right_eye[0]) < nose[0]
    assert right_eye[1] < nose[1] < left_eye[1]


def test_objects_of_a_whole_model_are_the_same_by_both(
    wild: Path, corpus: Path, pictures: Path
) -> None:
    found = []
    for make in (Interpreter, with_delegate):
        interpreter = make(wild / "darwinn" / "detect_ssd_edgetpu.tflite")
        interpreter.allocate_tensors()
        coral.set_input(interpreter, pictures / "kite_and_cold.jpg")
        interpreter.invoke()
        found.append(coral.get_objects(interpreter, 0.1))
    assert found[0] == found[1]
    assert found[0]
