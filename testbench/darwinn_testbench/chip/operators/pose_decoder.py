"""The custom operator of PoseNet and BodyPix, which finds people in what the chip has computed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from darwinn_formats.errors import FormatError
from darwinn_formats.flatbuffer import Budget, flexbuffer
from darwinn_reference.arrays import AnyArray

from darwinn_testbench.chip.inputs import TensorPort
from darwinn_testbench.chip.operators.custom_operator import PlacedOperator
from darwinn_testbench.chip.operators.poses import JOINTS, KEYPOINTS, decode_masks, decode_poses
from darwinn_testbench.errors import InputError

POSE_DECODER = "PosenetDecoderOp"
"""Name of the operator."""

MASK = 33
"""Height and width of a mask, whatever the network's are."""

MOST_PEOPLE = 1024
"""People that a model may ask for."""

_CHANNELS = (KEYPOINTS, 2 * KEYPOINTS, 4 * JOINTS, 2 * KEYPOINTS)
"""Of the inputs: scores, short, mid and (of BodyPix) long offsets."""


class PoseDecoder:
    """The operator, with the options of a model.

    Outputs are float32: key points (1, people, 17, y and x) in pixels, their scores, scores of
    people, how many people there are (1), and of BodyPix masks (1, people, 33, 33). What is behind
    the last person is 0.

    Raises:
        FormatError: the options are not valid.
        InputError: inputs or outputs of another number, type or shape.
    """

    on_chip = False

    def __init__(self, place: PlacedOperator) -> None:
        self.most, self.threshold, self.stride, self.radius = _options(place)
        self._inputs = place.inputs
        takes, gives = len(place.inputs), len(place.outputs)
        if (takes, gives) not in ((3, 4), (4, 5)):
            raise InputError(f"{place.file}: {POSE_DECODER} of {takes} inputs and {gives} outputs")
        height, width = place.inputs[0].shape[1:3] if len(place.inputs[0].shape) == 4 else (0, 0)
        for port, channels in zip(place.inputs, _CHANNELS, strict=False):
            wanted = (1, height, width, channels)
            if not height * width or port.shape != wanted or port.dtype not in ("u1", "f4"):
                raise InputError(f"{place.file}: {POSE_DECODER} cannot read its input {port}")
        shapes = [(KEYPOINTS, 2), (KEYPOINTS,), (), (), (MASK, MASK)]
        self.outputs = tuple(
            replace(port, shape=(1,) if k == 3 else (1, self.most, *shape), dtype=np.dtype("f4"))
            for k, (port, shape) in enumerate(zip(place.outputs, shapes, strict=False))
        )
        last = ((self.most - 1) * width + height - 1) * height + width - 1
        if len(place.inputs) == 4 and last >= self.most * MASK * MASK:
            raise InputError(
                f"{place.file}: {POSE_DECODER} writes masks of {height} x {width} blocks behind "
                f"the end of its output, which holds {MASK} x {MASK}; --chip-only leaves it out"
            )

    def prepare(self) -> None:
        """Nothing takes long."""

    def run(self, inputs: Sequence[AnyArray]) -> tuple[list[AnyArray], dict[int, AnyArray]]:
        """The people in the inputs; there are no variables."""
        heatmaps, *offsets = (
            _real(port, value, 1.0 if k == 0 else 1.0 / self.stride)
            for k, (port, value) in enumerate(zip(self._inputs, inputs, strict=True))
        )
        poses = decode_poses(
            heatmaps,
            offsets[0],
            offsets[1],
            most=self.most,
            threshold=self.threshold,
            radius=float(np.float32(self.radius) / np.float32(self.stride)),
            stride=self.stride,
        )
        count = len(poses.scores)
        results = [np.zeros(port.shape, np.float32) for port in self.outputs]
        found = (poses.keypoints, poses.keypoint_scores, poses.scores)
        for result, value in zip(results, found, strict=False):
            result[0, :count] = value
        results[3][0] = count
        if len(offsets) == 3:
            decode_masks(offsets[2], poses, self.stride, results[4].reshape(-1))
        return list(results), {}


def _options(place: PlacedOperator) -> tuple[int, float, int, float]:
    """People at most, least score, stride and radius in pixels."""
    span = place.options
    options = flexbuffer.read(span.data, base=span.offset, budget=Budget(len(span)))
    if not isinstance(options, dict):
        raise FormatError("", "the options are not a map", offset=span.offset)
    found = []
    for key, least, greatest in (
        ("max_detections", 1, MOST_PEOPLE),
        ("score_threshold", 0, 1),
        ("stride", 1, 1 << 16),
        ("nms_radius", 0, 1 << 16),
    ):
        value = options.get(key)
        if not isinstance(value, int | float) or not (
            math.isfinite(value) and least <= value <= greatest
        ):
            reason = f"{value!r} is no number from {least} to {greatest}"
            raise FormatError(f'["{key}"]', reason, offset=span.offset)
        found.append(value)
    most, threshold, stride, radius = found
    return int(most), float(threshold), int(stride), float(radius)


def _real(port: TensorPort, value: AnyArray, factor: float) -> AnyArray:
    """Real values times ``factor``, in float32: (height, width, channels)."""
    scale, zero = np.float32(factor), np.float32(0)
    if value.dtype != np.float32:
        scale, zero = np.float32(port.scale) * scale, np.float32(port.zero_point)
    return np.asarray((value[0].astype(np.float32) - zero) * scale, np.float32)
