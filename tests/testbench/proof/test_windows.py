"""The terms of layers are those of a convolution that is written out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from darwinn_reference.tflite.graph import Network, NetworkTensor, Operator
from darwinn_testbench.proof.windows import LAYERS, windows
from numpy.typing import NDArray

CONVOLUTION, DEPTHWISE, DENSE = LAYERS
Integers = NDArray[np.int64]

IMAGES = [
    # name, image, weights, channels out, stride, dilation
    (CONVOLUTION, (5, 6, 4), (3, 3, 3, 4), 3, 1, 1),
    (CONVOLUTION, (6, 5, 2), (4, 2, 3, 2), 4, 2, 1),
    (CONVOLUTION, (7, 7, 4), (6, 3, 3, 2), 6, 1, 2),
    (CONVOLUTION, (2, 1, 3), (2, 3, 3, 3), 2, 1, 1),
    (DEPTHWISE, (5, 5, 3), (1, 3, 3, 3), 3, 1, 1),
    (DEPTHWISE, (6, 4, 2), (1, 3, 2, 6), 6, 2, 1),
]


def layer(
    name: str, shapes: tuple[tuple[int, ...], ...], options: dict[str, object]
) -> tuple[Network, Operator]:
    tensors = tuple(
        NetworkTensor(index, str(index), shape, np.dtype(np.uint8))
        for index, shape in enumerate(shapes)
    )
    operator = Operator(0, name, (0, 1), (2,), options)
    return Network("test", tensors, (operator,), (0,), (2,)), operator


def written_out(
    name: str, image: Integers, weights: Integers, channels: int, stride: int, dilation: int
) -> Integers:
    """With zeros around the image, as SAME says."""
    kernel = weights.shape[1:3]
    size = [-(-extent // stride) for extent in image.shape[:2]]
    reach = [(k - 1) * dilation + 1 for k in kernel]
    around = [
        max((count - 1) * stride + far - extent, 0)
        for count, far, extent in zip(size, reach, image.shape[:2], strict=True)
    ]
    padded = np.pad(image, [(each // 2, each - each // 2) for each in around] + [(0, 0)])
    found = np.zeros((*size, channels), np.int64)
    for y, x, o in product(*map(range, found.shape)):
        for i, j in product(*map(range, kernel)):
            pixel = padded[y * stride + i * dilation, x * stride + j * dilation]
            if name == DEPTHWISE:
                found[y, x, o] += pixel[o * len(pixel) // channels] * weights[0, i, j, o]
            else:
                taken = weights.shape[3]
                first = o * (len(pixel) // taken) // channels * taken
                found[y, x, o] += pixel[first : first + taken] @ weights[o, i, j]
    return found


@pytest.mark.parametrize(("name", "image", "shape", "channels", "stride", "dilation"), IMAGES)
def test_terms_of_an_image(
    name: str,
    image: tuple[int, ...],
    shape: tuple[int, ...],
    channels: int,
    stride: int,
    dilation: int,
) -> None:
    random = np.random.default_rng(0)
    values, weights = random.integers(1, 100, image), random.integers(1, 100, shape)
    expected = written_out(name, values, weights, channels, stride, dilation)
    options = {f"stride_{axis}": stride for axis in "hw"}
    options |= {f"dilation_{axis}_factor": dilation for axis in "hw"}
    network, operator = layer(
        name, ((1, *image), shape, (1, *expected.shape)), {"padding": "SAME", **options}
    )
    met: set[int] = set()
    for each in windows(network, operator):
        for channel in range(channels):
            group, within = divmod(channel, each.channels)
            taken = each.weights[group] + within * each.step
            sums = values.reshape(-1)[each.sources[group]] @ weights.reshape(-1)[taken]
            assert sums == expected.reshape(-1, channels)[each.row, channel]
            met |= set(taken.tolist())
    # A kernel that is larger than the image never meets it with all of its weights.
    assert len(met) == weights.size or min(image[:2]) < min(shape[1:3])


def test_terms_of_a_dense_layer() -> None:
    network, operator = layer(DENSE, ((2, 5), (3, 5), (2, 3)), {})
    (each,) = windows(network, operator)
    assert each.sources.tolist() == [[0, 1, 2, 3, 4]]
    assert (each.weights[0] + 2 * each.step).tolist() == [10, 11, 12, 13, 14]
