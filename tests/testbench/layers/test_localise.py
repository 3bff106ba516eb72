"""`verify --localise`: an error is named once, at the layer or the value where it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats import darwinn
from darwinn_formats.darwinn import CompiledModel
from darwinn_formats.executorch.builder import ProgramBuilder
from darwinn_sim.isa.codec import Operation
from darwinn_sim.machine import layers as machine_layers
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.session import Session
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.check import OutputRow
from darwinn_testbench.comparison.expectation import References
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import matrix_product, uncompiled
from darwinn_testbench.compiler.bef import bef_file
from darwinn_testbench.compiler.executorch import executorch_program
from darwinn_testbench.compiler.natives import NATIVES
from darwinn_testbench.compiler.network import random_convolution, random_dense
from darwinn_testbench.compiler.package import compile_network
from darwinn_testbench.proof.makers import makers_of
from darwinn_testbench.report import Report, Verdict
from executable_faults import Subject, faulty_file, of_fields
from faulty_networks import INPUT, LAYERS, NETWORK, with_wrong_weights
from program_faults import Change
from vmfb_matmul import constants_of, weights_of

ERRORS = [[], [1], [2], [0, 1], [0, 1, 2]]


@pytest.mark.parametrize("wrong", ERRORS, ids=str)
def test_wrong_weights_are_named_once_against_the_model_before_compilation(
    wrong: list[int], tmp_path: Path
) -> None:
    reference = tmp_path / "model.tflite"
    reference.write_bytes(uncompiled(NETWORK))
    device = darwinn.dump(compile_network(with_wrong_weights(NETWORK, wrong)))
    report = verify(device, reference, [{"input": INPUT}], localise=True)
    assert (report.verdict is Verdict.MISMATCH) == bool(wrong)
    found = report.figures["divergences"]
    assert [each.name for each in found] == [LAYERS[k] for k in wrong]
    assert [each.first for each in found] == [True, False, False][: len(wrong)]
    # What is sent to the host is judged as it was sent.
    assert [each.layers for each in found if each.name != "output"] == [
        (k,) for k in wrong if k < 2
    ]
    assert all(each.operation == "FULLY_CONNECTED" for each in found)
    assert all(each.differing == 1 for each in found)


ALIKE = random_dense([32, 32, 32, 32, 32], 3)
"""Layers that nothing but their function tells apart."""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("layer", [1, 2])
def test_layers_of_one_size_are_told_apart_by_function(layer: int, seed: int) -> None:
    """Of a wrong factor every element is wrong, and by values any layer may be the nearest."""
    layers = list(ALIKE.layers)
    scales = layers[layer].weight_scales * np.float32(1.25)
    layers[layer] = replace(layers[layer], weight_scales=scales)
    device = darwinn.dump(compile_network(replace(ALIKE, layers=tuple(layers))))
    report = verify(device, uncompiled(ALIKE), localise=True, runs=1, seed=seed)
    (found,) = report.figures["divergences"]
    assert (found.name, found.layers) == (f"layer_{layer}", (layer,))
    assert found.paired == "by function"
    assert "(paired by function)" in str(found)
    assert not report.figures["warnings"]


def test_without_numbers_layers_are_found_by_their_values() -> None:
    device = darwinn.dump(compile_network(with_wrong_weights(NETWORK, [1])))
    report = verify(device, uncompiled(NETWORK), [{"input": INPUT}], localise=True, proof=False)
    (found,) = report.figures["divergences"]
    assert (found.layers, found.paired) == ((1,), "by values")
    assert report.figures["warnings"] == ["layers and tensors are paired by value: --no-proof"]


@pytest.mark.parametrize("wrong", [[], [1], [0, 2]], ids=str)
@pytest.mark.parametrize("kind", ["pte", "bef"])
def test_wrong_weights_are_named_once_against_other_formats(
    kind: str, wrong: list[int], tmp_path: Path
) -> None:
    reference = tmp_path / "model"
    data = executorch_program(NETWORK) if kind == "pte" else bef_file(NETWORK)
    reference.write_bytes(data)
    device = darwinn.dump(compile_network(with_wrong_weights(NETWORK, wrong)))
    report = verify(device, reference, [{"input": INPUT}], natives=NATIVES, localise=True)
    assert (report.verdict is Verdict.MISMATCH) == bool(wrong)
    found = report.figures["divergences"]
    assert [each.layers for each in found] == [(k,) for k in wrong]
    assert all(each.differing == 1 for each in found)


def test_a_wrong_weight_of_an_image_is_named_in_the_other_layout() -> None:
    network = random_convolution(8, 12, 4, 8, 5)
    weights = network.weights.copy()
    weights[2, 1, 1, 3] ^= 0xFF
    device = darwinn.dump(compile_network(replace(network, weights=weights)))
    right = verify(
        darwinn.dump(compile_network(network)), executorch_program(network), localise=True
    )
    assert (right.verdict, right.figures["divergences"]) == (Verdict.PASS, [])
    report = verify(device, executorch_program(network), localise=True, runs=1)
    (found,) = report.figures["divergences"]
    assert found.layers == (0,)
    assert found.operation == "quantized_decomposed::quantize_per_tensor.out"
    assert found.differing == outside(report)


def test_a_wrong_weight_is_named_against_an_iree_module(corpus: Path) -> None:
    path = corpus / "vmfb" / "v17" / "qmatmul_const.vmvx.vmfb"
    weights = weights_of(path, 8).copy()
    weights[3, 5] = ~weights[3, 5]
    network = matrix_product("qmm", weights, 4, **constants_of(path))
    compiled = darwinn.dump(compile_network(network))
    report = verify(compiled, path, localise=True, runs=1)
    (found,) = report.figures["divergences"]
    assert found.layers == (0,)
    assert "dispatch" in found.operation
    assert found.elements == 32
    assert found.differing == outside(report)


def outside(report: Report[OutputRow]) -> int:
    """Elements of the first output that are further off than allowed."""
    comparison = report.rows[0].comparison
    assert comparison is not None
    return comparison.outside


def chain(weights: Sequence[float], *, name: str = "") -> bytes:
    """Additions one after another, with state in between that sums up over the calls."""
    program = ProgramBuilder()
    method = program.method("forward")
    x = method.input(np.float32, (1, 4), name="x")
    state = method.state(np.zeros((1, 4), np.float32))
    for weight in weights:
        y = method.tensor(np.float32, (1, 4))
        constant = program.constant(np.full((1, 4), weight, np.float32))
        method.call("aten::mul.out", x, constant, outputs=[y])
        x = y
    total = method.tensor(np.float32, (1, 4))
    method.call("aten::add.out", x, state, 1, outputs=[total])
    method.call("aten::copy.out", state, total, False, outputs=[state])
    method.output(total)
    return program.build()


@pytest.mark.parametrize("wrong", [[], [1], [0, 2]], ids=str)
def test_values_of_two_programs_are_named_once_over_calls_with_state(wrong: list[int]) -> None:
    right = [1.5, 2.0, 0.5, 3.0]
    left = [weight + 0.25 * (k in wrong) for k, weight in enumerate(right)]
    report = verify(chain(left), chain(right), runs=2, localise=True, seed=1)
    found = [each for each in report.figures["divergences"] if each.run == 0]
    assert (report.verdict is Verdict.MISMATCH) == bool(wrong)
    assert [each.operation for each in found] == ["aten::mul.out"] * len(wrong)
    assert len({each.name for each in found}) == len(wrong)
    # In the second call the states differ too, which only the sum shows.
    second = [each for each in report.figures["divergences"] if each.run == 1]
    assert [each.operation for each in second] == ["aten::mul.out"] * len(wrong) + [
        "aten::add.out"
    ] * bool(wrong)


def test_programs_of_different_instructions_are_aligned_by_type_and_size() -> None:
    """One side has an instruction more, so that no names agree behind it."""
    program = ProgramBuilder()
    method = program.method("forward")
    x = method.input(np.float32, (1, 4), name="x")
    wide = method.tensor(np.float32, (2, 4))
    method.call("aten::cat.out", [x, x], 0, outputs=[wide])
    y = method.tensor(np.float32, (1, 4))
    method.call("aten::mul.out", x, program.constant(np.full((1, 4), 2, np.float32)), outputs=[y])
    method.output(y)
    report = verify(program.build(), plain(2.5), localise=True, runs=1)
    (found,) = report.figures["divergences"]
    assert (found.operation, found.elements) == ("aten::mul.out", 4)


def plain(weight: float) -> bytes:
    program = ProgramBuilder()
    method = program.method("forward")
    x = method.input(np.float32, (1, 4), name="x")
    y = method.tensor(np.float32, (1, 4))
    constant = program.constant(np.full((1, 4), weight, np.float32))
    method.call("aten::mul.out", x, constant, outputs=[y])
    method.output(y)
    return program.build()


def test_the_command_prints_what_differs_and_needs_a_reference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left, right = tmp_path / "left", tmp_path / "right"
    left.write_bytes(plain(2.0))
    right.write_bytes(plain(2.5))
    assert run_command_line(["verify", str(left), "--reference", str(right), "--localise"]) == 1
    assert "by aten::mul.out: the first to differ, 4 of 4" in capsys.readouterr().out
    assert run_command_line(["verify", str(left), "--localise"]) == 2
    assert "--reference" in capsys.readouterr().err


def test_what_no_layer_holds_before_a_wrong_value_is_named(tmp_path: Path) -> None:
    """50 outputs are computed as 56, which is not the size of the tensor."""
    network = random_dense([64, 50, 40, 32], 3)
    reference = tmp_path / "model.tflite"
    reference.write_bytes(uncompiled(network))
    device = darwinn.dump(compile_network(with_wrong_weights(network, [0])))
    report = verify(device, reference, [{"input": INPUT}], localise=True)
    (found,) = report.figures["divergences"]
    assert (found.name, found.unseen) == ("layer_1", ("layer_0",))
    assert "earlier tensors not seen: layer_0" in str(found)


def test_a_real_network_with_three_wrong_bytes(corpus: Path) -> None:
    name = "mobilenet_v1_0.25_128_quant"
    (package,) = darwinn.load(corpus / "darwinn" / f"{name}_edgetpu.tflite").packages
    caching = next(each for each in package.executables if each.parameters)
    parameters = bytearray(caching.parameters)
    for position in (20_000, 60_000, 400_000):
        parameters[position] ^= 0xFF
    changed = [
        replace(each, parameters=bytes(parameters)) if each is caching else each
        for each in package.executables
    ]
    device = darwinn.Package.of(*changed, min_runtime_version=package.min_runtime_version)
    reference = corpus / "tflite" / f"{name}.tflite"
    report = verify(darwinn.dump(device), reference, localise=True, runs=1)
    found = report.figures["divergences"]
    assert report.verdict is Verdict.MISMATCH
    assert 2 <= len(found) <= 3
    assert all(len(each.layers) == 1 for each in found)
    numbers = [each.layers[0] for each in found]
    assert numbers == sorted(set(numbers))


@pytest.mark.nightly
@pytest.mark.parametrize("number", [96, 98, 105])
def test_layers_of_squeeze_and_excite_blocks_are_told_apart_in_each_run(
    wild2: Path, number: int
) -> None:
    """A mean of 960 elements is rounded otherwise; by values another mean was the nearest."""
    path = wild2 / "darwinn" / "thermal_face_automl_edgetpu.tflite"
    reference = wild2 / "tflite" / "thermal_face_automl.tflite"
    (bound,) = open_models(path)
    references, session = References(reference, bound), Session(bound)
    network = references.cpu.network
    index = network.operators[number].outputs[0]
    layers = makers_of(session, references.uncompiled).layers[index]
    found = machine_layers.find(session.program.chunks)
    instructions = {k for layer in layers for k in found[layer].instructions}
    changes = [
        (0, chunk, each, (Change("output_scale", -1, scale, scale ^ 1 << 15),))
        for place, (_, chunk, each) in enumerate(operations_of(bound.compiled))
        if place in instructions and (scale := each["output_scale"])
    ]
    data = faulty_file(path.read_bytes(), bound.compiled, of_fields("scale", changes))
    for seed in range(3):
        report = verify(
            data, reference, localise=True, runs=1, seed=seed, chip_only=True, hazards=False
        )
        (wrong,) = report.figures["divergences"]
        assert wrong.name == network.tensors[index].name
        assert layers.issuperset(wrong.layers)
        assert (wrong.elements, wrong.max_difference, wrong.paired) == (960, 1, "by function")


def operations_of(model: CompiledModel) -> list[tuple[int, int, Operation]]:
    """The instructions of the inference, in order."""
    return [each for each in Subject(model).operations if each[0] == 0]
