"""The oracle on real models: against LiteRT layer by layer, and against compiled instructions.

``pytest -s`` on this file prints the figures of docs/comparison.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from corpus_models import by_night
from darwinn_formats import darwinn
from darwinn_reference.tflite.call import CompilerChoices
from darwinn_reference.tflite.coefficient_tables import compiler_choices
from darwinn_reference.tflite.factors import addition_weights, conversion_factor
from darwinn_reference.tflite.graph import Network, NetworkTensor, Operator
from darwinn_reference.tflite.model import CpuModel
from darwinn_reference.tflite.softmax import ROOT_ONE
from darwinn_sim.isa.codec import decode
from darwinn_testbench.comparison.compare import Comparison, compare
from darwinn_testbench.policy import LITERT_LAYER, Exact, LsbBudget
from one_operator import Array, tensor

MODELS = (
    "bright_16x16",
    "bright_64x64",
    "color_red_64x64",
    "deeplab_mobilenet_edgetpu_slim_cityscapes_quant",
    "deeplabv3_mnv2_dm05_pascal_quant",
    "dense_1024",
    "dense_256",
    "gabor_64x64_7k_4o_2s",
    "keras_lstm_mnist_ptq",
    "looming_64x64_3x3",
    "mobilenet_v1_0.25_128_quant",
    "mobilenet_v1_0.25_128_quant_2019",
    "mobilenet_v1_0.5_160_quant",
    "mobilenet_v1_1.0_224_quant_embedding_extractor",
    "mobilenet_v2_1.0_224_quant",
    "posenet_mobilenet_v1_075_353_481_16_quant_decoder",
)
LARGEST = "deeplab_mobilenet_edgetpu_slim_cityscapes_quant"
DEEPLAB = "deeplabv3_mnv2_dm05_pascal_quant"
POSENET = "posenet_mobilenet_v1_075_353_481_16_quant_decoder"
"""It has the decoder that is left to the host."""

CLASSIFIERS = tuple(
    name for name in MODELS if name.startswith("mobilenet_v") and "embedding" not in name
)
WITH_OTHER_ARITHMETIC = {"UNIDIRECTIONAL_SEQUENCE_LSTM"}
"""The compiler's LSTM saturates its gates to 8 bits, which a CPU does not."""

WITHOUT_INSTRUCTION = {(DEEPLAB, index) for index in (65, 67, 68)}
"""Operators that the compiler left to the host: they follow a resize that it did not map."""


def load(corpus: Path, name: str) -> CpuModel:
    return CpuModel.load(corpus / "tflite" / f"{name}.tflite")


def image(model: CpuModel, seed: int) -> list[Array]:
    """Inputs with smooth areas and some noise, as photographs have."""
    return [_image(model.network.tensors[k], seed) for k in model.network.inputs]


