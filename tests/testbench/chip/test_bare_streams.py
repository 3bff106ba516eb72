"""Bare instruction streams run as what their names say that they compute, against NumPy.

Inputs and outputs of these streams are eight bytes (of the matrix 256); the element-wise ones
compute four of them, and the rest of the row goes back as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats import darwinn
from darwinn_sim.bare_stream import descriptors
from darwinn_testbench.chip.dma_check import check_dma
from darwinn_testbench.chip.inspection import inspect
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.preload import Preload, parse
from darwinn_testbench.chip.session import Session
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Verdict
from numpy.typing import NDArray
from sample_files import sample

EVERY_BYTE = np.arange(256, dtype=np.uint8)
COMPUTED = 4
BIAS_ROW, FIRST_WEIGHT_ROW, LANES, INPUTS_PER_ROW = 0, 1, 64, 4


def results(
    corpus: Path, name: str, inputs: NDArray[np.uint8], preloads: Sequence[Preload] = ()
) -> NDArray[np.uint8]:
    """What a stream gives for each row of ``inputs``, with strict memory checking."""
    (model,) = open_models(corpus / "coral" / f"{name}.coral")
    session = Session(model, strict=True, preloads=preloads)
    outputs = [
        session.infer({"input0": row.reshape(1, 1, -1)}).outputs["output0"] for row in inputs
    ]
    return np.stack(outputs).reshape(len(inputs), -1)


def scaled(factor: float) -> Callable[[NDArray[np.uint8]], NDArray[Any]]:
    return lambda x: np.rint(x.astype(np.float32) * np.float32(factor))


# A stream carries no quantisation, so what is added or multiplied is partly in the meaning of the
# output's bytes: add1 scales by 255/256 (a little less, as the compiler computes it, which decides
# the tie at 128) and has its 1 in the range; mul2 and div2 leave 127 steps of 255.
ELEMENT_WISE: dict[str, Callable[[NDArray[np.uint8]], NDArray[Any]]] = {
    "add1": scaled(0.99609369),
    "mul2": scaled(127 / 255),
    "div2": scaled(127 / 255),
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: np.minimum(np.rint(256 / (1 + np.exp(-x.astype(np.float64)))), 255),
}


@pytest.mark.parametrize("name", ELEMENT_WISE)
def test_element_wise_streams_compute_what_they_are_called(corpus: Path, name: str) -> None:
    inputs = np.hstack([EVERY_BYTE.reshape(-1, 4), EVERY_BYTE[::-1].reshape(-1, 4)])
    given = results(corpus, name, inputs)
    expected = ELEMENT_WISE[name](inputs[:, :COMPUTED])
    np.testing.assert_array_equal(given[:, :COMPUTED], expected)
    np.testing.assert_array_equal(given[:, COMPUTED:], inputs[:, COMPUTED:])


def dense(
    x: NDArray[np.uint8], weights: NDArray[np.uint8], bias: NDArray[np.int32], scale: float
) -> NDArray[np.int64]:
    """weights (outputs, inputs); zero points 0 of inputs, 128 of weights, 135 of outputs."""
    sums = x.astype(np.int64) @ (weights.astype(np.int64) - 128).T + bias
    rounded = np.rint(sums.astype(np.float32) * np.float32(scale))
    outputs: NDArray[np.int64] = np.clip(rounded, -135, 120).astype(np.int64) + 135
    return outputs


def rows_of(weights: NDArray[np.uint8], bias: NDArray[np.int32]) -> bytes:
    """Wide rows of one tile: 64 biases, then for each four inputs 64 outputs x 4 inputs."""
    outputs, inputs = weights.shape
    padded = np.full((LANES, inputs), 128, np.uint8)
    padded[:outputs] = weights
    blocks = padded.reshape(LANES, -1, INPUTS_PER_ROW).transpose(1, 0, 2)
    return np.pad(bias, (0, LANES - outputs)).astype("<i4").tobytes() + blocks.tobytes()


def test_the_matrix_product_uses_the_parameters_that_are_preloaded(corpus: Path) -> None:
    random = np.random.default_rng(1)
    weights = random.integers(0, 256, (256, 256), np.uint8)
    bias = random.integers(-200_000, 200_000, 256).astype(np.int32)
    tiles = [slice(LANES * tile, LANES * (tile + 1)) for tile in range(4)]
    preloads = [
        Preload(tile, BIAS_ROW, rows_of(weights[part], bias[part]))
        for tile, part in enumerate(tiles)
    ]
    inputs = random.integers(0, 256, (5, 256), np.uint8)
    given = results(corpus, "matmul_256", inputs, preloads)
    np.testing.assert_array_equal(given, dense(inputs, weights, bias, 0.000141985933))
    assert len(np.unique(given)) > 100


def test_the_dense_layer_spreads_one_input_over_eight_outputs(corpus: Path) -> None:
    random = np.random.default_rng(2)
    weights = np.full((8, INPUTS_PER_ROW), 128, np.uint8)
    weights[:, 0] = random.integers(0, 256, 8)
    bias = random.integers(-9_000, 9_000, 8).astype(np.int32)
    inputs = random.integers(0, 256, (64, 8), np.uint8)
    preload = Preload(0, BIAS_ROW, rows_of(weights, bias))
    given = results(corpus, "dense_1_8_mul", inputs, [preload])
    np.testing.assert_array_equal(
        given, dense(inputs[:, :INPUTS_PER_ROW], weights, bias, 0.00418118061)
    )
    assert len(np.unique(given)) > 50


def test_parameters_that_nobody_loaded_are_noticed(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(corpus / "coral" / "matmul_256.coral")
    assert run_command_line(["run", path, "--strict"]) == 1
    assert "fault" in capsys.readouterr().out
    arguments = ["run", path, "--strict", "--preload", "wide:0-3:0:65=pattern:3"]
    assert run_command_line(arguments) == 0
    assert "output0" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["dense", "convolution"])
def test_the_chunk_of_a_sample_is_a_stream_that_runs(name: str, tmp_path: Path) -> None:
    """The host that only listens to it gives it no bytes that would be left behind."""
    sample(tmp_path)
    (executable,) = darwinn.load(tmp_path / f"{name}_stand_alone_edgetpu.tflite").executables
    (chunk,) = executable.instruction_bitstreams
    path = tmp_path / "stream"
    path.write_bytes(chunk.bitstream)
    assert run_command_line(["run", str(path)]) == 0


def test_the_transfers_of_a_stream_are_shown_without_hints(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(corpus / "coral" / "matmul_256.coral")
    assert run_command_line(["verify", path, "--no-hazards"]) == 0
    assert "there are no DMA hints to compare with" in capsys.readouterr().out
    assert run_command_line(["dma", path]) == 0
    printed = capsys.readouterr().out
    assert "no hints to compare with" in printed
    (row,) = check_dma(path).rows
    assert row.verdict is Verdict.RAN
    assert [(each["issued"]["kind"], each["hint"]) for each in row.entries] == [
        ("instruction", None),
        ("input", None),
        ("output", None),
        ("interrupt", None),
    ]
    assert (row.hints, row.beyond_hints, row.bytes_out) == (0, 4, 256)
    assert check_dma(path, with_tiles=True).rows[0].entries == row.entries


def test_a_stream_is_found_to_read_and_write_its_buffers(corpus: Path) -> None:
    for path in sorted(corpus.glob("coral/*.coral")):
        size = 256 if path.stem == "matmul_256" else 8
        assert descriptors([path.read_bytes()]) == [(1, 0, size), (3, 0, size), (4, 0, 0)]
        (model,) = open_models(path)
        executable = model.compiled.inference
        assert [layer.name for layer in executable.input_layers] == ["input0"]
        assert [layer.name for layer in executable.output_layers] == ["output0"]
        assert len(executable.instruction_bitstreams[0].field_offsets) == 4
        assert inspect(path).rows[0].type == "STREAM"


@pytest.mark.parametrize(
    "text",
    [
        "wide:0:0",
        "narrow:0:0=a",
        "wide:0:0=pattern:1",
        "wide:16:0:1=pattern:1",
        "wide:0:0:2081=pattern:1",
        "wide:0:5:5=pattern:1",
        "wide:x:0:1=pattern:1",
        "wide:0:y:1=pattern:1",
        "wide:1-:0:1=pattern:1",
    ],
)
def test_a_preload_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse(text)


def test_a_preload_names_tiles_and_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.bin"
    path.write_bytes(bytes(range(256)) * 2)
    found = parse(f"wide:0-2,5:0x10={path}")
    assert [(each.tile, each.row, len(each.data)) for each in found] == [
        (0, 16, 512),
        (1, 16, 512),
        (2, 16, 512),
        (5, 16, 512),
    ]
    assert parse(f"wide:3:1:3={path}") == (Preload(3, 1, path.read_bytes()),)
    with pytest.raises(InputError, match="512 bytes"):
        parse(f"wide:3:1:2={path}")
    patterns = parse("wide:0-1:4:6=pattern:9")
    assert patterns == parse("wide:0-1:4:6=pattern:9")
    assert patterns[0].data != patterns[1].data
