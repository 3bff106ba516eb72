"""The open compiler: what it writes is right, by proof or byte for byte; the rest is refused."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path

import flatbuffers
import numpy as np
import pytest
from darwinn_formats import tflite
from darwinn_formats.darwinn import ExecutableType, load
from darwinn_formats.errors import ExecutionError
from darwinn_formats.files import Content
from darwinn_formats.flatbuffer import OpaqueTable, write
from darwinn_formats.tflite import BuiltinOperator, Padding
from darwinn_formats.tflite import options as o
from darwinn_reference.errors import Unsupported
from darwinn_testbench.chip.cycles import measure
from darwinn_testbench.cli import edgetpu_compiler
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compilation.compile import (
    Compiled,
    CompileOptions,
    compile_model,
)
from darwinn_testbench.compilation.log import size
from darwinn_testbench.compiler.random_networks import OPERATORS, RandomNetwork, random_network
from darwinn_testbench.compiler.stages import planning, pools
from darwinn_testbench.compiler.stages.rows import identity
from darwinn_testbench.errors import InputError
from darwinn_testbench.explain.placement import Place
from darwinn_testbench.report import Verdict
from hypothesis import given, settings
from hypothesis import strategies as st

_MODEL = "mobilenet_v1_0.25_128_quant"
_RIGHT = (Verdict.PROVED, Verdict.PASS)


def compiled(data: bytes, name: str = "model.tflite", **options: object) -> Compiled:
    return compile_model(Content(data, name), CompileOptions(**options))  # type: ignore[arg-type]


def all_on_chip(result: Compiled) -> bool:
    return all(row.place is Place.CHIP for row in result.report.rows)


@pytest.mark.parametrize("name", sorted({*OPERATORS} - {"SOFTMAX", "UNIDIRECTIONAL_SEQUENCE_LSTM"}))
def test_each_operator_alone_is_proved(name: str) -> None:
    result = compiled(random_network(3, 2, [name]))
    assert result.report.rows
    assert result.report.verdict is Verdict.PROVED, result.report.headline
    assert all_on_chip(result)
    assert result.data


@pytest.mark.parametrize(("classes", "signed"), [(2, True), (17, False), (1001, True)])
def test_softmaxes_of_any_length_are_proved(classes: int, signed: bool) -> None:
    network = RandomNetwork(classes, (1, classes), signed=signed)
    network.softmax(network.values[0])
    result = compiled(network.finish())
    assert all_on_chip(result)
    assert result.report.verdict is Verdict.PROVED, result.report.headline


def test_a_vector_that_was_a_pixel_has_its_softmax_on_the_chip() -> None:
    network = RandomNetwork(5, (1, 1, 1, 17), signed=False)
    pixel = network.window(network.values[0], 17, 1)
    network.softmax(network.in_shape(pixel, (1, 17)))
    result = compiled(network.finish())
    assert all_on_chip(result)
    assert result.report.verdict is Verdict.PROVED, result.report.headline


@pytest.mark.parametrize(
    ("shape", "signed"),
    [((1, 1, 3000, 2), True), ((1, 7, 9, 16), False), ((1, 5, 2, 21), True), ((6, 11), False)],
)
def test_softmaxes_of_several_vectors_are_proved(shape: tuple[int, ...], signed: bool) -> None:
    network = RandomNetwork(5, shape, signed=signed)
    network.softmax(network.values[0])
    result = compiled(network.finish())
    assert all_on_chip(result)
    assert result.report.verdict is Verdict.PROVED, result.report.headline


@pytest.mark.parametrize(("channels", "signed"), [(4, True), (512, False)])
def test_unit_vectors_are_proved(channels: int, signed: bool) -> None:
    network = RandomNetwork(channels, (1, channels), signed=signed)
    network.unit_vector(network.values[0])
    # Squares of a scale above 1 begin within the table.
    coarse = network.add_input((1, channels), scale=1.02)
    network.unit_vector(coarse)
    result = compiled(network.finish())
    assert all_on_chip(result)
    assert result.report.verdict is Verdict.PROVED, result.report.headline


@pytest.mark.parametrize("signed", [True, False])
def test_squares_are_proved_also_beyond_the_range(signed: bool) -> None:
    """Of a program without a clip, a square above 255 has its low byte."""
    network = RandomNetwork(0, (1, 5, 6, 7), signed=signed)
    coarse = network.add_input((1, 5, 6, 7), scale=1 / 5)
    for source in (network.values[0], coarse):
        network.squared_difference(source, 1 / 4)
        network.squared_difference(source, 64)
    result = compiled(network.finish())
    assert all_on_chip(result)
    assert result.report.verdict is Verdict.PROVED, result.report.headline


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((1, 7, 7, 12), (1, 147, 1, 4)),
        ((1, 7, 7, 6), (1, 147, 2)),
        ((1, 5, 5, 3), (1, 75)),
        ((1, 60), (1, 5, 4, 3)),
    ],
)
def test_other_shapes_are_proved(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    network = RandomNetwork(3, before, signed=True)
    network.reshaped(network.values[0], after)
    result = compiled(network.finish())
    assert all_on_chip(result)
    assert result.report.verdict is Verdict.PROVED, result.report.headline


@pytest.mark.parametrize("shape", [(1, 1, 4, 2), (1, 1, 2, 4), (1, 1, 1, 8)])
def test_a_layer_of_another_shape_is_known_as_that_of_the_model(shape: tuple[int, ...]) -> None:
    """Its parameters are those of the shape that QUANTIZE reads, not of the flat one."""
    network = RandomNetwork(1, (1, 1, 2, 4), signed=True)
    network.dense(network.reshaped(network.values[0], shape), (64,))
    result = compiled(network.finish())
    assert all_on_chip(result)
    assert result.report.verdict is Verdict.PROVED, result.report.headline


@pytest.mark.parametrize("shape", [(1, 9000), (1, 3, 3, 1280), (1, 4, 5, 1000)])
def test_layers_beyond_wide_memory_are_proved(shape: tuple[int, ...]) -> None:
    network = RandomNetwork(2, shape, signed=True)
    source = network.values[0]
    if source.is_image:
        network.window(source, 3, 3)
    else:
        network.dense(source)
    result = compiled(network.finish())
    assert all_on_chip(result)
    assert result.report.verdict is Verdict.PROVED, result.report.headline


def test_a_single_result_of_a_large_image_is_proved() -> None:
    """No tile has room for all of the image, of which the result meets a corner."""
    network = RandomNetwork(3, (1, 90, 130, 8), signed=True)
    network.window(network.layer(network.values[0], 24, 1), 5, 1, (90, 130))
    result = compiled(network.finish())
    assert all_on_chip(result)
    assert result.report.verdict is Verdict.PROVED, result.report.headline


@pytest.mark.parametrize(("outputs", "shape"), [(1, (3, 1)), (3, (1, 1)), (70, (5, 4))])
def test_only_what_a_single_result_meets_goes_to_all_tiles(
    outputs: int, shape: tuple[int, int]
) -> None:
    network = RandomNetwork(3, (1, 16, 18, 3), signed=True)
    window = {"kernel": shape, "stride": (20, 20), "padding": Padding.VALID}
    network._convolution(network.layer(network.values[0], 8, 1), window, outputs)
    result = compiled(network.finish())
    assert result.built is not None
    copies = result.built.pieces[0].placement.copies.values()
    assert shape in {(each.rows.extent, each.columns.extent) for each in copies}
    assert result.report.verdict is Verdict.PROVED, result.report.headline


@pytest.mark.parametrize(
    "kind", [BuiltinOperator.MUL, BuiltinOperator.ADD, BuiltinOperator.MAXIMUM]
)
def test_a_shape_with_another_rank_is_no_repetition(kind: BuiltinOperator) -> None:
    """The same pixels: a RESHAPE gives them a leading dimension."""
    network = RandomNetwork(3, (6, 8), signed=True)
    source = network.reshaped(network.leaky(network.values[0]), (1, 6, 8))
    shape = () if kind is BuiltinOperator.MAXIMUM else (1, 1, 8)
    constant = network._constant(np.full(shape, 5, np.int8), [0.02])
    result = network._value((1, 6, 8), source.scale, source.zero_point)
    network._operate(kind, (source.index, constant), result)
    assert all_on_chip(compiled(network.finish(), check=False))


def test_bytes_of_another_type_are_the_same_bytes() -> None:
    """QUANTIZE between uint8 and int8 is no operation, and what comes out has its own type."""
    network = RandomNetwork(3, (1, 5, 6, 4), signed=False)
    values = [network.values[0]]
    for signed, changes in ((True, True), (True, False), (False, True)):
        network.signed = signed
        source = values[-1]
        if not changes:
            values.append(network.layer(source, 8, 3))
            continue
        zero_point = source.zero_point + (-128 if signed else 128)
        made = network._value(source.shape, source.scale, zero_point)
        values.append(network._operate(BuiltinOperator.QUANTIZE, (source.index,), made))
    network.show(values[-2])
    result = compiled(network.finish())
    assert all_on_chip(result)
    assert result.built is not None
    (piece,) = result.built.pieces
    assert [each.name for each in piece.graph.operations] == ["CONV_2D"]
    assert [port.signed for port in piece.graph.outputs] == [True, False]
    assert result.report.verdict is Verdict.PROVED, result.report.headline


@pytest.mark.parametrize(
    ("amounts", "others", "operations"),
    [
        (((0, 1), (0, 1)), "", ["CONV_2D", "DEPTHWISE_CONV_2D"]),
        (((2, 0), (1, 2)), "", ["CONV_2D", "DEPTHWISE_CONV_2D"]),
        (((4, 0), (1, 9)), "", ["PAD", "CONV_2D", "DEPTHWISE_CONV_2D"]),
        (((0, 1), (0, 1)), "LOGISTIC", ["PAD", "CONV_2D", "DEPTHWISE_CONV_2D", "LOGISTIC"]),
        (((0, 1), (0, 1)), "output", ["PAD", "CONV_2D", "DEPTHWISE_CONV_2D"]),
        (((0, 1), (0, 1)), "on the CPU", ["PAD", "CONV_2D", "DEPTHWISE_CONV_2D"]),
    ],
)
def test_zero_points_around_an_image_are_made_for_those_who_need_them(
    amounts: tuple[tuple[int, int], ...], others: str, operations: list[str]
) -> None:
    """Windows find them beyond the image."""
    network = RandomNetwork(3, (1, 9, 11, 4), signed=True)
    source = network.values[0]
    sides = tuple(n + sum(each) for n, each in zip(source.sides, amounts, strict=True))
    sizes = network._constant(np.array([(0, 0), *amounts, (0, 0)], np.int32))
    padded = network._value((1, *sides, 4), source.scale, source.zero_point)
    network._operate(BuiltinOperator.PAD, (source.index, sizes), padded, o.PadOptions())
    network.window(padded, 8, 3, (2, 2))
    network.draw_again((1, 2))
    network.depthwise(padded)
    if others == "LOGISTIC":
        network.function(padded)
    elif others == "output":
        network.show(padded)
    elif others:
        result = network._value(padded.shape, padded.scale, padded.zero_point)
        network._operate(BuiltinOperator.HARD_SWISH, (padded.index,), result, o.HardSwishOptions())
    compilation = compiled(network.finish())
    assert compilation.built is not None
    (piece,) = compilation.built.pieces
    assert [each.name for each in piece.graph.operations] == operations
    assert compilation.report.verdict is Verdict.PROVED, compilation.report.headline


def test_what_is_behind_an_operator_is_not_given_up_for_bytes_that_pass_through() -> None:
    """The model of an LSTM: a QUANTIZE of the same bytes is before what stays on the CPU."""
    network = RandomNetwork(3, (1, 4, 6, 8), signed=True)
    source = network.values[0]
    same = network._value(source.shape, source.scale, source.zero_point)
    network._operate(BuiltinOperator.QUANTIZE, (source.index,), same)
    result = network._value(same.shape, same.scale, same.zero_point)
    kind = BuiltinOperator.HARD_SWISH
    network._operate(kind, (same.index,), result, o.HardSwishOptions())
    network.dense(network.layer(result, 8, 3))
    rows = compiled(network.finish()).report.rows
    assert [row.place for row in rows] == [Place.CPU, Place.CPU, Place.CHIP, Place.CHIP]


def test_intermediate_tensors_of_what_stays_are_kept() -> None:
    """An LSTM names tensors that hold nothing but scales. Their numbers were of the old model."""
    network = RandomNetwork(3, (1, 4, 6, 8), signed=True)
    source = network.layer(network.layer(network.values[0], 8, 3), 8, 1)
    result = network._value(source.shape, source.scale, source.zero_point)
    kind = BuiltinOperator.HARD_SWISH
    network._operate(kind, (source.index,), result, o.HardSwishOptions())
    scales = network._value((1,), 0.25, 3).index
    model = tflite.load(network.finish())
    (graph,) = model.subgraphs
    last = replace(graph.operators[-1], intermediates=(scales,))
    graph = replace(graph, operators=(*graph.operators[:-1], last))
    result_model = tflite.load(compiled(write(replace(model, subgraphs=(graph,)))).data)
    (found,) = result_model.subgraphs
    (index,) = found.operators[-1].intermediates
    assert found.tensors[index].name == graph.tensors[scales].name


def test_parts_that_meet_in_a_word_are_proved() -> None:
    network = RandomNetwork(4, (1, 9, 7, 3), signed=False)
    first, second = (network.layer(network.values[0], count, 1) for count in (1, 6))
    joined = network.joined(network.joined(first, second), first)
    network.layer(joined, 3, 1)
    result = compiled(network.finish())
    assert all_on_chip(result)
    assert result.report.verdict is Verdict.PROVED, result.report.headline


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        (BuiltinOperator.ADD, (1, 5, 1, 6)),
        (BuiltinOperator.SUB, (5, 7, 1)),
        (BuiltinOperator.SUB, (6,)),
        (BuiltinOperator.MUL, (1, 5, 7, 6)),
    ],
)
def test_constants_of_any_shape_are_proved(kind: BuiltinOperator, shape: tuple[int, ...]) -> None:
    network = RandomNetwork(4, (1, 5, 7, 6), signed=True)
    network.with_constant(network.values[0], kind, shape)
    result = compiled(network.finish())
    assert all_on_chip(result)
    assert result.report.verdict is Verdict.PROVED, result.report.headline


@settings(max_examples=4)
@given(st.integers(0, 2**32 - 1))
def test_networks_by_chance_are_right(seed: int) -> None:
    result = compiled(random_network(seed, 6))
    assert result.report.verdict in _RIGHT, result.report.headline


@pytest.mark.nightly
@settings(max_examples=200)
@given(st.integers(0, 2**32 - 1))
def test_large_networks_by_chance_are_right(seed: int) -> None:
    result = compiled(random_network(seed, 14))
    assert result.report.verdict in (*_RIGHT, Verdict.REFUSED), result.report.headline


def test_images_beyond_the_memory_run_band_by_band() -> None:
    network = RandomNetwork(5, (1, 190, 190, 4), signed=True)
    wide = network.layer(network.values[0], 48, 1)
    network.layer(network.layer(wide, 48, 1), 4, 3)
    result = compiled(network.finish())
    assert all_on_chip(result)
    assert result.built is not None
    assert result.built.pieces[0].placement.chains
    assert result.report.verdict is Verdict.PROVED, result.report.headline


def test_parameters_that_fit_stay_on_the_chip() -> None:
    result = compiled(random_network(7, 4, ["CONV_2D"]), check=False)
    kinds = [each.type for each in load(Content(result.data, "m")).executables]
    assert kinds == [ExecutableType.EXECUTION_ONLY, ExecutableType.PARAMETER_CACHING]
    figures = result.report.figures
    assert figures["streamed_bytes"] == 0
    assert figures["cached_bytes"] > 0


def test_parameters_of_few_tiles_stay_where_they_are_used() -> None:
    """Four of sixteen tiles compute: their parameters were spread over all, and came back."""
    network = RandomNetwork(7, (1, 256), signed=True)
    network.dense(network.values[0], [256])
    result = compiled(network.finish(), check=False)
    assert result.built is not None
    (piece,) = result.built.pieces
    assert piece.resident == {0: 256 * 256 + 4 * 2 * 256}


def test_a_layer_that_fills_most_of_some_tiles_stays_there() -> None:
    """Its parameters leave little room on all tiles, and were streamed to keep more."""
    network = RandomNetwork(7, (1, 6300), signed=True)
    network.dense(network.dense(network.values[0], [512]), [10])
    result = compiled(network.finish(), check=False)
    assert result.report.figures["streamed_bytes"] == 0
    assert result.built is not None
    assert result.built.pieces[0].resident[0] > 512 * 6300


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_parameters_without_room_are_streamed(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "rows_to_keep", lambda phases, areas, most: rows)
    result = compiled(random_network(7, 4, ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"]))
    assert result.report.verdict is Verdict.PROVED, result.report.headline
    assert result.report.figures["streamed_bytes"] > 0
    assert bool(result.report.figures["cached_bytes"]) == bool(rows)


def test_the_same_model_gives_the_same_bytes() -> None:
    data = random_network(11, 5)
    assert compiled(data, check=False).data == compiled(data, check=False).data


def test_a_wrong_program_is_not_written_and_is_called_a_defect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken() -> object:
        row = identity()
        row[0, 0] = 2
        return row

    monkeypatch.setattr(pools, "identity", broken)
    result = compiled(random_network(3, 2, ["AVERAGE_POOL_2D"]))
    assert result.report.verdict is Verdict.MISMATCH
    assert "a defect of this compiler" in result.report.message
    assert not result.data


def test_an_operator_that_stays_has_its_reason_and_so_have_those_behind_it() -> None:
    network = RandomNetwork(1, (1, 6, 6, 6), signed=True)
    first = network.convolution(network.values[0])
    # Channels that are no whole words are not joined yet.
    second = network.convolution(first)
    network.convolution(second)
    result = compiled(network.finish(), intermediate_tensors=(f"t{second.index}",), check=False)
    places = [row.place for row in result.report.rows]
    assert places == [Place.CHIP, Place.CHIP, Place.CPU]
    assert "intermediate tensor" in result.report.rows[-1].reason


def test_what_is_not_implemented_is_refused_by_name() -> None:
    data = random_network(1, 2)
    for options, name in (
        ({"num_segments": 2}, "--num_segments"),
        ({"num_segments": 2, "intermediate_tensors": ("t1",)}, "--num_segments"),
        ({"min_runtime_version": 10}, "--min_runtime_version"),
    ):
        with pytest.raises(Unsupported, match=name):
            compiled(data, **options)


def test_wrong_arguments_are_errors() -> None:
    data = random_network(1, 2, ["CONV_2D"])
    with pytest.raises(InputError, match="no tensor is called 'nothing'"):
        compiled(data, intermediate_tensors=("nothing",))
    with pytest.raises(ExecutionError, match="--timeout_sec"):
        compiled(data, timeout=1e-9)
    with pytest.raises(InputError, match="compiled already"):
        compiled(compiled(data, check=False).data)


def test_the_command_writes_model_and_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(random_network(3, 2, ["CONV_2D"]))
    code = run_command_line(["compile", str(model), "-o", str(tmp_path / "out"), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert code == 0
    assert report["verdict"] == "proved"
    assert load(tmp_path / "out" / "model_edgetpu.tflite").executables
    log = (tmp_path / "out" / "model_edgetpu.log").read_text()
    for field in (
        "Number of Edge TPU subgraphs: 1",
        "On-chip memory used for caching model parameters: ",
        "Off-chip memory used for streaming uncached model parameters: 0.00B",
        "Total number of operations: 2",
    ):
        assert field in log
    assert "CONV_2D                        2          Mapped to Edge TPU" in log


def test_the_command_replaces_links_and_not_what_they_lead_to(tmp_path: Path) -> None:
    (tmp_path / "net.tflite").write_bytes(random_network(3, 2))
    for suffix in (".tflite", ".log"):
        (tmp_path / f"other{suffix}").write_bytes(b"another")
        (tmp_path / f"net_edgetpu{suffix}").symlink_to(f"other{suffix}")
    assert run_command_line(["compile", str(tmp_path / "net.tflite"), "--no-check"]) == 0
    for suffix in (".tflite", ".log"):
        assert (tmp_path / f"other{suffix}").read_bytes() == b"another"
        assert len((tmp_path / f"net_edgetpu{suffix}").read_bytes()) > 100


def test_options_of_a_newer_schema_leave_their_operator_on_the_cpu() -> None:
    """It is written as it was read, at every place where it stands."""
    builder = flatbuffers.Builder()
    text = builder.CreateString("a value that a newer schema refers to")
    builder.StartObject(9)
    builder.PrependInt64Slot(1, -3, 0)
    builder.PrependUOffsetTRelativeSlot(8, text, 0)
    builder.Finish(builder.EndObject())
    data = memoryview(bytes(builder.Output()))
    (place,) = struct.unpack_from("<I", data)
    made = random_network(3, 3, ["CONV_2D"])
    model = tflite.load(Content(made, "net.tflite"))
    graph = model.subgraphs[0]
    (*kept, last) = graph.operators
    for tag, name in (
        (250, "number 250 of a newer schema"),
        (1, "Conv2DOptions of a newer schema"),
    ):
        newer = replace(last, builtin_options=OpaqueTable(tag, "", data, place))
        changed = replace(model, subgraphs=(replace(graph, operators=(*kept, newer)),))
        result = compiled(write(changed), check=False)
        reasons = [row.reason for row in result.report.rows if row.place is not Place.CHIP]
        assert reasons == [f"options {name} are not read"]
        found = tflite.load(Content(result.data, "net_edgetpu.tflite")).subgraphs[0].operators
        (left,) = (each.builtin_options for each in found if each.builtin_options is not None)
        assert left == OpaqueTable(tag, name)
        table = flatbuffers.table.Table(bytes(left.data), left.place)
        number, string = (table.Pos + table.Offset(4 + 2 * slot) for slot in (1, 8))
        assert table.Get(flatbuffers.number_types.Int64Flags, number) == -3
        assert table.String(string) == b"a value that a newer schema refers to"


def test_the_command_ends_with_3_where_nothing_is_mapped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(random_network(3, 1, ["CONV_2D"]))
    first = "t0"
    code = run_command_line(["compile", str(model), "-i", first])
    assert code == 3
    assert "no operator goes to the chip" in capsys.readouterr().out
    assert not list(tmp_path.glob("*_edgetpu*"))


def test_an_exporter_calls_it_as_it_calls_the_vendors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    edgetpu_compiler.main(["--version"])
    assert capsys.readouterr().out.startswith("Edge TPU Compiler version darwinn-testbench ")
    (tmp_path / "folder").mkdir()
    model = tmp_path / "folder" / "model.tflite"
    model.write_bytes(random_network(3, 1, ["CONV_2D"]))
    monkeypatch.chdir(tmp_path)
    options = ["--show_operations", "--search_delegate", "--delegate_search_step", "30"]
    with pytest.raises(SystemExit) as end:
        edgetpu_compiler.main([*options, "--timeout_sec", "180", str(model)])
    assert end.value.code == 0
    assert "Number of Edge TPU subgraphs: 1" in capsys.readouterr().out
    assert (tmp_path / "model_edgetpu.tflite").exists()


@pytest.mark.parametrize(("count", "text"), [(0, "0.00B"), (1536, "1.50KiB"), (3 << 20, "3.00MiB")])
def test_sizes_are_written_as_the_vendor_does(count: int, text: str) -> None:
    assert size(count) == text


def test_a_whole_network_is_proved_and_no_slower_than_the_vendors(
    corpus: Path, tmp_path: Path
) -> None:
    result = compile_model(corpus / "tflite" / f"{_MODEL}.tflite")
    assert result.report.verdict is Verdict.PROVED, result.report.headline
    assert result.report.figures["operators_on_chip"] == 31
    target = tmp_path / f"{_MODEL}_edgetpu.tflite"
    target.write_bytes(result.data)
    ours, theirs = (
        measure(path).rows[0].cycles
        for path in (target, corpus / "darwinn" / f"{_MODEL}_edgetpu.tflite")
    )
    assert ours is not None
    assert theirs is not None
    assert ours < theirs