def _image(tensor: NetworkTensor, seed: int) -> Array:
    generator = np.random.default_rng(seed)
    values = generator.normal(0, 6, tensor.shape)
    for axis, extent in enumerate(tensor.shape):
        if extent <= 4:
            continue
        grid = generator.uniform(0, 8, extent // 32 + 2)
        wave = np.interp(np.arange(extent) / 32, np.arange(len(grid)), grid)
        values += 40 * np.sin(wave).reshape([-1 if k == axis else 1 for k in range(values.ndim)])
    return np.clip(128 + values, 0, 255).astype(tensor.dtype)


def computed(model: CpuModel) -> Iterator[Operator]:
    """The operators whose arithmetic the oracle knows."""
    return (each for each in model.network.operators if not each.custom)


@pytest.mark.parametrize("name", by_night(MODELS, {LARGEST, POSENET}))
def test_each_layer_is_within_one_of_litert_from_the_same_input(corpus: Path, name: str) -> None:
    model = load(corpus, name)
    values = model.litert.run(image(model, 11))
    elements = differing = 0
    worst = 0.0
    for operator in computed(model):
        if operator.name in WITH_OTHER_ARITHMETIC:
            continue
        for index, array in model.chip.run_operator(operator, values).items():
            result = compare(array, values[index], LITERT_LAYER)
            assert result.passed, f"{operator.index} {operator.name}: {result.reason}"
            elements, differing = elements + result.elements, differing + result.differing
            worst = max(worst, result.differing / result.elements)
    share, worst = 100 * differing / elements, 100 * worst
    print(f"\n{name}: {differing} of {elements} bytes differ by 1: {share:.2f} %, ", end="")
    print(f"in the worst layer {worst:.1f} %")


@pytest.mark.parametrize("name", by_night(MODELS, {LARGEST, DEEPLAB}))
def test_only_the_host_s_decoder_is_missing(corpus: Path, name: str) -> None:
    model = load(corpus, name)
    values = model.chip.run(image(model, 1))
    custom = [each for each in model.network.operators if each.custom]
    assert set(values.missing) == {index for each in custom for index in each.outputs}


@pytest.mark.parametrize("name", ["dense_256", "dense_1024"])
def test_dense_models_equal_litert_but_for_ties(corpus: Path, name: str) -> None:
    model = load(corpus, name)
    network = model.network
    layer = next(each for each in network.operators if each.name == "FULLY_CONNECTED")
    source, weights, output = (
        network.tensors[k] for k in (layer.inputs[0], layer.inputs[1], layer.outputs[0])
    )
    assert weights.constant is not None
    generator = np.random.default_rng(17)
    elements = differing = 0
    for _ in range(50):
        vector = generator.integers(0, 256, network.tensors[network.inputs[0]].shape)
        values = model.litert.run([vector.astype(np.uint8)])
        chip = model.chip.run([vector.astype(np.uint8)])
        result = compare(chip[output.index], values[output.index], LsbBudget(1))
        assert result.passed
        total = (values[source.index].astype(int) - source.zero_point) @ weights.constant.T.astype(
            int
        )
        real = total * weights.scale.astype(float) * float(source.scale[0]) / float(output.scale[0])
        wrong = chip[output.index] != values[output.index]
        assert (np.abs(np.abs(real - np.floor(real)) - 0.5)[wrong] < 1e-4).all()
        elements, differing = elements + result.elements, differing + result.differing
    print(f"\n{name}: {differing} of {elements} bytes differ, all of them ties")


@pytest.mark.parametrize("name", by_night(CLASSIFIERS, {"mobilenet_v2_1.0_224_quant"}))
def test_classes_differ_from_litert_only_where_they_nearly_tie(corpus: Path, name: str) -> None:
    """Differences add up over the layers, so that logits two steps apart may change places."""
    model = load(corpus, name)
    logits = next(each for each in model.network.operators if each.name == "SOFTMAX").inputs[0]
    results: list[Comparison] = []
    for seed in range(10):
        inputs = image(model, seed)
        chip, reference = model.chip.run(inputs)[logits], model.litert.run(inputs)[logits]
        results.append(compare(chip, reference, Exact()))
        second, first = np.sort(reference, axis=None)[-2:].tolist()
        assert results[-1].top1 == 1.0 or first - second <= 2
    top1 = sum(each.top1 or 0 for each in results) / len(results)
    top5 = sum(each.top5 or 0 for each in results) / len(results)
    greatest = max(each.max_difference for each in results)
    print(f"\n{name}: logits differ by at most {greatest}, top-1 {top1:.2f}, top-5 {top5:.2f}")
    assert greatest <= 8


@pytest.mark.parametrize("name", by_night(MODELS, {LARGEST, POSENET}))
def test_factors_equal_the_scale_fields_of_the_compiled_instructions(
    corpus: Path, name: str
) -> None:
    """Every factor, to the bit, is the scale of a tensor instruction or is among the parameters."""
    network = load(corpus, name).network
    file = corpus / "darwinn" / f"{name}_edgetpu.tflite"
    encoded, data = scale_fields(darwinn.load(file)), file.read_bytes()
    checked = 0
    for operator in network.operators:
        factors = factors_of(network, operator)
        if factors is None or (name, operator.index) in WITHOUT_INSTRUCTION:
            continue
        uniform = len(np.unique(factors)) == 1
        bits = {int(each) for each in factors.view(np.uint32)}
        if not (uniform and bits <= encoded):
            assert all(each.tobytes() in data for each in factors), f"{operator.index}"
        checked += 1
    print(f"\n{name}: factors of {checked} operators found to the bit")
    assert checked or name.startswith("keras")


def scale_fields(file: darwinn.DarwinnFile) -> set[int]:
    """The float32 scale fields of all tensor instructions, as bits."""
    found: set[int] = set()
    for executable in file.executables:
        for chunk in executable.instruction_bitstreams:
            columns = decode(chunk.bitstream).columns.get(1)
            if columns is not None:
                found |= set(columns["output_scale"].tolist())
    return found


def factors_of(network: Network, operator: Operator) -> Array | None:
    """Factors of an operator that multiplies; None of those that move or look up."""
    inputs = [network.tensors[index] for index in operator.inputs if index >= 0]
    output = network.tensors[operator.outputs[0]]
    if operator.name in {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MUL"}:
        return conversion_factor(inputs[0].scale[0], output, inputs[1].scale)
    if operator.name == "ADD":
        return np.atleast_1d(addition_weights(inputs[0].scale[0], inputs[1].scale[0], output)[2])
    if operator.name == "QUANTIZE" and inputs[0].scale[0] != output.scale[0]:
        return conversion_factor(inputs[0].scale[0], output)
    return None


@pytest.mark.parametrize("name", MODELS)
def test_layers_of_executables_are_tensors_of_their_model(corpus: Path, name: str) -> None:
    model = load(corpus, name)
    for compiled in darwinn.load(corpus / "darwinn" / f"{name}_edgetpu.tflite").models:
        layers = compiled.inference.input_layers + compiled.inference.output_layers
        assert not [each.difference for each in model.match(layers) if each.difference]


def test_another_build_of_the_same_name_is_noticed(corpus: Path) -> None:
    model = load(corpus, "mobilenet_v1_0.5_160_quant")
    other = darwinn.load(corpus / "darwinn" / "mobilenet_v1_0.25_128_quant_edgetpu.tflite")
    (matched,) = model.match(other.models[0].inference.input_layers)
    assert "49152 elements, the tensor 76800" in matched.difference


def test_the_lstm_follows_litert_while_no_gate_saturates(corpus: Path) -> None:
    """From a dark image the gates stay within a byte: then 8 bits and 16 bits nearly agree."""
    model = load(corpus, "keras_lstm_mnist_ptq")
    dark = [np.zeros((1, 28, 28), np.uint8)]
    outputs = model.network.operators[1].outputs[0]
    chip, reference = model.chip.run(dark), model.litert.run(dark)
    assert compare(chip[outputs], reference[outputs], LsbBudget(8)).passed


def test_the_functions_of_an_executable_are_recognised(corpus: Path) -> None:
    file = darwinn.load(corpus / "darwinn" / "keras_lstm_mnist_ptq_edgetpu.tflite")
    functions = compiler_choices(file.models[0].inference).functions
    found = {name: {round(2 * each.amplitude) for each in functions[name]} for name in functions}
    assert found == {"sigmoid": {2 * 255}, "tanh": {255, 32767}, "rsqrt": {2 * ROOT_ONE}}


def test_the_tables_of_an_executable_round_as_the_functions_do_but_for_ties(corpus: Path) -> None:
    file = darwinn.load(corpus / "darwinn" / "keras_lstm_mnist_ptq_edgetpu.tflite")
    choices = compiler_choices(file.models[0].inference)
    x = np.linspace(-6.5, 6.5, 20001).astype(np.float32)
    for name, dtype, scale in (
        ("sigmoid", "u1", 1 / 255),
        ("tanh", "i1", 2 / 255),
        ("tanh", "i2", 2 / 32767),
    ):
        output = tensor(0, (), dtype, scale)
        gap = np.abs(choices.levels(name, x, output) - CompilerChoices().levels(name, x, output))
        print(f"\n{name} to {dtype}: {100 * (gap > 0).mean():.2f} % differ from the function by 1")
        assert gap.max() <= 1
        assert (gap > 0).mean() < 0.01
