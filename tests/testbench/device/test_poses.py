"""The decoder of PoseNet and BodyPix: people that are put into maps are found again."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpus_models import path_of
from darwinn_formats.errors import FormatError
from darwinn_formats.flatbuffer import Span
from darwinn_testbench import Interpreter
from darwinn_testbench.chip.inputs import TensorPort
from darwinn_testbench.chip.operators import poses
from darwinn_testbench.chip.operators.custom_operator import PlacedOperator
from darwinn_testbench.chip.operators.pose_decoder import POSE_DECODER, PoseDecoder
from darwinn_testbench.chip.operators.poses import (
    Heap,
    along_joint,
    decode_masks,
    decode_poses,
    sample,
)
from darwinn_testbench.errors import InputError
from flatbuffers import flexbuffers
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

HEIGHT, WIDTH, STRIDE = 23, 31, 16
Floats = NDArray[np.float32]

# --- pieces, against numbers from the tests of the vendor's decoder (google-coral/libcoral) -------


def test_joints_lead_where_the_vendor_s_lead() -> None:
    children = [[target for _, target in each] for each in poses._NEIGHBOURS]
    assert children == [
        *([1, 2, 5, 6], [3, 0], [4, 0], [1], [2], [7, 11, 0], [8, 12, 0], [9, 5], [10, 6]),
        *([7], [8], [13, 5], [14, 6], [15, 11], [16, 12], [13], [14]),
    ]
    edges = [[edge for edge, _ in each] for each in poses._NEIGHBOURS]
    assert edges == [
        *([0, 2, 4, 10], [1, 16], [3, 18], [17], [19], [5, 7, 20], [11, 13, 26], [6, 21]),
        *([12, 27], [22], [28], [8, 23], [14, 29], [9, 24], [15, 30], [25], [31]),
    ]


def test_what_lies_between_blocks_is_interpolated() -> None:
    y, x, channel = np.mgrid[0:3, 0:4, 0:3].astype(np.float32)
    found = sample(y + x + channel + np.float32(0.2), np.float32(0.75), np.float32(1.32), [2, 0, 1])
    assert np.allclose(found, 0.75 + 1.32 + np.array([2, 0, 1]) + 0.2)


def test_offsets_are_followed_as_by_the_vendor() -> None:
    y, x, channel = np.mgrid[0:10, 0:8, 0:6].astype(np.float32)
    shorts = (y + x + channel + np.float32(0.1)) / np.float32(9 + 7 + 5 + 0.1)
    y, x, channel = np.mgrid[0:10, 0:8, 0:16].astype(np.float32)
    mids = 2 * (y + x + channel + np.float32(0.1)) / np.float32(9 + 7 + 15) - np.float32(0.5)
    source = (np.float32(4.1), np.float32(3.5))
    found = [along_joint(shorts, mids, source, 1, 2, steps) for steps in range(4)]
    assert np.allclose(
        found,
        [(4.161290, 3.819355), (4.639046, 4.439290), (5.168825, 5.111249), (5.755558, 5.840163)],
    )


@given(scores=st.lists(st.integers(0, 5), max_size=40))
def test_the_heap_gives_scores_in_order(scores: list[int]) -> None:
    heap = Heap()
    for number, score in enumerate(scores):
        heap.push(float(score), number)
    found = [heap.pop() for _ in range(len(heap))]
    assert [score for score, _ in found] == sorted(scores, reverse=True)
    assert sorted(number for _, number in found) == list(range(len(scores)))


def test_equal_scores_are_not_taken_in_the_order_in_which_they_came() -> None:
    """The order is what a program with std::priority_queue of the GNU library printed."""
    heap = Heap()
    for number in range(5):
        heap.push(1.0, number)
    assert [heap.pop()[1] for _ in range(5)] == [0, 2, 4, 1, 3]


# --- people that are put in -----------------------------------------------------------------------


def people(count: int, seed: int) -> Floats:
    """Key points of people beside each other, in blocks, (count, 17, 2)."""
    random = np.random.default_rng(seed)
    height = 2 + random.uniform(0, 1, (count, 17)) * (HEIGHT - 5)
    across = (np.arange(count)[:, None] + 0.2 + 0.6 * random.uniform(0, 1, (count, 17))) * WIDTH
    return np.stack([height, across / count], axis=-1).astype(np.float32)


def maps_of(persons: Floats, strength: Sequence[float]) -> tuple[Floats, Floats, Floats]:
    """Maps that a perfect network would give: every block points to what is nearest to it."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    heat = np.full((HEIGHT, WIDTH, 17), -6, np.float32)
    shorts = np.zeros((HEIGHT, WIDTH, 34), np.float32)
    mids = np.zeros((HEIGHT, WIDTH, 64), np.float32)
    for kind in range(17):
        away = np.stack([(p[kind, 0] - y) ** 2 + (p[kind, 1] - x) ** 2 for p in persons])
        nearest = away.argmin(axis=0)
        points = persons[:, kind]
        shorts[..., kind] = points[nearest, 0] - y
        shorts[..., 17 + kind] = points[nearest, 1] - x
        level = np.array(strength, np.float32)[nearest] - np.float32(0.01) * kind
        heat[..., kind] = level - np.sqrt(away.min(axis=0)).astype(np.float32)
        for edge, target in poses._NEIGHBOURS[kind]:
            block = edge if edge < 16 else edge + 16
            mids[..., block] = persons[nearest, target, 0] - y
            mids[..., block + 16] = persons[nearest, target, 1] - x
    return heat, shorts, mids


