"""The sample compiler: whatever small network it is given, the chip computes it exactly."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats import darwinn, tflite
from darwinn_formats.darwinn import ExecutableType, OutputLayer, Package
from darwinn_reference.tflite.litert import LiteRtReference
from darwinn_sim.isa.codec import decode, encode, unexplained_bits
from darwinn_testbench.chip.dma_check import check_dma
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import (
    Convolution,
    DenseNetwork,
    compile_network,
    compile_stand_alone,
    edgetpu_model,
    multi_chip,
    random_convolution,
    random_dense,
    sample,
    uncompiled,
)
from darwinn_testbench.report import Verdict
from flatbuffers import flexbuffers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sample_runs import Chip, chips, expected, random_input

SEEDS = st.integers(0, 2**32 - 1)
WIDTHS = st.one_of(st.integers(1, 24), st.integers(25, 300), st.sampled_from([64, 128, 256]))
SHOWN = settings(max_examples=40)


@st.composite
def convolutions(draw: st.DrawFn) -> Convolution:
    return random_convolution(
        draw(st.integers(1, 20)),
        draw(st.integers(1, 40)),
        4 * draw(st.integers(1, 4)),
        draw(st.integers(1, 64)),
        draw(SEEDS),
        kernel=draw(st.sampled_from([1, 3, 5])),
        signed=draw(st.booleans()),
    )


def check(network: DenseNetwork | Convolution, package: Package, seed: int) -> None:
    """Several inferences without reload equal the reference on every byte; the DMA is as hinted."""
    (chip,) = chips(package)
    for number in range(3):
        image = random_input(network, seed + number)
        assert np.array_equal(chip.infer(image), expected(network, image))


@SHOWN
@given(sizes=st.lists(WIDTHS, min_size=2, max_size=4), seed=SEEDS, slices=st.booleans())
@example(sizes=[1024, 1024], seed=0, slices=False)
@example(sizes=[1, 1, 1], seed=0, slices=True)
def test_any_dense_network_is_exact(sizes: list[int], seed: int, slices: bool) -> None:
    network = random_dense(sizes, seed)
    check(network, compile_network(network, shape_info=slices), seed)


@SHOWN
@given(network=convolutions(), seed=SEEDS, slices=st.booleans())
@example(network=random_convolution(4, 1024, 16, 8, 0), seed=0, slices=False)
@example(network=random_convolution(1, 1, 4, 1, 0, kernel=7), seed=0, slices=True)
def test_any_convolution_is_exact(network: Convolution, seed: int, slices: bool) -> None:
    check(network, compile_network(network, shape_info=slices), seed)


@settings(max_examples=10)
@given(
    network=st.one_of(
        st.builds(random_dense, st.lists(WIDTHS, min_size=2, max_size=3), SEEDS), convolutions()
    ),
    seed=SEEDS,
)
def test_a_stand_alone_executable_needs_no_caching(
    network: DenseNetwork | Convolution, seed: int
) -> None:
    package = compile_stand_alone(network)
    (executable,) = package.executables
    assert executable.type is ExecutableType.STAND_ALONE
    check(network, package, seed)


def test_a_layer_on_each_of_several_chips_gives_what_one_chip_gives() -> None:
    network = random_dense([100, 90, 80, 70], 3)
    parts = [network.part(layer, layer + 1) for layer in range(3)]
    package = multi_chip([compile_network(part) for part in parts])
    assert [each.virtual_chip_id for each in package.multi_chip] == [0, 1, 2]
    names = [
        (model.inference.input_layers[0].name, model.inference.output_layers[0].name)
        for model in darwinn.load(darwinn.dump(package)).models
    ]
    assert names == [("input", "layer_0"), ("layer_0", "layer_1"), ("layer_1", "output")]
    image = random_input(network, 5)
    value = image
    for chip in chips(package):
        value = chip.infer(value)
    assert np.array_equal(value, expected(network, image))


def test_models_of_one_chip_do_not_share_tokens() -> None:
    packages = [compile_network(random_dense([40, 8], seed)) for seed in range(3)]
    tokens = [
        {each.parameter_caching_token for each in package.executables} for package in packages
    ]
    assert all(len(each) == 1 for each in tokens)
    assert len(set.union(*tokens)) == 3


def test_every_form_of_a_network_survives_the_file() -> None:
    network = random_convolution(8, 8, 4, 10, 1)
    for package in (
        compile_network(network),
        compile_network(network, shape_info=True),
        compile_stand_alone(network),
        multi_chip([compile_network(network)] * 2),
    ):
        (loaded,) = darwinn.load(darwinn.dump(package)).packages
        assert darwinn.dump(loaded) == darwinn.dump(package)
        wrapped = darwinn.load(edgetpu_model(network, package))
        assert wrapped.kind == "tflite"
        assert wrapped.packages == (loaded,)


@given(seed=st.integers(0, 9))
@settings(max_examples=5)
def test_no_bit_of_a_program_is_unexplained(seed: int) -> None:
    for network in (random_dense([30, 70, 10], seed), random_convolution(6, 9, 4, 5, seed)):
        for executable in compile_network(network).executables:
            (chunk,) = executable.instruction_bitstreams
            assert unexplained_bits(chunk.bitstream) == []
            assert encode(decode(chunk.bitstream)) == chunk.bitstream


def test_an_output_is_described_either_way() -> None:
    network = random_convolution(12, 8, 4, 10, 2)
    layers = []
    for slices in (False, True):
        package = compile_network(network, shape_info=slices)
        (layer,) = package.executables[0].output_layers
        assert isinstance(layer.any_layer, OutputLayer)
        assert (layer.any_layer.layout is None) == slices
        assert (layer.any_layer.shape_info is None) != slices
        layers.append(layer)
    data = np.random.default_rng(0).integers(0, 256, layers[0].size_bytes, np.uint8)
    one, other = (darwinn.to_tensor(layer, data) for layer in layers)
    assert np.array_equal(one, other)


@pytest.mark.parametrize("seed", range(5))
def test_references_agree_on_the_samples(seed: int) -> None:
    """Dense: all bytes equal LiteRT's; convolution: within 1. And the outputs spread."""
    for network, budget in (
        (random_dense([60, 40, 20], seed), 0),
        (random_convolution(12, 12, 8, 12, seed), 1),
        (random_convolution(12, 12, 8, 12, seed, signed=True), 1),
    ):
        data = uncompiled(network)
        image = random_input(network, seed)
        outputs = LiteRtReference(data).run([image])
        graph = tflite.load(data).subgraphs[0]
        wanted = expected(network, image).astype(int)
        assert np.abs(outputs[graph.outputs[0]].ravel().astype(int) - wanted).max() <= budget
        assert wanted.std() > 10


