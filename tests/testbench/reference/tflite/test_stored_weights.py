"""Other weights than the executable holds are bad input; a changed one is a mismatch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from darwinn_formats.darwinn import Executable
from darwinn_reference.tflite.graph import Network
from darwinn_reference.tflite.stored_weights import (
    LayerShare,
    layer_shares,
    operators_between,
)
from darwinn_reference.tflite.stored_words import StoredWords
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.expectation import References
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Verdict
from one_operator import Array, single, tensor
from other_weights import with_weights

NAME = "mobilenet_v1_0.25_128_quant"
LAYERS = {"CONV_2D": 26, "DEPTHWISE_CONV_2D": 25}
"""A layer of each kind of a MobileNet, by its operator."""

EMPTY = Executable(parameters=bytes(4096))
"""Parameters that hold no weights."""

RELATED = "_cocompiled_with_"
UNLIKE = frozenset(
    {
        "mnist_lenet_quant",
        "teachable_other_calibration",
        "teachable_other_calibration_2",
        "yolov8n_pallets_640",
    }
)
"""Files beside an executable of their name that are not what it was compiled from."""


def other(values: Array) -> Array:
    """Weights of another training run."""
    limits = np.iinfo(values.dtype)
    generator = np.random.default_rng(5)
    return generator.integers(limits.min, limits.max + 1, values.shape).astype(values.dtype)


def one_changed(values: Array) -> Array:
    values.reshape(-1)[0] ^= 0x40
    return values


@pytest.mark.parametrize(("name", "operator"), LAYERS.items())
def test_other_weights_of_one_layer_are_bad_input(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, operator: int
) -> None:
    file = tmp_path / "other.tflite"
    file.write_bytes(with_weights(corpus / "tflite" / f"{NAME}.tflite", operator, other))
    compiled = corpus / "darwinn" / f"{NAME}_edgetpu.tflite"
    assert run_command_line(["verify", str(compiled), "--reference", str(file)]) == 2
    error = capsys.readouterr().err
    assert (
        f"not the model before compilation: weights of operator {operator} {name} differ" in error
    )


def test_one_changed_weight_is_a_mismatch(corpus: Path, tmp_path: Path) -> None:
    file = tmp_path / "changed.tflite"
    file.write_bytes(with_weights(corpus / "tflite" / f"{NAME}.tflite", 4, one_changed))
    report = verify(corpus / "darwinn" / f"{NAME}_edgetpu.tflite", file, runs=3)
    assert report.verdict is Verdict.MISMATCH


def test_another_training_run_is_bad_input(wild: Path) -> None:
    name = "mnist_lenet_quant"
    with pytest.raises(InputError, match="weights of operators 3 CONV_2D, 5 CONV_2D, 7 FULLY_"):
        verify(wild / "darwinn" / f"{name}_edgetpu.tflite", wild / "tflite" / f"{name}.tflite")


def test_another_quantisation_of_the_input_is_bad_input(wild: Path) -> None:
    name = "yolov8n_pallets_640"
    with pytest.raises(InputError, match="input serving_default_images:0: the layer has scale"):
        verify(wild / "darwinn" / f"{name}_edgetpu.tflite", wild / "tflite" / f"{name}.tflite")


def every_layer_is_found(folder: Path) -> int:
    """Check all pairs of a folder; return how many layers were looked for."""
    layers = 0
    for model in sorted((folder / "tflite").glob("*.tflite")):
        if model.stem in UNLIKE:
            continue
        every = sorted((folder / "darwinn").glob(f"{model.stem}*_edgetpu.tflite"))
        own = [
            each
            for each in every
            if each.name.removesuffix("_edgetpu.tflite").split(RELATED)[0] == model.stem
        ]
        for compiled in own:
            (bound, *_) = open_models(compiled, [each for each in every if each != compiled])
            references = References(model, bound)
            twin = references.twin
            shares = twin.weights()
            for each in (*shares, *twin.biases()):
                assert each.found == each.groups, compiled.name
            assert not twin.absent(), compiled.name
            layers += len(shares)
    return layers


@pytest.mark.parametrize(("folder", "least"), [("corpus", 300), ("wild", 300), ("wild2", 150)])
def test_every_layer_of_real_models_is_found_whole(
    request: pytest.FixtureRequest, folder: str, least: int
) -> None:
    assert every_layer_is_found(request.getfixturevalue(folder)) > least


def shares(network: Network, executable: Executable = EMPTY) -> list[LayerShare]:
    return list(layer_shares(network, StoredWords([executable]), network.operators))


@pytest.mark.parametrize("weights", [np.full((32, 8), 7, np.int8), np.ones((1, 4), np.int8)])
def test_nothing_is_said_of_layers_with_little_to_tell(weights: Array) -> None:
    outputs, inputs = weights.shape
    tensors = [
        tensor(0, (1, inputs), "i1", 1.0),
        tensor(1, weights.shape, "i1", 1.0, 0, weights),
        tensor(2, (1, outputs), "i1", 1.0),
    ]
    assert not shares(single("FULLY_CONNECTED", tensors, (0, 1), (2,)))


def test_weights_that_no_output_of_the_chip_depends_on_are_not_looked_for() -> None:
    weights = other(np.zeros((32, 8), np.int8))
    tensors = [
        tensor(0, (1, 8), "i1", 1.0),
        tensor(1, weights.shape, "i1", 1.0, 0, weights),
        tensor(2, (1, 32), "i1", 1.0),
    ]
    network = single("FULLY_CONNECTED", tensors, (0, 1), (2,))
    assert [(each.groups > 16, each.found) for each in shares(network)] == [(True, 0)]
    assert operators_between(network, network.outputs, network.inputs) == network.operators
    assert not operators_between(network, (0,), network.inputs)


def test_nothing_is_said_where_the_executables_are_incomplete() -> None:
    weights = other(np.zeros((32, 8), np.int8))
    tensors = [
        tensor(0, (1, 8), "i1", 1.0),
        tensor(1, weights.shape, "i1", 1.0, 0, weights),
        tensor(2, (1, 32), "i1", 1.0),
    ]
    network = single("FULLY_CONNECTED", tensors, (0, 1), (2,))
    cut = Executable(parameters=bytes(64))
    assert not shares(network, cut)


@pytest.mark.parametrize("options", [{"stride_h": -1}, {"dilation_w_factor": 0}])
def test_windows_that_make_no_sense_are_not_looked_at(options: dict[str, int]) -> None:
    """They were an internal error of ``verify``; the network itself is refused elsewhere."""
    weights = other(np.zeros((8, 3, 3, 8), np.int8))
    tensors = [
        tensor(0, (1, 8, 8, 8), "i1", 1.0),
        tensor(1, weights.shape, "i1", 1.0, 0, weights),
        tensor(2, (1, 8, 8, 8), "i1", 1.0),
    ]
    assert shares(single("CONV_2D", tensors, (0, 1), (2,)))
    assert not shares(single("CONV_2D", tensors, (0, 1), (2,), **options))
