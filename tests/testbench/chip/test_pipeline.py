"""Segments of a pipeline: tensors are found by name, whichever segment gave them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats.darwinn import CompiledModel, Executable, Layer
from darwinn_reference.arrays import AnyArray
from darwinn_sim.accelerator import RunResult
from darwinn_testbench.chip.execution import run
from darwinn_testbench.chip.inputs import TensorMap, TensorPort
from darwinn_testbench.chip.model import BoundLayer, BoundModel
from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.chip.session import Inference, Session
from darwinn_testbench.errors import InputError
from hypothesis import given
from hypothesis import strategies as st


def port(name: str, size: int = 4) -> TensorPort:
    return TensorPort(name, (1, size), np.dtype(np.uint8))


def bound(ports: tuple[TensorPort, ...]) -> tuple[BoundLayer, ...]:
    return tuple(BoundLayer(Layer(name=each.name), each) for each in ports)


class Adder(Session):
    """A segment without a chip: every output is the sum of the inputs, and its own number."""

    def __init__(
        self, number: int, inputs: tuple[TensorPort, ...], outputs: tuple[TensorPort, ...]
    ) -> None:
        compiled = CompiledModel(Executable(), None, "")
        model = BoundModel(f"segment{number}", 0, compiled, bound(inputs), bound(outputs))
        super().__init__(model)
        self.number = number

    def infer(self, tensors: TensorMap, **_: object) -> Inference:
        assert tensors.keys() == {each.name for each in self.model.ports}
        total = sum((int(value[0, 0]) for value in tensors.values()), self.number)
        outputs = {
            item.port.name: np.full(item.port.shape, total % 256, np.uint8)
            for item in self.model.outputs
        }
        return Inference(outputs, RunResult({}, [], []), 0.0)


def segment(number: int, takes: str, gives: str) -> Adder:
    """A segment whose tensors have names of one letter."""
    return Adder(number, tuple(map(port, takes)), tuple(map(port, gives)))


def results(segments: list[Adder], inputs: Mapping[str, int]) -> dict[str, int]:
    pipeline = Pipeline(segments)
    tensors: dict[str, AnyArray] = {
        name: np.full((1, 4), value, np.uint8) for name, value in inputs.items()
    }
    found = pipeline.results(pipeline.infer(tensors))
    return {name: int(tensor[0, 0]) for name, tensor in found.items()}


def test_tensors_skip_segments() -> None:
    segments = [segment(1, "x", "ab"), segment(2, "a", "cd"), segment(4, "bdx", "e")]
    # a = b = 11, c = d = 13, e = 11 + 13 + 10 + 4; nobody takes c.
    assert results(segments, {"x": 10}) == {"c": 13, "e": 38}


def test_outputs_of_the_last_segment_are_results_whoever_takes_them() -> None:
    assert results([segment(1, "x", "a")], {"x": 1}) == {"a": 2}


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        (
            [segment(1, "x", "a"), segment(2, "a", "b"), segment(3, "bz", "c")],
            r"segment3: no model before it computes its input z \(uint8 1x4\) "
            r"\(segment1, segment2\)$",
        ),
        (
            [segment(1, "x", "a"), segment(2, "b", "c"), segment(3, "a", "b")],
            r"segment2: no model before it computes its input b .* \(segment1\); segment3 ",
        ),
        (
            [segment(1, "x", "a"), segment(2, "x", "a"), segment(3, "a", "c")],
            "segment3: its input a .* is ambiguous: it comes from segment1 and segment2",
        ),
        (
            [segment(1, "x", "x"), segment(2, "x", "c")],
            "segment2: its input x .* is ambiguous: it comes from segment1 and segment1",
        ),
        (
            [segment(1, "x", "a"), segment(2, "x", "b"), Adder(3, (port("a", 5),), (port("c"),))],
            r"segment3: its input a \(uint8 1x5\) comes from segment1 as a \(uint8 1x4\)",
        ),
        (
            [segment(1, "x", "ar"), segment(2, "a", "r")],
            "segment1 and segment2 both compute a result r",
        ),
    ],
)
def test_what_does_not_fit_is_named(segments: list[Adder], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Pipeline(segments)


@given(data=st.data(), count=st.integers(1, 6))
def test_any_number_of_segments_equals_the_sums_by_hand(data: st.DataObject, count: int) -> None:
    known = {"x": data.draw(st.integers(0, 255))}
    inputs = dict(known)
    segments: list[Adder] = []
    taken: set[str] = set()
    for number in range(count):
        names = sorted(known) if number else ["x"]
        takes = data.draw(st.lists(st.sampled_from(names), unique=True, min_size=1))
        if not number:
            takes = ["x"]
        gives = [f"{number}{k}" for k in range(data.draw(st.integers(1, 3)))]
        segments.append(Adder(number, tuple(map(port, takes)), tuple(map(port, gives))))
        known |= dict.fromkeys(gives, (sum(known[name] for name in takes) + number) % 256)
        taken |= set(takes)
    last = {item.port.name for item in segments[-1].model.outputs}
    expected = {
        name: value for name, value in known.items() if name in last or name not in taken | {"x"}
    }
    assert results(segments, inputs) == expected


def outputs_of(folder: Path, name: str, segments: int, chip_only: bool) -> dict[str, bytes]:
    """Outputs on random inputs of a model that was compiled into segments."""
    first, *others = (
        folder / "darwinn" / f"{name}_segment_{k}_of_{segments}_edgetpu.tflite"
        for k in range(segments)
    )
    report = run(first, seed=5, then=others, strict=True, chip_only=chip_only)
    assert report.verdict == "pass", report.message
    return {row.name: row.tensor.tobytes() for row in report.rows}


@pytest.mark.nightly
def test_a_model_in_three_segments_equals_the_same_in_two(corpus: Path, wild: Path) -> None:
    boxes = {f"TFLite_Detection_PostProcess{k}" for k in ("", ":1", ":2", ":3")}
    for chip_only, names in ((True, {"Squeeze1", "convert_scores"}), (False, boxes)):
        three = outputs_of(wild, "ssd_mobilenet_v1", 3, chip_only)
        assert three.keys() == names
        two = outputs_of(corpus, "ssd_mobilenet_v1_coco_quant_postprocess", 2, chip_only)
        assert three == two