def test_files_follow_from_the_seed(tmp_path: Path) -> None:
    first = sample(tmp_path / "a", seed=4)
    again = sample(tmp_path / "b", seed=4)
    other = sample(tmp_path / "c", seed=5)
    sums = [{row.name: row.sha256 for row in report.rows} for report in (first, again, other)]
    assert sums[0] == sums[1]
    same = {name for name, digest in sums[0].items() if digest == sums[2][name]}
    assert same == {"classifier.tflite", "classifier_edgetpu.tflite"}
    for row in first.rows:
        assert (tmp_path / "a" / row.name).stat().st_size == row.bytes


def test_every_written_file_verifies(tmp_path: Path) -> None:
    for row in sample(tmp_path).rows:
        if not row.reference:
            continue
        models = darwinn.load(tmp_path / row.name).models
        for number in range(len(models)):
            report = verify(
                tmp_path / row.name,
                tmp_path / row.reference,
                model=number,
                strict=True,
                seed=9,
                runs=2,
            )
            assert report.verdict.passed, (row.name, report.message)
            assert all(each.decided_by == "chip arithmetic" for each in report.rows)
        assert check_dma(tmp_path / row.name).verdict is Verdict.PASS


def test_the_command_writes_the_files_and_lists_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["sample", str(tmp_path / "made" / "here"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["verdict"], result["seed"]) == ("pass", 0)
    written = {path.name for path in (tmp_path / "made" / "here").iterdir()}
    assert written == {row["name"] for row in result["rows"]}
    (tmp_path / "file").touch()
    assert run_command_line(["sample", str(tmp_path / "file")]) == 2
    assert "bad-input" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (random_dense([8, 1025], 0), "1025 outputs of a dense layer"),
        (random_dense([1025, 8], 0), "1032 inputs of a dense layer"),
        (random_convolution(4, 4, 4, 65, 0), "65 outputs of a convolution"),
        (random_convolution(4, 4, 3, 8, 0), "3 channels of an image"),
        (random_convolution(300, 300, 4, 8, 0), "360000 bytes of an image"),
        (random_convolution(4, 4, 64, 8, 0, kernel=9), "1297 rows of weights"),
    ],
)
def test_what_cannot_be_placed_is_refused_by_name(
    network: DenseNetwork | Convolution, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        compile_network(network)


def test_chip_versions_are_in_the_form_that_the_runtime_of_the_vendor_reads() -> None:
    network = random_dense([8, 8], 0)
    model = tflite.load(edgetpu_model(network, compile_network(network)))
    span = model.subgraphs[0].operators[0].custom_options
    assert span is not None
    options = flexbuffers.GetRoot(bytearray(span.data)).AsMap
    versions = options["6"]
    assert versions.IsVector
    assert not versions.IsTypedVector
    assert [each.AsInt for each in versions.AsVector] == [18]


def test_a_chip_keeps_its_parameters_until_others_are_loaded() -> None:
    """The tiles are the memory: inference alone, on a chip that another model used, is wrong."""
    first, second = (random_dense([50, 30], seed) for seed in (1, 2))
    (chip,), (model,) = chips(compile_network(first)), _models(compile_network(second))
    image = random_input(second, 0)
    stale = Chip(replace(model, caching=None))
    stale.accelerator = chip.accelerator
    assert not np.array_equal(stale.infer(image), expected(second, image))


def _models(package: Package) -> tuple[darwinn.CompiledModel, ...]:
    return darwinn.load(darwinn.dump(package)).models
