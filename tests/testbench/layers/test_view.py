"""The network that is recovered from an executable alone, against the one before compilation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from darwinn_formats import darwinn, tflite
from darwinn_formats.darwinn import dump
from darwinn_reference.tflite.factors import addition_weights, conversion_factor
from darwinn_reference.tflite.graph import Network, NetworkTensor, Operator, network
from darwinn_reference.tflite.output_stage import clip_bounds
from darwinn_sim.analysis import provenance
from darwinn_testbench.chip.disassembly import disassemble
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import (
    Convolution,
    DenseNetwork,
    compile_network,
    compile_stand_alone,
    random_convolution,
    random_dense,
)
from darwinn_testbench.errors import InputError
from darwinn_testbench.layers.graph import draw, nodes
from darwinn_testbench.layers.rows import LayerRow
from darwinn_testbench.layers.view import view_layers
from darwinn_testbench.report import Report

SIGN_BIT = 0x80
FIRST, SECOND = "mobilenet_v1_0.25_128_quant", "mobilenet_v2_1.0_224_quant"
KINDS: Mapping[str, tuple[str, ...]] = {
    # A convolution of one position is a dense layer.
    "CONV_2D": ("conv", "dense"),
    "FULLY_CONNECTED": ("dense",),
    "DEPTHWISE_CONV_2D": ("depthwise",),
    "ADD": ("add",),
    "AVERAGE_POOL_2D": ("average pool",),
}


@cache
def dense_view() -> tuple[DenseNetwork, Report[LayerRow]]:
    sample = random_dense((100, 70, 12), seed=3)
    return sample, view_layers(dump(compile_network(sample)))


@cache
def convolution_view() -> tuple[Convolution, Report[LayerRow]]:
    sample = random_convolution(12, 16, 4, 8, seed=5)
    return sample, view_layers(dump(compile_network(sample)))


def test_dense_layers_of_the_sample_are_recovered() -> None:
    sample, report = dense_view()
    assert [row.kind for row in report.rows] == ["dense"] * 2
    before = "input"
    start = 0
    given = sample.input
    for row, layer in zip(report.rows, sample.layers, strict=True):
        assert row.inputs == (before,)
        assert [padded(shape or ()) for shape in row.input_shapes] == [padded((layer.inputs,))]
        # Lanes that fill up a block are computed too; an output of the file tells its own size.
        assert row.output_shape is not None
        spare = row.output_shape[2] - layer.outputs
        assert 0 <= spare < (1 if row.outputs else 16)
        assert row.input_zero_points == (given.zero_point + SIGN_BIT,)
        assert row.output_zero_point == layer.output.zero_point + SIGN_BIT
        assert row.channel_scales
        assert row.unknown == ()
        (place,) = row.parameters
        assert place.place == "cached"
        assert place.start >= start
        # A weight of each input, a scale and a bias or zero point of each output.
        assert layer.inputs * layer.outputs <= place.bytes
        start, before, given = place.end, f"layer:{row.number}", layer.output
    assert report.rows[-1].outputs == ("output",)


def test_the_convolution_of_the_sample_is_recovered() -> None:
    sample, report = convolution_view()
    (row,) = report.rows
    assert row.kind == "conv"
    assert row.kernel == (sample.kernel, sample.kernel)
    assert row.stride == row.dilation == (1, 1)
    assert row.input_shapes == ((sample.height, sample.width, sample.inputs),)
    assert row.output_shape is not None
    assert row.output_shape[:2] == (sample.height, sample.width)
    assert row.input_zero_points == (sample.input.zero_point,)
    assert row.weight_zero_point == sample.weight.zero_point
    assert row.output_zero_point == sample.output.zero_point
    assert row.multiplications >= sample.height * sample.width * sample.weights.size
    assert (row.inputs, row.outputs, row.unknown) == (("input",), ("output",), ())


def test_streamed_parameters_are_told_from_cached_ones() -> None:
    sample, report = convolution_view()
    (cached,) = report.rows[0].parameters
    (row,) = view_layers(dump(compile_stand_alone(sample))).rows
    (streamed,) = row.parameters
    assert (cached.place, streamed.place) == ("cached", "streamed")
    assert cached.bytes == streamed.bytes


@pytest.mark.parametrize(("marks", "runs"), [(2, 2), (3, 1), (provenance.MARKS, 1)])
def test_more_layers_than_marks_are_seen_in_several_runs(
    marks: int, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the marks is that of the input; of the others there are two each."""
    began: list[int] = []

    class Counted(provenance._MarkedRun):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            began.append(len(began))

    monkeypatch.setattr(provenance, "MARKS", marks)
    monkeypatch.setattr(provenance, "_MarkedRun", Counted)
    network = compile_network(random_dense((100, 70, 40, 12), 3))
    (model,) = darwinn.load(dump(network)).models
    found = provenance.trace(model.caching, model.inference)
    assert len(began) == runs
    assert [each.number for each in found.layers] == [0, 1, 2]
    assert found.outputs["output"].layers == {2}
    for number in range(3):
        instructions = found.layers[number].instructions
        reads = [each for (k, _), each in found.reads.items() if k in instructions]
        assert reads
        for each in reads:
            assert each.activations.layers == ({number - 1} if number else set())
            assert each.activations.inputs == (set() if number else {"input"})
            assert each.first.all() and each.last.all()