@pytest.mark.parametrize("count", [1, 2, 3])
def test_people_are_found_where_they_are(count: int) -> None:
    persons = people(count, count)
    heat, shorts, mids = maps_of(persons, [6.0 - k for k in range(count)])
    found = decode_poses(heat, shorts, mids, most=10, threshold=0.3, radius=10 / 16, stride=STRIDE)
    assert len(found.scores) == count
    assert np.all(np.diff(found.scores) <= 0)
    assert np.abs(found.keypoints - persons * STRIDE).max() < 0.6 * STRIDE
    close = np.abs(found.keypoints - persons * STRIDE).max(axis=-1) < 1
    assert close.mean() > 0.9


Spot = tuple[float, float]
Person = tuple[list[Spot], list[float]]


class SlowDecoder:
    """The decoder again, plain: numbers of Python, one after another, from the description."""

    def __init__(self, heat: Any, shorts: Any, mids: Any) -> None:
        self.heat, self.shorts, self.mids = heat, shorts, mids
        self.height, self.width = len(heat), len(heat[0])

    def at(self, tensor: Any, y: float, x: float, c: int) -> float:
        top, left = math.floor(y), math.floor(x)
        bottom, right = math.ceil(y), math.ceil(x)
        upper = tensor[top][left][c] + (tensor[top][right][c] - tensor[top][left][c]) * (x - left)
        lower = tensor[bottom][left][c]
        lower += (tensor[bottom][right][c] - tensor[bottom][left][c]) * (x - left)
        return float(upper + (lower - upper) * (y - top))

    def inside(self, y: float, x: float) -> Spot:
        return min(max(y, 0.0), self.height - 1.0), min(max(x, 0.0), self.width - 1.0)

    def move(self, tensor: Any, y: float, x: float, c: int, step: int) -> Spot:
        return self.inside(y + self.at(tensor, y, x, c), x + self.at(tensor, y, x, c + step))

    def roots(self, threshold: float) -> list[tuple[float, int, Spot]]:
        found = []
        for y, x, kind in itertools.product(range(self.height), range(self.width), range(17)):
            score = self.heat[y][x][kind]
            window = [
                self.heat[v][u][kind]
                for v in range(max(y - 1, 0), min(y + 2, self.height))
                for u in range(max(x - 1, 0), min(x + 2, self.width))
            ]
            if score >= math.log(threshold / (1 - threshold)) and score == max(window):
                offsets = self.shorts[y][x]
                point = self.inside(y + offsets[kind], x + offsets[17 + kind])
                found.append((-score, kind, point))
        return sorted(found)

    def person(self, kind: int, root: Spot) -> Person:
        placed: dict[int, tuple[Spot, float]] = {}
        queue = [(-self.at(self.heat, *root, kind), kind, root)]
        while queue:
            score, kind, point = heapq.heappop(queue)
            if kind in placed:
                continue
            placed[kind] = (point, 1 / (1 + math.exp(score)))
            for edge, target in poses._NEIGHBOURS[kind]:
                if target not in placed:
                    # Joint 16 takes channels of joint 0, as in the vendor's decoder.
                    led = self.move(self.mids, *point, edge if edge <= 16 else edge + 16, 16)
                    for _ in range(5):
                        led = self.move(self.shorts, *led, target, 17)
                    heapq.heappush(queue, (-self.at(self.heat, *led, target), target, led))
        return [placed[k][0] for k in range(17)], [placed[k][1] for k in range(17)]

    def people(self, most: int, threshold: float, radius: float) -> list[tuple[float, list[Spot]]]:
        found: list[Person] = []
        for _, kind, root in self.roots(threshold):
            near = any(math.dist(points[kind], root) <= radius for points, _ in found)
            if len(found) < most and not near:
                person = self.person(kind, root)
                found += [person] if sum(person[1]) / 17 >= threshold else []
        found.sort(key=lambda each: -sum(each[1]))
        rated = []
        for place, (points, scores) in enumerate(found):
            free = [
                all(math.dist(points[kind], other[kind]) > radius for other, _ in found[:place])
                for kind in range(17)
            ]
            total = sum(itertools.compress(scores, free)) / 17
            rated += [(total, points)] if total >= threshold else []
        return sorted(rated, key=lambda each: -each[0])


