"""Bilinear resize on the chip, by its interpolating instruction, against LiteRT and the oracle.

No compiled model at hand has the instruction: a program of one instruction resizes an image whose
border is repeated around it, as programs do by moves.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from darwinn_formats import tflite
from darwinn_formats.tflite import BuiltinOperator, ResizeBilinearOptions
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.litert import LiteRtReference
from darwinn_testbench.compiler.network import Quantisation
from darwinn_testbench.compiler.uncompiled import GraphWriter
from numpy.typing import NDArray
from stimulus import Walk
from unit_bench import Bench

INTERPOLATE = "TensorInterpolate"
PIXEL = 128
"""Positions of the instruction are in 1/128 pixel."""

SOURCE, RESULT = 4_096, 65_536
"""Byte addresses of the bordered image and of the result."""

SIGN_BIT = np.uint8(0x80)
Image = NDArray[Any]
CASES = [
    pytest.param((5, 7, 8), (10, 14), {"half_pixel_centers": True}, id="twice, pixels halved"),
    pytest.param((5, 7, 8), (9, 13), {"align_corners": True}, id="corners kept"),
    pytest.param((4, 6, 20), (16, 12), {}, id="by 4 and 2 from the corner"),
    pytest.param((8, 12, 4), (4, 6), {"half_pixel_centers": True}, id="half the size"),
    pytest.param((9, 9, 64), (9, 9), {"align_corners": True}, id="the same size"),
    pytest.param((3, 17, 4), (17, 129), {"align_corners": True}, id="by 8, all lanes of a word"),
]


def resize_model(shape: tuple[int, ...], size: tuple[int, int], dtype: str, options: Any) -> bytes:
    writer = GraphWriter()
    quantisation = Quantisation(np.float32(1 / 64), 3)
    source = writer.activation("image", (1, *shape), np.dtype(dtype), quantisation)
    sizes = writer.constant("size", np.array(size, np.int32), np.zeros(0, np.float32))
    result = writer.activation("resized", (1, *size, shape[2]), np.dtype(dtype), quantisation)
    operator = BuiltinOperator.RESIZE_BILINEAR
    writer.operator(operator, (source, sizes), result, ResizeBilinearOptions(**options))
    return writer.finish()


def axis(size: int, outputs: int, options: dict[str, bool]) -> tuple[int, int]:
    """Start and step of the positions, in 1/128 pixel."""
    if options.get("align_corners"):
        step = Fraction(size - 1, outputs - 1)
    else:
        step = Fraction(size, outputs)
    start = step / 2 - Fraction(1, 2) if options.get("half_pixel_centers") else Fraction(0)
    assert (PIXEL * step).denominator == (PIXEL * start).denominator == 1
    return int(PIXEL * start), int(PIXEL * step)


def on_chip(image: Image, size: tuple[int, int], options: dict[str, bool]) -> NDArray[np.uint8]:
    """The resized image; bytes are unsigned, as the chip holds them."""
    height, width, channels = image.shape
    bordered = np.pad(image, ((1, 1), (1, 1), (0, 0)), mode="edge")
    pitches = {"x": channels, "y": channels * (width + 2)}
    words = channels // 4
    taps = (2, 2, size[1], size[0], 1, 1, 1, 1)
    fields: dict[str, Any] = {
        "tiles": 1,
        "main_limit": [count - 1 for count in taps],
        "reduction_loops": 0b11,
        "output_block_loop": 4,
        "block_lanes": channels - 1,
        "last_block_lanes": channels - 1,
        "partial_sum_read": 3,
        "output_scale": 2.0**-14,
    }
    # The loops along the axes do not move the address: the positions do.
    corner = SOURCE + pitches["y"] + pitches["x"]
    reads = (pitches["x"], pitches["y"], 0, 0, 0, 0, 0, 0)
    fields |= Walk(taps, reads, corner).fields(INTERPOLATE, "narrow_read")
    sums = (0, 0, 4, 4 * size[1], 0, 0, 0, 0)
    fields |= Walk(taps, sums).fields(INTERPOLATE, "partial_sum")
    fields |= Walk(taps, (0,) * 8).fields(INTERPOLATE, "parameter_read")
    results = (words * size[0] * size[1], 1, 1, 1, 1, 1, 1, 1)
    fields |= Walk(results, (4, 0, 0, 0, 0, 0, 0, 0), RESULT).fields(INTERPOLATE, "narrow_write")
    for name, loop, given, wanted in (("x", 2, width, size[1]), ("y", 3, height, size[0])):
        start, step = axis(given, wanted, options)
        fields |= {f"{name}_loop": loop, f"{name}_start": start, f"{name}_step": step}
        fields[f"{name}_pitch"] = pitches[name]
    bench = Bench([(INTERPOLATE, fields)])
    octets: NDArray[np.uint8] = bench.tiles[0]["narrow"].view(np.uint8)
    octets[SOURCE : SOURCE + bordered.size] = bordered.ravel()
    bench.run()
    assert bench.fault is None
    bench.assert_idle()
    return octets[RESULT : RESULT + size[0] * size[1] * channels].reshape(*size, channels).copy()


def exact(image: Image, size: tuple[int, int], options: dict[str, bool]) -> NDArray[np.int64]:
    """The interpolated values in units of 2^-14, exactly."""
    weights = []
    for given, wanted in zip(image.shape, size, strict=False):
        start, step = axis(given, wanted, options)
        positions = start + step * np.arange(wanted)
        matrix = np.zeros((wanted, given), np.int64)
        for row, position in enumerate(positions.tolist()):
            first, part = divmod(position, PIXEL)
            matrix[row, min(max(first, 0), given - 1)] += PIXEL - part
            matrix[row, min(max(first + 1, 0), given - 1)] += part
        weights.append(matrix)
    total: NDArray[np.int64] = np.einsum(
        "ij,kl,jlc->ikc", weights[0], weights[1], image.astype(np.int64)
    )
    return total


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(("shape", "size", "options"), CASES)
def test_the_instruction_resizes_as_litert_does_but_for_ties(
    shape: tuple[int, int, int], size: tuple[int, int], options: dict[str, bool], dtype: str
) -> None:
    """The chip rounds halves to even, LiteRT up: nothing else differs, and that by 1."""
    image = np.random.default_rng(7).integers(0, 256, shape, np.uint8)
    given = image if dtype == "uint8" else (image ^ SIGN_BIT).view(np.int8)
    model = resize_model(shape, size, dtype, options)
    oracle = ChipArithmetic(tflite.load(model)).run([given[None]])
    litert = LiteRtReference(model).run([given[None]])
    (index,) = tflite.load(model).subgraphs[0].outputs
    chip = on_chip(image, size, options)
    expected = chip if dtype == "uint8" else (chip ^ SIGN_BIT).view(np.int8)
    np.testing.assert_array_equal(oracle[index][0], expected)
    gap = litert[index][0].astype(int) - expected
    ties = exact(given, size, options) % (1 << 14) == 1 << 13
    assert set(np.unique(gap[~ties]).tolist()) <= {0}
    assert set(np.unique(gap).tolist()) <= {-1, 0, 1}
    print(f"{dtype} {shape} to {size}: {np.count_nonzero(gap)} of {gap.size} differ by 1, all ties")
