"""A reference of other quantisation or biases is bad input that names them; a fault is judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats.darwinn import Package, dump
from darwinn_sim.isa.table import BY_NAME
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import compile_network, uncompiled
from darwinn_testbench.compiler.network import DenseNetwork, Quantisation, random_dense
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Verdict
from program_mutations import entry_of, instructions_of, value_of, with_value

NETWORK = random_dense([64, 48, 40, 32], 3)
COMPILED = dump(compile_network(NETWORK))
MAC = BY_NAME["TensorMac"]

Change = Callable[[Quantisation], Quantisation]


def other_zero_point(old: Quantisation) -> Quantisation:
    return replace(old, zero_point=old.zero_point + 5)


def other_scale(old: Quantisation) -> Quantisation:
    return replace(old, scale=np.float32(old.scale * np.float32(1.02)))


def calibrated(change: Change, *layers: int) -> bytes:
    """The network before compilation, the outputs of layers quantised otherwise."""
    changed = [
        replace(layer, output=change(layer.output)) if number in layers else layer
        for number, layer in enumerate(NETWORK.layers)
    ]
    return uncompiled(replace(NETWORK, layers=tuple(changed)))


def refusal(reference: bytes) -> str:
    with pytest.raises(InputError) as caught:
        verify(COMPILED, reference)
    return str(caught.value)


def test_the_model_before_compilation_is_accepted() -> None:
    report = verify(COMPILED, uncompiled(NETWORK), runs=1)
    assert report.verdict is Verdict.PROVED
    assert not report.figures["warnings"]


@pytest.mark.parametrize("layer", [0, 1])
def test_another_zero_point_of_an_inner_tensor_is_named(layer: int) -> None:
    held = NETWORK.layers[layer].output.zero_point
    message = refusal(calibrated(other_zero_point, layer))
    said = f"zero point of tensor layer_{layer} is {held + 5}, the executable holds {held};"
    assert f"is not the model before compilation: {said}" in message
    assert message.endswith("`darwinn verify --anyway` compares nevertheless")


@pytest.mark.parametrize("layer", [0, 1])
def test_another_scale_of_an_inner_tensor_is_named(layer: int) -> None:
    held = float(NETWORK.layers[layer].output.scale)
    words = refusal(calibrated(other_scale, layer)).split()
    at = words.index(f"layer_{layer}")
    assert words[at - 3 : at] == ["scale", "of", "tensor"]
    numbers = float(words[at + 2].rstrip(",")), float(words[at + 6].rstrip(";"))
    assert numbers == pytest.approx((held * 1.02, held), rel=1e-5)


def test_several_tensors_are_named_in_the_order_of_the_network() -> None:
    message = refusal(calibrated(other_zero_point, 0, 1))
    assert 0 < message.index("tensor layer_0 ") < message.index("tensor layer_1 ")


def with_bias(network: DenseNetwork, layer: int, add: int) -> DenseNetwork:
    layers = list(network.layers)
    layers[layer] = replace(layers[layer], bias=layers[layer].bias + np.int32(add))
    return replace(network, layers=tuple(layers))


def test_other_biases_of_a_layer_are_named() -> None:
    assert "biases of operator 1 FULLY_CONNECTED differ" in refusal(
        uncompiled(with_bias(NETWORK, 1, 1001))
    )


def test_anyway_compares_with_another_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "compiled").write_bytes(COMPILED)
    (tmp_path / "other.tflite").write_bytes(calibrated(other_zero_point, 0))
    asked = ["verify", str(tmp_path / "compiled"), "--reference", str(tmp_path / "other.tflite")]
    assert run_command_line(asked) == 2
    assert "tensor layer_0" in capsys.readouterr().err
    assert run_command_line([*asked, "--anyway", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "mismatch"
    (warning,) = report["warnings"]
    assert "tensor layer_0" in warning


def test_anyway_compares_with_another_quantisation_of_an_output() -> None:
    reference = calibrated(other_zero_point, 2)
    assert "output output: the layer has scale" in refusal(reference)
    report = verify(COMPILED, reference, runs=1, anyway=True)
    assert report.verdict is Verdict.MISMATCH
    assert len(report.figures["warnings"]) == 1


def test_anyway_does_not_compare_what_has_another_size() -> None:
    with pytest.raises(InputError, match="the layer has 32 elements, the tensor 24"):
        verify(COMPILED, uncompiled(random_dense([64, 48, 40, 24], 3)), anyway=True)


def faults(package: Package) -> Iterator[tuple[str, bytes]]:
    """The compiled network with one field of one instruction changed by its lowest bits."""
    data = dump(package)
    for executable in package.executables:
        for chunk in executable.instruction_bitstreams:
            stream = bytes(chunk.bitstream)
            instructions = instructions_of(stream)
            for number, each in enumerate(instructions):
                for name in FIELDS if entry_of(each) is MAC else ():
                    field = MAC.field(name)
                    wrong = with_value(each, field, value_of(each, field) ^ FIELDS[name])
                    parts = [*instructions[:number], wrong, *instructions[number + 1 :]]
                    yield f"{name} of {number}", data.replace(stream, b"".join(parts))


FIELDS = {
    "activation_zero_point": 1 << 4,
    "output_zero_point": 1 << 4,
    "output_scale": 1 << 22,
    "high_clip": 1 << 23,
    "low_clip": 1 << 23,
}
"""Fields of which one bit is changed."""


def test_a_fault_in_one_place_is_no_other_model() -> None:
    reference = uncompiled(NETWORK)
    verdicts = {
        name: verify(data, reference, inputs_kind=["noise"], runs=1).verdict
        for name, data in faults(compile_network(NETWORK))
    }
    assert len(verdicts) >= len(FIELDS) * len(NETWORK.layers)
    zero_points = {each for name, each in verdicts.items() if "zero_point" in name}
    assert zero_points == {Verdict.MISMATCH}
    assert set(verdicts.values()) <= {Verdict.MISMATCH, Verdict.PASS, Verdict.PROVED}


@pytest.mark.parametrize("changed", [1, 4, 5, 6])
def test_other_weights_in_many_layers_are_another_model(changed: int) -> None:
    """One more training step changes a few weights everywhere; a fault is in one place."""
    network = random_dense([64, 48, 40, 32, 40, 48, 32], 5)
    layers = list(network.layers)
    for number in range(changed):
        weights = layers[number].weights.copy()
        weights.reshape(-1)[::97] ^= 0x55
        layers[number] = replace(layers[number], weights=weights)
    reference = uncompiled(replace(network, layers=tuple(layers)))
    compiled_file = dump(compile_network(network))
    if changed < 5:
        assert verify(compiled_file, reference, runs=1).verdict is Verdict.MISMATCH
        return
    with pytest.raises(InputError, match=r"weights of operators 0 FULLY_CONNECTED.* differ"):
        verify(compiled_file, reference, runs=1)


CALIBRATED_OTHERWISE = {
    "teachable_other_calibration": "tensor tfl.conv_2d1 is -16, the executable holds -19",
    "teachable_other_calibration_2": "tensor tfl.conv_2d1 is -31, the executable holds -36",
}
"""Public files beside executables of the same weights, and the first zero point that differs."""


@pytest.mark.parametrize("name", CALIBRATED_OTHERWISE)
def test_another_calibration_of_the_same_weights(wild2: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"zero point of {CALIBRATED_OTHERWISE[name]}"):
        verify(wild2 / "darwinn" / f"{name}_edgetpu.tflite", wild2 / "tflite" / f"{name}.tflite")