@pytest.mark.parametrize("seed", range(4))
def test_random_maps_are_decoded_as_by_a_slow_decoder(seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = (9, 11)
    heat = random.normal(0, 2.5, (*shape, 17)).astype(np.float32)
    shorts = random.normal(0, 0.1, (*shape, 34)).astype(np.float32)
    mids = random.normal(0, 2, (*shape, 64)).astype(np.float32)
    found = decode_poses(heat, shorts, mids, most=8, threshold=0.4, radius=1.2, stride=STRIDE)
    wanted = SlowDecoder(heat.tolist(), shorts.tolist(), mids.tolist()).people(8, 0.4, 1.2)
    assert len(wanted) > 1
    assert np.allclose(found.scores, [score for score, _ in wanted], atol=1e-3)
    places = np.array([points for _, points in wanted]) * STRIDE
    assert np.allclose(found.keypoints, places, atol=0.1)


def test_masks_give_each_block_to_the_person_that_it_points_to() -> None:
    size = 33
    persons = people(2, 5)
    found = poses.Poses(persons * STRIDE, np.ones((2, 17), np.float32), np.ones(2, np.float32))
    y, x = np.mgrid[0:size, 0:size].astype(np.float32)
    belongs = (x > 12).astype(int)
    longs = np.concatenate([persons[belongs, :, 0], persons[belongs, :, 1]], axis=-1)
    longs -= np.concatenate([np.repeat(y[..., None], 17, -1), np.repeat(x[..., None], 17, -1)], -1)
    room = np.full(3 * size * size, 7, np.float32)
    decode_masks(longs.astype(np.float32), found, STRIDE, room)
    masks = room.reshape(3, size, size)
    # Right away from the line where blocks of both are mixed.
    inner = np.abs(x - 12.5) > 1
    assert np.array_equal(masks[1][inner], belongs[inner])
    assert np.array_equal(masks[0][inner], 1 - belongs[inner])
    assert np.all(masks[2] == 7)


# --- the operator --------------------------------------------------------------------------------


def place(**options: Any) -> PlacedOperator:
    values = {"max_detections": 5, "score_threshold": 0.3, "stride": 16, "nms_radius": 10.0}
    written = flexbuffers.Dumps({k: v for k, v in (values | options).items() if v is not None})
    inputs = tuple(
        TensorPort(f"in{k}", (1, HEIGHT, WIDTH, channels), np.dtype("u1"), 0.1, 128)
        for k, channels in enumerate((17, 34, 64))
    )
    outputs = tuple(TensorPort(f"out{k}", (), np.dtype("f4")) for k in range(4))
    return PlacedOperator(POSE_DECODER, Span(memoryview(bytes(written))), inputs, outputs)


def test_the_operator_dequantises_and_fills_its_outputs() -> None:
    heat, shorts, mids = maps_of(people(1, 3), [6.0])
    scaled = (heat, shorts * 16, mids * 16)
    scales = (0.1, 3.0, 3.0)
    inputs = [
        np.clip(np.rint(each / scale) + 128, 0, 255).astype(np.uint8)[None]
        for each, scale in zip(scaled, scales, strict=True)
    ]
    ports = zip(place().inputs, scales, strict=True)
    operator = PoseDecoder(
        replace(place(), inputs=tuple(replace(port, scale=scale) for port, scale in ports))
    )
    (points, point_scores, scores, count), states = operator.run(inputs)
    assert [each.shape for each in (points, point_scores, scores, count)] == [
        *((1, 5, 17, 2), (1, 5, 17), (1, 5), (1,))
    ]
    assert states == {}
    assert count == [1]
    assert np.abs(points[0, 0] - people(1, 3)[0] * 16).max() < 16
    assert not points[0, 1:].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stride": 0}, "stride"),
        ({"max_detections": 1 << 30}, "max_detections"),
        ({"score_threshold": math.nan}, "score_threshold"),
        ({"nms_radius": None}, "None is no number"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        PoseDecoder(place(**options))


def test_tensors_that_do_not_fit_are_refused() -> None:
    good = place()
    with pytest.raises(InputError, match="of 2 inputs"):
        PoseDecoder(replace(good, inputs=good.inputs[:2]))
    wrong = replace(good.inputs[2], shape=(1, HEIGHT, WIDTH, 63))
    with pytest.raises(InputError, match="cannot read its input in2"):
        PoseDecoder(replace(good, inputs=(*good.inputs[:2], wrong)))
    longs = [
        replace(port, shape=(1, 60, 60, channels))
        for port, channels in zip((*good.inputs, good.inputs[1]), (17, 34, 64, 34), strict=True)
    ]
    with pytest.raises(InputError, match=r"masks of 60 x 60 blocks .* --chip-only leaves it out"):
        PoseDecoder(replace(good, inputs=tuple(longs), outputs=(*good.outputs, good.outputs[0])))


def test_two_posenets_see_the_same_face(corpus: Path, wild: Path) -> None:
    """Of different training, quantisation and compilers, on a portrait of one person."""
    picture = corpus.parent / "images" / "grace_hopper.bmp"
    if not picture.exists():
        pytest.skip("there are no pictures beside the corpus")
    faces = []
    for path in (
        path_of(corpus, "posenet_mobilenet_v1_075_353_481_16_quant_decoder"),
        wild / "darwinn" / "posenet_353_481_2019_edgetpu.tflite",
    ):
        interpreter = Interpreter(path)
        interpreter.allocate_tensors()
        (source,) = interpreter.get_input_details()
        _, height, width, _ = source["shape"]
        image = Image.open(picture).convert("RGB").resize((width, height))
        interpreter.set_tensor(source["index"], np.asarray(image)[None])
        interpreter.invoke()
        points, _, scores, count = (
            interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()
        )
        assert count == [1]
        assert scores[0, 0] > 0.3
        faces.append(points[0, 0, :5])
        nose, left_eye, right_eye, left_ear, right_ear = points[0, 0, :5]
        assert right_ear[1] < right_eye[1] < nose[1] < left_eye[1] < left_ear[1]
        assert max(left_eye[0], right_eye[0]) < nose[0]
    assert np.abs(faces[0] - faces[1]).max() < STRIDE