def test_the_graph_has_a_line_for_each_thing_that_is_read() -> None:
    _, report = dense_view()
    assert [(node.key, node.before) for node in nodes(report)] == [
        ("input input", ()),
        ("layer:0", ("input input",)),
        ("layer:1", ("layer:0",)),
        ("output output", ("layer:1",)),
    ]
    picture = ElementTree.fromstring(draw(report, "svg"))
    assert picture.tag.endswith("svg")
    assert draw(report, "svg") == draw(report, "svg")
    assert draw(report, "png").startswith(b"\x89PNG")
    text = draw(report, "dot").decode()
    assert text.count(" -> ") == 3
    with pytest.raises(InputError, match=r"not as \.pdf"):
        draw(report, "pdf")


def test_the_command_prints_a_table_json_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, picture = tmp_path / "dense.bin", tmp_path / "network.svg"
    path.write_bytes(dump(compile_network(dense_view()[0])))
    assert run_command_line(["layers", str(path), "--graph", str(picture)]) == 0
    assert "dense" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"<?xml")
    assert run_command_line(["layers", str(path), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [row["output_shape"] for row in printed["rows"]] == [
        list(row.output_shape or ()) for row in dense_view()[1].rows
    ]
    assert printed["scalar_core"] is None
    assert run_command_line(["layers", str(path), "--graph", str(tmp_path / "x.pdf")]) == 2
    assert run_command_line(["layers", str(path), "--model", "7"]) == 2
    path.write_bytes(path.read_bytes()[:64])
    assert run_command_line(["layers", str(path)]) == 2


def test_the_listing_marks_where_the_same_layers_begin() -> None:
    sample, report = dense_view()
    chunks = disassemble(dump(compile_network(sample))).rows
    starts = [entry for row in chunks for entry in row.instructions if "layer" in entry]
    assert [entry["layer"] for entry in starts] == [row.number for row in report.rows]
    assert all(entry["name"] == "TensorMac" for entry in starts)
    lines = "\n".join(row.text for row in chunks).splitlines()
    marked = [lines[k + 1] for k, line in enumerate(lines) if line.startswith("; layer ")]
    assert [int(line.split()[0]) for line in marked] == [entry["pc"] for entry in starts]


@pytest.mark.parametrize("name", [FIRST, SECOND])
def test_a_real_network_is_recovered_whole(corpus: Path, name: str) -> None:
    compiled = corpus / "darwinn" / f"{name}_edgetpu.tflite"
    (model,) = darwinn.load(compiled).models
    expected = network(tflite.load(corpus / "tflite" / f"{name}.tflite"))
    report = view_layers(compiled)
    rows = [row for row in report.rows if row.kind in sum(KINDS.values(), ()) and not row.part_of]
    operators = [each for each in expected.operators if each.name in KINDS]
    assert len(rows) == len(operators)
    assert model.caching is not None
    makers: dict[int, str] = {}
    for row, operator in zip(rows, operators, strict=True):
        check_layer(row, operator, expected)
        check_sources(row, operator, makers, report)
        check_parameters(row, operator, expected, model.caching.parameters)
        makers[operator.outputs[0]] = f"layer:{row.number}"


def check_layer(row: LayerRow, operator: Operator, expected: Network) -> None:
    given, output = (expected.tensors[k] for k in (operator.inputs[0], operator.outputs[0]))
    options = operator.options
    assert row.kind in KINDS[operator.name]
    assert {shape and padded(shape) for shape in row.input_shapes} == {padded(given.shape)}
    assert row.output_shape is not None
    assert padded(row.output_shape) == padded(output.shape)
    assert row.output_zero_point in (None if output.zero_point[0] == 0 else -1, on_chip(output))
    assert set(row.input_zero_points) == {
        on_chip(expected.tensors[k]) for k in operator.inputs[: 2 if row.kind == "add" else 1]
    }
    assert row.unknown == ()
    if row.kind in ("conv", "depthwise", "dense"):
        weights = expected.tensors[operator.inputs[1]]
        assert row.weight_zero_point == weights.zero_point[0]
        assert row.scale == conversion_factor(given.scale[0], output, weights.scale)[0]
        bounds = clip_bounds(output, options["fused_activation_function"])
        assert row.clip == pytest.approx(bounds, rel=1e-6, abs=0)
        if row.kind != "dense":
            assert row.kernel == weights.shape[1:3]
            assert row.stride == (options["stride_h"], options["stride_w"])
            assert row.dilation == (options["dilation_h_factor"], options["dilation_w_factor"])
    elif row.kind == "add":
        other = expected.tensors[operator.inputs[1]]
        factor = addition_weights(given.scale[0], other.scale[0], output)[2]
        assert row.scale == factor
    else:
        assert row.kernel == (options["filter_height"], options["filter_width"])
        assert row.scale == np.float32(1) / np.float32(np.prod(row.kernel))


def check_sources(
    row: LayerRow, operator: Operator, makers: Mapping[int, str], report: Report[LayerRow]
) -> None:
    """What a layer reads, behind copies, is what the operator reads."""
    behind = list(row.inputs)
    moves = {f"layer:{each.number}": each.inputs for each in report.rows if each.kind == "move"}
    while set(behind) & moves.keys():
        behind = [source for each in behind for source in moves.get(each, (each,))]
    count = 2 if operator.name == "ADD" else 1
    assert set(behind) == {makers.get(k, "input") for k in operator.inputs[:count]}


def check_parameters(row: LayerRow, operator: Operator, expected: Network, blob: bytes) -> None:
    """The place that is named begins with the biases, and has room for the weights."""
    if row.kind not in ("conv", "depthwise", "dense"):
        assert row.parameters == ()
        return
    (place,) = row.parameters
    weights, biases = (expected.tensors[k] for k in operator.inputs[1:3])
    assert biases.constant is not None
    first = np.frombuffer(blob, "<i4", 4, place.start)
    np.testing.assert_array_equal(first, biases.constant.ravel()[:4])
    assert place.place == "cached"
    # A depthwise layer has four bytes for each weight: diagonals of 4 x 4.
    assert place.bytes >= weights.size * (4 if row.kind == "depthwise" else 1)
    assert row.multiplications >= weights.size


def on_chip(tensor: NetworkTensor) -> int:
    return int(tensor.zero_point[0]) + (SIGN_BIT if tensor.dtype == np.int8 else 0)


def padded(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Rows, columns, and channels in whole words."""
    rows, columns, channels = (1, 1, 1, *shape)[-3:]
    return rows, columns, -(-channels // 4) * 4


@pytest.mark.nightly
def test_every_file_is_recovered_without_error(corpus: Path) -> None:
    for path in sorted((*corpus.glob("darwinn/*"), *corpus.glob("coral/*"))):
        report = view_layers(path)
        assert report.rows, path
        for row in report.rows:
            assert bool(row.message) == bool(row.unknown)
            assert row.number < len(report.rows)
        assert draw(report, "svg")


def test_a_network_with_large_interpolations_is_recovered(wild: Path) -> None:
    """Its weights are greater than any address of wide memory."""
    report = view_layers(wild / "darwinn" / "movenet_single_pose_lightning_ptq_edgetpu.tflite")
    kinds = [row.kind for row in report.rows]
    assert (kinds.count("resize"), kinds.count("add")) == (3, 13)
    shapes = [row.output_shape for row in report.rows if row.kind == "resize"]
    assert shapes == [(12, 12, 64), (24, 24, 32), (48, 48, 24)]
    # What is added to it has its shape.
    assert not any("input shape" in row.unknown for row in report.rows if row.kind == "add")


def test_an_interpolation_by_the_nearest_pixel_is_told_from_a_bilinear_one(wild: Path) -> None:
    """In a network of more layers than a byte can number."""
    report = view_layers(wild / "darwinn" / "yolov8n_full_integer_quant_edgetpu.tflite")
    rows = [row for row in report.rows if row.kind.startswith("resize")]
    assert [row.kind for row in rows] == ["resize nearest"] * 2
    assert [row.output_shape for row in rows] == [(40, 40, 256), (80, 80, 128)]
    # They stand beyond the 255th layer; what they read stands right before them.
    assert [row.inputs for row in rows] == [("layer:256",), ("layer:280",)]


def test_a_layer_that_computes_in_place_does_not_read_itself(corpus: Path) -> None:
    """A step of the softmax goes over each place twice, and writes it both times."""
    report = view_layers(corpus / "darwinn" / "mobilenet_v1_0.25_128_quant_edgetpu.tflite")
    row = report.rows[37]
    assert (row.number, row.kind, row.part_of) == (37, "elementwise", "softmax")
    assert row.inputs == ("layer:36",)
