"""What `darwinn explain` says of the project's own models, and of graphs made for it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from darwinn_formats import flatbuffer, tflite
from darwinn_formats.errors import FormatError
from darwinn_formats.tflite import BuiltinOperator, TensorType
from darwinn_sim import timing
from darwinn_testbench.chip.cycles import measure
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import (
    compile_network,
    compile_stand_alone,
    edgetpu_model,
    random_dense,
    uncompiled,
)
from darwinn_testbench.errors import InputError
from darwinn_testbench.explain.crossing import CACHE_BYTES, Piece
from darwinn_testbench.explain.evidence import FILES
from darwinn_testbench.explain.explain import ExplainRow, explain
from darwinn_testbench.explain.placement import Place
from darwinn_testbench.report import Report, verdict_of
from tflite_graphs import ints, model, tensor
from whole_models import segments, whole_model, with_floats

NETWORK = random_dense([256, 256, 64], 1)
PLAIN = uncompiled(NETWORK)
BEFORE = with_floats(PLAIN, BuiltinOperator.ABS)
COMPILED = with_floats(edgetpu_model(NETWORK, compile_network(NETWORK)), BuiltinOperator.ABS)
LINK = timing.host_link("usb3")


def places(report: Report[ExplainRow]) -> list[str]:
    return [row.place.value for row in report.rows]


def piece(report: Report[ExplainRow]) -> Piece:
    (found,) = report.figures["pieces"]
    assert isinstance(found, Piece)
    return found


def test_a_prediction_says_how_it_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.tflite").write_bytes(BEFORE)
    assert run_command_line(["explain", str(tmp_path / "m.tflite")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 by compiled files, 2 by the vendor's word, 1 by the operator that ended" in printed
    report = explain(BEFORE)
    assert [row.basis and row.basis.value for row in report.rows] == [
        "the vendor's word",
        "compiled files",
        "compiled files",
        "the vendor's word",
        None,
    ]
    assert report.rows[1].evidence == f"{FILES['FULLY_CONNECTED']} compiled files, vendor's table"
    for reason in report.figures["not_covered"]:
        assert " ".join(reason.split()) in printed
    # What a compiled file shows is not predicted.
    assert "certainty" not in explain(BEFORE, COMPILED).figures


def test_a_tensor_larger_than_any_that_was_seen_is_something_to_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = (1, 1024, 1024, 16)
    tensors = [tensor(name, shape, TensorType.INT8) for name in ("a", "b")]
    (tmp_path / "m.tflite").write_bytes(model(tensors, [("ADD", ["a", "a"], ["b"])], ["b"]))
    report = explain(tmp_path / "m.tflite")
    assert places(report) == ["chip"]
    assert report.figures["certainty"] == {"not confirmed": 1}
    assert run_command_line(["explain", str(tmp_path / "m.tflite")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "nothing to change" not in printed
    assert "not certain: 0 ADD (tensor of 16,777,216 bytes?)" in printed
    assert "of 1 operator 1 not confirmed" in printed


def test_what_a_prediction_cannot_count_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.tflite").write_bytes(BEFORE)
    (tmp_path / "m_edgetpu.tflite").write_bytes(COMPILED)
    words = ["explain", str(tmp_path / "m.tflite")]
    assert run_command_line(words) == 0
    assert "and the compiler's instructions" in capsys.readouterr().out
    assert run_command_line([*words, str(tmp_path / "m_edgetpu.tflite")]) == 0
    assert "and the compiler's instructions" not in capsys.readouterr().out


def test_each_operator_is_shown_with_the_tensor_that_it_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers of operators differ between a model and the compiled one; names are the bridge."""
    for name, data in (("m", BEFORE), ("m_edgetpu", COMPILED)):
        (tmp_path / f"{name}.tflite").write_bytes(data)
        assert run_command_line(["explain", str(tmp_path / f"{name}.tflite"), "--all"]) == 0
        shown = capsys.readouterr().out
        for row in explain(tmp_path / f"{name}.tflite").rows:
            assert any(line.rstrip().endswith(row.name) for line in shown.splitlines())


def test_a_model_before_compilation_is_predicted() -> None:
    report = explain(BEFORE)
    assert report.figures["basis"] == "prediction"
    assert "predicted" in report.message
    assert places(report) == ["CPU", "chip", "chip", "CPU", "CPU"]
    assert [row.reason for row in report.rows] == [
        *("float32 data", "", "", "not supported", "behind 3 DEQUANTIZE"),
    ]
    found = piece(report)
    assert found.milliseconds is None
    sizes = [(each.what, each.direction, each.bytes) for each in found.crossings]
    assert sizes == [("input", "in", 256), ("output", "out", 64)]
    weights = sum(layer.weights.nbytes + layer.bias.nbytes for layer in NETWORK.layers)
    assert (found.cached, found.streamed) == (weights, 0)


def test_a_compiled_twin_decides_the_places() -> None:
    report = explain(BEFORE, COMPILED)
    assert report.figures["basis"] == "compiled file"
    assert report.figures["agreement"] == {"same": 5, "of": 5}
    package = compile_network(NETWORK)
    inference, caching = package.executables
    if inference.parameters:
        inference, caching = caching, inference
    found = piece(report)
    assert found.cached == len(caching.parameters)
    assert found.streamed == 0
    instructions = sum(len(each.bitstream) for each in inference.instruction_bitstreams)
    sizes = {each.what: each for each in found.crossings}
    assert sizes["instructions"].bytes == instructions
    assert math.isclose(
        sizes["instructions"].milliseconds, 1e3 * instructions / LINK.bytes_per_second_in.value
    )
    assert math.isclose(sizes["output"].milliseconds, 1e3 * 64 / LINK.bytes_per_second_out.value)
    timed = next(row for row in measure(COMPILED).rows if row.type == "EXECUTION_ONLY")
    assert found.milliseconds == timed.milliseconds


def test_what_the_compiled_file_does_overrides_the_prediction() -> None:
    """With all conditions met, an operator that the compiler left out has no documented reason."""
    names = ("input", "middle", "output")
    tensors = [tensor(name, (1, 24)) for name in names]
    network = replace(segments()[0], source="input", result="middle")
    chip = edgetpu_model(network, compile_network(network))
    before = model(
        tensors, [("LOGISTIC", ["input"], ["middle"]), ("TANH", ["middle"], ["output"])], ["output"]
    )
    read = tflite.load(chip)
    (graph,) = read.subgraphs
    tanh = tflite.OperatorCode(int(BuiltinOperator.TANH), "", 1, int(BuiltinOperator.TANH))
    compiled = flatbuffer.write(
        replace(
            read,
            operator_codes=(*read.operator_codes, tanh),
            subgraphs=(
                replace(
                    graph,
                    tensors=(*graph.tensors, tensor("output", (1, 24))),
                    operators=(*graph.operators, tflite.Operator(1, graph.outputs, (2,))),
                    outputs=(2,),
                ),
            ),
        )
    )
    report = explain(before, compiled)
    assert places(report) == ["chip", "CPU"]
    assert [row.predicted for row in report.rows] == [Place.CHIP, Place.CHIP]
    assert report.rows[1].reason == "not known"
    assert report.figures["agreement"] == {"same": 1, "of": 2}
    assert any("without a documented reason" in each.what for each in report.figures["advice"])


def test_a_compiled_file_alone_has_reasons_for_what_is_left() -> None:
    report = explain(COMPILED)
    assert places(report) == ["CPU", "chip", "CPU", "CPU"]
    assert [row.reason for row in report.rows[2:]] == ["not supported", "behind 2 DEQUANTIZE"]
    assert "agreement" not in report.figures


def test_streamed_parameters_have_a_price() -> None:
    package = compile_stand_alone(NETWORK)
    report = explain(edgetpu_model(NETWORK, package))
    size = len(package.executables[0].parameters)
    found = piece(report)
    assert (found.cached, found.streamed) == (0, size)
    (advice,) = [each for each in report.figures["advice"] if "streamed" in each.what]
    assert advice.saves == pytest.approx(1e3 * size / LINK.bytes_per_second_in.value)
    assert "has room for them" in advice.change
    endless = explain(edgetpu_model(NETWORK, package), host_name="none")
    assert [each for each in endless.figures["advice"] if "streamed" in each.what] == []


def test_parameters_beyond_the_chips_memory_are_predicted_to_be_streamed() -> None:
    rows = CACHE_BYTES // 4096 + 1
    weights = np.ones((rows, 4096), np.int8)
    data = model(
        [tensor("in", (1, 4096)), tensor("out", (1, rows))],
        [("FULLY_CONNECTED", ["in", "weights", ""], ["out"])],
        ["out"],
        {"weights": weights},
    )
    found = piece(explain(data))
    assert found.cached == CACHE_BYTES
    assert found.streamed == weights.nbytes - CACHE_BYTES
    (advice,) = [each for each in explain(data).figures["advice"] if "streamed" in each.what]
    assert "smaller" in advice.change


def test_several_pieces_are_several_requests() -> None:
    compiled = whole_model(segments())
    report = explain(compiled)
    assert places(report) == ["CPU", "chip", "CPU", "CPU", "chip", "CPU"]
    assert [each.number for each in report.figures["pieces"]] == [0, 1]
    (advice,) = [each for each in report.figures["advice"] if "2 pieces" in each.what]
    assert advice.saves == pytest.approx(1e3 * LINK.fixed_seconds.value)


def test_several_pieces_are_predicted_if_asked_for_or_seen() -> None:
    compiled = whole_model(segments())
    read = tflite.load(compiled)
    (graph,) = read.subgraphs
    number = int(BuiltinOperator.LOGISTIC)
    codes = tuple(
        tflite.OperatorCode(number, "", 1, number) if code.custom_code else code
        for code in read.operator_codes
    )
    plain = tuple(replace(each, custom_options=None) for each in graph.operators)
    before = flatbuffer.write(
        replace(read, operator_codes=codes, subgraphs=(replace(graph, operators=plain),))
    )
    whole = ["CPU", "chip", "CPU", "CPU", "chip", "CPU"]
    assert places(explain(before)) == ["CPU", "chip", "CPU", "CPU", "CPU", "CPU"]
    report = explain(before, several=True)
    assert places(report) == whole
    assert [each.number for each in report.figures["pieces"]] == [0, 1]
    report = explain(before, compiled)
    assert places(report) == whole
    assert report.figures["agreement"] == {"same": 6, "of": 6}


def floats() -> bytes:
    kind = TensorType.FLOAT32
    return model(
        [
            tensor("in", (1, 4, 4, 2), kind),
            tensor("a", (1, 4, 4, 2), kind),
            tensor("b", (1, 8), kind),
        ],
        [("RELU", ["in"], ["a"]), ("RESHAPE", ["a", "shape"], ["b"])],
        ["b"],
        {"shape": ints(1, 8)},
    )


def test_a_model_that_is_not_quantised_is_told_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    report = explain(floats())
    assert places(report) == ["CPU", "CPU"]
    assert report.figures["pieces"] == ()
    first, second = report.figures["advice"]
    assert "nothing runs on the chip" in first.what
    assert second.operators == (0, 1)
    assert "quantise the whole model" in second.change


def test_a_graph_without_operators_is_explained() -> None:
    report = explain(model([tensor("in", (1, 4))], [], ["in"]))
    assert report.rows == ()


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    other = random_dense([24, 24], 1)
    with pytest.raises(InputError, match="inputs are int8 1x24, not int8 1x256"):
        explain(PLAIN, edgetpu_model(other, compile_network(other)))
    with pytest.raises(InputError, match="is compiled; give the model before compilation first"):
        explain(COMPILED, COMPILED)
    with pytest.raises(InputError, match=r"not a \.tflite"):
        explain(b"no model at all, whatever it is")


def test_json_has_every_operator_and_the_tables_fit_a_narrow_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    before, compiled = tmp_path / "model.tflite", tmp_path / "model_edgetpu.tflite"
    before.write_bytes(BEFORE)
    compiled.write_bytes(COMPILED)
    assert run_command_line(["explain", str(before), str(compiled), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [row["place"] for row in printed["rows"]] == ["CPU", "chip", "chip", "CPU", "CPU"]
    assert printed["rows"][4]["log"] == "More than one subgraph is not supported"
    assert printed["operators"] == {"chip": 2, "CPU": 3, "?": 0}
    monkeypatch.chdir(tmp_path)
    for options in ([], ["--all"]):
        assert run_command_line(["explain", "model.tflite", "model_edgetpu.tflite", *options]) == 0
        lines = capsys.readouterr().out.splitlines()
        body = lines[: next(k for k, line in enumerate(lines) if line.startswith("pass"))]
        assert all(len(line) <= 80 for line in body)
        assert any("2 FULLY_CONNECTED" in line for line in body) is not bool(options)
    assert run_command_line(["explain", "model_edgetpu.tflite", "model.tflite"]) == 2


def test_a_shape_that_no_machine_holds_is_bad_input() -> None:
    data = model([tensor("in", (1 << 30,) * 100_000), tensor("out", (1, 4))], [], ["out"])
    with pytest.raises(FormatError, match=r"tensor 0\.shape: more than"):
        explain(data)


def test_an_output_of_an_open_shape_is_that_of_the_compiled_file() -> None:
    """Boxes of an SSD: how many there are its options say."""
    read = tflite.load(BEFORE)
    (graph,) = read.subgraphs
    last = graph.outputs[0]
    tensors = tuple(
        replace(each, shape=()) if k == last else each for k, each in enumerate(graph.tensors)
    )
    before = flatbuffer.write(replace(read, subgraphs=(replace(graph, tensors=tensors),)))
    assert places(explain(before, COMPILED)) == places(explain(BEFORE, COMPILED))


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_model_is_explained_or_refused_with_a_reason(seed: int) -> None:
    random = Random(seed)
    data = bytearray(random.choice((BEFORE, COMPILED, floats())))
    tables = [k for k in range(len(data)) if data[max(k - 32, 0) : k + 32].count(0) > 16]
    for _ in range(random.choice((1, 2, 4, 8))):
        data[random.choice(tables)] = random.randrange(256)
    try:
        explain(bytes(data)).to_json()
    except Exception as error:
        if verdict_of(error) is None:
            raise
